#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_experiment_sets.py - fedkt experiment: sets that are missing, broken, or not those that a run began with.

Usage: test_experiment_sets.py FEDKT [test...]
"""

import html
import json
import os
import time

import numpy
from PIL import Image

import binary
from binary import tree


class Sets(binary.Case):
    def write_set(self, folder, images):
        """A set `toy` of three classes, trained and tested on the same images."""
        (self.folder / folder).mkdir(exist_ok=True)
        labels = numpy.arange(len(images)).reshape(-1, 1) % 3
        arrays = {f"{s}_{k}": v for s in ("train", "test") for k, v in (("images", images), ("labels", labels))}
        numpy.savez(self.folder / folder / "toy.npz", **arrays)

    def test_missing_data_is_named_and_skipped(self):
        (self.folder / "sets").mkdir()
        (self.folder / "sets/broken.npz").write_bytes(b"not a set")
        self.fedkt("experiment epsilon --quick --network none --data set --out nothing", code=1)  # no such folder
        (self.folder / "sets.npz").write_bytes(b"a file")
        self.fedkt("experiment epsilon --quick --network none --data sets.npz --out nothing", code=2)
        self.assertFalse((self.folder / "nothing").exists())
        line = "experiment epsilon --quick --network none --data sets --sets absent,broken,demo --out run"
        process = self.start(line)
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 3, stderr)
        self.assertRegex(stderr, r"skipped cell 'epsilon\.absent\.paper\.0': '\S*sets' has no set 'absent'")
        skipped = {s["cell"] for s in json.loads(self.bytes("run/skipped.json"))}
        arms = ("paper", "joint", "guide", "real")
        self.assertEqual(skipped, {f"epsilon.{s}.{a}.0" for s in ("absent", "broken") for a in arms})
        made = {p.name for p in (self.folder / "run/cells").iterdir()}
        self.assertEqual(made, {f"epsilon.demo.{a}.0.json" for a in arms})
        self.assertIn(b'<section id="skipped">', self.bytes("run/report.html"))

    def test_a_reason_is_said_once_with_its_hint(self):
        """Two arms lack a public set, and then ten lack weights, of four codecs."""
        self.write_set("sets", numpy.random.default_rng(6).integers(0, 256, (60, 8, 8, 3), numpy.uint8))
        line = "experiment codecs --network none --data sets --sets toy --quiet"
        nowhere = {**os.environ, "FEDKT_CACHE": str(self.folder / "nowhere")}
        process = self.start(f"{line} --out run", env=nowhere)
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 3, stderr)
        skipped = json.loads(self.bytes("run/skipped.json"))
        groups = [  # with one reason each
            ("ae-64-top256", "ae-64-top128"),
            ("taesd-32", "taesd-32-guide"),
            ("dcae-32", "dcae-64", "dcae-64-guide", "dcae-64-top64", "dcae-128", "dcae-128-top128"),
            ("dcae-mix-64",),
            ("dcae-f64-64",),
        ]
        cells = [f"codecs.toy.{arm}.0" for group in groups for arm in group]
        self.assertEqual([s["cell"] for s in skipped], cells)
        self.assertIn("tiny-imagenet-12k.tar", skipped[0]["hint"])
        self.assertIn("fedkt codec pull taesd", skipped[2]["hint"])
        said, first = [], 0
        for group in groups:
            same = skipped[first : first + len(group)]
            first += len(group)
            self.assertEqual(len({s["why"] for s in same}), 1)
            said.append(f"fedkt: skipped cell '{same[0]['cell']}': {same[0]['why']}")
            said += [f"hint: {same[0]['hint']}"] if "hint" in same[0] else []
            more = len(group) - 1
            said += [f"fedkt: and {more} more cell{'s' if more > 1 else ''} for the same reason"] if more else []
        self.assertEqual(stderr.splitlines(), said)
        page = self.bytes("run/report.html").decode()
        self.assertEqual(page.count(html.escape(skipped[2]["hint"]).replace("&#x27;", "&#39;")), 2)
        process = self.start(f"{line} --out run --resume --log jsonl", env=nowhere)
        _, stderr = process.communicate()
        events = [e for e in map(json.loads, stderr.splitlines()) if e["event"] == "cell"]
        self.assertEqual([{"cell": e["cell"], "why": e["skipped"], **{k: e[k] for k in e if k == "hint"}}
                          for e in events], skipped)

    def test_another_set_of_the_same_name_is_refused(self):
        """Twenty records a class; one pixel more in one of them, then the first set again in another place."""
        shade = numpy.random.default_rng(5).integers(0, 256, (60, 8, 8, 3), numpy.uint8)
        line = "experiment epsilon --quick --network none --sets toy --out run --data"
        self.write_set("sets", shade)
        self.fedkt(f"{line} sets")
        self.fits("experiment-set", json.loads(self.bytes("run/sets/toy.json")))
        (self.folder / "run/cells/epsilon.toy.joint.0.json").unlink()
        before, other = tree(self.folder / "run"), shade.copy()
        other[17, 3, 3, 1] ^= 1
        self.write_set("sets", other)
        process = self.start(f"{line} sets --resume")
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertEqual(
            stderr,
            "fedkt: set 'toy' is not the one that the run began with: as many records, but not the same\n"
            "hint: give the set that the run began with, or choose another folder for the results\n",
        )
        self.assertEqual(tree(self.folder / "run"), before)
        self.write_set("elsewhere", shade)
        self.fedkt(f"{line} elsewhere --resume")
        cell = json.loads(self.bytes("run/cells/epsilon.toy.joint.0.json"))
        self.assertEqual(cell["inputs"]["toy"], json.loads(self.bytes("run/sets/toy.json"))["sha256"])
        self.fedkt(f"{line.replace('run', 'run-other')} sets")
        process = self.start("experiment report run run-other --out joined")
        _, stderr = process.communicate()
        self.assertEqual((process.returncode, stderr.splitlines()[0].split(":")[:2]),
                         (1, ["fedkt", " two cells were made with different 'toy'"]))
        self.assertFalse((self.folder / "joined").exists())

    def test_splits_of_a_set_that_has_no_row(self):
        """A test split is used where there is one beside `train`; else a fifth is held out."""
        chance = numpy.random.default_rng(9)

        def write(name, splits):
            for split, classes in splits.items():
                for c in classes:
                    place = self.folder / "sets" / name / split / c
                    place.mkdir(parents=True)
                    for i in range(40):
                        pixels = chance.integers(0, 256, (8, 8, 3), numpy.uint8)
                        Image.fromarray(pixels).save(place / f"{i}.png")

        write("plain", {".": "ab"})
        write("whole", {"train": "ab", "val": "ab"})
        write("alone", {"test": "ab"})
        write("other", {"train": "ab", "test": "bc"})
        line = "experiment epsilon --network none --arms joint --data sets --sets plain,whole,alone,other --out run"
        process = self.start(line)
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 3, stderr)
        why, = [s["why"] for s in json.loads(self.bytes("run/skipped.json"))]
        self.assertRegex(why, r"^set 'other': test image '\S+' is of class 'c', which has no training images$")
        found = {n: json.loads(self.bytes(f"run/sets/{n}.json")) for n in ("plain", "whole", "alone")}
        self.assertEqual({n: (f["records"], f["test_records"]) for n, f in found.items()},
                         {"plain": (80, 0), "whole": (80, 80), "alone": (80, 0)})

    def test_another_public_set_is_refused(self):
        """A full run whose first network asks for public images is stopped before it learns."""
        chance = numpy.random.default_rng(7)
        self.write_set("sets", chance.integers(0, 256, (60, 8, 8, 3), numpy.uint8))
        shared = chance.integers(0, 256, (30, 8, 8, 3), numpy.uint8)

        def write(images):
            labels = numpy.zeros((len(images), 1), numpy.uint8)
            numpy.savez(self.folder / "sets/public.npz", train_images=images, train_labels=labels)

        line = "experiment personalised --network resnet8 --data sets --sets toy --out run"
        write(shared)
        process, noted = self.start(line), self.folder / "run/sets/public.json"
        for _ in range(600):
            if noted.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        process.kill()
        process.communicate()
        self.fits("experiment-set", json.loads(noted.read_bytes()))
        before = tree(self.folder / "run")
        write(shared[:-1])
        process = self.start(f"{line} --resume")
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertEqual(
            stderr,
            "fedkt: set 'public' is not the one that the run began with: it had 30 records and 0 test records, and "
            "this one has 29 and 0\n"
            "hint: give the set that the run began with, or choose another folder for the results\n",
        )
        self.assertEqual(tree(self.folder / "run"), before)

    def test_another_set_of_calibrations_is_refused(self):
        chance = numpy.random.default_rng(8)
        self.write_set("sets", chance.integers(0, 256, (60, 8, 8, 3), numpy.uint8))

        def write(n):
            images, labels = chance.integers(0, 256, (n, 64, 64, 3), numpy.uint8), numpy.zeros((n, 1), numpy.uint8)
            numpy.savez(self.folder / "sets/tiny-imagenet-12k.npz", train_images=images, train_labels=labels)

        line = "experiment codecs --network none --data sets --sets toy --arms ae-64-top128 --out run"
        write(20)  # too few for 128 directions: no cell is made of them, and the set may be mended
        self.fedkt(line, code=3)
        self.assertFalse((self.folder / "run/sets/tiny-imagenet-12k.unlabelled.json").exists())
        write(200)
        self.fedkt(f"{line} --resume")
        noted = json.loads(self.bytes("run/sets/tiny-imagenet-12k.unlabelled.json"))
        self.fits("experiment-set", noted)
        self.assertEqual(noted["records"], 200)
        self.fedkt(f"{line} --resume")
        write(201)
        process = self.start(f"{line} --resume")
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn("set 'tiny-imagenet-12k' is not the one that the run began with", stderr)
        self.fedkt("experiment epsilon --network none --data sets --sets toy.unlabelled --out other", code=2)


if __name__ == "__main__":
    binary.main()

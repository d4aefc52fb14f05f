#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_experiment.py - fedkt experiment: what it writes, what a kill leaves, what it does without data.

Usage: test_experiment.py FEDKT [test...]
"""

import csv
import html.parser
import json
import os
import random
import re
import shutil
import signal
import time
import xml.etree.ElementTree

import numpy
from PIL import Image

import binary
from binary import lasting, tree

HEADS = "experiment clients --quick --network none"


class Page(html.parser.HTMLParser):
    """Sections and what a page would fetch."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.fetched, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "section":
            self.sections.append(attrs["id"])
        if tag in ("script", "link", "img", "iframe") or attrs.get("href", "#")[0] != "#":
            self.fetched.append((tag, attrs))
        if tag not in ("meta", "line", "circle", "rect", "path", "polyline", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_startendtag(self, tag, attrs):
        pass


class Experiment(binary.Case):
    def write_set(self, folder, images):
        """A set `toy` of three classes, trained and tested on the same images."""
        (self.folder / folder).mkdir(exist_ok=True)
        labels = numpy.arange(len(images)).reshape(-1, 1) % 3
        arrays = {f"{s}_{k}": v for s in ("train", "test") for k, v in (("images", images), ("labels", labels))}
        numpy.savez(self.folder / folder / "toy.npz", **arrays)

    def test_list(self):
        text = self.fedkt("experiment --list")
        listed = self.fedkt("experiment --list --json")
        names = [e["name"] for e in listed]
        self.assertEqual(len(names), len(set(names)))
        for name in ("mechanism", "osfl-20", "scale-1000", "personalised", "features", "mia-images", "audit"):
            self.assertIn(name, names)
            self.assertRegex(text, rf"(?m)^{name} +\S")

    def test_tables_plots_and_report(self):
        self.fedkt("experiment mechanism --quick --seeds 0,1 --out run")
        rows = list(csv.DictReader((self.folder / "run/tables/mechanism.csv").read_text().splitlines()))
        at = lambda arm, x: next(
            float(r["mean"]) for r in rows
            if (r["arm"], r["at"], r["panel"], r["measure"]) == (arm, x, "2000-records", "covariance_error")
        )
        self.assertLess(at("joint, add-remove, rie", "1"), at("paper, clamp", "1"))
        self.assertTrue(all(r["seeds"] == "2" for r in rows))
        table = json.loads(self.bytes("run/tables/mechanism.json"))
        self.assertEqual(table["seeds"], "0, 1")
        for panel in ("200-records", "2000-records", "20000-records"):
            svg = xml.etree.ElementTree.fromstring(self.bytes(f"run/plots/mechanism-{panel}.svg"))
            lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
            self.assertEqual(len(lines), 6)
            self.assertTrue(all(len(line.get("points").split()) == 3 for line in lines))
        page = Page(self.bytes("run/report.html").decode())
        self.assertEqual(page.sections, ["mechanism"])
        self.assertEqual(page.fetched, [])
        self.assertEqual(page.open, [])

    def moments_do_not_depend_on_the_number_of_sites(self, run):
        table = json.loads(self.bytes(f"{run}/tables/clients.json"))
        self.assertTrue(table["same_moments"])
        hashes = {}
        real, = [row for row in table["rows"] if row["arm"] == "real"]
        self.assertGreater(real["values"]["real_head"]["mean"], 0.9)
        for row in table["rows"]:
            if row is real:
                continue
            hashes.setdefault(row["arm"], set()).add(row["moments_sha256"])
        self.assertEqual({len(h) for h in hashes.values()}, {1})
        self.assertEqual(len({h for found in hashes.values() for h in found}), 3)  # the arms have different ones
        rounds = [json.loads(p.read_text()) for p in (self.folder / run / "cells").iterdir()]
        for cell in rounds:
            self.fits("cell", cell)
        rounds = [c for c in rounds if c["arm"] != "real"]
        self.assertTrue(all(c["points"][0]["facts"]["protocol"] == "fedkt.secagg/1" for c in rounds))
        named = {c["points"][0]["facts"]["partition"] + ".json" for c in rounds}
        self.assertEqual(named, {p.name for p in (self.folder / run / "partitions").iterdir()})
        fingerprint = json.loads(self.bytes(f"{run}/sets/demo.json"))["sha256"]
        for name in named:
            partition = json.loads(self.bytes(f"{run}/partitions/{name}"))
            self.fits("experiment-partition", partition)
            self.assertEqual(partition["set_sha256"], fingerprint)
            width, owner = partition["digits"], partition["owner"]
            sites = [owner[i : i + width] for i in range(0, len(owner), width)]
            self.assertEqual(len(sites), partition["records"])
            held = [sites.count(f"{s:0{width}d}") for s in range(partition["sites"])]
            self.assertEqual(held, [sum(row) for row in partition["counts"]])
            self.assertEqual(sum(held), partition["records"] - partition["held_out"])

    def test_killed_runs_go_on_to_the_same_bytes(self):
        start = time.monotonic()
        self.fedkt(f"{HEADS} --out whole")
        seconds, wanted = time.monotonic() - start, lasting(self.folder / "whole")
        self.moments_do_not_depend_on_the_number_of_sites("whole")
        chance, killed = random.Random(18), 0
        for _ in range(5):
            process = self.start(f"{HEADS} --out cut{' --resume' if (self.folder / 'cut').exists() else ''}")
            time.sleep(seconds * chance.uniform(0.1, 0.5))
            process.kill()
            process.communicate()
            killed += process.returncode == -9
        self.assertGreater(killed, 1, "hardly any run was caught alive")
        self.fedkt(f"{HEADS} --out cut --resume")
        self.assertEqual(lasting(self.folder / "cut"), wanted)
        self.fedkt("experiment clients --quick --network none --seeds 1 --out cut --resume", code=1)

    def test_a_stop_says_how_to_go_on(self):
        process = self.start("experiment personalised --quick --network resnet18 --threads 1 --out run")
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "training:" in line:
                process.send_signal(signal.SIGINT)
                break
        _, stderr = process.communicate()
        self.assertNotEqual(process.returncode, 0, lines)
        self.assertTrue(
            stderr.endswith(
                "fedkt: stopped before all cells were computed\n"
                "hint: finished cells are kept: the same command with --resume goes on\n"
            ),
            stderr,
        )

    def test_missing_data_is_named_and_skipped(self):
        (self.folder / "sets").mkdir()
        (self.folder / "sets/broken.npz").write_bytes(b"not a set")
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
        self.assertIn("skipped", Page(self.bytes("run/report.html").decode()).sections)

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

    def test_cells_say_what_was_done(self):
        """A cell names an option where it used it: the limit of a set, the network and its images."""
        line = "experiment personalised cost --quick --arms untouched,head-prior,local-sgd,dct-32 --rounds 1"
        self.fedkt(f"{line} --limit 300 --per-class 5 --out run")

        def notes(key):
            cell = json.loads(self.bytes(f"run/cells/{key}.json"))
            self.fits("cell", cell)
            return {k: cell[k] for k in ("limit", "network", "per_class", "rounds") if k in cell}

        self.assertEqual(notes("cost.ten-classes.dct-32.200-images.0"), {"limit": 300})
        for arm, said in (("untouched", {"network": "resnet8", "per_class": 5}), ("head-prior", {}),
                          ("local-sgd", {"network": "resnet8", "rounds": 1})):
            self.assertEqual(notes(f"personalised.demo.{arm}.pathological.0"), {"limit": 300, **said})
        self.fedkt("experiment clients --quick --network none --arms joint --out other")
        self.fedkt("experiment report run other --out joined")  # the set `demo` is whole there, and is not compared
        self.assertIn("5 images of a class, drawn once, for a network; resnet8",
                      self.bytes("joined/report.html").decode())

    def test_a_folder_that_refuses_a_file_ends_the_run(self):
        """Of four cells the first one finds that its partition cannot be noted: no other is computed in vain."""
        self.fedkt("experiment epsilon --quick --network none --out run")
        for name in ("partitions", "cells"):
            shutil.rmtree(self.folder / "run" / name)
        (self.folder / "run/partitions").write_text("")
        process = self.start("experiment epsilon --quick --network none --out run --resume")
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 1, stderr)
        self.assertNotIn("skipped", stderr)
        self.assertEqual(list((self.folder / "run/cells").iterdir()), [])
        (self.folder / "run/partitions").unlink()
        self.fedkt("experiment epsilon --quick --network none --out run --resume")
        self.assertEqual(len(list((self.folder / "run/cells").iterdir())), 4)

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

    def test_tables_go_into_marked_blocks(self):
        self.fedkt("experiment mechanism --quick --out run")
        shutil.rmtree(self.folder / "run/tables")
        marks = "<!-- experiment:mechanism -->\nold\n<!-- /experiment:mechanism -->"
        (self.folder / "page.md").write_text(f"a\n{marks}\nz\n")
        self.fedkt("experiment report run --fill page.md")
        text = (self.folder / "page.md").read_text()
        head = r"^a\n<!-- experiment:mechanism -->\n\nfedkt [^\n]*; seed 0; quick cells, [^\n]*\.\n\n"
        self.assertRegex(text, head + r"\| panel \|")
        self.assertTrue(text.endswith("\n<!-- /experiment:mechanism -->\nz\n"))
        self.assertNotIn("old", text)
        self.assertTrue((self.folder / "run/tables/mechanism.csv").exists())
        self.fedkt("experiment report run --fill page.md")
        self.assertEqual((self.folder / "page.md").read_text(), text)
        (self.folder / "bare.md").write_text("nothing\n")
        self.fedkt("experiment report run --fill bare.md", code=1)
        self.assertEqual((self.folder / "bare.md").read_text(), "nothing\n")

    def test_kept_cells_make_the_same_tables(self):
        self.fedkt("experiment mechanism --quick --seeds 0,1 --out run")
        self.fedkt("experiment clients --quick --network none --limit 400 --out limited")
        self.fedkt("experiment report run limited --out first --keep kept")
        self.assertEqual(sorted(tree(self.folder / "kept")), ["clients.jsonl", "mechanism.jsonl"])
        for line in self.bytes("kept/clients.jsonl").decode().splitlines():
            cell = json.loads(line)
            self.fits("cell", cell)
            self.assertEqual(cell["limit"], 400)
            self.assertEqual(cell["points"][0].get("facts", {}).get("records", 400), 400)
        self.assertIn("; 400 records;", (self.folder / "first/report.html").read_text())
        self.fedkt("experiment report kept", code=2)  # no folder for the report
        self.fedkt("experiment report kept --seeds 0 --out again", code=2)
        self.fedkt("experiment report kept --out again --keep kept-again")
        self.fedkt("experiment report kept/clients.jsonl run kept/mechanism.jsonl --out third --keep kept-again")
        for again in ("again", "third"):
            self.assertEqual(tree(self.folder / again), tree(self.folder / "first"))
        self.assertEqual(tree(self.folder / "kept-again"), tree(self.folder / "kept"))
        self.fedkt("experiment mechanism --quick --seeds 2 --out more")
        kept = self.bytes("kept/mechanism.jsonl")
        self.fedkt("experiment report more --keep kept", code=1)  # would lose what is kept there
        self.assertEqual(self.bytes("kept/mechanism.jsonl"), kept)
        self.fedkt("experiment report more kept --keep kept")
        self.assertGreater(len(self.bytes("kept/mechanism.jsonl")), len(kept))
        with open(self.folder / "kept/clients.jsonl", "a") as file:
            file.write("{}\n")
        n = len(self.bytes("kept/clients.jsonl").splitlines())
        process = self.start("experiment report kept --out bad")
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertRegex(stderr, rf"^fedkt: line {n} of '\S*kept/clients\.jsonl' is not a cell of an experiment\n$")
        self.assertFalse((self.folder / "bad").exists())
        (self.folder / "empty").mkdir()
        self.fedkt("experiment report empty --out bad", code=1)
        self.fedkt("experiment mechanism --quick --out other --keep kept", code=2)

    def test_some_arms_and_few_images(self):
        self.fedkt("experiment epsilon --quick --arms joint --per-class 5 --seeds 1,0 --out run")
        cells = [json.loads(p.read_text()) for p in (self.folder / "run/cells").iterdir()]
        for cell in cells:
            self.fits("cell", cell)
            self.assertEqual((cell["arm"], cell["per_class"]), ("joint", 5))
            self.assertIn("resnet8", cell["points"][0]["values"])
            self.assertEqual(cell["points"][-1]["reference"], "no noise")
            self.assertEqual("resnet8" in cell["points"][-1]["values"], cell["seed"] == 1)  # the first one's alone
        self.assertEqual(sorted(c["seed"] for c in cells), [0, 1])
        page = (self.folder / "run/report.html").read_text()
        self.assertIn("; 5 images of a class, drawn once, for a network;", page)
        self.fedkt("experiment epsilon --quick --arms joint --per-class 6 --seeds 1,0 --out run --resume", code=1)
        self.fedkt("experiment epsilon --quick --arms paper --per-class 5 --seeds 1,0 --out run --resume", code=1)
        self.fedkt("experiment epsilon --quick --arms fedavg --out other", code=2)
        self.fedkt("experiment samples --quick --network none --out none", code=2)  # no cells at all
        self.assertFalse((self.folder / "none").exists())

    def test_the_tables_of_the_documentation_are_those_of_the_kept_cells(self):
        docs = binary.ROOT / "docs"
        shutil.copy(docs / "results.md", self.folder / "results.md")
        self.fedkt(f"experiment report {docs / 'cells'} --out report --fill results.md")
        self.assertEqual(self.bytes("results.md").decode(), (docs / "results.md").read_text())
        marked = set(re.findall(r"<!-- experiment:([a-z0-9-]+) -->", (docs / "results.md").read_text()))
        self.assertEqual(marked, {p.stem for p in (docs / "cells").glob("*.jsonl")})


if __name__ == "__main__":
    binary.main()

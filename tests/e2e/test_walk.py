#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_walk.py - the walk from images to a trained head, stage by stage and in one go, through the binary alone.

Usage: test_walk.py FEDKT [test...]

What the library's own tests promise per room is asked here of the whole: the files between the stages, the formats
that leave, the schemas, and that neither the split of the records over sites nor the number of threads changes a bit.
"""

import io
import itertools
import json
import struct
import tarfile

import binary
from binary import tree

import fixtures
import numpy
import tensors
from PIL import Image

CLASSES = ["a", "b", "c", "d"]


class Stages(binary.Case):
    def test_stage_by_stage(self):
        made = self.fedkt("task --data demo:train --epsilon 10 --delta 1e-5 --name walk --out task.json --json")
        task = json.loads(self.bytes("task.json"))
        self.fits("task", task)
        self.assertEqual(made["classes"], len(task["classes"]))

        encoded = self.fedkt("encode --task task.json --data demo:train --limit 600 --out z.safetensors --json")
        self.assertEqual((encoded["records"], encoded["skipped"], encoded["secret"]), (600, 0, True))
        latents = tensors.load(self.folder / "z.safetensors")["tensors"]
        self.assertEqual(latents["latents"][:2], ("F32", [600, 64]))
        labels = numpy.frombuffer(latents["labels"][2], "<i8")
        self.assertEqual(numpy.bincount(labels).tolist(), [60] * 10)

        for words in (
            "--latents z.safetensors",
            "--data demo:train --limit 600 --threads 1",
            "--data demo:train --limit 600 --threads 3",
        ):
            self.fedkt(f"moments --task task.json {words} --out m.safetensors --force")
            first = self.bytes("m.safetensors") if words.startswith("--latents") else first
            self.assertEqual(self.bytes("m.safetensors"), first, words)
        exact = numpy.frombuffer(tensors.load(self.folder / "m.safetensors")["tensors"]["moments"][2], "<i8")
        self.assertEqual(exact.reshape(10, -1)[:, 0].tolist(), [60] * 10)

        release = "release --task task.json --moments m.safetensors --ledger l.json --insecure-seed 3 --json"
        certificate = self.fedkt(f"{release} --out r.safetensors")
        self.assertEqual(certificate.pop("release"), "r.safetensors")
        digest = certificate.pop("release_sha256")
        self.assertEqual(digest, tree(self.folder)["r.safetensors"])
        self.fits("certificate", certificate)
        self.assertEqual((certificate["private"], certificate["sites"]), (False, 1))

        self.generate_formats(task, certificate, digest)
        self.use_heads()

    def generate_formats(self, task, certificate, digest):
        for name in ("folder", "npz", "webdataset"):
            told = self.fedkt(f"generate --release r.safetensors --per-class 7 --format {name} --out {name} --json")
            self.assertEqual((told["images"], told["release_sha256"]), (70, digest))
            self.assertEqual(json.loads(self.bytes(f"{name}/certificate.json")), certificate)
            card = self.bytes(f"{name}/README.md").decode()
            self.assertTrue(card.startswith("---\n"), "a dataset card begins with its YAML head")
            for word in (digest, "NOT", "add-remove", *task["classes"]):
                self.assertIn(word, card)
            with Image.open(self.folder / name / "grid.png") as grid:
                self.assertGreater(min(grid.size), 10 * 64)
        pixels = self.folder_images(task)
        archive = numpy.load(self.folder / "npz" / "dataset.npz")
        self.assertEqual(archive["train_images"].shape, (70, 32, 32, 3))
        self.assertEqual(archive["train_images"].dtype, numpy.uint8)
        self.assertEqual(archive["train_labels"].reshape(-1).tolist(), [k for k in range(10) for _ in range(7)])
        self.assertTrue((archive["train_images"] == pixels).all(), "npz and folder hold other pixels")
        self.assertTrue((self.shard_images() == pixels).all(), "webdataset and folder hold other pixels")

    def folder_images(self, task):
        rows = [json.loads(line) for line in self.bytes("folder/metadata.jsonl").decode().splitlines()]
        self.assertEqual(len(rows), 70)
        self.assertEqual(sorted(path.name for path in (self.folder / "folder/train").iterdir()), task["classes"])
        images = []
        for row in rows:
            self.assertEqual(row["class"], task["classes"][row["label"]])
            self.assertTrue(row["file_name"].startswith(f"train/{row['class']}/"))
            with Image.open(self.folder / "folder" / row["file_name"]) as image:
                self.assertEqual((image.mode, image.size), ("RGB", (32, 32)))
                images.append(numpy.asarray(image))
        self.assertEqual(len(list((self.folder / "folder/train").rglob("*.png"))), 70)
        return numpy.stack(images)

    def shard_images(self):
        with tarfile.open(self.folder / "webdataset" / "train-000000.tar") as tar:
            members = [(member.name, tar.extractfile(member).read()) for member in tar.getmembers()]
        labels = [int(data) for name, data in members if name.endswith(".cls")]
        self.assertEqual(labels, [k for k in range(10) for _ in range(7)])
        return numpy.stack(
            [numpy.asarray(Image.open(io.BytesIO(data))) for name, data in members if name.endswith(".png")]
        )

    def use_heads(self):
        told = self.fedkt("heads --release r.safetensors --test demo:test --limit 300 --out heads --json")
        self.assertEqual(len(told["classes"]), 10)
        self.assertEqual(
            sorted(path.name for path in (self.folder / "heads").glob("*.safetensors")),
            ["lda.safetensors", "nearest_mean.safetensors", "qda.safetensors"],
        )
        for name, accuracy in told["accuracy"].items():
            score = self.fedkt(
                f"evaluate --release r.safetensors --model heads/{name}.safetensors --data demo:test "
                "--limit 300 --json"
            )
            self.assertEqual((score["n"], score["accuracy"]), (300, accuracy))
            self.assertAlmostEqual(sum(score["per_class"].values()) / 10, accuracy, places=9)
        self.assertGreater(told["accuracy"]["lda"], 0.5, "ten classes: chance is 0.1")
        self.assertTrue(
            self.fedkt(
                "evaluate --release r.safetensors --model heads/lda.safetensors --data folder " "--split train --json"
            )["accuracy"]
            > 0.5,
            "a set that we wrote can be read",
        )


class Sites(binary.Case):
    """Two sites in folders of their own, each without some of the classes."""

    def setUp(self):
        super().setUp()
        for site, classes, seed in (("one", "ab", 0), ("two", "bcd", 40), ("none", "", 0)):
            fixtures.image_folder(self.folder / site, list(classes), 9, first_seed=seed)
            for name in classes:
                target = self.folder / "both" / name
                target.mkdir(parents=True, exist_ok=True)
                for path in (self.folder / site / name).iterdir():
                    (target / f"{site}-{path.name}").write_bytes(path.read_bytes())
        self.fedkt(f"task --classes {','.join(CLASSES)} --epsilon 5 --delta 1e-5 --dim 12 --out task.json")
        for site in ("one", "two", "both"):
            self.fedkt(f"moments --task task.json --data {site} --out {site}.safetensors")

    def integers(self, name):
        return numpy.frombuffer(tensors.load(self.folder / f"{name}.safetensors")["tensors"]["moments"][2], "<i8")

    def test_two_sites_are_their_union(self):
        self.assertTrue((self.integers("one") + self.integers("two") == self.integers("both")).all())
        block = len(self.integers("one")) // 4
        self.assertEqual(self.integers("one")[::block].tolist(), [9, 9, 0, 0])
        self.assertFalse(self.integers("one")[2 * block :].any(), "a class that a site lacks is all zeros")
        for out, sites in (
            ("r2", "one.safetensors,two.safetensors"),
            ("r3", "two.safetensors,one.safetensors"),
            ("r1", "both.safetensors"),
        ):
            self.fedkt(
                f"release --task task.json --moments {sites} --ledger {out}.json --insecure-seed 9 "
                f"--out {out}.safetensors"
            )
        self.assertEqual(self.bytes("r2.safetensors"), self.bytes("r3.safetensors"))
        self.assertTrue((self.integers("r1") == self.integers("r2")).all(), "the same noise on the same sum")
        self.assertFalse((self.integers("r1") == self.integers("both")).all(), "no noise at all")

    def test_ledger_keeps_an_account_per_site(self):
        words = "release --task task.json --ledger l.json"
        self.fedkt(f"{words} --moments one.safetensors,two.safetensors --out r.safetensors")
        self.fedkt(f"{words} --moments two.safetensors --out s.safetensors", code=1)
        ledger = json.loads(self.bytes("l.json"))
        self.assertEqual([len(record["entries"]) for record in ledger["records"].values()], [1, 1])
        self.fedkt(f"{words} --moments one.safetensors --budget-epsilon 50 --budget-delta 1e-5 --out s.safetensors")
        ledger = json.loads(self.bytes("l.json"))
        self.assertEqual(sorted(len(record["entries"]) for record in ledger["records"].values()), [1, 2])
        self.assertEqual((self.folder / "l.json").stat().st_mode & 0o777, 0o600)

    def test_a_site_without_records_is_heard_and_has_no_account(self):
        zeros = tensors.load(self.folder / "one.safetensors")
        kind, shape, data = zeros["tensors"]["moments"]
        zeros["tensors"]["moments"] = (kind, shape, bytes(len(data)))
        for name in ("empty", "empty2"):
            tensors.save(self.folder / f"{name}.safetensors", zeros)
        told = self.fedkt(
            "release --task task.json --ledger l.json --moments "
            "one.safetensors,empty.safetensors,empty2.safetensors --out r.safetensors --json"
        )
        self.assertEqual((told["sites"], told["survivors"]), (3, 3))
        self.assertEqual(len(json.loads(self.bytes("l.json"))["records"]), 1)


class Invariance(binary.Case):
    SIMULATE = "simulate --data demo:train --limit 1000 --epsilon 10 --delta 1e-5 --insecure-seed 7 --json"
    RULES = {
        1: ["iid", "dirichlet:0.1", "pfllib:0.1", "pathological:10"],
        2: ["iid", "dirichlet:0.1", "pfllib:0.1", "pathological:5"],
        20: ["iid", "dirichlet:0.1", "pfllib:10", "pathological:2"],
        1000: ["iid", "dirichlet:0.1", "pathological:1"],
    }

    def test_neither_sites_nor_threads_change_a_bit(self):
        moments, releases, files = set(), {}, {}
        for clients, threads in itertools.product(self.RULES, (1, 2, 4)):
            for rule in self.RULES[clients]:
                told = self.fedkt(f"{self.SIMULATE} --clients {clients} --partition {rule} --threads {threads}")
                self.fits("results", told)
                self.assertEqual((told["clients"], told["records"]), (clients, 1000))
                moments.add(told["moments_sha256"])
                releases.setdefault(clients, set()).add(told["release_sha256"])
        self.assertEqual(len(moments), 1, "exact moments depend on split or threads")
        self.assertEqual({clients: len(found) for clients, found in releases.items()}, {1: 1, 2: 1, 20: 1, 1000: 1})
        for (
            clients
        ) in self.RULES:  # the files themselves; a certificate names the sites, so only its integers are alike
            told = self.fedkt(
                f"{self.SIMULATE} --clients {clients} --partition {self.RULES[clients][1]} " f"--out run{clients}"
            )
            self.assertEqual(tree(self.folder / f"run{clients}")["release.safetensors"], told["release_sha256"])
            self.assertEqual({told["release_sha256"]}, releases[clients])
            self.fits("certificate", json.loads(self.bytes(f"run{clients}/certificate.json")))
            self.fits("results", json.loads(self.bytes(f"run{clients}/results.json")))
            files[clients] = (
                self.bytes(f"run{clients}/moments.safetensors"),
                tensors.load(self.folder / f"run{clients}/release.safetensors")["tensors"],
            )
        self.assertTrue(all(pair == files[1] for pair in files.values()), "moments or noised integers differ")

    def test_noise_is_fresh_without_a_seed(self):
        words = self.SIMULATE.replace(" --insecure-seed 7", "").replace("1000", "100")
        first, second = self.fedkt(words), self.fedkt(words)
        self.assertEqual(first["moments_sha256"], second["moments_sha256"])
        self.assertNotEqual(first["release_sha256"], second["release_sha256"])
        self.assertTrue(first["arms"][0]["private"] and "insecure_seed" not in first)

    def test_further_runs_are_fresh_draws_of_the_same_release(self):
        words = f"{self.SIMULATE.replace('10 --delta', '10,1 --delta')} --holdout 0.3"
        once, more, again = self.fedkt(words), self.fedkt(f"{words} --runs 6"), self.fedkt(f"{words} --runs 6")
        self.fits("results", more)
        self.assertEqual(once["release_sha256"], more["release_sha256"])
        for first, arm, repeated in zip(once["arms"], more["arms"], again["arms"]):
            self.assertNotIn("accuracy_runs", first)
            self.assertEqual(arm["accuracy_runs"], repeated["accuracy_runs"])
            for head, runs in arm["accuracy_runs"].items():
                self.assertEqual((len(runs), runs[0]), (6, first["accuracy"][head]))
        self.assertGreater(len(set(more["arms"][1]["accuracy_runs"]["qda"])), 2)
        self.assertNotEqual(more["arms"][0]["accuracy_runs"], more["arms"][1]["accuracy_runs"])

    def test_images_depend_on_the_seed_alone(self):
        self.fedkt(f"{self.SIMULATE.replace('1000', '200')} --clients 5 --out run")
        for name in ("folder", "npz", "webdataset"):
            words = f"generate --release run/release.safetensors --per-class 40 --format {name}"
            for threads in (1, 2, 4):
                self.fedkt(f"{words} --threads {threads} --seed 5 --out {name}{threads}")
            self.assertEqual(tree(self.folder / f"{name}1"), tree(self.folder / f"{name}2"))
            self.assertEqual(tree(self.folder / f"{name}1"), tree(self.folder / f"{name}4"))
        self.fedkt(f"{words} --seed 6 --out other")
        self.assertNotEqual(tree(self.folder / "webdataset1"), tree(self.folder / "other"))

    def test_lost_sites_are_told(self):
        told = self.fedkt(f"{self.SIMULATE} --clients 10 --dropout 0.3 --participation 0.8 --holdout 0.2 --out run")
        self.fits("results", told)
        self.assertEqual((told["clients"], told["survivors"]), (10, 6))
        partition = json.loads(self.bytes("run/partition.json"))
        heard = [site for site in range(10) if site not in partition["not_heard"]]
        self.assertEqual(told["records"], sum(sum(partition["counts"][site]) for site in heard))
        counts = numpy.frombuffer(tensors.load(self.folder / "run/moments.safetensors")["tensors"]["moments"][2], "<i8")
        self.assertEqual(
            counts.reshape(10, -1)[:, 0].tolist(),
            [sum(partition["counts"][site][k] for site in heard) for k in range(10)],
        )


class Reports(binary.Case):
    def test_privacy_report(self):
        for words in (
            "--epsilon 10",
            "--epsilon 1 --adjacency replace --mechanism paper",
            "--epsilon 1 --adjacency " "replace-any --shares 1,1,1",
        ):
            self.fits("privacy", self.fedkt(f"privacy {words} --delta 1e-5 --dim 64 --clip 1 --json"))

    def test_a_calibration_of_ones_own(self):
        self.fedkt("codec calibrate --public demo:test --limit 500 --dim 24 --top 10 --source demo --out c.safetensors")
        self.fedkt(
            "task --data demo:train --epsilon 10 --delta 1e-5 --dim 24 --calibration c.safetensors "
            "--coordinates clip --out task.json"
        )
        self.fits("task", json.loads(self.bytes("task.json")))
        self.fedkt(
            "moments --task task.json --calibration c.safetensors --data demo:train --limit 200 " "--out m.safetensors"
        )
        self.fedkt(
            "release --task task.json --calibration c.safetensors --moments m.safetensors --ledger l.json "
            "--out r.safetensors"
        )
        self.fedkt("generate --release r.safetensors --per-class 2 --out made")  # the release alone is enough
        nan = tensors.with_bytes(tensors.load(self.folder / "r.safetensors"), "unmap", 0, struct.pack("<f", 1e9))
        tensors.save(self.folder / "bent.safetensors", nan)
        self.fedkt("generate --release bent.safetensors --per-class 2 --out bent", code=1)


if __name__ == "__main__":
    binary.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_pipeline.py - the walk from images to a trained head, stage by stage and in one go, through the binary alone.

Usage: test_pipeline.py FEDKT [test...]

What the library's own tests promise per room is asked here of the whole: the files between the stages, the formats
that leave, the schemas, and that neither the split of the records over sites nor the number of threads changes a bit.
"""

import io
import itertools
import json
import math
import re
import struct
import tarfile

import binary
from binary import tree

import fixtures
import numpy
import tensors
from PIL import Image
from scipy.optimize import brentq
from scipy.stats import norm

CLASSES = ["a", "b", "c", "d"]


def epsilon_gdp(mu2, delta):
    """The root of the Gaussian formula."""
    mu = mu2**0.5
    excess = lambda e: norm.cdf(-e / mu + mu / 2) - math.exp(e) * norm.cdf(-e / mu - mu / 2) - delta
    return brentq(excess, 0, 200, xtol=1e-12)


class Stages(binary.Case):
    def test_stage_by_stage(self):
        made = self.fedkt(
            "task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 "
            "--name walk --out task.json --json"
        )
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

        release = "release --task task.json --moments m.safetensors --ledger l.db --insecure-seed 3 --json"
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
        rows = [json.loads(line) for line in self.bytes("folder/train/metadata.jsonl").decode().splitlines()]
        self.assertEqual(len(rows), 70)
        folders = sorted(path.name for path in (self.folder / "folder/train").iterdir() if path.is_dir())
        self.assertEqual(folders, task["classes"])
        images = []
        for row in rows:
            self.assertEqual(row["class"], task["classes"][row["label"]])
            self.assertTrue(row["file_name"].startswith(f"{row['class']}/"))
            with Image.open(self.folder / "folder/train" / row["file_name"]) as image:
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
        told = self.fedkt("heads --release r.safetensors --test demo:test --test-limit 300 --out heads --json")
        self.assertEqual(len(told["classes"]), 10)
        said = self.fedkt("heads --release r.safetensors")
        self.assertEqual(len(re.findall(r"  (?:count )?below the noise$", said, re.MULTILINE)),
                         sum(item["below_noise"] for item in told["classes"]))  # fmt: skip
        reach = float(re.search(r"^noise alone can reach a signal of (1\.\d\d): a class with less, or", said, re.M)[1])
        for item in told["classes"]:
            if item["signal"] < reach - 0.01:
                self.assertTrue(item["below_noise"], item)
            if not item["below_noise"]:
                self.assertGreater(item["signal"], reach - 0.01)
        self.assertEqual(
            sorted(path.name for path in (self.folder / "heads").glob("*.safetensors")),
            ["lda.safetensors", "nearest_mean.safetensors", "qda.safetensors", "rda.safetensors"],
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
        self.fedkt(
            f"task new --codec dct --classes {','.join(CLASSES)} --epsilon 5 "
            "--delta 1e-5 --dim 12 --out task.json"
        )
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
                f"release --task task.json --moments {sites} --ledger {out}.db --insecure-seed 9 "
                f"--out {out}.safetensors"
            )
        self.assertEqual(self.bytes("r2.safetensors"), self.bytes("r3.safetensors"))
        self.assertTrue((self.integers("r1") == self.integers("r2")).all(), "the same noise on the same sum")
        self.assertFalse((self.integers("r1") == self.integers("both")).all(), "no noise at all")

    def accounts(self):
        return self.fedkt("ledger --ledger l.db --json")["accounts"]

    def test_a_release_of_several_sites_charges_its_dataset_once(self):
        words = "release --task task.json --ledger l.db"
        self.fedkt(f"{words} --moments one.safetensors,two.safetensors --out r.safetensors")
        self.fedkt(f"{words} --moments two.safetensors --out s.safetensors", code=1)
        (account,) = self.accounts()
        self.assertEqual((account["dataset"], account["images"], len(account["entries"])), ("unnamed", 45, 1))
        self.fedkt(f"{words} --moments one.safetensors --budget-epsilon 20 --budget-delta 1e-5 --out s.safetensors")
        (account,) = self.accounts()
        self.assertEqual((account["images"], len(account["entries"])), (45, 2))
        self.assertEqual((self.folder / "l.db").stat().st_mode & 0o777, 0o600)

    def test_a_site_without_records_is_heard(self):
        zeros = tensors.load(self.folder / "one.safetensors")
        kind, shape, data = zeros["tensors"]["moments"]
        zeros["tensors"]["moments"] = (kind, shape, bytes(len(data)))
        zeros["tensors"]["records"] = ("U8", [0, 16], b"")
        for name in ("empty", "empty2"):
            tensors.save(self.folder / f"{name}.safetensors", zeros)
        told = self.fedkt(
            "release --task task.json --ledger l.db --moments "
            "one.safetensors,empty.safetensors,empty2.safetensors --out r.safetensors --json"
        )
        self.assertEqual((told["sites"], told["survivors"]), (3, 3))
        (account,) = self.accounts()
        self.assertEqual(account["images"], 18)


class Invariance(binary.Case):
    SIMULATE = "simulate --codec dct --data demo:train --limit 1000 --epsilon 10 --delta 1e-5 --insecure-seed 7 --json"
    RULES = {
        1: ["iid", "dirichlet:0.1", "pfllib:0.1", "pathological:10"],
        2: ["iid", "dirichlet:0.1", "pfllib:0.1", "pathological:5"],
        20: ["iid", "dirichlet:0.1", "pfllib:10", "pathological:2"],
        60: ["iid", "dirichlet:0.1", "pathological:1"],
    }

    def test_neither_sites_nor_threads_change_a_bit(self):
        moments, releases, files = set(), {}, {}
        for sites, threads in itertools.product(self.RULES, (1, 4)):
            for rule in self.RULES[sites]:
                told = self.fedkt(f"{self.SIMULATE} --sites {sites} --partition {rule} --threads {threads}")
                self.fits("results", told)
                self.assertEqual((told["sites"], told["records"]), (sites, 1000))
                moments.add(told["moments_sha256"])
                releases.setdefault(sites, set()).add(told["release_sha256"])
        self.assertEqual(len(moments), 1, "exact moments depend on split or threads")
        self.assertEqual({sites: len(found) for sites, found in releases.items()}, {1: 1, 2: 1, 20: 1, 60: 1})
        self.assertEqual(len(set.union(*releases.values())), 4, "each site draws its own noise")
        for sites, rules in self.RULES.items():
            words = f"{self.SIMULATE} --sites {sites} --partition {rules[1]} --out run{sites}"
            told = self.fedkt(words)
            self.assertEqual(tree(self.folder / f"run{sites}")["release.safetensors"], told["release_sha256"])
            self.assertEqual({told["release_sha256"]}, releases[sites])
            self.fits("certificate", json.loads(self.bytes(f"run{sites}/certificate.json")))
            self.fits("task", json.loads(self.bytes(f"run{sites}/task.json")))
            self.fits("results", json.loads(self.bytes(f"run{sites}/results.json")))
            # Noise added in one place is the same for any number of sites; the rest of a file names them.
            self.fedkt(f"{words} --noise central --force")
            files[sites] = [
                tensors.load(self.folder / f"run{sites}" / name)["tensors"]
                for name in ("moments.safetensors", "release.safetensors")
            ]
        self.assertTrue(all(pair == files[1] for pair in files.values()), "moments or noised integers differ")

    def test_many_sites(self):
        told = self.fedkt(f"{self.SIMULATE} --dim 4 --sites 300 --partition dirichlet:1 --dropout 0.1")
        self.fits("results", told)
        self.assertEqual((told["survivors"], told["aggregation"]["lost"]["mask"]), (270, 30))
        self.assertLess(told["aggregation"]["degree"], 150)

    def test_noise_is_fresh_without_a_seed(self):
        words = self.SIMULATE.replace(" --insecure-seed 7", "").replace("1000", "100")
        first, second = self.fedkt(words), self.fedkt(words)
        self.assertEqual(first["moments_sha256"], second["moments_sha256"])
        self.assertNotEqual(first["release_sha256"], second["release_sha256"])
        self.assertTrue(first["arms"][0]["private"] and "insecure_seed" not in first)
        self.fedkt(f"{words} --out run")
        told = json.loads(self.bytes("run/certificate.json"))["holds_against"]
        self.assertEqual(told, "readers of the release; one process held all records and keys")

    def test_further_runs_are_fresh_draws_of_the_same_release(self):
        words = f"{self.SIMULATE.replace('10 --delta', '10,1 --delta')} --holdout 0.3"
        once, more, again = self.fedkt(words), self.fedkt(f"{words} --runs 6"), self.fedkt(f"{words} --runs 6")
        self.fits("results", more)
        self.assertEqual(again["release_sha256"], more["release_sha256"])
        # Every draw of every arm is a release of the same records: showing their accuracies costs all of them.
        mu2 = sum(arm["mu"] ** 2 for arm in once["arms"])
        self.assertAlmostEqual(once["composed_epsilon"], epsilon_gdp(mu2, 1e-5), places=4)
        self.assertAlmostEqual(more["composed_epsilon"], epsilon_gdp(6 * mu2, 1e-5), places=4)
        for first, arm, repeated in zip(once["arms"], more["arms"], again["arms"]):
            self.assertNotIn("accuracy_runs", first)
            self.assertEqual(arm["accuracy_runs"], repeated["accuracy_runs"])
            for head, runs in arm["accuracy_runs"].items():
                self.assertEqual((len(runs), runs[0]), (6, first["accuracy"][head]))
        self.assertGreater(len(set(more["arms"][1]["accuracy_runs"]["qda"])), 2)
        self.assertNotEqual(more["arms"][0]["accuracy_runs"], more["arms"][1]["accuracy_runs"])

    def test_images_depend_on_the_seed_alone(self):
        self.fedkt(f"{self.SIMULATE.replace('1000', '200')} --sites 5 --out run")
        for name in ("folder", "npz", "dpimagebench", "webdataset"):
            words = f"generate --release run/release.safetensors --per-class 40 --format {name}"
            for threads in (1, 2, 4):
                self.fedkt(f"{words} --threads {threads} --seed 5 --out {name}{threads}")
            self.assertEqual(tree(self.folder / f"{name}1"), tree(self.folder / f"{name}2"))
            self.assertEqual(tree(self.folder / f"{name}1"), tree(self.folder / f"{name}4"))
        self.fedkt(f"{words} --seed 6 --out other")
        self.assertNotEqual(tree(self.folder / "webdataset1"), tree(self.folder / "other"))

    def test_lost_sites_are_told(self):
        told = self.fedkt(f"{self.SIMULATE} --sites 10 --dropout 0.3 --participation 0.8 --holdout 0.2 --out run")
        self.fits("results", told)
        self.assertEqual((told["sites"], told["survivors"]), (10, 6))
        partition = json.loads(self.bytes("run/partition.json"))
        heard = [site for site in range(10) if site not in partition["not_heard"]]
        self.assertEqual(told["records"], sum(sum(partition["counts"][site]) for site in heard))
        counts = numpy.frombuffer(tensors.load(self.folder / "run/moments.safetensors")["tensors"]["moments"][2], "<i8")
        self.assertEqual(
            counts.reshape(10, -1)[:, 0].tolist(),
            [sum(partition["counts"][site][k] for site in heard) for k in range(10)],
        )
        certificate = json.loads(self.bytes("run/certificate.json"))
        self.assertEqual((certificate["sites"], certificate["survivors"]), (8, 6))
        self.assertEqual(certificate["noise_shares"]["counted"], 8 - 2 - 1)
        self.assertEqual(json.loads(self.bytes("run/task.json"))["federation"]["dropped"], 2)


class Phases(binary.Case):
    """Sites are lost in each phase of the protocol; what they contributed before stays."""

    SIMULATE = "simulate --codec dct --data demo:train --limit 300 --dim 6 --epsilon 10"
    SIMULATE += " --delta 1e-5 --insecure-seed 7 --json"
    PHASES = ["advertise", "coin", "share", "mask", "confirm", "reveal"]

    def test_sites_are_lost_in_each_phase(self):
        whole = self.fedkt(f"{self.SIMULATE} --noise central")
        for sites, phase in itertools.product((20, 60), self.PHASES):
            lost = sites // 10
            told = self.fedkt(f"{self.SIMULATE} --sites {sites} --dropout {phase}:0.1")
            self.fits("results", told)
            late = phase in ("confirm", "reveal")
            self.assertEqual(told["survivors"], sites if late else sites - lost, phase)
            self.assertEqual(told["aggregation"]["survivors"], told["survivors"])
            # A complete graph has no coin: who would be lost there is missed one phase later.
            missed = "share" if phase == "coin" and sites == 20 else phase
            self.assertEqual(told["aggregation"]["lost"], {name: lost * (name == missed) for name in self.PHASES})
            self.assertEqual(told["aggregation"]["throws"], 0 if sites == 20 else 2 if phase == "coin" else 1)
            self.assertEqual(told["moments_sha256"] == whole["moments_sha256"], late)
            self.assertEqual(told["bytes_per_site"], told["aggregation"]["traffic"]["up"])

    def test_all_phases_together(self):
        words = ",".join(f"{phase}:0.05" for phase in self.PHASES)
        told = self.fedkt(f"{self.SIMULATE} --sites 60 --dropout {words} --corrupt 0.05 --out run")
        self.assertEqual(set(told["aggregation"]["lost"].values()), {3})
        self.assertEqual((told["survivors"], told["aggregation"]["dropped_tolerated"]), (60 - 4 * 3, 18))
        certificate = json.loads(self.bytes("run/certificate.json"))
        shares = certificate["noise_shares"]
        self.assertEqual((shares["counted"], shares["in_total"]), (60 - 18 - 3, 48))
        self.assertAlmostEqual(shares["surplus_variance"], 48 / 39 - 1)
        self.assertEqual(shares["corrupt_tolerated"], 3)
        self.assertEqual(certificate["holds_against"], "nobody: the noise came from a known seed")
        arm = told["arms"][0]
        self.assertAlmostEqual(arm["sigma_sum_in_total"] / arm["sigma_sum"], (48 / 39) ** 0.5, places=9)
        self.fedkt("generate --release run/release.safetensors --per-class 2 --out made")  # and it is read back
        card = self.bytes("made/README.md").decode()
        self.assertIn("mu (Gaussian DP)", card)
        self.assertIn("the promise counts 39; 48 are in the sum", card)
        self.assertNotIn("Holds against", card)  # a known seed promises nothing
        page = self.bytes("run/report.html").decode()
        self.assertIn("42 stayed to the end; lost: 3 in phase advertise, 3 in phase coin", page)
        self.assertIn("2 throws of a common random coin", page)  # one went wrong with a site lost
        said = self.fedkt(f"{self.SIMULATE.removesuffix(' --json')} --sites 60 --dropout {words} --corrupt 0.05")
        self.assertIn("3 in confirm, 3 in reveal; 48 of 60 sites are in the sum, 42 stayed to the end", said)

    def test_small_shares_lose_what_their_sum_loses(self):
        words = ",".join(f"{phase}:0.02" for phase in self.PHASES)
        told = self.fedkt(f"{self.SIMULATE} --sites 20 --dropout {words}")
        self.assertEqual(sum(told["aggregation"]["lost"].values()), 2)
        self.assertEqual(told["aggregation"]["dropped_tolerated"], 2)

    def test_shares_are_rounded_up(self):
        told = self.fedkt(f"{self.SIMULATE} --sites 21 --dropped 0.1 --corrupt 1 --keystream chacha20 --out run")
        self.assertEqual((told["aggregation"]["dropped_tolerated"], told["aggregation"]["corrupt_tolerated"]), (3, 1))
        federation = json.loads(self.bytes("run/task.json"))["federation"]
        self.assertEqual((federation["dropped"], federation["keystream"]), (3, "chacha20"))
        (self.folder / "roster").write_text("\n".join(federation["roster"]))
        words = "--classes a,b --epsilon 1 --delta 1e-5 --roster roster --records 9 --out t.json --json"
        made = self.fedkt(f"task new --codec dct {words}")
        self.assertEqual((made["federation"]["dropped"], made["federation"]["sites"]), (3, 21))

    def test_the_card_says_whom_the_promise_holds_against(self):
        words = "simulate --codec dct --data demo:train --limit 100 --dim 4 --sites 5"
        words += " --epsilon 10 --delta 1e-5 --per-class 1"
        self.fedkt(f"{words} --out run")
        against = json.loads(self.bytes("run/certificate.json"))["holds_against"]
        self.assertIn(f"**Holds against:** {against}.", self.bytes("run/synthetic/README.md").decode())

    def test_two_sites_cannot_hide(self):
        told = self.fedkt(f"{self.SIMULATE} --sites 2 --out run")
        self.assertIsNone(told["aggregation"])
        self.assertEqual(told["noise"], "central")
        self.assertNotIn("federation", json.loads(self.bytes("run/task.json")))
        certificate = json.loads(self.bytes("run/certificate.json"))
        self.assertEqual((certificate["accounting"], certificate["noise_shares"]), ("gdp", None))
        length = told["length"]  # what a site sends is not masked and not packed, and is not said to be
        self.assertEqual(told["bytes_per_site"], 8 * told["classes"] * (1 + length + length * (length + 1) // 2))
        report = self.bytes("run/report.html").decode()
        self.assertIn("of exact sums from each site, unmasked", report)
        words = self.SIMULATE.replace(" --json", "")
        self.assertRegex(self.fedkt(f"{words} --sites 2"), r"length 7, \d+ KB of exact sums per site, once\n")
        self.assertRegex(self.fedkt(f"{words} --sites 3"), r"length 7, \d+ KB per site, once\n")

    def test_further_releases_add_up(self):
        told = self.fedkt(self.SIMULATE.replace("--epsilon 10", "--epsilon 1,1.5,2"))
        mu2 = sum(arm["mu"] ** 2 for arm in told["arms"])
        self.assertEqual({arm["accounting"] for arm in told["arms"]}, {"gdp"})
        self.assertTrue(all(arm["rho"] <= arm["mu"] ** 2 / 2 for arm in told["arms"]))
        alone = self.fedkt(f"privacy --epsilon {told['composed_epsilon']} --delta 1e-5 --dim 6 --clip 1 --json")
        self.assertLess(told["composed_epsilon"], 4.5)
        self.assertGreater(told["composed_epsilon"], 2)
        self.assertAlmostEqual(mu2 / alone["mu"] ** 2, 1, places=4)


class Reports(binary.Case):
    def test_privacy_report(self):
        for words in (
            "--epsilon 10",
            "--epsilon 1 --adjacency replace --mechanism paper",
            "--epsilon 1 --adjacency " "replace-any --budget-split 1,1,1",
        ):
            self.fits("privacy", self.fedkt(f"privacy {words} --delta 1e-5 --dim 64 --clip 1 --json"))

    def test_a_calibration_of_ones_own(self):
        self.fedkt("codec calibrate --public demo:test --limit 500 --dim 24 --top 10 --source demo --out c.safetensors")
        self.fedkt(
            "task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 --dim 24 --calibration c.safetensors "
            "--coordinates clip --out task.json"
        )
        self.fits("task", json.loads(self.bytes("task.json")))
        self.fedkt(
            "moments --task task.json --calibration c.safetensors --data demo:train --limit 200 " "--out m.safetensors"
        )
        self.fedkt(
            "release --task task.json --calibration c.safetensors --moments m.safetensors --ledger l.db "
            "--out r.safetensors"
        )
        self.fedkt("generate --release r.safetensors --per-class 2 --out made")  # the release alone is enough
        nan = tensors.with_bytes(tensors.load(self.folder / "r.safetensors"), "unmap", 0, struct.pack("<f", 1e9))
        tensors.save(self.folder / "bent.safetensors", nan)
        self.fedkt("generate --release bent.safetensors --per-class 2 --out bent", code=1)


if __name__ == "__main__":
    binary.main()

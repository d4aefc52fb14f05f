#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_ledger.py - what `fedkt ledger` shows of releases, and what it pays for, through the binary alone.

Usage: test_ledger.py FEDKT [test...]

Epsilons are held against formulas of our own (scipy), and the digests of some images against the rule of
docs/formats.md.
"""

import contextlib
import datetime
import hashlib
import sqlite3
import struct

import binary

import fixtures
import numpy
import tensors
from PIL import Image
from scipy import optimize, stats


def epsilon_gdp(mu2, delta):
    mu = mu2**0.5

    def excess(epsilon):
        return (
            stats.norm.cdf(-epsilon / mu + mu / 2) - numpy.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2) - delta
        )

    return optimize.brentq(excess, 1e-9, 100)


def digests(folder):
    """The first 16 bytes of SHA-256 over width, height and pixels, for each image."""
    found = set()
    for path in folder.rglob("*.png"):
        with Image.open(path) as image:
            rgb = image.convert("RGB")
            found.add(hashlib.sha256(struct.pack("<QQ", *rgb.size) + rgb.tobytes()).digest()[:16])
    return found


class Shown(binary.Case):
    def setUp(self):
        super().setUp()
        fixtures.image_folder(self.folder / "photos", ["a", "b"], 6)

    def look(self, words=""):
        document = self.fedkt(f"ledger --ledger l.db --json {words}")
        self.fits("ledger", document)
        return document["accounts"]

    def near(self, got, wanted):
        self.assertLessEqual(abs(got - wanted), 2e-5 * wanted, (got, wanted))

    def test_releases(self):
        self.fedkt("task new --codec dct --name twice --classes a,b --epsilon 2 --delta 1e-5 --dim 12 --out task.json")
        self.fedkt("moments --task task.json --data photos --out m.safetensors")
        words = "release --task task.json --ledger l.db --moments m.safetensors"
        self.fedkt(f"{words} --out r.safetensors")
        (bare,) = self.look("--delta 1e-6")
        self.assertEqual((bare["delta"], bare["budget"]["epsilon"], bare["left"]["mu2"]), (1e-6, None, 0))
        self.near(bare["together"]["epsilon"], epsilon_gdp(bare["entries"][0]["mu2"], 1e-6))
        (own,) = self.look()  # at the delta of the task, so that it is the number that was agreed
        self.assertEqual((own["delta"], own["entries"][0]["delta"], own["entries"][0]["task"]), (1e-5, 1e-5, "twice"))
        self.near(own["entries"][0]["epsilon"], 2)
        said = self.fedkt("ledger --ledger l.db")
        self.assertIn("...  twice", said)
        self.assertIn("no total budget was set", said)
        self.assertIn("nothing: a further release would be refused", said)

        self.fedkt(f"{words} --budget-epsilon 15 --budget-delta 1e-5 --insecure-seed 4 --out s.safetensors")
        (account,) = self.look("--delta 1e-6")
        self.assertEqual((account["delta"], account["budget"]["epsilon"]), (1e-5, 15))
        self.assertEqual([item["entropy"] for item in account["entries"]], ["operating system", "INSECURE SEED"])
        self.near(account["spent"]["mu2"] + account["left"]["mu2"], account["budget"]["mu2"])
        self.near(account["together"]["epsilon"], epsilon_gdp(sum(item["mu2"] for item in account["entries"]), 1e-5))
        self.near(account["left"]["epsilon"], epsilon_gdp(account["left"]["mu2"], 1e-5))
        now = datetime.datetime.now(datetime.timezone.utc)
        for item in account["entries"]:
            self.near(item["epsilon"], 2)
            self.assertLess(abs((now - datetime.datetime.fromisoformat(item["time"])).total_seconds()), 3600)
        said = self.fedkt("ledger --ledger l.db")
        self.assertIn("NOT PRIVATE", said)
        self.assertIn("epsilon 15 at delta 1e-05 in all", said)

    def test_images_of_a_dataset(self):
        """The ledger keeps a digest of each image, by which --data finds the dataset."""
        self.fedkt("task new --codec dct --name first --classes a,b --epsilon 2 --delta 1e-5 --dim 12 --out task.json")
        self.fedkt("moments --task task.json --data photos --out m.safetensors")
        self.fedkt("release --task task.json --ledger l.db --moments m.safetensors --out r.safetensors")
        fixtures.image_folder(self.folder / "others", ["a", "b"], 3, first_seed=50)
        self.fedkt("moments --task task.json --data others --out o.safetensors")
        self.fedkt(
            "release --task task.json --ledger l.db --moments o.safetensors --dataset 'ward 7' --out s.safetensors"
        )
        with contextlib.closing(sqlite3.connect(self.folder / "l.db")) as ledger:
            rows = ledger.execute("SELECT digest, dataset FROM records JOIN accounts ON account = id").fetchall()
        for folder, dataset in (("photos", "first"), ("others", "ward 7")):
            self.assertEqual({row[0] for row in rows if row[1] == dataset}, digests(self.folder / folder))
            self.assertEqual({row[0] for row in rows if row[1] == dataset}, self.in_moments(folder[0]))
            (account,) = self.look(f"--data {folder}")
            self.assertEqual((account["dataset"], account["images"]), (dataset, len(digests(self.folder / folder))))
            self.assertEqual(self.look(f"--dataset '{dataset}'"), [account])
        self.assertEqual(len(self.look()), 2)
        self.assertEqual(self.look("--dataset nothing"), [])
        fixtures.image_folder(self.folder / "new", ["a"], 3, first_seed=70)
        self.assertEqual(self.look("--data new"), [])
        self.assertIn("none of these images is in the ledger", self.fedkt("ledger --ledger l.db --data new"))
        self.assertIn("dataset ward 7\n", self.fedkt("ledger show --ledger l.db --data others"))
        self.fedkt("ledger --ledger none.db --data photos", code=1)  # a ledger that is named must be there
        self.assertEqual((self.folder / "l.db").stat().st_mode & 0o777, 0o600)

    def test_a_ledger_of_an_older_form(self):
        """It is not read, it is left as it is, and the hint says how to go on."""
        self.fedkt("task new --codec dct --classes a,b --epsilon 2 --delta 1e-5 --dim 12 --out task.json")
        self.fedkt("moments --task task.json --data photos --out m.safetensors")
        self.fedkt("release --task task.json --ledger l.db --moments m.safetensors --out r.safetensors")
        with contextlib.closing(sqlite3.connect(self.folder / "l.db")) as ledger:
            ledger.execute("PRAGMA user_version = 4")
        before = (self.folder / "l.db").read_bytes()
        for line in ("ledger --ledger l.db",
                     "release --task task.json --ledger l.db --moments m.safetensors --out s.safetensors"):  # fmt: skip
            run = self.start(line)
            _, said = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 1)
            self.assertIn("has the old format 4, this fedkt supports 5", said)
            self.assertIn("hint: an older ledger cannot be read: keep it, open a new ledger under another", said)
        self.assertEqual((self.folder / "l.db").read_bytes(), before)
        self.assertFalse((self.folder / "s.safetensors").exists())

    def in_moments(self, letter):
        name = {"p": "m", "o": "o"}[letter]
        path = self.folder / f"{name}.safetensors"
        kind, shape, data = tensors.load(path)["tensors"]["records"]
        self.assertEqual((kind, shape[1], path.stat().st_mode & 0o777), ("U8", 16, 0o600))
        return {data[i : i + 16] for i in range(0, len(data), 16)}


if __name__ == "__main__":
    binary.main()

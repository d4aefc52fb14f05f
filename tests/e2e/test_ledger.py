#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_ledger.py - what `fedkt ledger` shows of releases, rounds and old ledgers, through the binary alone.

Usage: test_ledger.py FEDKT [test...]

Epsilons are held against formulas of our own (scipy, and a grid over the orders of zCDP), and the fingerprint of some
records against the rule of docs/formats.md.
"""

import datetime
import hashlib
import json
import struct

import binary

import fixtures
import numpy
from PIL import Image
from scipy import optimize, stats


def epsilon_gdp(mu2, delta):
    mu = mu2**0.5

    def excess(epsilon):
        return (
            stats.norm.cdf(-epsilon / mu + mu / 2) - numpy.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2) - delta
        )

    return optimize.brentq(excess, 1e-9, 100)


def epsilon_zcdp(mu2, delta):
    a = 1 + numpy.exp(numpy.linspace(-3, 8, 200001))
    return float(
        numpy.min(a * mu2 / 2 + (numpy.log(1 / delta) + (a - 1) * numpy.log1p(-1 / a) - numpy.log(a)) / (a - 1))
    )


def fingerprint(folder):
    """SHA-256 over "fedkt records v1", the number of records and the sorted hashes of their pixels."""
    hashes = []
    for path in folder.rglob("*.png"):
        with Image.open(path) as picture:
            rgb = picture.convert("RGB")
            hashes.append(hashlib.sha256(struct.pack("<QQ", *rgb.size) + rgb.tobytes()).digest())
    return hashlib.sha256(b"fedkt records v1\0" + struct.pack("<Q", len(hashes)) + b"".join(sorted(hashes))).hexdigest()


def entry(task, mu2, **more):
    return {"task_sha256": task * 64, "mu2": mu2, "entropy": "operating system", **more}


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
        self.fedkt("task new --name twice --classes a,b --epsilon 2 --delta 1e-5 --dim 12 --out task.json")
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
        self.assertIn("nobody set a total", said)
        self.assertIn("nothing: a further release would be refused", said)

        self.fedkt(f"{words} --budget-epsilon 50 --budget-delta 1e-5 --insecure-seed 4 --out s.safetensors")
        (account,) = self.look("--delta 1e-6")
        self.assertEqual((account["delta"], account["budget"]["epsilon"]), (1e-5, 50))
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
        self.assertIn("epsilon 50 at delta 1e-05 in all", said)

    def test_records_and_an_old_ledger(self):
        """A federation's accounts go by the pixels, which --data finds; those of an old ledger come over."""
        name = fingerprint(self.folder / "photos")
        rounds = {"session": "5" * 64, "accounting": "zcdp"}
        mine = {
            "budget_mu2": 9,
            "budget_epsilon": 3,
            "budget_delta": 1e-6,
            "adjacency": "replace-any",
            "entries": [
                entry("1", 0.02),
                entry("2", 0.04, **rounds, state="reserved", past=["6" * 64]),
            ],
        }
        other = {"budget_mu2": 1, "adjacency": "add-remove", "entries": [entry("3", 0.5)]}
        old = {"schema": "fedkt.ledger/2", "records": {"a" * 64: other, name: mine}}
        (self.folder / "old.json").write_text(json.dumps(old))
        self.fedkt("ledger --ledger l.db --data photos", code=1)  # a ledger that is named must be there
        self.assertEqual(self.fedkt("ledger import old.json --ledger l.db --json")["accounts"], 2)
        self.fedkt("ledger import old.json --ledger l.db", code=1)
        self.assertEqual(len(self.look()), 2)
        (account,) = self.look("--data photos")
        self.assertEqual((account["fingerprint"], account["adjacency"]), (name, "replace-any"))
        self.assertEqual(
            (account["accounting"], account["reserved"]["rounds"], account["spent"]["releases"]), ("zcdp", 1, 1)
        )
        self.assertEqual([item["time"] for item in account["entries"]], [None, None])
        self.assertEqual([item["session"] for item in account["entries"]], [None, "5" * 64])
        self.near(account["together"]["mu2"], 0.06)
        self.near(account["together"]["epsilon"], epsilon_zcdp(0.06, 1e-6))
        self.near(account["reserved"]["epsilon"], epsilon_zcdp(0.04, 1e-6))
        self.near(epsilon_zcdp(account["budget"]["mu2"], 1e-6), 3)
        said = self.fedkt("ledger show --ledger l.db --data photos")
        self.assertIn("for 1 round that did not end; it counts as spent", said)
        self.assertNotIn("a" * 64, said)
        next((self.folder / "photos").rglob("*.png")).unlink()  # one record less is another name
        self.assertEqual(self.look("--data photos"), [])
        self.assertEqual((self.folder / "l.db").stat().st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(self.bytes("old.json")), old)


if __name__ == "__main__":
    binary.main()

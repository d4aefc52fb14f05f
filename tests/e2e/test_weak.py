#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_weak.py - a promise that is too weak to be called private says so in everything that is made under it.

Usage: test_weak.py FEDKT [test...]
"""

import json

import binary
import tensors

SMALL = "--size 16 --dim 8"


class Weak(binary.Case):
    def both(self, line):
        """What a verb says in words, after the same with --json."""
        return self.fedkt(f"{line} --json"), self.fedkt(f"{line} --force" if "--out" in line else line)

    def test_every_stage_says_so(self):
        told, words = self.both(
            f"task new --data demo:train --epsilon 50 --delta 1e-5 {SMALL} --out t.json --accept-weak-promise"
        )
        self.assertEqual((told["private"], told["promise"]), (False, "weak"))
        self.assertIn("WEAK PROMISE: epsilon 50 is above 20", words)
        task = json.loads(self.bytes("t.json"))
        self.assertEqual(task["privacy"]["promise"], "weak")
        self.fits("task", task)
        self.assertIn("WEAK PROMISE", self.fedkt("task show --task t.json"))

        self.fedkt("moments --task t.json --data demo:train --limit 100 --out m.safetensors")
        release = "release --task t.json --moments m.safetensors --ledger l.db --out r.safetensors"
        self.fedkt(release, code=1)
        self.assertFalse((self.folder / "l.db").exists())  # refused before the ledger paid
        certificate = self.fedkt(f"{release} --accept-weak-promise --json")
        self.assertEqual((certificate["private"], certificate["promise"]), (False, "weak"))
        warning = "WEAK PROMISE: epsilon 50 is above 20; this release is not called private"
        self.assertIn(warning, certificate["warnings"])

        told, words = self.both("generate --release r.safetensors --per-class 2 --out g")
        self.assertEqual((told["private"], told["promise"]), (False, "weak"))
        self.assertIn("WEAK PROMISE", words)
        card = self.bytes("g/README.md").decode()
        self.assertIn("**WEAK PROMISE: epsilon 50 is above 20.**", card)
        self.assertNotIn("- differential-privacy", card)
        self.assertNotIn("nearly the same probability", card)
        inside = json.loads(self.bytes("g/certificate.json"))
        self.fits("certificate", inside)
        self.assertEqual(inside["promise"], "weak")

        told, _ = self.both("heads --release r.safetensors --out h")
        self.assertEqual((told["private"], told["promise"]), (False, "weak"))
        for head in ("nearest_mean", "lda", "qda"):
            meta = tensors.load(self.folder / "h" / f"{head}.safetensors")["meta"]
            self.assertEqual(meta["private"], "false: the promise is weak", head)

        train = "--network resnet8 --epochs 1 --batch 10 --threads 1 --quiet --json"
        for source in ("--release r.safetensors --per-class 2", "--data g"):
            told = self.fedkt(f"train {source} {train} --out n.safetensors --force")
            self.assertEqual((told["private"], told["epsilon"]), (False, None))
            self.assertIn("NOT private: the promise is weak, epsilon 50, delta 1e-05", told["data"])
            meta = tensors.load(self.folder / "n.safetensors")["meta"]
            self.assertIn("the promise is weak", json.dumps(meta))

    def test_simulation(self):
        line = f"simulate --data demo:train --limit 100 {SMALL} --epsilon 50,2 --delta 1e-5 --accept-weak-promise"
        results = self.fedkt(f"{line} --per-class 1 --out run --json")
        self.fits("results", results)
        arms = [(arm["private"], arm.get("promise")) for arm in results["arms"]]
        self.assertEqual(arms, [(False, "weak"), (True, None)])
        report = self.bytes("run/report.html").decode()
        self.assertEqual(report.count("Weak promise: epsilon 50 is above 20"), 1)
        self.assertNotIn("That is a weak promise", report)  # the strictest arm is not
        self.assertIn("that anyone may train on", report)
        for name, weak in (("eps-50", True), ("eps-2", False)):
            certificate = json.loads(self.bytes(f"run/{name}/certificate.json"))
            self.fits("certificate", certificate)
            self.assertEqual((certificate["private"], "promise" in certificate), (not weak, weak))
        self.assertIn("WEAK PROMISE: epsilon 50 is above 20", self.fedkt(line.replace("50,2", "50")))
        alone = self.fedkt(f"{line.replace('50,2', '50')} --out alone --json")
        self.assertEqual(alone["arms"][0]["promise"], "weak")
        report = self.bytes("alone/report.html").decode()
        self.assertIn("That is a weak promise", report)
        self.assertNotIn("that anyone may train on", report)

    def test_privacy(self):
        """It knows the records of one class, which are no bound on all of them."""
        line = "privacy --epsilon 1 --dim 8 --clip 1 --accept-weak-promise --delta"
        for delta, weak in (("1e-3", False), ("1e-3 --records 1000000", False), ("2e-3 --records 10", True)):
            told = self.fedkt(f"{line} {delta} --json")
            self.fits("privacy", told)
            self.assertEqual(told.get("promise"), "weak" if weak else None)
            self.assertEqual("WEAK PROMISE" in self.fedkt(f"{line} {delta}"), weak)


if __name__ == "__main__":
    binary.main()

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
            f"task new --codec dct --data demo:train --epsilon 50 --delta 1e-5 {SMALL} "
            "--out t.json --accept-weak-promise"
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
        self.assertFalse((self.folder / "l.db").exists())  # refused before the ledger was debited
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
        line = f"simulate --codec dct --data demo:train --limit 100 {SMALL} --epsilon 50,2"
        line += " --delta 1e-5 --accept-weak-promise"
        results = self.fedkt(f"{line} --per-class 1 --out run --json")
        self.fits("results", results)
        arms = [(arm["private"], arm.get("promise")) for arm in results["arms"]]
        self.assertEqual(arms, [(False, "weak")] * 2)  # the second one by what was released beside it
        report = self.bytes("run/report.html").decode()
        self.assertEqual(report.count("Weak promise: epsilon 50 is above 20"), 1)
        self.assertEqual(report.count(" of all releases together is above 20. Nothing made of it"), 1)
        self.assertIn("That is a weak promise", report)
        self.assertNotIn("that anyone may train on", report)
        for name in ("eps-50", "eps-2"):
            certificate = json.loads(self.bytes(f"run/{name}/certificate.json"))
            self.fits("certificate", certificate)
            self.assertEqual((certificate["private"], certificate.get("promise")), (False, "weak"))
        self.assertIn("WEAK PROMISE: epsilon 50 is above 20", self.fedkt(line.replace("50,2", "50")))
        alone = self.fedkt(f"{line.replace('50,2', '50')} --out alone --json")
        self.assertEqual(alone["arms"][0]["promise"], "weak")
        report = self.bytes("alone/report.html").decode()
        self.assertIn("That is a weak promise", report)
        self.assertNotIn("that anyone may train on", report)

    def test_arms_add_up(self):
        """Each arm by itself is sound: a simulation goes on, and says what they are together."""
        line = f"simulate --codec dct --data demo:train --limit 100 {SMALL} --delta 1e-5"
        sound = self.fedkt(f"{line} --epsilon 10,3,1,0.3 --per-class 1 --out sound --json")
        self.assertLess(sound["composed_epsilon"], 20)
        self.assertTrue(all(arm["private"] and "promise" not in arm for arm in sound["arms"]))
        self.assertIn("that anyone may train on", self.bytes("sound/report.html").decode())
        results = self.fedkt(f"{line} --epsilon 20,19,18 --per-class 1 --out run --json")
        self.fits("results", results)
        self.assertGreater(results["composed_epsilon"], 30)
        why = f"epsilon {results['composed_epsilon']:.6g} of all releases together is above 20"
        for arm in results["arms"]:
            self.assertEqual((arm["private"], arm["promise"]), (False, "weak"))
            certificate = json.loads(self.bytes(f"run/eps-{arm['epsilon']:g}/certificate.json"))
            self.fits("certificate", certificate)
            self.assertEqual((certificate["private"], certificate["promise"]), (False, "weak"))
            self.assertIn(f"WEAK PROMISE: {why}; this release is not called private", certificate["warnings"])
        self.assertNotIn("that anyone may train on", self.bytes("run/report.html").decode())
        self.assertEqual(self.fedkt(f"{line} --epsilon 20,19,18").count(f"WEAK PROMISE: {why}"), 1)
        told = self.fedkt("generate --release run/eps-18/release.safetensors --per-class 2 --out g --json")
        self.assertEqual((told["private"], told["promise"]), (False, "weak"))
        self.assertIn(f"**WEAK PROMISE: {why}.**", self.bytes("g/README.md").decode())
        alone = self.fedkt(f"{line} --epsilon 20 --json")  # on the floor, not above it
        self.assertTrue(alone["arms"][0]["private"])

    def test_releases_add_up(self):
        """A total budget or a composed epsilon above the floor stops a release before the ledger pays."""
        self.fedkt(f"task new --codec dct --data demo:train --epsilon 15 --delta 1e-5 {SMALL} --out t.json")
        self.fedkt("moments --task t.json --data demo:train --limit 100 --out m.safetensors")
        line = "release --task t.json --moments m.safetensors --ledger l.db"
        self.fedkt(f"{line} --budget-epsilon 1000 --budget-delta 0.5 --out a", code=2)
        self.assertFalse((self.folder / "l.db").exists())
        wide = "--budget-epsilon 20 --budget-delta 1e-3"  # sound, and more than epsilon 20 at the task's delta
        first = self.fedkt(f"{line} {wide} --out a --json")
        self.assertEqual((first["private"], "promise" in first), (True, False))

        def entries():
            return len(self.fedkt("ledger --ledger l.db --json")["accounts"][0]["entries"])

        with self.start(f"{line} {wide} --out b") as refused:
            said = refused.communicate()[1]
        self.assertEqual(refused.returncode, 1)
        self.assertIn("the releases of dataset 'unnamed' would be too weak to be called private", said)
        self.assertIn("--accept-weak-promise", said)
        self.assertFalse((self.folder / "b").exists())
        self.assertEqual(entries(), 1)
        second = self.fedkt(f"{line} {wide} --accept-weak-promise --out b --json")
        self.assertEqual(entries(), 2)
        self.assertGreater(second["composed_epsilon"], 20)
        self.assertEqual((second["private"], second["promise"]), (False, "weak"))
        why = f"epsilon {second['composed_epsilon']:.6g} of all releases together is above 20"
        self.assertIn(f"WEAK PROMISE: {why}; this release is not called private", second["warnings"])
        told, words = self.both("generate --release b --per-class 2 --out g")
        self.assertEqual((told["private"], told["promise"]), (False, "weak"))
        self.assertIn(f"WEAK PROMISE: {why}", words)
        card = self.bytes("g/README.md").decode()
        self.assertIn(f"**WEAK PROMISE: {why}.**", card)
        self.assertNotIn("- differential-privacy", card)

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

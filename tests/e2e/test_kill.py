#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_kill.py - kill -9 at any moment leaves a whole output or none, and the next run is not troubled by it.

Usage: test_kill.py FEDKT [test...]

A full run is timed first; then the same command is killed at moments spread over that time, which come from a fixed
seed. Under the final name there must be nothing, or exactly what the undisturbed run wrote. Ctrl-C is gentler: one
sentence, exit code 130 (128 and the signal's number), and no temporary files either.
"""

import json
import pathlib
import random
import resource
import shutil
import signal
import time

import binary
from binary import tree

KILLS = 20
TIMED = ("results.json", "report.html")  # hold how long each stage took


def lasting(folder):
    return {name: digest for name, digest in tree(folder).items() if not name.endswith(TIMED)}


class Killed(binary.Case):
    def time(self, line):
        start = time.monotonic()
        self.fedkt(line)
        return time.monotonic() - start

    def moments_of(self, seconds, kills=KILLS):
        chance = random.Random(20)
        return [seconds * (i + chance.random()) / kills for i in range(kills)]

    def kill_after(self, line, seconds):
        """True when the process was still there to be killed."""
        process = self.start(line)
        time.sleep(seconds)
        process.kill()
        process.communicate()
        return process.returncode == -signal.SIGKILL

    def leftovers(self):
        return [path for path in self.folder.iterdir() if ".tmp-" in path.name]

    def release(self, records=200):
        self.fedkt(
            f"simulate --codec dct --data demo:train --limit {records} --epsilon 10 "
            "--delta 1e-5 --insecure-seed 1 --out run"
        )

    def whole_or_absent(self, line, out, kills=KILLS):
        seconds = self.time(f"{line} --out {out}")
        wanted, killed = lasting(self.folder / out), 0
        for moment in self.moments_of(seconds, kills):
            shutil.rmtree(self.folder / out, ignore_errors=True)
            killed += self.kill_after(f"{line} --out {out}", moment)
            if (self.folder / out).exists():
                self.assertEqual(lasting(self.folder / out), wanted)
                for name in set(TIMED) & set(tree(self.folder / out)):
                    self.assertGreater(len(self.bytes(f"{out}/{name}")), 500)
        self.assertGreater(killed, kills // 3, "hardly any run was caught alive")
        self.fedkt(f"{line} --out {out} --force")
        self.assertEqual(lasting(self.folder / out), wanted)
        self.no_unfinished(out)

    def no_unfinished(self, out):
        """What is left beside the output is complete: the process was killed just before or after the rename."""
        for path in self.leftovers():
            self.assertTrue(path.name.startswith(f"{out}.tmp-"), path.name)
            self.assertTrue((path / ".fedkt").exists(), path.name)

    def test_generate(self):
        self.release()
        self.whole_or_absent("generate --release run/release.safetensors --per-class 100", "made")

    def test_guided(self):
        """A run that is killed is continued: the images are the same, and the next run says how many it kept."""
        self.fedkt("simulate --data demo:train --limit 100 --epsilon 10 --delta 1e-5 --insecure-seed 1 --out run")
        line = "generate --release run/release.safetensors --per-class 4 --guided 3 --threads 1 --format npz --out"
        wanted = self.fedkt(f"{line} whole --json")
        self.assertEqual(wanted["kept"], 0)
        process = self.start(f"{line} made")
        kept = self.folder / "made.partial"
        while process.poll() is None and (not kept.exists() or kept.stat().st_size < 10000):
            time.sleep(0.02)
        process.kill()
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGKILL, "the run was over before it was killed")
        self.assertEqual(len(self.leftovers()), 1)
        done = self.fedkt(f"{line} made --json")
        self.assertEqual(self.leftovers(), [])
        self.assertTrue(0 < done["kept"] < done["images"], done)
        self.assertEqual(tree(self.folder / "made"), tree(self.folder / "whole"))
        self.assertFalse(kept.exists())

    def test_simulate(self):
        self.whole_or_absent(
            "simulate --codec dct --data demo:train --limit 500 --epsilon 10 --delta 1e-5 --insecure-seed 4 "
            "--per-class 10 --format npz",
            "made",
        )
        self.fits("results", json.loads(self.bytes("made/results.json")))

    def test_replacing_keeps_the_old_or_gives_the_new(self):
        self.release()
        line = "generate --release run/release.safetensors --per-class 30 --format npz --out made --force --seed"
        trees = []
        for seed in (1, 2):
            seconds = self.time(f"{line} {seed}")
            trees.append(tree(self.folder / "made"))
        for i, moment in enumerate(self.moments_of(seconds)):
            self.kill_after(f"{line} {i % 2 + 1}", moment)
            if (self.folder / "made").exists():
                self.assertIn(tree(self.folder / "made"), trees)
            else:  # between the two renames: the old one is still there, under a name that says so
                self.assertTrue(any(tree(path) in trees for path in self.leftovers()))
        self.fedkt(f"{line} 1")
        self.assertEqual(tree(self.folder / "made"), trees[0])

    def test_files(self):
        """Latents and moments: one file instead of a folder."""
        self.fedkt("task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 --out task.json")
        for verb in ("encode", "moments"):
            line = f"{verb} --task task.json --data demo:train --limit 300 --out x --force"
            seconds = self.time(line)
            wanted = self.bytes("x")
            for moment in self.moments_of(seconds, 8):
                (self.folder / "x").unlink(missing_ok=True)
                self.kill_after(line, moment)
                self.assertIn(self.bytes("x") if (self.folder / "x").exists() else wanted, [wanted])
            self.fedkt(line)
            self.assertEqual(self.bytes("x"), wanted)

    def test_release_and_its_ledger(self):
        self.fedkt("task new --codec dct --data demo:train --epsilon 1 --delta 1e-5 --dim 100 --out task.json")
        self.fedkt("moments --task task.json --data demo:train --limit 100 --out m.safetensors")
        line = (
            "release --task task.json --moments m.safetensors --ledger l.db --budget-epsilon 500 --budget-delta 1e-5 "
            "--accept-weak-promise"
        )
        seconds = self.time(f"{line} --out first")
        entries, killed = 1, 0
        for i, moment in enumerate(self.moments_of(seconds)):
            killed += self.kill_after(f"{line} --out r{i}", moment)
            accounts = self.fedkt("ledger --ledger l.db --json")["accounts"]
            self.assertEqual(len(accounts), 1)
            paid = len(accounts[0]["entries"]) - entries
            self.assertIn(paid, (0, 1))
            entries += paid
            if (self.folder / f"r{i}").exists():
                self.assertEqual(paid, 1, "a release that the ledger did not pay for")
                self.fedkt(f"heads --release r{i}")
        self.assertGreater(killed, KILLS // 3, "hardly any run was caught alive")
        self.fedkt(f"{line} --out last")
        self.assertEqual(len(self.fedkt("ledger --ledger l.db --json")["accounts"][0]["entries"]), entries + 1)


class Interrupted(binary.Case):
    def interrupt(self, line, wait, number=signal.SIGINT):
        before = {path.name for path in self.folder.iterdir()}
        process = self.start(line)
        wait(process)
        process.send_signal(number)
        said = process.communicate()
        self.assertEqual((process.returncode, said[0]), (128 + number, ""), said)
        self.assertRegex(said[1], r"\A(fedkt: [^\n]*\n)*fedkt: stopped [a-z ]+\n\Z")
        self.assertEqual({path.name for path in self.folder.iterdir()}, before)

    def until_temporary(self, process):
        """Waits for the first temporary name: from then on the run is under way."""
        until = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < until:
            if any(".tmp-" in path.name for path in self.folder.iterdir()):
                return time.sleep(0.05)
        self.fail("the run ended before it began")

    def until_busy(self, process):
        """Waits for a quarter of a second of processor time, however slow the machine is."""
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        while process.poll() is None and sum(map(int, stat.read_text().split()[13:15])) < 25:
            time.sleep(0.01)

    def test_ctrl_c(self):
        self.fedkt("simulate --codec dct --data demo:train --limit 200 --epsilon 10 --delta 1e-5 --out run")
        self.fedkt("task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 --out task.json")
        many = "generate --release run/release.safetensors --per-class 100000 --out made"
        for line in (
            many,
            f"{many} --format npz",
            f"{many} --format webdataset",
            "simulate --codec dct --data demo:train --epsilon 10 --delta 1e-5 --out two --threads 1",
            "simulate --codec dct --data demo:train --epsilon 10 --delta 1e-5 --out two --sites 1",
            "encode --task task.json --data demo:train --out z",
        ):
            with self.subTest(line):
                self.interrupt(line, self.until_temporary)
        self.interrupt("moments --task task.json --data demo:train --threads 1 --out m", self.until_busy)
        self.interrupt(many, self.until_temporary, signal.SIGTERM)

    def slow(self, words):
        """A run of some minutes, stopped when it has told how far it is; gives the lines of its stderr."""
        line = "train --data demo:train --limit 2000 --network resnet18 --epochs 9 --threads 1 --out m"
        process = self.start(f"{line} {words}")
        said = []
        while not said or "left" not in said[-1]:
            said.append(process.stderr.readline())
            self.assertTrue(said[-1], f"it ended before it told anything: {said}")
        process.send_signal(signal.SIGINT)
        said += process.communicate()[1].splitlines(keepends=True)
        self.assertEqual(process.returncode, 130, said)
        self.assertFalse((self.folder / "m").exists())
        return said

    def test_stderr_has_one_kind_of_line(self):
        """Notes, progress and the error: all of them text, or with --log jsonl all of them JSON."""
        for line in self.slow(""):
            self.assertNotIn("{", line)
            self.assertRegex(line, r"\A(fedkt|hint): .*\n\Z")
        said = [json.loads(line) for line in self.slow("--log jsonl")]
        self.assertEqual({line["event"] for line in said}, {"note", "progress", "error"})
        self.assertEqual(said[-1]["event"], "error")
        self.assertTrue(all(abs(line["at"] / 1000 - time.time()) < 600 for line in said))
        far = next(line for line in said if line["event"] == "progress")
        self.assertEqual((far["what"], far["unit"]), ("training", "images"))
        process = self.start("privacy --epsilon 1 --delta none --log=jsonl")
        self.assertEqual(json.loads(process.communicate()[1])["text"], "--delta: 'none' is not a number")

    def test_no_core_dump(self):
        """Records are in the memory of these verbs: a crash leaves no copy of it. (Nor may others of the same user look
        in, which unit_cli_startup checks of the same call.)"""
        if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            self.skipTest("no process here may leave a core dump")
        self.fedkt("task new --data demo:train --epsilon 1 --delta 1e-5 --out task.json")
        for verb in ("encode --task task.json", "moments --task task.json", "simulate --epsilon 1 --delta 1e-5"):
            process = self.start(f"{verb} --data demo:train --out out")
            core = None
            while core != ["0", "0"] and process.poll() is None:
                with open(f"/proc/{process.pid}/limits") as limits:
                    core = [line.split()[4:6] for line in limits if line.startswith("Max core file size")][0]
            process.kill()
            process.communicate()
            self.assertEqual(core, ["0", "0"], verb)

    def test_a_leftover_does_not_trouble_the_next(self):
        self.fedkt("simulate --codec dct --data demo:train --limit 200 --epsilon 10 --delta 1e-5 --out run")
        for number in range(3):
            (self.folder / f"made.tmp-1-{number}").mkdir()
            pathlib.Path(self.folder / f"made.tmp-1-{number}" / "half").write_text("x")
        (self.folder / "made.tmp-1-1" / ".fedkt").write_text("")  # complete: only its new name was missing
        self.fedkt("generate --release run/release.safetensors --per-class 1 --out made")
        self.assertEqual([path.name for path in self.folder.glob("made.tmp-*")], ["made.tmp-1-1"])


if __name__ == "__main__":
    binary.main()

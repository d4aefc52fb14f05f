#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_library.py - one site of a real federation is examples/join.c, which includes fedkt/ alone.

Usage: FEDKT_EXAMPLE_JOIN=PROGRAM test_library.py FEDKT PLAN [test...]
"""

import hashlib
import json
import os
import pathlib
import signal

import fed

JOIN = pathlib.Path(os.environ.get("FEDKT_EXAMPLE_JOIN", "")).resolve()


class Library(fed.Case):
    SITES, OURS = 4, 3

    def words(self, *more):
        i = self.OURS
        return ["task.json", f"site{i}.key", f"data{i}", f"site{i}.state", f"site{i}.ledger", f"out{i}", *more]

    def join(self, f, *more):
        process = f.start(self.words(*more), "examples/join.c", binary=JOIN)
        process.out = f.folder / f"out{self.OURS}"
        return process

    def events(self, process):
        return [json.loads(line) for line in process.talk if line.startswith("{")]

    def preview(self, f):
        """Its figures are those of the command line, and it leaves nothing behind."""
        before = sorted(path.name for path in f.folder.iterdir())
        process = self.join(f, "preview")
        self.assertEqual(process.wait(), 0, process.words())
        self.assertEqual(sorted(path.name for path in f.folder.iterdir()), before)
        i = self.OURS
        said = f.run("join", "--task", "task.json", "--key", f"site{i}.key", "--data", f"data{i}", "--ledger",
                     f"site{i}.ledger", "--dry-run", "--json")  # fmt: skip
        told = json.loads(said.stdout)
        self.assertEqual(
            process.lines[0],
            f"site {i}, {told['records']} records, at most {told['bytes']} bytes in {len(told['messages'])} messages",
        )
        before, after = process.lines[1].replace(",", "").split()[1::2]
        self.assertEqual((float(before), float(after)), (told["epsilon_before"], told["epsilon_after"]))

    def stopped(self, f):
        """A signal while it waits; the next call goes on."""
        process = self.join(f)
        f.seen("it waits", lambda s: s["ready"] == 1)
        process.signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 4, process.words())
        self.assertIn("stopped while taking part", "\n".join(process.talk))
        self.assertTrue((f.folder / f"site{self.OURS}.state").exists())
        self.assertFalse(process.out.exists())

    def test_one_of_four(self):
        f = self.federation(sites=self.SITES, dropped=0, seed=None, phase=60)
        self.preview(f)
        f.serve()
        self.stopped(f)
        ours = self.join(f)
        f.join_all(range(self.OURS))
        self.assertEqual(self.released(f), list(range(self.SITES)))
        self.assertEqual(ours.wait(), 0, ours.words())
        self.sites_end(f, range(self.OURS))
        release = hashlib.sha256(f.release_bytes()).hexdigest()
        self.assertEqual(ours.lines, [release, f"of 4 of 4 sites, this one among them; verified in out{self.OURS}"])
        self.assertEqual((ours.out / "release.safetensors").read_bytes(), f.release_bytes())
        f.verify("--receipt", ours.out / "receipt.json", folder=ours.out)
        kinds = [event["event"] for event in self.events(ours)]
        self.assertEqual(kinds[:2], ["signed", "prepared"])
        self.assertEqual({event["phase"] for event in self.events(ours) if event["event"] == "stage"} - {""},
                         {"advertise", "share", "mask", "confirm", "reveal"})  # fmt: skip
        again = self.join(f)  # the same call again: the same result, and the ledger pays once
        self.assertEqual(again.wait(), 0, again.words())
        self.assertEqual(again.lines, ours.lines)

    def test_refused(self):
        f = self.federation(sites=self.SITES, dropped=0)
        process = self.join(f)  # the task has a seed, and the program does not accept one
        self.assertEqual(process.wait(), 1, process.words())
        self.assertIn("nothing is private", process.words())
        self.assertFalse((f.folder / f"site{self.OURS}.state").exists())


if __name__ == "__main__":
    fed.main()

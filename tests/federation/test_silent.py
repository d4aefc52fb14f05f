#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_silent.py - sites that fall silent when it is dearest: after their masked vectors, under the program's own
choice of how many lost sites a task bears and how many rounds it has.

Usage: test_silent.py FEDKT PLAN [test...]

Two of seven may be gone for good: the round ends without them. Two of five are more than any round bears (a round needs
N >= C + 2D + 2 sites), so it waits for them: nobody's budget is lost while they can come back.
"""

import json
import subprocess

import fed
from pace import PHASES, Pace


class Silent(fed.Case):
    def walk(self, sites, phase, bears):
        """A federation that has come to a phase, in which all but the holder have spoken; all choices are the program's
        but how long a phase waits."""
        f = self.federation(sites=sites, dropped=None, rounds=None, phase=3)
        task = json.loads((f.folder / "task.json").read_text())
        self.assertEqual((task["federation"]["dropped"], task["federation"]["corrupt"]), (bears, 1))
        self.assertEqual(task["service"]["rounds"], 8)
        f.serve()
        f.join_all(range(1, sites))
        f.seen("all but one wait", lambda s: s["ready"] == sites - 1)
        pace = Pace(f, 1, 2)
        f.join(0)
        pace.arrive(PHASES[0])
        while pace.phase != phase:
            pace.go_on()
        return f, pace

    def ledger(self, f, i):
        said = subprocess.run(
            [fed.FEDKT, "ledger", "--ledger", f"site{i}.ledger", "--json"], cwd=f.folder, capture_output=True, text=True
        )
        return said.stdout

    def test_two_of_seven_for_good(self):
        f, pace = self.walk(7, "mask", bears=2)
        pace.kill(5, 6)
        pace.let_go()
        self.assertEqual(self.released(f), list(range(7)))  # their vectors had come
        self.assertEqual(f.status()["round"], 1)
        self.sites_end(f, range(5))

    def come_back(self, phase, later, state):
        """Two of five fall silent after they have spoken in `phase`, for much longer than a phase waits."""
        f, pace = self.walk(5, phase, bears=1)
        pace.kill(3, 4)
        pace.let_go()
        f.seen("it waits for them", lambda s: s["overdue"] and (s["phase"], s["heard"]) == (later, 3))
        self.assertIn(f'"state": "{state}"', self.ledger(f, 0))
        f.server.kill()
        f.serve()
        status = f.seen("it still does", lambda s: s["overdue"] and s["phase"] == later)
        self.assertEqual((status["round"], status["lost"]), (1, 0))
        for i in (3, 4):
            f.join(i)
        self.assertEqual(self.released(f), list(range(5)))
        self.assertEqual(f.status()["round"], 1)
        self.sites_end(f, range(5))

    def test_two_of_five_after_their_vectors(self):
        self.come_back("mask", "confirm", "reserved")

    def test_two_of_five_after_their_signatures(self):
        """The other three have spent by then: to give the round up would cost them all of it."""
        self.come_back("confirm", "reveal", "spent")


if __name__ == "__main__":
    fed.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_kills.py - kill -9 of the server, or of a site, at random points of a round.

Usage: test_kills.py FEDKT PLAN [test...]

The same task, with the same seed, is run again and again; one process is killed and started anew, in half of the runs
twice. A round on loopback is over in a blink, so a death at a random time would mostly fall before or after it: in two
runs of three the round is walked (pace.py) to one of its phases, and death comes while that phase is held open, or some
milliseconds after it was let go; in the third it comes at a random time between start and end. With the same survivors
the release must be the same to the last byte; with fewer it must be the exact sum over those; and a round that fails
must say so and release nothing. Whoever died is back long before a deadline here, so that nobody may be lost at all.
How often: FEDKT_KILLS (default 4 of each).
"""

import os
import random
import time

import fed
from pace import PHASES, Pace

KILLS = int(os.environ.get("FEDKT_KILLS", "4"))


class Killed(fed.Case):
    SITES = 5

    def undisturbed(self, f):
        start = time.monotonic()
        f.serve()
        f.join_all()
        self.assertEqual(f.ended(), "released", f.talk())
        seconds = time.monotonic() - start
        self.assertEqual(self.released(f), list(range(self.SITES)))
        self.sites_end(f, range(self.SITES))
        return seconds, f.release_bytes()

    def strike(self, f, victim):
        if victim is None:
            f.server.kill()
            f.serve()
        else:
            f.site[victim].kill()
            f.join(victim)

    def any_time(self, f, chance, seconds):
        start = time.monotonic()
        f.serve()
        f.join_all()
        time.sleep(max(0, start + seconds * chance.random() - time.monotonic()))
        return lambda: None

    def in_a_phase(self, f, chance, victim, steps, held):
        """Walks to a phase; gives what lets it go."""
        first, second, last = chance.sample([i for i in range(self.SITES) if i != victim], 3)
        f.serve()
        f.join_all([i for i in range(self.SITES) if i != last])
        f.seen("all but one wait", lambda s: s["ready"] == self.SITES - 1)
        pace = Pace(f, first, second)
        f.join(last)
        pace.arrive(PHASES[0])
        for _ in range(steps):
            pace.go_on()
        if held:
            return pace.let_go
        pace.let_go()
        time.sleep(chance.random() * 0.06)
        return lambda: None

    def run_with_kill(self, f, i, chance, seconds, victim):
        """Once more with a death. Gives the survivors, or None where there was no release."""
        if i % 3 == 2:
            let_go = self.any_time(f, chance, seconds)
        else:
            let_go = self.in_a_phase(f, chance, victim, (2, 1, 3, 0, 4)[i % len(PHASES)], held=i % 3 == 0)
        self.strike(f, victim)
        if chance.random() < 0.5:
            time.sleep(chance.random() * seconds / 2)
            self.strike(f, victim)
        let_go()
        if f.ended() != "released":
            self.assertFalse((f.public / "release.safetensors").exists(), "a task that was given up has a release")
            f.verify()
            return None
        survivors = self.released(f)
        self.one_release(f)
        self.sites_end(f, survivors)
        return survivors

    def one_release(self, f):
        lines = f.log()
        trouble = [line for line in lines if line["event"] in ("lost", "failed") or line.get("kind") == "leave"]
        self.assertEqual(trouble, [], f.talk())
        self.assertEqual(sum(line["event"] == "release" for line in lines), 1)
        self.assertEqual([line["entry"] for line in lines], list(range(1, len(lines) + 1)))

    def many(self, seed, kills, choose):
        chance, same = random.Random(5), 0
        f = self.federation(sites=self.SITES, seed=seed, phase=60, gather=120)
        seconds, wanted = self.undisturbed(f)
        for i in range(kills):
            f.forget()
            with self.subTest(run=i):
                survivors = self.run_with_kill(f, i, chance, seconds, choose(chance))
                if survivors == list(range(self.SITES)):
                    same += 1
                    if seed is not None:
                        self.assertEqual(f.release_bytes(), wanted)
        self.assertGreater(same, kills // 2, "hardly any run ended like the undisturbed one")

    def test_server(self):
        self.many(77, KILLS, lambda chance: None)

    def test_site(self):
        self.many(77, KILLS, lambda chance: chance.randrange(self.SITES))

    def test_secrets_come_back(self):
        """Without a seed: masks and noise are drawn from what a site keeps in its state file, and must still cancel."""
        self.many(None, (KILLS + 1) // 2, lambda chance: chance.randrange(self.SITES))


if __name__ == "__main__":
    fed.main()

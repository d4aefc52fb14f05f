# SPDX-License-Identifier: Apache-2.0
"""pace.py - walks a federation through the phases of a round one at a time, by stopping a site.

A phase ends when all have spoken. While one site that is in it stands still (SIGSTOP) the phase stays open, everybody
else has time to answer, and a test can do in it what it likes. To go on, another site that has already answered is
stopped first, and the one that held the phase is let go: the next phase begins and is held by the other.
"""

PHASES = ["advertise", "share", "mask", "confirm", "reveal"]


class Pace:
    def __init__(self, fed, first, second):
        """Two sites that live to the end; nobody may be missing. `first` waits in the hall already and is stopped."""
        self.fed, self.holder, self.other = fed, fed.site[first], fed.site[second]
        self.gone, self.phase = 0, None
        self.holder.stop()

    def arrive(self, phase):
        """Until the phase has begun and all have spoken but its holder and those that are gone."""
        self.phase = phase
        return self.fed.seen(
            f"everybody has spoken in phase {phase}",
            lambda s: s["phase"] == phase and s["heard"] == s["expected"] - 1 - self.gone,
        )

    def go_on(self):
        """To the next phase; those that were killed since are not waited for, so this takes until the deadline of
        the phase when there are any."""
        self.other.stop()
        self.holder.go()
        self.holder, self.other = self.other, self.holder
        self.arrive(PHASES[PHASES.index(self.phase) + 1])

    def kill(self, *sites):
        """They have spoken in this phase, and will not in the next."""
        for i in sites:
            self.fed.site[i].kill()

    def let_go(self):
        self.holder.go()

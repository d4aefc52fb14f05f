#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_shipped.py - the networks that come with the program, by name and as the default.

Usage: test_shipped.py FEDKT [test...]

The sums of codec and guide must not depend on sites or threads, though both networks run in floating point; with
noise shares and secure aggregation the release must not depend on threads. The default must be this pair, and a
command that names another codec must give one part.
"""

import json

import binary

BUDGET = "--epsilon 10 --delta 1e-5"
PAIR = "--codec fedkt-ae --guide fedkt-guide"


class Shipped(binary.Case):
    def simulate(self, words, networks=PAIR):
        line = f"simulate --data demo:train --limit 120 {BUDGET} {networks} --insecure-seed 7 --json"
        return self.fedkt(f"{line} --noise distributed {words}")

    def kept(self):
        """Numbers of an image that the shipped calibrations keep: of the codec, and of the guide."""
        for name in ("fedkt-ae", "fedkt-guide"):
            told = self.fedkt(f"codec info {name} --size 32 --json")
            yield told["calibration"]["dim"]

    def test_neither_sites_nor_threads_change_a_bit(self):
        moments, releases = set(), {}
        for sites, rule, threads in ((5, "iid", 1), (5, "iid", 2), (12, "dirichlet:0.1", 1), (12, "dirichlet:0.1", 3)):
            told = self.simulate(f"--sites {sites} --partition {rule} --threads {threads}")
            self.fits("results", told)
            self.assertEqual((told["survivors"], told["records"]), (sites, 120))
            self.assertEqual([part["length"] for part in told["parts"]], [1 + numbers for numbers in self.kept()])
            self.assertLessEqual(told["bytes_per_site"], 335360)  # the paper's 327.5 KiB
            self.assertEqual(told["aggregation"]["noise"], "distributed")
            moments.add(told["moments_sha256"])
            releases.setdefault(sites, set()).add(told["release_sha256"])
        self.assertEqual(len(moments), 1, "exact moments depend on sites or threads")
        self.assertEqual({sites: len(found) for sites, found in releases.items()}, {5: 1, 12: 1})
        self.assertFalse(releases[5] & releases[12], "each site draws its own noise")
        told = self.simulate("--sites 5 --partition iid", networks="")
        self.assertEqual({told["moments_sha256"]}, moments, "the pair is not the default")
        self.assertEqual({told["release_sha256"]}, releases[5])

    def parts(self, words):
        self.fedkt(f"task new --classes a,b {BUDGET} {words} --out t.json --force")
        task = json.loads(self.bytes("t.json"))
        return tuple(task[kind]["name"] if kind in task else None for kind in ("codec", "guide"))

    def test_what_a_task_has_by_default(self):
        for words, codec, guide in (
            ("", "fedkt-ae", "fedkt-guide"),
            ("--size 64", "fedkt-ae", "fedkt-guide"),
            ("--codec fedkt-ae", "fedkt-ae", "fedkt-guide"),
            ("--codec none", None, "fedkt-guide"),
            ("--codec dct", "dct", None),
            ("--codec dct --size 48", "dct", None),
            ("--codec dct --guide fedkt-guide", "dct", "fedkt-guide"),
            ("--guide none", "fedkt-ae", None),
        ):
            self.assertEqual(self.parts(words), (codec, guide), words)

    def test_weights_are_those_that_we_know(self):
        for name in ("fedkt-ae", "fedkt-guide"):
            self.assertEqual(self.fedkt(f"codec verify {name} --json")["verdict"], "verified")


if __name__ == "__main__":
    binary.main()

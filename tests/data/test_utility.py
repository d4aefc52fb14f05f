#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""EuroSAT through the whole pipeline: the better coordinates and mechanism win, nobody falls far below docs/results.md.

Needs FEDKT_DATA with eurosat.tar and tiny-imagenet-12k.tar (public calibration). The floors are about seven points
below the figures of docs/results.md; the spread between runs is about two, so a false alarm is one in ten thousand.
"""

import json
import os
import subprocess
import sys
import tempfile

FLOORS = {
    ("gain-shape", "joint"): (52, 49, 41),
    ("gain-shape", "paper"): (52, 46, 34),
    ("clip", "joint"): (46, 42, 30),
    ("clip", "paper"): (46, 35, 25),
}


def run(*words):
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


def best(accuracy):
    return 100 * max(accuracy.values())


def main():
    fedkt, data = sys.argv[1], os.environ.get("FEDKT_DATA")
    if not data:
        print("skipped: FEDKT_DATA is not set")
        return 77
    private, public = os.path.join(data, "eurosat.tar"), os.path.join(data, "tiny-imagenet-12k.tar")
    got = {}
    with tempfile.TemporaryDirectory() as folder:
        calibration = os.path.join(folder, "c.safetensors")
        run(fedkt, "codec", "calibrate", "--public", public, "--out", calibration, "--json", "--quiet")
        for key in FLOORS:
            r = run(
                fedkt,
                "simulate",
                "--codec",
                "dct",
                "--data",
                private,
                "--holdout",
                "0.2",
                "--partition",
                "dirichlet:0.1",
                "--epsilon",
                "10,1",
                "--delta",
                "1e-5",
                "--calibration",
                calibration,
                "--coordinates",
                key[0],
                "--mechanism",
                key[1],
                "--adjacency",
                "replace" if key[1] == "paper" else "add-remove",
                "--noise",
                "central",
                "--json",
                "--quiet",
            )
            got[key] = (
                best(r["accuracy_without_privacy"]),
                best(r["arms"][0]["accuracy"]),
                best(r["arms"][1]["accuracy"]),
            )
            print(key, "%.1f %.1f %.1f" % got[key])
    bad = [k for k in FLOORS if not all(g >= f for g, f in zip(got[k], FLOORS[k]))]
    for i, name in ((1, "epsilon 10"), (2, "epsilon 1")):
        for mechanism in ("joint", "paper"):
            if not got["gain-shape", mechanism][i] > got["clip", mechanism][i]:
                bad.append(f"gain-shape does not beat clip at {name} ({mechanism})")
    for coordinates in ("gain-shape", "clip"):
        if not got[coordinates, "joint"][2] > got[coordinates, "paper"][2]:
            bad.append(f"joint does not beat paper at epsilon 1 ({coordinates})")
    for b in bad:
        print("FAILED:", b)
    return 1 if bad else 0


sys.exit(main())

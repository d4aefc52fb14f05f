#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of the closed-form heads on a real image set: {clip, gain-shape} x {paper, joint}, several runs.

usage: bench/utility.py FEDKT PUBLIC PRIVATE [--runs 5] [--size 32] [--dim 64]

PUBLIC calibrates the codec (a public image set), PRIVATE is the one to be protected; 20 % of it, always the same
records, are held out for judging. Run r uses --seed r for the partition (20 sites, Dirichlet 0.1) and fresh noise from
the operating system. Prints a Markdown table of mean and standard deviation in percent.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

HEADS = ("nearest_mean", "lda", "qda")


def run(*words):
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


def simulate(a, calibration, coordinates, mechanism, seed):
    adjacency = "replace" if mechanism == "paper" else "add-remove"
    return run(
        a.fedkt,
        "simulate",
        "--data",
        a.private,
        "--holdout",
        "0.2",
        "--clients",
        "20",
        "--partition",
        "dirichlet:0.1",
        "--seed",
        str(seed),
        "--epsilon",
        "10,1",
        "--delta",
        "1e-5",
        "--size",
        str(a.size),
        "--dim",
        str(a.dim),
        "--calibration",
        calibration,
        "--coordinates",
        coordinates,
        "--mechanism",
        mechanism,
        "--adjacency",
        adjacency,
        "--json",
        "--quiet",
    )


def cell(values):
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):.1f} ± {100 * spread:.1f}"


def rows(results, coordinates, mechanism):
    for head in HEADS:
        bound = 100 * results[0]["accuracy_without_privacy"][head]
        arms = [cell([r["arms"][i]["accuracy"][head] for r in results]) for i in range(2)]
        print(f"| {coordinates} | {mechanism} | {head.replace('_', ' ')} | {bound:.1f} | {arms[0]} | {arms[1]} |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("fedkt")
    p.add_argument("public")
    p.add_argument("private")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--size", type=int, default=32)
    p.add_argument("--dim", type=int, default=64)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calibration = os.path.join(folder, "calibration.safetensors")
        run(
            a.fedkt,
            "codec",
            "calibrate",
            "--public",
            a.public,
            "--size",
            str(a.size),
            "--dim",
            str(a.dim),
            "--out",
            calibration,
            "--json",
            "--quiet",
        )
        print("| coordinates | mechanism | head | no privacy | epsilon 10 | epsilon 1 |\n|---|---|---|---|---|---|")
        for coordinates in ("gain-shape", "clip"):
            for mechanism in ("joint", "paper"):
                results = [simulate(a, calibration, coordinates, mechanism, seed) for seed in range(1, a.runs + 1)]
                rows(results, coordinates, mechanism)


if __name__ == "__main__":
    main()

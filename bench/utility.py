#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of the closed-form heads on a real image set: {clip, gain-shape} x {paper, joint}, several draws of noise.

usage: bench/utility.py FEDKT PUBLIC PRIVATE [--runs 5] [--size 32] [--dim 64] [--codec dct] [--weights PATH]
                        [--test-split NAME] [--top K] [--noise central]

PUBLIC calibrates the codec (a public image set), PRIVATE is the one to be protected; 20 % of it, always the same
records, are held out for judging, unless it has a split of its own for that (--test-split). 20 sites, Dirichlet 0.1;
noise from the operating system. Prints a Markdown table of mean and standard deviation in percent.
"""

import argparse
import json
import os
import subprocess
import tempfile

HEADS = ("nearest_mean", "lda", "qda")


def run(*words):
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


def codec_words(a):
    words = ["--codec", a.codec, "--size", str(a.size)]
    words += ["--dim", str(a.dim)] if a.codec == "dct" else []
    return words + (["--weights", a.weights] if a.weights else [])


def simulate(a, calibration, coordinates, mechanism):
    adjacency = "replace" if mechanism == "paper" else "add-remove"
    words = ["--sites", "20", "--partition", "dirichlet:0.1", "--seed", "1", "--runs", str(a.runs)]
    words += ["--epsilon", "10,1", "--delta", "1e-5", "--mechanism", mechanism, "--adjacency", adjacency]
    words += ["--coordinates", coordinates, "--calibration", calibration, "--noise", a.noise, "--json", "--quiet"]
    words += ["--test-split", a.test_split] if a.test_split else ["--holdout", "0.2"]
    return run(a.fedkt, "simulate", "--data", a.private, *codec_words(a), *words)


def cell(values):
    mean = sum(values) / len(values)
    spread = (sum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)) ** 0.5
    return f"{100 * mean:.1f} ± {100 * spread:.1f}"


def rows(result, coordinates, mechanism):
    for head in HEADS:
        bound = 100 * result["accuracy_without_privacy"][head]
        arms = [cell(arm["accuracy_runs"][head]) for arm in result["arms"]]
        name = head.replace("_", " ") if head == "nearest_mean" else head.upper()
        print(f"| {coordinates} | {mechanism} | {name} | {bound:.1f} | {arms[0]} | {arms[1]} |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("fedkt")
    p.add_argument("public")
    p.add_argument("private")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--size", type=int, default=32)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--codec", default="dct")
    p.add_argument("--weights")
    p.add_argument("--test-split")
    p.add_argument(
        "--noise", default="central", help="central, or distributed: shares of noise, the joint mechanism alone"
    )
    p.add_argument("--top", type=int, help="keep the strongest directions of the calibration")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        calibration = os.path.join(folder, "calibration.safetensors")
        top = ["--top", str(a.top)] if a.top else []
        words = ["--public", a.public, "--out", calibration, "--json", "--quiet"]
        run(a.fedkt, "codec", "calibrate", *codec_words(a), *top, *words)
        print("| coordinates | mechanism | head | no privacy | epsilon 10 | epsilon 1 |\n|---|---|---|---|---|---|")
        for coordinates in ("gain-shape", "clip"):
            for mechanism in ("joint", "paper") if a.noise == "central" else ("joint",):
                rows(simulate(a, calibration, coordinates, mechanism), coordinates, mechanism)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guide on real sets: heads on a processor, students on a card, one table. docs/results.md, "The guide".

usage: bench/guide.py heads  --fedkt BINARY --data DIR --out OUT [--codecs DIR --public PATH] [--lite0 FILE]
       bench/guide.py take   --out OUT FILE ...
       bench/guide.py pack   --data DIR --out OUT --to FOLDER [--codecs DIR] [--public PATH] [--real N] [--piece MB]
       bench/guide.py unpack --out FOLDER PIECE ...
       bench/guide.py card   --fedkt BINARY --out FOLDER [--seconds 1200] [--workers 1] [--device cuda]
       bench/guide.py report OUT [OUT ...] [--fill docs/results.md]

heads   DIR holds eurosat/CLASS/*, cifar10/{train,test}/CLASS/*, imagenette64/{train,val}/CLASS/* and cifar10-jpeg
        (CIFAR-10 once more, in a copy with losses), or some of them. For every set,
        kind of noise and seed `fedkt simulate` (20 sites, Dirichlet 0.1, epsilon 10, 1 and 0.3, delta 1e-5) leaves
        releases in OUT/runs, and `fedkt heads` scores all heads, on the guide alone and on all parts. --codecs, a
        folder with TAESD's weights, adds the paper's mechanism, calibrated on --public; --lite0, weights of
        EfficientNet-Lite0, adds that network at 128 px as guide, heads alone. "Without noise" is the release at
        epsilon 1000, the largest that `fedkt` takes: a little noise is left.
take    reads SET-NOISE.json, written by `fedkt simulate --runs R --json`, as R seeds of our pair.
pack    what a card needs: releases, test images, public images (--public, --public-limit of them), TAESD's weights, and
        training images for the bound on real data (--real N of a class; default: all; 0: none). --piece MB: the
        same once more as FOLDER/pieces/guide-NN.tar, compressed, each at most MB, what is needed first in the first.
unpack  pieces, in any number and order, as FOLDER; it may be called again when more have arrived.
card    trains ResNet-18 on what `pack` left, the most important cells first, --workers at once, until --seconds are
        over. The recipe is RECIPE in guide_card.py: 1,000 images of a class, drawn afresh in each epoch, about 2,000
        steps of 256.
report  prints the tables, or puts them between <!-- guide:NAME --> and <!-- /guide:NAME -->.

A cell is one file in OUT/cells; finished ones are not repeated, so every step goes on where it was stopped, and cells
of several machines are read together. EuroSAT has no split: `heads` makes one by the rule of `simulate --holdout 0.2`
(by each record's bytes), so that all mechanisms have the same test images. --quick: few images, one seed, a small
network. Needs nothing beside the standard library.
"""

import argparse
import itertools
import json
import os

import guide_card
import guide_pack
import guide_report
import guide_sets
from guide_cells import EPSILONS, NOISES, NONE, PAIRS, SEEDS, SETS, call, cell_path, write


# ---- heads: releases and accuracies on a processor ----


def pair_options(a, pair):
    words = PAIRS[pair].split()
    if pair == "own":
        return words
    network = "taesd" if pair == "paper" else "efficientnet-lite0@128"
    weights = a.codecs if pair == "paper" else a.lite0
    calibration = os.path.join(a.out, f"calibration-{pair}.safetensors")
    if not os.path.exists(calibration):
        more = ["--top", "128"] if pair == "lite0" else []
        more += ["--limit", "400"] if a.quick else []
        call([a.fedkt, "codec", "calibrate", network, "--size", "32", "--weights", weights, "--public", a.public]
             + [*more, "--out", calibration, "--json", "--quiet"])  # fmt: skip
    guide = "guide-" if pair == "lite0" else ""
    return [*words, f"--{guide}weights", weights, f"--{guide}calibration", calibration]


def release_run(a, pair, name, noise, seed):
    run = os.path.join(a.out, "runs", f"{name}-{pair}-{noise}-{seed}")
    kept = run + ".json"
    if os.path.exists(kept):
        return run, json.load(open(kept))
    data, split = guide_sets.set_folder(a, name)
    epsilons = ",".join([*EPSILONS, NONE])
    words = [a.fedkt, "simulate", "--data", data, "--split", "train", "--test-split", split, *pair_options(a, pair)]
    words += f"--size 32 --sites 20 --partition dirichlet:0.1 --delta 1e-5 --epsilon {epsilons}".split()
    words += ["--noise", noise, "--seed", str(seed), "--accept-weak-promise", "--device", a.device or "cpu"]
    words += ["--out", run]
    words += ["--encodings", os.path.join(a.out, "encodings"), "--force", "--json", "--quiet"]
    words += ["--limit", "400", "--test-limit", "200"] if a.quick else []
    result = call(words)
    write(kept, result)
    return run, result


def score(a, pair, name, release, parts):
    """Accuracy of every head of this release on those parts."""
    data, split = guide_sets.set_folder(a, name)
    words = [a.fedkt, "heads", "--release", release, "--parts", parts, "--test", data, "--test-split", split]
    words += ["--encodings", os.path.join(a.out, "encodings"), "--device", a.device or "cpu", "--json", "--quiet"]
    words += ["--weights", a.codecs] if pair == "paper" else []
    words += ["--guide-weights", a.lite0] if pair == "lite0" else []
    words += ["--test-limit", "200"] if a.quick else []
    return call(words)["accuracy"]


def heads(a):
    os.makedirs(os.path.join(a.out, "encodings"), mode=0o700, exist_ok=True)
    pairs = ["own"] + (["paper"] if a.codecs and a.public else []) + (["lite0"] if a.lite0 and a.public else [])
    pairs = [p for p in pairs if not a.pairs or p in a.pairs]
    seeds = SEEDS[:1] if a.quick else SEEDS
    for pair, name, noise, seed in itertools.product(pairs, a.sets, NOISES, seeds):
        if noise == "distributed" and pair == "paper" and not a.all:
            continue  # the paper's noise is central
        run, result = release_run(a, pair, name, noise, seed)
        for arm in result["arms"]:
            epsilon = f"{arm['epsilon']:g}"
            facts = {"set": name, "pair": pair, "noise": noise, "epsilon": epsilon, "seed": seed}
            facts |= {"test_images": result["test_images"], "records": result["records"]}
            for parts in ("default", "all") if pair == "own" else ("default",):
                path = cell_path(a.out, "head", name, pair, parts, noise, epsilon, seed)
                if not os.path.exists(path):
                    accuracy = score(a, pair, name, os.path.join(run, f"eps-{epsilon}", "release.safetensors"), parts)
                    write(path, {**facts, "parts": parts, "accuracy": accuracy})


def take(a):
    for path in a.folders:
        with open(path) as f:
            result = json.load(f)
        name, noise = os.path.basename(path)[: -len(".json")].split("-")
        facts = {"set": name, "pair": "own", "parts": "default", "noise": noise, "records": result["records"]}
        arms = [(f"{arm['epsilon']:g}", arm["accuracy_runs"]) for arm in result["arms"]]
        arms.append((NONE, {head: [x] for head, x in result["accuracy_without_privacy"].items()}))
        for epsilon, runs in arms:
            for seed in range(len(runs["lda"])):
                accuracy = {head: x[seed] for head, x in runs.items()}
                cell = {**facts, "epsilon": epsilon, "seed": seed, "accuracy": accuracy}
                write(cell_path(a.out, "head", name, "own", "default", noise, epsilon, seed), cell)


STEPS = {"heads": heads, "take": take, "pack": guide_pack.pack, "unpack": guide_pack.unpack, "card": guide_card.card}
STEPS["report"] = guide_report.report


def main():
    p = argparse.ArgumentParser()
    p.add_argument("step", choices=list(STEPS))
    p.add_argument("folders", nargs="*", help="report: folders with cells; take, unpack: files")
    for name in ("fedkt", "data", "out", "to", "codecs", "lite0", "public", "fill"):
        p.add_argument(f"--{name}")
    p.add_argument("--sets", type=lambda s: s.split(","), help="default: those that --data holds")
    p.add_argument("--real", type=int, help="training images of a class for the bound (default: all; 0: none)")
    p.add_argument("--public-limit", type=int, default=10000, help="public images to pack; 0: all")
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("--cell", type=float, default=30, help="seconds that must be left for the first cell of an arm")
    p.add_argument("--workers", type=int, default=1, help="cells at once on the card")
    p.add_argument("--piece", type=float, help="MB, millions of bytes")
    p.add_argument("--device", help="default: cpu for heads, cuda for card")
    p.add_argument("--pairs", type=lambda s: s.split(","), help="heads: these alone, of own, paper, lite0")
    p.add_argument("--all", action="store_true", help="distributed noise for the paper's mechanism too")
    p.add_argument("--quick", action="store_true")
    a = p.parse_intermixed_args()
    if not a.sets:
        a.sets = [s for s, (folder, _) in SETS.items() if not a.data or os.path.isdir(os.path.join(a.data, folder))]
    if a.workers < 1:
        p.error("--workers must be at least 1")
    STEPS[a.step](a)


if __name__ == "__main__":
    main()

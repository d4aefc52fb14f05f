#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guide on real sets: heads on a processor, students on a card, one table. docs/results.md, "The guide".

usage: bench/guide.py heads  --fedkt BINARY --data DIR --out OUT [--codecs DIR --public PATH] [--lite0 FILE]
       bench/guide.py take   --out OUT FILE ...
       bench/guide.py pack   --data DIR --out OUT --to FOLDER [--codecs DIR] [--public PATH] [--real N]
       bench/guide.py card   --fedkt BINARY --out FOLDER [--seconds 1200] [--device cuda]
       bench/guide.py report OUT [OUT ...] [--fill docs/results.md]

heads   DIR holds eurosat/CLASS/*, cifar10/{train,test}/CLASS/* and imagenette64/{train,val}/CLASS/*. For every set,
        kind of noise and seed `fedkt simulate` (20 sites, Dirichlet 0.1, epsilon 10, 1 and 0.3, delta 1e-5) leaves
        releases in OUT/runs, and `fedkt heads` scores all heads, on the guide alone and on all parts. --codecs, a
        folder with TAESD's weights, adds the paper's mechanism, calibrated on --public; --lite0, weights of
        EfficientNet-Lite0, adds that network at 128 px as guide, heads alone. "Without noise" is the release at
        epsilon 1000, the largest that `fedkt` takes: a little noise is left.
take    reads SET-NOISE.json, written by `fedkt simulate --runs R --json`, as R seeds of our pair.
pack    what a card needs: releases, test images, public images (--public, at most 10,000), TAESD's decoder, and
        training images for the bound on real data (--real N of a class; default: all; 0: none).
card    trains ResNet-18 on what `pack` left, the most important cells first, until --seconds are over. The recipe is
        RECIPE below: 1,000 images of a class, drawn afresh in each epoch, about 2,000 steps of 256.
report  prints the tables, or puts them between <!-- guide:NAME --> and <!-- /guide:NAME -->.

A cell is one file in OUT/cells; finished ones are not repeated, so every step goes on where it was stopped, and cells
of several machines are read together. EuroSAT has no split: `heads` makes one by the rule of `simulate --holdout 0.2`
(by each record's bytes), so that all mechanisms have the same test images. --quick: few images, one seed, a small
network. Needs nothing beside the standard library.
"""

import argparse
import hashlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tarfile
import time

SETS = {"eurosat": ("eurosat", None), "cifar10": ("cifar10", "test"), "imagenette": ("imagenette64", "val")}
NAMES = {"eurosat": "EuroSAT", "cifar10": "CIFAR-10", "imagenette": "Imagenette"}
EPSILONS, NONE, NOISES, SEEDS = ("10", "1", "0.3"), "1000", ("central", "distributed"), (0, 1, 2)
PAIRS = {
    "own": "--codec fedkt-ae --guide fedkt-guide",
    "paper": "--codec taesd --guide none --mechanism paper --adjacency replace --coordinates clip",
    "lite0": "--codec none --guide efficientnet-lite0@128",
}
RECIPE = "--network resnet18 --per-class 1000 --fresh --epochs 50 --batch 256 --rate 0.1 --warmup 2 --dtype bf16"
QUICK = "--network resnet8 --per-class 4 --fresh --epochs 1 --batch 16"
ARMS = {  # name: pair, options, penalty in the order of cells
    "guided, teacher": ("own", "--guided --teacher head", 0),
    "guided, teacher, public images": ("own", "--guided --teacher head --public", 0.5),
    "paper": ("paper", "", 1),
    "guided": ("own", "--guided", 1.5),
    "plain": ("own", "--guided none", 2),
    "plain, teacher": ("own", "--guided none --teacher head", 4),
    "guided by gradient": ("own", "--guided 25", 3),
    "real": ("real", "", 1),
}
LATER = {"noise": {"central": 0, "distributed": 6}, "epsilon": {"1": 0, "10": 1, NONE: 3, "0.3": 4}}
LATER["set"] = {"cifar10": 0, "eurosat": 0.1, "imagenette": 2.5}


def call(words):
    print("+", " ".join(words), file=sys.stderr, flush=True)
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def write(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)


def cell_path(out, *parts):
    return os.path.join(out, "cells", "-".join(str(p).replace(", ", "+").replace(" ", "_") for p in parts) + ".json")


# ---- the hold-out of `simulate`, as in src/images/choice.c ----

M64, HOLDOUT = (1 << 64) - 1, 0x686F6C


def splitmix(x):
    x = (x + 0x9E3779B97F4A7C15) & M64
    z = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M64
    return x, z ^ z >> 31


def rotate(x, k):
    return (x << k | x >> (64 - k)) & M64


def first_number(seed, stream):
    x = splitmix(seed)[1] ^ rotate(splitmix(stream ^ 0x6A09E667F3BCC909)[1], 17)
    state = []
    for _ in range(4):
        x, z = splitmix(x)
        state.append(z)
    return (rotate((state[0] + state[3]) & M64, 23) + state[0]) & M64


def held_out(path, fraction=0.2):
    with open(path, "rb") as f:
        key = int.from_bytes(hashlib.blake2b(f.read(), digest_size=32).digest()[:8], "little")
    return (first_number(first_number(0, HOLDOUT), key) >> 11) * 2.0**-53 < fraction


def split_set(source, target):
    """Links in target/{train,test}/CLASS: an ImageFolder with splits."""
    if os.path.isdir(target):
        return target
    for name in sorted(os.listdir(source)):
        for split in ("train", "test"):
            os.makedirs(os.path.join(target + ".part", split, name))
        for file in sorted(os.listdir(os.path.join(source, name))):
            path = os.path.realpath(os.path.join(source, name, file))
            os.symlink(path, os.path.join(target + ".part", "test" if held_out(path) else "train", name, file))
    os.rename(target + ".part", target)
    return target


def set_folder(a, name):
    folder, split = SETS[name]
    source = os.path.join(a.data, folder)
    if split:
        return source, split
    return split_set(source, os.path.join(a.out, "sets", name)), "test"


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
    data, split = set_folder(a, name)
    epsilons = ",".join([*EPSILONS, NONE])
    words = [a.fedkt, "simulate", "--data", data, "--split", "train", "--test-split", split, *pair_options(a, pair)]
    words += f"--size 32 --sites 20 --partition dirichlet:0.1 --delta 1e-5 --epsilon {epsilons}".split()
    words += ["--noise", noise, "--seed", str(seed), "--accept-weak-promise", "--device", "cpu", "--out", run]
    words += ["--encodings", os.path.join(a.out, "encodings"), "--force", "--json", "--quiet"]
    words += ["--limit", "400", "--test-limit", "200"] if a.quick else []
    result = call(words)
    write(kept, result)
    return run, result


def heads(a):
    os.makedirs(os.path.join(a.out, "encodings"), mode=0o700, exist_ok=True)
    pairs = ["own"] + (["paper"] if a.codecs and a.public else []) + (["lite0"] if a.lite0 and a.public else [])
    seeds = SEEDS[:1] if a.quick else SEEDS
    for pair, name, noise, seed in itertools.product(pairs, a.sets, NOISES, seeds):
        if noise == "distributed" and pair == "paper" and not a.all:
            continue  # the paper's noise is central
        run, result = release_run(a, pair, name, noise, seed)
        for arm in result["arms"]:
            epsilon = f"{arm['epsilon']:g}"
            facts = {"set": name, "pair": pair, "noise": noise, "epsilon": epsilon, "seed": seed}
            facts |= {"test_images": result["test_images"], "records": result["records"]}
            path = cell_path(a.out, "head", name, pair, "default", noise, epsilon, seed)
            write(path, {**facts, "parts": "default", "accuracy": arm["accuracy"]})
            path = cell_path(a.out, "head", name, pair, "all", noise, epsilon, seed)
            if pair != "own" or os.path.exists(path):
                continue
            data, split = set_folder(a, name)
            release = os.path.join(run, f"eps-{epsilon}", "release.safetensors")
            words = [a.fedkt, "heads", "--release", release, "--parts", "all", "--test", data, "--test-split", split]
            words += ["--encodings", os.path.join(a.out, "encodings"), "--device", "cpu", "--json", "--quiet"]
            words += ["--test-limit", "200"] if a.quick else []
            write(path, {**facts, "parts": "all", "accuracy": call(words)["accuracy"]})


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


# ---- pack: for another machine ----


def pack_images(root, target, limit=None):
    """root/CLASS/* as a tar; the same images for every caller: in the order of a hash of their names."""
    if os.path.exists(target):
        return
    with tarfile.open(target + ".part", "w") as tar:
        for name in sorted(os.listdir(root)):
            files = sorted(os.listdir(os.path.join(root, name)))
            files = sorted(files, key=lambda f: hashlib.sha256(f.encode()).digest())[:limit] if limit else files
            for file in sorted(files):
                tar.add(os.path.realpath(os.path.join(root, name, file)), os.path.join(name, file))
    os.replace(target + ".part", target)


def pack(a):
    os.makedirs(os.path.join(a.to, "sets"), exist_ok=True)
    for path, _, files in os.walk(os.path.join(a.out, "runs")):
        for file in files:
            if file == "release.safetensors":
                source = os.path.join(path, file)
                target = os.path.join(a.to, os.path.relpath(source, a.out))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                subprocess.run(["cp", source, target], check=True)
    for name in a.sets:
        data, split = set_folder(a, name)
        few = 20 if a.quick else None
        pack_images(os.path.join(data, split), os.path.join(a.to, "sets", f"{name}-test.tar"), few)
        if a.real != 0:
            pack_images(os.path.join(data, "train"), os.path.join(a.to, "sets", f"{name}-real.tar"), a.real or few)
    if a.public:
        classes = max(1, len(os.listdir(a.public)))
        pack_images(a.public, os.path.join(a.to, "sets", "public.tar"), max(1, (200 if a.quick else 10000) // classes))
    if a.codecs:
        os.makedirs(os.path.join(a.to, "codecs"), exist_ok=True)
        for half in ("encoder", "decoder"):
            subprocess.run(["cp", os.path.join(a.codecs, f"taesd_{half}.safetensors"), f"{a.to}/codecs/"], check=True)


# ---- card: students ----


def students(a):
    """Cells that this folder allows, the most important first: (set, arm, noise, epsilon, seed)."""
    found = []
    seeds = SEEDS[:1] if a.quick else SEEDS
    for name, arm, noise, epsilon, seed in itertools.product(SETS, ARMS, NOISES, [*EPSILONS, NONE], seeds):
        pair, _, penalty = ARMS[arm]
        release = os.path.join(a.out, "runs", f"{name}-{pair}-{noise}-{seed}", f"eps-{epsilon}", "release.safetensors")
        if pair == "real":
            if (noise, epsilon) != ("central", "1"):
                continue
            release = os.path.join(a.out, "sets", f"{name}-real.tar")
        if not os.path.exists(release) or not os.path.exists(os.path.join(a.out, "sets", f"{name}-test.tar")):
            continue
        if "public" in arm and not os.path.exists(os.path.join(a.out, "sets", "public.tar")):
            continue
        penalty += LATER["noise"][noise] + LATER["epsilon"][epsilon] + LATER["set"][name] + 2 * seed
        found.append((penalty, (name, arm, noise, epsilon, seed), release))
    return sorted(found)


def card(a):
    begun = time.monotonic()
    todo = [c for c in students(a) if not os.path.exists(cell_path(a.out, "student", *c[1]))]
    print(f"{len(todo)} cells to do", file=sys.stderr)
    for _, cell, source in todo:
        name, arm, noise, epsilon, seed = cell
        left = a.seconds - (time.monotonic() - begun)
        if left < a.cell:
            print(f"stopped: {left:.0f} s are left, {a.cell} s are kept for a cell", file=sys.stderr)
            return
        pair, options, _ = ARMS[arm]
        recipe = (QUICK if a.quick else RECIPE).split()
        if pair == "real":
            recipe = [w for w in recipe if w != "--fresh"]
            at = recipe.index("--per-class")
            del recipe[at : at + 2]
            recipe[recipe.index("--epochs") + 1] = "1" if a.quick else "20"
            words = [a.fedkt, "train", "--data", source, *recipe]
        else:
            words = [a.fedkt, "train", "--release", source, *recipe, *options.split(), "--draw-seed", str(seed)]
        if words[-3] == "--public":
            words[-3:-2] = ["--public", os.path.join(a.out, "sets", "public.tar")]
        words += ["--weights", os.path.join(a.out, "codecs")] if pair == "paper" else []
        words += ["--seed", str(seed + 1), "--test", os.path.join(a.out, "sets", f"{name}-test.tar")]
        words += ["--device", a.device, "--out", os.path.join(a.out, "model.safetensors")]
        words += ["--force", "--json", "--quiet"]
        since = time.monotonic()
        try:
            result = call(words)
        except subprocess.CalledProcessError as e:
            print(f"failed with exit {e.returncode}: {' '.join(words)}", file=sys.stderr)
            continue
        took = time.monotonic() - since
        facts = {"set": name, "arm": arm, "noise": noise, "epsilon": epsilon, "seed": seed, "seconds": round(took, 1)}
        write(cell_path(a.out, "student", *cell), {**facts, "result": result, "command": " ".join(words)})
        print(f"{took:6.1f} s  {name}, {arm}, {noise}, epsilon {epsilon}, seed {seed}", file=sys.stderr)


# ---- report ----


def cells(folders, kind):
    found = {}
    for folder in folders:
        place = os.path.join(folder, "cells")
        for file in sorted(os.listdir(place)) if os.path.isdir(place) else []:
            if file.startswith(kind + "-") and file.endswith(".json"):
                found[file] = json.load(open(os.path.join(place, file)))
    return list(found.values())


def figure(values):
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def table(head, rows):
    return "\n".join("| " + " | ".join(r) + " |" for r in (head, ["---"] * len(head), *rows))


HEADS = {"nearest_mean": "nearest mean", "lda": "LDA", "qda": "QDA"}
TITLES = {
    ("own", "default"): "our pair, guide alone",
    ("own", "all"): "our pair, all parts",
    ("lite0", "default"): "EfficientNet-Lite0 at 128 px, no codec",
    ("paper", "default"): "TAESD, the paper's mechanism",
}


def heads_table(folders):
    made = cells(folders, "head")
    rows = []
    for name, (pair, parts), head, noise in itertools.product(SETS, TITLES, HEADS, NOISES):
        mine = [c for c in made if (c["set"], c["pair"], c["parts"], c["noise"]) == (name, pair, parts, noise)]
        if not mine:
            continue
        at = lambda e: [100 * c["accuracy"][head] for c in mine if c["epsilon"] == e and head in c["accuracy"]]
        rows.append([NAMES[name], TITLES[pair, parts], HEADS[head], noise, *(figure(at(e)) for e in (*EPSILONS, NONE))])
    columns = ["set", "parts", "head", "noise", *(f"epsilon {e}" for e in EPSILONS), "without noise"]
    return table(columns, rows) if rows else None


def students_table(folders):
    made = cells(folders, "student")
    rows = []
    for name, arm, noise in itertools.product(SETS, ARMS, NOISES):
        mine = [c for c in made if (c["set"], c["arm"], c["noise"]) == (name, arm, noise)]
        if not mine:
            continue
        value = lambda c: 100 * c["result"]["test"]["accuracy"]
        at = lambda e: [value(c) for c in mine if c["epsilon"] == e]
        real = arm == "real"
        row = [figure(at(e)) if not real else "" for e in (*EPSILONS, NONE)]
        row[-1] = figure(at("1")) if real else row[-1]
        seeds, took = len({c["seed"] for c in mine}), statistics.median(c["seconds"] for c in mine)
        rows.append([NAMES[name], arm, "" if real else noise, *row, str(seeds), f"{took:.0f}"])
    columns = ["set", "ResNet-18 on", "noise", *(f"epsilon {e}" for e in EPSILONS), "without noise", "seeds", "s a run"]
    return table(columns, rows) if rows else None


def report(a):
    made = {"heads": heads_table(a.folders), "students": students_table(a.folders)}
    text = open(a.fill).read() if a.fill else None
    for name, body in made.items():
        if not body:
            print(f"guide.py: nothing for the table '{name}'", file=sys.stderr)
            continue
        if not a.fill:
            print(f"## {name}\n\n{body}\n")
            continue
        first, last = f"<!-- guide:{name} -->\n", f"<!-- /guide:{name} -->"
        if first not in text or last not in text:
            sys.exit(f"guide.py: '{a.fill}' has no markers for '{name}'")
        text = text[: text.index(first) + len(first)] + f"\n{body}\n\n" + text[text.index(last) :]
    if a.fill:
        with open(a.fill, "w") as f:
            f.write(text)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("step", choices=["heads", "take", "pack", "card", "report"])
    p.add_argument("folders", nargs="*", help="report: folders with cells; take: files")
    for name in ("fedkt", "data", "out", "to", "codecs", "lite0", "public", "fill"):
        p.add_argument(f"--{name}")
    p.add_argument("--sets", type=lambda s: s.split(","), default=list(SETS))
    p.add_argument("--real", type=int, help="training images of a class for the bound (default: all; 0: none)")
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("--cell", type=float, default=30, help="seconds that must be left for a cell to begin")
    p.add_argument("--device", default="cuda")
    p.add_argument("--all", action="store_true", help="distributed noise for the paper's mechanism too")
    p.add_argument("--quick", action="store_true")
    a = p.parse_intermixed_args()
    {"heads": heads, "take": take, "pack": pack, "card": card, "report": report}[a.step](a)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What the steps of bench/guide.py share: sets, arms, the order of cells, and files of cells.

A cell is one measurement, named (set, arm, noise, epsilon, seed), and one file in OUT/cells.
"""

import itertools
import json
import os
import subprocess
import sys

SETS = {"eurosat": ("eurosat", None), "cifar10": ("cifar10", "test"), "cifar10jpeg": ("cifar10-jpeg", "test")}
SETS["imagenette"] = ("imagenette64", "val")
NAMES = {"eurosat": "EuroSAT", "cifar10": "CIFAR-10", "cifar10jpeg": "CIFAR-10 as JPEG", "imagenette": "Imagenette"}
EPSILONS, NONE, NOISES, SEEDS = ("10", "1", "0.3"), "1000", ("central", "distributed"), (0, 1, 2)
PAIRS = {
    "own": "--codec fedkt-ae --guide fedkt-guide",
    "paper": "--codec taesd --guide none --mechanism paper --adjacency replace --coordinates clip",
    "lite0": "--codec none --guide efficientnet-lite0@128",
}
TAUGHT = "--teacher head --teacher-head rda --temperature 4"  # chosen on the proxy, as the shares below
ARMS = {  # name: pair, options of `fedkt train`; the most important first
    "all images": ("own", f"--guided --plain 0.5 {TAUGHT} --blend 0.5 --public"),  # what we recommend
    "guided, teacher": ("own", f"--guided {TAUGHT}"),
    "paper": ("paper", ""),
    "real": ("real", ""),
    "plain": ("own", "--guided none"),
    "guided": ("own", "--guided"),
    "plain, teacher": ("own", f"--guided none {TAUGHT}"),
    "guided by gradient": ("own", "--guided 25"),
}
EXTRA = ("plain, teacher", "guided by gradient")  # after everything else
LONG = ("all images",)  # arms that train half as long again
FIRST = {"epsilon": ("1", "10", NONE, "0.3"), "set": ("cifar10", "eurosat", "imagenette", "cifar10jpeg")}


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


def cells(folders, kind):
    """What the files KIND-*.json of these folders hold; of files with one name, the last."""
    found = {}
    for folder in folders:
        place = os.path.join(folder, "cells")
        for file in sorted(os.listdir(place)) if os.path.isdir(place) else []:
            if file.startswith(kind + "-") and file.endswith(".json"):
                with open(os.path.join(place, file)) as f:
                    found[file] = json.load(f)
    return list(found.values())


def level(cell):
    """What the paper's table needs first, then other sets and budgets, further seeds, the other noise, the rest."""
    name, arm, noise, epsilon, seed = cell
    usual = name in ("cifar10", "eurosat") and epsilon in ("1", "10")
    if arm in EXTRA:
        return 6
    if noise == "distributed":
        return 4 if arm in LONG and usual else 5
    if usual:
        return 0 if arm in LONG else 1 if seed == 0 else 3
    return 2 if arm in LONG and name != "cifar10jpeg" else 5


def rank(cell):
    name, arm, noise, epsilon, seed = cell
    order = FIRST["epsilon"].index(epsilon), FIRST["set"].index(name)
    return level(cell), (seed, *order) if arm in LONG else (*order, list(ARMS).index(arm), seed)


def inputs(cell):
    """Files that the student of this cell needs, below the folder that `pack` makes; the training data first."""
    name, arm, noise, epsilon, seed = cell
    pair = ARMS[arm][0]
    run = os.path.join("runs", f"{name}-{pair}-{noise}-{seed}", f"eps-{epsilon}", "release.safetensors")
    needs = [os.path.join("sets", f"{name}-real.tar") if pair == "real" else run, f"sets/{name}-test.tar"]
    needs += ["sets/public.tar"] if "--public" in ARMS[arm][1] else []
    return needs + (["codecs/taesd_encoder.safetensors", "codecs/taesd_decoder.safetensors"] if pair == "paper" else [])


def students(seeds=SEEDS):
    """All cells of students, the most important first."""
    every = itertools.product(SETS, ARMS, NOISES, [*EPSILONS, NONE], seeds)
    # Real images have neither noise nor budget: one cell a seed.
    wanted = [c for c in every if ARMS[c[1]][0] != "real" or c[2:4] == ("central", "1")]
    return sorted(wanted, key=rank)

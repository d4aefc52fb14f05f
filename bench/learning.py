#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real learning: CIFAR-10 and what a private release makes of it, our training beside PyTorch's with the same recipe.

usage: bench/learning.py --fedkt BINARY --data DIR --work DIR [--sets real,gain-shape,clip] [--models resnet8,resnet18]
                         [--seeds 1,2,3] [--epochs 10] [--per-class 1000] [--who ours,peer] [--python PYTHON]
                         [--threads 2] [--device cpu] [--records N] [--prepare] [--pack FOLDER] [--collect FOLDER]

Sets: `real` is --per-class pictures of each class of CIFAR-10's training set; `gain-shape` and `clip` are as many that
`fedkt simulate` draws and TAESD decodes from a release over all 50,000 (20 sites, Dirichlet 0.1, epsilon 10, delta
1e-5, distributed noise, calibrated on the public set; --records N: over N of them, to try things out). A seed s fixes
noise (--insecure-seed s: it measures, it protects nobody), samples, first weights, order and augmentation; real
pictures are the same for all seeds. Both sides begin from the same weights and see the same batches. Accuracy is on the
10,000 test images, after the last epoch. The recipe is `fedkt train`'s own with --epochs epochs.

A cell is (set, network, epochs, --per-class, seed, who). Finished ones are kept in WORK/cells.json and are not
repeated: a run goes on where it was stopped. --prepare makes pictures and first weights and leaves it at that.
--pack FOLDER puts the twin's side of all cells that are missing into a folder that needs oracle/learn.py alone:
    cd FOLDER && python3 learn.py jobs jobs.json --device cuda
and --collect FOLDER takes the results in. The table is printed as far as it is known.

DIR holds cifar10.tar.xz, tiny-imagenet-12k.tar and codecs/ (taesd). --python is one with PyTorch; this script itself
needs numpy and Pillow.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys

import cifar
from library import Door

ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "learn.py")
NAMES = {"real": "real pictures", "gain-shape": "synthetic, gain-shape", "clip": "synthetic, clip"}


def run(*words):
    print("+", " ".join(words), file=sys.stderr, flush=True)
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


def write(path, value):
    with open(path + ".part", "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)


class Bench:
    def __init__(self, a):
        self.a = a
        os.makedirs(a.work, exist_ok=True)
        self.cells_path = self.at("cells.json")
        self.cells = json.load(open(self.cells_path)) if os.path.exists(self.cells_path) else {}

    def at(self, *parts):
        return os.path.join(self.a.work, *parts)

    # ---- pictures and first weights

    def calibration(self):
        path = self.at("calibration.safetensors")
        if not os.path.exists(path):
            public = os.path.join(self.a.data, "tiny-imagenet-12k.tar")
            run(self.a.fedkt, "codec", "calibrate", *self.codec(), "--public", public, "--out", path, "--json")
        return path

    def codec(self):
        return ["--codec", "taesd", "--size", "32", "--weights", os.path.join(self.a.data, "codecs")]

    def pictures(self, which, seed):
        a, archive = self.a, os.path.join(self.a.data, "cifar10.tar.xz")
        if which == "real":
            path = self.at(f"real-{a.per_class}.npz")
            cifar.make_train(archive, path, a.per_class)
            return path
        path = self.at(f"{which}-{a.per_class}{self.few()}-{seed}.npz")
        if os.path.exists(path):
            return path
        folder = path[: -len(".npz")] + ".run"
        words = ["--data", archive, "--split", "train", "--test-split", "test", *self.codec(), "--coordinates", which]
        words += ["--calibration", self.calibration(), "--sites", "20", "--partition", "dirichlet:0.1"]
        words += ["--epsilon", "10", "--delta", "1e-5", "--seed", str(seed), "--insecure-seed", str(seed)]
        words += ["--per-class", str(a.per_class), "--format", "npz", "--threads", str(a.threads), "--out", folder]
        words += ["--limit", str(a.records)] if a.records else []
        write(folder + ".json", run(a.fedkt, "simulate", *words, "--force", "--json"))
        found = [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if f == "dataset.npz"]
        if len(found) != 1:
            raise SystemExit(f"'{folder}' has {len(found)} sets of pictures, not one")
        os.replace(found[0], path)
        return path

    def test(self):
        path = self.at("test.npz")
        cifar.make_test(os.path.join(self.a.data, "cifar10.tar.xz"), path)
        return path

    def first_weights(self, model, seed):
        path = self.at(f"{model}-{seed}.start.safetensors")
        if not os.path.exists(path):
            Door(self.a.fedkt).first_weights(path, model, "cifar", 32, cifar.CLASSES, seed)
        return path

    def recipe(self, seed):
        path = self.at(f"recipe-{self.a.epochs}-{seed}.json")
        write(path, {"epochs": self.a.epochs, "seed": seed})
        return path

    # ---- cells

    def few(self):
        return f"-of-{self.a.records}" if self.a.records else ""

    def name(self, which, model, seed):
        few = "" if which == "real" else self.few()
        return f"{which}-{model}-{self.a.epochs}-{self.a.per_class}{few}-{seed}"

    def key(self, which, model, seed, who):
        return f"{self.name(which, model, seed)}/{who}"

    def keep(self, key, result):
        self.cells[key] = result
        write(self.cells_path, self.cells)
        print(f"{key}: {100 * result['accuracy']:.2f} %", file=sys.stderr, flush=True)

    def ours(self, which, model, seed):
        a = self.a
        out = self.at(self.name(which, model, seed) + ".safetensors")
        words = [
            "--data",
            self.pictures(which, seed),
            "--split",
            "train",
            "--test",
            self.test(),
            "--test-split",
            "test",
        ]
        words += ["--network", model, "--stem", "cifar", "--size", "32", "--epochs", str(a.epochs), "--seed", str(seed)]
        words += ["--threads", str(a.threads), "--out", out, "--force", "--json"]
        got = run(a.fedkt, "train", *words)
        keep = {k: got[k] for k in ("epochs", "seconds", "images")}
        return {"accuracy": got["test"]["accuracy"], **keep}

    def job(self, which, model, seed):
        out = self.at(self.name(which, model, seed) + ".peer.json")
        job = {"images": self.pictures(which, seed), "test": self.test(), "start": self.first_weights(model, seed)}
        return {**job, "recipe": self.recipe(seed), "out": out}

    def peer(self, which, model, seed):
        words = [f for k, v in self.job(which, model, seed).items() for f in ("--" + k, v)]
        words += ["--device", self.a.device, "--threads", str(self.a.threads)]
        got = run(self.a.python, ORACLE, "twin", *words)
        return json.load(open(got["out"]))

    def missing(self, who):
        a = self.a
        for model, which, seed in itertools.product(a.models, a.sets, a.seeds):
            if self.key(which, model, seed, who) not in self.cells:
                yield which, model, seed

    def prepare(self):
        self.test()
        for model, which, seed in itertools.product(self.a.models, self.a.sets, self.a.seeds):
            self.job(which, model, seed)

    def fill(self):
        for who in self.a.who:
            for cell in self.missing(who):
                self.keep(self.key(*cell, who), getattr(self, who)(*cell))

    # ---- elsewhere

    def pack(self, folder):
        os.makedirs(folder, exist_ok=True)
        shutil.copy(ORACLE, os.path.join(folder, "learn.py"))
        jobs = []
        for cell in self.missing("peer"):
            job = self.job(*cell)
            for k, path in job.items():
                if k != "out" and not os.path.exists(os.path.join(folder, os.path.basename(path))):
                    shutil.copy(path, folder)
                job[k] = os.path.basename(path)
            jobs.append(dict(job, cell=self.key(*cell, "peer")))
        write(os.path.join(folder, "jobs.json"), jobs)
        print(f"{len(jobs)} cells in '{folder}'", file=sys.stderr)

    def collect(self, folder):
        for job in json.load(open(os.path.join(folder, "jobs.json"))):
            path = os.path.join(folder, job["out"])
            if os.path.exists(path):
                self.keep(job["cell"], json.load(open(path)))

    # ---- the table

    def values(self, which, model, who):
        keys = [self.key(which, model, seed, who) for seed in self.a.seeds]
        return [100 * self.cells[k]["accuracy"] for k in keys if k in self.cells]

    def table(self):
        cell = lambda v: (
            "-" if not v else f"{statistics.mean(v):.2f}" + (f" ± {statistics.stdev(v):.2f}" if len(v) > 1 else "")
        )
        print(
            "| pictures | network | epochs | seeds | ours | PyTorch | ours - PyTorch |\n|---|---|---|---|---|---|---|"
        )
        for model, which in itertools.product(self.a.models, self.a.sets):
            ours, peer = (self.values(which, model, who) for who in ("ours", "peer"))
            apart = [a - b for a, b in zip(ours, peer)] if len(ours) == len(peer) else []
            row = [NAMES[which], model, str(self.a.epochs), str(max(len(ours), len(peer))), cell(ours), cell(peer)]
            print("| " + " | ".join([*row, cell(apart)]) + " |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fedkt", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--work", required=True)
    words = lambda s: s.split(",")
    p.add_argument("--sets", type=words, default=list(NAMES))
    p.add_argument("--models", type=words, default=["resnet8", "resnet18"])
    p.add_argument("--seeds", type=lambda s: [int(x) for x in s.split(",")], default=[1, 2, 3])
    p.add_argument("--who", type=words, default=["ours", "peer"])
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--per-class", type=int, default=1000)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--device", default="cpu")
    p.add_argument("--records", type=int, default=0)
    p.add_argument("--prepare", action="store_true")
    p.add_argument("--pack")
    p.add_argument("--collect")
    a = p.parse_args()
    if set(a.sets) - set(NAMES) or set(a.who) - {"ours", "peer"}:
        p.error(f"sets are {', '.join(NAMES)}; who is ours or peer")
    b = Bench(a)
    if a.prepare:
        b.prepare()
    elif a.pack:
        b.pack(a.pack)
    elif a.collect:
        b.collect(a.collect)
    else:
        b.fill()
    b.table()


if __name__ == "__main__":
    main()

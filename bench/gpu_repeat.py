#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same command twice on a card gives the same bits; the card's latents beside the processor's, as integers.

usage: bench/gpu_repeat.py --fedkt BINARY --weights TAESD_ENCODER.safetensors --out OUT.json
                           [--device cuda] [--public demo:test] [--data demo:train] [--images 1000] [--size 32]

Needs numpy alone. In a scratch folder: a calibration of TAESD on --public, a task for the classes of --data, then
  latents   `fedkt encode` twice on the device in f32 and in bf16, and once on the processor in each
  images    `fedkt generate` twice on the device from one release (noise from a known seed)
  model     `fedkt train` twice on the device, resnet8 and two epochs of --data, f32 and bf16
Files must be equal byte for byte. Then latents of device and processor are compared as floats, as integers q of single
records (each record as a class of its own, bench/moments_diff.py) and as class moments. Exit 1 when a repetition
differs or a command fails; what was found is written all the same.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import moments_diff


class Run:
    def __init__(self, a, folder):
        self.a, self.folder, self.failures = a, folder, []

    def fedkt(self, *words):
        """1: it worked."""
        words = [self.a.fedkt, *map(str, words), "--quiet"]
        p = subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if p.returncode:
            self.failures.append({"command": " ".join(words[1:]), "exit": p.returncode, "stderr": p.stderr[-400:]})
        return p.returncode == 0


def digest(path):
    """Of a file, or of the names and bytes of all files below a folder."""
    path, h = pathlib.Path(path), hashlib.sha256()
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        h.update(str(file.relative_to(path)).encode() + file.read_bytes())
    return h.hexdigest()


def device_words(device):
    return ["--device", device] if device else []


def prepare(r):
    a = r.a
    codec = ["--codec", "taesd", "--size", a.size, "--weights", a.weights]
    public = ["--public", a.public, "--limit", 2000]
    r.fedkt("codec", "calibrate", "taesd", *codec[2:], *public, "--out", "cal.safetensors")
    names = ",".join(f"r{i:04d}" for i in range(a.images))
    more = [*codec, "--calibration", "cal.safetensors", "--epsilon", 10, "--delta", 1e-5]
    one = r.fedkt("task", "new", *more, "--data", a.data, "--out", "task.json")
    return one and r.fedkt("task", "new", *more, "--classes", names, "--out", "records.json")


def encode(r, name, device, dtype):
    a = r.a
    words = ["encode", "--task", "task.json", "--data", a.data, "--limit", a.images, "--weights", a.weights]
    words += ["--calibration", "cal.safetensors", "--dtype", dtype, *device_words(device), "--out", name]
    return r.fedkt(*words)


def moments(r, latents, out, task):
    words = ["moments", "--task", task, "--latents", latents, "--calibration", "cal.safetensors", "--out", out]
    return r.fedkt(*words)


def same(r, found, what, names):
    try:
        equal = len({digest(os.path.join(r.folder, n)) for n in names}) == 1
    except OSError:
        equal = None  # a command failed
    found["repeats"][what] = equal


def integers(r, stem):
    """Class moments, and the integers of each record. 1: both were made."""
    path = os.path.join(r.folder, stem)
    if not os.path.exists(path):
        return False
    moments_diff.records(path, path + "-records")
    return moments(r, stem, stem + "-moments", "task.json") and moments(
        r, stem + "-records", stem + "-q", "records.json"
    )


def beside_processor(r, found, one, two):
    """Latents of the device in format `one` beside the processor's in format `two`."""
    names = [f"device-{one}", f"processor-{two}"]
    if not all(os.path.exists(os.path.join(r.folder, n + "-q")) for n in names):
        return
    of = lambda end: moments_diff.compare(*(os.path.join(r.folder, n + end) for n in names))
    row = {"latents": of("")["latents"], "q": of("-q")["sums"], "moments": of("-moments")}
    found["beside_processor"][one if one == two else f"{one} beside {two}"] = row


def latents(r, found):
    for dtype in ("f32", "bf16"):
        encode(r, f"device-{dtype}", r.a.device, dtype)
        encode(r, f"again-{dtype}", r.a.device, dtype)
        same(r, found, f"latents {dtype}", [f"device-{dtype}", f"again-{dtype}"])
        encode(r, f"processor-{dtype}", "cpu" if r.a.device else None, dtype)
        for who in ("device", "processor"):
            integers(r, f"{who}-{dtype}")
    for one, two in (("f32", "f32"), ("bf16", "bf16"), ("bf16", "f32")):
        beside_processor(r, found, one, two)


def images(r, found):
    words = ["release", "--task", "task.json", "--moments", "processor-f32-moments", "--ledger", "ledger.db"]
    r.fedkt(*words, "--calibration", "cal.safetensors", "--insecure-seed", 1, "--out", "release.safetensors")
    for dtype in ("f32", "bf16"):
        for out in ("one", "two"):
            words = ["generate", "--release", "release.safetensors", "--per-class", 50, "--weights", r.a.weights]
            r.fedkt(*words, "--format", "npz", "--dtype", dtype, *device_words(r.a.device), "--out", f"{out}-{dtype}")
        same(r, found, f"images {dtype}", [f"{out}-{dtype}/dataset.npz" for out in ("one", "two")])


def models(r, found):
    for dtype in ("f32", "bf16"):
        for out in ("one", "two"):
            words = ["train", "--data", r.a.data, "--limit", r.a.images, "--network", "resnet8", "--epochs", 2]
            words += ["--size", r.a.size, "--dtype", dtype, *device_words(r.a.device), "--out", f"{out}-{dtype}.model"]
            r.fedkt(*words)
        same(r, found, f"model {dtype}", [f"{out}-{dtype}.model" for out in ("one", "two")])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fedkt", required=True)
    p.add_argument("--weights", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--device", default="cuda", help="'': no --device at all")
    p.add_argument("--public", default="demo:test")
    p.add_argument("--data", default="demo:train")
    p.add_argument("--images", type=int, default=1000)
    p.add_argument("--size", type=int, default=32)
    a = p.parse_args()
    a.fedkt, a.weights = os.path.abspath(a.fedkt), os.path.abspath(a.weights)
    folder = tempfile.mkdtemp()
    r = Run(a, folder)
    found = {"images": a.images, "size": a.size, "repeats": {}, "beside_processor": {}, "failures": r.failures}
    try:
        for part in (prepare, lambda r: latents(r, found), lambda r: images(r, found), lambda r: models(r, found)):
            if part(r) is False:
                break
            with open(a.out, "w") as f:
                json.dump(found, f, indent=1)
                f.write("\n")
    finally:
        shutil.rmtree(folder)
    for what, equal in found["repeats"].items():
        print(f"{what:16} twice: {'the same bits' if equal else 'DIFFERENT' if equal is False else 'failed'}")
    for dtype, rows in found["beside_processor"].items():
        q = rows["q"]
        print(f"q {dtype}: {q['different']} of {q['numbers']} differ from the processor's, by {q['largest']:g} at most")
    for failure in found["failures"]:
        print("failed:", failure["command"], failure["stderr"], sep="\n  ")
    return 0 if found["repeats"] and all(found["repeats"].values()) and not found["failures"] else 1


if __name__ == "__main__":
    sys.exit(main())

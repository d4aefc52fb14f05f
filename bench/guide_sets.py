# SPDX-License-Identifier: Apache-2.0
"""Where the sets of bench/guide.py lie, and the hold-out of `simulate --holdout` for those without a split."""

import hashlib
import os

import guide_cells

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
    folder, split = guide_cells.SETS[name]
    source = os.path.join(a.data, folder)
    if split:
        return source, split
    return split_set(source, os.path.join(a.out, "sets", name)), "test"



#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/classifier/augment.c: makes tests/vectors/classifier/views.json.

usage: oracle/views.py OUT.json

Random numbers by their definition (xoshiro256++ seeded by splitmix64, as src/base/rng.c states it) in Python's whole
numbers; pictures by numpy: normalise, np.pad with zeros, cut, np.flip. A picture is uint8 (S, S, 3) with
(31 index + 7 y + 13 x + 101 c + 5 y x) mod 256; of the result (3, S, S), a sum and a sum weighted by 1 + position mod
97 are kept, and its first eight numbers of the middle row of colour 1.
"""

import hashlib
import json
import sys

import numpy as np

MASK = (1 << 64) - 1


def splitmix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return x, z ^ (z >> 31)


def rotl(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


class Random:
    def __init__(self, seed, stream):
        x = splitmix(seed)[1] ^ rotl(splitmix(stream ^ 0x6A09E667F3BCC909)[1], 17)
        self.s = []
        for _ in range(4):
            x, word = splitmix(x)
            self.s.append(word)

    def word(self):
        s = self.s
        out, t = (rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK, (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return out

    def below(self, n):
        while True:
            x = self.word()
            if x >= (1 << 64) % n:
                return x % n


def order(n, seed, epoch):
    random, out = Random(seed, 1 << 62 | epoch), list(range(n))
    for i in range(n, 1, -1):
        j = random.below(i)
        out[i - 1], out[j] = out[j], out[i - 1]
    return out


def picture(index, size):
    y, x, c = np.meshgrid(np.arange(size), np.arange(size), np.arange(3), indexing="ij")
    return ((31 * index + 7 * y + 13 * x + 101 * c + 5 * y * x) % 256).astype(np.uint8)


def view(case):
    size, pad = case["size"], case["pad"]
    random = Random(case["seed"], 1 << 63 | case["epoch"] << 40 | case["index"])
    flip, top, left = random.below(2), random.below(2 * pad + 1), random.below(2 * pad + 1)
    mean, std = np.float32([0.5, 0.25, 0.125]), np.float32([0.25, 0.5, 2])
    x = ((picture(case["index"], size).astype(np.float64) / 255 - mean) / std).transpose(2, 0, 1)
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))[:, top : top + size, left : left + size]
    if flip and case["flip"]:
        x = np.flip(x, 2)
    weight = 1 + np.arange(x.size) % 97
    row = x[1, size // 2, :8]
    return {"sum": float(x.sum()), "weighted": float((x.reshape(-1) * weight).sum()), "row": [float(v) for v in row]}


def main():
    cases = [
        {"seed": seed, "epoch": epoch, "index": index, "size": size, "pad": pad, "flip": flip}
        for seed, epoch, index, size, pad, flip in [
            *((1, 0, i, 32, 4, 1) for i in range(12)),
            *((1, e, 3, 32, 4, 1) for e in range(1, 6)),
            *((2**63 - 1, 999999, i, 9, 2, 1) for i in (0, 5, 2**33)),
            *((7, 2, i, 8, 4, 0) for i in range(4)),
            *((7, 2, i, 8, 0, 1) for i in range(4)),
            *((9, 1, i, 8, 13, 1) for i in range(6)),
            (3, 0, 0, 64, 8, 1),
        ]
    ]
    orders = [
        {"n": n, "seed": s, "epoch": e, "order": order(n, s, e)}
        for n, s, e in [(10, 1, 0), (10, 1, 1), (1, 5, 5), (50, 2**62 + 1, 7)]
    ]
    text = json.dumps({"cases": [dict(c, **view(c)) for c in cases], "orders": orders}, indent=1) + "\n"
    with open(sys.argv[1], "w") as f:
        f.write(text)
    with open(sys.argv[1].replace(".json", ".md"), "w") as f:
        f.write(
            "- file: views.json\n- what: pictures as a network sees them in an epoch, and the order they come in\n"
            "- made_by: oracle/views.py\n"
            "- command: /usr/bin/python3 oracle/views.py tests/vectors/classifier/views.json\n"
            f"- sha256: {hashlib.sha256(text.encode()).hexdigest()}\n- numpy: {np.__version__}\n"
        )


if __name__ == "__main__":
    main()

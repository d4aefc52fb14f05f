#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow twin of src/moments/quantise.c in exact rational arithmetic; writes tests/vectors/quantise.txt.

Each case is three lines: "m Rq R", then m doubles w as hexadecimal floats, then m integers q.
Nothing is rounded here: w, R are doubles and therefore rationals, and so is x = w*Rq/R.
"""

import math
import random
import sys
from fractions import Fraction


def quantise(w, radius, rq):
    x = [abs(Fraction(v) * rq / Fraction(radius)) for v in w]
    sign = [-1 if v < 0 else 1 for v in w]
    q = [math.floor(v + Fraction(1, 2)) for v in x]
    while sum(v * v for v in q) > rq * rq:
        excess = [a - b for a, b in zip(q, x)]
        i = excess.index(max(excess))
        assert excess[i] > 0 and q[i] > 0
        q[i] -= 1
    return [s * v for s, v in zip(sign, q)]


def on_sphere(rng, m, radius):
    v = [rng.gauss(0, 1) for _ in range(m)]
    n = math.sqrt(math.fsum(t * t for t in v))
    return [t * radius / n for t in v]


def cases():
    rng = random.Random(20240229)
    gain_shape = math.sqrt(1 + 0.35 * 0.35)
    for m in (1, 2, 3, 17, 65, 129):
        for rq in (64, 100, 256, 4096):
            yield on_sphere(rng, m, gain_shape), gain_shape, rq
            yield on_sphere(rng, m, 13.5), 13.5, rq
        for rq in (
            64,
            257,
            4096,
        ):  # all coordinates equal, with mixed signs: all round the same way and all excesses tie
            yield [rng.choice((-1, 1)) * 2.0 / math.sqrt(m) for _ in range(m)], 2.0, rq
    # R = Rq: x = w exactly, so halves are halves; 4 * 0.5^2 leaves room, the last has none
    yield [0.5, -0.5, 1.5, -1.5], 64.0, 64
    yield [63.5, 5.5, 5.5], 64.0, 64
    yield [2.5] * 655, 64.0, 64
    yield [0.5] * 1024, 64.0, 64
    yield [0.0] * 5, 1.0, 256
    yield [-1.0], 1.0, 4096


def main(path):
    with open(path, "w", encoding="ascii") as f:
        for w, radius, rq in cases():
            f.write(f"{len(w)} {rq} {radius.hex()}\n")
            f.write(" ".join(v.hex() for v in w) + "\n")
            f.write(" ".join(str(v) for v in quantise(w, radius, rq)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])

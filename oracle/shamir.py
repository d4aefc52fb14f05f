#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow twin of src/crypto/shamir.c in Python's integers; writes tests/vectors/shamir.txt.

A case is five lines: "n t", the secret, the random bytes that split consumes (64 for each coefficient, by degree from
1; "-" when t = 1), the n points, the n shares. Numbers of 32 bytes are little-endian hex. Every case is joined again
here, from several subsets, by Lagrange's formula with one inversion for each weight.
"""

import random
import sys

L = 2**252 + 27742317777372353535851937790883648493


def split(secret, raw, points):
    coefficients = [secret] + [int.from_bytes(raw[i : i + 64], "little") % L for i in range(0, len(raw), 64)]
    return [sum(c * x**j for j, c in enumerate(coefficients)) % L for x in points]


def join(points, shares):
    total = 0
    for i, (x, share) in enumerate(zip(points, shares)):
        weight = 1
        for j, other in enumerate(points):
            if j != i:
                weight = weight * other * pow(other - x, -1, L) % L
        total += share * weight
    return total % L


def scalar(x):
    return x.to_bytes(32, "little").hex()


def cases(rng):
    top = 2**32 - 1
    secrets = [0, 1, L - 1, 2**252, 2**252 - 1, rng.randrange(L), rng.randrange(L)]
    for secret in secrets:
        yield secret, 3, 2, [1, 2, 3]
    for n, t in [(1, 1), (2, 1), (2, 2), (5, 5), (7, 4), (12, 9), (40, 27)]:
        yield rng.randrange(L), n, t, list(range(1, n + 1))
        yield rng.randrange(L), n, t, rng.sample(range(1, top + 1), n)
        yield rng.randrange(L), n, t, [top - i for i in range(n)]
    yield rng.randrange(L), 4, 3, [1, top, 2**31, 2**16]


def main():
    rng = random.Random(1979)
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for number, (secret, n, t, points) in enumerate(cases(rng)):
            raw = rng.randbytes(64 * (t - 1))
            if number % 5 == 0:  # the largest coefficients, and one that reduces to 0
                raw = b"\xff" * 64 * (t - 2) + L.to_bytes(64, "little") if t > 1 else b""
            shares = split(secret, raw, points)
            for _ in range(3):
                chosen = rng.sample(range(n), t)
                assert join([points[i] for i in chosen], [shares[i] for i in chosen]) == secret
            print(n, t, file=out)
            print(scalar(secret), file=out)
            print(raw.hex() or "-", file=out)
            print(*points, file=out)
            print(*map(scalar, shares), file=out)


if __name__ == "__main__":
    main()

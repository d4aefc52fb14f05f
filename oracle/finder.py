#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""finder.py - degree and threshold of the aggregation graph, in integers alone.

An independent twin of src/secagg/finder.c, written from src/secagg/finder.md: no float, no logarithm; a probability is
a count of cases over a count of cases, and is compared with 2^-s by multiplying out.

Usage: finder.py > tests/vectors/secagg_finder.csv
"""

import sys
from fractions import Fraction
from math import comb

ROWS = [  # sites, corrupt, dropped, security, failure
    *(
        (n, n * c // 100, n * d // 100, 40, 20)
        for n in (100, 1000, 10000)
        for c, d in ((5, 5), (10, 10), (20, 10), (10, 30))
    ),
    *((n, n // 10, n // 10, 40, 20) for n in (3, 4, 5, 10, 20, 49, 50, 51, 52, 60, 75, 200, 500, 2000, 5000, 65536)),
    *(
        (1000, c, d, 40, 20)
        for c, d in ((0, 0), (0, 100), (100, 0), (1, 1), (333, 50), (50, 333), (250, 250), (10, 480))
    ),
    *((200, 20, 20, s, f) for s, f in ((1, 1), (6, 1), (6, 6), (20, 20), (64, 20), (80, 40), (128, 40), (256, 256))),
    *((400, 40, d, 30, 10) for d in (0, 20, 60, 119, 120, 121, 140, 179)),  # up to where a total could be had twice
    *((64, c, d, 40, 20) for c, d in ((0, 31), (60, 0), (61, 0), (62, 0), (63, 0), (20, 21), (20, 22))),
    *((50, c, d, 40, 20) for c, d in ((0, 24), (0, 25), (10, 19), (10, 20), (48, 0), (49, 0), (0, 0))),
    *((3, c, d, 40, 20) for c, d in ((0, 0), (1, 0), (0, 1), (2, 0))),
]


def cases(n, marked, k, x):
    """Of the comb(n, k) ways to choose k of n, those with at least x of `marked`."""
    x = max(x, k - (n - marked), 0)
    if x > min(marked, k):
        return 0
    total = term = comb(marked, x) * comb(n - marked, k - x)
    for i in range(x, min(marked, k)):
        term = term * ((marked - i) * (k - i)) // ((i + 1) * (n - marked - k + i + 1))  # leaves no remainder
        total += term
    return total


def likely(cases_of, bits):
    """Is the sum of the fractions cases/all at least 2^-bits?"""
    whole = 1
    for _, every in cases_of:
        whole *= every
    return sum(some * (whole // every) for some, every in cases_of) << bits >= whole


def surrounded(n, c, k, t, bits):
    """Some honest site has 2t <= k + corrupt neighbours, or the k witnesses have that many corrupt among them."""
    site = (n - c) * cases(n - 1, c, k, 2 * t - k), comb(n - 1, k)
    witnesses = cases(n, c, k, 2 * t - k), comb(n, k)
    return likely([site, witnesses], bits)


def cuttable(c, d, k, t):
    return k <= c + d and 2 * t <= k + c


def cut(n, c, d, k, t, bits):
    """Two honest sites at the ends of an arc, beyond them runs of k/2 places that none sees across; see finder.md 3."""
    if not cuttable(c, d, k, t):
        return False
    over, side, edge = t - k // 2, 3 * t // 8, Fraction(0)
    x = over
    while over + side - 2 * x > 0:
        near = Fraction(cases(n - 2, c, side - x, over + side - 2 * x), comb(n - 2, side - x))
        edge += Fraction(cases(n - 2, c, k // 2, x), comb(n - 2, k // 2)) * near
        x += 1
    edge += Fraction(cases(n - 2, c, k // 2, x), comb(n - 2, k // 2))
    both = Fraction(cases(n - 2, c, k, max(k - d, 0)), comb(n - 2, k))
    ends = Fraction((n - c) * (n - c - 1) * (n - k - 1), n - 1)
    return ends * min(edge * edge, both) * 2**bits >= 1


def starved(n, c, d, k, t, bits):
    """Fewer than t of k are left around some site or among the witnesses, or 3t/8 or fewer on one side of some site."""
    parts = [((n - d) * cases(n - 1, d, k, k - t + 1), comb(n - 1, k)), (cases(n, d, k, k - t + 1), comb(n, k))]
    if d:
        parts.append((d * cases(n - 1, d - 1, k, k - t + 1), comb(n - 1, k)))
    if cuttable(c, d, k, t):
        parts.append((2 * (n - d) * cases(n - 1, d, k // 2, k // 2 - 3 * t // 8), comb(n - 1, k // 2)))
    return likely(parts, bits)


def threshold(n, c, k, bits):
    low, high = k // 2, k
    if surrounded(n, c, k, high, bits):
        return None
    while high - low > 1:
        t = (low + high) // 2
        low, high = (t, high) if surrounded(n, c, k, t, bits) else (low, t)
    return high


def find(n, c, d, security, failure):
    """(degree, threshold), or (0, 0) when no graph will do."""
    if n < c + 2 * d + 2:
        return 0, 0
    for k in range(2, n - 1, 2) if n > 50 else ():
        t = threshold(n, c, k, security + 1)
        if t is None or starved(n, c, d, k, t, failure) or cut(n, c, d, k, t, security + 1):
            continue
        if (n - 2 * d - c) * (k - t + 1) > d * (k - t):
            return k, t
    return n - 1, (n - 1 + c) // 2 + 1


def main():
    print("sites,corrupt,dropped,security,failure,degree,threshold")
    for row in ROWS:
        print(*row, *find(*row), sep=",")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

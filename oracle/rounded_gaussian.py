#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""round(N(0, sigma^2)) twice over, neither way that of src/privacy.

privacy_gaussian_bins.csv    exact probabilities of intervals of integers, from normal tails at 50 digits
privacy_gaussian_draws.csv   the algorithm of rounded_gaussian.md on a known stream of digits, with fractions of any
                             length: x is a list of digits, and an interval test decides the rounding
privacy_clopper_pearson.csv  binomial bounds from SciPy's beta quantiles
"""

import csv
import hashlib
import json
import math
import platform
import sys
from fractions import Fraction

import mpmath as mp
import scipy
from scipy.stats import beta

mp.mp.dps = 50
MASK = (1 << 64) - 1
PATTERNS = (0x55555555, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF)
MAX_DIGITS = 16


class Broken(Exception):
    pass


class Digits:
    """splitmix64, two 32-bit digits of each number, low one first; kind 1 puts a pattern in place of three in four."""

    def __init__(self, seed, kind):
        self.state, self.kind, self.spare = seed, kind, []

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def draw(self):
        if not self.spare:
            w = self.word()
            self.spare = [w >> 32, w & 0xFFFFFFFF]
        d = self.spare.pop()
        if self.kind == 1 and (d >> 7) & 3:
            d = PATTERNS[d & 3]
        return d


class Uniform:
    def __init__(self, source, digits=()):
        self.source, self.d = source, list(digits)

    def digit(self, i):
        while len(self.d) <= i:
            if len(self.d) == MAX_DIGITS:
                raise Broken
            self.d.append(self.source.draw())
        return self.d[i]

    def less(self, other):
        i = 0
        while True:
            a, b = self.digit(i), other.digit(i)
            if a != b:
                return a < b
            i += 1

    def interval(self):
        scale = 1 << (32 * len(self.d))
        value = 0
        for d in self.d:
            value = value << 32 | d
        return Fraction(value, scale), Fraction(value + 1, scale)


def bernoulli_half_exp(src):
    y = Uniform(src)
    if y.digit(0) >= 1 << 31:
        return True
    n = 1
    while True:
        z = Uniform(src)
        if not z.less(y):
            return n % 2 == 0
        y, n = z, n + 1


def below(src, m):
    while True:
        d = src.draw()
        if d >= (1 << 32) % m:
            return d % m


def ratio(src, k, x):
    w = below(src, 2 * k + 2)
    return Uniform(src).less(x) if w == 2 * k else w < 2 * k


def accept(src, k, x):
    y, n = x, 0
    while True:
        z = Uniform(src)
        if not z.less(y) or not ratio(src, k, x):
            return n % 2 == 0
        y, n = z, n + 1


def normal(src):
    while True:
        k = 0
        while bernoulli_half_exp(src):
            k += 1
            if k == 256:
                raise Broken
        if not all(bernoulli_half_exp(src) for _ in range(k * (k - 1))):
            continue
        x = Uniform(src)
        if all(accept(src, k, x) for _ in range(k + 1)):
            return k, x


def draw(src, sigma):
    k, x = normal(src)
    s = Fraction(sigma)
    if s * 256 > Fraction(1, 2):  # else every answer is 0 and no digit is asked for
        x.digit(1)
    while True:
        lo, hi = x.interval() if x.d else (Fraction(0), Fraction(1))
        lo, hi = s * (k + lo) + Fraction(1, 2), s * (k + hi) + Fraction(1, 2)
        n = math.floor(lo)
        if n == math.ceil(hi) - 1:
            break
        x.digit(len(x.d))
    return -n if src.draw() >> 31 else n


def draw_rows():
    sigmas = [
        2.0**-20,
        2.0**-9,
        2.0**-9 * 1.5,
        0.25,
        0.3,
        1 / 3,
        2 / 3,
        1.0,
        2.0,
        5.003,
        577.35,
        37813.7,
        1e9 / 7,
        2.0**33 + 1,
        1e15 / 3,
        2.0**52 - 3,
        2.0**52,
    ]
    for kind in (0, 1):
        for i, sigma in enumerate(sigmas):
            src, out = Digits(1000 * kind + i, kind), []
            for _ in range(300):
                out.append(str(draw(src, sigma)))
            yield [kind, 1000 * kind + i, sigma.hex(), " ".join(out)]


def bin_rows():
    for text in ("0.3", "1", "5.003", "577.35", "37813.7"):
        s, width = mp.mpf(float(text)), max(1, round(float(text) / 8))
        below_ = lambda n: mp.ncdf((mp.mpf(n) - mp.mpf(1) / 2) / s)  # P(draw < n)
        edge = 0
        while below_(-(edge + width)) >= mp.mpf(4) / 10**6:
            edge += width
        starts = list(range(-edge, edge + 1, width))
        edges = [None] + starts + ([edge + 1] if width == 1 else []) + [None]
        for lo, hi in zip(edges, edges[1:]):
            p = (mp.mpf(1) if hi is None else below_(hi)) - (mp.mpf(0) if lo is None else below_(lo))
            if hi is None:
                p = mp.ncdf(-(mp.mpf(lo) - mp.mpf(1) / 2) / s)
            yield [text, "-inf" if lo is None else lo, "inf" if hi is None else hi - 1, mp.nstr(p, 25)]


def bound_rows():
    for n in (1, 7, 100, 12345, 500000, 40000000):
        for k in sorted({0, 1, n // 1000, n // 10, n // 2, n - n // 100, n - 1, n}):
            for alpha in (0.05, 5e-4, 1e-9):
                lo = 0.0 if k == 0 else beta.ppf(alpha, k, n - k + 1)
                hi = 1.0 if k == n else beta.isf(alpha, k + 1, n - k)
                yield [k, n, repr(alpha), repr(float(lo)), repr(float(hi))]


def write(path, header, rows):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    side = {
        "made_by": "oracle/rounded_gaussian.py",
        "command": "oracle/rounded_gaussian.py tests/vectors",
        "sha256": digest,
        "python": platform.python_version(),
        "mpmath": mp.__version__,
        "scipy": scipy.__version__,
    }
    with open(path.rsplit(".", 1)[0] + ".json", "w") as f:
        json.dump(side, f, indent=1)
        f.write("\n")


def main():
    out = sys.argv[1]
    write(out + "/privacy_gaussian_bins.csv", ["sigma", "first", "last", "probability"], bin_rows())
    write(out + "/privacy_gaussian_draws.csv", ["kind", "seed", "sigma", "draws"], draw_rows())
    write(out + "/privacy_clopper_pearson.csv", ["k", "n", "alpha", "lower", "upper"], bound_rows())


if __name__ == "__main__":
    main()

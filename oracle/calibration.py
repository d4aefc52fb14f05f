#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Optimal noise for many privacy specifications, the slow way: the textbook formula at 60 digits.

Writes calibration.csv (specification -> sigmas, 25 digits), calibration_parts.csv (the same for records of several
parts, and for pooled second moments) and privacy_gdp.csv (epsilon, mu -> delta) into the folder given. Independent of
src/privacy: delta is the plain difference of two normal tails, mu comes from root finding on its logarithm, and the
supremum for `replace` from a search over the angle between two records in each part, not from the closed form.
"""

import csv
import hashlib
import json
import platform
import random
import sys

import mpmath as mp
from mpmath import mpf

mp.mp.dps = 60
DIGITS = 25
ADJACENCIES = ("add-remove", "replace", "replace-any")
PARTS_HEADER = "epsilon delta adjacency pooled share_count radii share_sums share_moments sigma_count".split()
PARTS_HEADER += ["sigma_sums", "sigma_moments"]


def delta_of(eps, mu):
    tail = lambda x: mp.erfc(x / mp.sqrt(2)) / 2
    a, b = eps / mu - mu / 2, eps / mu + mu / 2
    # relative size of what cancels: work with enough digits that 35 remain
    with mp.workdps(110):
        return +(tail(a) - mp.exp(eps) * tail(b))


def mu_of(eps, delta):
    """Largest mu with delta(eps; mu) <= delta: bracketed secant (Illinois) on log delta over log mu."""
    f = lambda t: mp.log(delta_of(eps, mp.exp(t))) - mp.log(delta)
    lo = hi = mpf(0)
    while f(lo) > 0:
        lo -= 1
    while f(hi) < 0:
        hi += 1
    if lo == hi:
        return mp.exp(lo)
    root = mp.findroot(f, (lo, hi), solver="illinois", tol=mpf(10) ** -45, maxsteps=400, verify=False)
    assert abs(f(root)) < mpf(10) ** -32
    return mp.exp(root)


def replace_sup(a2, b2):
    """sup over rho of 2 a2 (1 - rho) + 2 b2 (1 - rho^2), rho the cosine of two records; concave, so ternary search."""
    g = lambda r: 2 * a2 * (1 - r) + 2 * b2 * (1 - r * r)
    lo, hi = mpf(-1), mpf(1)
    for _ in range(200):
        m1, m2 = lo + (hi - lo) / 3, hi - (hi - lo) / 3
        if g(m1) < g(m2):
            lo = m1
        else:
            hi = m2
    return max(g((lo + hi) / 2), g(mpf(-1)))


def sup(adjacency, a2, b2, c2):
    if adjacency == "add-remove":
        return a2 + b2 + c2
    if adjacency == "replace":
        return replace_sup(a2, b2)
    return max(2 * (a2 + b2 + c2), replace_sup(a2, b2))


def sigmas(eps, delta, adjacency, mechanism, shares, radius):
    if mechanism == "paper":
        mu = mu_of(eps / 2, delta / 2)
        return mpf(0), 2 * radius / mu, 2 * radius**2 / mu
    mu = mu_of(eps, delta)
    w = [mpf(x) for x in shares]
    k = mu**2 / sup(adjacency, w[1], w[2], w[0])
    s_n = mpf(0) if adjacency == "replace" else 1 / mp.sqrt(k * w[0])
    return s_n, radius / mp.sqrt(k * w[1]), radius**2 / mp.sqrt(k * w[2])


def largest(g):
    """The largest g(rho), rho in -1..1, of a concave g."""
    lo, hi = mpf(-1), mpf(1)
    for _ in range(200):
        m1, m2 = lo + (hi - lo) / 3, hi - (hi - lo) / 3
        if g(m1) < g(m2):
            lo = m1
        else:
            hi = m2
    return max(g((lo + hi) / 2), g(mpf(-1)))


def sup_parts(adjacency, pooled, c2, parts):
    """parts: (a2, b2) of each; unit records whose angle in each part is free. What changes, written out:

    one record more      1 count, and in each part a sum and a second moment
    one of the class     in each part the difference of two sums and of two second moments
    of another class     2 counts, 2 sums; second moments in two places, or (pooled) their difference in one
    """
    one = c2 + sum(a2 + b2 for a2, b2 in parts)
    same = sum(largest(lambda r: a2 * (2 - 2 * r) + b2 * (2 - 2 * r * r)) for a2, b2 in parts)
    there = lambda b2: largest(lambda r: b2 * (2 - 2 * r * r)) if pooled else 2 * b2
    other = 2 * c2 + sum(2 * a2 + there(b2) for a2, b2 in parts)
    return {"add-remove": one, "replace": same, "replace-any": max(same, other)}[adjacency]


def parts_rows(rng):
    menu = [(24, 75), (1, 1), (8, 25), (16, 50), (0.5, 300), (90, 5)]
    for i in range(360):
        eps = float("%.6g" % 10 ** rng.uniform(-2, 2))
        delta = float("%.6g" % 10 ** rng.uniform(-12, -1))
        adjacency, pooled, n = ADJACENCIES[i % 3], i // 3 % 2, 1 + i // 6 % 4
        count = (1, 5, 0.25)[rng.randrange(3)]
        parts = [menu[rng.randrange(len(menu))] for _ in range(n)]
        radii = [(1.0, 256.0, 64.0, 4096.0, 3.5)[rng.randrange(5)] for _ in range(n)]
        squares = [(mpf(a), mpf(b)) for a, b in parts]
        k = mu_of(mpf(eps), mpf(delta)) ** 2 / sup_parts(adjacency, pooled, mpf(count), squares)
        s_n = mpf(0) if adjacency == "replace" else 1 / mp.sqrt(k * count)
        sums = [mpf(r) / mp.sqrt(k * a) for r, (a, _) in zip(radii, parts)]
        moments = [mpf(r) ** 2 / mp.sqrt(k * b) for r, (_, b) in zip(radii, parts)]
        listed = lambda values: " ".join(map(repr, map(float, values)))
        spec = [repr(eps), repr(delta), adjacency, pooled, repr(float(count)), listed(radii)]
        yield [*spec, listed(a for a, _ in parts), listed(b for _, b in parts), text(s_n)] + [
            " ".join(map(text, x)) for x in (sums, moments)
        ]


def text(x):
    return mp.nstr(x, DIGITS, min_fixed=0, max_fixed=0, strip_zeros=False) if x else "0"


def calibration_rows(rng):
    shares_menu = [(1, 24, 75), (1, 1, 1), (1, 10, 1), (5, 90, 5), (0.5, 2, 300)]
    for i in range(2200):
        eps = float("%.6g" % 10 ** rng.uniform(-2, 2))
        delta = float("%.6g" % 10 ** rng.uniform(-12, -1))
        if i < 40:  # the corners and the edges
            eps = (0.01, 1.0, 10.0, 100.0)[i % 4]
            delta = (1e-12, 1e-9, 1e-5, 1e-2, 0.1)[i // 4 % 5]
        adjacency = ADJACENCIES[i % 3]
        mechanism = "paper" if adjacency == "replace" and i % 2 else "joint"
        shares = shares_menu[rng.randrange(len(shares_menu))]
        radius = (1.0, 256.0, 64.0, 4096.0)[rng.randrange(4)]
        s = sigmas(mpf(eps), mpf(delta), adjacency, mechanism, shares, mpf(radius))
        spec = [repr(eps), repr(delta), adjacency, mechanism, *map(repr, map(float, shares)), repr(radius)]
        yield [*spec, *map(text, s)]


def gdp_rows(rng):
    for i in range(1200):
        eps = float("%.6g" % 10 ** rng.uniform(-4, 3))
        log10_delta = rng.uniform(-300, 0) if i % 2 else rng.uniform(-14, 0)
        mu = float("%.6g" % mu_of(mpf(eps), mpf(10) ** log10_delta))
        yield [repr(eps), repr(mu), text(delta_of(mpf(eps), mpf(mu)))]


def write(path, header, rows):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    side = {
        "made_by": "oracle/calibration.py",
        "command": "oracle/calibration.py tests/vectors",
        "sha256": digest,
        "python": platform.python_version(),
        "mpmath": mp.__version__,
        "digits": DIGITS,
    }
    with open(path.rsplit(".", 1)[0] + ".json", "w") as f:
        json.dump(side, f, indent=1)
        f.write("\n")


def main():
    out = sys.argv[1]
    header = [
        "epsilon",
        "delta",
        "adjacency",
        "mechanism",
        "share_count",
        "share_sum",
        "share_moment",
        "radius",
        "sigma_count",
        "sigma_sum",
        "sigma_moment",
    ]
    write(out + "/calibration.csv", header, calibration_rows(random.Random(1)))
    write(out + "/calibration_parts.csv", PARTS_HEADER, parts_rows(random.Random(3)))
    write(out + "/privacy_gdp.csv", ["epsilon", "mu", "delta"], gdp_rows(random.Random(2)))


if __name__ == "__main__":
    main()

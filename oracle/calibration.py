#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Optimal noise for many privacy specifications, the slow way: the textbook formula at 60 digits.

Writes calibration.csv (specification -> sigmas, 25 digits) and privacy_gdp.csv (epsilon, mu -> delta) into the folder
given. Independent of src/privacy: delta is the plain difference of two normal tails, mu comes from root finding on its
logarithm, and the supremum for `replace` from a search over the angle between two records, not from the closed form.
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
    write(out + "/privacy_gdp.csv", ["epsilon", "mu", "delta"], gdp_rows(random.Random(2)))


if __name__ == "__main__":
    main()

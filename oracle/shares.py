#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Noise in shares from its definitions: zCDP at 50 digits, plans in fractions, whole shares from a known stream.

privacy_zcdp.csv      rho that belongs to (epsilon, delta): the infimum over Renyi orders
privacy_shares.json   plans that are honest and plans that are not; blocks that can be sums of records and blocks that
                      cannot; what a share is, and what a total becomes

"shares.py check FOLDER" works all of it out again, and looks at the theorem behind it (a sum of discrete Gaussians
against one) by exact convolution.
"""

import csv
import functools
import json
import math
import sys
from fractions import Fraction

import mpmath as mp

from discrete_gaussian import Digits, draw, write_csv, write_json

mp.mp.dps = 50
VARIANCE_MIN, COUNT_COMFORT, SCALE_MAX, ENTRIES = 4, 16, 1 << 20, 1 << 32
ADJACENCIES = ("add-remove", "replace", "replace-any")
FLOOR_COST = 10  # Kairouz, Liu, Steinke 2021: tau = 10 sum ...
KERNEL = 3  # share_gdp.md: r^2


# ---- zCDP ----


def log_delta(epsilon, rho):
    """min over x = alpha - 1 > 0; the slope in x increases, so its root is bracketed and bisected in log x."""
    slope = lambda x: rho * (2 * x + 1) - epsilon - mp.log1p(1 / x)
    lo, hi = mp.mpf(-800), mp.mpf(800)
    for _ in range(170):
        mid = (lo + hi) / 2
        if slope(mp.exp(mid)) < 0:
            lo = mid
        else:
            hi = mid
    x = mp.exp((lo + hi) / 2)
    return x * ((x + 1) * rho - epsilon) + x * mp.log(x / (x + 1)) - mp.log(x + 1)


@functools.cache
def rho_of(epsilon, delta):
    epsilon, target = mp.mpf(epsilon), mp.log(mp.mpf(delta))
    lo = hi = mp.mpf(1)
    while log_delta(epsilon, lo) > target:
        lo /= 16
    while log_delta(epsilon, hi) <= target:
        hi *= 16
    for _ in range(90):
        mid = (lo + hi) / 2
        if log_delta(epsilon, mid) <= target:
            lo = mid
        else:
            hi = mid
    return lo


def zcdp_rows():
    for epsilon in (1e-4, 1e-2, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0, 1000.0):
        for delta in (1e-300, 1e-100, 1e-20, 1e-9, 1e-5, 1e-2, 0.3):
            yield [repr(epsilon), repr(delta), mp.nstr(rho_of(epsilon, delta), 30)]


# ---- GDP ----


@functools.cache
def mu_of(epsilon, delta):
    delta_of = lambda mu: mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)
    lo = hi = mp.mpf(1)
    while delta_of(lo) > delta:
        lo /= 2
    while delta_of(hi) <= delta:
        hi *= 2
    for _ in range(150):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if delta_of(mid) <= delta else (lo, mid)
    return lo


@functools.cache
def ratio_cost(variance, n):
    """share_gdp.md, steps 4 and 7, for 2^32 numbers; terms beyond k = 200 are as large as that one at most."""
    theta = lambda v: 2 * mp.fsum(mp.exp(-2 * mp.pi**2 * v * i * i) for i in range(1, 8))
    bound = lambda v: mp.mpf("4.01") * mp.exp(-2 * mp.pi**2 * v)
    for v in (mp.mpf(KERNEL), mp.mpf(variance) / 2):
        assert mp.log((1 + theta(v)) / (1 - theta(v))) < bound(v)
    total = bound(KERNEL) + mp.fsum(bound(variance * mp.mpf(k) / (k + 1)) for k in range(1, min(n, 200)))
    if n > 200:
        total += (n - 200) * bound(variance * mp.mpf(200) / 201)
    return mp.mpf("5.02") * ENTRIES * total


# ---- plans ----


def mu_squared(adjacency, a, b, c):
    joint = a**2 + b**2 + c**2
    swap = 4 * a**2 if a**2 > 2 * b**2 else 2 * a**2 + 2 * b**2 + a**4 / (2 * b**2)
    return {"add-remove": joint, "replace": swap, "replace-any": max(2 * joint, swap)}[adjacency]


@functools.cache
def tau(variance, n):
    """Exactly as the theorem has it."""
    return FLOOR_COST * mp.fsum(mp.exp(-2 * mp.pi**2 * variance * mp.mpf(k) / (k + 1)) for k in range(1, n))


def number(dyadic):
    return mp.mpf(dyadic[0]) / mp.mpf(2) ** dyadic[1]


def rho_of_plan(plan):
    """What `counted` shares of these variances cost."""
    n, r, var = plan["counted"], mp.mpf(plan["radius"]), [number(v) for v in plan["variance"]]
    c = plan["count_scale"] / mp.sqrt(n * var[0]) if var[0] > 0 else mp.mpf(0)
    mu = mp.sqrt(mu_squared(plan["adjacency"], r / mp.sqrt(n * var[1]), r**2 / mp.sqrt(n * var[2]), c))
    return (mu + tau(min(v for v in var if v > 0), n) * mp.sqrt(ENTRIES)) ** 2 / 2


def mu_of_plan(plan):
    """What `counted` shares of these variances are worth as a Gaussian mechanism."""
    n, r, var = plan["counted"], mp.mpf(plan["radius"]), [number(v) for v in plan["variance"]]
    least = min(v for v in var if v > 0)
    if least < 1 or n * least < 4:
        return mp.inf
    left = [n * v - KERNEL for v in var]
    c = plan["count_scale"] / mp.sqrt(left[0]) if var[0] > 0 else mp.mpf(0)
    b = r**2 / mp.sqrt(min(left[2], 2 * left[3]))
    return mp.sqrt(mu_squared(plan["adjacency"], r / mp.sqrt(left[1]), b, c)) + ratio_cost(least, n)


def dyadic_up(v):
    shift = 0
    while v * 2**shift < 1 << 39:
        shift += 1
    return [int(mp.ceil(v * 2**shift)), shift]


def make_plan(epsilon, delta, adjacency, counted, sites, radius=64, split=(1, 24, 75)):
    mu = mu_of(epsilon, delta)
    c, a, b = (mp.sqrt(mp.mpf(s)) for s in split)
    if adjacency == "replace":
        c = mp.mpf(0)
    size = mp.sqrt(mu_squared(adjacency, a, b, c))
    least = min((radius * size / mu / a) ** 2, (radius**2 * size / mu / b) ** 2 / 2, 16 * counted) / counted
    unit = size / (mu - ratio_cost(max(least, mp.mpf(VARIANCE_MIN)), counted))
    scale, variance = 1, [[0, 0]]
    if c > 0:
        v = (unit / c) ** 2 / counted
        while v < COUNT_COMFORT and scale < SCALE_MAX:
            scale, v = 2 * scale, 4 * v
        variance = [dyadic_up(max(v + mp.mpf(KERNEL) / counted, VARIANCE_MIN))]
    variance.append(dyadic_up(max(((radius * unit / a) ** 2 + KERNEL) / counted, VARIANCE_MIN)))
    variance.append(dyadic_up(max(((radius**2 * unit / b) ** 2 + 2 * KERNEL) / counted, VARIANCE_MIN)))
    variance.append(dyadic_up(max(number(variance[2]) / 2, VARIANCE_MIN)))
    plan = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "radius": radius, "budget_split": list(split)}
    plan |= {"counted": counted, "sites": sites, "count_scale": scale, "variance": variance}
    most = max(number(v) for v in variance)
    plan["tail"] = int(mp.ceil(mp.sqrt(2 * 113 * mp.log(2) * most * sites)))
    return claim(plan)


def claim(plan):
    up = 1 + mp.mpf(10) ** -13
    return plan | {"rho": float(rho_of_plan(plan) * up), "mu": float(mu_of_plan(plan) * up)}


def judge_plan(plan):
    """True when the plan's noise gives what it claims: written from share_plan.md, not from share.c."""
    scale, var = plan["count_scale"], plan["variance"]
    public = var[0][0] == 0
    if not 1 <= plan["counted"] <= plan["sites"] or scale < 1 or scale & (scale - 1) or scale > SCALE_MAX:
        return False
    if public and plan["adjacency"] != "replace":
        return False
    if any(not 1 <= num < 1 << 62 or shift > 62 for num, shift in var[public:]):
        return False
    if 2 * Fraction(var[3][0], 2 ** var[3][1]) < Fraction(var[2][0], 2 ** var[2][1]):
        return False
    slack = 1 + mp.mpf(10) ** -12
    return bool(rho_of_plan(plan) <= plan["rho"] * slack and mu_of_plan(plan) <= mp.mpf(plan["mu"]) * slack)


def judge_block(block, length, radius, scale):
    n, sums, rest = block[0], block[1 : 1 + length], iter(block[1 + length :])
    moment = [[next(rest) for _ in range(i, length)] for i in range(length)]
    return (
        n >= 0
        and n * radius**2 <= 1 << 61
        and n * scale <= 1 << 61
        and all(abs(s) <= n * radius for s in sums)
        and all(abs(x) <= n * radius**2 for row in moment for x in row)
        and all(row[0] >= 0 for row in moment)
        and sum(row[0] for row in moment) <= n * radius**2
    )


def verdict(case):
    if not judge_plan(case["plan"]):
        return "FKT_E_ARG"
    size = (case["length"] + 1) * (case["length"] + 2) // 2
    for c in range(case["classes"]):
        block = case["exact"][c * size : (c + 1) * size]
        if not judge_block(block, case["length"], case["plan"]["radius"], case["plan"]["count_scale"]):
            return "FKT_E_MISMATCH"
    return "FKT_OK"


def share(case):
    plan, length, src, at, x = case["plan"], case["length"], Digits(case["seed"], 3), 0, []
    variance = [Fraction(num, 1 << shift) for num, shift in plan["variance"]]

    def put(value, which):
        x.append(value + (draw(src, variance[which]) if variance[which] else 0))

    for _ in range(case["classes"]):
        put(case["exact"][len(x)] * plan["count_scale"], 0)
        for _ in range(length):
            put(case["exact"][len(x)], 1)
        for i in range(length):
            for j in range(i, length):
                put(case["exact"][len(x)], 2 if i == j else 3)
    return x


def gather(case):
    """Halves to the even integer, as round() of a fraction has it."""
    scale, size = case["plan"]["count_scale"], (case["length"] + 1) * (case["length"] + 2) // 2
    out = list(case["total"])
    for c in range(case["classes"]):
        out[c * size] = round(Fraction(out[c * size], scale))
    return out


def sigmas(plan, shares):
    var = [number(v) for v in plan["variance"]]
    count = shares * var[0] / plan["count_scale"] ** 2
    if var[0] > 0 and plan["count_scale"] > 1:
        count += (mp.mpf(plan["count_scale"]) ** 2 + 2) / (12 * mp.mpf(plan["count_scale"]) ** 2)
    return [float(mp.sqrt(count)), float(mp.sqrt(shares * var[1])), float(mp.sqrt(shares * var[2]))]


# ---- cases ----

EXACT = [100, 5, -700, 3000, 41, 2500, 7, 0, 448, 28672, -3, 0]  # two classes, length 2, radius 64


def good_cases():
    for i, (epsilon, counted, sites) in enumerate(((1.0, 1, 1), (1.0, 3, 4), (10.0, 90, 120), (0.1, 700, 1000))):
        for j, adjacency in enumerate(ADJACENCIES):
            plan = make_plan(epsilon, 1e-5, adjacency, counted, sites)
            yield {"name": f"{adjacency}, {counted} of {sites}", "plan": plan, "seed": 10 * i + j}
    yield {"name": "variances raised", "plan": make_plan(100.0, 1e-5, "add-remove", 60000, 70000, radius=8), "seed": 50}


def spoiled(plan, **changes):
    out = json.loads(json.dumps(plan))
    for key, change in changes.items():
        if key.startswith("v"):
            out["variance"][int(key[1:])] = change
        else:
            out[key] = change
    return out


def bad_cases():
    plan = make_plan(1.0, 1e-5, "add-remove", 90, 120)
    v, rho = plan["variance"], plan["rho"]
    less = lambda i: {f"v{i}": [v[i][0] * 99 // 100, v[i][1]]}
    for name, bad in (
        ("counts with less noise", spoiled(plan, **less(0))),
        ("sums with less noise", spoiled(plan, **less(1))),
        ("squares with less noise", spoiled(plan, **less(2))),
        ("cross terms with less noise", spoiled(plan, **less(3))),
        ("counts without noise", spoiled(plan, v0=[0, 0])),
        ("sums without noise", spoiled(plan, v1=[0, 0])),
        ("an exponent of 63", spoiled(plan, v1=[v[1][0], 63])),
        ("a numerator of 2^62", spoiled(plan, v2=[1 << 62, 0])),
        ("no count scale", spoiled(plan, count_scale=0)),
        ("a count scale of 3", spoiled(plan, count_scale=3)),
        ("a count scale of 2^21", spoiled(plan, count_scale=1 << 21)),
        ("counts scaled more than their noise", spoiled(plan, count_scale=2 * plan["count_scale"])),
        ("a smaller rho", spoiled(plan, rho=0.99 * rho)),
        ("a smaller mu", spoiled(plan, mu=0.99 * plan["mu"])),
        ("resting on fewer shares", spoiled(plan, counted=80)),
        ("resting on no share", spoiled(plan, counted=0)),
        ("resting on more shares than sites", spoiled(plan, counted=121)),
        ("a larger ball", spoiled(plan, radius=65)),
        ("another adjacency", spoiled(plan, adjacency="replace-any")),
    ):
        yield {"name": name, "plan": bad}
    narrow = make_plan(1.0, 1e-5, "add-remove", 90, 120)
    narrow["variance"] = [[1, 0], [1, 0], [1, 0], [1, 0]]  # sigma 1: here the lattice shows
    narrow["radius"], narrow["count_scale"] = 1, 1
    narrow = claim(narrow)
    honest = narrow["rho"]
    without = mp.mpf(1) / 2 * mu_squared("add-remove", *(1 / mp.sqrt(mp.mpf(90)),) * 3)
    assert without < honest / 2
    yield {"name": "what the lattice costs left out", "plan": spoiled(narrow, rho=float(without * 1.0001))}
    few = make_plan(100.0, 1e-5, "add-remove", 2, 2, radius=8)
    bare = few["mu"] * (1 - 1 / 256)
    assert mp.sqrt(2 * rho_of_plan(few)) < bare, "without the kernel's 3 the noise would seem to give as much"
    yield {"name": "what the kernel costs left out", "plan": spoiled(few, mu=bare)}
    wide = spoiled(
        plan, count_scale=SCALE_MAX, v0=[math.ceil(number(v[0])) * SCALE_MAX**2 // plan["count_scale"] ** 2, 0]
    )
    wide = claim(wide)
    for name, block, p in (
        ("a sum beyond the ball", [100, 6401, 0, 0, 0, 0], plan),
        ("a sum far below zero", [100, 0, -6401, 0, 0, 0], plan),
        ("a negative count", [-1, 0, 0, 0, 0, 0], plan),
        ("a negative square", [100, 0, 0, -1, 0, 0], plan),
        ("a cross term beyond the ball", [100, 0, 0, 0, 409601, 0], plan),
        ("the trace of longer records", [100, 0, 0, 409000, 0, 409000], plan),
        ("something and no record", [0, 1, 0, 0, 0, 0], plan),
        ("a count too large for its scale", [1 << 45, 0, 0, 0, 0, 0], wide),
    ):
        yield {"name": name, "plan": p, "exact": EXACT[:6] + block}


def share_cases():
    for case in good_cases():
        case = {"exact": EXACT, "classes": 2, "length": 2} | case
        if case["plan"]["radius"] == 8:
            case["exact"] = [100, 5, -700, 3000, 41, 2500, 7, 0, 56, 400, -3, 0]
        assert verdict(case) == "FKT_OK", case["name"]
        case["verdict"], case["x"] = "FKT_OK", share(case)
        half = case["plan"]["count_scale"] // 2
        case["total"] = [5 * case["plan"]["count_scale"] + half] + case["x"][1:6] + [-half] + case["x"][7:]
        case["noised"], case["gathered"] = gather(case), case["plan"]["sites"]
        case["sigma"] = sigmas(case["plan"], case["gathered"])
        yield case
    for i, case in enumerate(bad_cases()):
        case = {"exact": EXACT, "classes": 2, "length": 2, "seed": 100 + i} | case
        case["verdict"] = verdict(case)
        assert case["verdict"] != "FKT_OK", case["name"]
        yield case


# ---- the theorem ----


def convolution_gap(variance, n):
    """max over integers near 0 of |log P(sum of n) - log P(one of n times the variance)|, at 50 digits."""
    reach = int(30 * math.sqrt(variance * n)) + 5

    def pmf(v):
        w = [mp.exp(-mp.mpf(x) ** 2 / (2 * v)) for x in range(-reach, reach + 1)]
        total = mp.fsum(w)
        return [x / total for x in w]

    one, total = pmf(mp.mpf(variance)), None
    for _ in range(n):
        if total is None:
            total = one
            continue
        near = range(-reach, reach + 1)
        total = [mp.fsum(total[x - y + reach] * one[y + reach] for y in near if -reach <= x - y <= reach) for x in near]
    want = pmf(mp.mpf(variance) * n)
    core = range(reach - 2 * n, reach + 2 * n + 1)
    return max(abs(mp.log(total[i] / want[i])) for i in core)


def check_theorem():
    for variance, n in ((0.25, 2), (0.25, 4), (0.5, 3), (1.0, 3)):
        gap, bound = convolution_gap(variance, n), tau(variance, n) / 2
        assert 0 < gap <= bound, (variance, n, gap, bound)
        print(f"sigma^2 {variance}, {n} shares: |log ratio| {mp.nstr(gap, 3)}, theorem {mp.nstr(bound, 3)}")


def check(folder):
    with open(f"{folder}/privacy_shares.json") as f:
        assert json.load(f)["cases"] == json.loads(json.dumps(list(share_cases()))), "shares differ"
    with open(f"{folder}/privacy_zcdp.csv") as f:
        assert list(csv.reader(f))[1:] == list(zcdp_rows()), "zCDP differs"
    check_theorem()
    print("all agree")


def main():
    me, (verb, folder) = "shares.py", sys.argv[1:]
    if verb == "check":
        return check(folder)
    what = "the largest rho whose zCDP gives (epsilon, delta)"
    write_csv(folder, "privacy_zcdp.csv", what, ["epsilon", "delta", "rho"], zcdp_rows(), me)
    what = "plans for noise in shares, honest and not, and what a share and a total become under them"
    write_json(folder, "privacy_shares.json", what, list(share_cases()), me)


if __name__ == "__main__":
    main()

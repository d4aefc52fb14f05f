#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cohorts.py - the arithmetic of src/privacy/cohorts.md in fractions: what a split into cohorts costs.

Usage: cohorts.py            checks the figures that the pages quote
       cohorts.py table      the tables of docs/scale.md
"""

import math
import sys
from fractions import Fraction

import mpmath


def factor(cohorts):
    """Variance against one cohort of all sites: cohorts is a list of (counted, survivors); step 4."""
    counted = sum(n for n, _ in cohorts)
    survivors = sum(s for _, s in cohorts)
    return sum(Fraction(s, n) for n, s in cohorts) * Fraction(counted, survivors)


def log_choose(n, k):
    return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)


def bits(sites, colluding, cohort, tolerated):
    """-log2 of a bound for P(more than `tolerated` colluding sites are in some cohort), cohorts being drawn at random:
    a sum of hypergeometric terms, times the number of cohorts."""
    total = log_choose(sites, cohort)
    terms = [
        mpmath.exp(log_choose(colluding, x) + log_choose(sites - colluding, cohort - x) - total)
        for x in range(tolerated + 1, min(cohort, colluding, tolerated + 200) + 1)
    ]
    return float(-mpmath.log((sum(terms) + terms[-1]) * -(-sites // cohort), 2)) if terms else math.inf


def covered(sites, cohort, tolerated, security=40):
    """The most colluding sites for which no cohort exceeds `tolerated`, except with 2^-security over all cohorts."""
    low, high = 0, sites * tolerated // cohort
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bits(sites, middle, cohort, tolerated) >= security else (low, middle)
    return low


def tail(sites, colluding, cohort, tolerated):
    """P(more than `tolerated` of the colluding sites are among `cohort` drawn ones): the first term, and each from the
    one before."""
    first = max(tolerated + 1, cohort - sites + colluding)
    if first > min(cohort, colluding):
        return mpmath.mpf(0)
    term = mpmath.exp(
        log_choose(colluding, first) + log_choose(sites - colluding, cohort - first) - log_choose(sites, cohort)
    )
    total = term
    for x in range(first, min(cohort, colluding)):
        term *= mpmath.mpf((colluding - x) * (cohort - x)) / ((x + 1) * (sites - colluding - cohort + x + 1))
        total += term
        if term < total * mpmath.mpf("1e-25"):
            break
    return total


def covered_by(sites, cohorts, security=40):
    """The same as `covered` for cohorts of any sizes: a list of (sites, tolerated). The program enlarges tails by 10^-4
    before it compares them, and so does this."""
    low, high = 0, sites
    with mpmath.workdps(30):
        while high - low > 1:
            middle = (low + high) // 2
            each = {cohort: tail(sites, middle, *cohort) for cohort in set(cohorts)}
            total = mpmath.fsum(each[cohort] for cohort in cohorts) * mpmath.mpf("1.0001")
            low, high = (middle, high) if total <= mpmath.mpf(2) ** -security else (low, middle)
    return low


def check():
    assert factor([(800, 1000)] * 100) == 100
    assert factor([(800, 900), (800, 1000), (800, 950)]) == 3  # equal cohorts, whatever the survivors
    assert factor([(1520, 1900), (80, 100)]) == 2  # the same share of survivors, whatever the sizes
    assert factor([(800, 1000)]) == 1
    assert factor([(80, 100), (800, 900)]) == Fraction(209, 100)  # neither
    assert 47 < bits(100000, 4000, 1000, 100) < 48 and 28 < bits(100000, 5000, 1000, 100) < 29
    assert bits(100000, 4350, 1000, 100) >= 40 > bits(100000, 4360, 1000, 100)  # 4.35 %
    exact = sum(Fraction(math.comb(60, x) * math.comb(140, 40 - x), math.comb(200, 40)) for x in range(21, 41))
    assert abs(bits(200, 60, 40, 20) + math.log2(exact * 5)) < 1e-9
    assert covered_by(200, [(40, 20)] * 5) <= 60
    assert covered_by(100000, [(1000, 100)] * 100) in (covered(100000, 1000, 100), covered(100000, 1000, 100) - 1)
    print("factors and probabilities: as the page states them")


def table():
    for share in (2, 3, 4, 5, 6):
        print(f"{share} % of 100,000 collude: 2^-{bits(100000, 1000 * share, 1000, 100):.1f} for 100 cohorts of 1,000")
    for cohort in (200, 500, 1000, 2000, 5000):
        share = covered(100000, cohort, cohort // 10) // 10 / 100  # percent, rounded down: it is a bound
        print(f"cohorts of {cohort}: 10 % in each covers {share:.2f} % of all")


if __name__ == "__main__":
    mpmath.mp.dps = 30
    table() if sys.argv[1:] == ["table"] else check()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The theorem of src/privacy/share_gdp.md against exact convolutions, at 30 digits.

usage: oracle/share_gdp.py check

Small variances, where the lattice shows: the shares are convolved exactly, the kernel is integrated numerically, and
each step of the page is held against what comes out: the pointwise ratios, delta at many epsilons for one and for two
numbers with different variances, and what the Gaussian formula would have claimed without the terms that pay for the
lattice.
"""

import itertools
import math
import sys

import mpmath as mp

mp.mp.dps = 30
RATIO_MU = 4 * mp.sqrt(mp.pi / 2)


def theta(variance):
    """e of step 1: 2 sum over i of exp(-2 pi^2 variance i^2)."""
    return 2 * mp.nsum(lambda i: mp.exp(-2 * mp.pi**2 * variance * i * i), [1, mp.inf])


def log_ratio(e):
    return mp.log((1 + e) / (1 - e))


def ratio_of_sum(variance, n):
    """Step 1: n shares against one discrete Gaussian."""
    return mp.fsum(log_ratio(theta(mp.mpf(variance) * k / (k + 1))) for k in range(1, n))


def reach_of(variance):
    return int(12 * math.sqrt(variance)) + 4


def discrete(variance, reach):
    w = [mp.exp(-mp.mpf(x) ** 2 / (2 * mp.mpf(variance))) for x in range(-reach, reach + 1)]
    total = mp.fsum(w)
    return [x / total for x in w]


def total_of(variance, n):
    """P of n shares on -reach..reach."""
    reach = reach_of(variance * n)
    one = discrete(variance, reach)
    total = one
    for _ in range(n - 1):
        near = range(-reach, reach + 1)
        total = [mp.fsum(total[x - y + reach] * one[y + reach] for y in near if -reach <= x - y <= reach) for x in near]
    return total, reach


def processed(variance, kernel, z):
    """Step 2: the probability of z when N(0, variance - kernel) is moved to an integer by the kernel. Where exp(-x^2/2)
    is below 1e-30 nothing is left to integrate."""
    tau2, r2 = mp.mpf(variance) - kernel, mp.mpf(kernel)
    middle, width = tau2 / variance * z, 12 * mp.sqrt(tau2 * r2 / variance)
    reach = reach_of(kernel)

    def f(y):
        near = int(mp.nint(y))
        mass = mp.fsum(mp.exp(-((x - y) ** 2) / (2 * r2)) for x in range(near - reach, near + reach + 1))
        return mp.exp(-(y**2) / (2 * tau2) - (z - y) ** 2 / (2 * r2)) / mass

    knots = [middle + width * i / 6 for i in range(-6, 7)]
    return mp.quad(f, knots) / mp.sqrt(2 * mp.pi * tau2)


def gaussian_delta(epsilon, mu):
    return mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


def exact_delta(parts, epsilon):
    """parts: (P, reach, shift) of independent numbers; sum of max(0, P - e^epsilon P') over all points. Points beyond
    the reach have less than 1e-30 of the mass, and are left out of P alone, which can only lower the exact value."""
    best = mp.mpf(0)
    lists = []
    for p, reach, shift in parts:
        at = lambda x: p[x + reach] if -reach <= x <= reach else mp.mpf(0)
        lists.append([(at(x), at(x - shift)) for x in range(-reach, reach + 1)])
    factor = mp.exp(epsilon)
    for point in itertools.product(*lists):
        best += max(mp.fprod(a for a, _ in point) - factor * mp.fprod(b for _, b in point), 0)
    return best


def check_ratios():
    for variance, n in ((0.25, 2), (0.25, 4), (0.5, 3), (1.0, 3)):
        total, reach = total_of(variance, n)
        one = discrete(variance * n, reach)
        core = range(reach - 4 * n, reach + 4 * n + 1)
        worst, bound = max(abs(mp.log(total[i] / one[i])) for i in core), ratio_of_sum(variance, n)
        assert bound / 1000 < worst <= bound, (variance, n, worst, bound)
        print(f"{n} shares of variance {variance}: |log ratio| {mp.nstr(worst, 3)}, step 1 has {mp.nstr(bound, 3)}")
    for variance, kernel in ((1.0, 0.25), (1.0, 0.5), (2.0, 1.0), (4.0, 0.5)):
        reach = reach_of(variance)
        one = discrete(variance, reach)
        worst = max(abs(mp.log(one[z + reach] / processed(variance, kernel, z))) for z in (-5, 0, 1, 6))
        bound = log_ratio(theta(mp.mpf(kernel)))
        assert 0 < worst <= bound, (variance, kernel, worst, bound)
        print(f"variance {variance}, kernel {kernel}: |log ratio| {mp.nstr(worst, 3)}, step 2 has {mp.nstr(bound, 3)}")


def check_delta():
    """Exact delta never exceeds the claim; without its terms the Gaussian formula is exceeded somewhere."""
    exceeded = 0
    for kinds, kernel in (
        (((1.0, 2, 1),), 0.5),
        (((1.0, 4, 2),), 0.75),
        (((4.0, 1, 3),), 3.0),
        (((0.5, 3, 1),), 0.5),
        (((1.0, 2, 1), (2.0, 2, -1)), 0.5),
        (((0.5, 2, 1), (0.5, 3, 2)), 0.4),
    ):
        parts = [total_of(variance, n) + (shift,) for variance, n, shift in kinds]
        bare = mp.sqrt(mp.fsum(mp.mpf(shift) ** 2 / (variance * n) for variance, n, shift in kinds))
        reduced = mp.sqrt(mp.fsum(mp.mpf(shift) ** 2 / (variance * n - kernel) for variance, n, shift in kinds))
        gap = mp.fsum(ratio_of_sum(v, n) + log_ratio(theta(mp.mpf(kernel))) for v, n, _ in kinds)
        claim, tightest = reduced + RATIO_MU * gap, mp.inf
        for epsilon in (mp.mpf(i) / 8 for i in range(0, 33, 4 if len(kinds) > 1 else 1)):
            exact = exact_delta(parts, epsilon)
            assert exact <= gaussian_delta(epsilon, claim), (kinds, epsilon)
            two_step = mp.exp(gap) * gaussian_delta(epsilon - 2 * gap, reduced)
            assert exact <= two_step, (kinds, epsilon, "step 3")
            exceeded += exact > gaussian_delta(epsilon, bare)
            tightest = min(tightest, gaussian_delta(epsilon, claim) / exact)
        print(f"{kinds}: mu {mp.nstr(bare, 5)} without, {mp.nstr(claim, 5)} claimed; tightest {mp.nstr(tightest, 4)}")
    assert exceeded > 0, "no case shows that the terms are needed"
    print(f"the Gaussian formula without the terms is exceeded at {exceeded} points")


def check_quantiles():
    """Step 4: a factor e^H on probabilities moves a quantile by at most 2 sqrt(pi/2) H."""
    z = lambda a: -mp.sqrt(2) * mp.erfinv(2 * a - 1)
    for h in (mp.mpf("1e-9"), mp.mpf("0.01"), mp.mpf("0.5")):
        for i in range(1, 200):
            a = mp.mpf(i) / 200
            low = max(mp.exp(-h) * a, 1 - mp.exp(h) * (1 - a))
            assert z(low) - z(a) <= 2 * mp.sqrt(mp.pi / 2) * h, (h, a)
    print("quantiles move as step 4 says")


def main():
    assert sys.argv[1:] == ["check"], __doc__
    check_quantiles()
    check_ratios()
    check_delta()
    print("all agree")


if __name__ == "__main__":
    main()

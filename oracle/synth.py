#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/synth/: makes tests/vectors/synth/estimate.bin. Written from the formulas, not from the C code.

usage: oracle/synth.py OUT.bin

Layout, little-endian: int64 K, m; float64 sigma_count, sigma_sum, sigma_moment, unit, direction_square,
direction_slack; int64 noised (K, (m+1)(m+2)/2); then, for each of (clamp tau=1e-3), (rie), (rie, pool=0.5),
(clamp tau=1e-3, direction), (clamp tau=1e-3, direction, sigma_count=0): float64 count (K), count_noise (K),
mean (K,m), cov (K,m,m), noise_edge (K), mean_noise (K), signal (K). direction: the first m-1 coordinates of each
record have one length.
"""

import sys

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import brentq

mp.dps = 60


def inverse(count, sigma):
    """1/n and 1/n^2 by numerical integration of their defining integrals (estimate.md section 3)."""
    if sigma == 0:
        return 1 / count, 1 / count**2
    t = mpf(float(count)) / mpf(float(sigma))
    one = mp.quad(lambda x: mp.exp(-x * t - x * x / 2), [0, 1 / (1 + t), 5 / (1 + t), 40 / (1 + t), mp.inf])
    two = mp.quad(lambda x: x * mp.exp(-x * t - x * x / 2), [0, 1 / (1 + t), 5 / (1 + t), 40 / (1 + t), mp.inf])
    return float(one / mpf(float(sigma))), float(two / mpf(float(sigma)) ** 2)


def isotonic(x):
    """max over a <= i of min over b >= i of the average of a..b."""
    m = len(x)
    c = np.concatenate([[0], np.cumsum(x)])
    return np.array(
        [max(min((c[b + 1] - c[a]) / (b + 1 - a) for b in range(i, m)) for a in range(i + 1)) for i in range(m)]
    )


def rie(values, sd):
    m = len(values)
    e2 = m * sd**2 / 2
    g = np.array([np.mean([1 / (v - u - 1j * np.sqrt(e2 / m)) for u in values]).real for v in values])
    x = isotonic(values - 2 * e2 * g)
    target = max(values.sum(), np.sqrt(m) * sd)
    excess = lambda shift: np.maximum(x - shift, 0).sum() - target
    if excess(0) <= 0:
        return np.maximum(x, 0)
    return np.maximum(x - brentq(excess, 0, x.max(), xtol=1e-18, rtol=1e-15), 0)


def two_counts(count, diagonal, sigma, square, slack):
    """The most likely (count, diagonal) when diagonal.sum() / square = count + an error of `slack` per record, by
    weighted least squares in all 1 + d unknowns; with the covariance of the answer. estimate.md section 5."""
    d = len(diagonal)
    weight = np.array([0 if sigma[0] == 0 else sigma[0] ** -2.0] + [sigma[2] ** -2.0] * d)
    tie = np.array([-1.0] + [1 / square] * d)
    spread = slack / square * max(count, 1)
    seen = np.array([count, *diagonal])
    if sigma[0] == 0:  # the count is known: d unknowns are left
        inner = np.diag(weight[1:]) + np.outer(tie[1:], tie[1:]) / spread**2
        fit = np.linalg.solve(inner, weight[1:] * diagonal + tie[1:] * count / spread**2)
        return count, fit, 0.0, np.zeros(d)
    gain = np.linalg.inv(np.diag(weight) + np.outer(tie, tie) / spread**2)
    answer = gain @ (weight * seen)
    by_noise = gain @ np.diag(weight) @ gain.T  # what noise alone makes of it, the tie taken as exact
    return answer[0], answer[1:], np.sqrt(gain[0, 0]), by_noise[0, 1:]


def estimate(noised, m, sigma, unit, tau, use_rie, pool, direction=None):
    counts, means, covs, sds, mean_noise, signal, count_noise = [], [], [], [], [], [], []
    for block in noised:
        n, error, tied = float(block[0]), sigma[0], np.zeros(m)
        s = block[1 : 1 + m].astype(float)
        mat = np.zeros((m, m))
        mat[np.triu_indices(m)] = block[1 + m :]
        mat = np.triu(mat) + np.triu(mat, 1).T
        if direction:
            n, fit, error, tied[:-1] = two_counts(n, np.diag(mat)[:-1], sigma, *direction)
            mat[np.arange(m - 1), np.arange(m - 1)] = fit
        n = max(n, 1.0)
        a, b = inverse(n, error)
        cov = (a * mat - b * (np.outer(s, s) - sigma[1] ** 2 * np.eye(m) - np.diag(tied))) * unit**2
        counts.append(n), count_noise.append(error), means.append(a * s * unit), covs.append(cov)
        sds.append(a * sigma[2] * unit**2), mean_noise.append(a * sigma[1] * unit)
        top = max(np.linalg.eigvalsh(cov)[-1], 0)
        signal.append(min(top / (np.sqrt(2 * m) * sds[-1]), 1e9) if sds[-1] else 1e9)
    share = np.array(counts) / np.sum(counts)
    pooled = sum(w * c for w, c in zip(share, covs))
    out, edges = [], []
    for k, cov in enumerate(covs):
        weights = pool * share + (1 - pool) * (np.arange(len(covs)) == k)
        sd = np.sqrt(np.sum((weights * sds) ** 2))
        cov = (1 - pool) * cov + pool * pooled
        values, vectors = np.linalg.eigh(cov)
        x = rie(values, sd) if use_rie else values
        x = np.maximum(x, tau * max(values[-1], unit**2))
        out.append((vectors * x) @ vectors.T), edges.append(np.sqrt(2 * m) * sd)
    parts = (counts, count_noise, means, out, edges, mean_noise, signal)
    return np.concatenate([np.ravel(v) for v in parts]).astype("<f8")


def main():
    rng = np.random.default_rng(20160101)
    classes, m, rq, radius = 3, 6, 256, 1.25
    sigma, unit = (5.0, 260.0, 38000.0), radius / rq
    blocks = []
    for n in (400, 60, 3):
        mix = rng.normal(size=(m, m)) * 0.2
        w = rng.normal(size=m) * 0.2 + rng.normal(size=(n, m)) @ mix.T
        w[:, :-1] /= np.linalg.norm(w[:, :-1], axis=1)[:, None]
        w *= np.minimum(1, radius / np.linalg.norm(w, axis=1))[:, None]
        q = np.rint(w / unit * 0.99)
        noise = rng.normal(size=(m, m)) * sigma[2] / np.sqrt(2)
        noise = np.triu(noise, 1) + np.diag(rng.normal(size=m) * sigma[2])
        upper = (np.triu(q.T @ q) + noise)[np.triu_indices(m)]
        blocks.append(
            np.rint(np.concatenate([[n + rng.normal() * sigma[0]], q.sum(0) + rng.normal(size=m) * sigma[1], upper]))
        )
    noised = np.array(blocks).astype("<i8")
    direction = ((0.99 / unit) ** 2 + (m - 1) / 12, 0.02 / unit**2)
    parts = [np.array([classes, m], "<i8"), np.array([*sigma, unit, *direction], "<f8"), noised]
    for tau, use_rie, pool in ((1e-3, False, 0.0), (1e-6, True, 0.0), (1e-6, True, 0.5)):
        parts.append(estimate(noised, m, sigma, unit, tau, use_rie, pool))
    parts.append(estimate(noised, m, sigma, unit, 1e-3, False, 0.0, direction))
    parts.append(estimate(noised, m, (0.0, *sigma[1:]), unit, 1e-3, False, 0.0, direction))
    with open(sys.argv[1], "wb") as f:
        f.write(b"".join(p.tobytes() for p in parts))


if __name__ == "__main__":
    main()

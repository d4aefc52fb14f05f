#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/synth/: makes tests/vectors/synth/estimate.bin. Written from the formulas, not from the C code.

usage: oracle/synth.py OUT.bin

Layout, little-endian: int64 K, m; float64 sigma_count, sigma_sum, sigma_moment, unit; int64 noised
(K, (m+1)(m+2)/2); then, for each of (clamp tau=1e-3), (rie), (rie, pool=0.5): float64 count (K), mean (K,m),
cov (K,m,m), noise_edge (K), mean_noise (K), signal (K).
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


def estimate(noised, m, sigma, unit, tau, use_rie, pool):
    counts, means, covs, sds, mean_noise, signal = [], [], [], [], [], []
    for block in noised:
        n = max(int(block[0]), 1)
        a, b = inverse(n, sigma[0])
        s = block[1 : 1 + m].astype(float)
        mat = np.zeros((m, m))
        mat[np.triu_indices(m)] = block[1 + m :]
        mat = np.triu(mat) + np.triu(mat, 1).T
        cov = (a * mat - b * (np.outer(s, s) - sigma[1] ** 2 * np.eye(m))) * unit**2
        counts.append(n), means.append(a * s * unit), covs.append(cov)
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
    return np.concatenate([np.ravel(v) for v in (counts, means, out, edges, mean_noise, signal)]).astype("<f8")


def main():
    rng = np.random.default_rng(20160101)
    classes, m, rq, radius = 3, 6, 256, 1.25
    sigma, unit = (5.0, 260.0, 38000.0), radius / rq
    blocks = []
    for n in (400, 60, 3):
        mix = rng.normal(size=(m, m)) * 0.2
        w = rng.normal(size=m) * 0.2 + rng.normal(size=(n, m)) @ mix.T
        w *= np.minimum(1, radius / np.linalg.norm(w, axis=1))[:, None]
        q = np.rint(w / unit * 0.99)
        noise = rng.normal(size=(m, m)) * sigma[2] / np.sqrt(2)
        noise = np.triu(noise, 1) + np.diag(rng.normal(size=m) * sigma[2])
        upper = (np.triu(q.T @ q) + noise)[np.triu_indices(m)]
        blocks.append(
            np.rint(np.concatenate([[n + rng.normal() * sigma[0]], q.sum(0) + rng.normal(size=m) * sigma[1], upper]))
        )
    noised = np.array(blocks).astype("<i8")
    parts = [np.array([classes, m], "<i8"), np.array([*sigma, unit], "<f8"), noised]
    for tau, use_rie, pool in ((1e-3, False, 0.0), (1e-6, True, 0.0), (1e-6, True, 0.5)):
        parts.append(estimate(noised, m, sigma, unit, tau, use_rie, pool))
    with open(sys.argv[1], "wb") as f:
        f.write(b"".join(p.tobytes() for p in parts))


if __name__ == "__main__":
    main()

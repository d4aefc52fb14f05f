#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/classifier/heads.c: makes tests/vectors/synth/heads.bin.

usage: oracle/heads.py OUT.bin

Two cases of class statistics. The first has no noise and huge counts, so that the heads are the textbook's: LDA with a
pooled covariance and np.linalg.solve, QDA by scipy's multivariate normal density, RDA by the same and sqrtm. The second
has noise and follows the rules of heads.c, statistics.c and quadratic.c, with explicit inverses, determinants and sums.
Layout, little-endian;
per case: int64 K, m, n; float64 count (K), mean (K,m), cov (K,m,m), noise_edge (K), mean_noise (K), w (n,m), then
scores (n,K), each row relative to its class 0, of nearest mean, LDA, QDA, RDA.
"""

import sys

import numpy as np
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal


def textbook(count, mean, cov, w):
    pooled = np.average(cov, axis=0, weights=count)
    nearest = np.stack([-0.5 * np.sum((w - mu) ** 2, axis=1) for mu in mean], 1)
    lda = np.stack([w @ np.linalg.solve(pooled, mu) - 0.5 * mu @ np.linalg.solve(pooled, mu) for mu in mean], 1)
    qda = np.stack([multivariate_normal(mu, c).logpdf(w) for mu, c in zip(mean, cov)], 1)
    rda = np.stack([multivariate_normal(mu, between(pooled, c)).logpdf(w) for mu, c in zip(mean, cov)], 1)
    return nearest, lda, qda, rda


def between(a, b):
    """The geometric mean of two positive matrices."""
    root = sqrtm(a)
    inverse = np.linalg.inv(root)
    return root @ sqrtm(inverse @ b @ inverse) @ root


def floored(a, low):
    values, vectors = np.linalg.eigh(a)
    return vectors @ np.diag(np.maximum(values, low)) @ vectors.T


def noise_aware(count, mean, cov, edge, noise, w):
    m = mean.shape[1]
    p = count / count.sum()
    grand = p @ mean
    b = (p @ np.sum((mean - grand) ** 2, 1) / m - (p * (1 - p)) @ noise**2) / (1 - p @ p)
    b = max(b, 0.01 * (p @ noise**2))
    f = b / (b + noise**2)
    mu = grand + f[:, None] * (mean - grand)
    doubt = f * noise**2
    low = np.linalg.norm(p * edge)
    plain = np.einsum("k,kij->ij", p, cov)
    values, vectors = np.linalg.eigh(plain)
    assert values[0] < low < values[-1], "the case should use the floor of the pooled covariance"
    values = np.maximum(values, low)
    pooled = vectors @ np.diag(values) @ vectors.T
    metric = np.linalg.inv(pooled + (p @ doubt) * np.eye(m))
    nearest = np.stack([-0.5 * np.sum((w - u) ** 2, 1) - 0.5 * m * d for u, d in zip(mu, doubt)], 1)
    lda = np.stack(
        [-0.5 * np.einsum("ni,ij,nj->n", w - u, metric, w - u) - 0.5 * d * np.trace(metric) for u, d in zip(mu, doubt)],
        1,
    )
    return nearest, lda, *quadratic(count, cov, edge, mu, doubt, values, vectors, plain, w)


def spread(d, e, p, band):
    """t by weighted moments; d (K,m,m) differences, e[k] (m,m) the error variance of entry
    (i,j) of class k over 1 + [i=j];
    `band` (m,m) says which entries take part."""
    classes, m = d.shape[:2]
    t = 1.0
    for _ in range(200):
        above = below = 0.0
        for k in range(classes):
            c = (1 - p[k]) ** 2 + sum(p[q] ** 2 for q in range(classes) if q != k)
            for i in range(m):
                for j in range(i, m):
                    if not band[i, j]:
                        continue
                    error = (1 - p[k]) ** 2 * e[k][i, j] + sum(p[q] ** 2 * e[q][i, j] for q in range(classes) if q != k)
                    weight = (c * t + error) ** -2
                    above += weight * (d[k, i, j] ** 2 / (2 if i == j else 1) - error)
                    below += weight * c
        t = max(above / below, 0.0)
    return t


def quadratic(count, cov, edge, mu, doubt, values, vectors, pool, w):
    classes, m = mu.shape
    root = vectors @ np.diag(np.sqrt(values))  # root root^T = P, its columns along the eigenvectors
    inverse = np.linalg.inv(root)
    d = np.stack([inverse @ (c - pool) @ inverse.T for c in cov])
    noise = edge / np.sqrt(2 * m)
    e = [1 / n + s**2 / 2 / np.outer(values, values) for n, s in zip(count, noise)]
    weaker = np.minimum.outer(np.arange(m), np.arange(m))  # eigenvalues ascend
    t = sum(spread(d, e, count / count.sum(), weaker * 4 // m == b) * (weaker * 4 // m == b) for b in range(4))
    qda, rda, floors = [], [], 0
    for k in range(classes):
        f = t / (t + e[k])
        left = f * e[k] * (1 + np.eye(m))
        low = min(0.2 * 2 * np.sqrt(left.sum() / m), 1)
        ratio = np.eye(m) + f * d[k]
        floors += np.linalg.eigvalsh(ratio)[0] < low
        own = root @ floored(ratio, low) @ root.T
        qda.append(multivariate_normal(mu[k], own + doubt[k] * np.eye(m)).logpdf(w))
        rda.append(multivariate_normal(mu[k], between(root @ root.T, own) + doubt[k] * np.eye(m)).logpdf(w))
    assert t.max() > 0 and 0 < floors < classes, "the case should use the floor, but not everywhere"
    return np.stack(qda, 1), np.stack(rda, 1)


def case(rng, classes, m, n, noisy):
    mean = rng.normal(size=(classes, m))
    root = rng.normal(size=(classes, m, m)) * np.geomspace(1, 0.05, m)
    cov = root @ root.transpose(0, 2, 1) / m + 0.01 * np.eye(m)
    count = rng.integers(50, 2000, classes).astype(float) * (1 if noisy else 1e12)
    edge = 300 / count if noisy else np.zeros(classes)
    noise = 60 / count if noisy else np.zeros(classes)
    if (
        noisy
    ):  # as a release would: symmetric noise of that edge, so that some are not positive; and one tight, large class
        count[0], edge[0], noise[0], cov[0] = 5000, 1e-4, 1e-3, cov[0] * 1e-3
        g = rng.normal(size=cov.shape) * (edge / np.sqrt(2 * m))[:, None, None]
        cov = cov + (g + g.transpose(0, 2, 1)) / 2
        assert np.linalg.eigvalsh(cov)[:, 0].min() < 0
    w = rng.normal(size=(n, m)) * 1.5
    scores = noise_aware(count, mean, cov, edge, noise, w) if noisy else textbook(count, mean, cov, w)
    scores = [s - s[:, :1] for s in scores]
    parts = [np.array([classes, m, n], "<i8")] + [
        np.asarray(x, "<f8") for x in (count, mean, cov, edge, noise, w, *scores)
    ]
    return b"".join(x.tobytes() for x in parts)


def main():
    rng = np.random.default_rng(1989)
    with open(sys.argv[1], "wb") as f:
        f.write(case(rng, 4, 5, 40, False) + case(rng, 4, 5, 40, True))


if __name__ == "__main__":
    main()

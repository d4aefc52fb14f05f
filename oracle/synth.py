#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/synth/: makes tests/vectors/synth/. Written from the formulas, not from the C code.

usage: oracle/synth.py estimate.bin parts.bin

estimate.bin, one part.
Layout, little-endian: int64 K, m; float64 sigma_count, sigma_sum, sigma_moment, unit, direction_square,
direction_slack; int64 noised (K, (m+1)(m+2)/2); then, for each of (clamp tau=1e-3), (rie), (rie, pool=0.5),
(clamp tau=1e-3, direction), (clamp tau=1e-3, direction, sigma_count=0): float64 count (K), count_noise (K),
mean (K,m), cov (K,m,m), noise_edge (K), mean_noise (K), signal (K). direction: the first m-1 coordinates of each
record have one length.

parts.bin: two parts of lengths 4 and 3, then the same records as one joined part of length 7; all coordinates but the
last of each part have one length. int64 K; float64 sigma_count, then sigma_sum, sigma_moment, unit, square, slack of
part 0, of part 1 and of the joined part (its two runs have one square); int64
noised by class (K, 24), pooled (K * 8 + 16), joined (K, 36); then for part 0, part 1, pooled part 0, pooled part 1 and
the joined part, all of estimator raw: float64 count (K), count_noise (K), mean (K,m), cov (K,m,m), noise_edge (K),
mean_noise (K), signal (K).
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


def unpack(upper, m):
    mat = np.zeros((m, m))
    mat[np.triu_indices(m)] = upper
    return np.triu(mat) + np.triu(mat, 1).T


def many_counts(counts, sigma_count, runs):
    """The most likely counts and diagonals by weighted least squares in all unknowns at once, where each run (diagonal,
    sigma, square, slack) adds up to square * sum(counts) but for slack. Gives counts, diagonals, the standard deviation
    of each count and of their sum, and for each run the covariance, by noise alone, of its first entry and the sum."""
    k, sizes = len(counts), [len(r[0]) for r in runs]
    seen = np.concatenate([counts, *[r[0] for r in runs]])
    weight = np.concatenate([[sigma_count**-2.0] * k, *[[r[1] ** -2.0] * len(r[0]) for r in runs]])
    precision, at = np.diag(weight), np.cumsum([k, *sizes])
    for (diagonal, _, square, slack), begin in zip(runs, at):
        tie = np.zeros(len(seen))
        tie[:k], tie[begin : begin + len(diagonal)] = -1, 1 / square
        precision += np.outer(tie, tie) / (slack / square * max(sum(counts), 1)) ** 2
    gain = np.linalg.inv(precision)
    fit = gain @ (weight * seen)
    by_noise = gain @ np.diag(weight) @ gain.T
    whole = np.zeros(len(seen))
    whole[:k] = 1
    tied = [(by_noise @ whole)[begin] for begin in at[:-1]]
    fitted = [fit[begin : begin + n] for begin, n in zip(at, sizes)]
    return fit[:k], fitted, np.sqrt(np.diag(gain)[:k]), np.sqrt(whole @ gain @ whole), tied


def result(counts, errors, means, covs, sds, mean_noise, m):
    edges = np.sqrt(2 * m) * np.array(sds)
    signal = [min(max(np.linalg.eigvalsh(c)[-1], 0) / e, 1e9) for c, e in zip(covs, edges)]
    fields = (counts, errors, means, covs, edges, mean_noise, signal)
    return np.concatenate([np.ravel(v) for v in fields]).astype("<f8")


def by_class(blocks, sigma_count, parts, runs, which):
    """parts: (length, sigma_sum, sigma_moment, unit); runs: (part, first, count, square, slack)."""
    m, s_m, s_M, unit = parts[which]
    out = [[], [], [], [], [], []]
    for block in blocks:
        at, sums, mats = 1, [], []
        for length, *_ in parts:
            sums.append(block[at : at + length].astype(float))
            mats.append(unpack(block[at + length : at + length + length * (length + 1) // 2], length))
            at += length + length * (length + 1) // 2
        seen = [(np.diag(mats[p])[f : f + n], parts[p][2], sq, sl) for p, f, n, sq, sl in runs]
        n, fitted, error, _, tied = many_counts([float(block[0])], sigma_count, seen)
        mat, common = mats[which], np.zeros(m)
        for (p, f, count, *_), diagonal, c in zip(runs, fitted, tied):
            if p == which:
                rows = np.arange(f, f + count)
                mat[rows, rows], common[rows] = diagonal, c
        n = max(n[0], 1.0)
        a, b = inverse(n, error[0])
        s = sums[which]
        cov = (a * mat - b * (np.outer(s, s) - s_m**2 * np.eye(m) - np.diag(common))) * unit**2
        for field, value in zip(out, (n, error[0], a * s * unit, cov, a * s_M * unit**2, a * s_m * unit)):
            field.append(value)
    return result(*out, m)


def pooled(numbers, classes, sigma_count, parts, runs, which):
    m, s_m, s_M, unit = parts[which]
    block = 1 + sum(p[0] for p in parts)
    heads, at, mats = numbers[: classes * block].reshape(classes, block), classes * block, []
    for length, *_ in parts:
        mats.append(unpack(numbers[at : at + length * (length + 1) // 2], length))
        at += length * (length + 1) // 2
    seen = [(np.diag(mats[p])[f : f + n], parts[p][2], sq, sl) for p, f, n, sq, sl in runs]
    n, fitted, errors, error, tied = many_counts(heads[:, 0].astype(float), sigma_count, seen)
    first = 1 + sum(p[0] for p in parts[:which])
    mat, common = mats[which], np.zeros(m)
    for (p, f, count, *_), diagonal, c in zip(runs, fitted, tied):
        if p == which:
            rows = np.arange(f, f + count)
            mat[rows, rows], common[rows] = diagonal, c
    a, b = inverse(max(n.sum(), 1.0), error)
    cov, means, noise = a * mat + b * np.diag(common), [], []
    for k in range(classes):
        s, (one, _) = heads[k, first : first + m].astype(float), inverse(max(n[k], 1.0), errors[k])
        cov = cov - a * one * (np.outer(s, s) - s_m**2 * np.eye(m))
        means.append(one * s * unit), noise.append(one * s_m * unit)
    return result(np.maximum(n, 1), errors, means, [cov * unit**2] * classes, [a * s_M * unit**2] * classes, noise, m)


def parts_file():
    rng = np.random.default_rng(20180202)
    classes, rq, lengths = 3, 256, (4, 3)
    sigma_count, radius = 6.0, (1.06, 1.2)
    scale = [(240.0, 33000.0, radius[0] / rq), (290.0, 41000.0, radius[1] / rq)]
    wide = np.hypot(*radius)
    scale.append((310.0, 52000.0, wide / rq))
    squares = [1 / s[2] ** 2 for s in scale[:2]] + [1 / scale[2][2] ** 2]
    slacks = [0.02 * s for s in squares]
    drawn = lambda x, sigma: x + rng.normal(size=np.shape(x)) * sigma

    def upper(mat, sigma):
        at = np.triu_indices(len(mat))
        return drawn(mat[at], np.where(at[0] == at[1], sigma, sigma / np.sqrt(2)))

    separate, heads, joined, total = [], [], [], [0, 0]
    for n in (400, 90, 8):
        w = []
        for length in lengths:
            x = rng.normal(size=length) * 0.3 + rng.normal(size=(n, length)) @ (rng.normal(size=(length, length)) * 0.3)
            x[:, :-1] /= np.linalg.norm(x[:, :-1], axis=1)[:, None]
            x[:, -1] = np.clip(x[:, -1], -0.35, 0.35)
            w.append(x)
        q = [np.rint(x / s[2]) for x, s in zip(w, scale)]
        both = np.rint(np.hstack(w) / scale[2][2])
        count = drawn(n, sigma_count)
        sums = [drawn(x.sum(0), s[0]) for x, s in zip(q, scale)]
        blocks = [v for x, s, t in zip(q, scale, sums) for v in (t, upper(x.T @ x, s[1]))]
        separate.append(np.concatenate([[count], *blocks]))
        heads.append(np.concatenate([[count], *sums]))
        joined.append(np.concatenate([[count], drawn(both.sum(0), scale[2][0]), upper(both.T @ both, scale[2][1])]))
        total = [t + x.T @ x for t, x in zip(total, q)]
    once = np.concatenate([np.ravel(heads)] + [upper(t, s[1]) for t, s in zip(total, scale)])
    separate, once, joined = (np.rint(np.array(x)).astype("<i8") for x in (separate, once, joined))
    parts = [(length, *s) for length, s in zip(lengths, scale)]
    runs = [(p, 0, lengths[p] - 1, squares[p], slacks[p]) for p in range(2)]
    wide_runs = [(0, 0, 3, squares[2], slacks[2]), (0, 4, 2, squares[2], slacks[2])]
    numbers = [sigma_count] + [v for s, sq, sl in zip(scale, squares, slacks) for v in (*s, sq, sl)]
    out = [np.array([classes], "<i8"), np.array(numbers, "<f8"), separate, once, joined]
    out += [by_class(separate, sigma_count, parts, runs, p) for p in range(2)]
    out += [pooled(once, classes, sigma_count, parts, runs, p) for p in range(2)]
    out.append(by_class(joined, sigma_count, [(7, *scale[2])], wide_runs, 0))
    return out


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
    for path, content in zip(sys.argv[1:3], (parts, parts_file())):
        with open(path, "wb") as f:
            f.write(b"".join(p.tobytes() for p in content))


if __name__ == "__main__":
    main()

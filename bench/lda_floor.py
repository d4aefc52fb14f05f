#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""lda_floor.py - what the floor of LDA's pooled covariance is worth, on public sets only (docs/decisions/0003).

usage: lda_floor.py --task TASK.json --latents L.safetensors --calibration C.safetensors [--test T.safetensors]
                    [--skip K] [--groupings G] [--draws D]

Latents come from `fedkt encode`, the calibration from `fedkt codec calibrate` (or any release of the task: it holds
centre and map). With --test the classes are the set's own (the demo set); without it classes K.. of the set are put
together into super-classes, at random, by balanced and by plain clustering, and a quarter of the records is held out.
Each line: accuracy of LDA as it is (floor 1, no rie), then the difference that another floor makes, without and with
`rie` on the pooled covariance, over the same draws of the noise, with its standard error. Rules as in src/synth/ and
src/classifier/, in NumPy; joint mechanism, add-remove, delta 1e-5, budget split 1/24/75, Rq 256, central noise.
"""

import argparse
import json
import struct

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.optimize import brentq
from scipy.special import erfcx
from scipy.stats import norm

RQ, DELTA, SPLIT, EPSILONS = 256, 1e-5, (0.01, 0.24, 0.75), (0.3, 1, 3, 10)
RULES = [(False, f) for f in (0.1, 0.25, 0.5, 1, 2, 3, 10)] + [(True, f) for f in (0.1, 0.25, 0.5, 1)]


def tensors(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    kinds, out = {"F32": "<f4", "I64": "<i8"}, {}
    for name, t in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            a, b = (8 + size + x for x in t["data_offsets"])
            out[name] = np.frombuffer(data[a:b], kinds[t["dtype"]]).reshape(t["shape"])
    return out


def records(path, calibration, c):
    """Record vectors in gain-shape coordinates, and labels."""
    t = tensors(path)
    u = (t["latents"].astype(float) - calibration["centre"]) @ calibration["map"].astype(float).T
    size = np.linalg.norm(u, axis=1)
    gain = c["gamma"] * np.clip((np.log(size) - c["log_mean"]) / c["log_spread"], -1, 1)
    return np.hstack([u / size[:, None], gain[:, None]]), t["labels"]


def quantise(w, radius):
    x = w / radius * RQ
    q = np.sign(x) * np.floor(np.abs(x) + 0.5)
    for r in np.where((q**2).sum(1) > RQ**2)[0]:
        while (q[r] ** 2).sum() > RQ**2:
            i = np.argmax(np.abs(q[r]) - np.abs(x[r]))
            q[r, i] -= np.sign(q[r, i])
    return q


def sigmas(epsilon):
    delta = lambda mu: norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    mu = brentq(lambda mu: delta(mu) - DELTA, 1e-3, 50)
    return [x / np.sqrt(s) / mu for x, s in zip((1, RQ, RQ**2), SPLIT)]


def estimate(z, sigma, radius, rng):
    """One class with fresh noise: count, mean, covariance, noise edge, noise of the mean (estimate.md)."""
    m = z.shape[1]
    d, unit = m - 1, radius / RQ
    noise = np.triu(rng.normal(size=(m, m)), 1) * np.sqrt(0.5)
    moment = z.T @ z + sigma[2] * (noise + noise.T + np.diag(rng.normal(size=m)))
    n, total = len(z) + sigma[0] * rng.normal(), z.sum(0) + sigma[1] * rng.normal(size=m)
    square, slack = 1 / unit**2 + d / 12, (d / 4 + RQ / 2) * max(n, 1)
    own, other, tau2 = sigma[0] ** 2, d * (sigma[2] / square) ** 2, (slack / square) ** 2
    h, g = own / (own + other + tau2), other / (own + other + tau2)
    gap = np.trace(moment[:d, :d]) / square - n
    first = np.diag([1.0] * d + [0.0])
    moment -= g * gap * square / d * first
    tied = square / d * h * (other + g * tau2) * first
    n, s = max(n + h * gap, 1), sigma[0] * np.sqrt(1 - h)
    mills = np.sqrt(np.pi / 2) * erfcx(n / s / np.sqrt(2))
    a, b = mills / s, (1 - n / s * mills) / s**2
    if n / s > 50:  # 1 - t H(t) cancels there; the next terms of its series are below 1e-6
        a, b = (1 - (s / n) ** 2) / n, (1 - 3 * (s / n) ** 2) / n**2
    cov = (a * moment - b * (np.outer(total, total) - sigma[1] ** 2 * np.eye(m) - tied)) * unit**2
    return n, a * total * unit, cov, np.sqrt(2 * m) * a * sigma[2] * unit**2, a * sigma[1] * unit


def ascending(x):
    value, size = [], []
    for a in x:
        value.append(a), size.append(1)
        while len(value) > 1 and value[-2] >= value[-1]:
            both = size[-2] + size[-1]
            value[-2:] = [(value[-2] * size[-2] + value[-1] * size[-1]) / both]
            size[-2:] = [both]
    return np.repeat(value, size)


def rie(values, sd):
    m = len(values)
    e2, gap = m * sd**2 / 2, values[:, None] - values[None, :]
    x = ascending(values - 2 * e2 / m * (gap / (gap**2 + e2 / m)).sum(1))
    trace = max(values.sum(), np.sqrt(m) * sd)
    excess = lambda shift: np.maximum(x - shift, 0).sum() - trace
    return np.maximum(x - (brentq(excess, 0, x.max()) if excess(0) > 0 else 0), 0)


class Lda:
    """Everything that does not depend on the floor."""

    def __init__(self, classes):
        count, mean, cov, edge, noise = (np.array(x) for x in zip(*classes))
        p, var = count / count.sum(), noise**2
        grand = p @ mean
        between = (p @ ((mean - grand) ** 2).mean(1) - (p * (1 - p)) @ var) / (1 - p @ p)
        f = max(between, 0.01 * (p @ var))
        f = f / (f + var)
        self.mean, self.doubt, self.left = grand + f[:, None] * (mean - grand), f * var, p @ (f * var)
        self.edge = np.linalg.norm(p * edge)
        self.values, self.vectors = np.linalg.eigh(np.einsum("k,kij->ij", p, cov))

    def accuracy(self, w, label, shrunk, factor):
        v = rie(self.values, self.edge / np.sqrt(2 * len(self.values))) if shrunk else self.values
        v = np.maximum(v, factor * self.edge)
        v = np.maximum(v, 1e-9 * v.mean()) + self.left
        a, b = w @ self.vectors, self.mean @ self.vectors
        score = (a / v) @ b.T - 0.5 * ((b * b / v).sum(1) + self.doubt * (1 / v).sum())
        return 100 * np.mean(score.argmax(1) == label)


def balanced(means, centres, k):
    distance = ((means[:, None] - centres[None]) ** 2).sum(2)
    group, room = np.full(len(means), -1), np.full(k, -(-len(means) // k))
    for i in np.argsort(distance.min(1) - np.partition(distance, 1, axis=1)[:, 1]):
        group[i] = next(j for j in np.argsort(distance[i]) if room[j] > 0)
        room[group[i]] -= 1
    return group


def proxies(w, label, skip, groupings):
    """(name, training and test records) of super-classes made of the classes from `skip` on."""
    w, label = w[label >= skip], label[label >= skip] - skip
    n = label.max() + 1
    means = np.array([w[label == k].mean(0) for k in range(n)])
    for kind, k in (("random", 10), ("clustered", 10), ("clustered", 4), ("unbalanced", 20)):
        for r in range(groupings):
            rng = np.random.default_rng(7 + r)
            group = rng.permutation(n) % k
            if kind != "random":
                centres, group = kmeans2(means, k, minit="++", seed=rng)
                if len(np.unique(group)) < k:
                    continue
            group = balanced(means, centres, k) if kind == "clustered" else group
            test = rng.random(len(label)) < 0.25
            yield f"{kind} {k}", w[~test], group[label[~test]], w[test], group[label[test]]


def own_classes(w, label, test, groupings):
    for each in (100, 200, 600):
        for r in range(groupings):
            rng = np.random.default_rng(100 + r)
            of = [rng.permutation(np.where(label == k)[0])[:each] for k in range(label.max() + 1)]
            yield f"{each} a class", w[np.concatenate(of)], label[np.concatenate(of)], *test


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("task", "latents", "calibration"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--test")
    for name, default in (("skip", 0), ("groupings", 6), ("draws", 4)):
        p.add_argument(f"--{name}", type=int, default=default)
    o = p.parse_args()
    with open(o.task) as f:
        c = json.load(f)["coordinates"]
    calibration, radius = tensors(o.calibration), c["radius"]
    w, label = records(o.latents, calibration, c)
    if o.test:
        tasks = own_classes(w, label, records(o.test, calibration, c), o.groupings)
    else:
        tasks = proxies(w, label, o.skip, o.groupings)
    found = {}
    for number, (name, train, y, test, truth) in enumerate(tasks):
        q, seen = quantise(train, radius), quantise(test, radius) * radius / RQ
        for epsilon in EPSILONS:
            sigma = sigmas(epsilon)
            for draw in range(o.draws):
                rng = np.random.default_rng([number, draw, int(10 * epsilon)])
                lda = Lda([estimate(q[y == k], sigma, radius, rng) for k in range(y.max() + 1)])
                row = [lda.accuracy(seen, truth, *rule) for rule in RULES]
                found.setdefault((name, epsilon), []).append(row)
    for (name, epsilon), rows in found.items():
        rows = np.array(rows)
        base = rows[:, RULES.index((False, 1))]
        print(f"{name:16s} epsilon {epsilon:<4g} {base.mean():6.2f} |", end="")
        for i, (shrunk, factor) in enumerate(RULES):
            change = rows[:, i] - base
            if (shrunk, factor) != (False, 1):
                error = change.std() / np.sqrt(len(change))
                print(f" {'rie ' if shrunk else ''}{factor:g} {change.mean():+.2f} ({error:.2f})", end="")
        print()


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/learning/baselines/: makes tests/vectors/baselines.json.

usage: oracle/baselines.py OUT.json

Each method for a few rounds on a problem that needs no network: softmax regression at three sites, in numpy, double
throughout, written from the papers' equations. x is W (3 classes, 4 features), b (3), then two statistics that a
gradient moves by a tenth towards the batch's mean of features 0 and 1. Record i of site s has label (i (s + 1) + s) mod
3 and features sin(0.7 (s + 1) + 1.3 i + 0.9 f (i + 1)), plus 1 where f is the label; sites have 6, 9 and 5 records;
batches are three records in order, an incomplete last one left out. Validation records of a site are numbers 20 to 23.
The start is 0.2 cos(k) for number k, statistics 0 and 1. Layers: W with the statistics, b.

Per-FedAvg has the exact Hessian here, by the derivative of the softmax; random choices of PartialFed are by
oracle/views.py.
"""

import hashlib
import json
import sys

import numpy as np
from views import Random

CLASSES, FEATURES, BATCH, RECORDS = 3, 4, 3, (6, 9, 5)
SITES, W, P, STATE = 3, 12, 15, 17
LAYERS = ([*range(12), 15, 16], [*range(12, 15)])  # numbers of x in each layer
DEFAULT = {
    "rounds": 3, "epochs": 2, "rate": 0.3, "perfedavg_alpha": 0, "perfedavg_delta": 0, "perfedavg_steps": 1,
    "pfedme_lambda": 1.5, "pfedme_rate": 0, "pfedme_beta": 1, "pfedme_steps": 4, "fedamp_cosine": 1, "fedamp_alpha": 1,
    "fedamp_lambda": 0.5, "fedamp_sigma": 5, "fedamp_self": 0.4, "fedphp_mu": 0.9, "fedphp_share": 0.3,
    "fedphp_temperature": 2, "apple_mu": 0.1, "apple_rate": 0.05, "apple_scale": 0, "apple_end": 0.6,
    "partialfed_fixed": 0, "partialfed_rate": 2, "partialfed_temperature": 0.7,
}  # fmt: skip


def record(site, i):
    label = (i * (site + 1) + site) % 3
    x = np.array([np.sin(0.7 * (site + 1) + 1.3 * i + 0.9 * f * (i + 1)) for f in range(FEATURES)])
    x[label] += 1
    return x, label


def records(site, numbers):
    rows = [record(site, i) for i in numbers]
    return np.array([x for x, _ in rows]), np.array([y for _, y in rows])


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def logits(x, features):
    return features @ x[:W].reshape(CLASSES, FEATURES).T + x[W:P]


class Problem:
    def __init__(self):
        self.teacher = None
        self.epoch = [n // BATCH for n in RECORDS]

    def batch(self, site, step):
        at = step % self.epoch[site] * BATCH
        return records(site, range(at, at + BATCH))

    def gradient(self, site, step, x):
        """Gradient (15); moves the statistics of x."""
        features, label = self.batch(site, step)
        z = logits(x, features)
        slope = softmax(z) - np.eye(CLASSES)[label]
        if self.teacher is not None:
            teacher, share, t = self.teacher
            slope = (1 - share) * slope + share * t * (softmax(z / t) - softmax(logits(teacher, features) / t))
        x[P:] = 0.9 * x[P:] + 0.1 * features[:, :2].mean(0)
        slope /= len(label)
        return np.concatenate([(slope.T @ features).ravel(), slope.sum(0)])

    def hessian(self, site, step, x):
        features, label = self.batch(site, step)
        p, n, h = softmax(logits(x, features)), len(label), np.zeros((P, P))
        for row, q in zip(features, p):
            wide = np.append(row, 1)
            full = np.kron(np.diag(q) - np.outer(q, q), np.outer(wide, wide)) / n  # by (class, feature or bias)
            index = [5 * k + f for k in range(CLASSES) for f in range(FEATURES)] + [5 * k + 4 for k in range(CLASSES)]
            h += full[np.ix_(index, index)]
        return h

    def validate(self, site, x):
        features, label = records(site, range(20, 24))
        return -np.log(softmax(logits(x, features))[np.arange(4), label]).mean()


def descend(problem, s, site, t, x, anchor=None, pull=0.0):
    steps = s["epochs"] * problem.epoch[site]
    for step in range(t * steps, (t + 1) * steps):
        g = problem.gradient(site, step, x)
        x[:P] -= s["rate"] * (g + (pull * (x[:P] - anchor[:P]) if anchor is not None else 0))


def average(models):
    return np.average(models, axis=0, weights=RECORDS)


def local(q, s, start):
    models = [start.copy() for _ in RECORDS]
    for t in range(s["rounds"]):
        for i, x in enumerate(models):
            descend(q, s, i, t, x)
    return models, start


def fedavg_once(q, s, start):
    common = average(local(q, s, start)[0])
    return [common] * SITES, common


def fedavg(q, s, start):
    common = start
    for t in range(s["rounds"]):
        models = [common.copy() for _ in RECORDS]
        for i, x in enumerate(models):
            descend(q, s, i, t, x)
        common = average(models)
    return [common] * SITES, common


def perfedavg(q, s, start):
    common, alpha = start, s["perfedavg_alpha"] or s["rate"]
    each = 3 if s["perfedavg_delta"] else 2
    for t in range(s["rounds"]):
        models = [common.copy() for _ in RECORDS]
        for i, w in enumerate(models):
            steps = s["epochs"] * q.epoch[i]
            for k in range(max(1, steps // each)):
                step, v = t * steps + k * each, w.copy()
                v[:P] -= alpha * q.gradient(i, step, v)
                g = q.gradient(i, step + 1, v)
                h = q.hessian(i, step + 2, w) if s["perfedavg_delta"] else np.zeros((P, P))
                w[:P] -= s["rate"] * (np.eye(P) - alpha * h) @ g
                w[P:] = v[P:]
        common = average(models)
    personal = [common.copy() for _ in RECORDS]
    for i, x in enumerate(personal):
        for k in range(s["perfedavg_steps"]):
            x[:P] -= alpha * q.gradient(i, k, x)
    return personal, common


def pfedme(q, s, start):
    common, lam = start.copy(), s["pfedme_lambda"]
    for t in range(s["rounds"]):
        models, thetas = [common.copy() for _ in RECORDS], [common.copy() for _ in RECORDS]
        for i, (w, theta) in enumerate(zip(models, thetas)):
            steps = s["epochs"] * q.epoch[i]
            for step in range(t * steps, (t + 1) * steps):
                for _ in range(s["pfedme_steps"]):
                    g = q.gradient(i, step, theta)
                    theta[:P] -= (s["pfedme_rate"] or s["rate"]) * (g + lam * (theta[:P] - w[:P]))
                w[:P] -= s["rate"] * lam * (w[:P] - theta[:P])
            w[P:] = theta[P:]
        common = (1 - s["pfedme_beta"]) * common + s["pfedme_beta"] * average(models)
    return thetas, common


def attention(models, i, s):
    w = np.array([m[:P] for m in models])
    if s["fedamp_cosine"]:
        unit = w / np.linalg.norm(w, axis=1, keepdims=True)
        x = np.exp(s["fedamp_sigma"] * unit @ unit[i])
        x[i] = 0
        x *= (1 - s["fedamp_self"]) / x.sum()
        x[i] = s["fedamp_self"]
        return x
    x = s["fedamp_alpha"] / s["fedamp_sigma"] * np.exp(-np.sum((w - w[i]) ** 2, 1) / s["fedamp_sigma"])
    x[i] = 0
    x /= max(1, x.sum())
    x[i] = 1 - x.sum()
    return x


def fedamp(q, s, start):
    models = [start.copy() for _ in RECORDS]
    for t in range(s["rounds"]):
        clouds = [attention(models, i, s) @ np.array(models) for i in range(SITES)]
        for i, x in enumerate(models):
            descend(q, s, i, t, x, clouds[i], s["fedamp_lambda"] / s["fedamp_alpha"])
    return models, start


def fedphp(q, s, start):
    common, inherited = start, [start.copy() for _ in RECORDS]
    for t in range(s["rounds"]):
        models, m = [common.copy() for _ in RECORDS], s["fedphp_mu"] * t / s["rounds"]
        for i, x in enumerate(models):
            q.teacher = (inherited[i].copy(), s["fedphp_share"], s["fedphp_temperature"]) if t else None
            descend(q, s, i, t, x)
            inherited[i] = m * inherited[i] + (1 - m) * x
        q.teacher = None
        common = average(models)
    return inherited, common


def fedfomo(q, s, start):
    begun, models = [start.copy() for _ in RECORDS], None
    for t in range(s["rounds"]):
        if models is not None:
            for i in range(SITES):
                gain = np.array([q.validate(i, begun[i]) - q.validate(i, m) for m in models])
                v = np.maximum(gain / [np.linalg.norm(m[:P] - begun[i][:P]) for m in models], 0)
                if v.sum() > 0:
                    begun[i] = begun[i] + sum(p * (m - begun[i]) for p, m in zip(v / v.sum(), models))
        models = [b.copy() for b in begun]
        for i, x in enumerate(models):
            descend(q, s, i, t, x)
    return models, start


def apple(q, s, start):
    p0 = np.array(RECORDS) / sum(RECORDS)
    p, cores = np.tile(p0, (SITES, 1)), [start.copy() for _ in RECORDS]
    rate, end = s["rate"] * (s["apple_scale"] or SITES), s["apple_end"] * s["rounds"]
    for t in range(s["rounds"]):
        lam = (1 + np.cos(np.pi * t / end)) / 2 if t < end else 0
        sent, personal = [c.copy() for c in cores], []
        for i in range(SITES):
            mine = [c.copy() for c in sent]
            steps = s["epochs"] * q.epoch[i]
            statistics = mine[i][P:].copy()
            for step in range(t * steps, (t + 1) * steps):
                stack = np.array(mine)[:, :P]
                x = np.concatenate([p[i] @ stack, statistics])
                g = q.gradient(i, step, x)
                statistics = x[P:]
                mine[i][:P] -= rate * p[i, i] * g
                p[i] -= s["apple_rate"] * (stack @ g + lam * s["apple_mu"] * (p[i] - p0))
            mine[i][P:] = statistics
            cores[i] = mine[i]
            personal.append(np.concatenate([p[i] @ np.array(mine)[:, :P], statistics]))
    return personal, start


def logistic(random):
    u = (random.word() >> 11) * 2.0**-53 + 2.0**-54
    return np.log(u / (1 - u))


def partialfed(q, s, start):
    common, models, odds = start, [start.copy() for _ in RECORDS], np.zeros((SITES, 2))
    tau = s["partialfed_temperature"]
    for t in range(s["rounds"]):
        for i in range(SITES):
            random, own, steps = Random(SEED, 0x6368 << 48 | t << 24 | i), models[i], s["epochs"] * q.epoch[i]
            for k in range(q.epoch[i] if t and not s["partialfed_fixed"] else 0):
                part = [1 / (1 + np.exp(-(a + logistic(random)) / tau)) for a in odds[i]]
                x = own.copy()
                for numbers, share in zip(LAYERS, part):
                    x[numbers] = share * common[numbers] + (1 - share) * own[numbers]
                g = np.append(q.gradient(i, t * steps + k, x), [0, 0])
                for layer, (numbers, share) in enumerate(zip(LAYERS, part)):
                    along = g[numbers] @ (common[numbers] - own[numbers])
                    odds[i, layer] -= s["partialfed_rate"] * along * share * (1 - share) / tau
            for layer, numbers in enumerate(LAYERS):
                loads = layer == 0 if s["partialfed_fixed"] else odds[i, layer] + logistic(random) > 0
                if loads:
                    own[numbers] = common[numbers]
            descend(q, s, i, t, own)
        common = average(models)
    return models, common


SEED = 7
METHODS = (local, fedavg_once, fedavg, perfedavg, pfedme, fedamp, fedphp, fedfomo, apple, partialfed)
VARIANTS = (
    (perfedavg, {"perfedavg_delta": 0.01, "perfedavg_alpha": 0.2, "perfedavg_steps": 3}),
    (pfedme, {"pfedme_beta": 0.6, "pfedme_rate": 0.1}),
    (fedamp, {"fedamp_cosine": 0, "fedamp_sigma": 3}),
    (fedamp, {"fedamp_cosine": 0, "fedamp_sigma": 1, "fedamp_alpha": 4}),
    (apple, {"apple_scale": 1.5, "apple_rate": 0.2}),
    (partialfed, {"partialfed_fixed": 1}),
    (partialfed, {"rounds": 6}),
)


def main():
    start = 0.2 * np.cos(np.arange(STATE))
    start[P:] = 0, 1
    start = start.astype(np.float32).astype(np.float64)
    cases = []
    for method, changed in [(m, {}) for m in METHODS] + list(VARIANTS):
        s = {**DEFAULT, **changed}
        personal, common = method(Problem(), s, start.copy())
        cases.append(
            {
                "method": method.__name__,
                "settings": s,
                "personal": [[float(f"{v:.9g}") for v in x] for x in personal],
                "common": [float(f"{v:.9g}") for v in common],
            }
        )
    text = json.dumps({"seed": SEED, "cases": cases}, indent=1) + "\n"
    with open(sys.argv[1], "w") as f:
        f.write(text)
    with open(sys.argv[1].replace(".json", ".md"), "w") as f:
        f.write(
            "- file: baselines.json\n"
            "- what: each baseline for a few rounds of softmax regression at three sites; personal and common models\n"
            "- made_by: oracle/baselines.py\n"
            "- command: /usr/bin/python3 oracle/baselines.py tests/vectors/baselines.json\n"
            f"- sha256: {hashlib.sha256(text.encode()).hexdigest()}\n"
            f"- numpy: {np.__version__}\n"
        )


if __name__ == "__main__":
    main()

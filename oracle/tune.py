#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/classifier/tune.c: makes tests/vectors/classifier/tune.json.

usage: oracle/tune.py OUT.json

Softmax regression by stochastic gradient descent in numpy, double throughout, written from the formulae: gradient of
the mean cross-entropy with smoothed labels, v = momentum v + (g + decay w), w -= rate (g + decay w + momentum v) with
Nesterov, else w -= rate v; cosine, constant or stepped rates; orders of epochs from oracle/views.py. Features of
picture i: sin(0.37 (i + 1) (f + 1)) / 2, and 1.5 more for f = 5 label + 0..4; label = (7 i) mod K. The model's last
layer begins at w[k, f] = 0.05 cos(k + 0.1 f), b[k] = 0.01 k. F is 64, what ResNet-8 has.
"""

import hashlib
import json
import sys

import numpy as np
from views import order

F = 64


def features(n, classes):
    i, f = np.meshgrid(np.arange(n), np.arange(F), indexing="ij")
    x, label = np.sin(0.37 * (i + 1) * (f + 1)) / 2, 7 * np.arange(n) % classes
    for k in range(5):
        x[np.arange(n), 5 * label + k] += 1.5
    return x.astype(np.float32).astype(np.float64), label


def rate(case, step, per_epoch):
    steps = case["epochs"] * per_epoch
    if case["schedule"] == "cosine":
        return case["rate"] * 0.5 * (1 + np.cos(np.pi * step / steps))
    if case["schedule"] == "step":
        return case["rate"] * case["step_by"] ** (step // round(case["step_every"] * per_epoch))
    return case["rate"]


def tune(case):
    n, classes = case["n"], case["classes"]
    x, label = features(n, classes)
    k, f = np.meshgrid(np.arange(classes), np.arange(F), indexing="ij")
    w = (0.05 * np.cos(k + 0.1 * f)).astype(np.float32).astype(np.float64)
    b = (0.01 * np.arange(classes)).astype(np.float32).astype(np.float64)
    vw, vb = np.zeros_like(w), np.zeros_like(b)
    batch = min(case["batch"], n)
    per_epoch = n // batch
    for step in range(case["epochs"] * per_epoch):
        e, at = divmod(step, per_epoch)
        rows = order(n, case["seed"], e)[at * batch : (at + 1) * batch]
        z = x[rows] @ w.T + b
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        target = np.full_like(p, case["smoothing"] / classes)
        target[np.arange(batch), label[rows]] += 1 - case["smoothing"]
        dz = (p - target) / batch
        for v, g, a in ((vw, dz.T @ x[rows], w), (vb, dz.sum(0), b)):
            g = g + case["decay"] * a
            v *= case["momentum"]
            v += g
            a -= rate(case, step, per_epoch) * (g + case["momentum"] * v if case["nesterov"] else v)
    hits = int(((x @ w.T + b).argmax(1) == label).sum())
    return {"hits": hits, "bias": [float(v) for v in b], "weight": [float(v) for v in w.reshape(-1)[::13]]}


def main():
    base = dict(step_every=1, step_by=0.5, smoothing=0, nesterov=1, momentum=0.9, decay=5e-4, seed=1, schedule="cosine")
    cases = [
        dict(base, n=100, classes=10, batch=16, epochs=4, rate=0.1),
        dict(base, n=7, classes=3, batch=64, epochs=20, rate=0.5, smoothing=0.1, schedule="constant"),
        dict(base, n=50, classes=2, batch=50, epochs=6, rate=0.3, nesterov=0, schedule="step", step_every=2, seed=9),
        dict(base, n=33, classes=5, batch=8, epochs=3, rate=0.2, nesterov=0, momentum=0, decay=0),
    ]
    text = json.dumps({"cases": [dict(c, **tune(c)) for c in cases]}, indent=1) + "\n"
    with open(sys.argv[1], "w") as f:
        f.write(text)
    with open(sys.argv[1].replace(".json", ".md"), "w") as f:
        f.write(
            "- file: tune.json\n- what: last layers tuned on features; every 13th weight is kept\n"
            "- made_by: oracle/tune.py\n"
            "- command: /usr/bin/python3 oracle/tune.py tests/vectors/classifier/tune.json\n"
            f"- sha256: {hashlib.sha256(text.encode()).hexdigest()}\n- numpy: {np.__version__}\n"
        )


if __name__ == "__main__":
    main()

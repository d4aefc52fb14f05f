#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Slow reference of src/learning/features/: makes tests/vectors/features.json.

usage: oracle/features.py OUT.json

NumPy and SciPy, double throughout, written from the sources that the files there name. Record i has label (i + i // 3)
mod 3 and features 0.4 sin(0.7 i + 1.1 j (i + 1)) in coordinate j, plus 0.6 where j is the label.

em: a few iterations from means that are records 0, 1, ..., equal weights and variances 0.05; the mean log-likelihood
before each. fourier: frequency k, j is sin(1.7 k + 0.6 j + 0.3 k j). softmax: weights after some epochs of Adam on
standardised inputs, orders by oracle/views.py. generator: parameter p is 0.3 sin(0.37 p + 0.2), code c of draw i is
cos(0.9 i + 0.5 c); target k, j is 0.1 cos(k + 0.4 j); the gradient is by central differences. sigmas: standard
deviations from scipy's root of delta(epsilon; mu).
"""

import hashlib
import json
import sys

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from views import Random

CLASSES, M, FLOOR, KINDS = 3, 4, 1e-6, ("spherical", "diagonal", "full")


def records(n):
    i, j = np.arange(n)[:, None], np.arange(M)[None, :]
    label = (np.arange(n) + np.arange(n) // 3) % CLASSES
    return 0.4 * np.sin(0.7 * i + 1.1 * j * (i + 1)) + 0.6 * (j == label[:, None]), label


def constrained(cov, kind):
    if kind == "spherical":
        return np.eye(M) * max(np.trace(cov) / M, FLOOR)
    if kind == "diagonal":
        return np.diag(np.maximum(np.diag(cov), FLOOR))
    values, vectors = np.linalg.eigh(cov)
    return vectors @ np.diag(np.maximum(values, FLOOR)) @ vectors.T


def em(kind, n, components, iterations):
    x, _ = records(n)
    weight, mean = np.full(components, 1 / components), x[:components].copy()
    cov, likelihood = np.array([0.05 * np.eye(M)] * components), []
    for _ in range(iterations):
        log = np.stack([np.log(w) + multivariate_normal(mu, c).logpdf(x) for w, mu, c in zip(weight, mean, cov)], 1)
        likelihood.append(logsumexp(log, axis=1).mean())
        r = np.exp(log - logsumexp(log, axis=1, keepdims=True))
        weight = r.mean(0)
        mean = (r.T @ x) / r.sum(0)[:, None]
        for k in range(components):
            d = x - mean[k]
            cov[k] = constrained((r[:, k, None] * d).T @ d / r[:, k].sum(), kind)
    flat = {"spherical": cov[:, 0, 0], "diagonal": np.einsum("kii->ki", cov), "full": cov}[kind]
    return {
        "what": "em", "kind": kind, "n": n, "components": components, "iterations": iterations,
        "likelihood": likelihood, "weight": weight.tolist(), "mean": mean.ravel().tolist(),
        "cov": flat.ravel().tolist(),
    }  # fmt: skip


def frequencies(number):
    k, j = np.arange(number)[:, None], np.arange(M)[None, :]
    return np.sin(1.7 * k + 0.6 * j + 0.3 * k * j)


def phi(x, w):
    angle = x @ w.T
    return np.concatenate([np.cos(angle), np.sin(angle)], 1) / np.sqrt(len(w))


def fourier(n, number):
    x, label = records(n)
    features = phi(x, frequencies(number))
    sums = np.stack([features[label == k].sum(0) for k in range(CLASSES)])
    return {
        "what": "fourier", "n": n, "frequencies": number, "first": features[0].tolist(), "sum": sums.ravel().tolist(),
        "count": [int((label == k).sum()) for k in range(CLASSES)],
    }  # fmt: skip


def shuffled(n, seed, stream):
    random, out = Random(seed, stream), list(range(n))
    for i in range(n, 1, -1):
        j = random.below(i)
        out[i - 1], out[j] = out[j], out[i - 1]
    return out


def softmax(n, epochs, batch, rate, decay, seed):
    x, label = records(n)
    x = (x - x.mean(0)) / x.std(0)
    w = np.zeros(CLASSES * (M + 1))
    first, second, step = np.zeros_like(w), np.zeros_like(w), 0
    for epoch in range(epochs):
        order = shuffled(n, seed, epoch)
        for at in range(0, n, batch):
            idx = order[at : at + batch]
            z = x[idx] @ w[: CLASSES * M].reshape(CLASSES, M).T + w[CLASSES * M :]
            p = np.exp(z - z.max(1, keepdims=True))
            p = p / p.sum(1, keepdims=True) - np.eye(CLASSES)[label[idx]]
            g = np.concatenate([(p.T @ x[idx]).ravel(), p.sum(0)]) / len(idx) + decay * w
            step += 1
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
            w -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    right = (x @ w[: CLASSES * M].reshape(CLASSES, M).T + w[CLASSES * M :]).argmax(1) == label
    return {
        "what": "softmax", "n": n, "epochs": epochs, "batch": batch, "rate": rate, "decay": decay, "seed": seed,
        "w": w.tolist(), "accuracy": float(right.mean()),
    }  # fmt: skip


def generator(code, hidden, batch, number, radius):
    sizes = [hidden * code, CLASSES * hidden, M * hidden, M]
    parameters = 0.3 * np.sin(0.37 * np.arange(sum(sizes)) + 0.2)
    z = np.cos(0.9 * np.arange(CLASSES * batch)[:, None] + 0.5 * np.arange(code)[None, :])
    target = 0.1 * np.cos(np.arange(CLASSES)[:, None] + 0.4 * np.arange(2 * number)[None, :])
    w = frequencies(number)

    def loss(p):
        A, a, B, b = np.split(p, np.cumsum(sizes)[:-1])
        A, a, B = A.reshape(hidden, code), a.reshape(CLASSES, hidden), B.reshape(M, hidden)
        h = np.maximum(0, z @ A.T + np.repeat(a, batch, 0))
        y = h @ B.T + b
        x = y / np.sqrt(1 + (y**2).sum(1, keepdims=True) / radius**2)
        drawn = phi(x, w).reshape(CLASSES, batch, -1).mean(1)
        return ((drawn - target) ** 2).sum()

    gradient, e = [], 1e-6
    for i in range(len(parameters)):
        up, down = parameters.copy(), parameters.copy()
        up[i] += e
        down[i] -= e
        gradient.append((loss(up) - loss(down)) / (2 * e))
    return {
        "what": "generator", "code": code, "hidden": hidden, "batch": batch, "frequencies": number,
        "radius": radius, "loss": loss(parameters), "gradient": gradient,
    }  # fmt: skip


def mu_of(epsilon, delta):
    """Balle, Wang 2018: the mu at which the Gaussian mechanism costs exactly (epsilon, delta)."""
    def excess(mu):
        return norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2) - delta
    return brentq(excess, 1e-3, 50, xtol=1e-14)


def sigmas(epsilon, delta, n, radius):
    mu = mu_of(epsilon, delta)
    both = np.hypot(2 / n, 4 * (n - 1) / n**2) / mu
    return {
        "what": "sigmas", "epsilon": epsilon, "delta": delta, "n": n, "radius": radius, "mean": radius * both,
        "cov": radius**2 * both, "sum": 1 / (mu * np.sqrt(0.99)), "count": 1 / (mu * np.sqrt(0.01)),
    }  # fmt: skip


def main():
    cases = [em(kind, 30, k, 4) for kind in KINDS for k in (1, 3)]
    cases += [em(kind, 3, 2, 3) for kind in KINDS]  # the floor
    cases += [fourier(700, 5), softmax(40, 5, 16, 0.05, 0.01, 7), generator(2, 3, 4, 5, 0.8)]
    cases += [sigmas(e, 1e-5, n, r) for e, n, r in ((10, 1, 1), (10, 50, 1.0595), (1, 700, 2), (0.1, 5, 1))]
    text = json.dumps({"cases": cases}, indent=1) + "\n"
    with open(sys.argv[1], "w") as f:
        f.write(text)
    print(hashlib.sha256(text.encode()).hexdigest(), np.__version__)


if __name__ == "__main__":
    main()

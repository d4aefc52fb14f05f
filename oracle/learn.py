#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learning as include/fedkt/learn.h has it, in plain PyTorch: the same networks, the same recipe, the same decisions.

usage: oracle/learn.py twin --images X.npz --test T.npz --start W.safetensors --recipe R.json --out RESULT.json
                            [--save MODEL.safetensors] [--device cpu] [--threads 2]
       oracle/learn.py jobs JOBS.json [--device cuda]      many twins: a list of objects with those keys;
                                                          those whose result is there are left out
       oracle/learn.py evaluate --model MODEL.safetensors --test T.npz [--predictions P.npy] [--device cpu]

It needs PyTorch and numpy and no other file, so that it can be carried to a machine with a GPU. X.npz has train_images
(n,S,S,3) uint8 and train_labels, T.npz test_images and test_labels. W.safetensors is what our binary begins from; a
recipe has the fields of struct fkt_recipe, those that are absent as fkt_recipe_default has them. Order, flips and crops
come from the generator of src/base/rng.c by the rule of src/classifier/augment.c, so that both sides see the same
batches; from there on float32 goes its own ways. Accuracy is the last epoch's.

Networks have torchvision's layout and names: load_state_dict(strict=True) of its resnet18 takes what is saved here.
  resnet18, stem imagenet   7x7 stride 2, max-pool 3x3 stride 2; 64, 128, 256, 512 channels, two basic blocks each
  resnet18, stem cifar      3x3 stride 1, no pool
  resnet8,  stem cifar      16, 32, 64 channels, one basic block each
"""

import argparse
import json
import math
import os
import struct
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

WIDTHS = {"resnet18": (64, 128, 256, 512), "resnet8": (16, 32, 64)}
BLOCKS = {"resnet18": 2, "resnet8": 1}

# ----------------------------------------------------------------------------------------------------------- networks


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes (He et al. 2016)."""

    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu1, self.relu2, self.downsample = nn.ReLU(), nn.ReLU(), None
        if stride != 1 or before != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu2(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, architecture, stem, classes):
        super().__init__()
        widths, self.stages = WIDTHS[architecture], len(WIDTHS[architecture])
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        else:
            self.conv1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, 1) if stem == "imagenet" else nn.Identity()
        before = widths[0]
        for stage, channels in enumerate(widths, 1):
            blocks = []
            for b in range(BLOCKS[architecture]):
                blocks.append(Block(before, channels, 2 if stage > 1 and b == 0 else 1))
                before = channels
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.fc = nn.Linear(before, classes)

    def forward(self, x):
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(1, self.stages + 1):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


def build(architecture, stem, classes=10):
    return ResNet(architecture, stem, classes)


def recognise(state):
    """(architecture, stem, classes) of a file of weights, by its shapes."""
    stem = "imagenet" if state["conv1.weight"].shape[-1] == 7 else "cifar"
    architecture = "resnet18" if "layer4.1.conv2.weight" in state else "resnet8"
    return architecture, stem, state["fc.weight"].shape[0]


def load(state):
    """The network of these weights (numpy arrays by name); every name must fit."""
    net = build(*recognise(state))
    have = {k: torch.from_numpy(np.array(v)) for k, v in state.items()}
    for k, v in net.state_dict().items():
        if k.endswith("num_batches_tracked"):
            have.setdefault(k, v)
    net.load_state_dict(have, strict=True)
    return net


def parameters_in_order(net):
    """(name, tensor) of what is learned, then of running means and variances."""
    stats = [(k, v) for k, v in net.named_buffers() if not k.endswith("num_batches_tracked")]
    return list(net.named_parameters()), stats


# -------------------------------------------------------------------------------------------------------- safetensors

TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "U8": np.uint8}


def read_safetensors(path):
    """({name: array}, {key: text})"""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(length))
        data = f.read()
    meta = head.pop("__metadata__", {})
    out = {}
    for name, t in head.items():
        first, last = t["data_offsets"]
        out[name] = np.frombuffer(data[first:last], TYPES[t["dtype"]]).reshape(t["shape"])
    return out, meta


def write_safetensors(path, tensors, meta=None):
    head, at, parts = {}, 0, []
    if meta:
        head["__metadata__"] = meta
    for name, x in tensors.items():
        kind = next(k for k, v in TYPES.items() if v == x.dtype)
        raw = np.array(x, order="C").tobytes()
        head[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        parts.append(raw)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def save(net, path, meta=None):
    write_safetensors(path, {k: v.detach().cpu().numpy() for k, v in net.state_dict().items()}, meta)


# ------------------------------------------------------------------------------------- public randomness: base/rng.c

GOLDEN, ONES = 0x9E3779B97F4A7C15, 2**64 - 1


def splitmix(x):
    """(next x, output); x is an array of uint64."""
    x = x + np.uint64(GOLDEN)
    z = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x, z ^ z >> np.uint64(31)


def rotl(x, k):
    return x << np.uint64(k) | x >> np.uint64(64 - k)


class Streams:
    """xoshiro256++ of one seed and many streams at once, one number of each at a time."""

    def __init__(self, seed, streams):
        streams = np.asarray(streams, np.uint64)
        _, a = splitmix(np.array([seed % 2**64], np.uint64))
        _, b = splitmix(streams ^ np.uint64(0x6A09E667F3BCC909))
        x, self.s = a ^ rotl(b, 17), []
        for _ in range(4):
            x, out = splitmix(x)
            self.s.append(out)

    def u64(self):
        s = self.s
        out, t = rotl(s[0] + s[3], 23) + s[0], s[1] << np.uint64(17)
        s[2] = s[2] ^ s[0]
        s[3] = s[3] ^ s[1]
        s[1] = s[1] ^ s[2]
        s[0] = s[0] ^ s[3]
        s[2] = s[2] ^ t
        s[3] = rotl(s[3], 45)
        return out

    def below(self, n):
        """Uniform in 0..n-1, unbiased; a stream that has to draw again goes on alone."""
        limit = 2**64 % n
        out = self.u64()
        again = out < np.uint64(limit)
        while again.any():
            other = Streams(0, np.zeros(int(again.sum()), np.uint64))
            other.s = [x[again] for x in self.s]
            out[again] = other.u64()
            for x, y in zip(self.s, other.s):
                x[again] = y
            again = out < np.uint64(limit)
        return (out % np.uint64(n)).astype(np.int64)


class Stream:
    """The same as plain whole numbers, for a long sequence out of one stream."""

    def __init__(self, seed, stream):
        self.s = [int(x[0]) for x in Streams(seed, [stream]).s]

    def below(self, n):
        limit, (a, b, c, d) = 2**64 % n, self.s
        while True:
            x = a + d & ONES
            out = (x << 23 | x >> 41) + a & ONES
            t = b << 17 & ONES
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= t
            d = (d << 45 | d >> 19) & ONES
            if out >= limit:
                self.s = [a, b, c, d]
                return out % n


# --------------------------------------------------------------------------------- what is seen: classifier/augment.c

VIEWS, ORDERS, EPOCH_BIT = 1 << 63, 1 << 62, 40


def order(n, seed, epoch):
    r, out = Stream(seed, ORDERS | epoch), list(range(n))
    for i in range(n, 1, -1):
        j = r.below(i)
        out[i - 1], out[j] = out[j], out[i - 1]
    return np.array(out)


def views(recipe, epoch, n):
    """(flip, top, left) of pictures 0..n-1."""
    index = np.arange(n, dtype=np.uint64) | np.uint64(VIEWS | epoch << EPOCH_BIT)
    r, pad = Streams(recipe["seed"], index), recipe["pad"]
    flip = r.below(2) & int(recipe["flip"])
    return flip, r.below(2 * pad + 1) - pad, r.below(2 * pad + 1) - pad


def pixel_table(meta):
    three = lambda key, usual: np.array(json.loads(meta[key]) if key in meta else usual, np.float32)
    mean, std = three("mean", (0.485, 0.456, 0.406)), three("std", (0.229, 0.224, 0.225))
    value = np.arange(256, dtype=np.float32) / np.float32(255)
    return torch.from_numpy((value[None] - mean[:, None]) / std[:, None])


def look(images, table, index, flip, top, left):
    """images (n,S,S,3) uint8 -> (batch,3,S,S); what lies outside a picture is 0."""
    size, device = images.shape[1], images.device
    i, flip, top, left = (torch.as_tensor(v, device=device) for v in (index, flip, top, left))
    x = torch.arange(size, device=device)
    rows = x[None] + top[:, None]
    cols = torch.where(flip[:, None] == 1, size - 1 - x[None], x[None]) + left[:, None]
    inside = ((rows >= 0) & (rows < size))[:, :, None] & ((cols >= 0) & (cols < size))[:, None, :]
    rows, cols = rows.clamp(0, size - 1), cols.clamp(0, size - 1)
    px = images[i[:, None, None], rows[:, :, None], cols[:, None, :]].long()
    return torch.stack([table[c][px[..., c]] * inside for c in range(3)], 1)


# -------------------------------------------------------------------------------------- the recipe: classifier/recipe.c

DEFAULTS = dict(epochs=20, batch=64, rate=0.05, momentum=0.9, decay=5e-4, nesterov=1, schedule="cosine", warmup=0.0)
DEFAULTS.update(optimizer="sgd", beta1=0.9, beta2=0.999)  # adam: PyTorch's epsilon, 1e-8
DEFAULTS.update(step_every=10.0, step_by=0.1, flip=1, pad=4, smoothing=0.0, seed=1)


def half_cosine(first, last, part):
    return last + (first - last) / 2 * (math.cos(math.pi * part) + 1)


def rate(r, step, per_epoch):
    steps = r["epochs"] * per_epoch
    before = math.floor(r["warmup"] * per_epoch + 0.5)
    every = max(1, math.floor(r["step_every"] * per_epoch + 0.5))
    if r["schedule"] == "constant":
        return r["rate"]
    if r["schedule"] == "one-cycle":
        top = 0.3 * steps - 1
        if step <= top:
            return half_cosine(r["rate"] / 25, r["rate"], step / top)
        return half_cosine(r["rate"], r["rate"] / 25 / 1e4, (step - top) / (steps - 1 - top))
    if step < before:
        return r["rate"] * (step + 1) / before
    if r["schedule"] == "step":
        return r["rate"] * r["step_by"] ** math.floor((step - before) / every)
    return half_cosine(r["rate"], 0.0, (step - before) / (steps - before))


def full_recipe(asked):
    unknown = set(asked) - set(DEFAULTS)
    if unknown:
        raise SystemExit(f"the twin knows no {sorted(unknown)}")
    return {**DEFAULTS, **asked}


# ------------------------------------------------------------------------------------------------- training, judging


def make_optimizer(parameters, r):
    if r["optimizer"] == "adam":
        betas = (r["beta1"], r["beta2"])
        return torch.optim.Adam(parameters, lr=r["rate"], betas=betas, eps=1e-8, weight_decay=r["decay"])
    if r["optimizer"] != "sgd":
        raise SystemExit(f"the twin knows no optimizer '{r['optimizer']}'")
    nesterov = bool(r["nesterov"])
    return torch.optim.SGD(parameters, lr=r["rate"], momentum=r["momentum"], weight_decay=r["decay"], nesterov=nesterov)


def train(net, images, labels, recipe, table, said=None):
    """All epochs; [{loss, accuracy, seconds}] on the batches as they were trained on."""
    n, device = len(labels), images.device
    size = min(recipe["batch"], n)
    per_epoch, history, step = n // size, [], 0
    optimizer = make_optimizer(net.parameters(), recipe)
    net.train()
    for epoch in range(recipe["epochs"]):
        start, turn, seen = time.perf_counter(), order(n, recipe["seed"], epoch), views(recipe, epoch, n)
        loss_sum, hits = torch.zeros((), device=device, dtype=torch.float64), torch.zeros((), device=device)
        for b in range(per_epoch):
            i = turn[b * size : (b + 1) * size]
            x, y = look(images, table, i, *(v[i] for v in seen)), labels[torch.as_tensor(i, device=device)]
            for group in optimizer.param_groups:
                group["lr"] = rate(recipe, step, per_epoch)
            optimizer.zero_grad(set_to_none=True)
            z = net(x)
            loss = F.cross_entropy(z, y, label_smoothing=recipe["smoothing"])
            loss.backward()
            optimizer.step()
            loss_sum += loss.detach()
            hits += (z.argmax(1) == y).sum()
            step += 1
        done = {"loss": float(loss_sum) / per_epoch, "accuracy": float(hits) / (per_epoch * size)}
        history.append({"epoch": epoch + 1, **done, "seconds": time.perf_counter() - start})
        if said:
            said(history[-1])
    return history


@torch.inference_mode()
def predict(net, images, table, batch=250):
    net.eval()
    out = []
    for first in range(0, len(images), batch):
        i = np.arange(first, min(first + batch, len(images)))
        zero = np.zeros(len(i), np.int64)
        out.append(net(look(images, table, i, zero, zero, zero)).float().cpu().numpy())
    return np.concatenate(out)


def read_pictures(path, split, device):
    with np.load(path) as z:
        images, labels = z[f"{split}_images"], z[f"{split}_labels"].reshape(-1).astype(np.int64)
    return torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)


def prepare(device, threads):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if threads:
        torch.set_num_threads(threads)
    return torch.device(device)


def twin(job, device):
    state, meta = read_safetensors(job["start"])
    with open(job["recipe"]) as f:
        recipe = full_recipe(json.load(f))
    net, table = load(state).to(device), pixel_table(meta).to(device)
    images, labels = read_pictures(job["images"], "train", device)
    start = time.perf_counter()
    history = train(net, images, labels, recipe, table, job.get("said"))
    seconds = time.perf_counter() - start
    images, labels = read_pictures(job["test"], "test", device)
    guess = predict(net, images, table).argmax(1)
    result = {
        "accuracy": float((guess == labels.cpu().numpy()).mean()),
        "test": len(guess),
        "images": int(np.load(job["images"], mmap_mode="r")["train_labels"].shape[0]),
        "recipe": recipe,
        "network": list(recognise(state)),
        "epochs": history,
        "seconds": seconds,
        "torch": torch.__version__,
        "device": str(device) if device.type == "cpu" else torch.cuda.get_device_name(device),
    }
    if job.get("save"):
        save(net, job["save"], {k: v for k, v in meta.items() if k in ("mean", "std")})
    with open(job["out"], "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    return result


def evaluate(a, device):
    state, meta = read_safetensors(a.model)
    images, labels = read_pictures(a.test, "test", device)
    guess = predict(load(state).to(device), images, pixel_table(meta).to(device)).argmax(1).astype(np.int64)
    if a.predictions:
        np.save(a.predictions, guess)
    print(json.dumps({"accuracy": float((guess == labels.cpu().numpy()).mean()), "n": len(guess)}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = p.add_subparsers(dest="verb", required=True)
    v = verbs.add_parser("twin")
    for key in ("images", "test", "start", "recipe", "out"):
        v.add_argument("--" + key, required=True)
    v.add_argument("--save")
    verbs.add_parser("jobs").add_argument("jobs")
    v = verbs.add_parser("evaluate")
    v.add_argument("--model", required=True)
    v.add_argument("--test", required=True)
    v.add_argument("--predictions")
    for v in verbs.choices.values():
        v.add_argument("--device", default="cpu")
        v.add_argument("--threads", type=int, default=0)
    a = p.parse_args()
    device = prepare(a.device, a.threads)
    if a.verb == "evaluate":
        return evaluate(a, device)
    jobs = json.load(open(a.jobs)) if a.verb == "jobs" else [vars(a)]
    if a.verb == "jobs":  # names are relative to the list
        os.chdir(os.path.dirname(os.path.abspath(a.jobs)))
    for job in jobs:
        if a.verb == "jobs" and os.path.exists(job["out"]):
            continue
        result = twin(job, device)
        print(json.dumps({"out": job["out"], "accuracy": result["accuracy"], "seconds": result["seconds"]}), flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The public images: Tiny ImageNet as published (train/<wnid>/[images/]*.JPEG, optionally val/<wnid>/*.JPEG).

Every tenth class in the order of their names is the proxy: no network is trained on it, and every choice is made on it.
"""
import os
from multiprocessing import Pool

import numpy as np
from PIL import Image

SIDE = 64


def proxy_classes(names):
    return sorted(names)[9::10]


def read(path):
    with Image.open(path) as im:
        return np.asarray(im.convert("RGB"))


def folder(root, limit=0):
    """[(wnid, [files])] of one split."""
    out = []
    for c in sorted(os.listdir(root)):
        here = os.path.join(root, c)
        if os.path.isdir(os.path.join(here, "images")):
            here = os.path.join(here, "images")
        files = sorted(os.path.join(here, f) for f in os.listdir(here) if f.upper().endswith("JPEG"))
        out.append((c, files[:limit] if limit else files))
    return out


def load(root, limit=0, workers=None):
    """Arrays of both splits: {"train": (images (n,64,64,3) uint8, labels (n)), "val": ...}, and the class names."""
    splits, names = {}, None
    for split in ("train", "val"):
        if not os.path.isdir(os.path.join(root, split)):
            continue
        classes = folder(os.path.join(root, split), limit)
        names = names or [c for c, _ in classes]
        if [c for c, _ in classes] != names:
            raise SystemExit(f"'{root}/{split}' has other classes than '{root}/train'")
        files = [f for _, fs in classes for f in fs]
        with Pool(workers) as pool:
            images = np.stack(pool.map(read, files, chunksize=256))
        labels = np.concatenate([np.full(len(fs), k) for k, (_, fs) in enumerate(classes)])
        splits[split] = (images, labels)
    return splits, names

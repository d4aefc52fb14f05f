# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 out of cifar10.tar.xz (ImageFolder layout, JPEG) as .npz that both sides read: the same pixels for both.

Classes are numbered in the order of their names, as ours are.
"""

import io
import os
import tarfile

import numpy as np

CLASSES = 10


def read_split(archive, split):
    """images (n,32,32,3) uint8 and labels, class by class, files in the order of their names."""
    from PIL import Image

    found = {}
    with tarfile.open(archive) as t:
        for member in t:
            parts = member.name.split("/")
            if member.isfile() and len(parts) >= 3 and parts[-3] == split:
                with Image.open(io.BytesIO(t.extractfile(member).read())) as picture:
                    found[parts[-2], parts[-1]] = np.asarray(picture.convert("RGB"))
    classes = sorted({name for name, _ in found})
    if len(classes) != CLASSES:
        raise SystemExit(f"'{archive}' has {len(classes)} classes in '{split}', not {CLASSES}")
    keys = sorted(found)
    labels = np.array([classes.index(name) for name, _ in keys], np.int64)
    return np.stack([found[k] for k in keys]), labels


def save(path, **arrays):
    """Whole or not at all."""
    with open(path + ".part", "wb") as f:
        np.savez(f, **arrays)
    os.replace(path + ".part", path)


def make_test(archive, path):
    if not os.path.exists(path):
        images, labels = read_split(archive, "test")
        save(path, test_images=images, test_labels=labels)


def make_train(archive, path, per_class):
    """The first per_class of each class after a fixed shuffle."""
    if os.path.exists(path):
        return
    images, labels = read_split(archive, "train")
    shuffle = np.random.default_rng(0)
    pick = [shuffle.permutation(np.flatnonzero(labels == k))[:per_class] for k in range(CLASSES)]
    pick = np.sort(np.concatenate(pick))
    save(path, train_images=images[pick], train_labels=labels[pick])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One checkpoint in two hands: our predictions beside PyTorch's on the 10,000 test images of CIFAR-10.

usage: bench/agreement.py --fedkt BINARY --data DIR --model MODEL.safetensors [MODEL ...] [--work DIR] [--threads 2]

DIR holds cifar10.tar.xz; MODEL is what `fedkt train` wrote (32 px, ten classes in the order of their names). Run it
with a Python that has PyTorch and Pillow. Prints the share of equal predictions, both accuracies, the largest
difference of a logit and, of the pictures on which both differ, how close their two best classes are. Exit 1 when fewer
than 99.9 % are equal.
"""

import argparse
import json
import os
import sys
import tempfile

import cifar
import numpy as np
from library import Door

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

LEAST = 0.999


def compare(a, model, images, labels):
    import learn
    import torch

    torch.set_num_threads(a.threads)
    state, meta = learn.read_safetensors(model)
    ours = Door(a.fedkt).predict(model, images, a.threads)
    theirs = learn.predict(learn.load(state), torch.from_numpy(images), learn.pixel_table(meta))
    guess, other = ours.argmax(1), theirs.argmax(1)
    apart = np.flatnonzero(guess != other)
    two = np.sort(theirs[apart], axis=1)[:, -2:]
    return {
        "model": os.path.basename(model),
        "network": learn.recognise(state)[0],
        "images": len(labels),
        "equal": float((guess == other).mean()),
        "different": len(apart),
        "accuracy": float((guess == labels).mean()),
        "accuracy_pytorch": float((other == labels).mean()),
        "largest_difference": float(np.abs(ours - theirs).max()),
        "largest_logit": float(np.abs(theirs).max()),
        "lead_where_different": float((two[:, 1] - two[:, 0]).max()) if len(apart) else None,
    }


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fedkt", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--model", required=True, nargs="+")
    p.add_argument("--work")
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    work = a.work or tempfile.mkdtemp()
    os.makedirs(work, exist_ok=True)
    test = os.path.join(work, "test.npz")
    cifar.make_test(os.path.join(a.data, "cifar10.tar.xz"), test)
    with np.load(test) as z:
        images, labels = z["test_images"], z["test_labels"]
    rows = [compare(a, model, images, labels) for model in a.model]
    print(json.dumps(rows, indent=1))
    return 0 if all(r["equal"] >= LEAST for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far two sets of moments, or of latents, are apart: for two devices, instruction sets or number formats.

usage: bench/moments_diff.py A.safetensors B.safetensors

Both are files of `fedkt moments`, or both files of `fedkt encode`. Prints JSON. Of moments: how many integers there are
(counts, sums, second moments), how many differ, the largest and the mean difference, and the largest one relative to
the largest number. Of latents: the same of floats.

Moments in which every record has a class of its own hold the integers q of each record as the sums of its class;
`records` below makes the latents file for it, and gpu_repeat.py and docs/method.md use it ("one number of q in ...").
"""

import json
import struct
import sys

import numpy as np

DTYPES = {"F32": "<f4", "I64": "<i8", "U8": "u1"}


def load(path):
    """{name: array}, metadata"""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        head, data = json.loads(f.read(length)), f.read()
    meta = head.pop("__metadata__", {})
    at = lambda i: np.frombuffer(data[slice(*i["data_offsets"])], DTYPES[i["dtype"]]).reshape(i["shape"])
    return {name: at(info) for name, info in head.items()}, meta


def save(path, arrays, meta):
    head, data = {"__metadata__": meta}, b""
    names = {np.dtype(v): k for k, v in DTYPES.items()}
    for name, a in arrays.items():
        raw = np.ascontiguousarray(a).tobytes()
        head[name] = {"dtype": names[a.dtype], "shape": a.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def records(path, out):
    """The latents of `path` with every record in a class of its own."""
    arrays, meta = load(path)
    arrays["labels"] = np.arange(len(arrays["labels"]), dtype="<i8")
    save(out, arrays, meta)


def apart(a, b):
    d = np.abs(a.astype(np.float64) - b.astype(np.float64))
    if not np.isfinite(d).all():
        raise ValueError("a number is not finite")
    some = d[d > 0]
    largest = float(d.max(initial=0))
    return {
        "numbers": int(d.size),
        "different": int(some.size),
        "share": some.size / max(1, d.size),
        "largest": largest,
        "mean": float(d.mean()) if d.size else 0.0,
        "mean_of_different": float(some.mean()) if some.size else 0.0,
        "largest_relative": largest / max(1e-30, float(np.abs(a).max(initial=0))),
    }


def compare(one, two):
    a, b = load(one)[0], load(two)[0]
    if set(a) != set(b) or any(a[k].shape != b[k].shape for k in a):
        raise ValueError("the files hold different tensors")
    if "latents" in a:
        if not (a["image_sha256"] == b["image_sha256"]).all():
            raise ValueError("the files are of different images")
        return {"latents": apart(a["latents"], b["latents"])}
    a, b = a["moments"], b["moments"]
    m = int((8 * a.shape[1] + 1) ** 0.5 - 1) // 2 - 1  # (m + 1)(m + 2) / 2 numbers of a class
    cut = {"counts": slice(0, 1), "sums": slice(1, 1 + m), "second": slice(1 + m, None)}
    return {k: apart(a[:, s], b[:, s]) for k, s in cut.items()}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(json.dumps(compare(*sys.argv[1:]), indent=1))

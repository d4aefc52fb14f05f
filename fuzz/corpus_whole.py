# SPDX-License-Identifier: Apache-2.0
"""corpus_whole.py - seeds for fuzz_whole: headers of small whole models and heads, and some that lie.

An input is the JSON header alone; see fuzz_whole.c, which adds the numbers.
"""

import json

BYTES = {"F16": 2, "F32": 4, "F64": 8}


def header(tensors, words):
    out, at = {"__metadata__": words}, 0
    for name, (dtype, shape) in tensors.items():
        count = BYTES[dtype]
        for n in shape:
            count *= n
        out[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + count]}
        at += count
    return json.dumps(out, separators=(",", ":")).encode()


def head(kind, prefix=""):
    """Two classes; parts of 3 and 3 coordinates for qda, the second alone for lda."""
    tensors = {prefix + "bias": ("F64", (2,))}
    words = {"kind": kind, "classes": '["owl","eel"]', "private": "true"}
    words |= {"task_sha256": "ab" * 32, "release_sha256": "cd" * 32}
    if kind == "qda":
        tensors |= {prefix + "mean": ("F64", (2, 6))}
        tensors |= {f"{prefix}map.{p}": ("F64", (2, 3, 3)) for p in range(2)}
        return tensors, words | {"parts": "[[0,3],[3,3]]"}
    return tensors | {prefix + "weight": ("F64", (2, 3))}, words | {"parts": "[[3,3]]"}


def network(part, kind="gain-shape"):
    none = [0.0, 0.0, -1, -1, -1, -1]
    ops = [
        ["resizing", 0, 0, 0, 0, 0, 0, 0, 0, 6, *none],
        ["convolution", 1, 0, 4, 3, 2, 0, 1, 1, 0, 0.0, 0.0, 0, -1, -1, -1],
        ["batch norm", 2, 0, 0, 0, 0, 0, 0, 0, 0, 1e-5, 0.0, 1, 2, 3, 4],
        ["ReLU6", 3, 0, 0, 0, 0, 0, 0, 0, 0, *none],
        ["addition", 3, 4, 0, 0, 0, 0, 0, 0, 0, *none],
        ["max-pool", 5, 0, 0, 3, 2, 1, 0, 0, 0, *none],
        ["mean", 6, 0, 0, 0, 0, 0, 0, 0, 0, *none],
        ["linear", 7, 0, 5, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 5, 6, -1, -1],
    ]
    slots = [["conv.weight", 4, 3, 3, 3]] + [[f"norm.{n}", 4] for n in ("weight", "bias", "mean", "var")]
    slots += [["fc.weight", 5, 4], ["fc.bias", 5]]
    coordinates = {"kind": kind, "dim": 2 if kind == "gain-shape" else 3, "rq": 256, "radius": 1.5}
    coordinates |= {"gamma": 0.35, "log_mean": 0.5, "log_spread": 1.5}
    about = {"name": "toy", "identity": "toy/1", "calibration_sha256": "ef" * 32, "calibration_source": "toy"}
    about |= {"pixel_scale": [1.0, 1.0, 1.0], "pixel_shift": [0.0, 0.5, 0.0], "latent_scale": 1.0, "latent_shift": 0.0}
    about |= {"coordinates": coordinates, "network": {"slots": slots, "ops": ops}}
    tensors = {f"net.{part}.{name}": ("F16", shape) for name, *shape in slots}
    tensors |= {f"calibration.{part}.centre": ("F32", (5,))}
    return about, tensors | {f"calibration.{part}.map": ("F32", (coordinates["dim"], 5))}


def whole(which, change=None, **words):
    tensors, about = head(which, "head.")
    parts = [network(p, ("gain-shape", "clip")[p]) for p in range(2 if which == "qda" else 1)]
    listed = [p for p, _ in parts]
    if change:
        change(listed[0])
    about |= {"format": "fedkt.whole/1", "size": "8", "filter": "bilinear", "fit": "crop", "data": "release 12, head"}
    about |= {"epsilon": "1", "delta": "1e-5", "adjacency": "add-remove"}
    about |= {"networks": json.dumps(listed, separators=(",", ":"))} | words
    return header({k: v for _, t in parts for k, v in t.items()} | tensors, about)


def operation(i, column, value):
    return lambda part: part["network"]["ops"][i].__setitem__(column, value)


def files():
    return {
        "whole-lda": whole("lda"),
        "whole-qda": whole("qda"),
        "whole-not-private": whole("lda", private="false: the noise came from a known seed"),
        "head-lda": header(*head("lda")),
        "head-qda": header(*head("qda")),
        "bad-size": whole("lda", size="100000"),
        "bad-kind": whole("lda", kind="svm"),
        "bad-epsilon": whole("lda", epsilon="nan"),
        "bad-json": whole("lda", networks="[{"),
        "bad-loop": whole("lda", operation(1, 1, 3)),
        "bad-slot": whole("lda", operation(1, 12, 9)),
        "bad-stride": whole("lda", operation(1, 5, 0)),
        "bad-resize": whole("lda", operation(0, 9, 1048576)),
        "bad-operation": whole("lda", operation(3, 0, "attention")),
        "bad-length": whole("lda", operation(7, 3, 4)),
        "bad-coordinates": whole("lda", lambda part: part["coordinates"].update(dim=1000000)),
        "bad-parts": whole("qda", parts="[[0,3],[2,3]]"),
        "empty": b"",
    }

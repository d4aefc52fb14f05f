#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_whole.py - whole models in other hands. Pixels go in and scores come out, the same ones, by three ways:
oracle/little_onnx.py (numpy alone, in double), onnxruntime where it is installed, and fedkt. onnx's checker and shape
inference read the graph where python3-onnx is installed.

usage: check_whole.py WHOLE_ONNX
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "oracle"))
import little_onnx  # noqa: E402

try:
    import onnx
    import onnx.checker
    import onnx.shape_inference
except ImportError:
    onnx = None
try:
    import onnxruntime
except ImportError:
    onnxruntime = None

N, SIDE, CLASSES = 9, 20, 3


def agree(what, got, want, tolerance):
    worst = np.abs(got - want).max() if got.shape == want.shape else np.nan
    print(f"{what}: largest difference of scores {worst:.2g}, of {np.abs(want).max():.2g}")
    if not worst <= tolerance * (1 + np.abs(want).max()):
        sys.exit(f"check_whole.py: {what}: scores differ")


def check(path, pixels):
    graph = little_onnx.read(path)
    images = pixels.transpose(0, 3, 1, 2)
    want = np.fromfile(path.with_suffix(".scores"), np.float32).reshape(N, CLASSES)
    assert graph.input == ("images", ["N", 3, SIDE, SIDE]) and graph.output == ("logits", ["N", CLASSES])
    assert graph.opset == [("", 13)] and graph.words["format"] == "fedkt.whole/1"
    assert json.loads(graph.words["classes"]) == ["owl", 'a "b"', "étang"]
    assert (graph.words["private"], graph.words["epsilon"]) == ("true", "1")
    assert graph.words["adjacency"] == "add-remove" and graph.words["release_sha256"] == "7".zfill(64)
    agree(f"{path.stem} in numpy", little_onnx.run(graph, images), want, 1e-5)
    if onnx:
        model = onnx.load(str(path))
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    if onnxruntime:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        assert session.get_inputs()[0].type == "tensor(uint8)"
        (got,) = session.run(["logits"], {"images": images})
        agree(f"{path.stem} in onnxruntime", got, want, 1e-5)


with tempfile.TemporaryDirectory() as place:
    subprocess.run([sys.argv[1], place, str(N)], check=True)
    rgb = np.fromfile(pathlib.Path(place) / "pixels", np.uint8).reshape(N, SIDE, SIDE, 3)
    files = sorted(pathlib.Path(place).glob("*.onnx"))
    assert len(files) >= 12
    for file in files:
        check(file, rgb)

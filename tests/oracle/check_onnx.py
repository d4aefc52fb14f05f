#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_onnx.py - our ONNX and event files in other hands: onnx's own checker and shape inference (Debian's
python3-onnx), and oracle/little_onnx.py, which reads both formats and computes the network with numpy alone.
Then files that onnx's library has rewritten as other exporters write them must read the same here.

onnxruntime, PyTorch and TensorBoard themselves: oracle/onnx_check.py, by hand.
Usage: check_onnx.py MODEL_ONNX
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper
import onnx.shape_inference

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "oracle"))
import little_onnx  # noqa: E402

TOOL, N = sys.argv[1], 3


def call(*words):
    subprocess.run([TOOL, *map(str, words)], check=True)


def predict(model, pixels, folder):
    pixels.tofile(folder / "pixels")
    call("predict", model, folder / "pixels", len(pixels), folder / "logits")
    return np.fromfile(folder / "logits", np.float32).reshape(len(pixels), -1)


def agree(what, got, want, tolerance=1e-4):
    worst = np.abs(got - want).max() if got.shape == want.shape else np.nan
    print(f"{what}: largest difference of logits {worst:.2g}, of {np.abs(want).max():.2g}")
    if not worst <= tolerance:
        sys.exit(f"check_onnx.py: {what}: logits differ")


def check_face(path, graph, architecture, side):
    """What the header of learn.h promises, by two readers."""
    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    shapes = {
        v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in inferred.graph.value_info
    }
    assert shapes["features"] == ["N", 64 if architecture == "resnet8" else 512], shapes["features"]
    assert graph.input == ("images", ["N", 3, side, side]) and graph.output == ("logits", ["N", 10])
    assert graph.ir_version == model.ir_version == 7 and graph.opset == [("", 13)]
    assert graph.words == {e.key: e.value for e in model.metadata_props}
    assert graph.words["architecture"] == architecture and graph.words["private"] == "true"
    assert json.loads(graph.words["classes"])[2:4] == ['a "b"', "été"]
    for t in model.graph.initializer:
        assert np.array_equal(onnx.numpy_helper.to_array(t), graph.tensors[t.name])
    return model


def folded(model):
    """Norms into convolutions, float_data, names without meaning: as PyTorch's exporters leave them."""
    tensors = {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}
    makers, nodes, used = {n.output[0]: n for n in model.graph.node}, [], {}

    def keep(array):
        name = f"onnx::{len(used)}"
        used[name] = onnx.helper.make_tensor(
            name, onnx.TensorProto.FLOAT, array.shape, array.astype(np.float32).ravel()
        )
        return name

    for n in model.graph.node:
        if n.op_type == "BatchNormalization":
            conv = makers[n.input[0]]
            weight, bias, mean, var = (tensors[i] for i in n.input[1:])
            scale = weight / np.sqrt(var + 1e-5)
            names = [keep(tensors[conv.input[1]] * scale[:, None, None, None]), keep(bias - mean * scale)]
            del conv.input[1:]
            conv.input.extend(names)
            conv.output[0] = n.output[0]
        else:
            if n.op_type == "Gemm":
                n.input[1:] = [keep(tensors[i]) for i in n.input[1:]]
            nodes.append(n)
    graph = onnx.helper.make_graph(nodes, "g", model.graph.input, model.graph.output, list(used.values()))
    out = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 15)], ir_version=8)
    out.metadata_props.extend(model.metadata_props)
    onnx.checker.check_model(out)
    return out


def check_model(folder, architecture, stem, side):
    path, again = folder / "model.onnx", folder / "again.onnx"
    call("make", architecture, stem, side, 10, path)
    graph = little_onnx.read(path)
    model = check_face(path, graph, architecture, side)
    pixels = np.random.default_rng(3).integers(0, 256, (N, side, side, 3), dtype=np.uint8)
    want = little_onnx.run(graph, little_onnx.normalised(pixels, graph.words))
    name = f"{architecture}, {stem}, {side} px"
    agree(name, predict(path, pixels, folder), want)
    onnx.save(folded(model), str(again))
    agree(name + ", folded by another hand", predict(again, pixels, folder), want)


def check_curves(folder):
    call("curves", folder / "runs")
    rows = list(csv.DictReader(open(folder / "runs" / "curves.csv", newline="", encoding="ascii")))
    assert [r["epoch"] for r in rows] == ["1", "2", "3"] and [float(r["loss"]) for r in rows] == [2.25, 1.5, 1.25]
    assert rows[0]["ema_held_loss"] == rows[2]["held_loss"] == "" and float(rows[1]["ema_held_accuracy"]) == 0.4375
    (path,) = (folder / "runs").glob("events.out.tfevents.*")
    assert path.name == "events.out.tfevents.1700000000.fedkt", path.name
    assert little_onnx.crc32c(b"123456789") == 0xE3069283
    first, *rest = little_onnx.events(path.read_bytes())
    assert first == (1700000000.25, 0, "brain.Event:2"), first
    assert [(wall, step) for wall, step, _ in rest] == [(1700000000.25, 1), (1700000010.25, 2), (1700000010.5, 3)]
    assert [v["train/loss"] for _, _, v in rest] == [2.25, 1.5, 1.25]
    assert "held/loss" not in rest[2][2] and rest[1][2]["held/accuracy"] == 0.375 and len(rest[1][2]) == 8
    print("curves: as they were made")


with tempfile.TemporaryDirectory() as place:
    check_model(pathlib.Path(place), "resnet8", "cifar", 32)
    check_model(pathlib.Path(place), "resnet18", "cifar", 16)
    check_model(pathlib.Path(place), "resnet18", "imagenet", 32)
    check_curves(pathlib.Path(place))

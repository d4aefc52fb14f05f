#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_vectors.py - graphs as PyTorch's exporters write them for torchvision's resnet18, without their numbers.

For each file of tests/vectors/onnx/: float tensors are emptied (tests put numbers in), words about the source are
taken off, all else stays as torch.onnx.export left it.
Usage: onnx_vectors.py FOLDER        needs torch, torchvision, onnx, onnxscript
"""

import hashlib
import json
import pathlib
import sys

import onnx
import torch
import torchvision


def hollow(model):
    """The graph without numbers and without words that name files of whoever exported it."""
    del model.metadata_props[:]
    model.doc_string = model.graph.doc_string = ""
    del model.graph.metadata_props[:]
    del model.graph.value_info[:]
    for item in [*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        item.doc_string = ""
        del item.metadata_props[:]
        if isinstance(item, onnx.TensorProto) and item.data_type == onnx.TensorProto.FLOAT:
            item.ClearField("raw_data")
            item.ClearField("float_data")
    return model


def main():
    out = pathlib.Path(sys.argv[1])
    net = torchvision.models.resnet18(num_classes=10).eval()
    x = (torch.zeros(2, 3, 64, 64),)
    keep = {"dynamo": False, "training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    ways = {
        "torch_export": {"dynamo": True, "external_data": False},
        "torch_export_any_batch": {
            "dynamo": True,
            "external_data": False,
            "dynamic_shapes": ({0: torch.export.Dim("n")},),
        },
        "torchscript_folded": {"dynamo": False},
        "torchscript_kept_once": keep,  # an untrained network: equal tensors, kept once
    }
    sidecar = {
        "tool": "oracle/onnx_vectors.py",
        "versions": {m.__name__: m.__version__.split("+")[0] for m in (torch, torchvision, onnx)},
        "command": "onnx_vectors.py tests/vectors/onnx",
        "sha256": {},
    }
    for name, how in ways.items():
        path = out / f"{name}.onnx"
        torch.onnx.export(net, x, str(path), verbose=False, **how)
        data = hollow(onnx.load(path)).SerializeToString(deterministic=True)
        path.write_bytes(data)
        sidecar["sha256"][path.name] = hashlib.sha256(data).hexdigest()
    (out / "onnx.json").write_text(json.dumps(sidecar, indent=2) + "\n")


if __name__ == "__main__":
    main()

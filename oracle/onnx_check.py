#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_check.py - what strangers make of our ONNX and event files, and we of theirs.

Needs onnx, onnxruntime, torch, torchvision and tensorboard, none of which Debian 12 has (but onnx); by hand:
    onnx_check.py build/release/bin/model_onnx
Exit 0: all agree, 1: not, 77: a package is missing. What needs no package is in tests/oracle/check_onnx.py.

Made with: torch 2.15.0, torchvision 0.29.2, onnx 1.23.2, onnxruntime 1.31.1, tensorboard 2.21.0.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    import onnx
    import onnxruntime
    import torch
    import torchvision
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
TOLERANCE = 1e-4


def pixels(n, side):
    return np.random.default_rng(3).integers(0, 256, (n, side, side, 3), dtype=np.uint8)


class Check:
    def __init__(self, tool, folder):
        self.tool, self.folder, self.failures = tool, pathlib.Path(folder), 0

    def call(self, *words):
        return subprocess.run([self.tool, *map(str, words)], capture_output=True, text=True)

    def predict(self, model, images):
        raw, out = self.folder / "pixels", self.folder / "logits"
        images.tofile(raw)
        done = self.call("predict", model, raw, len(images), out)
        if done.returncode:
            return None, done.stderr.splitlines()[0]
        return np.fromfile(out, np.float32).reshape(len(images), -1), ""

    def compare(self, what, got, want, why=""):
        worst = np.abs(got - want).max() if got is not None and got.shape == want.shape else np.nan
        good = worst <= TOLERANCE
        self.failures += not good
        print(
            f"{'ok ' if good else 'BAD'} {what}: logits differ by up to {worst:.2g}, of {np.abs(want).max():.2g} {why}"
        )

    def ours(self, architecture, stem, side):
        path = self.folder / "ours.onnx"
        self.call("make", architecture, stem, side, 10, path).check_returncode()
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        words = {e.key: e.value for e in model.metadata_props}
        images = pixels(5, side)
        mean, std = (np.array(json.loads(words[k])) for k in ("mean", "std"))
        x = ((images / 255 - mean) / std).transpose(0, 3, 1, 2).astype(np.float32)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (want,) = session.run(["logits"], {"images": x})
        got, why = self.predict(path, images)
        self.compare(f"ours in onnxruntime: {architecture}, {stem}, {side} px", got, want, why)

    def theirs(self, name, model, side, **how):
        path = self.folder / "theirs.onnx"
        torch.onnx.export(model, (torch.zeros(2, 3, side, side),), str(path), verbose=False, **how)
        images = pixels(5, side)
        x = torch.from_numpy(((images / 255 - MEAN) / STD).transpose(0, 3, 1, 2).astype(np.float32))
        with torch.no_grad():
            want = model(x).numpy()
        got, why = self.predict(path, images)
        self.compare(f"theirs in fedkt: {name}, {side} px", got, want, why)

    def refused(self, name, model, side, words, **how):
        path = self.folder / "theirs.onnx"
        torch.onnx.export(model, (torch.zeros(2, 3, side, side),), str(path), verbose=False, **how)
        _, why = self.predict(path, pixels(2, side))
        good = words in why
        self.failures += not good
        print(f"{'ok ' if good else 'BAD'} refused: {name}: {why}")

    def curves(self):
        folder = self.folder / "runs"
        self.call("curves", folder).check_returncode()
        reader = EventAccumulator(str(folder))
        reader.Reload()
        tags = reader.Tags()["scalars"]
        loss = [(e.step, e.wall_time, e.value) for e in reader.Scalars("train/loss")]
        held = [(e.step, e.value) for e in reader.Scalars("held/accuracy")]
        good = len(tags) == 8 and held == [(1, 0.25), (2, 0.375)]
        good = good and loss == [(1, 1700000000.25, 2.25), (2, 1700000010.25, 1.5), (3, 1700000010.5, 1.25)]
        self.failures += not good
        print(f"{'ok ' if good else 'BAD'} curves in TensorBoard: {tags}")


def lively(model):
    """Statistics and norms as after a training."""
    torch.manual_seed(1)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.1)
    return model.eval()


def networks():
    resnet = torchvision.models.resnet
    imagenet = lively(torchvision.models.resnet18(num_classes=10))
    cifar = torchvision.models.resnet18(num_classes=7)
    cifar.conv1, cifar.maxpool = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False), torch.nn.Identity()
    cifar = lively(cifar)
    fresh = torchvision.models.resnet18(num_classes=10).eval()  # equal tensors: kept once, with Identity nodes
    deeper = lively(torchvision.models.resnet34(num_classes=10))
    wide = lively(resnet.resnet50(num_classes=10))
    return imagenet, cifar, fresh, deeper, wide


def main():
    with tempfile.TemporaryDirectory() as folder:
        check = Check(sys.argv[1], folder)
        imagenet, cifar, fresh, deeper, wide = networks()
        check.ours("resnet18", "cifar", 32)
        check.ours("resnet18", "imagenet", 64)
        check.ours("resnet8", "cifar", 32)
        one_file = {"dynamo": True, "external_data": False}
        keep = {"dynamo": False, "training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
        any_batch = {"dynamic_shapes": ({0: torch.export.Dim("n")},)}
        check.theirs("torch.export, norms folded", imagenet, 64, **one_file)
        check.theirs("torch.export, any batch", imagenet, 64, **one_file, **any_batch)
        check.theirs("torch.export, CIFAR stem", cifar, 32, **one_file)
        check.theirs("TorchScript, norms folded", imagenet, 64, dynamo=False)
        check.theirs("TorchScript, norms kept", imagenet, 64, **keep)
        check.theirs("TorchScript, norms kept, opset 13", cifar, 32, **keep, opset_version=13)
        check.theirs("TorchScript, equal tensors kept once", fresh, 64, **keep)
        check.theirs("torch.export, untrained", fresh, 64, **one_file)
        check.refused("weights in another file", imagenet, 64, "in another file", dynamo=True)
        check.refused("not simplified", imagenet, 64, "no network that is known", optimize=False, **one_file)
        check.refused("resnet34", deeper, 64, "is not a resnet18", **one_file)
        check.refused("resnet50", wide, 64, "is not a resnet18", **one_file)
        check.refused(
            "softmax at the end", torch.nn.Sequential(imagenet, torch.nn.Softmax(1)), 64, "'Softmax'", **one_file
        )
        check.curves()
    return check.failures != 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: onnx_check.py MODEL_ONNX")
    sys.exit(main())

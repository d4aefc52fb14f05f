# SPDX-License-Identifier: Apache-2.0
"""Makes tests/vectors/codec/reference.safetensors with the reference implementation (package `safetensors`).

Usage: python3 safetensors_reference.py OUT            write the golden file
       python3 safetensors_reference.py --read FILE    print what the package sees in a file of ours
"""

import sys

import numpy as np
import safetensors


def write(path):
    half = np.array([0.0, -0.0, 1.0, -2.0, 65504.0, 2.0**-14, 2.0**-24, -(2.0**-15), 0.333251953125], dtype=np.float16)
    brain = np.array([1.0, -3.140625, 2.0**-126, 2.0**-133, 3.3895313892515355e38], dtype=np.float32)
    brain = (brain.view(np.uint32) >> 16).astype(np.uint16)
    raw = {
        "a.float": ("float32", np.arange(6, dtype=np.float32).reshape(2, 3) / 4),
        "b.double": ("float64", np.array([1 / 3, 2.5])),
        "c.half": ("float16", half),
        "d.brain": ("bfloat16", brain),
        "e.bytes": ("uint8", np.arange(5, dtype=np.uint8)),
        "f.long": ("int64", np.array([[-(2**62), 7]])),
        "g.scalar": ("int32", np.array(-5, dtype=np.int32)),
        "h.empty": ("float32", np.zeros((0, 4), dtype=np.float32)),
        'i."quoted"\nname': ("bool", np.array([True, False])),
    }
    spec = safetensors.TensorSpec
    tensors = {
        k: spec(dtype=t, shape=list(a.shape), data_ptr=a.ctypes.data, data_len=a.nbytes) for k, (t, a) in raw.items()
    }
    with open(path, "wb") as f:
        f.write(safetensors.serialize(tensors, {"made": 'by the reference é "q"'}))
    print("safetensors", safetensors.__version__, "numpy", np.__version__)


def read(path):
    with safetensors.safe_open(path, framework="np") as f:
        print("metadata", f.metadata())
        for k in f.keys():
            t = f.get_tensor(k)
            print(k, t.dtype, t.shape, t.tolist())


if __name__ == "__main__":
    read(sys.argv[2]) if sys.argv[1] == "--read" else write(sys.argv[1])

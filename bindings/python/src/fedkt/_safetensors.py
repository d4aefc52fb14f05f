# SPDX-License-Identifier: Apache-2.0
"""_safetensors.py - tensors of a file that the library has just written. Files of others are read by the library."""

from __future__ import annotations

import json

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def parse(raw):
    """{name: array} of the bytes of a safetensors file."""
    end = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:end])
    head.pop("__metadata__", None)
    found = {}
    for name, row in head.items():
        first, last = row["data_offsets"]
        found[name] = np.frombuffer(raw[end + first : end + last], TYPES[row["dtype"]]).reshape(row["shape"])
    return found

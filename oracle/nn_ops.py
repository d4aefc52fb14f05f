# SPDX-License-Identifier: Apache-2.0
"""Makes tests/vectors/nn/ops.safetensors: every operation of src/nn/net.h as PyTorch computes it.

Usage: python3 nn_ops.py OUT        (PyTorch, diffusers and safetensors from PyPI)

Tensor names are KIND/VARIANT/ROLE. Roles: x, z (second input), weight, bias, mean, var; y (the result); op, seven
whole numbers (channels, kernel, stride, pad, groups, factor, batch); value, two floats. Inputs are float32; PyTorch
computes in float64 and the result is rounded once (RMS norm and attention of diffusers turn to float32 inside).
"""

import sys

import diffusers
import safetensors.torch
import torch
import torch.nn.functional as F
from diffusers.models.attention_processor import SanaMultiscaleLinearAttention
from diffusers.models.normalization import RMSNorm

torch.manual_seed(20240607)
tensors = {}


def random(*shape):
    return torch.randn(*shape, dtype=torch.float32)


def case(name, fn, x, z=None, value=(0.0, 0.0), weights=None, **numbers):
    """Runs fn on doubles and keeps inputs and result."""
    weights = weights or {}
    keep = {"x": x, **weights}
    if z is not None:
        keep["z"] = z
    value = torch.tensor(value, dtype=torch.float32)
    doubles = {k: v.double() for k, v in weights.items()}
    inputs = [x.double()] + ([z.double()] if z is not None else [])
    with torch.no_grad():
        y = fn(*inputs, value=[float(v) for v in value], **doubles)
    order = ("channels", "kernel", "stride", "pad", "groups", "factor")
    numbers = [numbers.get(k, 0) for k in order] + [x.shape[0]]
    keep |= {"y": y.float(), "op": torch.tensor(numbers, dtype=torch.int64), "value": value}
    for role, t in keep.items():
        tensors[f"{name}/{role}"] = t.contiguous().clone()


def convolutions():
    for name, cin, cout, k, s, p, g, h, w, bias in (
        ("3x3", 5, 7, 3, 1, 1, 1, 6, 5, True),
        ("3x3 stride 2", 4, 6, 3, 2, 1, 1, 7, 8, False),
        ("1x1", 6, 9, 1, 1, 0, 1, 4, 4, False),
        ("depthwise", 6, 6, 3, 1, 1, 6, 5, 5, True),
        ("5x5 in groups", 4, 8, 5, 1, 2, 2, 4, 6, True),
        ("wide padding", 2, 3, 2, 3, 3, 1, 4, 4, True),
    ):
        weights = {"weight": random(cout, cin // g, k, k)} | ({"bias": random(cout)} if bias else {})
        case(
            f"convolution/{name}",
            lambda x, value, weight, bias=None: F.conv2d(x, weight, bias, stride=s, padding=p, groups=g),
            random(2, cin, h, w),
            weights=weights,
            channels=cout,
            kernel=k,
            stride=s,
            pad=p,
            groups=g,
        )
    linear = lambda x, value, weight, bias=None: F.linear(x.flatten(1), weight, bias)[:, :, None, None]
    weights = {"weight": random(5, 24), "bias": random(5)}
    case("linear/bias", linear, random(3, 2, 3, 4), weights=weights, channels=5)
    case("linear/no bias", linear, random(1, 6, 1, 1), weights={"weight": random(4, 6)}, channels=4)


def number_by_number():
    x = random(2, 5, 3, 4) * 4
    case("ReLU/all", lambda x, value: F.relu(x), x)
    case("SiLU/all", lambda x, value: F.silu(x), x)
    case("soft clamp/3", lambda x, value: torch.tanh(x / value[0]) * value[0], x, value=(3.0, 0.0))
    case("affine/some", lambda x, value: x * value[0] + value[1], x, value=(2.0, -1.5))
    case("addition/all", lambda x, z, value: x + z, x, random(2, 5, 3, 4))
    case("concatenation/5 and 2", lambda x, z, value: torch.cat((x, z), 1), x, random(2, 2, 3, 4))

    def glu(x, value):
        first, gate = torch.chunk(x, 2, dim=1)
        return first * F.silu(gate)

    case("GLU/6", glu, random(2, 6, 3, 3) * 3)


def moves():
    for f in (2, 3):
        case(f"upsampling/{f}", lambda x, value: F.interpolate(x, scale_factor=f), random(2, 3, 2, 3), factor=f)
        case(f"shuffle/{f}", lambda x, value: F.pixel_shuffle(x, f), random(2, 2 * f * f, 2, 3), factor=f)
        case(f"unshuffle/{f}", lambda x, value: F.pixel_unshuffle(x, f), random(2, 2, 2 * f, 3 * f), factor=f)
        case(
            f"group mean/{f}",
            lambda x, value: x.unflatten(1, (-1, f)).mean(dim=2),
            random(2, 4 * f, 3, 2),
            channels=4,
        )
        case(
            f"repeat/{f}",
            lambda x, value: x.repeat_interleave(f, dim=1),
            random(2, 3, 2, 2),
            channels=3 * f,
        )


def norms():
    def rms(x, value, weight, bias):
        norm = RMSNorm(x.shape[1], eps=value[0], elementwise_affine=True, bias=True).double()
        norm.weight.data, norm.bias.data = weight, bias
        return norm(x.movedim(1, -1)).movedim(-1, 1)

    vectors = {"weight": random(6), "bias": random(6)}
    case("RMS norm/6", rms, random(2, 6, 3, 4), value=(1e-5, 0.0), weights=vectors)
    case("RMS norm/large epsilon", rms, random(2, 6, 3, 4) / 100, value=(0.5, 0.0), weights=vectors)
    for groups in (1, 3, 6):
        case(
            f"group norm/{groups}",
            lambda x, value, weight, bias: F.group_norm(x, groups, weight, bias, eps=value[0]),
            random(2, 6, 3, 4) + 5,
            value=(1e-5, 0.0),
            weights=vectors,
            groups=groups,
        )
    case(
        "batch norm/stored",
        lambda x, value, weight, bias, mean, var: F.batch_norm(x, mean, var, weight, bias, eps=value[0]),
        random(2, 6, 3, 4),
        value=(1e-5, 0.0),
        weights=vectors | {"mean": random(6), "var": random(6) ** 2},
    )


def attention():
    def linear(x, value, length):
        whole = SanaMultiscaleLinearAttention(length, length, 1, length, kernel_sizes=(), eps=value[0])
        n, c, h, w = x.shape
        q, k, v = x.reshape(n, -1, 3 * length, h * w).chunk(3, dim=2)
        return whole.apply_linear_attention(F.relu(q), F.relu(k), v).reshape(n, c // 3, h, w)

    for heads, length in ((1, 4), (3, 2), (2, 32)):
        case(
            f"attention/{heads} of {length}",
            lambda x, value: linear(x, value, length),
            random(2, 3 * heads * length, 3, 2),
            value=(1e-15, 0.0),
            groups=length,
        )
    dead = random(1, 12, 2, 2)
    dead[:, :4] = -1  # no query left after ReLU: 0 / (0 + eps)
    case("attention/no query", lambda x, value: linear(x, value, 4), dead, value=(1e-15, 0.0), groups=4)


def pools():
    for name, k, s, p, h, w in (
        ("3x3 stride 2", 3, 2, 1, 9, 6),
        ("2x2", 2, 2, 0, 5, 4),
        ("2x2 padded", 2, 2, 1, 3, 6),
        ("5x5 stride 3", 5, 3, 2, 7, 8),
    ):
        case(
            f"max-pool/{name}",
            lambda x, value: F.max_pool2d(x, k, stride=s, padding=p),
            random(2, 5, h, w) - 3,  # what pads must not win over negative numbers
            kernel=k,
            stride=s,
            pad=p,
        )
    case("mean/all", lambda x, value: F.adaptive_avg_pool2d(x, 1), random(2, 5, 3, 4) + 1)
    case("mean/one", lambda x, value: F.adaptive_avg_pool2d(x, 1), random(3, 2, 1, 1))


if __name__ == "__main__":
    for make in (convolutions, number_by_number, moves, norms, attention, pools):
        make()
    safetensors.torch.save_file(tensors, sys.argv[1])
    print("torch", torch.__version__, "diffusers", diffusers.__version__, "tensors", len(tensors))

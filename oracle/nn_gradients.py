# SPDX-License-Identifier: Apache-2.0
"""Makes tests/vectors/nn/gradients.safetensors: learning, operation by operation, as PyTorch does it.

Usage: python3 nn_gradients.py OUT        (PyTorch and safetensors from PyPI)

Tensor names are KIND/VARIANT/ROLE. For the operations of src/nn/net.h that learn: x, z (second input), weight, bias,
mean, var as in nn_ops.py; y (the result), dy (a gradient that comes from above) and what autograd makes of it: dx, dz,
dweight, dbias. Batch norms use the statistics of their batch; "new mean" and "new var" are the stored ones afterwards.
op holds seven whole numbers (channels, kernel, stride, pad, groups, factor, batch), value two floats.

"loss": z, label, teacher; value (smoothing, temperature, share); loss, dz, hits.
"sgd": weight, three gradients g (3, N); value (rate, momentum, decay, nesterov); after (3, N), the weight after each.

Inputs are float32; PyTorch computes in float64 and results are rounded once.
"""

import sys

import safetensors.torch
import torch
import torch.nn.functional as F

torch.manual_seed(20240608)
tensors = {}


def random(*shape):
    return torch.randn(*shape, dtype=torch.float32)


def keep(name, roles):
    for role, t in roles.items():
        t = t.detach()
        tensors[f"{name}/{role}"] = (t.float() if t.dtype == torch.float64 else t).contiguous().clone()


def case(name, fn, x, z=None, value=(0.0, 0.0), weights=None, stored=None, **numbers):
    """Runs fn on doubles, forward and backward."""
    weights, stored = weights or {}, stored or {}
    value = torch.tensor(value, dtype=torch.float32)
    leaf = {
        k: v.double().requires_grad_() for k, v in ({"x": x} | ({"z": z} if z is not None else {}) | weights).items()
    }
    moved = {k: v.double() for k, v in stored.items()}
    y = fn(value=[float(v) for v in value], **leaf, **moved)
    dy = random(*y.shape)
    y.backward(dy.double())
    order = ("channels", "kernel", "stride", "pad", "groups", "factor")
    op = torch.tensor([numbers.get(k, 0) for k in order] + [x.shape[0]], dtype=torch.int64)
    keep(name, {"op": op, "value": value, "y": y, "dy": dy} | stored)
    keep(name, leaf)
    keep(name, {f"d{k}": v.grad for k, v in leaf.items()})
    keep(name, {f"new {k}": v for k, v in moved.items()})


def convolutions():
    for name, cin, cout, k, s, p, h, w, bias in (
        ("3x3", 5, 7, 3, 1, 1, 6, 5, True),
        ("3x3 stride 2", 4, 6, 3, 2, 1, 7, 8, False),
        ("7x7 stride 2", 3, 4, 7, 2, 3, 9, 12, False),
        ("1x1", 6, 9, 1, 1, 0, 4, 4, False),
        ("1x1 stride 2", 6, 4, 1, 2, 0, 5, 4, False),
        ("wide padding", 2, 3, 2, 3, 3, 4, 4, True),
        ("a long row", 2, 2, 3, 1, 1, 2, 70, True),
        ("a long row stride 2", 1, 2, 5, 2, 2, 2, 150, False),
    ):
        case(
            f"convolution/{name}",
            lambda x, value, weight, bias=None: F.conv2d(x, weight, bias, stride=s, padding=p),
            random(2, cin, h, w),
            weights={"weight": random(cout, cin, k, k)} | ({"bias": random(cout)} if bias else {}),
            channels=cout,
            kernel=k,
            stride=s,
            pad=p,
            groups=1,
        )
    linear = lambda x, value, weight, bias=None: F.linear(x.flatten(1), weight, bias)[:, :, None, None]
    case("linear/bias", linear, random(3, 2, 3, 4), weights={"weight": random(5, 24), "bias": random(5)}, channels=5)
    case("linear/no bias", linear, random(2, 6, 1, 1), weights={"weight": random(4, 6)}, channels=4)


def without_weights():
    x = random(2, 5, 3, 4)
    x[0, 0, 0, :] = 0.0  # where a ReLU has two slopes
    case("ReLU/all", lambda x, value: F.relu(x), x)
    case("addition/all", lambda x, z, value: x + z, x, random(2, 5, 3, 4))
    case("mean/all", lambda x, value: F.adaptive_avg_pool2d(x, 1), random(2, 5, 3, 4))
    ties = torch.randint(0, 3, (2, 4, 7, 6)).float()
    for name, k, s, p, given in (
        ("3x3 stride 2", 3, 2, 1, random(2, 5, 9, 6)),
        ("2x2", 2, 2, 0, random(2, 5, 5, 4)),
        ("3x3 stride 1", 3, 1, 1, random(1, 3, 5, 4)),
        ("ties", 3, 2, 1, ties),
        ("ties that overlap", 3, 1, 1, ties),
    ):
        pool = lambda x, value: F.max_pool2d(x, k, stride=s, padding=p)
        case(f"max-pool/{name}", pool, given, kernel=k, stride=s, pad=p)


def norms():
    for name, shape, centre, momentum in (
        ("maps", (4, 6, 3, 5), 0.0, 0.1),
        ("far from 0", (3, 5, 4, 4), 100.0, 0.1),
        ("single pixels", (7, 4, 1, 1), 0.0, 0.3),
    ):
        c = shape[1]
        case(
            f"batch norm/{name}",
            lambda x, value, weight, bias, mean, var: F.batch_norm(
                x, mean, var, weight, bias, training=True, momentum=value[1], eps=value[0]
            ),
            random(*shape) * 2 + centre,
            value=(1e-5, momentum),
            weights={"weight": random(c), "bias": random(c)},
            stored={"mean": random(c), "var": random(c) ** 2},
        )


def losses():
    label = torch.tensor([3, 0, 9, 4, 4, 7], dtype=torch.int32)
    for name, smoothing, temperature, share, size in (
        ("plain", 0.0, 1.0, 0.0, 3.0),
        ("smoothed", 0.1, 1.0, 0.0, 3.0),
        ("huge logits", 0.0, 1.0, 0.0, 3e4),
        ("teacher", 0.0, 4.0, 0.5, 3.0),
        ("teacher and smoothing", 0.2, 2.0, 0.9, 3.0),
        ("teacher alone", 0.0, 0.5, 1.0, 3.0),
    ):
        z, teacher = (random(6, 10) * size).double().requires_grad_(), random(6, 10).double() * 3
        k = torch.tensor((smoothing, temperature, share), dtype=torch.float64)
        hard = F.cross_entropy(z, label.long(), label_smoothing=smoothing)
        log_q, s = F.log_softmax(z / temperature, 1), F.softmax(teacher.float().double() / temperature, 1)
        soft = F.kl_div(log_q, s, reduction="batchmean") * temperature**2
        loss = (1 - share) * hard + share * soft
        loss.backward()
        hits = (z.argmax(1) == label).sum().to(torch.int32).reshape(1)
        keep(f"loss/{name}", {"z": z, "label": label, "teacher": teacher, "dz": z.grad, "hits": hits})
        tensors[f"loss/{name}/value"] = k
        tensors[f"loss/{name}/loss"] = loss.detach().reshape(1)


def steps():
    for name, rate, momentum, decay, nesterov in (
        ("plain", 0.1, 0.0, 0.0, False),
        ("momentum", 0.1, 0.9, 0.0, False),
        ("decay", 0.05, 0.9, 5e-4, False),
        ("nesterov", 0.1, 0.9, 5e-4, True),
    ):
        weight, g = random(8), random(3, 8)
        w = weight.double().requires_grad_()
        sgd = torch.optim.SGD([w], lr=rate, momentum=momentum, weight_decay=decay, nesterov=nesterov)
        after = []
        for row in g.double():
            w.grad = row.clone()
            sgd.step()
            after.append(w.detach().clone())
        value = torch.tensor((rate, momentum, decay, float(nesterov)), dtype=torch.float32)
        keep(f"sgd/{name}", {"weight": weight, "g": g, "value": value, "after": torch.stack(after)})


if __name__ == "__main__":
    for make in (convolutions, without_weights, norms, losses, steps):
        make()
    safetensors.torch.save_file(tensors, sys.argv[1])
    print("torch", torch.__version__, "tensors", len(tensors))

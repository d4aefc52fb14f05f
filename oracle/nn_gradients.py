# SPDX-License-Identifier: Apache-2.0
"""Makes gradients.safetensors and frozen.safetensors of tests/vectors/nn: backward, operation by operation, by PyTorch.

Usage: python3 nn_gradients.py LEARNING FROZEN        (PyTorch and safetensors from PyPI)

Tensor names are KIND/VARIANT/ROLE. For the operations of src/nn/net.h that learn: x, z (second input), weight, bias,
mean, var as in nn_ops.py; y (the result), dy (a gradient that comes from above) and what autograd makes of it: dx, dz,
dweight, dbias. Batch norms use the statistics of their batch; "new mean" and "new var" are the stored ones afterwards.
op holds seven whole numbers (channels, kernel, stride, pad, groups, factor, batch) and in FROZEN an eighth, pad_after;
value two floats.

"loss": z, label, teacher; value (smoothing, temperature, share); loss, dz, hits.
"sgd": weight, three gradients g (3, N); value (rate, momentum, decay, nesterov); after (3, N), the weight after each.
"adam": the same with value (rate, decay, beta1, beta2, epsilon), five gradients, and moments m and v after each.

FROZEN has every operation of src/nn/net.h with fixed weights, batch norms by what is stored: the same roles without
gradients of weights.

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
    op = [numbers.get(k, 0) for k in order] + [x.shape[0]]
    op = torch.tensor(op + [numbers["pad_after"]] if "pad_after" in numbers else op, dtype=torch.int64)
    keep(name, {"op": op, "value": value, "y": y, "dy": dy} | stored)
    keep(name, leaf)
    keep(name, {f"d{k}": v.grad for k, v in leaf.items()})
    keep(name, {f"new {k}": v for k, v in moved.items() if not torch.equal(v, stored[k].double())})


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


def adam():
    for name, rate, decay, beta1, beta2, epsilon in (
        ("usual", 1e-3, 0.0, 0.9, 0.999, 1e-8),
        ("decay", 0.05, 0.25, 0.9, 0.999, 1e-8),
        ("large epsilon", 0.1, 0.0, 0.5, 0.75, 0.125),
        ("no memory", 0.1, 1e-2, 0.0, 0.0, 1e-3),
    ):
        value = torch.tensor((rate, decay, beta1, beta2, epsilon), dtype=torch.float32)
        rate, decay, beta1, beta2, epsilon = (float(v) for v in value)  # what a float holds
        weight, g = random(8), random(5, 8)
        g[:, 0] = 0  # a number without a gradient stays, but for its decay
        w = weight.double().requires_grad_()
        optimizer = torch.optim.Adam([w], lr=rate, betas=(beta1, beta2), eps=epsilon, weight_decay=decay)
        after, m, v = [], [], []
        for row in g.double():
            w.grad = row.clone()
            optimizer.step()
            after.append(w.detach().clone())
            m.append(optimizer.state[w]["exp_avg"].clone())
            v.append(optimizer.state[w]["exp_avg_sq"].clone())
        made = {"after": torch.stack(after), "m": torch.stack(m), "v": torch.stack(v)}
        keep(f"adam/{name}", {"weight": weight, "g": g, "value": value} | made)


def frozen_sums():
    for name, cin, cout, k, s, p, groups, h, w, bias in (
        ("3x3", 5, 7, 3, 1, 1, 1, 6, 5, True),
        ("depthwise", 6, 6, 3, 1, 1, 6, 5, 5, True),
        ("depthwise 5x5 stride 2", 4, 4, 5, 2, 2, 4, 7, 6, False),
        ("5x5 in groups", 4, 8, 5, 1, 2, 2, 4, 6, True),
        ("1x1 in groups", 6, 3, 1, 1, 0, 3, 4, 4, False),
        ("wide padding in groups", 4, 6, 2, 3, 3, 2, 4, 4, True),
    ):
        fixed = {"weight": random(cout, cin // groups, k, k)} | ({"bias": random(cout)} if bias else {})
        case(
            f"convolution/{name}",
            lambda x, value, weight, bias=None: F.conv2d(x, weight, bias, stride=s, padding=p, groups=groups),
            random(2, cin, h, w),
            stored=fixed,
            channels=cout,
            kernel=k,
            stride=s,
            pad=p,
            groups=groups,
        )
    linear = lambda x, value, weight, bias: F.linear(x.flatten(1), weight, bias)[:, :, None, None]
    case("linear/bias", linear, random(3, 2, 3, 4), stored={"weight": random(5, 24), "bias": random(5)}, channels=5)


def frozen_plain():
    x = random(2, 5, 3, 4) * 4
    case("ReLU/all", lambda x, value: F.relu(x), x)
    case("SiLU/all", lambda x, value: F.silu(x), x)
    case("SiLU/far", lambda x, value: F.silu(x), x * 100)
    case("soft clamp/3", lambda x, value: torch.tanh(x / value[0]) * value[0], x, value=(3.0, 0.0))
    case("affine/some", lambda x, value: x * value[0] + value[1], x, value=(2.0, -1.5))
    case("addition/all", lambda x, z, value: x + z, x, random(2, 5, 3, 4))
    case("concatenation/5 and 2", lambda x, z, value: torch.cat((x, z), 1), x, random(2, 2, 3, 4))
    case("GLU/6", lambda x, value: x[:, :3] * F.silu(x[:, 3:]), random(2, 6, 3, 3) * 3)
    pool = lambda x, value: F.max_pool2d(x, 3, stride=2, padding=1)
    case("max-pool/3x3 stride 2", pool, random(2, 5, 9, 6), kernel=3, stride=2, pad=1)
    case("mean/all", lambda x, value: F.adaptive_avg_pool2d(x, 1), random(2, 5, 3, 4))
    for f in (2, 3):
        case(f"upsampling/{f}", lambda x, value: F.interpolate(x, scale_factor=f), random(2, 3, 2, 3), factor=f)
        case(f"shuffle/{f}", lambda x, value: F.pixel_shuffle(x, f), random(2, 2 * f * f, 2, 3), factor=f)
        case(f"unshuffle/{f}", lambda x, value: F.pixel_unshuffle(x, f), random(2, 2, 2 * f, 3 * f), factor=f)
        mean = lambda x, value: x.unflatten(1, (-1, f)).mean(dim=2)
        case(f"group mean/{f}", mean, random(2, 4 * f, 3, 2), channels=4)
        repeat = lambda x, value: x.repeat_interleave(f, dim=1)
        case(f"repeat/{f}", repeat, random(2, 3, 2, 2), channels=3 * f)


def frozen_norms():
    def rms(x, value, weight, bias):
        x = x.movedim(1, -1)
        return (F.rms_norm(x, x.shape[-1:], weight, eps=value[0]) + bias).movedim(-1, 1)

    vectors = {"weight": random(6), "bias": random(6)}
    case("RMS norm/6", rms, random(2, 6, 3, 4), value=(1e-5, 0.0), stored=vectors)
    case("RMS norm/large epsilon", rms, random(2, 6, 3, 4) / 100, value=(0.5, 0.0), stored=vectors)
    for groups in (1, 3, 6):
        case(
            f"group norm/{groups}",
            lambda x, value, weight, bias: F.group_norm(x, groups, weight, bias, eps=value[0]),
            random(2, 6, 3, 4) + 5,
            value=(1e-5, 0.0),
            stored=vectors,
            groups=groups,
        )
    case(
        "batch norm/stored",
        lambda x, value, weight, bias, mean, var: F.batch_norm(x, mean, var, weight, bias, eps=value[0]),
        random(2, 6, 3, 4),
        value=(1e-5, 0.0),
        stored=vectors | {"mean": random(6), "var": random(6) ** 2},
    )


def frozen_attention():
    def attend(x, value, length):
        n, c, h, w = x.shape
        q, k, v = x.reshape(n, -1, 3 * length, h * w).chunk(3, dim=2)
        match = F.relu(k).transpose(2, 3) @ F.relu(q)  # (.., keys, queries)
        return (v @ match / (match.sum(2, keepdim=True) + value[0])).reshape(n, c // 3, h, w)

    dead = random(1, 12, 2, 2)
    dead[:, :4] = -1  # no query left after ReLU: 0 / (0 + eps)
    for name, length, x in (
        ("1 of 4", 4, random(2, 12, 3, 2)),
        ("3 of 2", 2, random(2, 18, 3, 2)),
        ("2 of 32", 32, random(1, 192, 2, 3)),
        ("no query", 4, dead),
    ):
        case(f"attention/{name}", lambda x, value: attend(x, value, length), x, value=(1e-6, 0.0), groups=length)


def frozen_same():
    """TensorFlow's "same" padding, and what networks for small devices have beside it."""
    for name, cin, cout, k, groups, h, w, before, after, bias in (
        ("3x3 same", 3, 8, 3, 1, 8, 6, 0, 1, False),
        ("3x3 depthwise same", 6, 6, 3, 6, 6, 8, 0, 1, True),
        ("5x5 depthwise same", 5, 5, 5, 5, 8, 4, 1, 1, True),
        ("5x5 in groups same", 4, 8, 5, 2, 4, 6, 1, 1, False),
        ("2x2 after alone", 3, 4, 2, 1, 5, 3, 0, 3, True),
    ):
        pads = (before, before + after) * 2
        case(
            f"convolution/{name}",
            lambda x, value, weight, bias=None: F.conv2d(F.pad(x, pads), weight, bias, stride=2, groups=groups),
            random(2, cin, h, w),
            stored={"weight": random(cout, cin // groups, k, k)} | ({"bias": random(cout)} if bias else {}),
            channels=cout,
            kernel=k,
            stride=2,
            pad=before,
            groups=groups,
            pad_after=after,
        )
    x = random(2, 5, 3, 4) * 6
    x[0, 0, 0] = torch.tensor((0.0, 6.0, -0.0, 5.999))  # where it has two slopes
    case("ReLU6/all", lambda x, value: F.relu6(x), x)
    for side, h, w in ((5, 5, 5), (7, 3, 4), (3, 7, 5), (8, 8, 3), (1, 4, 3), (6, 1, 1), (4, 12, 8), (11, 4, 9)):
        case(
            f"resizing/{h} x {w} to {side}",
            lambda x, value: F.interpolate(x, (side, side), mode="bilinear", align_corners=False, antialias=True),
            random(2, 3, h, w),
            factor=side,
        )


def write(makers, path):
    tensors.clear()
    for make in makers:
        make()
    safetensors.torch.save_file(tensors, path)
    print(path, "torch", torch.__version__, "tensors", len(tensors))


if __name__ == "__main__":
    write((convolutions, without_weights, norms, losses, steps, adam), sys.argv[1])
    write((frozen_sums, frozen_plain, frozen_norms, frozen_attention, frozen_same), sys.argv[2])

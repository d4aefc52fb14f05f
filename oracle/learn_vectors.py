#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of learning from PyTorch: tests/vectors/nn/learn_<case>.safetensors and a .json each.

usage: oracle/learn_vectors.py [--out tests/vectors/nn] [--only SUBSTRING] [--full DIR]

A case is a network with the weights below and STEPS steps of SGD (Nesterov, momentum 0.9, weight decay 5e-4) on BATCHES
batches that come round and round. Batch s has pictures "input.T.S.weight" of oracle/random_weights.py for (numbers, 1),
S = s mod BATCHES: uniform with variance 1; picture i of it has label (3 i + 7 S + i^2) mod 10. T is the case's own.

Weights are those of oracle/random_weights.py, but that a norm's bias is moved (in float32) by
  +m   bn1 of the stem, bn2 of a block        +m/2   a shortcut's        bn1 of a block: +m where it is >= 0, else -m
Why: a ReLU has no derivative at 0. Of two million sums before ReLUs a few are nearer to 0 than float32 can tell, and
one that falls on the other side changes gradients by a part in 1,000 (PyTorch in float32 and in float64 differ by 5e-3
in resnet18 with plain weights): any two right implementations would. With these biases fewer sums are near 0, and T is
the first for which none is nearer than MARGIN (a norm's output has size 1) in step 1; neither are the two largest of a
pooling window. The larger m, the more a bias is undone by the next norm: its gradient is then a small difference of
large sums, so that m is no larger than the number of ReLUs asks for.

Kept, as float64:
  loss (STEPS)              cross-entropy of each step, before its update
  logits (batch, 10)        of step 1
  gradient/NAME             sketch of step 1's gradient
  velocity/NAME             sketch of what SGD carries on after MOVED steps: momentum and weight decay
  first/NAME, last/NAME     sketch of a running mean or variance after step 1 and after STEPS steps
  double/...                the same from PyTorch in float64
  bf16/loss, bf16/NAME      how far PyTorch itself is off in bfloat16 (autocast): of loss and of a gradient of step 1,
                            relative to float32
A sketch of a tensor x is [ |x|, <s_0, x>, ..., <s_15, x>, eight of its numbers ]. Signs s_p: bit p of
splitmix64(fnv1a64(NAME + "/signs") + i) is 1: +1, else -1. Number j of the eight is x[j (count - 1) / 7], rounded down.
The mean of <s_p, x - y>^2 over p is |x - y|^2 on average, so that sketches tell the relative error
|x - y| / |y| of whole tensors.

--full DIR also writes all gradients of step 1 and the weights after STEPS steps, whole, to DIR/<case>.safetensors:
for a comparison by hand, too large to be kept.

Needs PyTorch and numpy.
"""

import argparse
import hashlib
import json
import os
import platform

# Machines that announce tiles without describing them kill a process that uses them; see src/nn/cpu.h.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import learn
import numpy as np
import random_weights
import torch
import torch.nn.functional as F

CASES = {  # architecture, stem, batch, side, rate, m
    "resnet8": ("resnet8", "cifar", 8, 32, 5e-4, 1.0),
    "resnet18_cifar": ("resnet18", "cifar", 4, 32, 2e-5, 2.0),
    "resnet18_imagenet": ("resnet18", "imagenet", 2, 64, 2e-5, 2.0),
}
MARGIN = 1e-5
STEPS, BATCHES, MOVED, SIGNS, ENTRIES = 20, 4, 3, 16, 8
MOMENTUM, DECAY = 0.9, 5e-4


def batch(step, n, side, t):
    s = step % BATCHES
    x = random_weights.tensor(f"input.{t}.{s}.weight", (n * 3 * side * side, 1)).reshape(n, 3, side, side)
    i = np.arange(n)
    return torch.from_numpy(x), torch.from_numpy((3 * i + 7 * s + i * i) % 10)


def bits(name, count):
    """Sixteen bits for each element; splitmix64 as in random_weights."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64)
        z += np.uint64((random_weights.fnv1a64(name + "/signs") + 0x9E3779B97F4A7C15) % 2**64)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def sketch(name, x):
    x = x.detach().double().numpy().ravel()
    b = bits(name, x.size)
    dots = [x[(b >> np.uint64(p)) & np.uint64(1) == 1].sum() * 2 - x.sum() for p in range(SIGNS)]
    entries = [x[j * (x.size - 1) // (ENTRIES - 1)] for j in range(ENTRIES)]
    return np.array([np.linalg.norm(x), *dots, *entries])


def moved(name, x, m):
    """A norm's bias away from where ReLUs bend."""
    if not name.endswith("bias") or name == "fc.bias":
        return x
    if "downsample" in name:
        return x + np.float32(m / 2)
    if name == "bn1.bias" or name.endswith("bn2.bias"):
        return x + np.float32(m)
    return x + np.where(x >= 0, np.float32(m), np.float32(-m))


def network(architecture, stem, m, dtype):
    net = learn.build(architecture, stem)
    state = {k: moved(k, random_weights.tensor(k, tuple(v.shape)), m) for k, v in net.state_dict().items()}
    net.load_state_dict({k: torch.from_numpy(np.asarray(v)) for k, v in state.items()})
    return net.to(dtype).train()


def margin(net, x):
    """How near to a bend the network comes: the least |sum| before a ReLU, the least lead of a pooling window."""
    least = [np.inf]

    def relu(_, args):
        least[0] = min(least[0], float(args[0].abs().min()))

    def pool(_, args):
        cut = F.unfold(F.pad(args[0].flatten(0, 1)[:, None], (1, 1, 1, 1), value=-1), 3, stride=2)
        two = cut.topk(2, dim=1).values
        lead = (two[:, 0] - two[:, 1])[two[:, 0] > 0]
        least[0] = min(least[0], float(lead.min()))

    hooks = [
        m.register_forward_pre_hook(relu if isinstance(m, torch.nn.ReLU) else pool)
        for m in net.modules()
        if isinstance(m, (torch.nn.ReLU, torch.nn.MaxPool2d))
    ]
    with torch.no_grad():
        net(x.double())
    for h in hooks:
        h.remove()
    return least[0]


def find_pictures(case):
    architecture, stem, n, side, _, m = CASES[case]
    net = network(architecture, stem, m, torch.float64)
    for t in range(1000):
        away = margin(net, batch(0, n, side, t)[0])
        if away >= MARGIN:
            return t, away
    raise SystemExit(f"{case}: no pictures keep away from the bends")


def run(case, t, dtype, full):
    architecture, stem, n, side, rate, m = CASES[case]
    net = network(architecture, stem, m, dtype)
    sgd = torch.optim.SGD(net.parameters(), lr=rate, momentum=MOMENTUM, weight_decay=DECAY, nesterov=True)
    params, stats = learn.parameters_in_order(net)
    out, losses = {}, []
    for step in range(STEPS):
        x, label = batch(step, n, side, t)
        sgd.zero_grad()
        z = net(x.to(dtype))
        loss = F.cross_entropy(z, label)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            out["logits"] = z.detach().double().numpy()
            out.update({f"gradient/{k}": sketch(k, v.grad) for k, v in params})
            out.update({f"first/{k}": sketch(k, v) for k, v in stats})
            full.update({f"gradient/{k}": v.grad.numpy().copy() for k, v in params})
        sgd.step()
        if step + 1 == MOVED:
            out.update({f"velocity/{k}": sketch(k, sgd.state[v]["momentum_buffer"]) for k, v in params})
    out.update({f"last/{k}": sketch(k, v) for k, v in stats})
    full.update({f"weight/{k}": v.detach().numpy().copy() for k, v in params})
    out["loss"] = np.array(losses)
    return out


def half_the_bits(case, t, want, loss):
    """PyTorch's own error in bfloat16, of loss and gradients of step 1."""
    architecture, stem, n, side, _, m = CASES[case]
    net = network(architecture, stem, m, torch.float32)
    x, label = batch(0, n, side, t)
    with torch.autocast("cpu", torch.bfloat16):
        z = net(x)
    got = F.cross_entropy(z.float(), label)
    got.backward()
    out = {"bf16/loss": np.array([abs(got.item() - loss) / abs(loss)])}
    for k, v in net.named_parameters():
        g = want[f"gradient/{k}"].astype(np.float64)
        out[f"bf16/{k}"] = np.array([np.linalg.norm(v.grad.double().numpy() - g) / np.linalg.norm(g)])
    return out


def apart(a, b, prefix):
    """The worst relative error of whole tensors, told from their sketches."""
    worst = 0.0
    for k, y in b.items():
        if k.startswith(prefix):
            d = a[k][1 : 1 + SIGNS] - y[1 : 1 + SIGNS]
            worst = max(worst, float(np.sqrt(np.mean(d * d)) / y[0]))
    return worst


def write(folder, case, full_folder):
    full, unused = {}, {}
    t, away = find_pictures(case)
    single = run(case, t, torch.float32, full)
    double = run(case, t, torch.float64, unused)
    out = dict(single)
    out["pictures"] = np.array([t], np.int64)
    out.update({f"double/{k}": v for k, v in double.items()})
    out.update(half_the_bits(case, t, full, single["loss"][0]))
    path = os.path.join(folder, f"learn_{case}.safetensors")
    learn.write_safetensors(path, out)
    architecture, stem, n, side, rate, m = CASES[case]
    own = {k: apart(single, double, k) for k in ("gradient/", "velocity/", "first/", "last/")}
    own["loss"] = [float(abs(single["loss"][i] / double["loss"][i] - 1)) for i in (0, STEPS - 1)]
    own["bf16"] = [float(f([v[0] for k, v in out.items() if k.startswith("bf16/")])) for f in (np.median, max)]
    sidecar = {
        "file": os.path.basename(path),
        "what": f"{architecture}, stem {stem}, batch {n}, {side} px, rate {rate}, m {m}: {STEPS} steps",
        "tool": f"oracle/learn_vectors.py, PyTorch {torch.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {torch.get_num_threads()} threads",
        "command": f"oracle/learn_vectors.py --only {case}",
        "pictures": t,
        "margin": away,
        "losses": [round(float(v), 6) for v in single["loss"]],
        "pytorch_against_itself": {
            "what": "worst relative error of a tensor: float32 against float64, of steps 1 and 20 for the loss; bf16 "
            "(median and worst over tensors) against float32",
            **{k.rstrip("/"): v for k, v in own.items()},
        },
        "sha256": hashlib.sha256(open(path, "rb").read()).hexdigest(),
    }
    with open(os.path.splitext(path)[0] + ".json", "w") as f:
        json.dump(sidecar, f, indent=2)
        f.write("\n")
    if full_folder:
        learn.write_safetensors(os.path.join(full_folder, f"{case}.safetensors"), full)
    print(json.dumps(sidecar["pytorch_against_itself"], indent=1), sidecar["losses"], os.path.getsize(path))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/vectors/nn"))
    p.add_argument("--only", default="")
    p.add_argument("--full")
    a = p.parse_args()
    torch.set_num_threads(2)
    for case in CASES:
        if a.only in case:
            write(a.out, case, a.full)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights that look random and are the same everywhere; tests/support/random_weights.c makes the same numbers.

usage: oracle/random_weights.py NAME LAYOUT OUT.safetensors        (NAME and LAYOUT as in oracle/networks.py)

Layout taesd gives two files, OUT_encoder.safetensors and OUT_decoder.safetensors.

Element i of tensor NAME: r = splitmix64(fnv1a64(NAME) + i), u = (r >> 40) / 2^23 - 1, uniform in [-1, 1) with 24 bits.
  *.num_batches_tracked   0, as I64
  *.running_mean          0.1 u
  *.running_var           1 + 0.5 |u|
  *.bias                  0.1 u
  *.weight of rank 1      1 + 0.1 u                                 a norm's
  *.weight of rank > 1    sqrt(3/fan_in) u, fan_in = product of all but the first dimension: variance 1/fan_in
computed in double and rounded once, so that activations stay of order one through any depth of these networks.

Needs numpy alone for the numbers; PyTorch, diffusers and safetensors from PyPI to know the names of a network.
"""

import sys

import numpy as np

CHUNK = 1 << 18  # elements at a time: the intermediate arrays stay in the cache


def fnv1a64(name):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = (h ^ b) * 0x100000001B3 % 2**64
    return h


def uniform(name, first, count):
    """u for elements first .. first + count - 1, float64."""
    with np.errstate(over="ignore"):
        z = np.arange(first, first + count, dtype=np.uint64)
        z += np.uint64((fnv1a64(name) + 0x9E3779B97F4A7C15) % 2**64)
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        return (z >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0


def law(name, shape):
    """u -> value, for a tensor of this name and shape."""
    last = name.rsplit(".", 1)[-1]
    if last == "running_var":
        return lambda u: 1.0 + 0.5 * np.abs(u)
    if last in ("bias", "running_mean"):
        return lambda u: 0.1 * u
    if last != "weight":
        raise ValueError(f"no rule for tensor '{name}'")
    if len(shape) == 1:
        return lambda u: 1.0 + 0.1 * u
    scale = np.sqrt(3.0 / int(np.prod(shape[1:])))
    return lambda u: scale * u


def tensor(name, shape):
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, np.int64)
    out = np.empty(int(np.prod(shape)), np.float32)
    f = law(name, shape)
    for i in range(0, out.size, CHUNK):
        n = min(CHUNK, out.size - i)
        out[i : i + n] = f(uniform(name, i, n))
    return out.reshape(shape)


def fill(state):
    """The same names and shapes with these numbers, for a state_dict of torch tensors."""
    import torch

    return {k: torch.from_numpy(tensor(k, tuple(v.shape))) for k, v in state.items()}


def network(name, layout):
    """The network of oracle/networks.py with these weights."""
    import networks
    import torch

    with torch.device("meta"):
        net = networks.build(name, layout)
    return networks.load(net, layout, {suffix: fill(part) for suffix, part in networks.files(net, layout).items()})


def main(name, layout, path):
    import networks
    import torch
    from safetensors.numpy import save_file

    with torch.device("meta"):
        parts = networks.files(networks.build(name, layout), layout)
    base, dot, end = path.rpartition(".")
    for suffix, part in parts.items():
        save_file({k: tensor(k, tuple(v.shape)) for k, v in part.items()}, base + suffix + dot + end)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

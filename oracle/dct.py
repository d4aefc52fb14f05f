# SPDX-License-Identifier: Apache-2.0
"""Slow reference of the dct codec and its built-in calibration; makes tests/vectors/codec/dct.safetensors.

Usage: /usr/bin/python3 oracle/dct.py tests/vectors/codec/dct.safetensors

The transform is scipy.fft.dctn, the special functions are scipy.special, the order is a plain sort by energy
with a power function: none of it shares code or method with src/codec.
Per case S (side) and D (coefficients), tensors: rgb (n,S,S,3) U8; order (D,3) U16 plane,u,v; z (n,D) F64;
decoded (n,S,S,3) F32, clamped to 0..255 and not rounded; scale (D) F64 = sqrt(energy);
constants (3) F64: log_mean, log_spread, radius.
"""

import json
import struct
import sys

import numpy as np
import scipy
import scipy.fft
import scipy.special

CASES = [(8, 1, 2), (8, 192, 3), (32, 64, 2), (45, 300, 1)]


def planes(rgb):
    """(S,S,3) uint8 -> (3,S,S): Y, Cb, Cr of full-range BT.601, luma shifted to -0.5..0.5."""
    r, g, b = np.moveaxis(rgb.astype(np.float64) / 255, -1, 0)
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return np.stack([y - 0.5, (b - y) / 1.772, (r - y) / 1.402])


def pixels(p):
    y = p[0] + 0.5
    r = y + 1.402 * p[2]
    b = y + 1.772 * p[1]
    g = (y - 0.299 * r - 0.114 * b) / 0.587
    return np.clip(np.stack([r, g, b], -1) * 255, 0, 255)


def energy(p, u, v, size):
    return size**2 * (1 / 64 if p == 0 else 1 / 1024) / (1 + u * u + v * v) ** 1.2


def zigzag(u, v):
    d = u + v
    return (d, u if d % 2 else v)


def order(size, dim):
    rows = [(p, u, v) for p in range(3) for u in range(size) for v in range(size)]
    rows.sort(key=lambda c: (-round(energy(*c, 1) * (1 if c[0] == 0 else 2), 18), c[0], zigzag(c[1], c[2])))
    return rows[:dim]


def encode(rgb, rows):
    c = scipy.fft.dctn(planes(rgb), axes=(1, 2), norm="ortho")
    return np.array([c[r] for r in rows])


def decode(z, rows, size):
    c = np.zeros((3, size, size))
    for x, r in zip(z, rows):
        c[r] = x
    return pixels(scipy.fft.idctn(c, axes=(1, 2), norm="ortho"))


def constants(dim, t=0.3):
    mean = -t * t + (scipy.special.digamma(dim / 2) + np.log(2)) / 2
    return np.array([mean, 3 * np.sqrt(t * t + scipy.special.polygamma(1, dim / 2) / 4), np.exp(mean)])


def pictures(rng, size, n):
    """One of plain noise, one of bars in saturated colours, then smooth ramps."""
    y, x = np.mgrid[0:size, 0:size]
    bars = np.stack([(x // 3 % 2) * 255, (y // 2 % 2) * 255, ((x + y) // 5 % 2) * 255], -1)
    ramp = np.stack([x * 255 / (size - 1), y * 255 / (size - 1), (x + y) * 127 / (size - 1)], -1)
    noise = rng.integers(0, 256, (size, size, 3))
    return np.stack([noise, bars, ramp])[:n].astype(np.uint8)


def write(path, tensors, metadata):
    head, data = {"__metadata__": metadata}, b""
    for name, a in tensors.items():
        dtype = {"uint8": "U8", "uint16": "U16", "float32": "F32", "float64": "F64"}[a.dtype.name]
        head[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def main(path):
    rng = np.random.default_rng(20240229)
    out = {}
    for size, dim, n in CASES:
        tag = f"{size}_{dim}"
        rows = order(size, dim)
        rgb = pictures(rng, size, n)
        z = np.stack([encode(i, rows) for i in rgb])
        out[f"rgb_{tag}"] = rgb
        out[f"order_{tag}"] = np.array(rows, dtype=np.uint16)
        out[f"z_{tag}"] = z
        out[f"decoded_{tag}"] = np.stack([decode(i, rows, size) for i in z]).astype(np.float32)
        out[f"scale_{tag}"] = np.sqrt([energy(*r, size) for r in rows])
        out[f"constants_{tag}"] = constants(dim)
    write(path, out, {"made": f"oracle/dct.py numpy {np.__version__} scipy {scipy.__version__}"})


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of the neural codecs from PyTorch: tests/vectors/codec/<name>.<layout>.safetensors and a .json each.

usage: oracle/codec_vectors.py --data DIR [--out tests/vectors/codec] [--only SUBSTRING] [--lists]

Per side S: encode.S (2, latent channels, S/f, S/f), what the encoder makes of pictures 0 and 1 (networks.picture), and
decode.S (2, n), what the decoder makes of exactly that, before any clamping; float32, plain eager NCHW. A decoded image
of more than 4096 numbers is thinned: of (3, S, S) in order, every step-th number from the first, where step = (count /
1024) | 1. For real weights also bf16.S (2), PyTorch's own largest errors when it runs in bf16.

Weights are the real files of DIR/codecs for taesd-real and taesd3-real, otherwise those of oracle/random_weights.py.
For the latter <name>.<layout>.txt lists the tensors of the published file with their shapes, after a line with the
SHA-256 of all values in that order, and <name>.diffusers.config is the config.json that diffusers writes.

Needs PyTorch, diffusers and safetensors from PyPI.
"""

import argparse
import hashlib
import json
import os
import platform

import diffusers
import networks
import numpy as np
import random_weights
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file

REAL = [("taesd", "taesd"), ("taesd3", "taesd")]
RANDOM = [  # name, layouts, sides
    ("taesd", ("taesd", "diffusers"), (16,)),
    ("tiny-f32", ("efficientvit", "diffusers"), (32, 64)),
    ("tiny-f64", ("efficientvit", "diffusers"), (64,)),
    ("tiny-sana", ("efficientvit", "diffusers"), (64,)),
    ("dc-ae-f32c32", ("efficientvit", "diffusers"), (64, 128)),
    ("dc-ae-f64c128", ("efficientvit", "diffusers"), (64, 128)),
]
PICTURES = 2


def thin(flat):
    count = flat.shape[1]
    return flat if count <= 4096 else flat[:, :: count // 1024 | 1]


@torch.inference_mode()
def vectors(net, name, sides):
    out, size = {}, {}
    for side in sides:
        x = torch.stack([networks.image(name, side, i) for i in range(PICTURES)])
        z = net.encoder(x)
        y = net.decoder(z)
        out[f"encode.{side}"] = z.numpy().copy()
        out[f"decode.{side}"] = np.ascontiguousarray(thin(y.numpy().reshape(PICTURES, -1)))
        size[str(side)] = [round(float(t.abs().max()), 3) for t in (z, y)]
    return out, size


@torch.inference_mode()
def half_the_bits(net, name, tensors, sides):
    """bf16.S (2,): how far PyTorch itself is off when it runs in bf16, of what is kept of encode.S and decode.S."""
    for side in sides:
        x = torch.stack([networks.image(name, side, i) for i in range(PICTURES)])
        z = torch.from_numpy(tensors[f"encode.{side}"])
        y = thin(net.decoder(z.bfloat16()).float().numpy().reshape(PICTURES, -1))
        off = [(net.encoder(x.bfloat16()).float() - z).abs().max(), np.abs(y - tensors[f"decode.{side}"]).max()]
        tensors[f"bf16.{side}"] = np.array(off, np.float32)


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def write(folder, stem, tensors, size, weights):
    path = os.path.join(folder, stem + ".safetensors")
    save_file(tensors, path)
    sidecar = {
        "file": os.path.basename(path),
        "what": "pictures 0 and 1 through the encoder, and that through the decoder, before clamping",
        "tool": f"oracle/codec_vectors.py, PyTorch {torch.__version__}, diffusers {diffusers.__version__}, "
        f"numpy {np.__version__}, Python {platform.python_version()}",
        "command": f"oracle/codec_vectors.py --data DATA --only {stem}",
        "weights": weights,
        "largest": size,
        "sha256": sha256(path),
    }
    with open(os.path.join(folder, stem + ".json"), "w") as f:
        json.dump(sidecar, f, indent=2)
        f.write("\n")
    print(stem, os.path.getsize(path), size, flush=True)


def write_list(folder, stem, net, layout):
    for suffix, part in networks.files(net, layout).items():
        digest = hashlib.sha256()
        for t in part.values():
            digest.update(t.numpy().tobytes())
        with open(os.path.join(folder, f"{stem}{suffix}.txt"), "w") as f:
            f.write(f"# {digest.hexdigest()}\n")
            f.writelines(" ".join([k, *map(str, t.shape)]) + "\n" for k, t in part.items())
    if layout == "diffusers":
        with open(os.path.join(folder, f"{stem}.config"), "w") as f:
            f.write(net.inner.to_json_string())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/vectors/codec"))
    p.add_argument("--only", default="")
    p.add_argument("--lists", action="store_true", help="of tensors only")
    a = p.parse_args()
    torch.set_num_threads(2)
    for name, layout in REAL:
        stem = f"{name}-real.{layout}"
        if a.only in stem and not a.lists:
            paths = {s: os.path.join(a.data, "codecs", f"{name}{s}.safetensors") for s in ("_encoder", "_decoder")}
            parts = {s: load_file(path) for s, path in paths.items()}
            net = networks.load(networks.build(name, layout), layout, parts).float()
            hashes = {os.path.basename(path): sha256(path) for path in paths.values()}
            tensors, size = vectors(net, name, (32, 64, 128))
            half_the_bits(net.bfloat16(), name, tensors, (32, 64, 128))
            write(a.out, stem, tensors, size, hashes)
    for name, layouts, sides in RANDOM:
        for layout in layouts:
            stem = f"{name}.{layout}"
            if a.only in stem:
                net = random_weights.network(name, layout)
                rule = f"oracle/random_weights.py {name} {layout}"
                write_list(a.out, stem, net, layout)
                if not a.lists:
                    write(a.out, stem, *vectors(net, name, sides), rule)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Weights to the files that fedkt reads: half precision for everything but norms, names as in networks.py."""
import json

import torch
from safetensors.torch import save_file


def tensors(module):
    out = {}
    for name, t in module.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        norm = ".bn" in "." + name or "downsample.1" in name
        out[name] = t.detach().to("cpu", torch.float32 if norm else torch.float16).contiguous()
    return out


def save(module, path, **metadata):
    save_file(tensors(module), path, {"format": "pt", **{k: v if isinstance(v, str) else json.dumps(v, sort_keys=True)
                                                         for k, v in metadata.items()}})

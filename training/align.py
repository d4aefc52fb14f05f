# SPDX-License-Identifier: Apache-2.0
"""Turns the first layer of a guided decoder from PyTorch's whitening of the guide's features to fedkt's.

    python training/align.py OUT/calibrations.pt models/fedkt-guide/calibration-32.safetensors OUT/guided.safetensors \\
        models/fedkt-ae/guided.safetensors

Both whitenings are of the same images, so they differ by the signs of their directions; more than that is an error.
"""
import sys

import torch
from safetensors.torch import load_file, save_file

from networks import LATENT


def main(ours, theirs, source, out):
    cal = torch.load(ours, map_location="cpu", weights_only=True)["s"]
    turn = cal["map"].double() @ load_file(theirs)["unmap"].double()
    sign = torch.sign(turn.diagonal())
    rest = (turn - torch.diag(sign)).abs().max()
    if not rest < 0.15:
        raise SystemExit(f"the whitenings differ by more than signs: an entry of {float(rest):.2f}")
    tensors = load_file(source)
    first = tensors["1.weight"].float()
    first[:, LATENT:] *= sign.float().view(1, -1, 1, 1)
    tensors["1.weight"] = first.half().contiguous()
    save_file(tensors, out, {"format": "pt"})


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])

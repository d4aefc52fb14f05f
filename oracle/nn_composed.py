# SPDX-License-Identifier: Apache-2.0
"""Makes tests/vectors/nn/composed.safetensors: a decoder followed by a classifier, differentiated by the latent.

Usage: python3 nn_composed.py OUT        (PyTorch and safetensors from PyPI)

TAESD's decoder, 4 x - 2, and a residual network up to its features, weights fixed, batch norms by what is stored. For
each case: z (the latents), y (the features), dy (a gradient that comes from above) and dz, which autograd makes of it.
Weights follow random_weights.py, the decoder's under torch.nn.Sequential's names, the classifier's under torchvision's.

Inputs are float32; PyTorch computes in float64 and results are rounded once. Printed: the distance of PyTorch's own
float32, |got - want| / |want|, which ReLUs that fall on the other side of 0 dominate.
"""

import sys

import learn
import networks
import random_weights
import safetensors.torch
import torch

CASES = {  # width of the decoder, classifier, batch, height and width of the latents
    "reduced": (8, "resnet8", 3, 3, 2),
    "full": (64, "resnet18", 2, 2, 2),
}


def filled(net):
    state = {k: torch.from_numpy(random_weights.tensor(k, tuple(v.shape))) for k, v in net.state_dict().items()}
    net.load_state_dict(state)
    return net.eval().requires_grad_(False)


def features(net, x):
    kept = []
    hook = net.fc.register_forward_pre_hook(lambda _, given: kept.append(given[0]))
    net(x)
    hook.remove()
    return kept[0].flatten(1)


def run(decoder, classifier, z, dy, dtype):
    z = z.to(dtype).requires_grad_()
    y = features(classifier.to(dtype), 4 * decoder.to(dtype)(z) - 2)
    y.backward(dy.to(dtype))
    return y.detach(), z.grad


def main(out):
    torch.manual_seed(20261116)
    tensors = {}
    for name, (width, architecture, n, h, w) in CASES.items():
        decoder, classifier = filled(networks.taesd_decoder(4, width)), filled(learn.build(architecture, "cifar"))
        z = torch.randn(n, 4, h, w)
        dy = torch.randn(n, classifier.fc.in_features)
        y, dz = run(decoder, classifier, z, dy, torch.float64)
        y32, dz32 = run(decoder, classifier, z, dy, torch.float32)
        far = [float((a.double() - b).norm() / b.norm()) for a, b in ((y32, y), (dz32, dz))]
        print(name, "features", far[0], "gradient", far[1], "size", float(y.norm()), float(dz.norm()))
        tensors |= {f"{name}/z": z, f"{name}/y": y.float(), f"{name}/dy": dy, f"{name}/dz": dz.float()}
    safetensors.torch.save_file(tensors, out)
    print("torch", torch.__version__, "tensors", len(tensors))


if __name__ == "__main__":
    main(sys.argv[1])

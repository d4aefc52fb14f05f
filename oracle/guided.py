# SPDX-License-Identifier: Apache-2.0
"""Makes tests/vectors/guided.safetensors: guided images of a tiny decoder and guide, by PyTorch.

Usage: python3 guided.py OUT        (PyTorch and safetensors from PyPI)

The loss of src/pipeline/guided.h, written down once more with autograd and torch.optim.Adam; shifts and mirrorings by
Python's whole numbers (views.py has the generator). Tensors: u, s (the drawn vectors), label and number (of each
image), seed; "decoder.N.*" and "guide.N.*" (weights); centre, unmap (codec), mean, map (guide); numbers (latent scale
and shift, rho, rate) and pixels (4, 3): scale and shift of the decoder's, then of the guide's. Results for STEPS of 1
and 6: "STEPS/a", "STEPS/pixels" in units of 1/255, not clamped; "views" (6, n, 3): top, left, flip of each step.

Inputs are float32; PyTorch computes in float64 and results are rounded once. Printed: the share of pixels outside
[0,1], where the derivative of the clamp is 0, and the losses.
"""

import sys

import safetensors.torch
import torch
import torch.nn.functional as F
import views

N, D, K, SIDE, SHIFT, SEED = 3, 5, 4, 8, 1, 11
MASK = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def view_of(label, number, step):
    image = mix(mix((label + 0x2545F4914F6CDD1D) & MASK) ^ number)
    random = views.Random(SEED, mix((image + step) & MASK))
    top = random.below(2 * SHIFT + 1) - SHIFT
    left = random.below(2 * SHIFT + 1) - SHIFT
    return top, left, random.below(2)


def look(x, view):
    top, left, flip = view
    x = F.pad(x[None], (SHIFT,) * 4, mode="replicate")[0]
    x = x[:, SHIFT + top : SHIFT + top + SIDE, SHIFT + left : SHIFT + left + SIDE]
    return x.flip(2) if flip else x


class Case:
    def __init__(self):
        torch.manual_seed(20261116)
        r = torch.randn
        self.t = {
            "u": r(N, D),
            "s": r(N, K),
            "label": torch.tensor([0, 0, 2]),
            "number": torch.tensor([0, 1, 2**40]),
            "seed": torch.tensor([SEED]),
            "decoder.1.weight": r(8, 2, 3, 3) * 0.5,
            "decoder.1.bias": r(8) * 0.2,
            "decoder.4.weight": r(3, 8, 3, 3) * 0.12,
            "decoder.4.bias": r(3) * 0.1,
            "guide.0.weight": r(6, 3, 3, 3) * 0.3,
            "guide.0.bias": r(6) * 0.1,
            "guide.2.weight": r(7, 6, 3, 3) * 0.3,
            "guide.2.bias": r(7) * 0.1,
            "centre": r(32) * 0.2,
            "unmap": r(32, D) * 0.3,
            "mean": r(7) * 0.1,
            "map": r(K, 7) * 0.7,
            "numbers": torch.tensor([0.5, 0.25, 0.3, 0.05]),
            "pixels": torch.tensor([[2.0, 2, 2], [-1, -1, -1], [4.5, 4.25, 4], [-2, -1.75, -1.5]]),
        }
        self.d = {k: v.double() if v.is_floating_point() else v for k, v in self.t.items()}

    def decode(self, a):
        d = self.d
        scale, shift = d["numbers"][0], d["numbers"][1]
        z = (d["centre"] + (d["u"] + a) @ d["unmap"].T) / scale + shift
        x = 3 * torch.tanh(z.view(N, 2, 4, 4) / 3)
        x = F.relu(F.conv2d(x, d["decoder.1.weight"], d["decoder.1.bias"], padding=1))
        x = F.conv2d(F.interpolate(x, scale_factor=2), d["decoder.4.weight"], d["decoder.4.bias"], padding=1)
        return (x - d["pixels"][1].view(3, 1, 1)) / d["pixels"][0].view(3, 1, 1)

    def features(self, x):
        d = self.d
        x = x * d["pixels"][2].view(3, 1, 1) + d["pixels"][3].view(3, 1, 1)
        x = F.relu(F.conv2d(x, d["guide.0.weight"], d["guide.0.bias"], padding=1))
        x = F.relu(F.conv2d(x, d["guide.2.weight"], d["guide.2.bias"], stride=2, padding=1)).mean((2, 3))
        return (x - d["mean"]) @ d["map"].T

    def run(self, steps):
        a = torch.zeros(N, D, dtype=torch.float64, requires_grad=True)
        rho, rate = float(self.d["numbers"][2]), float(self.d["numbers"][3])
        adam = torch.optim.Adam([a], lr=rate)
        seen, losses = [], []
        for step in range(1, steps + 1):
            adam.zero_grad()
            pixels = self.decode(a)
            now = [view_of(int(self.t["label"][i]), int(self.t["number"][i]), step) for i in range(N)]
            x = torch.stack([look(pixels[i].clamp(0, 1), now[i]) for i in range(N)])
            each = (self.features(x) - self.d["s"]).square().mean(1) + rho * a.square().mean(1)
            each.sum().backward()
            adam.step()
            seen.append(now)
            losses.append(round(float(each.detach().sum()), 4))
        pixels = self.decode(a).detach()
        outside = float(((pixels < 0) | (pixels > 1)).double().mean())
        print(steps, "steps: outside", round(outside, 3), "losses", losses)
        return a.detach(), pixels, torch.tensor(seen, dtype=torch.int64)


def main(out):
    case = Case()
    tensors = dict(case.t)
    for steps in (1, 6):
        a, pixels, seen = case.run(steps)
        tensors |= {f"{steps}/a": a.float(), f"{steps}/pixels": (255 * pixels).float(), "views": seen}
    safetensors.torch.save_file({k: v.contiguous() for k, v in tensors.items()}, out)
    print("torch", torch.__version__, "tensors", len(tensors))


if __name__ == "__main__":
    main(sys.argv[1])

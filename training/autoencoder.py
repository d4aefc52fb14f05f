# SPDX-License-Identifier: Apache-2.0
"""Trains encoder and decoder on public images of 32 and 64 px.

Loss: absolute pixels, and maps of a frozen public network. Sharp texture is the business of the fast decoder of guided
images (guided.py), which is trained against the critic below.
"""
import copy
import time

import torch
import torch.nn.functional as F

from networks import Critic, decoder, encoder
from views import crop, half, pixels, shift, shrink


def perceptual(net, a, b):
    """Mean squared difference of normalised maps."""
    total = 0
    with torch.no_grad():
        wanted = net.maps(b, 2)
    for p, q in zip(net.maps(a, 2), wanted):
        total = total + (F.normalize(p.float(), dim=1) - F.normalize(q.float(), dim=1)).pow(2).sum(1).mean()
    return total


class Adversary:
    """A critic, its optimiser, and both sides of the hinge loss."""

    def __init__(self, net, widths, dev, rate=2e-4):
        self.net, self.critic = net, Critic(widths[:3]).to(dev, memory_format=torch.channels_last)
        self.opt = torch.optim.Adam(self.critic.parameters(), lr=rate, betas=(0.0, 0.99), fused=dev.type == "cuda")

    def learn(self, real, made):
        with half(real.device):
            loss = 0
            for x, sign in ((shift(real), 1), (shift(made.detach()), -1)):
                with torch.no_grad():
                    maps = self.net.maps(x, 3)
                loss = loss + sum(F.relu(1 - sign * s.float()).mean() for s in self.critic(x, maps))
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()

    def fool(self, x, maps):
        """x and its maps under the frozen network, both with gradients."""
        self.critic.requires_grad_(False)
        loss = sum(-s.float().mean() for s in self.critic(x, maps[:3]))
        self.critic.requires_grad_(True)
        return loss


class Average:
    """Exponential average of a network's weights."""

    def __init__(self, net, decay=0.998):
        self.net, self.average, self.decay = net, copy.deepcopy(net).requires_grad_(False), decay

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(list(self.average.parameters()), list(self.net.parameters()), 1 - self.decay)


def train(images, net, seconds, seed, batch=128, log=print, most=10 ** 9):
    """net: a frozen public classifier. Stops after `seconds`, the rate falling to zero by then, or `most` steps."""
    torch.manual_seed(seed)
    dev = images.device
    enc, dec = (m.to(dev, memory_format=torch.channels_last) for m in (encoder(), decoder()))
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1, betas=(0.9, 0.99), fused=dev.type == "cuda")
    kept = [Average(enc), Average(dec)]
    began, step = time.time(), 0
    while step < most:
        at = (time.time() - began) / seconds
        if at >= 1:
            break
        opt.param_groups[0]["lr"] = 5e-4 * min(1, (step + 1) / 200) * min(1, 2 * (1 - at))
        side = 64 if step % 8 == 7 else 32
        x = pixels(images, torch.randint(len(images), (batch if side == 32 else batch // 4,), device=dev))
        x = crop(x, 32, 0.4) if side == 32 and step % 2 else shrink(x, 32) if side == 32 else x
        x = x.contiguous(memory_format=torch.channels_last)
        with half(dev):
            z = enc(x).float()
            out = dec(z + 0.05 * torch.randn_like(z)).float()
            loss = 4 * (out - x).abs().mean() + 0.25 * perceptual(net, out, x) + 0.002 * (z ** 2).mean()
            loss = loss + 0.05 * F.relu(z.abs() - 3).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        for k in kept:
            k.update()
        step += 1
        if step % 500 == 0:
            error = F.mse_loss(out.detach().clamp(0, 1), x)
            log(f"autoencoder: step {step} loss {float(loss.detach()):.3f} psnr {-10 * float(error.log10()):.1f} "
                f"|z| {float(z.detach().std()):.2f} {time.time() - began:.0f} s")
    return [k.average.eval() for k in kept]


@torch.no_grad()
def encode(enc, images, batch=2048):
    """Flat latents of uint8 images (n,S,S,3), in single precision."""
    return torch.cat([enc(pixels(images, slice(i, i + batch))).flatten(1) for i in range(0, len(images), batch)])

# SPDX-License-Identifier: Apache-2.0
"""Trains encoder and decoder on public images of 32 and 64 px.

Loss: absolute pixels, and maps of a frozen public network; in the second half a critic too, which asks for texture. A
third of the images are small parts in other colours: what a camera above or a microscope sees has no sky and no centre.
"""
import copy
import time
from functools import partial

import torch
import torch.nn.functional as F

from networks import Critic, decoder, encoder
from step import Adam, Step
from views import crop, either, half, pixels, shift, tint


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
        self.opt = Adam(self.critic.parameters(), rate, (0.0, 0.99))

    def learn(self, real, made):
        with half(real.device):
            loss = 0
            for x, sign in ((shift(real), 1), (shift(made.detach()), -1)):
                with torch.no_grad():
                    maps = self.net.maps(x, 3)
                loss = loss + sum(F.relu(1 - sign * s.float()).mean() for s in self.critic(x, maps))
        self.opt.step(loss)

    def fool(self, x, maps):
        """x and its maps under the frozen network, both with gradients."""
        return sum(-s.float().mean() for s in self.critic(x, maps[:3]))


class Average:
    """Exponential average of a network's weights."""

    def __init__(self, net, decay=0.998):
        self.net, self.average, self.decay = net, copy.deepcopy(net).requires_grad_(False), decay

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(list(self.average.parameters()), list(self.net.parameters()), 1 - self.decay)


def views(x, side):
    """Images of 64 px -> whole ones or parts of them, of `side` px."""
    if side == 64:
        return x
    small = F.avg_pool2d(either(0.5, x, crop(x, 0.4, 1)), 2)
    part = shift(x, 16)[:, :, 16:48, 16:48]
    return either(0.67, small, either(0.3, part, tint(part)))


def train(images, net, widths, seconds, seed, batch=256, log=print, most=10 ** 9):
    """net: a frozen public classifier of these widths. Stops after `seconds`, the rate falling to zero by then, or
    `most` steps."""
    torch.manual_seed(seed)
    dev = images.device
    enc, dec = (m.to(dev, memory_format=torch.channels_last) for m in (encoder(), decoder()))
    opt = Adam([*enc.parameters(), *dec.parameters()], 1e-5, (0.9, 0.99))
    kept, adversary = [Average(enc), Average(dec)], Adversary(net, widths, dev)

    def run(side, against):
        n = batch if side == 32 else batch // 4
        x = views(pixels(images, torch.randint(len(images), (n,), device=dev)), side)
        x = x.contiguous(memory_format=torch.channels_last)
        with half(dev):
            z = enc(x).float()
            out = dec(z + 0.05 * torch.randn_like(z)).float()
            loss = 4 * (out - x).abs().mean() + 0.25 * perceptual(net, out, x) + 0.002 * (z ** 2).mean()
            loss = loss + 0.05 * F.relu(z.abs() - 3).mean()
            if against:
                view = shift(out)
                loss = loss + 0.03 * adversary.fool(view, net.maps(view, 3))
        opt.step(loss)
        if against:
            adversary.learn(x, out)
        for k in kept:
            k.update()
        return loss.detach(), F.mse_loss(out.detach().clamp(0, 1), x), z.detach().std()

    steps = {(side, against): Step(partial(run, side, against), dev) for side in (32, 64) for against in (0, 1)}
    began, step = time.time(), 0
    while step < most:
        at = (time.time() - began) / seconds
        if at >= 1:
            break
        opt.rate.fill_(6e-4 * min(1, (step + 1) / 200) * min(1, 2 * (1 - at)))
        side = 64 if step % 8 == 7 else 32
        loss, error, spread = steps[side, int(at > 0.4)]()
        step += 1
        if step % 50 == 0 and dev.type == "cuda":
            torch.cuda.synchronize()  # or the clock above runs ahead of the card
        if step % 1000 == 0:
            log(f"autoencoder: step {step} loss {float(loss):.3f} psnr {-10 * float(error.log10()):.1f} "
                f"|z| {float(spread):.2f} {time.time() - began:.0f} s")
    return [k.average.eval() for k in kept]


@torch.no_grad()
def encode(enc, images, batch=2048):
    """Flat latents of uint8 images (n,S,S,3), in single precision."""
    return torch.cat([enc(pixels(images, slice(i, i + batch))).flatten(1) for i in range(0, len(images), batch)])

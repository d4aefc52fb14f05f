# SPDX-License-Identifier: Apache-2.0
"""Guided images: the definition by gradient, and the training of its fast twin.

The twin is a decoder with 4 + k input channels: the latent map, and the guide's whitened vector s at every pixel. It
learns from two kinds of input: latent and features of one public image, which it must give back; and samples of the
class Gaussians of a noised release of the public classes, for which the image's own guide features must come out as s,
other public networks must see the class, and the critic must take the image for real.
"""
import math
import time

import torch
import torch.nn.functional as F

from autoencoder import Adversary, Average, perceptual
from networks import DECODER_WIDTH, LATENT, decoder
from release import Gaussians
from views import half, pixels, shift, shrink


def widen(z_map, s):
    """(b,4,h,w) and (b,k) -> (b,4+k,h,w)."""
    return torch.cat([z_map, s[:, :, None, None].expand(-1, -1, *z_map.shape[2:])], 1)


def by_gradient(dec, net, cal_z, cal_s, u, s, steps=25, rate=0.1, rho=0.02):
    """The definition: dec(z + a) with a from Adam on mean((features - s)^2) + rho mean(a^2), in whitened units."""
    a = torch.zeros_like(u, requires_grad=True)
    opt = torch.optim.Adam([a], lr=rate)
    side = int(math.sqrt(cal_z.unmap.shape[0] / LATENT))
    for _ in range(steps):
        with half(u.device):
            image = dec(cal_z.backward(u + a).view(-1, LATENT, side, side)).clamp(0, 1)
            f = net.features(shift(image))
        loss = ((cal_s.forward(f.float()) - s) ** 2).mean(1).sum() + rho * (a ** 2).mean(1).sum()
        (a.grad,) = torch.autograd.grad(loss, a)
        opt.step()
    with torch.no_grad(), half(u.device):
        return dec(cal_z.backward(u + a).view(-1, LATENT, side, side)).float().clamp(0, 1)


class Samples:
    """Samples (u, s, label) of noised releases of the public classes, remade with another noise from time to time."""

    def __init__(self, w_z, w_s, labels, classes, cal_z, cal_s):
        self.parts, self.labels, self.classes, self.cals = (w_z, w_s), labels, classes, (cal_z, cal_s)
        self.renew()

    def renew(self):
        mu = 0.268 * 10 * math.exp(float(torch.rand(())) * 2)
        self.g = [Gaussians(w, self.labels, self.classes, mu, (0.01, 0.08, 0.25) if i == 0 else (0.01, 0.16, 0.5))
                  for i, w in enumerate(self.parts)]

    def draw(self, n):
        label = torch.randint(self.classes, (n,), device=self.labels.device)
        u, s = (c.inverse(g.sample(label)) for c, g in zip(self.cals, self.g))
        return u, s, label


def train(images32, enc, dec, net, other, widths, samples, cal_z, cal_s, seconds, seed, batch=128, log=print,
          most=10 ** 9):
    """other: another public classifier, with `widths`; it serves the critic too."""
    torch.manual_seed(seed)
    dev, k = images32.device, cal_s.map.shape[0]
    twin = decoder(DECODER_WIDTH, LATENT + k).to(dev, memory_format=torch.channels_last)
    state = {n: t.clone() for n, t in dec.state_dict().items()}
    first = torch.zeros_like(twin[1].weight)
    first[:, :LATENT] = state["1.weight"]
    first[:, LATENT:] = torch.randn_like(first[:, LATENT:]) * 0.01
    state["1.weight"] = first
    twin.load_state_dict(state)
    opt = torch.optim.Adam(twin.parameters(), lr=1, betas=(0.5, 0.99), fused=dev.type == "cuda")
    kept, adversary = Average(twin), Adversary(other, widths, dev)
    began, step, side = time.time(), 0, 4
    while step < most:
        at = (time.time() - began) / seconds
        if at >= 1:
            break
        opt.param_groups[0]["lr"] = 4e-4 * min(1, (step + 1) / 200) * min(1, 3 * (1 - at))
        if step % 200 == 199:
            samples.renew()
        x = pixels(images32, torch.randint(len(images32), (batch,), device=dev))
        u, s, label = samples.draw(batch)
        with half(dev):
            with torch.no_grad():
                own = cal_s.forward(net.features(x).float())
                z = cal_z.backward(cal_z.forward(enc(x).float().flatten(1))).view(-1, LATENT, side, side)
                drawn = cal_z.backward(u).view(-1, LATENT, side, side)
                plain = dec(drawn).float().clamp(0, 1)
            both = twin(widen(torch.cat([z, drawn]), torch.cat([own, s]))).float()
            out, made = both[:batch], both[batch:]
            loss = 2 * (out - x).abs().mean() + 0.25 * perceptual(other, out, x)
            loss = loss + (shrink(made, 4) - shrink(plain, 4)).abs().mean()
            seen = made.clamp(0, 1) + 0.1 * (made - made.clamp(0, 1))
            off = ((cal_s.forward(net.features(shift(seen)).float()) - s) ** 2).mean(1)
            view = shift(made)
            maps = other.maps(view)
            wrong = F.cross_entropy(other.fc(maps[-1].mean((2, 3))).float(), label)
            loss = loss + 0.7 * off.mean() + 0.1 * wrong + 0.07 * adversary.fool(view, maps)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        adversary.learn(x, made)
        kept.update()
        step += 1
        if step % 500 == 0:
            log(f"guided: step {step} loss {float(loss.detach()):.3f} features off by {float(off.detach().mean()):.3f} "
                f"{time.time() - began:.0f} s")
    return kept.average.eval()


@torch.no_grad()
def fast(twin, cal_z, u, s):
    side = int(math.sqrt(cal_z.unmap.shape[0] / LATENT))
    with half(u.device):
        return twin(widen(cal_z.backward(u).view(-1, LATENT, side, side), s)).float().clamp(0, 1)

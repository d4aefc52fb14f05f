# SPDX-License-Identifier: Apache-2.0
"""Guided images: the definition by gradient, and the training of its fast twin.

The twin is a decoder with 4 + k input channels: the latent map, and the guide's whitened vector s at every pixel. It
learns from three kinds of input: latent and features of one public image, which it must give back; samples of the class
Gaussians of a noised release of the public classes; and noised vectors of parts of images in other colours. For the
last two the image's own guide features must come out as s, its coarse colours as those of the plain decoder, another
public network must see the class, and the critic must take the image for real.
"""
import math
import time

import torch
import torch.nn.functional as F

from autoencoder import Adversary, Average, perceptual, views
from networks import DECODER_WIDTH, LATENT, decoder
from release import Gaussians
from step import Adam, Step
from views import crop, either, half, pixels, shift


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
        self.g = self.release()

    def release(self):
        mu = 0.268 * 10 * math.exp(float(torch.rand(())) * 2)
        return [Gaussians(w, self.labels, self.classes, mu, (0.01, 0.08, 0.25) if i == 0 else (0.01, 0.16, 0.5))
                for i, w in enumerate(self.parts)]

    def renew(self):
        """In place: a recorded step reads these tensors."""
        for old, new in zip(self.g, self.release()):
            old.mean.copy_(new.mean)
            old.factor.copy_(new.factor)

    def draw(self, n):
        label = torch.randint(self.classes, (n,), device=self.labels.device)
        u, s = (c.inverse(g.sample(label)) for c, g in zip(self.cals, self.g))
        return u, s, label


def widened(dec, k, dev):
    """A decoder that begins as dec and hears s a little."""
    twin = decoder(DECODER_WIDTH, LATENT + k).to(dev, memory_format=torch.channels_last)
    state = {n: t.clone() for n, t in dec.state_dict().items()}
    first = torch.zeros_like(twin[1].weight)
    first[:, :LATENT] = state["1.weight"]
    first[:, LATENT:] = torch.randn_like(first[:, LATENT:]) * 0.01
    state["1.weight"] = first
    twin.load_state_dict(state)
    return twin


def train(images, enc, dec, net, other, widths, samples, cal_z, cal_s, seconds, seed, batch=128, log=print,
          most=10 ** 9):
    """images: uint8, 64 px. other: another public classifier, with `widths`; it serves the critic too."""
    torch.manual_seed(seed)
    dev, side = images.device, 4
    twin = widened(dec, cal_s.map.shape[0], dev)
    opt = Adam(twin.parameters(), 1e-5, (0.5, 0.99))
    kept, adversary = Average(twin), Adversary(other, widths, dev)

    def latent(u):
        return cal_z.backward(u).view(-1, LATENT, side, side)

    def inputs():
        """Images, the first half to be given back; vectors of that half, drawn from a release, and of the other half with
        noise; labels of the drawn ones."""
        x = pixels(images, torch.randint(len(images), (2 * batch,), device=dev))
        real = F.avg_pool2d(either(0.7, x[:batch], crop(x[:batch], 0.4, 1)), 2)
        odd = views(x[batch:], 32)
        u, s, label = samples.draw(batch)
        seen = torch.cat([real, odd])
        own = cal_s.forward(net.features(seen).float())
        own_u = cal_z.forward(enc(seen).float().flatten(1))
        noise = torch.rand(batch, 1, device=dev)
        odd_u = (1 - noise * 0.5) * own_u[batch:] + noise * torch.randn_like(own_u[batch:]) * 0.7
        odd_s = own[batch:] + noise * torch.randn_like(own[batch:]) * 0.4
        return seen, torch.cat([own_u[:batch], u, odd_u]), torch.cat([own[:batch], s, odd_s]), label

    def run():
        with half(dev):
            with torch.no_grad():
                x, u, s, label = inputs()
                z = latent(u)
                plain = dec(z[batch:]).float().clamp(0, 1)
            every = twin(widen(z, s)).float()
            out, made, s = every[:batch], every[batch:], s[batch:]
            loss = 2 * (out - x[:batch]).abs().mean() + 0.25 * perceptual(other, out, x[:batch])
            loss = loss + 3 * (F.avg_pool2d(made, 8) - F.avg_pool2d(plain, 8)).abs().mean()
            seen = made.clamp(0, 1) + 0.1 * (made - made.clamp(0, 1))
            off = ((cal_s.forward(net.features(shift(seen)).float()) - s) ** 2).mean(1)
            view = shift(made)
            maps = other.maps(view)
            wrong = F.cross_entropy(other.fc(maps[-1][:batch].mean((2, 3))).float(), label)
            loss = loss + 0.7 * off.mean() + 0.1 * wrong + 0.07 * adversary.fool(view, maps)
        opt.step(loss)
        adversary.learn(x, made)
        kept.update()
        return loss.detach(), off.detach()[:batch].mean()

    step, began, done = Step(run, dev), time.time(), 0
    while done < most:
        at = (time.time() - began) / seconds
        if at >= 1:
            break
        opt.rate.fill_(5e-4 * min(1, (done + 1) / 200) * min(1, 3 * (1 - at)))
        if done % 400 == 399:
            samples.renew()
        loss, off = step()
        done += 1
        if done % 25 == 0 and dev.type == "cuda":
            torch.cuda.synchronize()  # or the clock above runs ahead of the card
        if done % 500 == 0:
            log(f"guided: step {done} loss {float(loss):.3f} features off by {float(off):.3f} "
                f"{time.time() - began:.0f} s")
    return kept.average.eval()


@torch.no_grad()
def fast(twin, cal_z, u, s):
    side = int(math.sqrt(cal_z.unmap.shape[0] / LATENT))
    with half(u.device):
        return twin(widen(cal_z.backward(u).view(-1, LATENT, side, side), s)).float().clamp(0, 1)

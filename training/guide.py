# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier of the public classes, from labels or from larger ones; its pooled features are the guide.

Labels are not smoothed and the crops of the default are mild: both are good for the classifier and bad for the transfer
of its features (Kornblith et al. 2021), which is all that counts here.
"""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from networks import GUIDE_WIDTHS, ResNet
from step import Sgd, Step
from views import crop, either, half, jitter, pixels

TEMPERATURE = 2.0
VIEWS = {
    "moved": lambda x: crop(x, 1, 1, 0),
    "mild": lambda x: crop(x, 0.6, 1.1, 0.15),
    "both": lambda x: either(0.5, crop(x, 0.8, 1.1, 0.1), jitter(crop(x, 0.2, 1))),
    "wide": lambda x: jitter(crop(x, 0.3, 1)),
}


class Teachers:
    """Several classifiers as one: the mean of their class probabilities at TEMPERATURE, and the main directions of all
    their features, each divided by the square root of its spread so that small ones are heard too."""

    def __init__(self, nets, images, directions=256):
        self.nets = nets
        f = torch.cat([self.see(pixels(images, slice(i, i + 1024)))[1] for i in range(0, len(images), 1024)])
        self.centre = f.mean(0)
        values, vectors = torch.linalg.eigh(torch.cov(f.T.double()))
        values, vectors = values.flip(0)[:directions].clamp(min=1e-9), vectors.flip(1)[:, :directions]
        self.map = (vectors / values.sqrt().sqrt()).float()
        self.scale = float(values.sqrt().sum()) / self.map.shape[1]

    @torch.no_grad()
    def see(self, x):
        soft, features = 0, []
        with half(x.device):
            for net in self.nets:
                f = net.features(net.fit(x))
                soft = soft + F.softmax(net.fc(f).float() / TEMPERATURE, 1) / len(self.nets)
                features.append(f.float())
        return soft, torch.cat(features, 1)

    def __call__(self, x):
        """(class probabilities, features of mean square 1)."""
        soft, f = self.see(x)
        with torch.autocast("cuda", enabled=False):
            return soft, (f - self.centre) @ self.map / math.sqrt(self.scale)


def mixed(x):
    """Half of the images are mixed with another one."""
    part = torch.rand(x.shape[0], 1, 1, 1, device=x.device) * (torch.rand(x.shape[0], 1, 1, 1, device=x.device) < 0.5)
    return x + 0.5 * part * (x.flip(0) - x)


def train(images, labels, classes, epochs, seed, view="mild", widths=GUIDE_WIDTHS, stem=1, teachers=None, by=(1, 1),
          batch=512, rate=0.3, log=print, name="guide", most=10 ** 9):
    """images (n,64,64,3) uint8 and labels (n) on the device. With teachers the loss is by[0] times the divergence from
    their classes and by[1] times the squared distance from their features (through a linear layer that is dropped)."""
    torch.manual_seed(seed)
    dev, n = images.device, len(labels)
    net = ResNet(classes, widths, stem=stem).to(dev, memory_format=torch.channels_last)
    ahead = nn.Linear(widths[-1], teachers.map.shape[1]).to(dev) if teachers else nn.Identity()
    opt = Sgd([*net.parameters(), *ahead.parameters()] if teachers and by[1] else net.parameters())
    order, place = torch.randperm(n, device=dev), torch.zeros((), device=dev, dtype=torch.long)
    within, total = torch.arange(batch, device=dev), torch.zeros((), device=dev)

    def run():
        index = order[(within + place) % n]
        x = VIEWS[view](pixels(images, index))
        x = (mixed(x) if teachers else x).contiguous(memory_format=torch.channels_last)
        if teachers:
            soft, wanted = teachers(x)
        with half(dev):
            f = net.features(net.fit(x))
            score, guess = net.fc(f).float(), ahead(f).float()
        if teachers:
            loss = by[0] * TEMPERATURE ** 2 * F.kl_div(F.log_softmax(score / TEMPERATURE, 1), soft,
                                                       reduction="batchmean")
            if by[1]:
                loss = loss + by[1] * F.mse_loss(guess, wanted)
        else:
            loss = F.cross_entropy(score, labels[index])
        opt.step(loss)
        place.add_(batch)
        total.add_(loss.detach())

    each = min(most, n // batch)
    steps, began, step = epochs * each, time.time(), Step(run, dev)
    for epoch in range(epochs):
        order.copy_(torch.randperm(n, device=dev))
        total.zero_(), place.zero_()
        for i in range(each):
            at = (epoch * each + i) / steps
            opt.rate.fill_(rate * (at / 0.15 if at < 0.15 else 0.5 * (1 + math.cos(math.pi * (at - 0.15) / 0.85))))
            step()
        if epoch % 4 == 3 or epoch + 1 == epochs:
            log(f"{name}: epoch {epoch + 1}/{epochs} loss {float(total) / each:.3f} {time.time() - began:.0f} s")
    return net.eval().requires_grad_(False)


@torch.no_grad()
def features(net, images, batch=2048):
    """Pooled features (n, D) of images (n,32,32,3) uint8, in single precision."""
    return torch.cat([net.features(pixels(images, slice(i, i + batch))) for i in range(0, len(images), batch)])

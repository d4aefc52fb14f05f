# SPDX-License-Identifier: Apache-2.0
"""Choices on the public proxy: classes that no network was trained on.

Each proxy task has ten of the twenty classes; 400 images of each class are its records, the other training images and
the validation images its test. mu is scaled by the records of a real class over 400, so that the noise is that of
epsilon 1 (delta 1e-5) with 4,000 records of a class.
"""
import math

import torch
import torch.nn.functional as F

import guided
from guide import features
from networks import LATENT, ResNet
from release import Gaussians, score
from step import Sgd, Step
from views import half, pixels, shift

RECORDS, MU = 400, 0.268 * 10
STUDENT = (64, 128, 256, 512)  # ResNet-18


class Task:
    """Ten proxy classes: records and test images (uint8, 32 px) with labels 0..9."""

    def __init__(self, images, labels, extra, extra_labels, classes):
        dev = images.device
        take = [torch.nonzero(labels == c).flatten() for c in classes]
        self.records = torch.cat([t[:RECORDS] for t in take])
        rest = torch.cat([t[RECORDS:] for t in take])
        more = torch.cat([torch.nonzero(extra_labels == c).flatten() for c in classes])
        place = torch.full((int(labels.max()) + 1,), -1, device=dev)
        place[torch.tensor(classes, device=dev)] = torch.arange(len(classes), device=dev)
        self.x, self.y = images[self.records], place[labels[self.records]]
        self.test_x = torch.cat([images[rest], extra[more]])
        self.test_y = place[torch.cat([labels[rest], extra_labels[more]])]
        self.classes = len(classes)


def head_accuracy(tasks, net, cal, mu=MU, shares=(0.01, 0.24, 0.75), draws=4):
    """Mean accuracy of LDA over tasks and draws of the noise."""
    hits = []
    for t in tasks:
        w, w_test = cal.coordinates(features(net, t.x)), cal.coordinates(features(net, t.test_x))
        for _ in range(draws if mu else 1):
            head = Gaussians(w, t.y, t.classes, mu, shares).lda()
            hits.append(float((score(head, w_test).argmax(1) == t.test_y).float().mean()))
    return 100 * sum(hits) / len(hits)


def student(draw, test_x, test_y, classes, steps, dev, teacher=None, public=None, temperature=2.0, share=1.0, batch=256,
            rate=0.1, seed=0):
    """Last-step accuracy of a ResNet-18 from scratch. draw(n) -> (images in [0,1], labels); teacher(images) -> scores;
    public: uint8 images that make up half of each batch."""
    torch.manual_seed(seed)
    net = ResNet(classes, STUDENT).to(dev, memory_format=torch.channels_last)
    opt = Sgd(net.parameters())

    def run():
        x, y = draw(batch if public is None else batch // 2)
        if public is not None:
            x = torch.cat([x, pixels(public, torch.randint(len(public), (batch // 2,), device=dev))])
        with half(dev):
            soft = None if teacher is None else F.softmax(teacher(x).float() / temperature, 1)
            out = net(shift(x, 4)).float()
            if soft is None:
                loss = F.cross_entropy(out, y)
            else:
                loss = temperature ** 2 * F.kl_div(F.log_softmax(out / temperature, 1), soft, reduction="batchmean")
                if share < 1:
                    loss = share * loss + (1 - share) * F.cross_entropy(out[:len(y)], y)
        opt.step(loss)

    step = Step(run, dev)
    for i in range(steps):
        opt.rate.fill_(rate * min(1, (i + 1) / (0.1 * steps)) * 0.5 * (1 + math.cos(math.pi * i / steps)))
        step()
    net.eval()
    with torch.no_grad(), half(dev):
        return 100 * float((torch.cat([net(pixels(test_x, slice(i, i + 1000))).argmax(1)
                                       for i in range(0, len(test_x), 1000)]) == test_y).float().mean())


class Release:
    """A noised release of one task with both parts, its head as a teacher, and images drawn in three ways."""

    def __init__(self, task, enc, net, cal_z, cal_s, mu=MU, seed=0):
        from autoencoder import encode
        torch.manual_seed(seed)
        self.task, self.cal_z, self.cal_s, self.net = task, cal_z, cal_s, net
        w = [cal_z.coordinates(encode(enc, task.x)), cal_s.coordinates(features(net, task.x))]
        self.g = [Gaussians(w[0], task.y, task.classes, mu, (0.01, 0.08, 0.25)),
                  Gaussians(w[1], task.y, task.classes, mu, (0.01, 0.16, 0.5))]
        self.head = self.g[1].lda()

    def teacher(self, x):
        with torch.no_grad():
            return score(self.head, self.cal_s.coordinates(self.net.features(x).float()))

    def vectors(self, n):
        y = torch.randint(self.task.classes, (n,), device=self.task.x.device)
        return self.cal_z.inverse(self.g[0].sample(y)), self.cal_s.inverse(self.g[1].sample(y)), y

    def pool(self, make, n, batch=1000):
        """n images once, drawn from again and again: what a training set of that size gives."""
        images, labels, batch = [], [], min(n, batch)
        for _ in range(n // batch):
            u, s, y = self.vectors(batch)
            images.append(make(u, s))
            labels.append(y)
        images, labels = torch.cat(images), torch.cat(labels)

        def draw(b):
            i = torch.randint(len(labels), (b,), device=labels.device)
            return images[i], labels[i]
        return draw, images, labels

    def plain(self, dec):
        def make(u, s):
            side = int(math.sqrt(self.cal_z.unmap.shape[0] / LATENT))
            with torch.no_grad(), half(u.device):
                return dec(self.cal_z.backward(u).view(-1, LATENT, side, side)).float().clamp(0, 1)
        return make

    def fast(self, twin):
        return lambda u, s: guided.fast(twin, self.cal_z, u, s)

    def definition(self, dec, **more):
        return lambda u, s: guided.by_gradient(dec, self.net, self.cal_z, self.cal_s, u, s, **more)

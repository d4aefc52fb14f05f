# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier of the public classes; its pooled features are the guide."""
import math
import time

import torch
import torch.nn.functional as F

from networks import GUIDE_WIDTHS, ResNet
from views import crop, half, jitter, pixels


def train(images, labels, classes, epochs, seed, widths=GUIDE_WIDTHS, teacher=None, batch=512, rate=0.3, log=print,
          name="guide", most=10 ** 9):
    """images (n,64,64,3) uint8 and labels (n) on the device. With a teacher, nine tenths of the loss are its soft
    labels at temperature 3."""
    torch.manual_seed(seed)
    dev = images.device
    net = ResNet(classes, widths).to(dev, memory_format=torch.channels_last)
    plain = [p for p in net.parameters() if p.ndim == 1]
    decayed = [p for p in net.parameters() if p.ndim > 1]
    opt = torch.optim.SGD([{"params": decayed, "weight_decay": 5e-4}, {"params": plain, "weight_decay": 0}],
                          lr=rate, momentum=0.9, nesterov=True)
    n, each = len(labels), min(most, len(labels) // batch)
    steps, step, began = epochs * each, 0, time.time()
    for epoch in range(epochs):
        order, total = torch.randperm(n, device=dev), torch.zeros((), device=dev)
        for i in range(each):
            at = step / steps
            now = rate * (at / 0.15 if at < 0.15 else 0.5 * (1 + math.cos(math.pi * (at - 0.15) / 0.85)))
            for g in opt.param_groups:
                g["lr"] = now
            index = order[i * batch:(i + 1) * batch]
            x = jitter(crop(pixels(images, index), 32)).contiguous(memory_format=torch.channels_last)
            with half(dev):
                score = net(x)
                loss = F.cross_entropy(score.float(), labels[index], label_smoothing=0.1)
                if teacher is not None:
                    with torch.no_grad():
                        soft = F.softmax(teacher(x).float() / 3, 1)
                    loss = 0.1 * loss + 0.9 * 9 * F.kl_div(F.log_softmax(score.float() / 3, 1), soft,
                                                           reduction="batchmean")
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
            step += 1
        if epoch % 4 == 3 or epoch + 1 == epochs:
            log(f"{name}: epoch {epoch + 1}/{epochs} loss {float(total) / each:.3f} {time.time() - began:.0f} s")
    return net.eval().requires_grad_(False)


@torch.no_grad()
def features(net, images, batch=2048):
    """Pooled features (n, D) of images (n,32,32,3) uint8, in single precision."""
    return torch.cat([net.features(pixels(images, slice(i, i + batch))) for i in range(0, len(images), batch)])

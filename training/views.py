# SPDX-License-Identifier: Apache-2.0
"""Random views of public images, made on the device from uint8. Nothing here asks the device for a value, so that a
whole training step can be recorded (step.py)."""
import torch
import torch.nn.functional as F


def pixels(images, index):
    """uint8 (n,S,S,3) -> float (b,3,S,S) in [0,1]."""
    return images[index].permute(0, 3, 1, 2).float().div_(255).contiguous(memory_format=torch.channels_last)


def shrink(x, side):
    return F.interpolate(x, size=(side, side), mode="bilinear", antialias=True, align_corners=False)


def uniform(n, low, high, dev):
    return torch.rand(n, device=dev) * (high - low) + low


def crop(x, least=0.3, most=1.0, stretch=0.2877, move=1.0):
    """A random part of each image at the image's own side: an area between `least` and `most`, sides stretched by up to
    exp(stretch), mirrored half of the time. move < 1 keeps to the middle; an area of 1 with move > 0 moves the whole
    image, and what comes in at the edge is its mirror image."""
    n, dev = x.shape[0], x.device
    area, ratio = uniform(n, least, most, dev), torch.exp(uniform(n, -stretch, stretch, dev))
    sx, sy = (area * ratio).sqrt(), (area / ratio).sqrt()
    flip = torch.randint(0, 2, (n,), device=dev) * 2 - 1
    zero = torch.zeros(n, device=dev)
    dx, dy = (uniform(n, -1, 1, dev) * move * (1 - s).clamp(min=0.15) for s in (sx, sy))
    theta = torch.stack([torch.stack([sx * flip, zero, dx], 1), torch.stack([zero, sy, dy], 1)], 1)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def jitter(x, amount=0.4, grey=0.1):
    """Brightness, contrast and saturation of each image."""
    n, dev = x.shape[0], x.device

    def factor():
        return uniform(n, 1 - amount, 1 + amount, dev).view(n, 1, 1, 1)
    x = x * factor()
    mean = x.mean((1, 2, 3), keepdim=True)
    x = (x - mean) * factor() + mean
    g = x.mean(1, keepdim=True)
    s = factor() * (torch.rand(n, 1, 1, 1, device=dev) >= grey)
    return ((x - g) * s + g).clamp(0, 1)


def tint(x, amount=0.35):
    """Another colour and contrast for each image, as pictures from above or through a microscope have."""
    n, dev = x.shape[0], x.device
    mean = x.mean((2, 3), keepdim=True)
    away = (torch.rand(n, 3, 1, 1, device=dev) * 2 - 1) * amount
    return ((x - mean) * uniform(n, 0.3, 1.2, dev).view(n, 1, 1, 1) + mean + away).clamp(0, 1)


def either(share, a, b):
    """Each image from a with probability `share`, else from b."""
    return torch.where(torch.rand(a.shape[0], 1, 1, 1, device=a.device) < share, a, b)


def shift(x, most=2):
    """A shift by whole pixels with repeated edges, and mirroring: one view for the whole batch, differentiable."""
    side, dev = x.shape[2], x.device
    place = torch.arange(side, device=dev)
    rows = (place + torch.randint(-most, most + 1, (1,), device=dev)).clamp(0, side - 1)
    columns = (place + torch.randint(-most, most + 1, (1,), device=dev)).clamp(0, side - 1)
    columns = torch.where(torch.rand(1, device=dev) < 0.5, columns, columns.flip(0))
    return x.index_select(2, rows).index_select(3, columns)


def half(dev):
    """bfloat16 on a card; on a processor, where it is only for trying things out, single precision is faster."""
    return torch.autocast("cuda", dtype=torch.bfloat16, enabled=dev.type == "cuda", cache_enabled=False)

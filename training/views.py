# SPDX-License-Identifier: Apache-2.0
"""Random views of public images, made on the device from uint8."""
import torch
import torch.nn.functional as F


def pixels(images, index):
    """uint8 (n,S,S,3) -> float (b,3,S,S) in [0,1]."""
    return images[index].permute(0, 3, 1, 2).float().div_(255).contiguous(memory_format=torch.channels_last)


def shrink(x, side):
    return F.interpolate(x, size=(side, side), mode="bilinear", antialias=True, align_corners=False)


def crop(x, side, least=0.3):
    """A random part of each image (an area from `least` to all of it, sides 3:4 to 4:3), mirrored half of the time."""
    n, dev = x.shape[0], x.device
    area = torch.rand(n, device=dev) * (1 - least) + least
    ratio = torch.exp((torch.rand(n, device=dev) * 2 - 1) * 0.2877)
    sx, sy = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    theta = torch.zeros(n, 2, 3, device=dev)
    theta[:, 0, 0] = sx * (torch.randint(0, 2, (n,), device=dev) * 2 - 1)
    theta[:, 1, 1] = sy
    theta[:, 0, 2] = (torch.rand(n, device=dev) * 2 - 1) * (1 - sx)
    theta[:, 1, 2] = (torch.rand(n, device=dev) * 2 - 1) * (1 - sy)
    grid = F.affine_grid(theta, (n, 3, side, side), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def jitter(x, amount=0.4, grey=0.1):
    n, dev = x.shape[0], x.device

    def factor():
        return 1 + (torch.rand(n, 1, 1, 1, device=dev) * 2 - 1) * amount
    x = x * factor()
    x = (x - x.mean((1, 2, 3), keepdim=True)) * factor() + x.mean((1, 2, 3), keepdim=True)
    g = x.mean(1, keepdim=True)
    s = torch.where(torch.rand(n, 1, 1, 1, device=dev) < grey, torch.zeros(1, device=dev), factor())
    return ((x - g) * s + g).clamp(0, 1)


def shift(x, most=2):
    """A shift by whole pixels with repeated edges, and mirroring: one view for the whole batch, differentiable."""
    dy, dx = (int(v) for v in torch.randint(-most, most + 1, (2,)))
    if torch.rand(()) < 0.5:
        x = x.flip(3)
    side = x.shape[2]
    x = F.pad(x, (most, most, most, most), mode="replicate")
    return x[:, :, most + dy:most + dy + side, most + dx:most + dx + side]


def half(dev):
    """bfloat16 on a card; on a processor, where it is only for trying things out, single precision is faster."""
    return torch.autocast("cuda", dtype=torch.bfloat16, enabled=dev.type == "cuda")

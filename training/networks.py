# SPDX-License-Identifier: Apache-2.0
"""The networks that fedkt ships, and the two that only help to train them.

Encoder and decoder have the layers and the tensor names of TAESD (O. Boer Bohan), at other widths: fedkt's C code reads
the widths from the tensors. The guide has torchvision's ResNet names, a 3x3 stem and no max pool.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

ENCODER_WIDTH, DECODER_WIDTH, LATENT = 48, 96, 4
GUIDE_WIDTHS = (48, 96, 192, 256)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def conv(n_in, n_out, **more):
    return nn.Conv2d(n_in, n_out, 3, padding=1, **more)


class Clamp(nn.Module):
    def forward(self, x):
        return torch.tanh(x / 3) * 3


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Sequential(conv(width, width), nn.ReLU(), conv(width, width), nn.ReLU(), conv(width, width))

    def forward(self, x):
        return F.relu(self.conv(x) + x)


def encoder(width=ENCODER_WIDTH, latent=LATENT):
    def down():
        return [conv(width, width, stride=2, bias=False), Block(width), Block(width), Block(width)]
    return nn.Sequential(conv(3, width), Block(width), *down(), *down(), *down(), conv(width, latent))


def decoder(width=DECODER_WIDTH, latent=LATENT):
    def up():
        return [Block(width), Block(width), Block(width), nn.Upsample(scale_factor=2), conv(width, width, bias=False)]
    return nn.Sequential(Clamp(), conv(latent, width), nn.ReLU(), *up(), *up(), *up(), Block(width), conv(width, 3))


class BasicBlock(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(n_in, n_out, stride=stride, bias=False), nn.BatchNorm2d(n_out)
        self.conv2, self.bn2 = conv(n_out, n_out, bias=False), nn.BatchNorm2d(n_out)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False),
                                            nn.BatchNorm2d(n_out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """Pixels in [0,1] -> scores of the public classes; features() gives the pooled vector before them. stem 1 is for
    32x32 pixels; stem 2, a stride of two, for 64x64: as much work, and more of the image is seen."""

    def __init__(self, classes, widths=GUIDE_WIDTHS, blocks=2, stem=1):
        super().__init__()
        self.stem = stem
        self.conv1, self.bn1 = conv(3, widths[0], stride=stem, bias=False), nn.BatchNorm2d(widths[0])
        n_in = widths[0]
        for i, n_out in enumerate(widths):
            layer = [BasicBlock(n_in if b == 0 else n_out, n_out, 2 if b == 0 and i else 1) for b in range(blocks)]
            setattr(self, f"layer{i + 1}", nn.Sequential(*layer))
            n_in = n_out
        self.fc = nn.Linear(n_in, classes)
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1), persistent=False)

    def fit(self, x):
        """Views of 64 px at the side that this network takes."""
        return x if self.stem == 2 else F.avg_pool2d(x, 2)

    def maps(self, x, stages=4):
        x = F.relu(self.bn1(self.conv1((x - self.mean) / self.std)))
        out = []
        for i in range(stages):
            x = getattr(self, f"layer{i + 1}")(x)
            out.append(x)
        return out

    def features(self, x):
        return self.maps(x)[-1].mean((2, 3))

    def forward(self, x):
        return self.fc(self.features(x))


class Critic(nn.Module):
    """Tells real images from made ones: small heads on the maps of a frozen public network, and one on the pixels
    themselves (Sauer et al. 2021, projected GANs; here the network is our own)."""

    def __init__(self, widths):
        super().__init__()
        norm = nn.utils.parametrizations.spectral_norm

        def head(n_in):
            return nn.Sequential(norm(nn.Conv2d(n_in, 128, 1)), nn.LeakyReLU(0.2), norm(conv(128, 128)),
                                 nn.LeakyReLU(0.2), norm(nn.Conv2d(128, 1, 1)))
        self.heads = nn.ModuleList([head(w) for w in widths])
        self.pixels = nn.Sequential(norm(conv(3, 64)), nn.LeakyReLU(0.2), norm(conv(64, 128, stride=2)),
                                    nn.LeakyReLU(0.2), norm(conv(128, 256, stride=2)), nn.LeakyReLU(0.2),
                                    norm(conv(256, 256)), nn.LeakyReLU(0.2), norm(nn.Conv2d(256, 1, 1)))

    def forward(self, x, maps):
        """One list of score maps; x is in [0,1]."""
        return [h(m) for h, m in zip(self.heads, maps)] + [self.pixels(2 * x - 1)]

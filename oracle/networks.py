#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The autoencoders in PyTorch: the stranger's definitions that src/codec/ is held against.

usage: oracle/networks.py check [--data DIR] [--names DIR]

Three independent sources stand side by side:
  taesd         TAESD as a plain torch.nn.Sequential, names are its indices
  diffusers     AutoencoderTiny and AutoencoderDC of diffusers, built from the configurations below
  efficientvit  DC-AE with efficientvit's tensor names, written from the papers (Chen et al. 2024, arXiv 2410.10733; Cai
                et al. 2023, arXiv 2205.14756) and the published names and shapes
`check` says whether they agree with each other for the same weights, whether the real TAESD files of DIR/codecs load
with strict=True, and whether names and shapes are those of the lists DIR/dcae_*_efficientvit_tensors.txt.

Needs PyTorch, diffusers and safetensors from PyPI; neither the build nor the tests do.
"""

import argparse
import dataclasses
import os

import torch
import torch.nn.functional as F
from torch import nn

# ---------------------------------------------------------------------------------------------------------------- TAESD


class Clamp(nn.Module):
    def forward(self, x):
        return 3 * torch.tanh(x / 3)


class Block(nn.Module):
    """relu(x + conv(relu(conv(relu(conv(x))))))"""

    def __init__(self, c):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(c, c, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1),
        )

    def forward(self, x):
        return F.relu(x + self.conv(x))


def taesd_encoder(latent, c=64):
    down = lambda: nn.Conv2d(c, c, 3, stride=2, padding=1, bias=False)
    blocks = lambda n: [Block(c) for _ in range(n)]
    return nn.Sequential(
        nn.Conv2d(3, c, 3, padding=1),
        *blocks(1),
        *(m for _ in range(3) for m in [down()] + blocks(3)),
        nn.Conv2d(c, latent, 3, padding=1),
    )


def taesd_decoder(latent, c=64):
    up = lambda: [nn.Upsample(scale_factor=2), nn.Conv2d(c, c, 3, padding=1, bias=False)]
    return nn.Sequential(
        Clamp(),
        nn.Conv2d(latent, c, 3, padding=1),
        nn.ReLU(),
        *(m for _ in range(3) for m in [Block(c) for _ in range(3)] + up()),
        Block(c),
        nn.Conv2d(c, 3, 3, padding=1),
    )


class Taesd(nn.Module):
    """Pixels in [0, 1] on both sides; nothing is clamped."""

    def __init__(self, latent):
        super().__init__()
        self.encoder = taesd_encoder(latent)
        self.decoder = taesd_decoder(latent)


# -------------------------------------------------------------------------------------------- DC-AE, efficientvit names


@dataclasses.dataclass(frozen=True)
class Member:
    """What tells one DC-AE from another. Stage 0 of depth 0: the first convolution goes to half the side at once."""

    latent: int
    widths: tuple
    encoder_depth: tuple
    decoder_depth: tuple
    residual: int = 3  # the first so many stages are ResBlocks, the rest EfficientViT blocks
    scales: tuple = ()  # of the aggregation beside qkv
    sana: bool = False  # strided and interpolating convolutions; RMS norm and SiLU throughout the decoder


def _sana(latent, widths, encoder_depth, decoder_depth):
    return Member(latent, widths, encoder_depth, decoder_depth, scales=(5,), sana=True)


WIDTHS = (128, 256, 512, 512, 1024, 1024, 2048, 2048)
ENCODER = (0, 4, 8, 2, 2, 2, 2, 2)
DECODER = (0, 5, 10, 2, 2, 2, 2, 2)
TINY = (16, 32, 32, 32, 64, 64, 128)
DCAE = {
    "dc-ae-f32c32": Member(32, WIDTHS[:6], ENCODER[:6], DECODER[:6]),  # in-1.0 and mix-1.0
    "dc-ae-f64c128": Member(128, WIDTHS[:7], ENCODER[:7], DECODER[:7]),
    "dc-ae-f128c512": Member(512, WIDTHS, ENCODER, DECODER),
    "dc-ae-f32c32-sana": _sana(32, WIDTHS[:6], (2, 2, 2, 3, 3, 3), (3, 3, 3, 3, 3, 3)),
    # Of the same make, small enough for plain loops.
    "tiny-f32": Member(8, TINY[:6], (0, 1, 2, 1, 1, 1), (0, 2, 1, 1, 1, 1)),
    "tiny-f64": Member(16, TINY, (0, 1, 1, 1, 1, 1, 1), (0, 1, 1, 1, 1, 1, 1)),
    "tiny-sana": _sana(8, TINY[:6], (1, 1, 1, 1, 1, 1), (1, 1, 1, 2, 1, 1)),
}
HEAD = 32


class RmsNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(c))
        self.bias = nn.Parameter(torch.zeros(c))

    def forward(self, x):
        y = x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)
        return y * self.weight[:, None, None] + self.bias[:, None, None]


class Conv(nn.Module):
    """Convolution with padding that keeps the side, then a norm, then an activation; each may be absent."""

    def __init__(self, c, d, kernel, stride=1, groups=1, bias=True, norm=None, act=None):
        super().__init__()
        self.conv = nn.Conv2d(c, d, kernel, stride, kernel // 2, groups=groups, bias=bias)
        if norm:
            self.norm = norm(d)
        self.act = act

    def forward(self, x):
        x = self.conv(x)
        if hasattr(self, "norm"):
            x = self.norm(x)
        return self.act(x) if self.act else x


class Sum(nn.Module):
    def __init__(self, main, shortcut):
        super().__init__()
        self.main = main
        self.shortcut = shortcut

    def forward(self, x):
        return self.main(x) + self.shortcut(x)


class OpList(nn.Module):
    def __init__(self, ops):
        super().__init__()
        self.op_list = nn.ModuleList(ops)

    def forward(self, x):
        for op in self.op_list:
            x = op(x)
        return x


class Act(nn.Module):
    def forward(self, x):
        return F.relu(x)


class Res(nn.Module):
    def __init__(self, c, norm, act):
        super().__init__()
        self.conv1 = Conv(c, c, 3, act=act)
        self.conv2 = Conv(c, c, 3, bias=False, norm=norm)

    def forward(self, x):
        return self.conv2(self.conv1(x))


class LinearAttention(nn.Module):
    """Heads of 32 channels; the channels of a head stand together as q, k, v. Always in the linear form."""

    def __init__(self, c, scales):
        super().__init__()
        self.qkv = Conv(c, 3 * c, 1, bias=False)
        self.aggreg = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(3 * c, 3 * c, s, padding=s // 2, groups=3 * c, bias=False),
                nn.Conv2d(3 * c, 3 * c, 1, groups=3 * c // HEAD, bias=False),
            )
            for s in scales
        )
        self.proj = Conv(c * (1 + len(scales)), c, 1, bias=False, norm=RmsNorm)

    def forward(self, x):
        n, _, h, w = x.shape
        x = self.qkv(x)
        x = torch.cat([x] + [m(x) for m in self.aggreg], dim=1)
        q, k, v = x.reshape(n, -1, 3, HEAD, h * w).unbind(2)
        q, k = F.relu(q), F.relu(k)
        top = torch.einsum("nhvp,nhkp,nhki->nhvi", v, k, q)
        low = torch.einsum("nhkp,nhki->nhi", k, q)
        return self.proj((top / (low[:, :, None] + 1e-15)).reshape(n, -1, h, w))


class Glu(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.inverted_conv = Conv(c, 8 * c, 1, act=F.silu)
        self.depth_conv = Conv(8 * c, 8 * c, 3, groups=8 * c)
        self.point_conv = Conv(4 * c, c, 1, bias=False, norm=RmsNorm)

    def forward(self, x):
        a, b = self.depth_conv(self.inverted_conv(x)).chunk(2, dim=1)
        return self.point_conv(a * F.silu(b))


def same(x):
    return x


class EfficientVit(nn.Module):
    def __init__(self, c, scales):
        super().__init__()
        self.context_module = Sum(LinearAttention(c, scales), same)
        self.local_module = Sum(Glu(c), same)

    def forward(self, x):
        return self.local_module(self.context_module(x))


class Down(nn.Module):
    def __init__(self, c, d):
        super().__init__()
        self.conv = Conv(c, d // 4, 3)

    def forward(self, x):
        return F.pixel_unshuffle(self.conv(x), 2)


class Up(nn.Module):
    def __init__(self, c, d, interpolate):
        super().__init__()
        self.conv = Conv(c, d if interpolate else 4 * d, 3)
        self.interpolate = interpolate

    def forward(self, x):
        if self.interpolate:
            return self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))
        return F.pixel_shuffle(self.conv(x), 2)


def average(x, d, factor=1):
    x = F.pixel_unshuffle(x, factor)
    n, c, h, w = x.shape
    return x.reshape(n, d, c // d, h, w).mean(2)


def duplicate(x, d, factor=1):
    return F.pixel_shuffle(x.repeat_interleave(d * factor * factor // x.shape[1], dim=1), factor)


class Encoder(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.project_in = Conv(3, m.widths[0], 3) if m.encoder_depth[0] else Down(3, m.widths[1])
        stages = []
        for i, (c, depth) in enumerate(zip(m.widths, m.encoder_depth)):
            ops = [block(m, i, c, RmsNorm, F.silu) for _ in range(depth)]
            if depth and i + 1 < len(m.widths):
                d = m.widths[i + 1]
                ops.append(Sum(Conv(c, d, 3, stride=2) if m.sana else Down(c, d), lambda x, d=d: average(x, d, 2)))
            stages.append(OpList(ops))
        self.stages = nn.ModuleList(stages)
        self.project_out = Sum(OpList([Conv(m.widths[-1], m.latent, 3)]), lambda x: average(x, m.latent))

    def forward(self, x):
        x = self.project_in(x)
        for stage in self.stages:
            x = stage(x)
        return self.project_out(x)


class Decoder(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.project_in = Sum(Conv(m.latent, m.widths[-1], 3), lambda x: duplicate(x, m.widths[-1]))
        stages = []
        for i, (c, depth) in enumerate(zip(m.widths, m.decoder_depth)):
            batch = i < m.residual and not m.sana
            ops = []
            if depth and i + 1 < len(m.widths):
                ops.append(Sum(Up(m.widths[i + 1], c, m.sana), lambda x, c=c: duplicate(x, c, 2)))
            norm, act = (nn.BatchNorm2d, F.relu) if batch else (RmsNorm, F.silu)
            ops += [block(m, i, c, norm, act) for _ in range(depth)]
            stages.append(OpList(ops))
        self.stages = nn.ModuleList(stages)
        first = m.widths[0] if m.decoder_depth[0] else m.widths[1]
        last = Conv(first, 3, 3) if m.decoder_depth[0] else Up(first, 3, m.sana)
        self.project_out = OpList([RmsNorm(first), Act(), last])

    def forward(self, x):
        x = self.project_in(x)
        for stage in reversed(self.stages):
            x = stage(x)
        return self.project_out(x)


def block(m, stage, c, norm, act):
    return Sum(Res(c, norm, act), same) if stage < m.residual else EfficientVit(c, m.scales)


class Dcae(nn.Module):
    """Pixels in [-1, 1] on both sides; nothing is clamped, no scaling factor is applied."""

    def __init__(self, member):
        super().__init__()
        self.encoder = Encoder(member)
        self.decoder = Decoder(member)


# ----------------------------------------------------------------------------------------------------------- diffusers

TINY_CONFIG = {  # config.json of AutoencoderTiny: what differs from the class's defaults, pixel shift aside
    "taesd": {"latent_channels": 4},
    "taesd3": {"latent_channels": 16},
    "taef1": {"latent_channels": 16},
}


def dc_config(m):
    """config.json of AutoencoderDC for this member."""
    n = len(m.widths)
    kinds = ["ResBlock"] * m.residual + ["EfficientViTBlock"] * (n - m.residual)
    scales = [[]] * m.residual + [list(m.scales)] * (n - m.residual)
    return {
        "in_channels": 3,
        "latent_channels": m.latent,
        "attention_head_dim": HEAD,
        "encoder_block_types": kinds,
        "decoder_block_types": kinds,
        "encoder_block_out_channels": list(m.widths),
        "decoder_block_out_channels": list(m.widths),
        "encoder_layers_per_block": list(m.encoder_depth),
        "decoder_layers_per_block": list(m.decoder_depth),
        "encoder_qkv_multiscales": scales,
        "decoder_qkv_multiscales": scales,
        "upsample_block_type": "interpolate" if m.sana else "pixel_shuffle",
        "downsample_block_type": "conv" if m.sana else "pixel_unshuffle",
        "decoder_norm_types": "rms_norm" if m.sana else ["batch_norm"] * m.residual + ["rms_norm"] * (n - m.residual),
        "decoder_act_fns": "silu" if m.sana else ["relu"] * m.residual + ["silu"] * (n - m.residual),
    }


class Halves(nn.Module):
    """A diffusers autoencoder as two plain modules on the codec's own pixel range. The networks of AutoencoderTiny
    are taken from inside, where pixels are in [0, 1]."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.tiny = hasattr(inner.encoder, "layers")

    def encoder(self, x):
        return self.inner.encoder(2 * x - 1) if self.tiny else self.inner.encoder(x)

    def decoder(self, z):
        return (self.inner.decoder(z) + 1) / 2 if self.tiny else self.inner.decoder(z)


def build(name, layout):
    """A module with .encoder and .decoder whose state_dict (of .inner for diffusers) has the layout's names."""
    if layout == "diffusers":
        import diffusers

        if name in TINY_CONFIG:
            return Halves(diffusers.AutoencoderTiny(**TINY_CONFIG[name])).eval()
        return Halves(diffusers.AutoencoderDC(**dc_config(DCAE[name]))).eval()
    if layout == "efficientvit":
        return Dcae(DCAE[name]).eval()
    if layout == "taesd":
        return Taesd(TINY_CONFIG[name]["latent_channels"]).eval()
    raise ValueError(f"unknown layout '{layout}'")


def tensors(net):
    """The state_dict under the names of the layout."""
    return (net.inner if isinstance(net, Halves) else net).state_dict()


def files(net, layout):
    """The state_dict as it is published: {file's suffix: {name: tensor}}. TAESD comes as two files, and both count
    their layers from zero."""
    state = tensors(net)
    if layout != "taesd":
        return {"": state}
    strip = lambda half: {k[len(half) + 1 :]: v for k, v in state.items() if k.startswith(half)}
    return {"_encoder": strip("encoder"), "_decoder": strip("decoder")}


def load(net, layout, parts):
    """The inverse of files()."""
    state = {f"{s[1:]}.{k}" if s else k: v for s, part in parts.items() for k, v in part.items()}
    (net.inner if isinstance(net, Halves) else net).load_state_dict(state, strict=True, assign=True)
    return net.requires_grad_(False).eval()


def to_diffusers(name, state):
    """Weights of layout taesd or efficientvit under diffusers' names."""
    if name in TINY_CONFIG:
        out = {}
        for key, t in state.items():
            half, index, rest = key.split(".", 2)
            out[f"{half}.layers.{int(index) - (half == 'decoder')}.{rest}"] = t
        return out
    from diffusers.loaders.single_file_utils import convert_autoencoder_dc_checkpoint_to_diffusers

    return convert_autoencoder_dc_checkpoint_to_diffusers(dict(state))


# --------------------------------------------------------------------------------------------------------------- check


def picture(size, which=0):
    """A picture by formula, uint8 (size, size, 3); tests/support/golden.c has the same."""
    y, x, c = torch.meshgrid(*[torch.arange(n) for n in (size, size, 3)], indexing="ij")
    fine = (x * (7 + 4 * which) + y * (13 + 2 * c) + x * y * (3 + which) + c * 331 + which * 97) % 512
    coarse = (x // 8 * 160 + y // 8 * 96 + c * 128) % 512
    return ((fine + coarse) // 4).to(torch.uint8)


def image(name, size, which=0):
    """The picture as this network takes it: (3, size, size), TAESD in [0, 1], DC-AE in [-1, 1]."""
    x = picture(size, which).permute(2, 0, 1).to(torch.float32) / 255
    return (x if name in TINY_CONFIG else 2 * x - 1).contiguous()


def worst(a, b):
    return float((a - b).abs().max() / b.abs().max())


@torch.inference_mode()
def agree(name, own, size):
    """Largest relative difference of the two definitions with the same random weights."""
    import random_weights

    a, b = build(name, own), build(name, "diffusers")
    state = random_weights.fill(tensors(a))
    a.load_state_dict(state, strict=True, assign=True)
    b.inner.load_state_dict(to_diffusers(name, state), strict=True, assign=True)
    x = image(name, size)[None]
    z = a.encoder(x)
    return worst(z, b.encoder(x)), worst(a.decoder(z), b.decoder(z)), z, a.decoder(z)


def check(data, names):
    for name in TINY_CONFIG:
        print(name, "taesd ~ diffusers: %.1e %.1e" % agree(name, "taesd", 64)[:2])
    for name in ["tiny-f32", "tiny-f64", "tiny-sana", "dc-ae-f32c32", "dc-ae-f64c128", "dc-ae-f32c32-sana"]:
        e, d, z, y = agree(name, "efficientvit", 64)
        print(f"{name} efficientvit ~ diffusers: {e:.1e} {d:.1e}  rms {float(z.std()):.2f} {float(y.std()):.2f}")
    for name in ["dc-ae-f32c32", "dc-ae-f64c128"] if names else []:
        with open(
            os.path.join(names, name.replace("dc-ae", "dcae").replace("-", "_") + "_efficientvit_tensors.txt")
        ) as f:
            want = {line.split(" ", 1)[0]: line.split(" ", 1)[1].strip() for line in f if line.strip()}
        with torch.device("meta"):
            have = {k: str(tuple(v.shape)) for k, v in build(name, "efficientvit").state_dict().items()}
        assert have == want, {k for k in set(have) ^ set(want)} or [k for k in want if have[k] != want[k]]
        print(f"{name}: {len(have)} names and shapes as listed")
    if data:
        from safetensors.torch import load_file

        for name in ["taesd", "taesd3"]:
            for half in ["encoder", "decoder"]:
                state = load_file(os.path.join(data, "codecs", f"{name}_{half}.safetensors"))
                getattr(build(name, "taesd"), half).load_state_dict(state, strict=True)
        print("taesd, taesd3: real files load")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("verb", choices=["check"])
    p.add_argument("--data")
    p.add_argument("--names")
    a = p.parse_args()
    check(a.data, a.names)

# SPDX-License-Identifier: Apache-2.0
"""corpus_family.py - seeds for fuzz_family: the smallest members of the codec and guide families, and some
that lie.

An input is one byte of choices, then the files; see fuzz_family.c. Values are small and fixed by their place.
"""

import json
import struct


def safetensors(shapes, dtype="BF16"):
    """A file from {name: shape}; every number is a small bfloat16."""
    header, at = {}, 0
    for name, shape in shapes.items():
        count = 1
        for n in shape:
            count *= n
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + 2 * count]}
        at += 2 * count
    text = json.dumps(header, separators=(",", ":")).encode()
    values = b"".join(struct.pack("<H", (0x3E00 + i % 7 * 16) | (i % 2 << 15)) for i in range(at // 2))
    return struct.pack("<Q", len(text)) + text + values


def joined(choice, *parts):
    """The byte of choices, then all parts; all but the last with their length."""
    out = bytes([choice])
    for part in parts[:-1]:
        out += struct.pack("<H", len(part)) + part
    return out + parts[-1]


def taesd(side, width, latent, prefix="", shift=0):
    plan = ["ebdbbbdbbbdbbbl", "-l-bbb-dbbb-dbbb-dbo"][side]
    first = {"e": (width, 3), "d": (width, width), "o": (3, width), "l": (width, latent) if side else (latent, width)}
    shapes = {}
    for i, kind in enumerate(plan):
        here = f"{prefix}{i - shift}."
        if kind in first:
            shapes[here + "weight"] = (*first[kind], 3, 3)
            if kind != "d":
                shapes[here + "bias"] = first[kind][:1]
        for k in (0, 2, 4) if kind == "b" else ():
            shapes[f"{here}conv.{k}.weight"] = (width, width, 3, 3)
            shapes[f"{here}conv.{k}.bias"] = (width,)
    return shapes


def dcae(side, efficientvit, attention, batch):
    """One stage of one block, width 2, latent 1, no change of size."""
    who = ["encoder.", "decoder."][side]
    here = who + ("stages.0.op_list.0." if efficientvit else ["down_blocks.0.0.", "up_blocks.0.0."][side])
    ends = [["conv_in", "conv_out"], ["project_in.conv", "project_out.main.op_list.0.conv"]][efficientvit]
    if side:
        ends = [["conv_out", "conv_in"], ["project_out.op_list.2.conv", "project_in.main.conv"]][efficientvit]
    names = [
        ["conv1", "conv2", "norm", "attn.", "to_out", "norm_out", "conv_out.", "conv_inverted", "conv_depth"]
        + ["conv_point", "norm", "norm_out"],
        ["main.conv1.conv", "main.conv2.conv", "main.conv2.norm", "context_module.main.", "proj.conv", "proj.norm"]
        + ["local_module.main.", "inverted_conv.conv", "depth_conv.conv", "point_conv.conv", "point_conv.norm"]
        + ["project_out.op_list.0"],
    ][efficientvit]
    shapes = {}

    def put(name, *shape, bias=True):
        shapes[name + ".weight"] = shape
        if bias:
            shapes[name + ".bias"] = shape[:1]

    put(who + ends[0], *((3, 2, 3, 3) if side else (2, 3, 3, 3)))
    put(who + ends[1], *((2, 1, 3, 3) if side else (1, 2, 3, 3)))
    if not attention:
        put(here + names[0], 2, 2, 3, 3)
        put(here + names[1], 2, 2, 3, 3, bias=False)
        put(here + names[2], 2)
        if batch:
            shapes[here + names[2] + ".running_mean"] = shapes[here + names[2] + ".running_var"] = (2,)
    else:
        if efficientvit:
            put(here + names[3] + "qkv.conv", 96, 2, 1, 1, bias=False)
        for third in () if efficientvit else "qkv":
            put(f"{here}{names[3]}to_{third}", 32, 2, bias=False)
        put(here + names[3] + names[4], 2, 32, bias=False)
        put(here + names[3] + names[5], 2)
        put(here + names[6] + names[7], 4, 2, 1, 1)
        put(here + names[6] + names[8], 4, 1, 3, 3)
        put(here + names[6] + names[9], 2, 2, 1, 1, bias=False)
        put(here + names[6] + names[10], 2)
    if side:
        put(who + names[11], 2)
    return shapes


def normed(shapes, conv, norm, *shape):
    shapes[conv + ".weight"] = shape
    for last in ("weight", "bias", "running_mean", "running_var"):
        shapes[f"{norm}.{last}"] = shape[:1]


def resnet(kernel, bottleneck, depths=(1, 1, 1, 1)):
    """Width 1, or 1 and 2 in bottlenecks, which then have a projection."""
    shapes = {}
    normed(shapes, "conv1", "bn1", 1, 3, kernel, kernel)
    into, out = 1, 1 + bottleneck
    for stage, depth in enumerate(depths):
        for i in range(depth):
            here = f"layer{stage + 1}.{i}."
            windows = (1, 3, 1) if bottleneck else (3, 3)
            for k, side in enumerate(windows):
                last = k + 1 == len(windows)
                inside = into if k == 0 else 1
                normed(shapes, f"{here}conv{k + 1}", f"{here}bn{k + 1}", out if last else 1, inside, side, side)
            if i == 0 and (stage or into != out):
                normed(shapes, here + "downsample.0", here + "downsample.1", out, into, 1, 1)
            into = out
    shapes["fc.weight"], shapes["fc.bias"] = (2, into), (2,)
    return shapes


def lite0():
    shapes, kernels = {}, (3, 3, 3, 5, 5, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 3)
    normed(shapes, "_conv_stem", "_bn0", 1, 3, 3, 3)
    for i, k in enumerate(kernels):
        here = f"_blocks.{i}._"
        if i:
            normed(shapes, here + "expand_conv", here + "bn0", 1, 1, 1, 1)
        normed(shapes, here + "depthwise_conv", here + "bn1", 1, 1, k, k)
        normed(shapes, here + "project_conv", here + "bn2", 1, 1, 1, 1)
    normed(shapes, "_conv_head", "_bn1", 1, 1, 1, 1)
    return shapes


def both(efficientvit, attention=False):
    return {**dcae(0, efficientvit, attention, False), **dcae(1, efficientvit, attention, not attention)}


def files():
    tiny = {**taesd(0, 1, 4, "encoder.layers."), **taesd(1, 1, 4, "decoder.layers.", 1)}
    config = {
        "_class_name": "AutoencoderDC",
        "latent_channels": 1,
        "scaling_factor": 0.5,
        "encoder_block_out_channels": [2],
        "decoder_layers_per_block": [1],
        "decoder_norm_types": "batch_norm",
        "decoder_act_fns": ["relu"],
        "encoder_out_shortcut": True,
        "downsample_block_type": "pixel_unshuffle",
    }
    small, any_tiny, any_dcae, nobody = both(0), 5 << 2, 13 << 2, 63 << 2  # places in src/codec/members.c
    resnet18, any_resnet, lite = 15 << 2, 18 << 2, 19 << 2
    wide = dict(small, **{"encoder.down_blocks.0.0.norm.weight": (0, 4000000000)})
    far = dict(small, **{"encoder.down_blocks.15.63.conv1.weight": (2, 2, 3, 3)})
    return {
        "pair": joined(any_tiny | 1, safetensors(taesd(0, 1, 4)), safetensors(taesd(1, 1, 4))),
        "tiny": joined(0, safetensors(tiny)),
        "dc": joined(nobody, safetensors(small)),
        "dc-config": joined(any_dcae | 2, safetensors(small), json.dumps(config).encode()),
        "dc-attention": joined(any_dcae, safetensors(both(0, True))),
        "evit": joined(any_dcae, safetensors(both(1))),
        "evit-attention": joined(any_dcae | 2, safetensors(both(1, True)), b'{"model_name": "dc-ae-f32c32-in-1.0"}'),
        "bad-member": joined(0, safetensors(small)),
        "bad-config": joined(nobody | 2, safetensors(small), b'{"latent_channels": [1]}'),
        "bad-twice": joined(nobody | 1, safetensors(taesd(0, 1, 4)), safetensors(taesd(0, 1, 4))),
        "bad-wide": joined(nobody, safetensors(wide)),
        "bad-far": joined(nobody, safetensors(far)),
        "bad-stranger": joined(nobody, safetensors({"encoder.down_blocks.0.resnets.0.conv1.weight": (1,)})),
        "resnet": joined(any_resnet, safetensors(resnet(3, 0))),
        "resnet-bottleneck": joined(nobody, safetensors(resnet(7, 1, (1, 2, 1, 1)))),
        "lite0": joined(nobody, safetensors(lite0())),
        "bad-resnet-member": joined(resnet18, safetensors(resnet(7, 0, (2, 2, 2, 2)))),
        "bad-resnet-stem": joined(any_resnet, safetensors(dict(resnet(3, 0), **{"conv1.weight": (1, 3, 5, 5)}))),
        "bad-resnet-wide": joined(nobody, safetensors(dict(resnet(3, 0), **{"bn1.weight": (0, 4000000000)}))),
        "bad-lite0": joined(lite, safetensors(lite0())),
        "empty": b"",
    }

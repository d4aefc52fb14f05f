# SPDX-License-Identifier: Apache-2.0
"""corpus_model.py - seeds for fuzz_model: headers of the smallest classifier, and some that lie.

An input is the JSON header alone; see fuzz_model.c, which adds the numbers.
"""

import json


def resnet8(classes):
    shapes = {}

    def conv_norm(place, conv, norm, before, width, kernel):
        shapes[f"{place}{conv}.weight"] = (width, before, kernel, kernel)
        for part in "weight bias running_mean running_var".split():
            shapes[f"{place}{norm}.{part}"] = (width,)
        shapes[f"{place}{norm}.num_batches_tracked"] = ()

    conv_norm("", "conv1", "bn1", 3, 16, 3)
    for i, (before, width) in enumerate([(16, 16), (16, 32), (32, 64)]):
        conv_norm(f"layer{i + 1}.0.", "conv1", "bn1", before, width, 3)
        conv_norm(f"layer{i + 1}.0.", "conv2", "bn2", width, width, 3)
        if before != width:
            conv_norm(f"layer{i + 1}.0.", "downsample.0", "downsample.1", before, width, 1)
    shapes["fc.weight"], shapes["fc.bias"] = (classes, 64), (classes,)
    return shapes


def header(shapes, words=None, dtype="BF16", size=2):
    out, at = {"__metadata__": words} if words else {}, 0
    for name, shape in shapes.items():
        count = 1
        for n in shape:
            count *= n
        scalar = name.endswith("tracked")
        end = at + (8 if scalar else size * count)
        out[name] = {"dtype": "I64" if scalar else dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return json.dumps(out, separators=(",", ":")).encode()


WORDS = {
    "format": "fedkt.model/1",
    "architecture": "resnet8",
    "stem": "cifar",
    "size": "32",
    "classes": '["cat","dog"]',
    "mean": "[0.485,0.456,0.406]",
    "std": "[0.229,0.224,0.225]",
    "private": "true",
    "epsilon": "10",
    "delta": "1e-5",
    "release_sha256": "0123456789abcdef" * 4,
    "data": "release, 1200 drawn per class",
    "recipe": "--epochs 30 --seed 1",
}


def files():
    two = resnet8(2)
    bare = {k: v for k, v in two.items() if not k.endswith("tracked")}
    return {
        "ours": header(two, WORDS),
        "ours-f32": header(two, WORDS, "F32", 4),
        "pytorch": header(two, {"format": "pt"}),
        "bare-f16": header(bare, None, "F16"),
        "bad-classes": header(two, dict(WORDS, classes='["cat"]')),
        "bad-json": header(two, dict(WORDS, classes="cat, dog")),
        "bad-silent": header(two, {"format": "fedkt.model/1"}),
        "bad-size": header(two, dict(WORDS, size="100000")),
        "bad-shape": header(dict(two, **{"layer2.0.conv1.weight": (32, 16, 3, 2)})),
        "bad-missing": header({k: v for k, v in two.items() if k != "layer3.0.bn2.bias"}),
        "bad-extra": header(dict(two, **{"layer4.0.bn2.bias": (1,)})),
        "bad-other": header({"conv1.weight": (64, 3, 7, 7), "fc.weight": (2, 512)}),
        "bad-huge": header({"conv1.weight": (64, 3, 3, 3), "fc.weight": (4000000000, 0)}),
        "empty": b"",
    }

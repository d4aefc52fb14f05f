#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes into a decoder of guided images which codec, guide and calibration it was trained for.

usage: tools/bind_guided.py guided.safetensors TASK.json [TASK.json ...]

Each task (made with 'fedkt task new --codec C --guide G --size S') is one pair; docs/formats.md, "Decoders of guided
images". Tensors stay as they are, byte by byte.
"""

import json
import os
import struct
import sys


def pair_of(path):
    with open(path, encoding="utf-8") as f:
        task = json.load(f)
    try:
        guide = task["guide"]
        return {
            "codec_sha256": task["codec"]["sha256"],
            "guide_sha256": guide["sha256"],
            "guide_calibration_sha256": guide["calibration"]["sha256"],
        }
    except KeyError as e:
        sys.exit(f"{path}: no {e}: is it a task with codec and guide?")


def main(file, *tasks):
    with open(file, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        tensors = f.read()
    header.setdefault("__metadata__", {})["fedkt.guided"] = json.dumps([pair_of(t) for t in tasks], sort_keys=True)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(file + ".new", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + tensors)
    os.replace(file + ".new", file)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""guide_sheet.py - real, plainly decoded and guided images of a release, side by side: docs/images/guide-sheet.png.

usage: bench/guide_sheet.py --fedkt BINARY --out SHEET.png NAME:RELEASE:REAL [NAME:RELEASE:REAL ...] [--rows 2]

REAL is a folder CLASS/*. The first images of each class are taken, real ones in the order of a hash of their names,
drawn ones as `fedkt generate --seed 0` numbers them: nothing is picked. Needs Pillow.
"""

import argparse
import hashlib
import pathlib
import subprocess
import tempfile

from PIL import Image, ImageDraw

SIDE, SCALE, LEFT, TOP = 32, 2, 84, 18
KINDS = {"real": None, "plain": ["--guided", "none"], "guided": ["--guided"]}


def drawn(fedkt, release, rows, options, folder):
    words = [fedkt, "generate", "--release", release, "--per-class", str(rows), "--out", folder, *options]
    subprocess.run([*words, "--device", "cpu", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    classes = sorted(p for p in pathlib.Path(folder).glob("**/") if any(p.glob("*.png")) and p != pathlib.Path(folder))
    return {p.name: sorted(p.glob("*.png")) for p in classes}


def real(folder, rows):
    order = lambda p: hashlib.sha256(p.name.encode()).digest()
    return {p.name: sorted(p.iterdir(), key=order)[:rows] for p in sorted(pathlib.Path(folder).iterdir())}


def part(sheet, draw, y, title, images):
    classes = list(images["real"])
    draw.text((2, y + 3), title, fill="black")
    for k, name in enumerate(classes):
        draw.text((LEFT + k * SIDE * SCALE + 1, y + 3), name[:10], fill="black")
    y += TOP
    for kind, found in images.items():
        rows = len(found[classes[0]])
        draw.text((2, y + rows * SIDE * SCALE // 2 - 6), kind, fill="black")
        for k, name in enumerate(classes):
            for r, path in enumerate(found[name][:rows]):
                with Image.open(path) as picture:
                    small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
                at = (LEFT + k * SIDE * SCALE, y + r * SIDE * SCALE)
                sheet.paste(small.resize((SIDE * SCALE, SIDE * SCALE), Image.Resampling.NEAREST), at)
        y += rows * SIDE * SCALE + 4
    return y + 6


def main():
    p = argparse.ArgumentParser()
    p.add_argument("sets", nargs="+")
    p.add_argument("--fedkt", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--rows", type=int, default=2)
    a = p.parse_args()
    height = len(a.sets) * (TOP + 3 * (a.rows * SIDE * SCALE + 4) + 6)
    sheet = Image.new("RGB", (LEFT + 10 * SIDE * SCALE, height), "white")
    draw, y = ImageDraw.Draw(sheet), 0
    for one in a.sets:
        name, release, folder = one.split(":")
        with tempfile.TemporaryDirectory() as scratch:
            images = {"real": real(folder, a.rows)}
            for kind in ("plain", "guided"):
                images[kind] = drawn(a.fedkt, release, a.rows, KINDS[kind], f"{scratch}/{kind}")
            y = part(sheet, draw, y, name, images)
    sheet.save(a.out, optimize=True)


if __name__ == "__main__":
    main()

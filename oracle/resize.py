#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Resize and decode with Pillow, for tests/unit/images: torchvision's Resize(S) + CenterCrop(S) on a Pillow image.

resize.py vectors DIR            writes the golden files of tests/vectors/images and their sidecar
resize.py tar TAR SIZE FILTER    member names on standard input, raw RGB (n, S, S, 3) on standard output
"""

import hashlib
import io
import sys
import tarfile

import numpy as np
import PIL
from PIL import Image

FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS, "box": Image.BOX}
# (width, height, S): shrinking, enlarging, mixed shapes, odd crops, one pixel, nothing to do
CASES = [
    (64, 64, 32),
    (33, 57, 16),
    (57, 33, 15),
    (150, 99, 20),
    (7, 5, 12),
    (1, 9, 6),
    (31, 32, 32),
    (40, 101, 13),
    (24, 24, 24),
]


def picture(w, h):
    """A smooth ramp, hard edges and noise in one; tests/support/image_files.c draws the same from integers."""
    y, x = np.mgrid[0:h, 0:w].astype(np.int64)
    out = np.empty((h, w, 3), np.uint8)
    for c in range(3):
        ramp = (x * (3 + c) + y * (5 - c)) % 256
        edge = np.where((x // 5 + y // 3 + c) % 2 == 0, 255, 0)
        noise = ((x * 7919 + y * 104729 + c * 1299709 + x * y * 31) >> 3) & 255
        kind = (x // 11 + y // 7) % 3
        out[:, :, c] = np.choose(kind, [ramp, edge, noise])
    return out


def resize_crop(img, size, flt):
    w, h = img.size
    if w <= h:
        nw, nh = size, int(size * h / w)
    else:
        nw, nh = int(size * w / h), size
    img = img.resize((nw, nh), flt)
    top, left = int(round((nh - size) / 2.0)), int(round((nw - size) / 2.0))
    return np.asarray(img.crop((left, top, left + size, top + size)))


def write(path, data, sums):
    with open(path, "wb") as f:
        f.write(data)
    sums.append((path.rsplit("/", 1)[1], len(data), hashlib.sha256(data).hexdigest()))


def jpeg(img, **options):
    buf = io.BytesIO()
    img.save(buf, "JPEG", **options)
    return buf.getvalue()


def vectors(folder):
    sums, out = [], b""
    for w, h, s in CASES:
        for name in ("bilinear", "bicubic", "lanczos", "box"):
            out += resize_crop(Image.fromarray(picture(w, h)), s, FILTERS[name]).tobytes()
    write(folder + "/resize.bin", out, sums)
    rgb = Image.fromarray(picture(45, 38))
    inks = np.dstack([255 - picture(45, 38), picture(38, 45).transpose(1, 0, 2)[:, :, 0] // 2])
    pictures = {
        "rgb420": jpeg(rgb, quality=80),
        "rgb444": jpeg(rgb, quality=92, subsampling=0),
        "progressive": jpeg(rgb, quality=75, progressive=True),
        "grey": jpeg(rgb.convert("L"), quality=85),
        "cmyk": jpeg(Image.fromarray(inks, "CMYK"), quality=90),
    }
    for name, data in pictures.items():
        write(f"{folder}/{name}.jpg", data, sums)
        write(f"{folder}/{name}.rgb", Image.open(io.BytesIO(data)).convert("RGB").tobytes(), sums)
    arrays = {}
    for i, (split, n) in enumerate((("train", 7), ("val", 3), ("test", 4))):
        arrays[split + "_images"] = np.stack([picture(9, 9) // (1 + i + j) for j in range(n)]).astype(np.uint8)
        arrays[split + "_labels"] = ((np.arange(n) + i) % 3).reshape(n, 1).astype(np.uint8)
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        buf = io.BytesIO()
        save(buf, **arrays)
        write(f"{folder}/{name}.npz", buf.getvalue(), sums)
    with open(folder + "/README.md", "w") as f:
        f.write(f"""# Golden files of the images room

Made by `oracle/resize.py vectors tests/vectors/images` with Pillow {PIL.__version__} and NumPy {np.__version__}.
The pictures are drawn by `picture()` in that script, so they are ours. The same versions make the same bytes.

`resize.bin`: for each case (width, height, S) of the script and each of bilinear, bicubic, lanczos, box the resized
and cropped RGB. `NAME.jpg` and `NAME.rgb`: a JPEG file and what Pillow decodes from it. Tolerance: none.

| file | bytes | sha256 |
|---|---|---|
""")
        for row in sums:
            f.write("| {} | {} | {} |\n".format(*row))


def from_tar(path, size, name):
    with tarfile.open(path) as tar:
        for line in sys.stdin:
            img = Image.open(tar.extractfile(line.rstrip("\n"))).convert("RGB")
            sys.stdout.buffer.write(resize_crop(img, size, FILTERS[name]).tobytes())


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "vectors":
        vectors(sys.argv[2])
    elif len(sys.argv) == 5 and sys.argv[1] == "tar":
        from_tar(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(__doc__)

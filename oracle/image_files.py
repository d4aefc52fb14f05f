#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Image files and what a stranger reads from them, for tests/unit/images/test_files.c and test_resize.c.

image_files.py FOLDER      writes tests/vectors/image_files: files, pixels, index.txt and the sidecar README.md

Pillow writes JPEG, PNG, WebP and simple TIFF files; tifffile (Debian package python3-tifffile) writes tiles, planes,
pages and 16-bit RGB, which Pillow cannot. Expected pixels: of lossy files Pillow's; of the others the array that was
written. Alpha is laid over white with exact rounding.
"""

import hashlib
import io
import pathlib
import struct
import sys
import zlib

import numpy as np
import PIL
import tifffile
from PIL import Image, ImageOps

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from resize import CASES, FILTERS, picture  # noqa: E402

W, H = 13, 9
RGB = picture(W, H)
GREY = RGB[:, :, 1].copy()
ALPHA = ((np.arange(W * H) * 7) % 256).astype(np.uint8).reshape(H, W)
DEEP = (RGB.astype(np.uint32) * 257 % 65536).astype(np.uint16)  # 0 to 65535
TWELVE = (GREY.astype(np.uint16) << 4 | GREY >> 4).astype(np.uint16)  # 0 to 4095
ORIENTATION = 0x0112


def over_white(colour, alpha):
    a = alpha.astype(np.int64)[..., None]
    return ((colour.astype(np.int64) * a + 255 * (255 - a) + 127) // 255).astype(np.uint8)


def repeat(grey):
    return np.repeat(grey[..., None], 3, axis=2).astype(np.uint8)


def encoded(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def exif(orientation):
    block = Image.Exif()
    block[ORIENTATION] = orientation
    return block.tobytes()


def tiff(array, order="<", big=False, **options):
    out = io.BytesIO()
    with tifffile.TiffWriter(out, byteorder=order, bigtiff=big) as file:
        for page in array if isinstance(array, list) else [(array, options)]:
            file.write(page[0], metadata=None, software=False, **page[1])
    return out.getvalue()


def patched(data, tag, value):
    """The first directory's entry of this tag, which is a SHORT (3) or LONG (4), with another value."""
    at = max(data.find(struct.pack("<HHI", tag, kind, 1)) for kind in (3, 4)) + 8
    return data[:at] + struct.pack("<I", value) + data[at + 4 :]


def turned(data):
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


def good():
    """name -> (bytes, bits, expected RGB)"""
    image, files = Image.fromarray(RGB), {}
    for i in range(1, 9):
        for form, name, options in (
            ("JPEG", "jpg", {"quality": 85}),
            ("PNG", "png", {}),
            ("WEBP", "webp", {"lossless": True}),
        ):
            data = encoded(image, form, exif=exif(i), **options)
            files[f"turned-{i}.{name}"] = (data, 0, turned(data))
        data = encoded(image, "TIFF", tiffinfo={ORIENTATION: i})
        files[f"turned-{i}.tif"] = (data, 0, turned(files[f"turned-{i}.png"][0]))
    big_endian = exif(6).replace(b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08")
    entry = struct.pack(">HHHIHHI", 1, ORIENTATION, 3, 1, 6, 0, 0)
    data = encoded(image, "PNG", exif=big_endian[:14] + entry)
    files["turned-big-endian.png"] = (data, 0, turned(files["turned-6.png"][0]))
    data = encoded(image, "WEBP", quality=70)
    files["lossy.webp"] = (data, 0, turned(data))
    rgba = Image.fromarray(np.dstack([RGB, ALPHA]))
    data = encoded(rgba, "WEBP", lossless=True, exact=True)
    files["alpha.webp"] = (data, 0, over_white(RGB, ALPHA))
    files["alpha.tif"] = (tiff(np.dstack([RGB, ALPHA]), extrasamples=["unassalpha"]), 0, None)
    for name, options in {
        "plain": {},
        "lzw": {"compression": "tiff_lzw"},
        "deflate": {"compression": "tiff_adobe_deflate"},
        "packbits": {"compression": "packbits"},
    }.items():
        files[f"{name}.tif"] = (encoded(image, "TIFF", **options), 0, RGB)
    files["grey.tif"] = (encoded(image.convert("L"), "TIFF"), 0, np.asarray(image.convert("L").convert("RGB")))
    files["palette.tif"] = (encoded(image.quantize(8), "TIFF"), 0, np.asarray(image.quantize(8).convert("RGB")))
    bits = Image.fromarray(GREY).convert("1")
    files["bilevel.tif"] = (encoded(bits, "TIFF", compression="group4"), 0, np.asarray(bits.convert("RGB")))
    files["white-is-zero.tif"] = (tiff(GREY, photometric="miniswhite"), 0, repeat(255 - GREY))
    files["tiles.tif"] = (tiff(RGB, tile=(16, 16), photometric="rgb", compression="zlib"), 0, RGB)
    files["strips.tif"] = (tiff(RGB, rowsperstrip=2, photometric="rgb"), 0, RGB)
    apart = np.moveaxis(RGB, 2, 0)
    files["planes.tif"] = (tiff(apart, photometric="rgb", planarconfig="separate"), 0, RGB)
    files["big.tif"] = (tiff(RGB, big=True, photometric="rgb"), 0, RGB)
    small = tiff([(RGB, {"photometric": "rgb"}), (RGB[::2, ::2].copy(), {"photometric": "rgb", "subfiletype": 1})])
    files["with-thumbnail.tif"] = (small, 0, RGB)
    high = (DEEP >> 8).astype(np.uint8)
    files["rgb16.tif"] = (tiff(DEEP, photometric="rgb"), 0, high)
    files["tiles16.tif"] = (tiff(DEEP, photometric="rgb", tile=(16, 16), compression="zlib"), 0, high)
    files["planes16.tif"] = (tiff(np.moveaxis(DEEP, 2, 0), photometric="rgb", planarconfig="separate"), 0, high)
    files["strips16.tif"] = (tiff(DEEP, photometric="rgb", rowsperstrip=2, order=">"), 0, high)
    files["grey16.tif"] = (tiff(DEEP[:, :, 1].copy()), 0, repeat(high[:, :, 1]))
    files["white16.tif"] = (tiff(DEEP[:, :, 1].copy(), photometric="miniswhite"), 0, repeat(255 - high[:, :, 1]))
    deep_alpha = np.dstack([DEEP, ALPHA.astype(np.uint16) * 257])
    files["alpha16.tif"] = (
        tiff(deep_alpha, photometric="rgb", extrasamples=["unassalpha"]),
        0,
        over_white(high, ALPHA),
    )
    files["twelve.tif"] = (tiff(TWELVE), 12, repeat(TWELVE >> 4))
    files["twelve.png"] = (encoded(Image.fromarray(TWELVE), "PNG"), 12, repeat(TWELVE >> 4))
    files["black16.png"] = (encoded(Image.fromarray(TWELVE * 0), "PNG"), 0, repeat(GREY * 0))
    files["dark16.png"] = (encoded(Image.fromarray(TWELVE), "PNG"), 16, repeat(TWELVE >> 8))
    return files


def bad():
    """name -> (bytes, bits, words of the refusal)"""
    image = Image.fromarray(RGB)
    pages = tiff([(RGB, {"photometric": "rgb"}), (RGB, {"photometric": "rgb"})])
    moving = encoded(image, "WEBP", save_all=True, append_images=[Image.fromarray(255 - RGB)], lossless=True)
    twelve = encoded(Image.fromarray(TWELVE), "PNG")
    plain, tiles = tiff(RGB, photometric="rgb"), tiff(RGB, photometric="rgb", tile=(16, 16), compression="zlib")
    return {
        "bad-pages.tif": (pages, 0, "more than one page"),
        "bad-moving.webp": (moving, 0, "an animation"),
        "bad-float.tif": (tiff(GREY.astype(np.float32)), 0, "samples of 32 bits (real numbers)"),
        "bad-signed.tif": (tiff(GREY.astype(np.int16)), 0, "samples of 16 bits (signed)"),
        "bad-zstd.tif": (patched(plain, 259, 50000), 0, "compressed with method 50000"),
        "bad-tile.tif": (patched(patched(tiles, 322, 65520), 323, 65520), 0, "tiles of 65520 x 65520 pixels"),
        "bad-size.tif": (patched(plain, 256, 16385), 0, "the TIFF is 16385 x 9 pixels"),
        "bad-twelve.png": (twelve, 0, f"its 16-bit samples end at {TWELVE.max()}"),
        "bad-twelve.tif": (tiff(TWELVE), 0, f"its 16-bit samples end at {TWELVE.max()}"),
        "bad-above.png": (twelve, 10, f"a sample of {TWELVE.max()}, above the largest of 10 bits, 1023"),
        "bad-dicom.dcm": (bytes(128) + b"DICM\x02\0\0\0UL\x04\0", 0, "it is a DICOM file"),
        "bad-gif.gif": (encoded(image, "GIF"), 0, "not a JPEG, PNG, WebP or TIFF file"),
    }


def fits():
    out = b""
    for w, h, s in CASES:
        image = Image.fromarray(picture(w, h))
        for flt in FILTERS.values():
            out += ImageOps.pad(image, (s, s), flt, color=0).tobytes()
            out += image.resize((s, s), flt).tobytes()
    return out


def write(folder):
    folder, sums, index = pathlib.Path(folder), [], []

    def put(name, data):
        (folder / name).write_bytes(data)
        sums.append((name, len(data), hashlib.sha256(data).hexdigest()))

    pixels, stored = {}, 0
    for name, (data, bits, want) in good().items():
        if want is None:  # libtiff premultiplies unassociated alpha of 8 bits: two roundings instead of one
            a = ALPHA.astype(np.int64)[..., None]
            want = (((RGB.astype(np.int64) * a + 127) // 255) + 255 - a).astype(np.uint8)
        put(name, data)
        raw = np.ascontiguousarray(want).tobytes()
        key = hashlib.sha256(raw).hexdigest()
        if key not in pixels:
            pixels[key] = f"pixels-{stored}.rgb"
            stored += 1
            put(pixels[key], raw)
        index.append(f"{name}\t{bits}\t{want.shape[1]}\t{want.shape[0]}\t{pixels[key]}")
    for name, (data, bits, words) in bad().items():
        put(name, data)
        index.append(f"{name}\t{bits}\t0\t0\t{words}")
    put("fit.bin", fits())
    put("index.txt", ("\n".join(index) + "\n").encode())
    rows = "\n".join(f"| {n} | {size} | {sha} |" for n, size, sha in sums)
    (folder / "README.md").write_text(f"""# Image files, and what they must read as

Made by `oracle/image_files.py tests/vectors/image_files` with Pillow {PIL.__version__}, tifffile
{tifffile.__version__}, NumPy {np.__version__} and zlib {zlib.ZLIB_RUNTIME_VERSION}. The images are drawn by `picture()`
of `oracle/resize.py`, so they are ours. Tolerance: none.

`index.txt`: a line for each file: name, depth of 16-bit samples that is stated (0: none), width, height, file of the
expected RGB; or, for a file that must be refused, 0, 0 and words of the refusal. `fit.bin`: for each case and filter of
`oracle/resize.py` Pillow's `ImageOps.pad` with black and its `resize((S, S))`.

| file | bytes | sha256 |
|---|---|---|
{rows}
""")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_corpus.py - write the seed corpora: for each target a few small valid files and some with a known fault.

Made with numpy 1.24 and Pillow 9.4 (Debian 12); the same versions give the same bytes. Each file stays
below 4 KB (networks 16 KB, classifiers and logs 8 KB).
Usage: make_corpus.py [FOLDER]      FOLDER is fuzz/corpus when not given
"""

import copy
import gzip
import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile
import zlib

import numpy as np
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "oracle"))
import transparency  # noqa: E402
import corpus_http_client
import corpus_family
import corpus_http
import corpus_model
import corpus_whole
import corpus_onnx
import corpus_sa

LIMIT = 4096
LIMITS = {"family": 32768, "model": 8192, "onnx": 8192, "transparency": 8192, "whole": 8192}  # many tensors, many lines

VECTORS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "vectors" / "image_files"
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "docs" / "schema" / "examples"


def picture(width, height, channels=3, seed=1):
    """A smooth ramp with a few random pixels: compresses well, is not constant."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    ramp = (x * 13 + y * 7)[..., None] + np.arange(channels) * 40
    spots = rng.integers(0, 64, (height, width, channels)) * (rng.random((height, width, 1)) < 0.1)
    pixels = ((ramp + spots) % 256).astype(np.uint8)
    return pixels[..., 0] if channels == 1 else pixels


def encoded(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def png(width=8, height=8, seed=1):
    return encoded(Image.fromarray(picture(width, height, 3, seed)), "PNG")


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def raw_png(width, height, depth, colour, interlace, body):
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


def with_text(body, length=None):
    """A small PNG with a compressed text before its pixels; the length may lie."""
    whole, text = raw_png(8, 8, 8, 0, 0, (b"\0" + bytes(8)) * 8), chunk(b"zTXt", body)
    if length is not None:
        text = struct.pack(">I", length) + text[4:]
    return whole[:33] + text + whole[33:]


def images():
    rgb, grey = Image.fromarray(picture(12, 9)), Image.fromarray(picture(12, 9, 1))
    rgba = Image.fromarray(picture(8, 8, 4))
    files = {
        "rgb.png": encoded(rgb, "PNG"),
        "grey.png": encoded(grey, "PNG"),
        "alpha.png": encoded(rgba, "PNG"),
        "palette.png": encoded(rgb.quantize(8), "PNG"),
        "bits.png": encoded(grey.convert("1"), "PNG"),
        "grey-alpha.png": encoded(rgba.convert("LA"), "PNG"),
        "transparent.png": encoded(rgb.quantize(8), "PNG", transparency=3),
        "grey16.png": encoded(Image.fromarray(picture(8, 8, 1).astype(np.uint16) * 257), "PNG"),
        "rgb16.png": raw_png(2, 2, 16, 2, 0, (b"\x00" + bytes(range(12))) * 2),
        "interlaced.png": raw_png(1, 1, 8, 0, 1, b"\x00\x7f"),
        "one.png": encoded(Image.new("RGB", (1, 1)), "PNG"),
        "wide.png": encoded(Image.new("L", (600, 1)), "PNG"),
        "rgb.jpg": encoded(rgb, "JPEG", quality=70),
        "grey.jpg": encoded(grey, "JPEG"),
        "progressive.jpg": encoded(rgb, "JPEG", progressive=True),
        "cmyk.jpg": encoded(rgb.convert("CMYK"), "JPEG"),
        "subsampled.jpg": encoded(rgb, "JPEG", quality=30, subsampling=2),
        "restart.jpg": encoded(rgb, "JPEG", quality=50, optimize=True),
        "bad-huge.png": raw_png(0x7FFFFFFF, 0x7FFFFFFF, 8, 2, 0, b""),
        "bad-large.png": raw_png(16384, 16384, 8, 2, 0, b"\x00" * 300),
        "bad-zero.png": raw_png(0, 5, 8, 2, 0, b""),
        "bad-depth.png": raw_png(4, 4, 3, 2, 0, b"\x00" * 52),
        "bad-short.png": raw_png(8, 8, 8, 2, 0, b"\x00" * 20),
        "bad-text.png": with_text(b"k\0\0" + zlib.compress(b"x" * 3000000, 9)),
        "bad-text-length.png": with_text(b"k\0\0", 0x7FFFFFF0),
        "empty": b"",
        "text": b"not an image",
    }
    jpg = bytearray(files["rgb.jpg"])
    at = jpg.index(b"\xff\xc0")
    jpg[at + 5 : at + 9] = b"\x40\x00\x40\x00"
    files["bad-large.jpg"] = bytes(jpg)
    strangers = "turned-6.jpg turned-6.png turned-6.webp turned-6.tif lossy.webp alpha.webp alpha.tif lzw.tif"
    strangers += " deflate.tif packbits.tif palette.tif bilevel.tif tiles.tif planes.tif big.tif with-thumbnail.tif"
    strangers += " rgb16.tif tiles16.tif planes16.tif alpha16.tif twelve.png bad-pages.tif bad-moving.webp"
    strangers += " bad-float.tif bad-tile.tif"
    for name in strangers.split():
        files[name] = (VECTORS / name).read_bytes()
    files["ycbcr.tif"] = encoded(rgb, "TIFF", compression="jpeg")
    files["bad-dicom.dcm"] = bytes(128) + b"DICM\x02\0\0\0UL\x04\0"
    for name in ("rgb.png", "rgb.jpg", "progressive.jpg", "lossy.webp", "lzw.tif", "ycbcr.tif"):
        files[f"bad-cut-{name}"] = files[name][: len(files[name]) * 2 // 3]
    return files


def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors():
    six = np.arange(6, dtype="<f4").tobytes()
    good = {"__metadata__": {"schema": "fedkt.release/1", "note": 'a "quoted" word'}, "a": entry("F32", [2, 3], 0, 24)}
    sizes = [("U8", 1), ("I32", 4), ("I64", 8), ("F16", 2), ("BF16", 2), ("F64", 8), ("BOOL", 1), ("U16", 2), ("I8", 1)]
    many, at = {}, 0
    for dtype, size in sizes:
        many[dtype.lower()] = entry(dtype, [2, 1], at, at + 2 * size)
        at += 2 * size
    nan = struct.pack("<3f", 1.0, float("nan"), float("inf"))
    return {
        "good": tensors(good, six),
        "dtypes": tensors(many, bytes(range(at))),
        "nothing": tensors({}),
        "padded": tensors(json.dumps(good).encode() + b"     ", six),
        "scalar": tensors({"s": entry("F64", [], 0, 8)}, b"\0" * 8),
        "void": tensors({"v": entry("F32", [0, 4], 0, 0)}),
        "nan": tensors({"n": entry("F32", [3], 0, 12)}, nan),
        "order": tensors({"b": entry("U8", [2], 1, 3), "a": entry("U8", [1], 0, 1)}, b"abc"),
        "unicode": tensors({"gewicht-\u00e4": entry("U8", [1], 0, 1)}, b"x"),
        "bad-overlap": tensors({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 2, 6)}, b"123456"),
        "bad-gap": tensors({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 3, 4)}, b"1234"),
        "bad-beyond": tensors({"a": entry("U8", [9], 0, 9)}, b"123"),
        "bad-rest": tensors({"a": entry("U8", [1], 0, 1)}, b"12345"),
        "bad-backwards": tensors({"a": entry("U8", [4], 4, 0)}, b"1234"),
        "bad-negative": tensors({"a": entry("U8", [-1], 0, 1)}, b"1"),
        "bad-product": tensors({"a": entry("F32", [1 << 32, 1 << 32, 1 << 32], 0, 4)}, b"1234"),
        "bad-wrap": tensors({"a": entry("F64", [1 << 61, 8], 0, 0)}),
        "bad-offsets": tensors({"a": entry("U8", [1], (1 << 63) - 1, 1 << 63)}, b"1"),
        "bad-float-offset": tensors(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0.0,1e0]}}', b"1"),
        "bad-dtype": tensors({"a": entry("F8", [1], 0, 1)}, b"1"),
        "bad-missing": tensors({"a": {"dtype": "U8"}}, b"1"),
        "bad-rank": tensors({"a": entry("U8", [1] * 40, 0, 1)}, b"1"),
        "bad-twice": tensors(
            b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
            b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"1",
        ),
        "bad-deep": tensors(b'{"a":' + b"[" * 1500 + b"]" * 1500 + b"}"),
        "bad-json": tensors(b'{"a":', b""),
        "bad-meta": tensors({"__metadata__": {"n": 1}}),
        "bad-length": tensors({}, length=(1 << 64) - 1),
        "bad-length-small": tensors({}, length=1),
        "bad-utf8": tensors(b'{"\xff\xfe":{}}'),
        "bad-nul": tensors(b'{"a\\u0000b":{}}'),
        "short": b"\x02\0\0",
        "empty": b"",
    }


def calibrations():
    unit = np.eye(2, dtype="<f4").tobytes()
    words = {"source": "s", "codec": "c", "images": "3", "log_mean": "0.5", "log_spread": "1", "radius": "2"}
    list_of_two = bytes(7) + b"\1" + bytes(7) + b"\2"

    def file(digests=list_of_two, shape=None, dtype="U8", **changes):
        head = {"__metadata__": {"format": "fedkt.calibration/2", **words, **changes}}
        head |= {"centre": entry("F32", [2], 0, 8), "map": entry("F32", [2, 2], 8, 24)}
        head["unmap"] = entry("F32", [2, 2], 24, 40)
        if digests is not None:
            head["image_digests"] = entry(dtype, shape or [len(digests) // 8, 8], 40, 40 + len(digests))
        return tensors(head, unit[:8] + unit + unit + (digests or b""))

    return {
        "good": file(),
        "one": file(list_of_two[:8]),
        "analytic": file(None, images="0"),
        "bad-before": file(None, format="fedkt.calibration/1"),
        "bad-stripped": file(None),
        "bad-none": file(b"", [0, 8]),
        "bad-many": file(list_of_two, images="1"),
        "bad-twice": file(list_of_two[:8] * 2),
        "bad-backwards": file(list_of_two[8:] + list_of_two[:8]),
        "bad-wide": file(list_of_two, [1, 16]),
        "bad-flat": file(list_of_two, [16]),
        "bad-words": file(list_of_two, [2, 1], "I64"),
        "bad-images": file(images="18446744073709551616"),
        "most-images": file(images="18446744073709551615"),
    }


def npy(array, header=None):
    if header is None:
        out = io.BytesIO()
        np.lib.format.write_array(out, array, version=(1, 0))
        return out.getvalue()
    text = header.encode().ljust(118 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + array.tobytes()


def archive(members, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compression)
    return out.getvalue()


def npz():
    grey = np.stack([picture(6, 6, 1, s) for s in range(4)])
    rgb = np.stack([picture(5, 5, 3, s) for s in range(3)])
    labels = np.array([[0], [1], [2], [1]], np.uint8)
    small = {"train_images.npy": npy(grey), "train_labels.npy": npy(labels)}
    lie = "{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }"
    zero = "{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0), }"
    return {
        "grey.npz": archive(small),
        "grey-deflated.npz": archive(small, zipfile.ZIP_DEFLATED),
        "rgb.npz": archive(
            {
                "train_images.npy": npy(rgb),
                "train_labels.npy": npy(labels[:3]),
                "test_images.npy": npy(rgb[:1]),
                "test_labels.npy": npy(labels[:1]),
            },
            zipfile.ZIP_DEFLATED,
        ),
        "wide-labels.npz": archive({"train_images.npy": npy(grey), "train_labels.npy": npy(labels.astype("<i8"))}),
        "fortran.npz": archive({"train_images.npy": npy(np.asfortranarray(grey)), "train_labels.npy": npy(labels)}),
        "bad-float.npz": archive(
            {"train_images.npy": npy(grey[:1].astype("<f8")), "train_labels.npy": npy(labels[:1])}
        ),
        "bad-count.npz": archive({"train_images.npy": npy(grey[:2]), "train_labels.npy": npy(labels)}),
        "bad-no-labels.npz": archive({"train_images.npy": npy(grey[:1])}),
        "bad-flat.npz": archive({"train_images.npy": npy(grey.reshape(-1)), "train_labels.npy": npy(labels)}),
        "bad-shape.npz": archive({"train_images.npy": npy(grey[:1], lie), "train_labels.npy": npy(labels)}),
        "bad-zero.npz": archive({"train_images.npy": npy(grey[:0], zero), "train_labels.npy": npy(labels)}),
        "bad-header.npz": archive({"train_images.npy": b"\x93NUMPY\x01\x00\xff\xff{", "train_labels.npy": npy(labels)}),
        "bad-many-labels.npz": archive(
            {"train_images.npy": npy(grey[:1]), "train_labels.npy": npy(np.array([[0xFFFFFFFF]], "<u4"))}
        ),
        "bad-cut.npz": archive(small)[:500],
        "empty-zip.npz": archive({}),
        "empty": b"",
        "text": b"PK\x03\x04",
    }


def idx(array):
    return struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def idx_pair(labels, pictures):
    return struct.pack("<H", len(labels)) + labels + pictures


def idx_files():
    pictures = np.stack([picture(7, 7, 1, s) for s in range(5)])
    labels = np.array([0, 1, 2, 1, 9], np.uint8)
    good = idx_pair(idx(labels), idx(pictures))
    huge = struct.pack(">IIII", 0x803, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    return {
        "good": good,
        "gzip": idx_pair(gzip.compress(idx(labels), mtime=0), gzip.compress(idx(pictures), mtime=0)),
        "none": idx_pair(idx(labels[:0]), idx(pictures[:0])),
        "bad-count": idx_pair(idx(labels[:3]), idx(pictures)),
        "bad-huge": idx_pair(idx(labels), huge),
        "bad-swapped": idx_pair(idx(pictures[:2]), idx(labels)),
        "bad-magic": idx_pair(b"\0\0\x0b\x01" + b"\0" * 9, idx(pictures)),
        "bad-zero-side": idx_pair(idx(labels), idx(np.zeros((5, 0, 7), np.uint8))),
        "bad-cut": good[:60],
        "empty": b"\0\0",
    }


def cifar():
    pixels = picture(32, 32).transpose(2, 0, 1).tobytes()
    return {
        "ten": b"\0" + b"\x03" + pixels,
        "hundred": b"\1" + b"\x05\x21" + pixels,
        "bad-label": b"\0" + b"\x0a" + pixels,
        "bad-fine-label": b"\1" + b"\x05\xff" + pixels,
        "bad-cut": b"\0" + b"\x03" + pixels[:-1],
        "bad-rest": b"\0" + b"\x03" + pixels + b"\x01\x02",
        "empty": b"\0",
    }


def tar(members, kind=tarfile.USTAR_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
        end = file.offset
    return out.getvalue()[:end] + b"\0" * 1024


def with_checksum(block):
    """A tar header block with the check sum made right again."""
    total = sum(block[:148]) + 8 * 32 + sum(block[156:512])
    return block[:148] + b"%06o\0 " % total + block[156:]


def tars():
    a, b = png(seed=2), png(6, 10, seed=3)
    folder = {"train/cat/0.png": a, "train/dog/0.png": b}
    plain = tar(folder)
    header = bytearray(plain[:512])
    header[124:136] = b"77777777777\0"
    huge = with_checksum(bytes(header)) + plain[512:]
    header[124:136] = b"\x80" + b"\0" * 3 + b"\xff" * 8
    binary = with_checksum(bytes(header)) + plain[512:]
    five = bytearray(tar({f"{name}/{i}.png": a for i, name in enumerate(("cat", "cat", "dog", "dog", "dog"))}))
    five[2 * 1024 + 5] ^= 0x55
    return {
        "folder.tar": plain,
        "folder.tgz": gzip.compress(plain, mtime=0),
        "unsplit.tgz": gzip.compress(tar({"cat/0.png": a, "dog/1.png": b, "dog/.hidden": b"x"}), mtime=0),
        "web.tgz": gzip.compress(tar({"s0.png": a, "s0.cls": b"1", "s1.png": b, "s1.cls": b"0"}), mtime=0),
        "pax.tgz": gzip.compress(tar({"train/" + "long" * 40 + "/0.png": a}, tarfile.PAX_FORMAT), mtime=0),
        "bad-climb.tgz": gzip.compress(tar({"../../cat/0.png": a, "/dog/0.png": b}), mtime=0),
        "bad-class.tgz": gzip.compress(
            tar({"s0.png": a, "s0.cls": b"99999999999", "s1.png": b, "s1.cls": b"-1"}), mtime=0
        ),
        "bad-no-class.tgz": gzip.compress(tar({"s0.png": a, "s1.cls": b"1"}), mtime=0),
        "bad-image.tgz": gzip.compress(tar({"cat/0.png": a[:30], "dog/0.jpg": b""}), mtime=0),
        "bad-header.tgz": gzip.compress(bytes(five), mtime=0),
        "bad-twice.tgz": gzip.compress(gzip.compress(plain, mtime=0), mtime=0),
        "bad-size.tar": huge,
        "bad-binary-size.tar": binary,
        "bad-cut.tar": plain[:700],
        "bad-cut.tgz": gzip.compress(plain, mtime=0)[:90],
        "none.tar": b"\0" * 1024,
        "empty": b"",
        "text": b"not a tar",
    }


def tasks():
    digest = "0123456789abcdef" * 4
    good = {
        "schema": "fedkt.task/1",
        "name": "seed",
        "classes": ["cat", "dog"],
        "image": {"size": 32, "filter": "bilinear"},
        "codec": {"name": "dct", "dim": 64, "identity": "dct/1 size=32 dim=64", "sha256": digest},
        "calibration": {"source": "analytic natural-image spectrum", "images": 0, "sha256": digest},
        "coordinates": {
            "kind": "gain-shape",
            "gamma": 0.35,
            "rq": 256,
            "dim": 64,
            "length": 65,
            "radius": 1.0594810050208545,
            "log_mean": 1.98,
            "log_spread": 0.94,
        },
        "privacy": {
            "epsilon": 1.0,
            "delta": 1e-5,
            "adjacency": "add-remove",
            "mechanism": "joint",
            "budget_split": [1, 24, 75],
            "unit": "record",
        },
    }
    files = {"good": good}

    def variant(name, path, value):
        task = copy.deepcopy(good)
        spot = task
        for key in path[:-1]:
            spot = spot[key]
        if value is None:
            del spot[path[-1]]
        else:
            spot[path[-1]] = value
        files[name] = task

    variant(
        "clip",
        ["coordinates"],
        {
            "kind": "clip",
            "gamma": 0.0,
            "rq": 64,
            "dim": 64,
            "length": 64,
            "radius": 7.25,
            "log_mean": 0.0,
            "log_spread": 0.0,
        },
    )
    variant("replace-any", ["privacy", "adjacency"], "replace-any")
    variant("bad-paper", ["privacy", "mechanism"], "paper")
    variant("bad-radius", ["coordinates", "radius"], 2.0)
    variant("bad-kind-type", ["coordinates", "kind"], 7)
    variant("bad-unit", ["privacy", "unit"], "person")
    variant("bad-schema", ["schema"], "fedkt.task/9")
    variant("bad-epsilon", ["privacy", "epsilon"], -1)
    variant("bad-delta", ["privacy", "delta"], 1)
    variant("bad-budget-split", ["privacy", "budget_split"], [1, 24])
    variant("bad-budget-part", ["privacy", "budget_split"], [1, "x", 75])
    variant("bad-rq", ["coordinates", "rq"], 1 << 40)
    variant("bad-dim", ["coordinates", "dim"], 4294967295)
    variant("bad-hash", ["codec", "sha256"], "xyz")
    variant("bad-classes", ["classes"], [])
    variant("bad-class-twice", ["classes"], ["cat", "cat"])
    variant("bad-class-type", ["classes"], ["cat", 7])
    variant("bad-missing", ["calibration"], None)
    good = copy.deepcopy(good)
    good["guide"] = {
        **good["codec"],
        "name": "fedkt-guide",
        "identity": "resnet/1 size=32",
        "calibration": dict(good["calibration"]),
        "coordinates": dict(good["coordinates"]),
    }
    good["privacy"]["budget_split"] = [1, 8, 25, 16, 50]
    files["guide"] = copy.deepcopy(good)
    variant("guide-pooled", ["moments"], {"joined": False, "pooled": True})
    variant("bad-guide-type", ["guide"], [])
    variant("bad-guide-calibration", ["guide", "calibration"], None)
    variant("bad-guide-coordinates", ["guide", "coordinates", "length"], 64)
    variant("bad-guide-dim", ["guide", "dim"], 1 << 40)
    variant("bad-guide-split", ["privacy", "budget_split"], [1, 24, 75])
    variant("bad-guide-negative", ["privacy", "budget_split"], [1, 8, 25, -16, 50])
    variant("bad-guide-paper", ["privacy"], {**good["privacy"], "adjacency": "replace", "mechanism": "paper"})
    variant("bad-moments", ["moments"], {"joined": False, "pooled": False})
    variant("bad-part", ["listener"], good["guide"])
    good["privacy"]["budget_split"] = [1, 24, 75]
    variant("guide-joined", ["moments"], {"joined": True, "pooled": False})
    variant("guide-joined-pooled", ["moments"], {"joined": True, "pooled": True})
    good["moments"] = {"joined": True, "pooled": False}
    variant("bad-joined-rq", ["guide", "coordinates", "rq"], 64)
    good.pop("moments")
    for key in ("codec", "calibration", "coordinates"):
        good.pop(key)
    files["guide-alone"] = copy.deepcopy(good)
    variant("bad-joined-alone", ["moments"], {"joined": True, "pooled": False})
    variant("bad-no-part", ["guide"], None)
    good = json.loads((EXAMPLES / "task.federation.json").read_text())
    files["federation"] = good
    variant("bad-federation-sites", ["federation", "sites"], 4)
    variant("bad-federation-degree", ["federation", "degree"], 2)
    variant("bad-federation-corrupt", ["federation", "corrupt"], 4294967295)
    variant("bad-federation-records", ["federation", "records"], 1 << 40)
    variant("bad-federation-roster", ["federation", "roster"], ["00" * 32] * 5)
    variant("bad-federation-noise", ["federation", "noise"], None)
    good = json.loads((EXAMPLES / "task.service.json").read_text())
    files["service"] = good
    variant("service-unsigned", ["signature"], None)
    variant("service-no-pin", ["service", "pin"], None)
    variant("service-no-names", ["service", "names"], None)
    variant("service-seed", ["service", "insecure_seed"], 7)
    variant("service-ip6", ["service", "address"], "https://[2001:db8::7]:8443")
    variant("bad-service-alone", ["federation"], None)
    variant("bad-service-address", ["service", "address"], "https://me@host:8443/path")
    variant("bad-service-host", ["service", "address"], "https://" + "a." * 123)
    variant("bad-service-ip6", ["service", "address"], "https://[::1%eth0]")
    variant("bad-service-pin", ["service", "pin"], good["service"]["pin"][:-2] + "9=")
    variant("bad-service-seconds", ["service", "phase_seconds"], 604801)
    variant("bad-service-rounds", ["service", "rounds"], 1 << 40)
    variant("bad-service-expires", ["service", "expires"], 1 << 62)
    variant("bad-service-names", ["service", "names"], ["a"] * 5)
    variant("bad-service-few-names", ["service", "names"], ["a"])
    variant("bad-service-name", ["service", "names"], ["a", "b", "c", "d", "e\u0085"])
    variant("bad-service-seed", ["service", "insecure_seed"], 1 << 53)
    variant("bad-signature", ["signature", "bytes"], "00")
    variant("bad-signature-key", ["signature", "key"], 7)
    texts = {name: json.dumps(task, indent=1).encode() for name, task in files.items()}
    texts["bad-deep"] = b"[" * 1900 + b"]" * 1900
    texts["bad-twice"] = b'{"schema":"fedkt.task/1","schema":"fedkt.task/1"}'
    texts["bad-number"] = texts["good"].replace(b"1e-05", b"1e-999999999")
    texts["bad-utf8"] = texts["good"].replace(b"cat", b"c\xfft")
    texts["bad-nul"] = texts["good"].replace(b"cat", b"c\\u0000t")
    texts["bad-cut"] = texts["good"][:200]
    texts["empty"] = b""
    return texts


def logs():
    """False versions of the log `corpus/transparency/honest`: from log_folder (tests/oracle), without its chain."""
    honest = (pathlib.Path(__file__).resolve().parent / "corpus" / "transparency" / "honest").read_bytes()
    lines = honest[1:].splitlines()
    at = {json.loads(line)["event"]: i for i, line in reversed(list(enumerate(lines)))}

    def joined(changed, how=b"m"):
        return how + b"".join(line + b"\n" for line in changed)

    def put(event, **values):
        changed = list(lines)
        changed[at[event]] = json.dumps(json.loads(lines[at[event]]) | values).encode()
        return joined(changed)

    def without(event):
        return joined(lines[: at[event]] + lines[at[event] + 1 :])

    task = json.loads(lines[0])["task"]
    task.pop("signature")
    heads, sent, name = ["0" * 64], [], ""
    for n, line in enumerate(map(json.loads, lines), 1):
        heads.append(transparency.sha256(transparency.dump(line | {"at": 0, "entry": n, "prev": heads[-1]}).encode()))
        name = line["name"] if line["event"] == "begin" else name
        if line["event"] == "message" and line["site"] == 1:
            kept = {key: line[key] for key in ("kind", "sha256", "bytes")}
            sent.append({"round": name, **kept, "taken": True})
    receipt = {
        "schema": "fedkt.receipt/1",
        "task_sha256": transparency.sha256(transparency.dump(task).encode()),
        "site": 1,
        "heads": [{"entry": n, "sha256": heads[n]} for n in (3, len(lines))],
        "messages": sent,
    }
    return {
        "empty": b"",
        "raw": joined(lines[1:], b"r"),
        "bad-open-twice": joined([lines[0], *lines]),
        "bad-no-end": joined(lines[:-1]),
        "bad-no-survivors": without("survivors"),
        "bad-no-signature": without("confirmed"),
        "bad-survivors": put("survivors", survivors="06", count=2),
        "bad-seed": put("survivors", seed="00" * 32),
        "bad-signature": put("confirmed", signature="00" * 64),
        "bad-round": put("begin", round=2),
        "bad-site": put("message", site=65536),
        "bad-number": put("phase", heard=1e300),
        "bad-text": put("failed", reason="\u0000"),
        "bad-second-release": joined([*lines[:-1], lines[at["release"]], lines[-1]]),
        "given-up": joined([lines[0], b'{"event":"given-up","reason":"nobody came"}', b'{"event":"end"}']),
        "receipt": joined([json.dumps(receipt).encode(), *lines], b"k"),
        "bad-receipt": joined([json.dumps(receipt | {"heads": [{}]}).encode()], b"k"),
    }


def main():
    here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "corpus")
    total = 0
    targets = {
        "safetensors": safetensors,
        "calibration": calibrations,
        "image": images,
        "npz": npz,
        "idx": idx_files,
        "cifar": cifar,
        "tar": tars,
        "task": tasks,
        "transparency": logs,
        "family": corpus_family.files,
        "http": corpus_http.files,
        "model": corpus_model.files,
        "whole": corpus_whole.files,
        "onnx": corpus_onnx.files,
        "http_client": corpus_http_client.files,
        "sa_to_server": corpus_sa.to_server,
        "sa_to_site": corpus_sa.to_site,
        "sa_talk": corpus_sa.talk,
    }
    for target, make in targets.items():
        (here / target).mkdir(parents=True, exist_ok=True)
        for name, data in make().items():
            limit = LIMITS.get(target, LIMIT)
            if len(data) > limit:
                sys.exit(f"make_corpus.py: {target}/{name} has {len(data)} bytes, at most {limit}")
            (here / target / name).write_bytes(data)
            total += len(data)
    print(f"{total} bytes")


if __name__ == "__main__":
    main()

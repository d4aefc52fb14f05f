# SPDX-License-Identifier: Apache-2.0
"""fixtures.py - good and bad files for the cases, made again for every run: nothing binary is kept in the repository.

`make(folder, fedkt)` fills `folder`. Images come from a fixed formula, files of fedkt's own formats from the binary
itself, and the damaged ones from those by changing what the case is about and nothing else.
"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import zipfile

import numpy
from PIL import Image

import tensors

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "oracle"))
import transparency  # noqa: E402

NAN = struct.pack("<f", float("nan"))
EXAMPLES = ROOT / "docs" / "schema" / "examples"
CORPUS = ROOT / "fuzz" / "corpus" / "transparency"


def image(seed, size=40):
    """Smooth waves whose direction, pitch and hue depend on the seed."""
    y, x = numpy.mgrid[0:size, 0:size] / size
    pitch = 3 * (seed % 7 + 1)
    waves = [numpy.sin(pitch * (x * numpy.cos(seed + c) + y * numpy.sin(seed + c)) + seed) for c in range(3)]
    return (numpy.stack(waves, axis=2) * 90 + 128).astype(numpy.uint8)


def image_folder(root, classes, per_class, first_seed=0):
    for k, name in enumerate(classes):
        folder = root / name
        folder.mkdir(parents=True)
        for i in range(per_class):
            Image.fromarray(image(first_seed + 100 * k + i)).save(folder / f"{i:02}.png")


def packed(format_name, seed=1):
    buffer = io.BytesIO()
    Image.fromarray(image(seed)).save(buffer, format_name)
    return buffer.getvalue()


def bad_images(root):
    for name, data in {
        "cut-jpeg": ("cut.jpg", packed("JPEG")[:300]),
        "cut-png": ("cut.png", packed("PNG")[:-60]),
        "text-png": ("note.png", b"this is not an image\n"),
        "empty-file": ("nothing.jpg", b""),
        "gif": ("old.gif", packed("GIF")),
    }.items():
        folder = root / name
        image_folder(folder, ["a", "b"], 3)
        (folder / "a" / data[0]).write_bytes(data[1])
    image_folder(root / "twelve", ["a", "b"], 3)
    for path in (root / "twelve").glob("*/*.png"):
        wide = numpy.asarray(Image.open(path).convert("L")).astype(numpy.uint16) << 4
        Image.fromarray(wide).save(path)
    image_folder(root / "others", ["a", "b"], 3)
    for name in ("a/one.txt", "a/scan", "a/two.txt", "b/three.csv", "notes.md"):
        (root / "others" / name).write_bytes(b"not an image")
    with tarfile.open(root / "others.tar", "w") as tar:
        tar.add(root / "others", "others")
    image_folder(root / "too-high", ["a/cells", "b/cells", "b/rest"], 2)
    image_folder(root / "many", [f"class {k:02}" for k in range(14)], 1)
    image_folder(root / "dicom", ["a", "b"], 3)
    (root / "dicom" / "a" / "scan.dcm").write_bytes(bytes(128) + b"DICM" + bytes(40))
    image_folder(root / "dicom-bare", ["a", "b"], 3)
    (root / "dicom-bare" / "a" / "IM000001").write_bytes(bytes(128) + b"DICM" + bytes(40))
    both = root / "two-bad"
    image_folder(both, ["a", "b"], 3)
    (both / "a" / "cut.jpg").write_bytes(packed("JPEG")[:300])
    (both / "b" / "note.png").write_bytes(b"this is not an image\n")
    image_folder(root / "empty-class", ["a", "b"], 3)
    (root / "empty-class" / "c").mkdir()
    image_folder(root / "third-class", ["a", "b", "c"], 3)
    image_folder(root / "flat", ["."], 2)
    (root / "nothing").mkdir()
    image_folder(root / "loop", ["a", "b"], 3)
    os.symlink("..", root / "loop" / "a" / "again")
    os.symlink("itself", root / "itself")


def labelled_sets(root):
    pixels = numpy.stack([image(i, 32) for i in range(4)])
    records = b"".join(bytes([label]) + pixels[i].transpose(2, 0, 1).tobytes() for i, label in enumerate([0, 1, 12, 2]))
    (root / "cifar").mkdir()
    (root / "cifar" / "data_batch_1.bin").write_bytes(records)
    (root / "cifar-cut").mkdir()
    (root / "cifar-cut" / "data_batch_1.bin").write_bytes(records[:-7])
    for name, labels in {"idx": [0, 1, 2, 200], "idx-few": [0, 1]}.items():
        (root / name).mkdir()
        (root / name / "train-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, 4, 32, 32) + pixels[:, :, :, 0].tobytes()
        )
        (root / name / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, len(labels)) + bytes(labels))
    numpy.savez(root / "minus.npz", train_images=pixels, train_labels=numpy.array([[0], [1], [-1], [2]]))
    numpy.savez(root / "large.npz", train_images=pixels, train_labels=numpy.array([[0], [1], [70000], [2]]))
    (root / "cut.npz").write_bytes((root / "large.npz").read_bytes()[:2000])
    for name, labels in {"shard": [b"0", b"1", b"99999999", b"1"], "words": [b"0", b"1", b"cat", b"1"]}.items():
        with tarfile.open(root / f"{name}.tar", "w") as tar:
            for i, label in enumerate(labels):
                for ending, data in (("png", packed("PNG", i)), ("cls", label)):
                    info = tarfile.TarInfo(f"{i:04}.{ending}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


def own_files(root, fedkt):
    """Tasks, latents, moments, releases, calibrations: the good ones."""

    def run(*words):
        subprocess.run([fedkt, *map(str, words)], cwd=root, check=True, stdout=subprocess.DEVNULL)

    task = ["task", "new", "--classes", "a,b", "--delta", "1e-5", "--codec", "dct", "--guide", "none", "--dim", "16"]
    run(*task, "--epsilon", "1", "--out", "task.json")
    run(*task, "--epsilon", "2", "--out", "task-eps2.json")
    run(*task, "--epsilon", "25", "--accept-weak-promise", "--out", "task-eps25.json")
    run(*task[:-1], "24", "--epsilon", "1", "--out", "task-dim24.json")
    run("encode", "--task", "task.json", "--data", "good", "--out", "latents.safetensors")
    run("encode", "--task", "task.json", "--data", "mixed", "--out", "latents-mixed.safetensors")
    run("encode", "--task", "task-dim24.json", "--data", "good", "--out", "latents-dim24.safetensors")
    run("moments", "--task", "task.json", "--data", "good", "--out", "moments.safetensors")
    run("moments", "--task", "task.json", "--data", "more", "--out", "moments-more.safetensors")
    run("moments", "--task", "task-eps2.json", "--data", "good", "--out", "moments-eps2.safetensors")
    run("moments", "--task", "task-eps2.json", "--data", "more", "--out", "moments-more-eps2.safetensors")
    run("codec", "calibrate", "--public", "public", "--dim", "16", "--out", "cal.safetensors")
    run("codec", "calibrate", "--public", "public", "--dim", "8", "--out", "cal-dim8.safetensors")
    run(*task, "--epsilon", "1", "--calibration", "cal.safetensors", "--out", "task-cal.json")
    run(
        "release",
        "--task",
        "task.json",
        "--moments",
        "moments.safetensors",
        "--ledger",
        "ledger.db",
        "--insecure-seed",
        "1",
        "--out",
        "release.safetensors",
    )
    shutil.copy(root / "ledger.db", root / "ledger-two.db")
    words = "release --task task.json --moments moments-more.safetensors --ledger ledger-two.db --dataset second"
    run(*words.split(), "--out", "release-more.safetensors")
    run("heads", "--release", "release.safetensors", "--out", "heads", "--export", "whole.safetensors")
    run(*task[:-1], "100", "--epsilon", "1", "--out", "task-wide.json")  # its release is longer than a ledger
    run("moments", "--task", "task-wide.json", "--data", "good", "--out", "moments-wide.safetensors")


def models(root, fedkt):
    """A small classifier of the classes a and b, its checkpoint, and one that nobody told the names of its classes."""
    words = (
        "train --data good --network resnet8 --size 8 --epochs 1 --batch 4 --threads 1 --quiet --checkpoint checkpoint"
    )
    words += " --out model.safetensors --onnx model.onnx"
    subprocess.run([fedkt, *words.split()], cwd=root, check=True, stdout=subprocess.DEVNULL)
    file = tensors.load(root / "model.safetensors")
    tensors.save(root / "model-bare.safetensors", {**file, "meta": {}})
    image_folder(root / "swapped", ["b", "a"], 6)
    image_folder(root / "alone", ["a"], 6)


def federations(root, fedkt):
    """Rosters and a task that names one; the damaged ones differ in one line or number."""
    keys = json.loads((EXAMPLES / "task.federation.json").read_text())["federation"]["roster"]
    for name, lines in {
        "roster": ["# the sites", *keys, ""],
        "roster-short": keys[:2],
        "roster-junk": [*keys[:2], "not a key", *keys[2:]],
        "roster-twice": [*keys, keys[1]],
        "roster-zero": [*keys, "0" * 64],
        "roster-nul": [*keys[:2], keys[2] + "\0", *keys[3:]],
        "roster-return": [*keys[:2], keys[2] + "\r" + keys[3], keys[4]],
        "roster-long": [*keys[:3], keys[3] + "00"],
        "roster-few-digits": ["", keys[0], keys[1][:62]],
        "roster-none": ["# nobody yet", ""],
        "roster-windows": ["\ufeff# the sites\r", *(key + " \t\r" for key in keys)],
        "roster-crowd": [keys[0]] * 65537,
    }.items():
        (root / f"{name}.txt").write_text("\n".join(lines) + "\n", newline="")
    words = "task new --codec dct --guide none --classes a,b --delta 1e-5 --dim 16 --epsilon 1"
    words += " --roster roster.txt --records 100"
    words += " --out task-fed.json"
    subprocess.run([fedkt, *words.split()], cwd=root, check=True, stdout=subprocess.DEVNULL)
    text = (root / "task-fed.json").read_text()
    (root / "task-fed-threshold.json").write_text(text.replace('"threshold": 3', '"threshold": 2'))
    (root / "task-fed-key.json").write_text(text.replace(keys[2], "01" + "00" * 31))
    words = "moments --task task-fed.json --data good --out moments-fed.safetensors"
    subprocess.run([fedkt, *words.split()], cwd=root, check=True, stdout=subprocess.DEVNULL)


def identities(root, fedkt):
    """Keys, a roster with names, and a signed task with a server; the damaged ones differ in what the case is about."""

    def run(*words):
        subprocess.run([fedkt, *words], cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    for name in ("operator", "north", "south", "east", "nameless"):
        run("keygen", "--out", f"{name}.key", *(["--name", name] if name != "nameless" else []))
    run("keygen", "--out", "north-again.key", "--name", "north")
    run("enroll", "--roster", "named.txt", *(f"{name}.key.pub" for name in ("north", "south", "east")))
    run("enroll", "--roster", "half-named.txt", *(f"{name}.key.pub" for name in ("north", "south", "nameless")))
    named = (root / "named.txt").read_text()
    (root / "twice-named.txt").write_text(named.replace("east", "north"))
    (root / "tab-named.txt").write_text(named.replace("east", "ea\tst"))
    (root / "long-named.txt").write_text(named.replace("east", "e" * 128))
    key = json.loads((root / "north.key").read_text())
    public = json.loads((root / "north.key.pub").read_text())
    for name, document in {
        "key-halves.key": {**key, "public": public["key"][:-2] + "00"},
        "key-schema.key": {**key, "schema": "fedkt.key/2"},
        "renamed.pub": {**public, "name": "south"},
        "stolen.pub": {**public, "key": json.loads((root / "south.key.pub").read_text())["key"]},
    }.items():
        (root / name).write_text(json.dumps(document))
        (root / name).chmod(0o600)
    (root / "open.key").write_text(json.dumps(key))
    (root / "open.key").chmod(0o640)
    (root / "cut.key").write_text(json.dumps(key)[:100])
    (root / "cut.key").chmod(0o600)
    words = "task new --codec dct --guide none --classes a,b --delta 1e-5 --dim 16 --epsilon 1"
    words = f"{words} --roster named.txt --records 100 --server".split()
    run(*words, "https://fedkt.example.org:8443", "--out", "task-unsigned.json")
    run(*words, "https://fedkt.example.org:8443", "--key", "operator.key", "--out", "task-signed.json")
    text = (root / "task-signed.json").read_text()
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=fedkt"
    for name in ("tls", "other-tls"):
        pair = ["-keyout", root / f"{name}.key", "-out", root / f"{name}.pem"]
        subprocess.run([*make.split(), *pair], check=True, capture_output=True, timeout=60)
    pinned = ["https://fedkt.example.org:8443", "--certificate", "tls.pem"]
    run(*words, *pinned, "--key", "operator.key", "--out", "task-pinned.json")
    run(*words, *pinned, "--out", "task-pinned-unsigned.json")
    weak = [*words[:-1], "--epsilon", "30", "--accept-weak-promise", "--server"]
    weak.remove("--epsilon")
    weak.remove("1")
    run(*weak, *pinned, "--key", "operator.key", "--out", "task-weak.json")
    marked = (root / "task-weak.json").read_text()
    (root / "task-weak-unmarked.json").write_text(marked.replace('"promise": "weak",', ""))
    run(*words, *pinned, "--key", "operator.key", "--calibration", "cal.safetensors", "--out", "task-cal-pinned.json")
    (root / "task-forged.json").write_text(text.replace("fedkt.example.org", "fedkt.example.net"))
    (root / "task-address.json").write_text(text.replace("https://", "http://"))
    (root / "task-signature.json").write_text(text.replace('"bytes": "', '"bytes": "00'))


def small_network(folder, stem, seed, latent=4, width=8):
    """A pair in TAESD's own layout, narrow and untaught."""
    folder.mkdir(exist_ok=True)
    numbers = numpy.random.default_rng(seed)
    blocks = {"encoder": (1, 3, 4, 5, 7, 8, 9, 11, 12, 13), "decoder": (3, 4, 5, 8, 9, 10, 13, 14, 15, 18)}
    bare = {
        "encoder": [(0, 3, width, 1), (2, width, width, 0), (6, width, width, 0), (10, width, width, 0)]
        + [(14, width, latent, 1)],
        "decoder": [(1, latent, width, 1), (7, width, width, 0), (12, width, width, 0), (17, width, width, 0)]
        + [(19, width, 3, 1)],
    }
    for side in ("encoder", "decoder"):
        convolutions = [(f"{i}.", *rest) for i, *rest in bare[side]]
        convolutions += [(f"{i}.conv.{k}.", width, width, 1) for i in blocks[side] for k in (0, 2, 4)]
        found = {}
        for name, inside, out, bias in convolutions:
            weight = numbers.standard_normal((out, inside, 3, 3)) / (3 * inside**0.5)
            found[name + "weight"] = ("F32", [out, inside, 3, 3], weight.astype("<f4").tobytes())
            if bias:
                found[name + "bias"] = ("F32", [out], numpy.zeros(out, "<f4").tobytes())
        tensors.save(folder / f"{stem}_{side}.safetensors", {"meta": {}, "tensors": found})


def small_guide(folder, seed, widths=(4, 6, 8, 10)):
    """A residual network of four basic blocks and a 3x3 stem under torchvision's names, narrow and untaught."""
    folder.mkdir(exist_ok=True)
    numbers = numpy.random.default_rng(seed)
    found = {}

    def conv(name, out, inside, side=3):
        weight = numbers.standard_normal((out, inside, side, side)) * (2 / (inside * side * side)) ** 0.5
        found[name + ".weight"] = ("F32", [out, inside, side, side], weight.astype("<f4").tobytes())

    def norm(name, width):
        for last, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            found[f"{name}.{last}"] = ("F32", [width], numpy.full(width, value, "<f4").tobytes())

    conv("conv1", widths[0], 3)
    norm("bn1", widths[0])
    inside = widths[0]
    for stage, width in enumerate(widths):
        block = f"layer{stage + 1}.0"
        for number, into in ((1, inside), (2, width)):
            conv(f"{block}.conv{number}", width, into)
            norm(f"{block}.bn{number}", width)
        if stage:
            conv(f"{block}.downsample.0", width, inside, 1)
            norm(f"{block}.downsample.1", width)
        inside = width
    found["fc.weight"] = ("F32", [2, inside], numpy.zeros((2, inside), "<f4").tobytes())
    tensors.save(folder / "model.safetensors", {"meta": {}, "tensors": found})


def guides(root, fedkt):
    """A guide, another in its place, damaged ones, and calibrations."""
    small_guide(root / "guide", 1)
    small_guide(root / "guide-other", 2)
    good = (root / "guide" / "model.safetensors").read_bytes()
    for name, text in (("guide-short", good[:-100]), ("guide-nan", good[:-200] + b"\xff" * 4 + good[-196:])):
        (root / name).mkdir()
        (root / name / "model.safetensors").write_bytes(text)
    for size in (16, 32):
        words = ["codec", "calibrate", "resnet", "--weights", "guide", "--size", str(size), "--top", "6"]
        words += ["--public", "public", "--out", f"cal-guide{size}.safetensors"]
        subprocess.run([fedkt, *words], cwd=root, check=True, stdout=subprocess.DEVNULL)
    task = "task new --classes a,b --epsilon 1 --delta 1e-5 --size 16 --guide resnet --guide-weights guide"
    task += " --guide-calibration cal-guide16.safetensors"
    for name, more in (("task-guide", "--codec dct --dim 16"), ("task-guide-alone", "--codec none")):
        words = f"{task} {more} --out {name}.json".split()
        subprocess.run([fedkt, *words], cwd=root, check=True, stdout=subprocess.DEVNULL)
    text = (root / "task-guide.json").read_text().replace('"guide": {', '"whole": {', 1)
    (root / "task-other-part.json").write_text(text)


def pytorch_files(root):
    """What torch.save writes: a zip whose first member is NAME/data.pkl; before 1.6 a pickle with its magic number."""
    legacy = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03." + bytes(40)
    for folder in ("net-pth", "net-bin"):
        (root / folder).mkdir()
    for name in ("weights.pth", "net-pth/small_encoder.pth", "net-pth/small_decoder.pth", "two words.pt"):
        with zipfile.ZipFile(root / name, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("weights/data.pkl", b"\x80\x02}q\x00.")
            archive.writestr("weights/version", b"3\n")
    (root / "legacy.ckpt").write_bytes(legacy)
    (root / "net-bin" / "diffusion_pytorch_model.bin").write_bytes(legacy)
    with zipfile.ZipFile(root / "other.zip", "w") as archive:
        archive.writestr("readme.txt", b"no weights")


def networks(root, fedkt):
    """Weights of a codec that has no calibration of its own, others in their place, and what a task makes of them."""

    def run(*words):
        subprocess.run([fedkt, *map(str, words)], cwd=root, check=True, stdout=subprocess.DEVNULL)

    small_network(root / "net", "small", 1)
    small_network(root / "net-other", "small", 2)
    small_network(root / "net-half", "small", 1)
    (root / "net-half" / "small_decoder.safetensors").unlink()
    small_network(root / "net-taesd", "taesd", 1)
    for stem in ("first", "second"):
        small_network(root / "net-pairs", stem, 1)
    for name in ("net-half", "net-taesd"):
        (root / f"cache-{name}" / "codecs").mkdir(parents=True)
        os.symlink(f"../../{name}", root / f"cache-{name}" / "codecs" / "taesdxl")
    (root / "cache-text" / "codecs" / "taesd").mkdir(parents=True)
    (root / "cache-text" / "codecs" / "taesd" / "model.safetensors").write_bytes(b"this is not a tensor file at all\n")
    tiny = ["tiny", "--weights", "net", "--size"]
    for size in (16, 32):
        out = f"cal-net{size}.safetensors"
        run("codec", "calibrate", *tiny, size, "--top", "8", "--public", "public", "--out", out)
    task = ["task", "new", "--classes", "a,b", "--delta", "1e-5", "--epsilon", "1", "--codec", *tiny, "16"]
    run(*task, "--calibration", "cal-net16.safetensors", "--out", "task-net.json")


def calibrations(root, good):
    """Calibrations that say nothing, or nonsense, about the images they were made of."""
    dtype, shape, digests = good["tensors"]["image_digests"]
    without = {name: tensor for name, tensor in good["tensors"].items() if name != "image_digests"}

    def write(name, change, meta):
        kept = {**without, **({"image_digests": change} if change else {})}
        tensors.save(root / f"cal-{name}.safetensors", {"meta": {**good["meta"], **meta}, "tensors": kept})

    write("before", None, {"format": "fedkt.calibration/1"})
    write("stripped", None, {})
    write("analytic", None, {"images": "0"})
    write("backwards", (dtype, shape, digests[8:16] + digests[:8] + digests[16:]), {})
    write("twice", (dtype, shape, digests[:8] + digests[:8] + digests[16:]), {})
    write("images", (dtype, shape, digests[:-8] + b"\xff" * 8), {})
    write("many", (dtype, [shape[0] + 1, 8], digests + b"\xff" * 8), {})
    write("none", (dtype, [0, 8], b""), {})
    write("wide", (dtype, [shape[0] // 2, 16], digests), {})
    write("words", ("I64", [shape[0], 1], digests), {})


def bent_tensors(root):
    latents = tensors.load(root / "latents.safetensors")
    tensors.save(root / "latents-nan.safetensors", tensors.with_bytes(latents, "latents", 4 * (16 * 3 + 5), NAN))
    tensors.save(root / "latents-label.safetensors", tensors.with_bytes(latents, "labels", 8, struct.pack("<q", 7)))
    calibration = tensors.load(root / "cal.safetensors")
    tensors.save(root / "cal-nan.safetensors", tensors.with_bytes(calibration, "map", 40, NAN))
    calibrations(root, calibration)

    def bend(name, offsets):
        def change(head):
            head[name]["data_offsets"] = offsets(*head[name]["data_offsets"])

        return change

    tensors.save(root / "overlap.safetensors", latents, bend("labels", lambda begin, end: [begin - 8, end - 8]))
    tensors.save(root / "beyond.safetensors", latents, bend("labels", lambda begin, end: [begin + 2**40, end + 2**40]))
    tensors.save(root / "overflow.safetensors", latents, bend("labels", lambda begin, end: [begin, 2**64 - 1]))
    top = 2**63 - 1
    tensors.save(root / "top.safetensors", latents, bend("labels", lambda begin, end: [top - (end - begin), top]))
    tensors.save(root / "backwards.safetensors", latents, bend("labels", lambda begin, end: [end, begin]))
    whole = (root / "latents.safetensors").read_bytes()
    (root / "cut.safetensors").write_bytes(whole[:-100])
    (root / "cut-head.safetensors").write_bytes(whole[:100])
    (root / "longer.safetensors").write_bytes(whole + b"12345678")
    (root / "short.safetensors").write_bytes(b"abc")
    (root / "not.safetensors").write_bytes(b"this is not a tensor file at all\n")


def tampered(root):
    release = tensors.load(root / "release.safetensors")

    def certificate(key, value):
        return tensors.with_meta(release, "certificate", lambda document: document.update({key: value}))

    bad = {
        "moment": tensors.with_bytes(release, "moments", 80, struct.pack("<q", 12345)),
        "epsilon": certificate("epsilon", 0.1),
        "private": certificate("private", True),
        "survivors": certificate("survivors", 5),
        "calibration": tensors.with_bytes(release, "map", 40, struct.pack("<f", 0.5)),
        "task": tensors.with_meta(release, "task", lambda document: document["privacy"].update({"epsilon": 0.5})),
        "task-nan": tensors.with_meta(release, "task", lambda document: document["privacy"].update({"epsilon": -1.0})),
        "key": tensors.with_meta(release, "task", lambda document: document.update({"extra": 1})),
        "huge": tensors.with_bytes(release, "moments", 80, struct.pack("<q", 2**63 - 1)),
    }
    for name, file in bad.items():
        tensors.save(root / f"release-{name}.safetensors", file)
    moments = tensors.load(root / "moments.safetensors")
    tensors.save(root / "moments-bent.safetensors", tensors.with_bytes(moments, "moments", 0, struct.pack("<q", -3)))
    old = {**moments["meta"], "format": "fedkt.moments/1"}
    tensors.save(root / "moments-old.safetensors", {**moments, "meta": old})
    tensors.save(root / "moments-unsorted.safetensors", tensors.with_bytes(moments, "records", 0, b"\xff" * 16))
    few = {name: value for name, value in moments["tensors"].items() if name != "records"}
    tensors.save(root / "moments-no-records.safetensors", {**moments, "tensors": few})
    text = (root / "task.json").read_text()
    (root / "task-cut.json").write_text(text[: len(text) // 2])
    (root / "task-key.json").write_text(text.replace('"name"', '"nom"'))
    (root / "task-gamma.json").write_text(text.replace('"gamma": 0.3', '"gamma": 0.4'))
    ledgers(root)


def ledgers(root):
    """Damaged ones, and those of another version."""
    (root / "ledger-cut.db").write_bytes((root / "ledger.db").read_bytes()[:9000])
    (root / "ledger-empty.db").write_bytes(b"")
    (root / "ledger-none.db").write_text("{}\n")
    for name, change in {
        "minus": "UPDATE entries SET mu2 = -mu2",
        "state": "UPDATE entries SET state = 'lost'",
        "orphan": "UPDATE entries SET account = 7",
        "trigger": "CREATE TRIGGER forget AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
        "later": "PRAGMA user_version = 9",
        "older": "PRAGMA user_version = 4",
        "other": "PRAGMA application_id = 9",
    }.items():
        shutil.copy(root / "ledger.db", root / f"ledger-{name}.db")
        with contextlib.closing(sqlite3.connect(root / f"ledger-{name}.db", isolation_level=None)) as bent:
            bent.execute("PRAGMA ignore_check_constraints = ON")
            bent.execute(change)


def folders(root, fedkt):
    subprocess.run(
        [fedkt, "generate", "--release", "release.safetensors", "--per-class", "1", "--out", "made"],
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (root / "foreign").mkdir()
    (root / "foreign" / "thesis.txt").write_text("do not delete\n")


def write_log(folder, lines):
    """Lines of fuzz/corpus/transparency, whose chain was taken out, as a log."""
    folder.mkdir()
    prev, text = "0" * 64, ""
    for number, line in enumerate(lines, 1):
        line = transparency.dump(json.loads(line) | {"at": 1700000000000, "entry": number, "prev": prev})
        prev, text = transparency.sha256(line.encode()), text + line + "\n"
    (folder / "transparency.jsonl").write_text(text)
    return text


def logs(root):
    given_up = (CORPUS / "given-up").read_text()[1:].splitlines()
    honest = (CORPUS / "honest").read_text()[1:].splitlines()
    write_log(root / "log-given-up", given_up)
    write_log(root / "log-no-release", honest)
    write_log(root / "log-unsigned", [line for line in honest if '"confirmed"' not in line])
    text = write_log(root / "log-cut", honest[:-1])
    write_log(root / "log-changed", honest)
    (root / "log-changed" / "transparency.jsonl").write_text(text.replace("too few sites", "too few sitez"))
    (root / "receipt-other.json").write_text(
        json.dumps({"schema": "fedkt.receipt/1", "task_sha256": "0" * 64, "site": 1, "heads": [], "messages": []})
    )


def make(root, fedkt):
    root = pathlib.Path(root)
    root.mkdir()
    image_folder(root / "good", ["a", "b"], 6)
    image_folder(root / "more", ["a", "b"], 4, first_seed=50)
    image_folder(root / "public", ["a", "b"], 40, first_seed=20)
    shutil.copytree(root / "good", root / "mixed")  # two images of the public set under other names, packed otherwise
    Image.open(root / "public" / "a" / "07.png").save(root / "mixed" / "a" / "zz.png", compress_level=0)
    Image.open(root / "public" / "b" / "31.png").save(root / "mixed" / "b" / "00.png", compress_level=1)
    bad_images(root)
    labelled_sets(root)
    pytorch_files(root)
    own_files(root, str(fedkt))
    models(root, str(fedkt))
    federations(root, str(fedkt))
    identities(root, str(fedkt))
    networks(root, str(fedkt))
    guides(root, str(fedkt))
    bent_tensors(root)
    tampered(root)
    folders(root, str(fedkt))
    logs(root)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_images.py - what an image file means does not depend on the camera that wrote it: orientation, depth, format
and shape, seen in the latents that the binary makes of pairs of sets which must mean the same.

Usage: test_images.py FEDKT [test...]
"""

import hashlib
import struct

import binary

import numpy
from PIL import Image

import tensors  # from tests/cli, which binary.py puts on the path

ORIENTATION = 0x0112
TURNS = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270"}
TURNS.update({7: "TRANSVERSE", 8: "ROTATE_90"})


def drawn(seed, width, height):
    chance = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [chance.uniform(0.02, 0.3) * x + chance.uniform(0.02, 0.3) * y + chance.uniform(0, 6) for _ in range(3)]
    return numpy.clip(128 + 120 * numpy.sin(numpy.stack(waves, -1)), 0, 255).astype(numpy.uint8)


class Images(binary.Case):
    def put(self, name, image, **options):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, **options)

    def latents(self, data, task="task.json", more=""):
        self.fedkt(f"encode --task {task} --data {data} --out {data}.latents --quiet --force {more}")
        return tensors.load(self.folder / f"{data}.latents")["tensors"]

    def task(self, name="task.json", more=""):
        self.fedkt(
            "task new --codec dct --classes a,b --epsilon 1 --delta 1e-5 --size 16 "
            f"--dim 12 --out {name} {more}"
        )

    def same(self, one, other):
        for key in ("latents", "labels"):
            self.assertTrue(one[key] == other[key], f"the {key} of the two sets differ")

    def apart(self, one, other):
        """The largest difference of two sets' latents, as a share of the largest latent."""
        a, b = (numpy.frombuffer(x["latents"][2], "<f4") for x in (one, other))
        return abs(a - b).max() / abs(a).max()

    def test_the_orientation_is_applied(self):
        self.task()
        for i, turn in TURNS.items():
            upright, exif = Image.fromarray(drawn(i, 40, 25)), Image.Exif()
            exif[ORIENTATION] = i
            stored = upright.transpose({6: Image.ROTATE_90, 8: Image.ROTATE_270}.get(i, getattr(Image, turn)))
            for k, name in enumerate(("a", "b")):
                self.put(f"upright/{name}/{i}.png", upright)
                self.put(f"turned/{name}/{i}.{('png', 'webp')[k]}", stored, exif=exif.tobytes(), lossless=True)
        self.same(self.latents("upright"), self.latents("turned"))

    def test_twelve_bits_are_stated_once(self):
        self.task()
        for i in range(4):
            grey = drawn(i, 20, 20)[:, :, 0]
            self.put(f"eight/{'ab'[i % 2]}/{i}.png", grey)
            self.put(f"twelve/{'ab'[i % 2]}/{i}.png", grey.astype(numpy.uint16) << 4)
            self.put(f"tiff/{'ab'[i % 2]}/{i}.tif", Image.fromarray(grey.astype(numpy.uint16) << 4))
        eight = self.latents("eight")
        self.same(eight, self.latents("twelve", more="--bits 12"))
        self.same(eight, self.latents("tiff", more="--bits 12"))
        self.fedkt("encode --task task.json --data twelve --out z", code=1)

    def digests(self, data, bits):
        return self.latents(data, more=f"--bits {bits}")["image_sha256"][2]

    def test_the_digest_of_a_wide_image_is_of_its_samples(self):
        """Of 16 bits, upright and as RGB, whatever the file and the stated depth; of 8 bits where it has no more."""
        self.task()
        chance = numpy.random.default_rng(3)
        whole, wanted = chance.integers(0, 4096, (9, 14), numpy.uint16), hashlib.sha256(b"fedkt wide image 1\0")
        eight = (chance.integers(0, 8, (9, 14))).astype(numpy.uint8)
        for name in ("a", "b"):
            self.put(f"png/{name}/0.png", Image.fromarray(whole))
            self.put(f"tif/{name}/0.tif", Image.fromarray(whole))
            self.put(f"turned/{name}/0.tif", Image.fromarray(whole[::-1].copy()), tiffinfo={ORIENTATION: 4})
            self.put(f"eight/{name}/0.png", eight)
            self.put(f"double/{name}/0.png", Image.fromarray(eight.astype(numpy.uint16) * 257))
        wanted.update(struct.pack("<4Q", 14, 9, 3, 0) + numpy.repeat(whole[:, :, None], 3, 2).astype("<u2").tobytes())
        for data in ("png", "tif", "turned"):
            for bits in (12, 16):
                self.assertEqual(self.digests(data, bits), 2 * wanted.digest(), (data, bits))
        narrow = hashlib.sha256(struct.pack("<2Q", 14, 9) + numpy.repeat(eight[:, :, None], 3, 2).tobytes()).digest()
        for data, bits in (("eight", 16), ("double", 16), ("double", 12)):
            self.assertEqual(self.digests(data, bits), 2 * narrow, (data, bits))

    def test_shape_is_the_tasks(self):
        """A padded set is the same under any fit; what a model learned from follows it into its evaluation."""
        self.task("crop.json")
        self.task("pad.json", "--fit pad")
        for i in range(12):
            wide = drawn(i, 48, 16)
            square = numpy.zeros((48, 48, 3), numpy.uint8)
            square[16:32] = wide
            self.put(f"wide/{'ab'[i % 2]}/{i}.png", wide)
            self.put(f"square/{'ab'[i % 2]}/{i}.png", square)
        padded = self.latents("wide", "pad.json")
        box = self.latents("square", "pad.json")
        self.assertLess(self.apart(padded, box), 0.1)
        cropped = self.latents("wide", "crop.json")
        self.assertGreater(self.apart(padded, cropped), 0.2)
        self.fedkt("moments --task pad.json --data wide --out moments --quiet")
        self.fedkt("release --task pad.json --moments moments --ledger l.db --out release --quiet")
        learn = "--network resnet8 --epochs 2 --batch 4 --threads 1 --quiet"
        self.fedkt(f"train --release release --per-class 6 {learn} --out drawn")
        self.fedkt(f"train --data wide --size 16 --fit pad {learn} --out real")
        for name in ("drawn", "real"):
            self.assertEqual(tensors.load(self.folder / name)["meta"]["fit"], "pad")
        judged = {
            fit: self.fedkt(f"evaluate --model real --data wide --quiet --json {fit}")["loss"]
            for fit in ("", "--fit pad", "--fit crop")
        }
        self.assertEqual(judged[""], judged["--fit pad"])
        self.assertNotEqual(judged[""], judged["--fit crop"])


if __name__ == "__main__":
    binary.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_device.py - --device cuda from end to end beside --device cpu: the same results within rounding, the same bits
from run to run, and the device in what is printed.

Usage: test_device.py FEDKT [test...]

FEDKT is a build with CUDA on a machine with a card, or fedkt_cuda_host_cli (tests/cuda_host), whose card is the
processor. Images and networks are tiny: there a thread of a kernel is a function call. Exit 77: no card can be used.
"""

import re
import subprocess
import sys

import binary

import numpy
from PIL import Image

import fixtures  # from tests/cli, which binary.py puts on the path
import tensors

LEARN = "train --data demo:train --limit 24 --size 8 --network resnet8 --batch 8 --no-flip --pad 0 --threads 1"
KINDS = {"F32": "<f4", "I64": "<i8", "U8": "u1"}


class Device(binary.Case):
    def both(self, line, out=None):
        """What the command gives as JSON on each device; `out` is a name that gets the device's kind behind it."""
        found = {}
        for kind in ("cpu", "cuda"):
            place = f" --out {out}-{kind}" if out else ""
            found[kind] = self.fedkt(f"{line} --device {kind} --json{place}")
            self.assertEqual(found[kind]["device"]["kind"], kind)
            self.assertEqual(found[kind]["device"]["index"], 0)
            self.assertTrue(found[kind]["device"]["name"])
        return found["cpu"], found["cuda"]

    def said(self, line):
        done = subprocess.run(self.words(line), cwd=self.folder, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stderr

    def arrays(self, name):
        found = tensors.load(self.folder / name)["tensors"]
        return {key: numpy.frombuffer(raw, KINDS[kind]).reshape(shape) for key, (kind, shape, raw) in found.items()}

    def near(self, one, other, relative):
        """Largest difference relative to the largest number; a NaN is not near."""
        one, other = one.astype(float), other.astype(float)
        self.assertEqual(one.shape, other.shape)
        self.assertTrue(abs(one - other).max() <= relative * abs(one).max())

    def codec(self):
        """A narrow, untaught network with its calibration and a task."""
        fixtures.small_network(self.folder / "net", "small", 1, width=4)
        tiny = "tiny --weights net --size 16"
        self.fedkt(f"codec calibrate {tiny} --device cpu --top 8 --public demo:train --limit 40 --out cal")
        self.fedkt(f"task new --data demo:test --codec {tiny} --calibration cal --epsilon 10 --delta 1e-5 --out task")


class Codecs(Device):
    def test_latents_agree_and_repeat(self):
        self.codec()
        line = "encode --task task --weights net --calibration cal --data demo:test --limit 20 --threads 2"
        self.both(line, "z")
        cpu, cuda = self.arrays("z-cpu"), self.arrays("z-cuda")
        self.near(cpu["latents"], cuda["latents"], 1e-4)
        self.assertTrue((cpu["labels"] == cuda["labels"]).all())
        self.fedkt(f"{line} --device cuda --out again")
        self.assertEqual(self.bytes("again"), self.bytes("z-cuda"))
        self.fedkt(f"{line} --device cuda --dtype auto --out half")
        self.near(cpu["latents"], self.arrays("half")["latents"], 5e-2)
        self.assertFalse((self.arrays("half")["latents"] == cuda["latents"]).all())  # auto is bf16 there

    def test_kept_encodings_are_those_of_the_device(self):
        self.codec()
        line = "encode --task task --weights net --calibration cal --data demo:test --limit 10 --encodings kept"
        for kind in ("cpu", "cuda"):
            self.fedkt(f"{line} --device {kind} --out {kind}")
            self.fedkt(f"{line.split(' --encodings')[0]} --device {kind} --out {kind}-plain")
            self.assertEqual(self.bytes(kind), self.bytes(f"{kind}-plain"))
        self.assertEqual(len(list((self.folder / "kept").glob("*.encodings"))), 2)

    def test_images_agree(self):
        self.codec()
        moments = "moments --task task --weights net --calibration cal --data demo:test --limit 40"
        self.fedkt(f"{moments} --device cpu --out m")
        self.fedkt("release --task task --calibration cal --moments m --ledger l.db --out release")
        self.both("generate --release release --weights net --per-class 2 --threads 2", "made")
        paths = sorted(path.relative_to(self.folder / "made-cpu") for path in (self.folder / "made-cpu").rglob("*.png"))
        self.assertGreater(len(paths), 2)
        for path in paths:
            pair = [
                numpy.asarray(Image.open(self.folder / f"made-{kind}" / path)).astype(int) for kind in ("cpu", "cuda")
            ]
            self.assertLessEqual(abs(pair[0] - pair[1]).max(), 1, path)


class Learning(Device):
    def test_a_run_agrees_and_repeats(self):
        cpu, cuda = self.both(f"{LEARN} --epochs 2", "model")
        self.fits("train", cuda)
        for one, other in zip(cpu["epochs"], cuda["epochs"]):
            self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-3)
        weights = self.arrays("model-cpu"), self.arrays("model-cuda")
        for name in weights[0]:
            self.near(weights[0][name], weights[1][name], 1e-2)
        self.assertTrue(cuda["recipe"].endswith(" --device cuda"))
        self.assertNotIn("--device", cpu["recipe"])
        self.fedkt(f"{LEARN} --epochs 2 --device cuda --out again")
        self.assertEqual(self.bytes("again"), self.bytes("model-cuda"))
        one, other = self.both("evaluate --model model-cuda --data demo:test --limit 20")
        self.fits("evaluate", other)
        self.assertEqual(one["accuracy"], other["accuracy"])
        self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4)

    def test_a_head_as_teacher_agrees(self):
        """Its logits lie on the card beside the images, and fresh images are drawn while an epoch is trained on."""
        line = "simulate --data demo:train --limit 100 --size 16 --codec dct --dim 8 --epsilon 10 --delta 1e-5"
        self.fedkt(f"{line} --out run")
        line = "train --release run/release.safetensors --per-class 4 --fresh --teacher head --public demo:test"
        line += " --public-limit 30 --public-per-epoch 8 --network resnet8 --epochs 2 --batch 8 --threads 1"
        cpu, cuda = self.both(line, "taught")
        for one, other in zip(cpu["epochs"], cuda["epochs"]):
            self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-2)
        self.assertTrue(cuda["private"])

    def test_a_checkpoint_goes_on_elsewhere(self):
        for here, there in (("cuda", "cpu"), ("cpu", "cuda")):
            line = f"{LEARN} --checkpoint {here}.ck --epochs 2"
            self.fedkt(f"{line} --device {here} --json --out {here}-whole")
            self.stop_after_one_epoch(f"{line} --device {here} --force --out {here}-half", here)
            found = self.fedkt(f"{line} --resume --device {there} --json --out {here}-{there}")
            self.assertTrue(found["resumed"])
            self.assertTrue(found["recipe"].endswith("(earlier steps on another device: no single run repeats it)"))
            self.assertEqual(len(found["epochs"]), 2)
            whole, joined = self.arrays(f"{here}-whole"), self.arrays(f"{here}-{there}")
            for name in whole:
                self.near(whole[name], joined[name], 1e-2)

    def stop_after_one_epoch(self, line, name):
        """The checkpoint of the first epoch, as a run leaves it that is killed later."""
        (self.folder / f"{name}.ck").unlink(missing_ok=True)
        process = self.start(line)
        for text in process.stderr:
            if text.startswith("epoch  1/2"):
                break
        process.kill()
        process.communicate()
        self.assertTrue((self.folder / f"{name}.ck").exists())

    def test_sites_tune(self):
        self.fedkt(f"{LEARN} --epochs 1 --device cpu --out model")
        cpu, cuda = self.both("personalize --model model --data demo:test --limit 60 --sites 2 --ways global,tuned")
        self.fits("personalize", cuda)
        for way in ("global", "tuned"):
            self.assertAlmostEqual(cpu["pooled"][way], cuda["pooled"][way], delta=0.1)


class Words(Device):
    def test_the_card_is_named_once(self):
        for choice in ("auto", "cuda", "cuda:0"):
            test = "--test demo:test --test-limit 4"
            code, text = self.said(f"{LEARN} --epochs 1 --device {choice} --force {test} --out m")
            self.assertEqual(code, 0, text)
            self.assertEqual(len(re.findall(r"(?m)^fedkt: networks run on .+ \(cuda:0, f32\)$", text)), 1, text)
        code, text = self.said(f"{LEARN} --epochs 1 --device cpu --force --out m")
        self.assertEqual((code, "networks run on" in text), (0, False))
        code, text = self.said(f"{LEARN} --epochs 1 --device cuda --quiet --force --out m")
        self.assertEqual((code, text), (0, ""))

    def test_a_card_that_is_not_there(self):
        code, text = self.said(f"{LEARN} --epochs 1 --device cuda:63 --out m")
        self.assertEqual(code, 1)
        self.assertRegex(text, r"^fedkt: device 'cuda:63' cannot be used: there is no card 63: .*\nhint: .*\n$")
        self.assertFalse((self.folder / "m").exists())


def skip_without_a_card():
    """The device is looked at before the data."""
    words = [sys.argv[1], "train", "--device", "cuda", "--data", "nowhere", "--out", "m"]
    said = subprocess.run(words, capture_output=True, text=True).stderr
    if said.startswith("fedkt: device 'cuda:0' cannot be used"):
        print(f"skipped: {said}")
        sys.exit(77)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        skip_without_a_card()
    binary.main()

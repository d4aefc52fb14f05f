#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_teacher.py - a release's head as teacher, and public images that it labels, from end to end: what a model says
of them, the same bits after kill -9, and what is refused before the first epoch.

Usage: test_teacher.py FEDKT [test...]
"""

import random
import shutil
import signal
import sys
import time

import binary

import fixtures  # from tests/cli, which binary.py puts on the path
import tensors

KILLS = 6
SMALL = "--network resnet8 --epochs 3 --batch 8 --threads 1"
TAUGHT = "train --release release --per-class 4 --teacher head"


class Teacher(binary.Case):
    def setUp(self):
        super().setUp()
        task = "task new --data demo:train --epsilon 10 --delta 1e-5 --size 16 --codec dct --dim 16"
        self.fedkt(f"{task} --out task.json")
        self.fedkt("moments --task task.json --data demo:train --limit 200 --out moments")
        self.fedkt("release --task task.json --moments moments --ledger l.db --out release")

    def refused(self, line, *words):
        process = self.start(line)
        said = process.communicate()[1]
        self.assertNotEqual(process.returncode, 0, line)
        for word in words:
            self.assertIn(word, said)
        self.assertFalse((self.folder / "m").exists(), line)

    def test_a_taught_model_is_as_private_as_its_release(self):
        said = self.fedkt(f"{TAUGHT} {SMALL} --quiet --json --out m")
        self.fits("train", said)
        self.assertEqual((said["private"], said["epsilon"], said["delta"]), (True, 10, 1e-5))
        self.assertEqual((said["teacher"], said["public"]), ({"kind": "head", "head": "rda"}, None))
        self.assertTrue(said["data"].endswith("; taught by its RDA head"), said["data"])
        self.assertIn("--teacher head --teacher-head rda ", said["recipe"])
        self.assertIn("--temperature 2 --teacher-share 1 ", said["recipe"])
        plain = self.fedkt(f"train --release release --per-class 4 {SMALL} --quiet --json --out plain")
        self.assertEqual((plain["teacher"], plain["release_sha256"]), (None, said["release_sha256"]))
        models = {self.bytes(name) for name in ("m", "plain")}
        for words in ("--temperature 4", "--teacher-share 0.5", "--teacher-head qda"):
            self.fedkt(f"{TAUGHT} {words} {SMALL} --quiet --out n --force")
            models.add(self.bytes("n"))
        self.assertEqual(len(models), 5)  # every option counts

    def test_a_model_names_the_public_images(self):
        line = f"{TAUGHT} --public demo:test --public-limit 50 {SMALL} --quiet --json"
        said = self.fedkt(f"{line} --out m --onnx m.onnx")
        self.fits("train", said)
        self.assertEqual((said["private"], said["epsilon"], said["images"]), (True, 10, 80))
        public = said["public"]
        self.assertEqual((public["name"], public["images"], public["per_epoch"]), ("demo:test", 50, 40))
        self.assertEqual(said["public_images"], f"50 images of 'demo:test', sha256 {public['sha256']}")
        for model in ("m", "m.onnx"):
            told = self.fedkt(f"evaluate --model {model} --data demo:test --limit 20 --threads 1 --quiet --json")
            self.assertEqual(told["public_images"], said["public_images"])
        more = self.fedkt(f"train --release release --per-class 4 --from m {SMALL} --quiet --json --out later")
        self.assertEqual((more["public"], more["public_images"]), (None, said["public_images"]))
        alone = self.fedkt(f"{line} --public-per-epoch 20 --out n")
        self.assertEqual((alone["images"], alone["public"]["sha256"]), (60, public["sha256"]))
        alone = self.fedkt(line.replace("--per-class 4", "--per-class 0") + " --out o")
        self.assertEqual((alone["images"], alone["private"]), (50, True))

    def test_labels_of_public_images_are_ignored(self):
        self.fedkt("generate --release release --per-class 3 --seed 9 --out made")
        together = self.folder / "together/all"
        together.mkdir(parents=True)
        for i, path in enumerate(sorted((self.folder / "made/train").rglob("*.png"))):
            shutil.copy(path, together / f"{i:04}.png")
        a, b = (
            self.fedkt(f"{TAUGHT} --public {where} {SMALL} --quiet --json --out {where}.m")
            for where in ("made", "together")
        )
        self.assertEqual(a["public"]["sha256"], b["public"]["sha256"])
        self.assertEqual(b["public"]["images"], 30)

    def test_killed_and_resumed(self):
        line = f"{TAUGHT} --fresh --public demo:train --public-limit 30 --public-per-epoch 8 {SMALL} --quiet"
        line += " --checkpoint ck --checkpoint-steps 2 --out m"
        began = time.monotonic()
        self.fedkt(line)
        seconds, wanted = time.monotonic() - began, self.bytes("m")
        chance, killed = random.Random(7), 0
        for name in ("m", "ck"):
            (self.folder / name).unlink()
        for _ in range(20 * KILLS):
            process = self.start(f"{line} --resume")
            time.sleep(seconds * chance.uniform(0.1, 0.9))
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
            if process.returncode == 0:
                break
        if process.returncode:
            self.fedkt(f"{line} --resume --force")
        self.assertEqual(self.bytes("m"), wanted)
        self.assertGreater(killed, 0, "no run was caught alive")
        (self.folder / "m").unlink()
        for words in ("--teacher-head qda", "--temperature 3", "--public-limit 29", "--teacher-share 0.5"):
            again = line.replace("--public-limit 30", words if "limit" in words else f"--public-limit 30 {words}")
            self.refused(f"{again} --resume --force", "belongs to another run")

    def test_a_simulated_network_is_that_of_train(self):
        """The same teacher and the same public images: the same accuracy, arm by arm."""
        tested = "--test demo:test --test-limit 80 --epochs 2 --seed 3 --threads 1 --quiet --json"
        self.fedkt("generate --release release --per-class 3 --seed 9 --out made")
        taught = "--teacher head --teacher-share 0.9 --public made --public-per-epoch 11"
        line = "simulate --data demo:train --limit 300 --size 16 --codec dct --dim 8 --epsilon 20,1 --delta 1e-5"
        line += f" --insecure-seed 5 --train resnet8 --train-per-class 6 {taught}"
        arms = self.fedkt(f"{line} {tested} --out run")["arms"]
        for arm, folder in zip(arms, ("eps-20", "eps-1"), strict=True):
            line = f"train --release run/{folder}/release.safetensors --per-class 6 --draw-seed 3 --network resnet8"
            said = self.fedkt(f"{line} {taught} {tested} --out m --force")
            self.assertEqual(said["test"]["accuracy"], arm["accuracy"]["resnet8"])
        (self.folder / "m").unlink()
        line = "simulate --data demo:train --limit 100 --holdout 0.3 --size 16 --codec dct --dim 8 --epsilon 20"
        line += " --delta 1e-5 --insecure-seed 5 --train resnet8 --epochs 1 --threads 1"
        self.refused(f"{line} --teacher head --public demo:train", " test images are among the public images")
        self.refused(f"{line} --teacher other", "--teacher: 'other' is not 'head'")
        self.refused(f"{line} --public demo:test", "--public needs --teacher head")
        self.refused(line.replace("--train resnet8 --epochs 1", "--teacher head"), "--teacher needs --train")

    def test_a_release_with_a_guide(self):
        """The head looks at the guide's features of an image; a release of heads alone trains on public images."""
        fixtures.small_guide(self.folder / "guide", 1)
        line = "codec calibrate resnet --weights guide --size 16 --top 6 --public demo:test --limit 60"
        self.fedkt(f"{line} --out gcal")
        guide = "--guide-calibration gcal"
        pooled = "--codec dct --moments pooled"
        for name, words in (("both", "--codec dct --dim 8"), ("heads", "--codec none"), ("pooled", pooled)):
            task = f"task new --data demo:train --epsilon 10 --delta 1e-5 --size 16 --guide resnet {words}"
            self.fedkt(f"{task} --guide-weights guide {guide} --out {name}.json")
            line = f"moments --task {name}.json --guide-weights guide {guide} --data demo:train --limit 100"
            self.fedkt(f"{line} --out {name}.moments")
            self.fedkt(f"release --task {name}.json --moments {name}.moments {guide} --ledger {name}.db --out {name}")
        line = f"{SMALL} --quiet --json --guide-weights guide --teacher head"
        models = set()
        for words in ("", "--teacher-parts guide", "--teacher-parts all"):
            said = self.fedkt(f"train --release both --per-class 3 {line} {words} --out n --force")
            self.assertTrue(said["private"])
            models.add(str(tensors.load(self.folder / "n")["tensors"]["fc.bias"]))
        self.assertEqual(len(models), 2)  # the default is one of the two
        self.fedkt(f"train --release both --per-class 3 {SMALL} --quiet --out plain")  # without the guide's weights
        public = "--public demo:test --public-limit 30"
        for name in ("heads", "pooled"):
            said = self.fedkt(f"train --release {name} --per-class 0 {line} {public} --out {name}.m")
            self.assertEqual((said["images"], said["private"]), (30, True))
            self.refused(
                f"train --release {name} --per-class 3 {line} --out m",
                "it gives heads, and no images",
                "hint: its head can label public images: --teacher head --public PATH --per-class 0 trains on them",
            )
        self.refused(f"train --release pooled --per-class 0 {line} {public} --teacher-head qda --out m", "no QDA head")

    def test_bad_input(self):
        self.refused("train --data demo:train --limit 20 --teacher head --out m", "--teacher head needs --release")
        line = "train --release release --per-class 2 --out m"
        self.refused(f"{line} --public demo:test", "--public needs --teacher head")
        self.refused(f"{line} --teacher-head qda", "--teacher-head needs --teacher head")
        self.refused(f"{line} --teacher head --teacher-head tree", "--teacher-head")
        self.refused(f"{line} --teacher head --public-limit 3", "--public-limit needs --public")
        self.refused(f"{line} --teacher head --public nowhere", "--public: ", "nowhere")
        self.refused(f"{line} --teacher head --teacher-share 0", "share")
        self.refused(f"{line} --teacher head --per-class 0".replace("--per-class 2 ", ""), "--per-class")
        self.refused(f"{line} --teacher head --public release", "--public")
        tested = f"{TAUGHT} --public demo:test --public-limit 60 --test demo:test --test-limit 60 {SMALL} --out m"
        self.refused(tested, "60 of the 60 test images are among the public images, the first is ")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    binary.main()

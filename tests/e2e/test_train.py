#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_train.py - learning from end to end: kill -9 and Ctrl-C at any moment and the same bits in the end, the same
images from a folder and from its release, and what a model says of where it comes from.

Usage: test_train.py FEDKT [test...]

Moments of death come from a fixed seed, spread over the time that the undisturbed run took.
"""

import getpass
import json
import math
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import sys
import time

import binary

import numpy
from PIL import Image

import tensors  # from tests/cli, which binary.py puts on the path

KILLS = 12
SMALL = "--network resnet8 --size 16 --epochs 4 --batch 8 --threads 1"


class Train(binary.Case):
    def private_release(self, dim=16):
        """A release whose noise nobody knows, as sites make one stage by stage."""
        self.fedkt(
            "task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 --size 16 "
            f"--dim {dim} --out task.json"
        )
        self.fedkt("moments --task task.json --data demo:train --limit 200 --out moments")
        self.fedkt("release --task task.json --moments moments --ledger l.db --out release")

    def weights(self, name):
        return tensors.load(self.folder / name)["tensors"]


class Killed(Train):
    def resumed_to_the_same_bits(self, what):
        line = f"train {what} {SMALL} --quiet --checkpoint ck --checkpoint-steps 2 --out m"
        began = time.monotonic()
        self.fedkt(line)
        seconds, wanted = time.monotonic() - began, self.bytes("m")
        chance, killed, alive = random.Random(7), 0, 0
        (self.folder / "m").unlink()
        (self.folder / "ck").unlink()
        for _ in range(20 * KILLS):
            process = self.start(f"{line} --resume")
            time.sleep(seconds * chance.uniform(0.02, 0.6))
            process.kill()
            said = process.communicate()[1]
            if process.returncode == -signal.SIGKILL:
                killed += 1
                if (self.folder / "m").exists():
                    self.assertEqual(self.bytes("m"), wanted)
                    (self.folder / "m").unlink()
                continue
            self.assertEqual(process.returncode, 0, said)
            self.assertEqual(self.bytes("m"), wanted)
            alive += 1
            (self.folder / "m").unlink()
            (self.folder / "ck").unlink()
            if killed >= KILLS:
                break
        self.assertGreater(killed, KILLS // 2, "hardly any run was caught alive")
        self.assertGreater(alive, 0, "no run ever came to its end")
        for path in self.folder.iterdir():
            if ".tmp-" in path.name:
                self.assertRegex(path.name, r"\A(m|ck)\.tmp-")

    def test_from_a_set(self):
        self.resumed_to_the_same_bits("--data demo:train --limit 60 --holdout 0.2 --ema 0.9")

    def test_from_a_release_drawn_anew(self):
        self.private_release()
        self.resumed_to_the_same_bits("--release release --per-class 6 --fresh")

    def test_ctrl_c(self):
        line = f"train --data demo:train --limit 2000 {SMALL} --checkpoint ck --out m"  # after one epoch three are left
        self.fedkt(line)
        wanted = self.bytes("m")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            (self.folder / "m").unlink()
            (self.folder / "ck").unlink()
            process = self.start(line)
            while process.poll() is None and not (self.folder / "ck").exists():
                time.sleep(0.01)
            process.send_signal(number)
            out, said = process.communicate()
            self.assertEqual((process.returncode, out), (128 + number, ""), said)
            self.assertRegex(
                said, r"fedkt: stopped while training; checkpoint 'ck' holds the state\nhint: .*--resume"
            )
            self.assertEqual({path.name for path in self.folder.iterdir()}, {"ck"})
            said = self.fedkt(f"{line} --resume --json")
            self.assertTrue(said["resumed"])
            self.assertEqual(len(said["epochs"]), 4)
            self.assertEqual(self.bytes("m"), wanted)

    def test_ctrl_c_while_judging(self):
        """Nearly all images are held out, so that most of the time goes into evaluating them."""
        line = "train --data demo:train --limit 400 --network resnet8 --size 32 --epochs 2 --batch 8 --threads 1"
        line += " --holdout 0.96 --ema 0.9 --checkpoint ck --out m"
        began = time.monotonic()
        self.fedkt(line)
        seconds, wanted, stopped = time.monotonic() - began, self.bytes("m"), 0
        for part in (0.3, 0.5, 0.7):
            for name in ("m", "ck"):
                (self.folder / name).unlink()
            process = self.start(line)
            time.sleep(seconds * part)
            process.send_signal(signal.SIGINT)
            process.communicate()
            stopped += process.returncode == 130
            self.fedkt(f"{line} --resume --force")
            self.assertEqual(self.bytes("m"), wanted)
            self.assertTrue((self.folder / "ck").exists())
        self.assertGreater(stopped, 0, "no run was caught alive")

    def test_ctrl_c_without_a_checkpoint(self):
        endless = SMALL.replace("--epochs 4", "--epochs 1000000")
        process = self.start(f"train --data demo:train --limit 200 {endless} --out m")
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        while process.poll() is None and sum(map(int, stat.read_text().split()[13:15])) < 25:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertIn("fedkt: stopped", process.communicate()[1])
        self.assertEqual((process.returncode, list(self.folder.iterdir())), (130, []))


class Origin(Train):
    def train(self, words, out="m"):
        said = self.fedkt(
            f"train {words} --network resnet8 --epochs 1 --batch 16 --threads 1 --quiet --json --out {out} --force"
        )
        self.fits("train", said)
        told = self.fedkt(f"evaluate --model {out} --data demo:test --limit 20 --threads 1 --quiet --json")
        self.fits("evaluate", told)
        for key in ("private", "epsilon", "delta", "adjacency", "release_sha256", "data", "recipe"):
            self.assertEqual(told[key], said[key], key)
        return said

    def test_a_folder_and_its_release_are_the_same_pictures(self):
        self.private_release()
        self.fedkt("generate --release release --per-class 4 --seed 3 --out made")
        pooled = self.train("--release release --per-class 4 --draw-seed 3 --tau 0.01 --pool 0.5", "pooled")
        self.assertIn("--draw-seed 3 --estimator clamp --tau 0.01 --pool 0.5 --network", pooled["recipe"])
        drawn = self.train("--release release --per-class 4 --draw-seed 3", "a")
        read = self.train("--data made --size 16", "b")
        self.assertEqual(self.weights("a"), self.weights("b"))
        for said in (drawn, read):
            self.assertEqual((said["private"], said["epsilon"], said["delta"]), (True, 10, 1e-5))
        self.assertEqual(drawn["release_sha256"], read["release_sha256"])
        self.assertIn("its certificate says epsilon 10", read["data"])

    def test_who_is_private(self):
        self.private_release()
        release = "--release release --per-class 2"
        self.fedkt("generate --release release --per-class 2 --out made")
        self.assertTrue(self.train(release, "pure")["private"])
        self.assertTrue(self.train(f"{release} --teacher pure")["private"])
        began = self.train(f"{release} --from pure")
        self.assertTrue(began["private"])
        self.assertIn("started from a model whose file says: 2 images drawn per class", began["data"])
        mixed = self.train(f"{release} --mix demo:train --mix-limit 20", "mixed")
        self.assertEqual((mixed["private"], mixed["epsilon"], mixed["delta"]), (False, None, None))
        self.assertEqual(mixed["images"], 40)
        self.assertEqual((self.folder / "mixed").stat().st_mode & 0o777, 0o600)
        self.assertNotEqual((self.folder / "pure").stat().st_mode & 0o077, 0)
        self.assertFalse(self.train(f"{release} --teacher mixed")["private"])
        self.assertFalse(self.train(f"{release} --from mixed")["private"])
        self.assertFalse(self.train("--data demo:train --limit 20 --size 16")["private"])
        shutil.copy(next((self.folder / "made").rglob("*.png")), self.folder / "made/train/apple/one-more.png")
        more = self.train("--data made --size 16")
        self.assertFalse(more["private"])
        self.assertIn("NOT private: these are not all and only the images", more["data"])

    def test_known_noise_is_not_private(self):
        self.fedkt("task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 --size 16 --dim 8 --out task.json")
        self.fedkt("moments --task task.json --data demo:train --limit 100 --out moments")
        self.fedkt("release --task task.json --moments moments --ledger l.db --insecure-seed 1 --out release")
        self.fedkt("generate --release release --per-class 2 --out made")
        for words in ("--release release --per-class 2", "--data made --size 16"):
            said = self.train(words)
            self.assertFalse(said["private"])
            self.assertIn("known seed", said["data"])
        self.fedkt(
            "simulate --codec dct --data demo:train --limit 100 --size 16 --dim 8 "
            "--epsilon 10 --delta 1e-5 --out run"
        )
        words = "made by a simulation, which keeps no ledger: other releases of the same records are not counted"
        self.fedkt("generate --release run/release.safetensors --per-class 2 --out simulated")
        for where in ("--release run/release.safetensors --per-class 2", "--data simulated --size 16"):
            said = self.train(where)
            self.assertEqual((said["private"], said["epsilon"], said["delta"]), (True, 10, 1e-5))
            self.assertIn(words, said["data"])

    def test_two_releases_of_the_same_records(self):
        self.private_release()
        budget = "--budget-epsilon 20 --budget-delta 2e-5"
        self.fedkt(f"release --task task.json --moments moments --ledger other.db {budget} --out second")
        self.train("--release release --per-class 2", "first")
        said = self.train("--release second --per-class 2 --teacher first", "both")
        self.assertEqual((said["private"], said["epsilon"], said["delta"]), (True, 20, 2e-5))
        self.assertIsNone(said["release_sha256"])
        told = self.fedkt("evaluate --model both --data demo:test --limit 20 --threads 1 --quiet")
        self.assertIn(
            "private: epsilon 20, delta 2e-05 (add-remove), for each record behind its releases together", told
        )

    def test_two_kinds_of_neighbours(self):
        self.private_release()
        self.train("--release release --per-class 2", "pure")
        task = "task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 --size 16 --dim 16"
        self.fedkt(f"{task} --adjacency replace --out other.json")
        self.fedkt("moments --task other.json --data demo:train --limit 200 --out others")
        self.fedkt("release --task other.json --moments others --ledger l2.db --out replace")
        said = self.train("--release replace --per-class 2")
        self.assertEqual((said["private"], said["adjacency"]), (True, "replace"))
        self.assertIn("epsilon 10, delta 1e-05 under replace", said["data"])
        said = self.train("--release replace --per-class 2 --teacher pure")
        self.assertEqual((said["private"], said["epsilon"], said["adjacency"]), (False, None, None))
        self.assertIn("NOT private: promises about different kinds of neighbours", said["data"])

    def test_a_checkpoint_does_not_forget_its_start(self):
        """Weights that saw real images do not get rid of that in a checkpoint."""
        self.private_release()
        self.train("--data demo:train --limit 20 --size 16", "real")
        line = "train --release release --per-class 2 --network resnet8 --epochs 2 --batch 8 --threads 1 --quiet --json"
        self.fedkt(f"{line} --from real --checkpoint ck --out a")
        self.assertFalse(self.fedkt(f"{line} --from real --checkpoint ck --resume --out b")["private"])
        process = self.start(f"{line} --checkpoint ck --resume --out c")
        said = process.communicate()[1]
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("another run: its checksum of the weights at the start", said)
        self.assertEqual((self.folder / "ck").stat().st_mode & 0o777, 0o600)

    def test_a_checkpoint_knows_whether_epochs_draw_anew(self):
        self.private_release()
        line = f"train --release release --per-class 4 {SMALL} --quiet --checkpoint ck --out m"
        self.fedkt(line)
        process = self.start(f"{line} --resume --fresh --force")
        self.assertIn("its set of images is the same for all epochs", process.communicate()[1])
        self.assertEqual(process.returncode, 1)

    def test_no_place_travels(self):
        """Where images lie, on whose machine: models, checkpoints and curves go further than that should."""
        self.private_release()
        self.fedkt("generate --release release --per-class 2 --out ward-seven/photos")
        for name in ("extra", "judges"):
            shutil.copytree(self.folder / "ward-seven/photos", self.folder / "ward-seven" / name)
        line = (
            "train --data ward-seven/photos --mix ward-seven/extra --test ward-seven/judges --size 16 "
            "--network resnet8 "
        )
        line += "--epochs 1 --batch 8 --quiet --checkpoint ck --onnx m.onnx --curves c.csv --tensorboard events --out m"
        self.fedkt(line)
        files = ["m", "m.onnx", "ck", "c.csv", *(f"events/{path.name}" for path in (self.folder / "events").iterdir())]
        self.assertEqual(len(files), 5)
        words = ["ward-seven", "extra", "judges", self.folder.name]
        try:
            ours = [socket.gethostname(), getpass.getuser()]
        except (KeyError, OSError):  # a machine without users
            ours = [socket.gethostname()]
        words += [word for word in ours if len(word) > 5 and "fedkt" not in word]  # not found by chance
        for name in files:
            for word in words:
                self.assertNotIn(word.encode(), self.bytes(name), name)
            self.assertEqual(b"photos" in self.bytes(name), name.startswith("m"), name)


class Use(Train):
    def test_through_the_codec_and_files(self):
        self.private_release()
        line = f"train --release release --per-class 4 {SMALL} --quiet --out m --onnx m.onnx --curves c.csv "
        line += "--tensorboard events --ema 0.5 --ema-out e --holdout 0.25 --test demo:test --test-limit 40"
        said = self.fedkt(f"{line} --through-codec --json")
        self.fits("train", said)
        self.assertEqual((said["images"], said["held_out"], said["test"]["n"]), (30, 10, 40))
        self.assertEqual(len(said["epochs"]), 4)
        self.assertEqual(len(self.bytes("c.csv").splitlines()), 5)
        self.assertEqual((said["curves"], said["tensorboard"]), ("c.csv", "events"))
        self.assertEqual(len(list((self.folder / "events").iterdir())), 1)
        for model in ("m", "m.onnx"):
            told = self.fedkt(
                f"evaluate --model {model} --data demo:test --limit 40 --through-codec --codec dct --dim 16 --json"
            )
            self.fits("evaluate", told)
            self.assertEqual(told["confusion"], said["test"]["confusion"])
            self.assertEqual(told["through_codec"]["confusion"], said["test"]["through_codec"]["confusion"])
            self.assertEqual(sum(map(sum, told["confusion"])), 40)
        told = self.fedkt("evaluate --model e --data demo:test --limit 40 --json")
        self.assertEqual(told["confusion"], said["test"]["averaged"]["confusion"])
        for key in ("private", "epsilon", "data", "recipe"):
            self.assertEqual(told[key], said[key], key)
        self.assertNotEqual(self.weights("e")["fc.weight"], self.weights("m")["fc.weight"])
        text = self.fedkt(f"{line} --force")
        self.assertIn("\nprivate: epsilon 10, delta 1e-05 (add-remove), for each record behind the release", text)
        accuracy = 100 * said["test"]["averaged"]["accuracy"]
        self.assertIn(f"\naveraged weights: accuracy {accuracy:.2f} %\n", text)
        text = self.fedkt("evaluate --model m --data demo:test --limit 40 --through-codec --release release")
        plain, through = [number for number, words in enumerate(text.splitlines()) if words.startswith("accuracy")]
        self.assertEqual((plain, through), (0, 1))
        self.assertIn("its file says: private: epsilon 10, delta 1e-05 (add-remove)", text)

    def test_names_that_are_no_utf8(self):
        """A file may be called anything, and JSON has no word for some of it."""
        said = self.fedkt(f"train --data demo:train --limit 20 {SMALL} --quiet --json --out m\udcff --curves \udcc3")
        self.assertEqual((said["out"], said["curves"]), ("m?", "?"))
        words = "--data demo:train --limit 20 --sites 1 --threads 1 --quiet --json"
        said = self.fedkt(f"personalize --model m\udcff {words} --out tuned\udcff")
        self.assertEqual(said["out"], "tuned?")

    def test_the_drawing_is_the_curve(self):
        """Every column shows the accuracies of the epoch that it stands for, the first ones too."""
        for epochs, wide in ((3, 6), (61, 0)):
            line = f"train --data demo:train --limit 20 --network resnet8 --size 8 --epochs {epochs} --batch 10"
            text = self.fedkt(f"{line} --threads 1 --holdout 0.5 --quiet --curves c.csv --out m --force").splitlines()
            head, *rows = (row.split(",") for row in self.bytes("c.csv").decode().splitlines())
            grid = [row[7:] for row in text[1:11]]
            columns = wide * epochs or 60
            self.assertEqual({len(row) for row in grid}, {columns})
            for c in range(columns):
                epoch = rows[c // wide if wide else (c + 1) * epochs // columns - 1]
                for name, letters in (("accuracy", "*o"), ("held_accuracy", "o")):
                    at = math.floor((1 - float(epoch[head.index(name)])) * 9 + 0.5)
                    self.assertIn(grid[at][c], letters, f"column {c} of {columns}\n" + "\n".join(text[:12]))

    def test_weights_alone(self):
        """A file from PyTorch names no classes and no size: they are the images', and its last layer is kept."""
        self.private_release()
        line = "train --release release --per-class 4 --epochs 1 --batch 10 --threads 1 --quiet"
        self.fedkt(f"{line} --network resnet8 --out m")
        tensors.save(self.folder / "bare", {**tensors.load(self.folder / "m"), "meta": {}})
        self.fedkt(f"{line} --from bare --rate 1e-30 --out same")
        for name, tensor in self.weights("m").items():
            if "running" not in name and "tracked" not in name:
                self.assertEqual(self.weights("same")[name], tensor, name)
        said = self.fedkt(f"{line} --network resnet8 --teacher bare --json --out taught")
        self.assertEqual((said["model"]["size"], said["model"]["classes"][0]), (16, "apple"))
        self.assertFalse(said["private"])
        named = self.fedkt(f"{line} --network resnet8 --teacher m --json --out taught --force")
        self.assertEqual(said["epochs"][0]["loss"], named["epochs"][0]["loss"])
        tune = "--data demo:train --limit 40 --sites 1 --threads 1 --quiet --json"
        said = self.fedkt(f"personalize --model bare --size 16 {tune} --out mine")
        self.assertEqual((said["model"]["size"], said["model"]["classes"][0]), (16, "apple"))
        self.assertEqual(said["mean"], self.fedkt(f"personalize --model m {tune}")["mean"])
        self.assertIn("apple", str(tensors.load(self.folder / "mine")["meta"]))

    def test_the_recipe_repeats_the_run(self):
        self.private_release()
        for where, what in (
            ("--release release --mix demo:train", "--per-class 5 --fresh --tau 0.0123456789 --mix-limit 7 --pool 0.3"),
            (
                "--data demo:train",
                "--size 20 --limit 37 --filter lanczos --schedule step --step-every 1.5 --warmup 0.5",
            ),
        ):
            line = f"train {where} --quiet --json"
            said = self.fedkt(
                f"{line} {what} --network resnet8 --epochs 2 --batch 8 --rate 0.0123456789 --threads 1 --out m"
            )
            self.fedkt(f"{line} {said['recipe']} --out again")
            self.assertTrue(self.weights("again") == self.weights("m"), said["recipe"])
            self.assertNotEqual(said["recipe"].find("--rate 0.0123456789 "), -1, said["recipe"])
            for name in ("m", "again"):
                (self.folder / name).unlink()

    def numbered(self):
        """Twelve classes that have numbers for names, which a folder and an archive put into different orders."""
        rng, rgb = random.Random(5), []
        for k in range(12):
            (self.folder / f"photos/{k}").mkdir(parents=True)
            for i in range(8):
                colour = [k * 53 % 200, k * 97 % 200, k * 31 % 200]
                rgb.append([[[c + rng.randrange(50) for c in colour] for _ in range(16)] for _ in range(16)])
                Image.fromarray(numpy.array(rgb[-1], numpy.uint8)).save(self.folder / f"photos/{k}/{i}.png")
        parts = {f"{split}_images": numpy.array(rgb, numpy.uint8) for split in ("train", "val", "test")}
        parts |= {f"{split}_labels": numpy.repeat(numpy.arange(12), 8)[:, None] for split in ("train", "val", "test")}
        numpy.savez(self.folder / "photos.npz", **parts)

    def test_numbers_as_names(self):
        self.numbered()
        line = "train --size 16 --network resnet8 --epochs 12 --batch 16 --threads 1 --quiet"
        judge = "--threads 1 --quiet --json"
        self.fedkt(f"{line} --data photos.npz --out m")
        wanted = self.fedkt(f"evaluate --model m --data photos.npz {judge}")
        self.assertGreater(wanted["accuracy"], 0.9)
        by_name = self.fedkt(f"evaluate --model m --data photos {judge}")
        self.assertEqual((by_name["per_class"], by_name["confusion"]), (wanted["per_class"], wanted["confusion"]))
        alone = self.fedkt(f"personalize --model m --data photos --sites 1 --ways global {judge}")
        self.assertGreater(alone["pooled"]["global"], 0.9)
        shutil.rmtree(self.folder / "photos/7")
        self.assertIsNone(self.fedkt(f"evaluate --model m --data photos {judge}")["per_class"]["7"])

    def test_numbers_of_nobody(self):
        """Weights alone that learned from a folder: their classes are the folder's, in its order, and told so."""
        self.numbered()
        self.fedkt(
            "train --size 16 --network resnet8 --epochs 12 --batch 16 --threads 1 --quiet --data photos --out named"
        )
        tensors.save(self.folder / "bare", {**tensors.load(self.folder / "named"), "meta": {}})
        wanted = self.fedkt("evaluate --model named --data photos --threads 1 --quiet --json")
        process = self.start("evaluate --model bare --data photos --size 16 --threads 1 --json")
        said, talk = process.communicate()
        self.assertIn("have no names", talk)
        said = json.loads(said)
        self.assertEqual((said["per_class"], said["confusion"]), (wanted["per_class"], wanted["confusion"]))
        self.assertEqual(said["model"]["classes"][:3], ["0", "1", "10"])
        line = (
            "train --data photos --size 16 --from bare --epochs 1 --rate 1e-30 --batch 96 --threads 1 --no-flip --pad 0"
        )
        self.assertLess(self.fedkt(f"{line} --quiet --json --out same")["epochs"][0]["loss"], 1)

    def test_people_read_what_machines_read(self):
        """Figures, who is taken for whom (a matrix for ten classes, the commonest for more) and privacy, both ways."""
        from PIL import Image

        for k in range(22):
            for i in range(4):
                path = self.folder / f"many/c{k:02}/{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (8, 8), (k * 11, 60 * i, 255 - 9 * k)).save(path)
        line = "--network resnet8 --size 8 --epochs 1 --batch 11 --threads 1 --quiet"
        for data, many in (("demo:test --limit 100", 0), ("many", 1)):
            self.fedkt(f"train --data {data} {line} --out m --force")
            ask = f"evaluate --model m --data {data} --through-codec --codec dct --dim 4 --threads 1 --quiet"
            said, text = self.fedkt(f"{ask} --json"), self.fedkt(ask)
            told = [float(x) for x in re.findall(r"^accuracy ([\d.]+) %", text, re.M)]
            for got, want in zip(told, (said["accuracy"], said["through_codec"]["accuracy"]), strict=True):
                self.assertAlmostEqual(got, 100 * want, places=2)
            self.assertNotEqual(said["confusion"], said["through_codec"]["confusion"])
            self.assertIn("\nNOT PRIVATE: ", text)
            names, confusion = said["model"]["classes"], said["confusion"]
            for name, row, i in zip(names, confusion, range(len(names))):  # rows are the truth
                self.assertEqual(said["per_class"][name], row[i] / sum(row) if sum(row) else None)
            wrong = [
                (confusion[i][k], names[i], names[k]) for i in range(len(names)) for k in range(len(names)) if i != k
            ]
            if many:
                found = re.findall(r"^ +(\d+)  (c\d\d) +taken for (c\d\d)", text, re.M)
                wrong = sorted((w for w in wrong if w[0]), key=lambda w: -w[0])  # equal ones stay in the matrix's order
                self.assertEqual([(int(n), a, b) for n, a, b in found], wrong[:10])
                continue
            rows = re.findall(r"^ *\d+ \w+ .*\[ *\d+\].*$", text, re.M)
            cells = [re.findall(r"\d+|\.", row[19:]) for row in rows]
            self.assertEqual([[0 if x == "." else int(x) for x in row] for row in cells], confusion)
            self.assertNotEqual(confusion, [list(row) for row in zip(*confusion)])  # else it could stand on its side

    def test_a_simulated_network_is_that_of_train(self):
        judged = "--test demo:test --test-limit 100 --epochs 3 --seed 3 --threads 1 --quiet --json"
        line = "simulate --codec dct --data demo:train --limit 400 --size 16 --dim 8 --epsilon 20,0.01 --delta 1e-5"
        arms = self.fedkt(f"{line} --insecure-seed 5 --train resnet8 --train-per-class 12 {judged} --out run")["arms"]
        for arm, folder in zip(arms, ("eps-20", "eps-0.01"), strict=True):
            line = f"train --release run/{folder}/release.safetensors --per-class 12 --draw-seed 3 --network resnet8"
            said = self.fedkt(f"{line} {judged} --out m --force")
            self.assertEqual(said["release_sha256"], arm["release_sha256"])
            self.assertEqual(said["test"]["accuracy"], arm["accuracy"]["resnet8"])

    def test_the_recipe_is_what_was_asked_for(self):
        """The effective options stand in the model, those with a default too."""
        line = "train --data demo:train --limit 20 --network resnet8 --size 8 --epochs 2 --batch 5 --threads 1 --quiet"
        said = self.fedkt(f"{line} --json --out m")["recipe"]
        common = "--network resnet8 --stem cifar --size 8 --epochs 2 --batch 5 --rate 0.05 --momentum 0.9"
        common += " --decay 0.0005"
        common = f"--limit 20 {common}"
        self.assertEqual(said, f"{common} --schedule cosine --pad 4 --dtype f32 --seed 1 --threads 1")
        more = "--warmup 0.5 --no-nesterov --no-flip --pad 1 --smoothing 0.1 --ema 0.9 --temperature 2"
        line += f" --schedule step --step-every 1 --step-by 0.5 {more} --holdout 0.5 --seed 7 --json --teacher m"
        want = f"{common} --schedule step --step-every 1 --step-by 0.5 {more} --teacher-share SHARE --holdout 0.5"
        want += " --dtype f32 --seed 7 --threads 1"
        self.assertEqual(self.fedkt(f"{line} --out n")["recipe"], want.replace("SHARE", "0.5"))
        self.assertEqual(self.fedkt(f"{line} --teacher-share 0.25 --out o")["recipe"], want.replace("SHARE", "0.25"))
        self.private_release()
        line = (
            "train --release release --per-class 2 --fresh --network resnet8 --epochs 1 --batch 5 --quiet "
            "--json --out p"
        )
        said = self.fedkt(line)["recipe"]
        self.assertRegex(said, r"\A--per-class 2 --draw-seed \d+ --estimator [a-z-]+ --fresh --network resnet8 ")

    def test_the_seed_draws_the_network(self):
        """At a rate of next to nothing what comes out is what was begun with."""
        line = "train --data demo:train --limit 20 --network resnet8 --size 8 --epochs 1 --batch 20 --threads 1 --quiet"
        for out, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.fedkt(f"{line} --rate 1e-30 --seed {seed} --out {out}")
        a, b, c = (self.weights(name)["layer1.0.conv1.weight"] for name in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_it_learns(self):
        """Two easy classes: a run that learns nothing would stay near one half."""
        from PIL import Image

        chance = random.Random(5)
        for name, base in (("dark", 60), ("light", 180)):
            (self.folder / "set" / name).mkdir(parents=True)
            for i in range(40):
                shade = [max(0, min(255, base + chance.randint(-40, 40))) for _ in range(3)]
                Image.new("RGB", (16, 16), tuple(shade)).save(self.folder / "set" / name / f"{i}.png")
        said = self.fedkt(f"train --data set {SMALL} --holdout 0.25 --quiet --json --out m")
        self.assertGreater(said["epochs"][-1]["held_accuracy"], 0.9)


class Personal(Train):
    def personalize(self, words):
        said = self.fedkt(
            f"personalize {words} --data demo:train --limit 60 --sites 3 --epochs-local 1 --seed 5 --threads 1 "
            "--quiet --json"
        )
        self.fits("personalize", said)
        return said

    def test_trained_first_or_before_is_the_same(self):
        self.private_release()
        for fresh in ("", " --fresh"):
            recipe = f"--release release --per-class 8 --epochs 2{fresh}"
            words = f"train {recipe} --network resnet8 --seed 5 --threads 1 --quiet --json --out m --force"
            trained = self.fedkt(words)
            now = self.personalize(f"{recipe} --network resnet8 --model-out n --force")
            before = self.personalize("--model m")
            self.assertEqual(self.bytes("m"), self.bytes("n"))
            told, last = now.pop("trained"), trained["epochs"][-1]
            for key in ("loss", "accuracy"):
                self.assertEqual(told[key], last[key])
            self.assertEqual((told["images"], told["epochs"], told["out"]), (80, 2, "n"))
            self.assertEqual(told["fresh"], bool(fresh))
            self.assertTrue(now["model"]["private"])
            now.pop("seconds")
            before.pop("seconds")
            self.assertEqual(now, before)

    def test_baselines_beside_ours(self):
        self.fedkt(f"train --data demo:train --limit 20 {SMALL} --quiet --out m")
        words = "--model m --partition pathological:4 --ways global,local --rounds 2 --baselines"
        said = self.personalize(f"{words} fedavg,apple,local --out sites --baseline-set epochs=2")
        found, alone = said["baselines"], self.personalize(f"{words} local --baseline-set epochs=2")["baselines"]
        self.assertEqual(found["methods"], ["local", "fedavg", "apple"])
        self.assertEqual((found["settings"]["rounds"], found["settings"]["epochs"]), (2, 2))
        self.assertEqual(found["mean"]["local"], alone["mean"]["local"])
        rows = [line.split(",") for line in (self.folder / "sites" / "sites.csv").read_text().splitlines()]
        self.assertEqual(rows[0][6:], ["baseline_local", "baseline_fedavg", "baseline_apple"])
        for site, row in zip(found["sites"], rows[1:]):
            self.assertEqual([round(site[name], 6) for name in found["methods"]], [float(cell) for cell in row[6:]])
        for name, mean in found["mean"].items():
            self.assertAlmostEqual(mean, sum(site[name] for site in found["sites"]) / 3, 12)

    def test_a_table_that_cannot_be_kept_is_told(self):
        self.private_release()
        self.fedkt(f"train --release release --per-class 4 {SMALL} --quiet --out m")
        line = "personalize --model m --data demo:train --limit 40 --threads 1 --quiet --json --epochs-tune 2"
        small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))}
        for words in ("--sites 1 --out one", "--sites 2 --ways tuned --out many"):
            process = self.start(f"{line} {words}", **small)
            out, said = process.communicate()
            self.assertEqual(process.returncode, 1, said)
            self.assertRegex(said, r"fedkt: cannot write '[\w./]+': File too large\nhint: .*ulimit")
            told = json.loads(out)
            self.fits("personalize", told)
            self.assertNotIn("out", told)
            self.assertEqual([path for path in self.folder.iterdir() if path.name.startswith(("one", "many"))], [])

    def test_ctrl_c_says_what_can_be_gone_on_with(self):
        self.private_release()
        process = self.start(
            "personalize --release release --network resnet8 --per-class 500 --epochs 1000 --model-out n --out sites "
            "--data demo:train --limit 60 --sites 3 --threads 1"
        )
        process.stderr.readline()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("give its model with --model", said)
        self.assertFalse((self.folder / "n").exists() or (self.folder / "sites").exists())


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    binary.main()

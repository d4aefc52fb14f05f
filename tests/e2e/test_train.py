#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_train.py - learning from end to end: kill -9 and Ctrl-C at any moment and the same bits in the end, the same
pictures from a folder and from its release, and what a model says of where it comes from.

Usage: test_train.py FEDKT [test...]

Moments of death come from a fixed seed, spread over the time that the undisturbed run took.
"""

import getpass
import math
import pathlib
import random
import shutil
import signal
import socket
import sys
import time

import binary

import tensors  # from tests/cli, which binary.py puts on the path

KILLS = 12
SMALL = "--model resnet8 --size 16 --epochs 4 --batch 8 --threads 1"


class Train(binary.Case):
    def private_release(self, dim=16):
        """A release whose noise nobody knows, as sites make one stage by stage."""
        self.fedkt(f"task new --data demo:train --epsilon 10 --delta 1e-5 --size 16 --dim {dim} --out task.json")
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
        self.resumed_to_the_same_bits("--data demo:train --limit 60 --held-out 0.2 --ema 0.9")

    def test_from_a_release_drawn_anew(self):
        self.private_release()
        self.resumed_to_the_same_bits("--release release --per-class 6 --fresh")

    def test_ctrl_c(self):
        line = f"train --data demo:train --limit 200 {SMALL} --checkpoint ck --out m"
        self.fedkt(line)
        wanted = self.bytes("m")
        for number in (signal.SIGINT, signal.SIGTERM):
            (self.folder / "m").unlink()
            (self.folder / "ck").unlink()
            process = self.start(line)
            while process.poll() is None and not (self.folder / "ck").exists():
                time.sleep(0.01)
            process.send_signal(number)
            out, said = process.communicate()
            self.assertEqual((process.returncode, out), (1, ""), said)
            self.assertRegex(
                said, r"fedkt: stopped while training; checkpoint 'ck' holds what was learned\nhint: .*--resume"
            )
            self.assertEqual({path.name for path in self.folder.iterdir()}, {"ck"})
            said = self.fedkt(f"{line} --resume --json")
            self.assertTrue(said["resumed"])
            self.assertEqual(len(said["epochs"]), 4)
            self.assertEqual(self.bytes("m"), wanted)

    def test_ctrl_c_while_judging(self):
        """Nearly all pictures are held out, so that most of the time goes into judging them."""
        line = "train --data demo:train --limit 400 --model resnet8 --size 32 --epochs 2 --batch 8 --threads 1"
        line += " --held-out 0.96 --ema 0.9 --checkpoint ck --out m"
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
            stopped += process.returncode == 1
            self.fedkt(f"{line} --resume --force")
            self.assertEqual(self.bytes("m"), wanted)
            self.assertTrue((self.folder / "ck").exists())
        self.assertGreater(stopped, 0, "no run was caught alive")

    def test_ctrl_c_without_a_checkpoint(self):
        process = self.start(f"train --data demo:train --limit 200 {SMALL} --out m")
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        while process.poll() is None and sum(map(int, stat.read_text().split()[13:15])) < 25:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertIn("fedkt: stopped", process.communicate()[1])
        self.assertEqual((process.returncode, list(self.folder.iterdir())), (1, []))


class Origin(Train):
    def train(self, words, out="m"):
        said = self.fedkt(
            f"train {words} --model resnet8 --epochs 1 --batch 16 --threads 1 --quiet --json --out {out} --force"
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
        self.assertIn("started from a model whose file says: 2 pictures drawn per class", began["data"])
        mixed = self.train(f"{release} --mix demo:train --mix-limit 20", "mixed")
        self.assertEqual((mixed["private"], mixed["epsilon"], mixed["delta"]), (False, None, None))
        self.assertEqual(mixed["pictures"], 40)
        self.assertEqual((self.folder / "mixed").stat().st_mode & 0o777, 0o600)
        self.assertNotEqual((self.folder / "pure").stat().st_mode & 0o077, 0)
        self.assertFalse(self.train(f"{release} --teacher mixed")["private"])
        self.assertFalse(self.train(f"{release} --from mixed")["private"])
        self.assertFalse(self.train("--data demo:train --limit 20 --size 16")["private"])
        shutil.copy(next((self.folder / "made").rglob("*.png")), self.folder / "made/train/apple/one-more.png")
        more = self.train("--data made --size 16")
        self.assertFalse(more["private"])
        self.assertIn("NOT private: these are not all and only the pictures", more["data"])

    def test_known_noise_is_not_private(self):
        self.fedkt("task new --data demo:train --epsilon 10 --delta 1e-5 --size 16 --dim 8 --out task.json")
        self.fedkt("moments --task task.json --data demo:train --limit 100 --out moments")
        self.fedkt("release --task task.json --moments moments --ledger l.db --insecure-seed 1 --out release")
        self.fedkt("generate --release release --per-class 2 --out made")
        for words in ("--release release --per-class 2", "--data made --size 16"):
            said = self.train(words)
            self.assertFalse(said["private"])
            self.assertIn("known seed", said["data"])
        self.fedkt("simulate --data demo:train --limit 100 --size 16 --dim 8 --epsilon 10 --delta 1e-5 --out run")
        words = "made by a simulation, which keeps no ledger: other releases of the same records are not counted"
        self.fedkt("generate --release run/release.safetensors --per-class 2 --out simulated")
        for where in ("--release run/release.safetensors --per-class 2", "--data simulated --size 16"):
            said = self.train(where)
            self.assertEqual((said["private"], said["epsilon"], said["delta"]), (True, 10, 1e-5))
            self.assertIn(words, said["data"])

    def test_two_kinds_of_neighbours(self):
        self.private_release()
        self.train("--release release --per-class 2", "pure")
        task = "task new --data demo:train --epsilon 10 --delta 1e-5 --size 16 --dim 16"
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
        """Weights that saw real pictures do not get rid of that in a checkpoint."""
        self.private_release()
        self.train("--data demo:train --limit 20 --size 16", "real")
        line = "train --release release --per-class 2 --model resnet8 --epochs 2 --batch 8 --threads 1 --quiet --json"
        self.fedkt(f"{line} --from real --checkpoint ck --out a")
        self.assertFalse(self.fedkt(f"{line} --from real --checkpoint ck --resume --out b")["private"])
        process = self.start(f"{line} --checkpoint ck --resume --out c")
        said = process.communicate()[1]
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("another run: its checksum of the weights at the start", said)
        self.assertEqual((self.folder / "ck").stat().st_mode & 0o777, 0o600)

    def test_no_place_travels(self):
        """Where pictures lie, on whose machine: models, checkpoints and curves go further than that should."""
        self.private_release()
        self.fedkt("generate --release release --per-class 2 --out ward-seven/photos")
        for name in ("extra", "judges"):
            shutil.copytree(self.folder / "ward-seven/photos", self.folder / "ward-seven" / name)
        line = (
            "train --data ward-seven/photos --mix ward-seven/extra --test ward-seven/judges --size 16 --model resnet8 "
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
        line += "--tensorboard events --ema 0.5 --ema-out e --held-out 0.25 --test demo:test --test-limit 40"
        said = self.fedkt(f"{line} --through-codec --json")
        self.fits("train", said)
        self.assertEqual((said["pictures"], said["held_out"], said["test"]["n"]), (30, 10, 40))
        self.assertEqual(len(said["epochs"]), 4)
        self.assertEqual(len(self.bytes("c.csv").splitlines()), 5)
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
        text = self.fedkt("evaluate --model m --data demo:test --limit 40 --through-codec --release release")
        plain, through = [number for number, words in enumerate(text.splitlines()) if words.startswith("accuracy")]
        self.assertEqual((plain, through), (0, 1))
        self.assertIn("its file says: private: epsilon 10, delta 1e-05 (add-remove)", text)

    def test_the_drawing_is_the_curve(self):
        """Every column shows the accuracies of the epoch that it stands for, the first ones too."""
        for epochs, wide in ((3, 6), (61, 0)):
            line = f"train --data demo:train --limit 20 --model resnet8 --size 8 --epochs {epochs} --batch 10"
            text = self.fedkt(f"{line} --threads 1 --held-out 0.5 --quiet --curves c.csv --out m --force").splitlines()
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
        """A file from PyTorch names no classes and no size: they are the pictures', and its last layer is kept."""
        self.private_release()
        line = "train --release release --per-class 4 --epochs 1 --batch 10 --threads 1 --quiet"
        self.fedkt(f"{line} --model resnet8 --out m")
        tensors.save(self.folder / "bare", {**tensors.load(self.folder / "m"), "meta": {}})
        self.fedkt(f"{line} --from bare --rate 1e-30 --out same")
        for name, tensor in self.weights("m").items():
            if "running" not in name and "tracked" not in name:
                self.assertEqual(self.weights("same")[name], tensor, name)
        said = self.fedkt(f"{line} --model resnet8 --teacher bare --json --out taught")
        self.assertEqual((said["model"]["size"], said["model"]["classes"][0]), (16, "apple"))
        self.assertFalse(said["private"])
        named = self.fedkt(f"{line} --model resnet8 --teacher m --json --out taught --force")
        self.assertEqual(said["epochs"][0]["loss"], named["epochs"][0]["loss"])

    def test_it_learns(self):
        """Two easy classes: a run that learns nothing would stay near one half."""
        from PIL import Image

        chance = random.Random(5)
        for name, base in (("dark", 60), ("light", 180)):
            (self.folder / "set" / name).mkdir(parents=True)
            for i in range(40):
                shade = [max(0, min(255, base + chance.randint(-40, 40))) for _ in range(3)]
                Image.new("RGB", (16, 16), tuple(shade)).save(self.folder / "set" / name / f"{i}.png")
        said = self.fedkt(f"train --data set {SMALL} --held-out 0.25 --quiet --json --out m")
        self.assertGreater(said["epochs"][-1]["held_accuracy"], 0.9)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    binary.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_card.py - a synthetic set as others load it: labels in the order of the task's classes, whatever their names,
with the columns that the card promises.

Usage: test_card.py FEDKT [test...]

`Card` reads the files by the rules of torchvision's ImageFolder and of the card's YAML. `Library` asks Hugging Face's
`datasets` itself, from the Python that FEDKT_PEERS_PYTHON names (a virtual environment with `pip install datasets`);
without one it is skipped and says so.
"""

import json
import os
import subprocess
import unittest

import binary

import numpy
import yaml

PYTHON = os.environ.get("FEDKT_PEERS_PYTHON")
CLASSES = ["road", "a/b", 'Zoo: "wild" <x>', "apple", "null", "\u00e9tang", "7"]
EACH = 4
LOAD = """
import json, sys, datasets
datasets.disable_progress_bars()
found = {}
for name, words, options in (("card", ["set"], {}), ("imagefolder", ["imagefolder"], {"data_dir": "set"})):
    data = datasets.load_dataset(*words, split="train", cache_dir="cache", **options)
    found[name] = {"columns": sorted(data.features), "labels": list(data["label"]), "classes": list(data["class"]),
                   "names": getattr(data.features["label"], "names", None), "size": data[0]["image"].size}
json.dump(found, sys.stdout)
"""


class Made(binary.Case):
    """A set of a task whose classes are in no order and whose names no file system or parser likes."""

    def setUp(self):
        super().setUp()
        chance = numpy.random.default_rng(1)
        images = chance.integers(0, 256, (10 * len(CLASSES), 16, 16, 3), dtype=numpy.uint8)
        labels = numpy.arange(len(images), dtype=numpy.uint8)[:, None] % len(CLASSES)
        numpy.savez(self.folder / "real.npz", train_images=images, train_labels=labels)
        words = ",".join(CLASSES).replace('"', '\\"')
        self.fedkt(
            f'task new --codec dct --classes "{words}" --epsilon 10 --delta 1e-5 '
            '--size 16 --dim 8 --out task.json'
        )
        self.fedkt("moments --task task.json --data real.npz --out moments --quiet")
        self.fedkt("release --task task.json --moments moments --ledger l.db --out release --quiet")
        self.fedkt(f"generate --release release --per-class {EACH} --out set --quiet")
        self.wanted = [k for k in range(len(CLASSES)) for _ in range(EACH)]


class Card(Made):
    def test_the_card_states_what_is_there(self):
        head = (self.folder / "set/README.md").read_text().split("---\n")[1]
        config = yaml.safe_load(head)["configs"][0]
        self.assertEqual(config["data_files"], [{"split": "train", "path": "train/**"}])
        columns = {feature["name"]: feature["dtype"] for feature in config["features"]}
        self.assertEqual(columns["label"]["class_label"]["names"], {str(k): name for k, name in enumerate(CLASSES)})
        self.assertEqual(json.loads(self.bytes("set/classes.json")), CLASSES)
        rows = [json.loads(line) for line in self.bytes("set/train/metadata.jsonl").splitlines()]
        self.assertEqual([row["label"] for row in rows], self.wanted)
        for row in rows:
            self.assertEqual({"image", *row} - {"file_name"}, set(columns))
            self.assertEqual(row["class"], CLASSES[row["label"]])
            self.assertTrue((self.folder / "set/train" / row["file_name"]).is_file())

    def test_folders_are_in_the_order_of_the_labels(self):
        """torchvision's find_classes: the sorted names of the folders."""
        folders = sorted(entry.name for entry in os.scandir(self.folder / "set/train") if entry.is_dir())
        rows = [json.loads(line) for line in self.bytes("set/train/metadata.jsonl").splitlines()]
        for row in rows:
            self.assertEqual(folders.index(row["file_name"].split("/")[0]), row["label"])

    def test_fedkt_reads_the_names_back(self):
        """The classes of the folders are those of the task, so that a task with these classes takes the set."""
        for data in ("set", "real.npz"):
            self.fedkt(f"moments --task task.json --data {data} --out back --quiet --force")
        model = "--size 16 --network resnet8 --epochs 1 --quiet --out model"
        said = self.fedkt(f"train --data set {model} --json")
        self.assertTrue(said["private"], said["data"])  # the classes are part of what images.json vouches for


class Library(Made):
    @unittest.skipUnless(PYTHON, "FEDKT_PEERS_PYTHON names no Python with Hugging Face's datasets")
    def test_datasets_gives_our_labels(self):
        done = subprocess.run(
            [PYTHON, "-c", LOAD],
            cwd=self.folder,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(self.folder / "home")},
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        for way, found in json.loads(done.stdout).items():
            self.assertEqual(found["columns"], ["class", "image", "label"], way)
            self.assertEqual(sorted(zip(found["labels"], found["classes"])), [(k, CLASSES[k]) for k in self.wanted])
            self.assertEqual(found["size"], [16, 16])
            self.assertEqual(found["names"], CLASSES if way == "card" else None)


if __name__ == "__main__":
    binary.main()

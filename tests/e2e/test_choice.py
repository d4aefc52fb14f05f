#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_choice.py - one record more changes the exact moments of a simulation by exactly that record, or not at all, and
nothing that is published tells the size of the set. Where --limit makes an exception, a line says so.

Usage: test_choice.py FEDKT [test...]

The privacy of a release rests on it: hold-out, partition, participation and drop-outs decide which records enter the
sum, and none of them may let one record decide about another. Sets of random images are simulated, then again with one
file more (add-remove) or with another image in one file (replace), and the sums without noise are compared.
"""

import random
import re
import shutil

import binary

import numpy
import tensors
from PIL import Image

CLASSES = ["ant", "bee", "cat", "dog"]
RULES = ["iid", "dirichlet:0.3", "pfllib:0.5", "pathological:2"]
RQ = 256
CHOICES = "--holdout 0.3 --sites 9 --participation 0.7 --dropout 0.2"


def blocks(path):
    """(class, (1 + m), (1 + m)): the upper triangle holds the count, the sum and the second moment of a class."""
    dtype, shape, raw = tensors.load(path)["tensors"]["moments"]
    assert dtype == "I64"
    packed = numpy.frombuffer(raw, "<i8").reshape(shape)
    side = int((8 * shape[1] + 1) ** 0.5 - 1) // 2
    out = numpy.zeros((shape[0], side, side), numpy.int64)
    rows, columns = numpy.triu_indices(side)
    out[:, rows, columns] = packed
    return out


class Choice(binary.Case):
    def image(self, draw, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        small = numpy.frombuffer(draw.randbytes(3 * 4 * 4), numpy.uint8).reshape(4, 4, 3)
        Image.fromarray(small).resize((16, 16), Image.Resampling.BICUBIC).save(path)

    def fill(self, draw, root):
        for name in CLASSES:
            for i in range(draw.randrange(6, 25)):
                self.image(draw, root / name / f"{i:03}.png")

    def moments(self, rule, seed, more=""):
        self.fedkt(
            f"simulate --codec dct --data set {CHOICES} --partition {rule} --seed {seed} {more}"
            " --epsilon 10 --delta 1e-5 --out run --force --quiet"
        )
        return blocks(self.folder / "run" / "moments.safetensors")

    def check_one_record(self, change, label):
        """Whether the record is in the sum; anything but nothing or this one record fails."""
        others = [k for k in range(len(CLASSES)) if k != label]
        self.assertFalse(change[others].any(), "a record of another class moved")
        mine = change[label]
        if not mine.any():
            return False
        q = mine[0]
        self.assertEqual(q[0], 1, "the count changed by something else than one record")
        self.assertLessEqual(int((q[1:] ** 2).sum()), RQ * RQ, "the sum changed by more than the radius")
        self.assertTrue((mine == numpy.triu(numpy.outer(q, q))).all(), "the second moment is not that of one record")
        return True

    def test_one_file_more(self):
        entered = 0
        for number, rule in enumerate(RULES):
            draw = random.Random(number)
            self.fill(draw, self.folder / "set")
            before = self.moments(rule, number)
            for turn in range(4):  # files stay: each is one more than all before it
                label = draw.randrange(len(CLASSES))
                name = f"{draw.randrange(1000):03}x.png"  # anywhere in the order of names
                self.image(draw, self.folder / "set" / CLASSES[label] / name)
                after = self.moments(rule, number)
                with self.subTest(rule=rule, turn=turn):
                    entered += self.check_one_record(after - before, label)
                before = after
            shutil.rmtree(self.folder / "set")
        self.assertTrue(0 < entered < 4 * len(RULES), "both happen: in the sum, and held out or lost")

    def check_another_image(self, more, turns):
        """Under `replace` the counts are published without noise: a record that is changed stays where it is."""
        draw = random.Random(7)
        self.fill(draw, self.folder / "set")
        before = self.moments("dirichlet:0.3", 1, more)
        moved = 0
        for turn in range(turns):
            label = draw.randrange(len(CLASSES))
            files = sorted((self.folder / "set" / CLASSES[label]).iterdir())
            self.image(draw, draw.choice(files))
            after = self.moments("dirichlet:0.3", 1, more)
            change = after - before
            with self.subTest(turn=turn):
                self.assertFalse(change[:, 0, 0].any(), "a count has changed")
                self.assertFalse(change[[k for k in range(len(CLASSES)) if k != label]].any())
                self.assertLessEqual(int((change[label][0, 1:] ** 2).sum()), 4 * RQ * RQ)
                eigen = numpy.linalg.eigvalsh(change[label][1:, 1:] + numpy.triu(change[label][1:, 1:], 1).T)
                self.assertLessEqual(int((abs(eigen) > 1e-6 * RQ * RQ).sum()), 2, "q q^T - p p^T has rank two")
            moved += bool(change.any())
            before = after
        self.assertTrue(0 < moved < turns, "both happen: in the sum, and not")

    def test_another_image_in_a_file(self):
        self.check_another_image("--adjacency replace", 6)

    def test_another_image_in_a_file_with_a_limit(self):
        """Which records --limit keeps, and how they are numbered then, does not depend on pixels either."""
        self.check_another_image("--adjacency replace --limit 30", 12)

    def test_a_limit_is_remarked_on(self):
        """The promise for the whole set is weaker then; under `replace` it is not."""
        self.fill(random.Random(3), self.folder / "set")
        budget = "--epsilon 10 --delta 1e-5"
        for adjacency, weaker in (("add-remove", True), ("replace-any", True), ("replace", False)):
            self.fedkt(f"task new --codec dct --data set {budget} --adjacency {adjacency} --out t.json --force")
            for line in (
                f"simulate --codec dct --data set --sites 5 {budget} --adjacency {adjacency}",
                "moments --task t.json --data set --out m.safetensors --force",
            ):
                for more in ("", " --limit 20", " --limit 20 --json"):
                    with self.subTest(line=line + more):
                        process = self.start(line + more)
                        told = process.communicate(timeout=300)[1]
                        self.assertEqual(process.returncode, 0, told)
                        self.assertEqual("with --limit the promise covers" in told, weaker and more != "", told)

    def test_what_is_published_does_not_know_the_size(self):
        """Sets of 40 and 400 records: but for noised numbers and what is drawn from them, the same bytes."""
        published = []
        for limit in (40, 400):
            self.fedkt(
                f"simulate --codec dct --data demo:train --limit {limit} --sites 5 --epsilon 10 "
                "--delta 1e-5 --insecure-seed 3"
                f" --per-class 1 --out run-{limit} --quiet"
            )
            run = self.folder / f"run-{limit}"
            files = {"task.json": (run / "task.json").read_text()}
            for name in ("certificate.json", "synthetic/certificate.json", "synthetic/README.md"):
                text = re.sub(r"\b[0-9a-f]{12,64}\b", "HASH", (run / name).read_text())
                files[name] = re.sub(r" \(below the noise[^)]*\)", "", text)  # read off the noised numbers
            release = tensors.load(run / "release.safetensors")
            files["release"] = {name: tensor[:2] for name, tensor in release["tensors"].items()}
            files["release meta"] = {
                key: re.sub(r"\b[0-9a-f]{12,64}\b", "HASH", text) for key, text in release["meta"].items()
            }
            published.append(files)
        for name, text in published[0].items():
            with self.subTest(file=name):
                self.assertEqual(text, published[1][name])


if __name__ == "__main__":
    binary.main()

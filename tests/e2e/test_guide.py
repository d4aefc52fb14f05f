#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_guide.py - bench/guide.py: the order of cells, pieces for a transfer, and students under a limit of time.

Usage: test_guide.py FEDKT [test...]
"""

import os
import subprocess
import sys
import tarfile

import binary

import fixtures  # from tests/cli, which binary.py puts on the path

sys.path.insert(0, str(binary.ROOT / "bench"))

import guide_cells
import guide_pack
import numpy


class Order(binary.Case):
    def test_the_most_important_cells_come_first(self):
        cells = guide_cells.students()
        self.assertEqual(len(cells), len(set(cells)))
        first = {"cifar10", "eurosat"}
        for name, arm, noise, epsilon, _ in cells[:12]:
            self.assertEqual((arm, noise), ("all images", "central"))
            self.assertTrue(name in first and epsilon in ("1", "10"))
        others = set(guide_cells.ARMS) - {"all images"} - set(guide_cells.EXTRA)
        second = [c for c in cells if guide_cells.level(c) == 1]
        self.assertEqual(cells[12 : 12 + len(second)], second)
        self.assertEqual({c[:2] for c in second}, {(name, arm) for name in first for arm in others})
        self.assertEqual({c[4] for c in second}, {0})
        levels = [guide_cells.level(c) for c in cells]
        self.assertEqual(levels, sorted(levels))
        self.assertEqual({c[1] for c in cells if guide_cells.level(c) == 6}, set(guide_cells.EXTRA))


class Pieces(binary.Case):
    def test_every_byte_once_and_no_piece_too_large(self):
        rng = numpy.random.default_rng(1)
        for limit in (10240, 20480, 51199, 102400):
            sizes = [int(n) for n in rng.integers(0, 60000, 40)]
            found = guide_pack.cuts(sizes, limit)
            used = {}
            for size, parts in zip(sizes, found):
                self.assertEqual([p[1] for p in parts], [0, *(p[2] for p in parts[:-1])])
                self.assertEqual(parts[-1][2], size)
                for piece, at, end in parts:
                    self.assertTrue(at < end or size == 0)
                    used[piece] = used.get(piece, 1024) + 512 + (end - at + 511) // 512 * 512
            self.assertLessEqual(max(used.values()), limit // 10240 * 10240)
            self.assertEqual(sorted(used), list(range(len(used))))

    def guide(self, *words):
        script = str(binary.ROOT / "bench" / "guide.py")
        return subprocess.run([sys.executable, "-B", script, *words], cwd=self.folder, check=True)

    def test_there_and_back(self):
        rng = numpy.random.default_rng(2)
        here = self.folder / "here"
        files = {"sets/cifar10-test.tar": 30000, "sets/cifar10-real.tar": 150000, "sets/public.tar": 7}
        files["runs/cifar10-own-central-0/eps-1/release.safetensors"] = 5000
        files["runs/cifar10-own-distributed-2/eps-0.3/release.safetensors"] = 5000
        for name, size in files.items():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_bytes(rng.bytes(size))
        guide_pack.write_pieces(str(here), 51200)
        pieces = sorted((here / "pieces").iterdir())
        self.assertGreater(len(pieces), 3)
        self.assertTrue(all(p.stat().st_size <= 51200 for p in pieces))
        with tarfile.open(pieces[0]) as tar:
            self.assertEqual(tar.getnames()[0], "runs/cifar10-own-central-0/eps-1/release.safetensors.xz")
            self.assertIn("runs/cifar10-own-distributed-2/eps-0.3/release.safetensors.xz", tar.getnames())
        with tarfile.open(pieces[-1]) as tar:
            self.assertEqual(tar.getnames(), ["sets/cifar10-real.tar.xz.3-of-4"])
        self.guide("unpack", "--out", "there", *map(str, pieces[:0:-1]))
        self.assertFalse((self.folder / "there/sets/cifar10-test.tar").exists())
        self.guide("unpack", "--out", "there", str(pieces[0]))
        for name in files:
            self.assertEqual((self.folder / "there" / name).read_bytes(), (here / name).read_bytes())


class Students(binary.Case):
    """The bound on real images, which needs no release and no guide."""

    def setUp(self):
        super().setUp()
        (self.folder / "far/sets").mkdir(parents=True)
        for name in ("cifar10", "eurosat", "imagenette"):
            for split in ("real", "test"):
                source = self.folder / name / split
                fixtures.image_folder(source, ["a", "b"], 10)
                guide_pack.pack_images(str(source), str(self.folder / "far/sets" / f"{name}-{split}.tar"))

    def card(self, *words):
        script = str(binary.ROOT / "bench" / "guide.py")
        command = [sys.executable, "-B", script, "card", "--quick", "--fedkt", binary.FEDKT, "--out", "far"]
        done = subprocess.run([*command, "--device", "cpu", *words], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        cells = self.folder / "far/cells"
        return done.returncode, done.stderr, sorted(os.listdir(cells)) if cells.exists() else []

    def test_several_at_once_and_no_cell_twice(self):
        code, text, cells = self.card("--workers", "2", "--sets", "cifar10,eurosat")
        self.assertEqual((code, len(cells)), (0, 2), text)
        self.assertIn("2 cells to do, 0 done, 2 at once", text)
        code, text, cells = self.card("--workers", "2")
        self.assertEqual((code, len(cells)), (0, 3), text)
        self.assertIn("1 cells to do, 2 done", text)
        folder = str(self.folder / "far")
        script = [sys.executable, "-B", str(binary.ROOT / "bench" / "guide.py"), "report", folder]
        table = subprocess.run(script, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        self.assertRegex(table, r"\| CIFAR-10 \| real \|  \|  \|  \|  \| [0-9.]+ \| 1 \| [0-9]+ \(2 at once\) \|")

    def test_what_cannot_end_is_not_begun(self):
        code, text, cells = self.card("--seconds", "20", "--cell", "30")
        self.assertEqual((code, cells), (0, []), text)
        self.assertIn("3 cells are not begun, 0 failed", text)

    def test_what_has_not_ended_is_killed(self):
        image = self.folder / "cifar10/real/a/00.png"
        with tarfile.open(self.folder / "far/sets/cifar10-real.tar", "w") as tar:
            for i in range(20000):  # minutes of training
                tar.add(image, f"{'ab'[i % 2]}/{i}.png")
        code, text, cells = self.card("--workers", "2", "--seconds", "2", "--cell", "0", "--sets", "cifar10")
        self.assertEqual((code, cells), (1, []), text)
        self.assertIn("killed", text)


if __name__ == "__main__":
    binary.main()

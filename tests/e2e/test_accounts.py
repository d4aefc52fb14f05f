#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_accounts.py - attacks on the accounts of a ledger, through the binary alone.

Usage: test_accounts.py FEDKT [test...]

Nothing that a release publishes may tell whether a record was withdrawn since the last one, beyond the noised numbers;
the same images cost again under any task; an image is in a release once; and a full disk costs nothing.
"""

import pathlib
import re
import resource
import shutil
import subprocess
import tempfile

import binary

import numpy
from PIL import Image

import fixtures
import tensors

BUDGET = "--budget-epsilon 9 --budget-delta 1e-5"
HASHES = {"noised_moments_sha256", "release", "release_sha256"}


def words_of(card):
    """A dataset card without what depends on the noised numbers: hashes, and which classes are below the noise."""
    card = re.sub(r"`[0-9a-f]{64}`", "", card)
    return re.sub(r" \(below the noise[^)]*\)", "", card)


class Accounts(binary.Case):
    def setUp(self):
        super().setUp()
        fixtures.image_folder(self.folder / "photos", ["a", "b"], 8)

    def task(self, name, words="--classes a,b --dim 16", title="wards"):
        self.fedkt(f"task new --codec dct --name {title} --epsilon 1 --delta 1e-5 {words} --out {name}.json")

    def moments(self, name, task="task", data="photos"):
        self.fedkt(f"moments --task {task}.json --data {data} --out {name}.safetensors")

    def refused(self, line, *words):
        done = subprocess.run(self.words(line), cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertNotEqual(done.returncode, 0, line)
        for word in words:
            self.assertIn(word, done.stderr)

    def release(self, name, task="task", ledger="l.db", words=""):
        line = f"release --task {task}.json --moments {name}.safetensors --ledger {ledger} {words}"
        return self.fedkt(f"{line} --out {name}-{task}.release --json")


class Oracle(Accounts):
    """Two releases with one ledger: the records of the second one are the same, one less, one more, or others."""

    def second(self, kind):
        folder = self.folder / kind
        if kind == "others":
            fixtures.image_folder(folder, ["a", "b"], 8, first_seed=40)
            return
        shutil.copytree(self.folder / "photos", folder)
        if kind == "withdrawn":
            (folder / "a" / "03.png").unlink()
        if kind == "joined":
            fixtures.image_folder(self.folder / "new", ["a"], 1, first_seed=90)
            shutil.copy(self.folder / "new" / "a" / "00.png", folder / "b" / "new.png")
        if kind == "copied":
            shutil.copy(folder / "a" / "03.png", folder / "a" / "again.png")

    def test_what_is_published_does_not_tell(self):
        self.task("task")
        self.moments("first")
        told, cards, shown = {}, {}, {}
        for kind in ("unchanged", "withdrawn", "joined", "copied", "others"):
            ledger = f"{kind}.db"
            self.second(kind)
            self.moments(kind, data=kind)
            self.release("first", ledger=ledger, words=BUDGET + " --force")
            told[kind] = self.release(kind, ledger=ledger)
            self.fedkt(f"generate --release {kind}-task.release --per-class 1 --out {kind}-made")
            cards[kind] = words_of(self.bytes(f"{kind}-made/README.md").decode())
            self.assertAlmostEqual(told[kind]["composed_epsilon"], 1.46517, places=4)
            told[kind] = {key: value for key, value in told[kind].items() if key not in HASHES}
            (account,) = self.fedkt(f"ledger --ledger {ledger} --json")["accounts"]
            shown[kind] = account.get("images")
        for kind in told:
            self.assertEqual(told[kind], told["unchanged"], kind)
            self.assertEqual(cards[kind], cards["unchanged"], kind)
        self.assertIn("together with them it is epsilon = 1.465", cards["unchanged"])
        self.assertEqual(shown, {"unchanged": 16, "withdrawn": 16, "joined": 17, "copied": 16, "others": 32})

    def test_a_second_release_is_refused_whatever_its_records(self):
        self.task("task")
        self.moments("first")
        self.release("first")
        for kind in ("unchanged", "withdrawn", "joined", "others"):
            self.second(kind)
            self.moments(kind, data=kind)
            before = self.bytes("l.db")
            self.refused(
                f"release --task task.json --moments {kind}.safetensors --ledger l.db --out no", "dataset 'wards'"
            )
            self.assertEqual(self.bytes("l.db"), before)


class Tasks(Accounts):
    """The same images under another task are charged to the same account, or refused."""

    OTHERS = {
        "rq": "--classes a,b --dim 16 --rq 255",
        "dim": "--classes a,b --dim 32",
        "gamma": "--classes a,b --dim 16 --gamma 0.351",
        "order": "--classes b,a --dim 16",
        "size": "--classes a,b --dim 16 --size 16",
    }

    def test_another_task(self):
        self.task("task")
        self.moments("m")
        self.release("m")
        for kind, words in self.OTHERS.items():
            for title in ("wards", f"named-{kind}"):
                self.task(kind, f"{words} --force", title)
                self.fedkt(f"moments --task {kind}.json --data photos --out {kind}.safetensors --force")
                line = f"release --task {kind}.json --moments {kind}.safetensors --ledger l.db --out no"
                self.refused(line, "hint: ")
                self.refused(f"{line} --dataset wards", "no budget left for dataset 'wards'")
                if title != "wards":
                    self.refused(line, "knows 16 of these 16 images under dataset 'wards'", "--dataset 'wards'")
        spent = self.release("rq", "rq", words=f"--dataset wards {BUDGET}")["composed_epsilon"]
        self.assertAlmostEqual(spent, 1.46517, places=4)
        spent = self.release("order", "order", words="--dataset wards")["composed_epsilon"]
        self.assertGreater(spent, 1.8)
        (account,) = self.fedkt("ledger --ledger l.db --json")["accounts"]
        self.assertEqual((account["dataset"], len(account["entries"])), ("wards", 3))

    def test_one_image_is_enough(self):
        self.task("task")
        self.moments("m")
        self.release("m")
        fixtures.image_folder(self.folder / "others", ["a", "b"], 4, first_seed=40)
        shutil.copy(self.folder / "photos" / "b" / "02.png", self.folder / "others" / "a" / "borrowed.png")
        self.moments("o", data="others")
        line = "release --task task.json --moments o.safetensors --ledger l.db --dataset others --out no"
        self.refused(line, "knows 1 of these 9 images under dataset 'wards', not under 'others'")
        (self.folder / "others" / "a" / "borrowed.png").unlink()
        self.fedkt("moments --task task.json --data others --out o.safetensors --force")
        self.fedkt(line)

    def test_latents_carry_their_images(self):
        self.task("task")
        self.moments("m")
        self.release("m")
        self.task("again", "--classes a,b --dim 16 --rq 512", "again")
        self.fedkt("encode --task task.json --data photos --out z.safetensors")
        self.fedkt("moments --task again.json --latents z.safetensors --out z-again.safetensors")
        self.refused(
            "release --task again.json --moments z-again.safetensors --ledger l.db --out no",
            "knows 16 of these 16 images under dataset 'wards'",
        )


class Once(Accounts):
    """An image enters one release once."""

    def counts(self, name):
        kind, shape, data = tensors.load(self.folder / f"{name}.safetensors")["tensors"]["moments"]
        self.assertEqual(kind, "I64")
        return [int.from_bytes(data[8 * k * shape[1] :][:8], "little") for k in range(shape[0])]

    def test_files_that_share_images(self):
        self.task("task")
        self.moments("m1")
        part = self.folder / "part"
        (part / "a").mkdir(parents=True)
        for name in ("00.png", "01.png"):
            shutil.copy(self.folder / "photos" / "a" / name, part / "a")
        fixtures.image_folder(part, ["b"], 3, first_seed=60)
        self.moments("m6", data="part")
        for files in ("m1.safetensors,m6.safetensors", "m6.safetensors,m1.safetensors"):
            self.refused(
                f"release --task task.json --moments {files} --ledger l.db --out no",
                "'m1.safetensors'",
                "'m6.safetensors'",
                "share 2 images",
            )
        self.assertFalse((self.folder / "l.db").exists() or (self.folder / "no").exists())

    def test_copies_count_once(self):
        for path in list((self.folder / "photos" / "a").iterdir())[:3]:
            shutil.copy(path, path.with_name(f"copy-{path.name}"))
        shutil.copy(self.folder / "photos" / "a" / "00.png", self.folder / "photos" / "b" / "other-label.png")
        for adjacency, counts in (("add-remove", [8, 9]), ("replace-any", [8, 9]), ("replace", [11, 9])):
            self.task("task", f"--classes a,b --dim 16 --adjacency {adjacency} --force")
            for words in ("--data photos --threads 1", "--data photos --threads 3", "--latents z.safetensors"):
                self.fedkt("encode --task task.json --data photos --out z.safetensors --force")
                line = f"moments --task task.json {words} --out m.safetensors --force --json"
                told = self.fedkt(line)
                self.assertEqual(self.counts("m"), counts)
                self.assertEqual((told["records"], told["copies"]), (sum(counts), 3))
            done = subprocess.run(self.words(line), cwd=self.folder, capture_output=True, text=True, timeout=300)
            said = "each counts as a record of its own" if adjacency == "replace" else "such copies count once"
            self.assertIn(f"3 records have the pixels and the label of another one: {said}", done.stderr)

    def test_a_simulation_counts_copies_once_over_all_sites(self):
        words = "simulate --codec dct --data photos --epsilon 5 --delta 1e-5 --dim 8"
        words += " --insecure-seed 3 --noise central --json"
        plain = self.fedkt(f"{words} --sites 1 --partition iid")
        for path in list((self.folder / "photos").rglob("*.png")):
            shutil.copy(path, path.with_name(f"copy-{path.name}"))
        for clients in (1, 2, 5):
            told = self.fedkt(f"{words} --sites {clients} --partition iid --out run{clients}")
            self.assertEqual((told["records"], told["moments_sha256"]), (16, plain["moments_sha256"]), clients)
            kind, shape, _ = tensors.load(self.folder / f"run{clients}" / "moments.safetensors")["tensors"]["records"]
            self.assertEqual((kind, shape), ("U8", [16, 16]))
        self.assertNotIn(plain["moments_sha256"], pathlib.Path(self.folder / "run2" / "report.html").read_text())


class Depth(Accounts):
    """The depth that is stated for 16-bit samples changes what is summed, not which images these are."""

    def setUp(self):
        super().setUp()
        chance = numpy.random.default_rng(7)
        for i in range(40):
            path = self.folder / "scans" / "ab"[i % 2] / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(chance.integers(0, 4096, (20, 20), numpy.uint16)).save(path)

    def summed(self, bits, more="", out=None):
        out = out or f"m{bits}"
        self.fedkt(f"moments --task task.json --data scans --bits {bits} --out {out}.safetensors --force {more}")
        return tensors.load(self.folder / f"{out}.safetensors")["tensors"]

    def test_one_account_and_once_in_a_release(self):
        self.task("task")
        twelve, thirteen = self.summed(12), self.summed(13)
        self.assertNotEqual(twelve["moments"], thirteen["moments"])
        self.assertEqual(twelve["records"], thirteen["records"])
        self.release("m12")
        line = "release --task task.json --ledger l.db --dataset others --out no --moments"
        self.refused(f"{line} m13.safetensors", "knows 40 of these 40 images under dataset 'wards', not under 'others'")
        self.refused(f"{line} m12.safetensors,m13.safetensors", "share 40 images")

    def test_kept_encodings_are_of_one_depth(self):
        self.task("task")
        kept = [self.summed(bits, "--encodings kept", "kept") for bits in (12, 13, 12)]
        self.assertEqual(kept, [self.summed(bits) for bits in (12, 13, 12)])

    def test_a_calibration_knows_them(self):
        self.fedkt("codec calibrate --public scans --bits 16 --dim 8 --out cal")
        self.task("task", "--classes a,b --dim 8 --calibration cal")
        for bits in (12, 13, 16):
            self.refused(
                f"moments --task task.json --calibration cal --data scans --bits {bits} --out no",
                "40 of 40 private images are among those that calibration 'cal' was made of",
            )


class FullDisk(Accounts):
    """A release is paid for and there, or neither."""

    def setUp(self):
        super().setUp()
        self.task("task", "--classes a,b --dim 100")
        self.moments("m")
        self.release("m", words="--budget-epsilon 500 --budget-delta 1e-5 --accept-weak-promise")
        self.large = (self.folder / "m-task.release").stat().st_size

    def entries(self, ledger):
        return len(self.fedkt(f"ledger --ledger {ledger} --json")["accounts"][0]["entries"])

    def run_limited(self, line, limit):
        def lower():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.run(
            self.words(line), cwd=self.folder, capture_output=True, text=True, timeout=300, preexec_fn=lower
        )

    def test_a_limit_on_the_size_of_files(self):
        line = "release --task task.json --moments m.safetensors --ledger l.db --out r"
        before = self.bytes("l.db")
        for limit in (self.large - 1, self.large // 2, 4096, 1):
            done = self.run_limited(line, limit)
            self.assertEqual((done.returncode, (self.folder / "r").exists()), (1, False), done.stderr)
            self.assertIn("cannot write 'r'", done.stderr)
            self.assertNotIn("has paid", done.stderr)
            self.assertEqual(self.bytes("l.db"), before)
            self.assertEqual([path.name for path in self.folder.iterdir() if ".tmp-" in path.name], [])
        done = self.run_limited(line, 4 * self.large)
        self.assertEqual((done.returncode, self.entries("l.db")), (0, 2), done.stderr)
        # What was reserved beyond its end is gone.
        self.assertLess(abs((self.folder / "r").stat().st_size - self.large), 200)

    def test_every_size_of_a_small_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        outcomes = set()
        for size in range((self.folder / "l.db").stat().st_size + 4096, 3 * self.large, 12288):
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
            if subprocess.run(mount, capture_output=True).returncode:
                self.skipTest("needs the right to mount")
            try:
                shutil.copy(self.folder / "l.db", disk / "l.db")
                line = "release --task task.json --moments m.safetensors --ledger disk/l.db --out disk/r"
                done = subprocess.run(self.words(line), cwd=self.folder, capture_output=True, text=True, timeout=300)
                seen = pathlib.Path(tempfile.mkdtemp(dir=self.folder))  # a full disk is no place to read a ledger
                for path in disk.glob("l.db*"):
                    shutil.copy(path, seen)
                made, paid = (disk / "r").exists(), self.entries(seen / "l.db") - 1
                self.assertEqual((made, paid), (done.returncode == 0,) * 2, f"{size} bytes: {done.stderr}")
                self.assertEqual([path.name for path in disk.iterdir() if ".tmp-" in path.name], [])
                outcomes.add("released" if made else re.match("fedkt: cannot [a-z ]+ '(.*?)'", done.stderr)[1])
            finally:
                subprocess.run(["umount", str(disk)], check=True)
        self.assertIn("released", outcomes)
        self.assertIn("disk/r", outcomes)
        self.assertTrue(any(name.endswith("l.db") for name in outcomes), outcomes)  # there is room for the file alone


if __name__ == "__main__":
    binary.main()

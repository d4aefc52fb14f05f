#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_mpi.py - encode, moments, simulate and experiment on several processes that mpirun connects.

Usage: test_mpi.py FEDKT [test...]

The files of 2, 3, 4 and 7 processes have the bytes of one, with shards that are uneven or empty. A failure on one
process ends all, with one sentence. A process that is killed ends the others, and there is no output.
Without mpirun or the plug-in the test is skipped; so it is where mpirun cannot start `true` twice.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import binary  # noqa: E402
from binary import tree  # noqa: E402

# Several processes on one core, as root in a container, and no binding, so that a busy machine is not a failure.
os.environ.update(
    OMPI_ALLOW_RUN_AS_ROOT="1",
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OMPI_MCA_rmaps_base_oversubscribe="1",
    OMPI_MCA_hwloc_base_binding_policy="none",
)
SET = "--data demo:train --limit 101"
TIMED = ("results.json", "report.html")  # hold how long each stage took


class Ranks(binary.Case):
    def setUp(self):
        super().setUp()
        self.fedkt("task new --data demo:train --codec dct --epsilon 1 --delta 1e-5 --out task.json")

    def mpirun(self, n, line):
        return subprocess.run(
            ["mpirun", "-n", str(n), *self.words(line)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )

    def works(self, n, line):
        done = self.mpirun(n, line)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def images(self, each=9, bad=None):
        """Two classes of plain images; the last of class a is a copy of its first."""
        from PIL import Image

        for label in "ab":
            (self.folder / "set" / label).mkdir(parents=True)
            for i in range(each):
                shade = 0 if label == "a" and i == each - 1 else 7 * i + (100 if label == "b" else 0)
                Image.new("RGB", (16, 16), (shade, 200 - shade, 99)).save(self.folder / "set" / label / f"{i}.png")
        if bad:
            (self.folder / "set" / bad).write_bytes(b"no image")
        self.fedkt("task new --classes a,b --codec dct --epsilon 1 --delta 1e-5 --out two.json")

    def fails(self, n, line, sentence):
        """All processes end, rank 0 prints the sentence, and no other process prints one."""
        done = self.mpirun(n, line)
        said = [text for text in done.stderr.splitlines() if text.startswith("fedkt: ")]
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(sentence, said[0])
        self.assertEqual(done.stdout, "")

    def test_latents_and_moments_are_those_of_one_process(self):
        one = self.fedkt(f"encode --task task.json {SET} --out one.latents")
        self.fedkt(f"moments --task task.json {SET} --out one.moments --json")
        for n, threads in ((2, 1), (3, 2), (4, 1)):
            said = self.works(n, f"encode --task task.json {SET} --out {n}.latents --threads {threads}")
            self.assertEqual(said, one.replace("one.latents", f"{n}.latents"))
            self.works(n, f"moments --task task.json {SET} --out {n}.moments --threads {threads}")
            self.assertEqual(self.bytes(f"{n}.latents"), self.bytes("one.latents"))
            self.assertEqual(self.bytes(f"{n}.moments"), self.bytes("one.moments"))
        self.works(3, "moments --task task.json --latents one.latents --out from.moments")
        self.assertEqual(self.bytes("from.moments"), self.bytes("one.moments"))

    def test_more_processes_than_records(self):
        self.fedkt("moments --task task.json --data demo:train --limit 5 --out one")
        self.works(7, "moments --task task.json --data demo:train --limit 5 --out seven")
        self.assertEqual(self.bytes("seven"), self.bytes("one"))

    def test_copies_and_bad_images(self):
        self.images(bad="b/6.png")
        alone = self.fedkt("moments --task two.json --data set --skip-bad --out one --json")
        self.assertEqual((alone["copies"], alone["skipped"]), (1, 1))
        shared = self.works(4, "moments --task two.json --data set --skip-bad --out four --json --threads 1")
        self.assertEqual(json.loads(shared), {**alone, "moments": "four"})
        self.assertEqual(self.bytes("four"), self.bytes("one"))

    def test_simulate_is_that_of_one_process(self):
        words = (
            "simulate --codec dct --data demo:train --limit 151 --holdout 0.2 --sites 7 --partition dirichlet:0.3 "
            "--dropout 0.1 --epsilon 10,1 --delta 1e-5 --insecure-seed 3 --threads 1 --per-class 2"
        )
        self.fedkt(f"{words} --out one")
        for n in (2, 4):
            self.works(n, f"{words} --out many")
            want, got = tree(self.folder / "one"), tree(self.folder / "many")
            for name in TIMED:
                self.assertTrue(want.pop(name, None) and got.pop(name, None))
            self.assertEqual(got, want)
            shutil.rmtree(self.folder / "many")

    def test_cells_of_an_experiment_are_shared(self):
        line = "experiment mechanism epsilon --quick --network none --sets absent --threads 1 --quiet"
        self.fedkt(f"{line} --out one", code=3)
        done = self.mpirun(3, f"{line} --out many")
        self.assertEqual(done.returncode, 3, done.stderr)
        want, got = tree(self.folder / "one/cells"), tree(self.folder / "many/cells")
        self.assertEqual(got, want)
        self.assertEqual(len(got), 18)
        cells = lambda folder: sorted(s["cell"] for s in json.loads(self.bytes(f"{folder}/skipped.json")))
        self.assertEqual(cells("many"), cells("one"))
        self.assertFalse(list((self.folder / "many").glob("skipped-*")))

    def test_a_failure_is_said_once(self):
        self.images(bad="b/6.png")
        self.fails(3, "encode --task two.json --data set --out none --quiet", "b/6.png")
        self.fails(3, "moments --task two.json --data set --out none --quiet", "b/6.png")
        self.fails(2, "encode --task two.json --data missing --out none --quiet", "missing")
        self.fails(2, "encode --task two.json --colour blue", "--colour")
        self.fails(3, "privacy --epsilon 1 --delta 1e-5 --dim 3 --clip 1", "'privacy' 3 times")
        self.fails(2, "encode --task two.json --data set --out two.json --quiet", "two.json")
        self.assertFalse((self.folder / "none").exists())

    def test_separate_runs(self):
        words = self.words("privacy --epsilon 1 --delta 1e-5 --dim 3 --clip 1")
        done = subprocess.run(
            ["mpirun", "-n", "2", "env", "FEDKT_MPI=off", *words], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("add-remove"), 2 * self.fedkt(" ".join(words[1:])).count("add-remove"))

    def children(self, process):
        """The processes that mpirun started."""
        path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return [int(word) for word in path.read_text().split()]

    def killed(self, which):
        """What is left of the output when this rank is killed while three encode."""
        line = "encode --task slow.json --data demo:train --out big --threads 1"
        process = subprocess.Popen(
            # mpirun kills the others so many seconds after it has asked them to end.
            ["mpirun", "--mca", "odls_base_sigkill_timeout", "4", "-n", "3", *self.words(line)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not list(self.folder.glob("big.tmp*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(self.children(process)[which], signal.SIGKILL)
        out, err = process.communicate(timeout=120)
        self.assertNotEqual(process.returncode, 0, "it ended before it was killed: give it more images")
        self.assertIn("exited on signal 9", err)
        self.assertEqual(out, "")
        return sorted(path.name for path in self.folder.glob("big*"))

    def test_a_process_that_is_killed_ends_all(self):
        self.fedkt("task new --data demo:train --codec dct --size 256 --epsilon 1 --delta 1e-5 --out slow.json")
        self.assertEqual(self.killed(2), [])
        left = self.killed(0)  # the one that writes: it cannot remove its temporary file
        self.assertEqual(len(left), 1)
        self.assertTrue(left[0].startswith("big.tmp-"), left)


if __name__ == "__main__":
    plugin = pathlib.Path(sys.argv[1]).resolve().parent.parent / "lib" / "fedkt" / "mpi.so"
    if not shutil.which("mpirun") or not plugin.exists():
        print("skipped: mpirun or the MPI plug-in is missing")
        sys.exit(77)
    probe = subprocess.run(["mpirun", "-n", "2", "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if probe.returncode:
        print("skipped: mpirun cannot start two processes here\n" + probe.stderr)
        sys.exit(77)
    binary.main()

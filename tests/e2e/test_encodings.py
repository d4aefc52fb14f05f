#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_encodings.py - --encodings DIR: what was encoded once is not encoded again, and nothing else changes.

Usage: test_encodings.py FEDKT [test...]

That nothing was encoded again shows in the folder: a row is written for each image that is encoded, so a file has
exactly one row for each image, however often its run was stopped.
"""

import json
import os
import signal
import time

import binary

DIM, RECORDS, HEAD = 600, 240, 48
ROW = 32 + 4 * DIM + 8
TASK = f"task new --codec dct --data demo:train --epsilon 1 --delta 1e-5 --size 160 --dim {DIM} --out task.json"
ENCODE = f"encode --task task.json --data demo:train --limit {RECORDS} --threads 1"


def timeless(document):
    """Without how long things took."""
    if isinstance(document, dict):
        return {key: timeless(value) for key, value in document.items() if key != "seconds"}
    return [timeless(value) for value in document] if isinstance(document, list) else document


class Encodings(binary.Case):
    def rows(self, folder="kept"):
        sizes = [path.stat().st_size - HEAD for path in (self.folder / folder).glob("*.encodings")]
        return sum(size // ROW for size in sizes), sum(size % ROW for size in sizes)

    def stop_within(self, line, number):
        """Stops the command when some images are encoded and others are not; gives how many are kept."""
        process = self.start(line)
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            if (self.folder / "kept").exists() and self.rows()[0] >= 10:
                process.send_signal(number)
                break
            time.sleep(0.001)
        _, errors = process.communicate()
        self.assertNotEqual(process.returncode, 0, "it ended before it could be stopped")
        kept, _ = self.rows()
        self.assertGreaterEqual(kept, 10)
        self.assertLess(kept, RECORDS)
        return kept, errors

    def goes_on(self, number):
        self.fedkt(TASK)
        self.fedkt(f"{ENCODE} --out plain.safetensors")
        kept, errors = self.stop_within(f"{ENCODE} --encodings kept --out z.safetensors", number)
        self.assertFalse((self.folder / "z.safetensors").exists())
        self.fedkt(f"{ENCODE} --encodings kept --out z.safetensors")
        self.assertEqual(self.rows(), (RECORDS, 0), f"{kept} were kept: they must not be encoded again")
        self.assertEqual(self.bytes("z.safetensors"), self.bytes("plain.safetensors"))
        return errors

    def test_kill_9_keeps_what_is_encoded(self):
        self.goes_on(signal.SIGKILL)

    def test_ctrl_c_keeps_what_is_encoded(self):
        self.assertIn("to continue", str(self.goes_on(signal.SIGINT)))

    def test_another_epsilon_encodes_nothing(self):
        line = "simulate --codec dct --data demo:train --limit 300 --holdout 0.2 --sites 3"
        line += " --delta 1e-5 --insecure-seed 4 --json"

        def results(more):
            return json.dumps(timeless(self.fedkt(f"{line} {more}")), sort_keys=True)

        first = results("--epsilon 3 --encodings kept")
        (file,) = (self.folder / "kept").glob("*.encodings")
        size = file.stat().st_size
        self.assertEqual(size, HEAD + 300 * (32 + 4 * 64 + 8))  # those that were held out are among them
        self.assertEqual(results("--epsilon 3"), first)
        self.assertEqual(results("--epsilon 3 --encodings kept"), first)
        self.assertEqual(results("--epsilon 1,0.5 --encodings kept"), results("--epsilon 1,0.5"))
        self.assertEqual(file.stat().st_size, size)

    def test_stages_share_them(self):
        """encode fills, moments, heads and evaluate find."""
        self.fedkt("task new --codec dct --data demo:train --epsilon 8 --delta 1e-5 --dim 32 --out task.json")
        data = "--data demo:train --limit 200 --encodings kept"
        self.fedkt(f"encode --task task.json {data} --out z.safetensors")
        (file,) = (self.folder / "kept").glob("*.encodings")
        whole = file.read_bytes()
        self.fedkt(f"moments --task task.json {data} --out m.safetensors")
        self.fedkt("moments --task task.json --latents z.safetensors --out l.safetensors")
        self.assertEqual(self.bytes("m.safetensors"), self.bytes("l.safetensors"))
        self.fedkt("release --task task.json --moments m.safetensors --ledger l.db --out r.safetensors")
        test = "--test demo:train --test-limit 200"
        plain = self.fedkt(f"heads --release r.safetensors {test} --out heads --json")
        self.assertEqual(self.fedkt(f"heads --release r.safetensors {test} --encodings kept --json"), plain)
        line = "evaluate --model heads/lda.safetensors --release r.safetensors --data demo:train --limit 200 --json"
        self.assertEqual(self.fedkt(f"{line} --encodings kept"), self.fedkt(line))
        self.assertEqual(file.read_bytes(), whole)
        self.assertEqual(os.stat(self.folder / "kept").st_mode & 0o777, 0o700)


if __name__ == "__main__":
    binary.main()

# SPDX-License-Identifier: Apache-2.0
"""binary.py - the binary under test, run in a folder of its own, for the end-to-end tests.

A test file calls `main()`: the first word on its command line is the binary, the rest goes to unittest.
"""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))
sys.path.insert(0, str(ROOT / "tests" / "conventions"))

FEDKT = None
# In memory where there is such a place: a killed process sits in syncfs for as long as the disk has work from others.
MEMORY = "/dev/shm" if "TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK) else None


def schema_complaints(name, document):
    """What docs/schema/NAME.json has against the document; nothing when python3-jsonschema is not installed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import check_schemas
    except SystemExit:
        return []
    return check_schemas.complaints(name, document)


def tree(folder):
    """Relative name -> hash of the bytes, for every file below the folder."""
    folder = pathlib.Path(folder)
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def lasting(folder):
    """All but the kept encodings, whose rows stand in the order in which threads finished."""
    return {name: digest for name, digest in tree(folder).items() if not name.startswith("encodings/")}


class Case(unittest.TestCase):
    """Each test has a folder; `fedkt("words ...")` runs there and gives stdout, as JSON when --json was asked for."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="fedkt-e2e-", dir=MEMORY)
        self.folder = pathlib.Path(self.temporary.name).resolve()
        self.addCleanup(self.temporary.cleanup)

    def words(self, line):
        return [FEDKT, *shlex.split(line)]

    def start(self, line, **more):
        return subprocess.Popen(
            self.words(line),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            **more,
        )

    def fedkt(self, line, code=0):
        done = subprocess.run(
            self.words(line), cwd=self.folder, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL
        )
        self.assertEqual(done.returncode, code, f"fedkt {line}\n{done.stderr}")
        return json.loads(done.stdout) if "--json" in line.split() else done.stdout

    def bytes(self, name):
        return (self.folder / name).read_bytes()

    def fits(self, schema, document):
        self.assertEqual(schema_complaints(schema, document), [])


def main():
    global FEDKT
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} FEDKT [test...]")
    FEDKT = str(pathlib.Path(sys.argv.pop(1)).resolve())
    os.environ["LC_ALL"] = "C"
    os.environ["LSAN_OPTIONS"] = f"suppressions={HERE / 'lsan.supp'}:print_suppressions=0"
    unittest.main(module="__main__")

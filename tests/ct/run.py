#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py - a program of tests/ct under valgrind's memcheck.

Usage: run.py quiet|leaks PROGRAM [ARGUMENT]
  quiet  valgrind must have nothing to say and the program must succeed
  leaks  valgrind must complain: a test of the test
Exit 0: as asked; 1: not; 77: valgrind is not here.
"""

import pathlib
import shutil
import subprocess
import sys

COMPLAINT, SKIP = 99, 77


def main():
    wish, program = sys.argv[1], sys.argv[2:]
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: valgrind is not installed")
        return SKIP
    verdicts = pathlib.Path(__file__).with_name("verdicts.supp")
    options = ["-q", f"--error-exitcode={COMPLAINT}", "--track-origins=yes", f"--suppressions={verdicts}"]
    code = subprocess.run([valgrind, *options, *program], check=False).returncode
    if code == SKIP:
        return SKIP
    if wish == "leaks":
        print(f"valgrind ended with {code}; wanted a complaint ({COMPLAINT})")
        return 0 if code == COMPLAINT else 1
    return 0 if code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_format.py - every C file is as clang-format 14 writes it, by .clang-format.

Usage: check_format.py [--root ROOT]      exit 0: all are, 1: the files that are not on stdout, 77: no clang-format 14

Version 14 is Debian 12's. Other versions format differently, so no other is used.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = ("src", "include", "bench", "examples", "fuzz", "tests")
KINDS = ("*.[ch]", "*.cu", "*.cuh")


def formatter():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and " version 14." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    tool = formatter()
    if not tool:
        print("skipped: clang-format 14 is not installed (Debian 12: clang-format-14)")
        return 77
    files = sorted(str(p.relative_to(root)) for f in FOLDERS for kind in KINDS for p in (root / f).rglob(kind))
    if not files:
        sys.exit(f"check_format.py: no C files under '{root}'")
    done = subprocess.run([tool, "--dry-run", "--Werror", *files], cwd=root, capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+\.(?:[ch]|cuh?)):\d+:\d+: error", done.stderr, re.MULTILINE)))
    if done.returncode and not wrong:
        sys.exit(f"check_format.py: clang-format failed: {done.stderr}")
    for name in wrong:
        print(f"{name}: not formatted; run: {pathlib.Path(tool).name} -i {name}")
    if not wrong:
        print(f"{len(files)} files are formatted")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

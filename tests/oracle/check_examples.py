#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_examples.py - the worked examples of docs/protocol.md are what oracle/secagg.py computes today.

A block counts when the line before it is <!-- example NAME -->. Every example of the oracle must stand on the page, and
nothing else under such a mark. (test_vectors.c computes the same numbers with the C code, from examples.json.)
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^<!-- example (\w+) -->\n```\n(.*?)^```$", re.M | re.S)


def blocks(text):
    found = BLOCK.findall(text)
    names = [name for name, _ in found]
    if len(set(names)) != len(names) or len(names) != text.count("<!-- example"):
        sys.exit(f"examples are marked twice, or a mark stands before no block: {names}")
    return dict(found)


def complaints(page, made):
    return [name for name in sorted(page.keys() | made.keys()) if page.get(name) != made.get(name)]


def main():
    oracle = [sys.executable, "-B", ROOT / "oracle" / "secagg.py", "examples"]
    made = blocks(subprocess.run(oracle, check=True, capture_output=True, text=True, timeout=300).stdout)
    text = (ROOT / "docs" / "protocol.md").read_text()
    bad = complaints(blocks(text), made)
    for name in bad:
        print(f"docs/protocol.md: example '{name}' is not what the oracle computes")
    digit = re.search(r"session +5cb", text)
    if not digit or not complaints(blocks(text.replace("5cbf6f30", "5cbf6f31")), made):
        bad.append("an altered digit is not noticed")
        print(bad[-1])
    print(f"{len(made)} examples")
    return 1 if bad or not made else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_vectors.py - oracle/secagg.py still makes the very files of tests/vectors/secagg, and no others lie there; and
oracle/http_auth.py still makes tests/vectors/http_auth.json."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def main():
    with tempfile.TemporaryDirectory(prefix="fedkt-oracle-") as name:
        subprocess.run([sys.executable, "-B", ROOT / "oracle" / "secagg.py", "vectors", name], check=True, timeout=600)
        made, kept = files(pathlib.Path(name)), files(ROOT / "tests" / "vectors" / "secagg")
    bad = sorted(n for n in made.keys() | kept.keys() if made.get(n) != kept.get(n))
    for n in bad:
        print(f"tests/vectors/secagg/{n} is not what the oracle makes")
    with tempfile.TemporaryDirectory(prefix="fedkt-oracle-") as name:
        subprocess.run([sys.executable, "-B", ROOT / "oracle" / "http_auth.py", name], check=True, timeout=600)
        made.update(files(pathlib.Path(name)))
        if made["http_auth.json"] != (ROOT / "tests" / "vectors" / "http_auth.json").read_bytes():
            print("tests/vectors/http_auth.json is not what the oracle makes")
            bad.append("http_auth.json")
    print(f"{len(made)} files")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

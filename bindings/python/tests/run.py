#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py - a file of tests under pytest, with the Python that has the packages; for CTest.

FEDKT_BINDING_PYTHON names that Python (a virtual environment with NumPy, pytest and the packages that tests compare
with); without it this one is taken, and for test_ecosystem.py the one that FEDKT_PEERS_PYTHON names. Without NumPy or
pytest the test is skipped, exit 77; so it is when every test of the file was skipped (pytest says 5 where it found
none). A library that was built with address checks needs their runtime first in the process.

Usage: run.py TEST_FILE [argument of pytest...]
"""

import os
import re
import subprocess
import sys

peers = os.environ.get("FEDKT_PEERS_PYTHON") if "test_ecosystem" in sys.argv[1] else None
python = os.environ.get("FEDKT_BINDING_PYTHON") or peers or sys.executable
environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
sanitizer = os.environ.get("FEDKT_SANITIZE", "")
if sanitizer:
    if "address" not in sanitizer:
        print(f"the checks '{sanitizer}' are not used with Python")
        sys.exit(77)
    names = ["libasan.so", "libubsan.so"] if "undefined" in sanitizer else ["libasan.so"]
    compiler = os.environ["FEDKT_CC"]
    found = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in names]
    environment["LD_PRELOAD"] = " ".join(found)
    environment["PYTHONMALLOC"] = "malloc"  # so that the checks see the bounds of Python's own buffers
    # Python itself frees little at its end; leaks are looked for by the tests in C.
    environment["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
for name in ("numpy", "pytest"):
    if subprocess.run([python, "-c", f"import {name}"], capture_output=True, env=os.environ).returncode:
        print(f"{python} has no {name}: the tests of the Python package are skipped")
        sys.exit(77)
words = [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *sys.argv[1:]]
done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(done.stdout)
if done.returncode in (0, 5) and not re.search(r"\d+ passed", done.stdout):
    sys.exit(77)
sys.exit(done.returncode)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_wheel.py - the wheel that packaging/build_wheel.sh made, as a machine without our libraries gets it.

Usage: check_wheel.py FOLDER      the folder with the wheel and the source distribution; without a wheel: exit 77

The wheel is unpacked, which is what an installation does, and the tutorial runs with it, in the Python that
FEDKT_PEERS_PYTHON names (with NumPy from PyPI, which has libraries of its own) or this one. Every library that is
loaded must come from the wheel, from the Python packages or from the C library's own set. packaging/try_wheel.sh does
the same in a new Debian that has no libraries of ours.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

TUTORIAL = pathlib.Path(__file__).resolve().parents[2] / "bindings/python/tutorial.py"
CARRIED = ["openblas", "dnnl", "sodium", "archive", "curl", "microhttpd", "jansson", "sqlite3", "png16", "protobuf-c"]
# What every Debian with a Python has: the C library, the compiler's runtime, what Python itself is linked with.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|nss_.*|stdc\+\+|gcc_s|z|expat|bz2|lzma|ffi|crypt"
                    r"|crypto|ssl|uuid|tinfo|ncursesw|readline|sqlite3|python3.*|nsl|tirpc|mvec))[.-]")  # fmt: skip
LOADED = """
import fedkt, sys
print(fedkt.__version__, fedkt.__file__)
for line in open("/proc/self/maps"):
    path = line.split(maxsplit=5)[-1].strip()
    if ".so" in path:
        print(path)
"""


def fail(words):
    sys.exit(f"check_wheel.py: {words}")


def check_contents(wheel, names):
    if not re.fullmatch(r"fedkt-[0-9.]+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name):
        fail(f"'{wheel.name}' is not for every Python 3 on a named glibc")
    for name in ("fedkt/lib/libfedkt.so", "fedkt/_declarations.py", "fedkt/py.typed", "fedkt/ranks.py"):
        if name not in names:
            fail(f"the wheel has no {name}")
    if not any(name.startswith("fedkt/share/fedkt/models/fedkt-ae/") for name in names):
        fail("the wheel has no networks")
    bundled = [name.split("/")[-1] for name in names if name.startswith("fedkt.libs/")]
    for library in CARRIED:
        if not any(name.startswith(f"lib{library}") for name in bundled):
            fail(f"the wheel does not carry lib{library}: {sorted(bundled)}")


def check_loaded(python, folder, environment):
    words = [python, "-B", "-c", LOADED]
    version, *paths = subprocess.check_output(words, env=environment, cwd=folder, text=True).splitlines()
    if str(folder) not in version:
        fail(f"another package was imported: {version}")
    inside = re.compile(rf"{re.escape(str(folder))}/|.*/(site|dist)-packages/|.*/lib-dynload/")
    strange = {path for path in paths if not inside.match(path) and not SYSTEM.match(path.rsplit("/", 1)[-1])}
    if strange:
        fail(f"libraries of this machine are loaded: {sorted(strange)}")


def main():
    folder = pathlib.Path(sys.argv[1])
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        print(f"there is no wheel in {folder}: packaging/build_wheel.sh makes it")
        sys.exit(77)
    if len(wheels) != 1 or len(list(folder.glob("fedkt-*.tar.gz"))) != 1:
        fail(f"{folder} does not hold one wheel and one source distribution")
    python = os.environ.get("FEDKT_PEERS_PYTHON") or sys.executable
    with tempfile.TemporaryDirectory(prefix="fedkt-wheel-") as name:
        installed = pathlib.Path(name) / "installed"
        with zipfile.ZipFile(wheels[0]) as archive:
            check_contents(wheels[0], set(archive.namelist()))
            archive.extractall(installed)
        environment = {k: v for k, v in os.environ.items() if k not in ("FEDKT_LIBRARY", "LD_LIBRARY_PATH")}
        environment["PYTHONPATH"] = str(installed)
        if os.environ.get("FEDKT_PEERS_PYTHON"):
            check_loaded(python, installed, environment)
        folder = pathlib.Path(name) / "tutorial"
        folder.mkdir()
        words = [python, "-B", TUTORIAL]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode or "private: True" not in done.stdout:
            fail(f"the tutorial failed\n{done.stdout}{done.stderr}")
    print(f"{wheels[0].name}: {wheels[0].stat().st_size / 1e6:.0f} MB, the tutorial ran")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_deb.py - the Debian packages that packaging/build_deb.sh made: what is in them, and what lintian says.

Usage: check_deb.py FOLDER      exit 0: all holds, 1: differences on stdout, 77: no packages, or not on Debian

Every file of a package must be one that its list below expects, and every entry of a list must be met. The program and
the library must be hardened, and no file may name the folder that it was built in.
"""

import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EACH = ["usr/share/doc/{name}/changelog.Debian.gz", "usr/share/doc/{name}/changelog.gz",
        "usr/share/doc/{name}/copyright", "usr/share/lintian/overrides/{name}"]  # fmt: skip
FILES = {
    "libfedkt0": ["usr/lib/*/libfedkt.so.0", "usr/lib/*/libfedkt.so.0.*"],
    "libfedkt-dev": [
        "usr/include/fedkt/*.h",
        "usr/lib/*/cmake/fedkt/fedktConfig.cmake",
        "usr/lib/*/cmake/fedkt/fedktConfigVersion.cmake",
        "usr/lib/*/libfedkt.a",
        "usr/lib/*/libfedkt.so",
        "usr/lib/*/pkgconfig/fedkt.pc",
    ],
    "fedkt-models": ["usr/share/fedkt/models/README.md", "usr/share/fedkt/models/*"],
    "fedkt": [
        "usr/bin/fedkt",
        "usr/lib/systemd/system/fedkt-join@.service",
        "usr/lib/systemd/system/fedkt-serve@.service",
        "usr/lib/sysusers.d/fedkt.conf",
        "usr/share/bash-completion/completions/fedkt",
        "usr/share/doc/fedkt/*.md",
        "usr/share/doc/fedkt/openapi.yaml",
        "usr/share/doc/fedkt/schema/*.json",
        "usr/share/man/man1/fedkt*.1.gz",
        "usr/share/zsh/vendor-completions/_fedkt",
    ],
    "fedkt-mpi": ["usr/lib/*/fedkt/mpi.so"],
}
OPTIONAL = {"fedkt-mpi"}  # made where MPI is installed
CONTROL = {
    "libfedkt0": {"control", "md5sums", "shlibs", "symbols", "triggers"},
    "libfedkt-dev": {"control", "md5sums"},
    "fedkt-models": {"control", "md5sums"},
    "fedkt": {"control", "md5sums", "postinst"},
    "fedkt-mpi": {"control", "md5sums"},
}
wrong = []


def output(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True).stdout


def check_files(name, tree):
    patterns = [pattern.format(name=name) for pattern in FILES[name] + EACH]
    have = sorted(str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_symlink() or not p.is_dir())
    for path in have:
        if not any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
            wrong.append(f"{name}: a file too many: {path}")
    wrong.extend(f"{name}: no file {p}" for p in patterns if not any(fnmatch.fnmatch(path, p) for path in have))
    for path in (tree / path for path in have):
        if path.is_file() and str(ROOT).encode() in path.read_bytes():
            wrong.append(f"{name}: {path.name} names the folder of the build")
    for path in tree.rglob("*.service"):
        if "ExecStart=/usr/bin/fedkt " not in path.read_text():
            wrong.append(f"{name}: {path.name} does not start /usr/bin/fedkt")


def check_binary(name, path):
    headers = output("readelf", "--wide", "--dynamic", "--program-headers", path)
    names = output("readelf", "--wide", "--dyn-syms", path)
    if "GNU_RELRO" not in headers or not re.search(r"FLAGS.*\bNOW\b", headers):
        wrong.append(f"{name}: {path.name} is not linked with relro and now")
    if not re.search(r"GNU_STACK.* RW ", headers):
        wrong.append(f"{name}: {path.name} has an executable stack")
    if "__stack_chk_fail" not in names or not re.search(r"__(memcpy|snprintf|vsnprintf|fprintf)_chk", names):
        wrong.append(f"{name}: {path.name} has no stack protector or no _FORTIFY_SOURCE")
    if not re.search(r"Type:\s+DYN", output("readelf", "--file-header", path)):
        wrong.append(f"{name}: {path.name} is not position-independent")
    if ".debug_info" in output("readelf", "--wide", "--sections", path):
        wrong.append(f"{name}: {path.name} is not stripped")


def check_control(name, package, control):
    have = {path.name for path in control.iterdir()}
    if have != CONTROL[name]:
        wrong.append(f"{name}: control files {sorted(have)}, expected {sorted(CONTROL[name])}")
        return
    fields = output("dpkg-deb", "--field", package, "Depends", "Version")
    version = re.search(r"^Version: (.+)$", fields, re.MULTILINE)[1]
    if name == "libfedkt-dev" and f"Depends: libfedkt0 (= {version})\n" not in fields:
        wrong.append(f"{name}: it does not depend on libfedkt0 of its own version")
    if name == "fedkt" and f"fedkt-models (= {version})" not in fields:
        wrong.append(f"{name}: it does not depend on fedkt-models of its own version")
    if name == "fedkt-mpi" and not (f"fedkt (= {version})" in fields and "libopenmpi3" in fields):
        wrong.append(f"{name}: it does not depend on fedkt of its own version and on MPI")
    if name in ("libfedkt0", "fedkt", "fedkt-mpi") and "libc6" not in fields:
        wrong.append(f"{name}: dependencies on libraries are missing")
    if name == "libfedkt0":
        symbols = (control / "symbols").read_text()
        listed = set(re.findall(r"^ (fkt_\w+)@FEDKT_0 ", symbols, re.MULTILINE))
        if not listed or not symbols.startswith("libfedkt.so.0 libfedkt0 "):
            wrong.append(f"{name}: the file 'symbols' has {len(listed)} names")
        if (control / "triggers").read_text() != "activate-noawait ldconfig\n":
            wrong.append(f"{name}: ldconfig is not triggered")


def main():
    packages = sorted(pathlib.Path(sys.argv[1]).glob("*.deb"))
    if not packages:
        print("skipped: no packages here; packaging/build_deb.sh makes them")
        return 77
    if not shutil.which("dpkg-deb") or not shutil.which("readelf"):
        print("skipped: dpkg-deb or readelf is not installed")
        return 77
    names = [package.name.split("_")[0] for package in packages]
    if sorted({*names, *OPTIONAL}) != sorted(FILES):
        wrong.append(f"packages {sorted(names)}, expected {sorted(FILES)}")
    for name, package in zip(names, packages):
        with tempfile.TemporaryDirectory(prefix="fedkt-deb-") as folder:
            tree, control = pathlib.Path(folder, "tree"), pathlib.Path(folder, "control")
            output("dpkg-deb", "--extract", package, tree)
            output("dpkg-deb", "--control", package, control)
            check_files(name, tree)
            check_control(name, package, control)
            for path in [*tree.glob("usr/bin/*"), *tree.glob("usr/lib/*/*.so.0.*")]:
                check_binary(name, path)
    remark = "lintian is not installed: not asked"
    if shutil.which("lintian"):
        done = subprocess.run(["lintian", "--fail-on", "error,warning", *packages], capture_output=True, text=True)
        remark = "lintian has no error and no warning"
        if done.returncode:
            wrong.append(done.stdout + done.stderr)
    print("\n".join(wrong) or f"{len(names)} packages are as they must be; {remark}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

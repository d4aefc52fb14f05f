#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_installed.py - an embedder's day: a program built against the installed tree alone.

Usage: check_installed.py BUILD      exit 0: all holds, 1: differences on stdout, 77: a tool is missing

BUILD is a finished build folder. It is installed into a scratch prefix, and:
  - the files that users look for are there, none names the build folder, the repository or the default prefix, and the
    systemd units name the program of that prefix;
  - the tree is moved; examples/mean_release.c is then built against it with pkg-config, with pkg-config --static, and
    with find_package for the shared and the static target; each program is run;
  - another minor version is refused by find_package;
  - a configuration with BUILD_SHARED_LIBS=OFF knows no shared library, and its pkg-config file names all that the
    static one needs.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/mean_release.c"
PRESENT = (
    "bin/fedkt",
    "include/fedkt/fedkt.h",
    "lib/cmake/fedkt/fedktConfig.cmake",
    "lib/cmake/fedkt/fedktConfigVersion.cmake",
    "lib/libfedkt.a",
    "lib/libfedkt.so",
    "lib/libfedkt.so.0",
    "lib/pkgconfig/fedkt.pc",
    "lib/systemd/system/fedkt-join@.service",
    "lib/systemd/system/fedkt-serve@.service",
    "lib/sysusers.d/fedkt.conf",
    "share/bash-completion/completions/fedkt",
    "share/doc/fedkt/README.md",
    "share/doc/fedkt/LICENSE",
    "share/fedkt/models/README.md",
    "share/man/man1/fedkt.1",
    "share/man/man1/fedkt-join.1",
    "share/zsh/site-functions/_fedkt",
)
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(embedder C)
find_package(fedkt {version} CONFIG REQUIRED COMPONENTS static)
add_library(m INTERFACE) # must not be taken for the mathematical library
foreach(target fedkt fedkt_static)
  add_executable(with_${{target}} {example})
  target_link_libraries(with_${{target}} PRIVATE fedkt::${{target}})
endforeach()
"""
wrong = []


def run(*words, **more):
    words = [str(word) for word in words]
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=250, **more)


def must(*words, **more):
    """The output of a command that must succeed; the first that fails ends the test, since the rest depends on it."""
    done = run(*words, **more)
    if done.returncode:
        print("\n".join(wrong))
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_files(prefix, build):
    for name in PRESENT:
        if not (prefix / name).exists():
            wrong.append(f"not installed: {name}")
    forbidden = {str(build), str(ROOT), "/usr/local"}
    for path in sorted(prefix.rglob("*")):
        if path.is_file() and not path.is_symlink():
            if path.suffix == ".a":  # debug information of a Debug build does name the build folder
                must("strip", "--strip-debug", path)
            data = path.read_bytes()
            wrong.extend(f"{path.relative_to(prefix)} contains '{f}'" for f in forbidden if f.encode() in data)
    for path in prefix.glob("lib/systemd/system/*.service"):
        text = path.read_text()
        if f"ExecStart={prefix}/bin/fedkt " not in text or f"file:{prefix}/share/doc/fedkt/" not in text:
            wrong.append(f"{path.name}: it does not name the program and the documents of its prefix")


def check_pkg_config(prefix, work, outputs):
    tree = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"), "LD_LIBRARY_PATH": str(prefix / "lib")}
    flags = must("pkg-config", "--cflags", "--libs", "fedkt", env=tree).split()
    must("cc", EXAMPLE, "-o", work / "shared", *flags)
    outputs["pkg-config"] = must(work / "shared", env=tree, cwd=work)
    if "FEDKT_0" not in must("readelf", "--version-info", work / "shared"):
        wrong.append("a program linked with the shared library does not ask for the version FEDKT_0")
    # Where both are there the linker takes the shared library; without it, as after BUILD_SHARED_LIBS=OFF, the static.
    alone = work / "static_tree"
    shutil.copytree(prefix, alone, symlinks=True, ignore=shutil.ignore_patterns("libfedkt.so*"))
    tree = {**os.environ, "PKG_CONFIG_PATH": str(alone / "lib/pkgconfig")}
    flags = must("pkg-config", "--static", "--cflags", "--libs", "fedkt", env=tree).split()
    must("cc", EXAMPLE, "-o", work / "static", *flags)
    outputs["pkg-config --static"] = must(work / "static", cwd=work)


def check_cmake(prefix, work, outputs):
    def configure(version):
        source = work / f"project{version}"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(PROJECT.format(version=version, example=EXAMPLE))
        return source, run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}")

    source, done = configure("0.1")
    if done.returncode:
        wrong.append(f"find_package(fedkt 0.1 CONFIG): {done.stderr}")
        return
    must("cmake", "--build", source / "build")
    for target in ("fedkt", "fedkt_static"):
        outputs[f"find_package, fedkt::{target}"] = must(source / f"build/with_{target}", cwd=work)
    needed = must("readelf", "-d", source / "build/with_fedkt_static")
    if "libfedkt.so" in needed:
        wrong.append("fedkt::fedkt_static linked the shared library")
    if not configure("0.2")[1].returncode:
        wrong.append("find_package(fedkt 0.2) took version 0.1")


def check_static_configuration(work):
    build = work / "off"
    must("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DBUILD_SHARED_LIBS=OFF", "-DFEDKT_TESTS=OFF")
    if "libfedkt.so" in (build / "build.ninja").read_text():
        wrong.append("BUILD_SHARED_LIBS=OFF: a shared library is built")
    libs = next(line for line in (build / "fedkt.pc").read_text().splitlines() if line.startswith("Libs:"))
    if "-lsodium" not in libs or "-ldnnl" not in libs:
        wrong.append(f"BUILD_SHARED_LIBS=OFF: fedkt.pc has only '{libs}'")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    missing = [tool for tool in ("cc", "cmake", "ninja", "pkg-config", "readelf", "strip") if not shutil.which(tool)]
    if missing:
        print(f"skipped: not here: {', '.join(missing)}")
        return 77
    with tempfile.TemporaryDirectory(prefix="fedkt-installed-") as name:
        work = pathlib.Path(name).resolve()
        must("cmake", "--install", build, "--prefix", work / "first", "--strip")
        check_files(work / "first", build)
        (work / "first").rename(work / "moved")
        outputs = {}
        check_pkg_config(work / "moved", work, outputs)
        check_cmake(work / "moved", work, outputs)
        check_static_configuration(work)
    for way, text in outputs.items():  # the noise is fresh each time; the promise and the refusal are not
        if any(part not in text for part in ("epsilon 1, ", "records, mean (", "a second release: refused")):
            wrong.append(f"{way}: the program prints {text!r}")
    print("\n".join(wrong) or f"installed, moved, and linked in {len(outputs)} ways")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_planted.py - put a fault into the mechanism, and see whether the tests and `fedkt audit` notice.

Usage: run_planted.py BUILD [NAME...]

BUILD is a build folder of ninja with everything built. For each fault of faults.toml the one file that it changes is
compiled anew with the build's own command, and the tests and the program are linked with it before the library, which
then has nothing to add: neither the sources nor the build change. Without a fault every test and audit that is named
must pass. A fault whose text no longer stands exactly once in its file is an error, and so is one that does not
compile: a fault that is not there cannot be noticed.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROMISE = "--epsilon 5 --delta 1e-5 --confidence 0.999999 --quiet".split()


class Unusable(Exception):
    """The fault cannot be planted, which says nothing about the tests."""


def run(words, folder, limit=300):
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=limit, stdin=subprocess.DEVNULL
    )


def must(words, folder):
    done = run(words, folder)
    if done.returncode:
        raise Unusable(f"{shlex.join(map(str, words))[:300]}\n{done.stderr[-2000:]}")


class Build:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        listed = json.loads((self.folder / "compile_commands.json").read_text())
        self.compile = {str(pathlib.Path(entry["file"]).resolve()): entry for entry in listed}

    def object(self, source, text, out):
        """Compiles `text` in the place of `source`."""
        entry = self.compile.get(str(source.resolve()))
        if not entry:
            raise Unusable(f"{source} is not part of the build")
        patched = out.with_suffix(".c")
        patched.write_text(text)
        words = shlex.split(entry["command"])
        if pathlib.Path(words[0]).name == "ccache":
            words = words[1:]
        words[words.index("-o") + 1] = str(out)
        words[words.index("-c") + 1] = str(patched)
        must([*words, "-Wno-error"], entry["directory"])

    def link(self, target, extra, out):
        """Links bin/TARGET to `out`, with an object of ours before the libraries."""
        listed = run(["ninja", "-t", "commands", f"bin/{target}"], self.folder)
        words = shlex.split(listed.stdout.splitlines()[-1])
        words = words[words.index("&&") + 1 :]
        words = words[: words.index("&&")]
        at = words.index("-o")
        words[at + 1] = str(out)
        must([*words[:at], extra, *words[at:]], self.folder)


def audit(program, words, folder):
    trials = [] if "--trials" in words else ["--trials", "1000"]
    done = run([program, "audit", *PROMISE, *trials, *words.split()], folder)
    clear = done.returncode == 1 and done.stderr.startswith("fedkt: ") and "hint: " in done.stderr
    return done.returncode, clear, done.stderr.splitlines()[0] if done.stderr else ""


def plant(build, fault):
    """What is wrong: nothing, when everything notices."""
    source = ROOT / fault["file"]
    text = source.read_text()
    if text.count(fault["find"]) != 1:
        return [f"'{fault['find']}' stands {text.count(fault['find'])} times in {fault['file']}: move the fault along"]
    bad = []
    with tempfile.TemporaryDirectory(prefix="fedkt-planted-") as place:
        place = pathlib.Path(place)
        try:
            build.object(source, text.replace(fault["find"], fault["put"]), place / "patched.o")
            for test in fault["tests"]:
                build.link(f"t_{test}", place / "patched.o", place / test)
            build.link("fedkt", place / "patched.o", place / "fedkt")
        except Unusable as problem:
            return [f"the fault cannot be planted: {problem}"]
        for test in fault["tests"]:
            done = run([place / test], place)
            if done.returncode == 0 or "[  FAILED  ]" not in done.stdout + done.stderr:
                bad.append(f"{test} does not notice (exit {done.returncode})")
        code, clear, said = audit(place / "fedkt", fault["audit"], place)
        if not clear:
            bad.append(f"fedkt audit does not notice: exit {code} {said}")
        print(f"{fault['name']}: {said}", flush=True)
    return bad


def unplanted(build, faults):
    """The same tests and audits, with nothing planted."""
    bad = []
    for test in sorted({test for fault in faults for test in fault["tests"]}):
        done = run([build.folder / "bin" / f"t_{test}"], build.folder / "tests")
        if done.returncode:
            bad.append(f"{test} fails without a fault: {done.stderr[-500:]}")
    code, _, said = audit(build.folder / "bin" / "fedkt", "", build.folder)
    if code:
        bad.append(f"fedkt audit fails without a fault: {said}")
    return bad


def main():
    build = Build(sys.argv[1])
    names = sys.argv[2:]
    faults = tomllib.loads((HERE / "faults.toml").read_text())["fault"]
    if names:
        faults = [fault for fault in faults if fault["name"] in names]
    if not faults or any(set(fault) != {"name", "file", "find", "put", "tests", "audit"} for fault in faults):
        sys.exit("faults.toml: no such fault, or one that lacks a key")
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        clean = pool.submit(unplanted, build, faults)
        found = list(pool.map(lambda fault: plant(build, fault), faults))
        bad = [f"{fault['name']}: {line}" for fault, lines in zip(faults, found) for line in lines] + clean.result()
    for line in bad:
        print(line)
    print(f"{len(faults)} faults, {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

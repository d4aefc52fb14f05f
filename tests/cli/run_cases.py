#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_cases.py - bad input gets one clear sentence, a hint, the right exit code, and leaves nothing behind.

Usage: run_cases.py FEDKT [--bless] [NAME...]

Each case of cases/<verb>.toml runs in a fresh folder with the fixtures (fixtures.py) beside it as `in`, so the
sentences hold relative paths. Exit code and stderr must be exactly as written; afterwards the folder must hold what it
held before, byte for byte, and the names in `leaves` besides; no temporary file may be left. --bless writes what the
binary says now into the file of the case: read the difference, sentence by sentence, before you commit it.

  name, args, exit, stderr       args is split like a shell does, {ff} is the byte 0xff; {any} in stderr is any text
  leaves    names that the run makes             changes   names of `copy` that the run may change
  copy      "fixture:name", put there first      full      stdout is /dev/full
  fsize     no file may grow beyond so many bytes (RLIMIT_FSIZE)
  classes   also the lines that say what a set holds, which are left out of the comparison elsewhere
  disk      a file system of so many bytes as folder `disk` (needs root; left out otherwise)
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

import case_files
import fixtures

HOLDS = re.compile(r"fedkt: '[^\n]*': (?:\d+ images? of \d+ class(?:es)?:|skipped \d+ file)[^\n]*\n")
MANNERS = re.compile(r"fedkt: [^A-Z\n][^\n]*[^.\n]\n(hint: [^A-Z\n][^\n]*[^.\n]\n)?")


class Skipped(Exception):
    pass


def snapshot(folder):
    """Relative name -> what is there."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder", "")
        else:
            found[name] = ("file", hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def within(name, tops):
    return any(name == top or name.startswith(top + "/") for top in tops)


def difference(before, after, case):
    """Complaints about what the run left behind."""
    leaves, changes = case.get("leaves", []), case.get("changes", [])
    for name in sorted(before.keys() | after.keys()):
        if ".tmp-" in name:
            yield f"temporary file left: {name}"
        elif before.get(name) == after.get(name) or within(name, changes):
            continue
        elif name not in before and not within(name, leaves):
            yield f"left behind: {name}"
        elif name in before:
            yield f"{'changed' if name in after else 'lost'}: {name}"
    for name in leaves:
        if name not in after:
            yield f"not made: {name}"


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        raise Skipped("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def start(case, fedkt, work):
    def limit():
        if "fsize" in case:
            resource.setrlimit(resource.RLIMIT_FSIZE, (case["fsize"], case["fsize"]))

    environment = {**os.environ, "LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1"}
    environment.update(FEDKT_CACHE="cache", HF_ENDPOINT="", NO_PROXY="*")  # weights of this machine are none of ours
    environment.update(XDG_DATA_HOME=f"{work}/data", XDG_STATE_HOME=f"{work}/state")  # nor are its ledgers
    environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1"
    words = shlex.split(case["args"].replace("{ff}", "\udcff"))
    with open("/dev/full" if case.get("full") else os.devnull, "w") as out:
        return subprocess.run(
            [str(fedkt), *words],
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment,
            preexec_fn=limit,
            timeout=120,
        )


def run(case, fedkt, root):
    """Gives (exit code, stderr, complaints about files)."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="case-", dir=root))
    os.symlink("../in", work / "in")
    for pair in case.get("copy", []):
        source, target = pair.split(":")
        copy = shutil.copytree if (root / "in" / source).is_dir() else shutil.copy
        copy(root / "in" / source, work / target)
    with contextlib.ExitStack() as stack:
        if "disk" in case:
            stack.enter_context(small_disk(work / "disk", case["disk"]))
        before = snapshot(work)
        done = start(case, fedkt, work)
        complaints = list(difference(before, snapshot(work), case))
    shutil.rmtree(work)
    stderr = done.stderr.decode(errors="backslashreplace").replace(str(work), "{dir}")
    return done.returncode, stderr if case.get("classes") else HOLDS.sub("", stderr), complaints


def bless(text, name, code, stderr):
    """The text of a file of cases with the expectations of one case replaced."""
    blocks = re.split(r"(?m)^(?=\[\[case\]\]$)", text)
    for i, block in enumerate(blocks):
        if f'name = "{name}"' in block.splitlines():
            block = re.sub(r"(?m)^exit = .*\n", "", block)
            block = re.sub(r"(?ms)^stderr = '''.*?'''\n", "", block)
            said = f"exit = {code}\nstderr = '''\n{stderr}'''\n"
            blocks[i] = re.sub(r"(?m)^(args = .*\n)", lambda m: m[1] + said, block)
    return "".join(blocks)


def check(case, fedkt, root):
    """None when all is well, else what is wrong."""
    code, stderr, complaints = run(case, fedkt, root)
    if code != case.get("exit"):
        complaints.append(f"exit code {code}, wanted {case.get('exit')}")
    if not re.fullmatch(re.escape(case.get("stderr", "{none}")).replace(r"\{any\}", "[^\n]*"), stderr):
        complaints.append(f"stderr is\n{stderr}wanted\n{case.get('stderr')}")
    if code and not MANNERS.fullmatch(stderr):
        complaints.append(f"not one sentence and a hint in lower case without full stops:\n{stderr}")
    return code, stderr, complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fedkt", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bless", action="store_true")
    asked = parser.parse_args()
    texts, cases = case_files.read()
    odd = list(case_files.misplaced(cases))
    if odd:
        sys.exit("\n".join(odd))
    bad = skipped = 0
    with tempfile.TemporaryDirectory(prefix="fedkt-cli-") as folder:
        root = pathlib.Path(folder).resolve()
        fixtures.make(root / "in", asked.fedkt.resolve())
        untouched = snapshot(root / "in")
        for case in cases:
            if asked.names and case["name"] not in asked.names:
                continue
            try:
                code, stderr, complaints = check(case, asked.fedkt.resolve(), root)
            except Skipped as why:
                print(f"skipped {case['name']}: {why}")
                skipped += 1
                continue
            if complaints and asked.bless:
                texts[case["file"]] = bless(texts[case["file"]], case["name"], code, stderr)
            for line in complaints:
                print(f"{case['name']}: {line}")
            bad += bool(complaints)
        if snapshot(root / "in") != untouched:
            print("a case changed the fixtures")
            bad += 1
    if asked.bless:
        for name, text in texts.items():
            (case_files.CASES / name).write_text(text)
    print(f"{len(cases)} cases, {bad} bad, {skipped} skipped")
    return int(bad > 0 or len(cases) < 60)


if __name__ == "__main__":
    sys.exit(main())

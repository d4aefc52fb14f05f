#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_help.py - every verb teaches itself: --help exits 0, and names every option that the verb takes.

Usage: run_help.py FEDKT

The options of a verb are known from three sides: what its help lists, what the sources' tables hold, and what the
cases use. Each listed option must be taken by the parser, and each used one must be listed.
"""

import pathlib
import re
import shlex
import subprocess
import sys

import case_files

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent.parent / "src" / "cli"


def run(fedkt, *words):
    return subprocess.run([fedkt, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def verbs(fedkt, complain):
    overview = run(fedkt, "--help")
    alone = run(fedkt)
    if alone.returncode != 2 or alone.stdout or alone.stderr != overview.stdout:
        complain("fedkt alone must exit 2 with the overview on stderr")
    if overview.returncode != 0 or overview.stderr:
        complain("fedkt --help must exit 0 with the overview on stdout")
    for word in ("--version", "-V"):
        if not re.fullmatch(r"fedkt \d+\.\d+\.\d+\n", run(fedkt, word).stdout):
            complain(f"fedkt {word} must give a version")
    for word in ("help", "-h"):
        if run(fedkt, word).stdout != overview.stdout:
            complain(f"fedkt {word} must give the overview")
    return re.findall(r"(?m)^  ([a-z]+) +\S", overview.stdout)


def subverbs(fedkt, names):
    """Verbs whose help lists words with options of their own: their names are verb and word."""
    found = []
    for verb in names:
        found += re.findall(rf"(?m)^  ({verb} [a-z]+) +\S", run(fedkt, verb, "--help").stdout)
    return found


def used_options(subs):
    """verb -> options that the cases use and that are not there to be unknown."""
    used = {}
    for case in case_files.read()[1]:
        if "unknown option" in case["stderr"]:
            continue
        verb, *words = shlex.split(case["args"])
        if f"{verb} {' '.join(words[:1])}" in subs:  # task new
            verb = f"{verb} {words.pop(0)}"
        used.setdefault(verb, set()).update(word.split("=")[0] for word in words if word.startswith("--"))
    return used


def table_options():
    """Every option that stands in some table of the sources."""
    found = set()
    for path in SOURCES.rglob("*.[ch]"):
        found |= set(re.findall(r'(?:CLI_OPT_(?!HEAD)\w+\(|\{CLI_\w+,\s*)"([a-z0-9-]+)"', path.read_text()))
    return {"--" + name for name in found}


def check_verb(fedkt, verb, used, complain):
    help_text = run(fedkt, *verb.split(), "--help")
    if help_text.returncode != 0 or help_text.stderr:
        complain(f"{verb} --help must exit 0 and say nothing on stderr")
    for same in (("help", *verb.split()), (*verb.split(), "-h")):
        if run(fedkt, *same).stdout != help_text.stdout:
            complain(f"fedkt {' '.join(same)} must be {verb} --help")
    listed = set(re.findall(r"(?m)^  (?:-h, )?(--[a-z0-9-]+)", help_text.stdout))
    shown = set(re.findall(r"--[a-z0-9-]+", help_text.stdout.split("\n\n")[1] + help_text.stdout.split("\n\n")[2]))
    for option in sorted((used | shown) - listed):
        complain(f"{verb}: {option} is used but not in its help")
    for option in sorted(listed - {"--help"}):
        answer = run(fedkt, *verb.split(), *(["info"] if verb == "codec" else []), option + "=\t", "--help").stderr
        if "unknown option" in answer:
            complain(f"{verb}: {option} is in the help but not taken")
    for line in help_text.stdout.splitlines():
        if len(line) > 140:
            complain(f"{verb}: a line of the help has {len(line)} columns")
    return listed


def main():
    fedkt, bad = sys.argv[1], []
    names = verbs(fedkt, bad.append)
    subs = subverbs(fedkt, names)
    names = [name for name in names if not any(sub.startswith(name + " ") for sub in subs)] + subs
    used = used_options(subs)
    listed = set().union(*(check_verb(fedkt, verb, used.get(verb, set()), bad.append) for verb in names))
    for option in sorted(table_options() - listed):
        bad.append(f"{option} stands in a table but in no verb's help")
    for verb in sorted(used.keys() - set(names) - {"frobnicate", "simualte", "bench", "task"}):
        bad.append(f"the cases use an unknown verb '{verb}'")
    print("\n".join(bad) or f"{len(names)} verbs, {len(listed)} options")
    return int(bool(bad) or len(names) < 10)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_messages.py - no string of the library names an option or a verb of the command line.

A program that embeds the library has other options. A failure carries a hint code (include/fedkt/status.h) and plain
words; src/cli/core/hints.c says the option. Checked, in the C strings of src/ but src/cli:
  - no word that begins with "--"; options of other programs stand in OTHER_PROGRAMS below, with the reason
  - no "fedkt VERB", for the verbs of src/cli/core/verbs.h
  - each code of enum fkt_hint has its own value, a row in src/cli/core/hints.c, and is given by the library
  - each option and each verb that src/cli/core/hints.c names exists

Usage: check_messages.py [--root DIR]      exit 0: all well, 1: violations on stdout, 2: nothing to check
"""

import argparse
import pathlib
import re
import sys

OTHER_PROGRAMS = {  # file: {option: reason}
    "src/images/decode.c": {
        "--write-png": "dcmj2pnm's, which turns a DICOM file into an image",
        "--set-window": "dcmj2pnm's",
    },
    "src/images/tar.c": {
        "--dereference": "tar's: an archive without links",
        "--hard-dereference": "tar's",
        "--sparse": "tar's: an archive whose files have no holes",
    },
}
TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*|\'(?:\\.|[^\'\\\n])*\'', re.S)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
COMMAND = re.compile(r"(?:'|: )fedkt ([a-z]+)")  # as it is to be typed; "that fedkt made" is not
INCLUDE = re.compile(r'^\s*#\s*include[^\n]*', re.M)


def strings(text):
    """(line, string) of each C string, with strings that stand one after another joined."""
    text = INCLUDE.sub(lambda m: " " * len(m.group()), text)
    text = text.replace("\\\n", " \n")
    for found in TOKENS.finditer(text):
        if found.group()[0] == '"':
            parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', found.group())
            yield text.count("\n", 0, found.start()) + 1, "".join(parts)


def check_strings(root, verbs):
    used, faults = set(), []
    named = re.compile(r"\bfedkt (" + "|".join(sorted(verbs)) + r")\b") if verbs else None
    for path in sorted(p for kind in ("*.[ch]", "*.cu", "*.cuh") for p in (root / "src").rglob(kind)):
        name = path.relative_to(root).as_posix()
        if name.startswith("src/cli/"):
            continue
        for line, string in strings(path.read_text()):
            for option in OPTION.findall(string):
                if option in OTHER_PROGRAMS.get(name, {}):
                    used.add((name, option))
                else:
                    faults.append(f"{name}:{line}: names the option '{option}'; give a hint code instead")
            if named and (verb := named.search(string)):
                faults.append(f"{name}:{line}: names the verb '{verb.group()}'; give a hint code instead")
    for name, options in OTHER_PROGRAMS.items():
        if (root / name).exists():
            faults += [f"{name}: the exception '{o}' is not needed" for o in options if (name, o) not in used]
    return faults


def check_codes(root):
    header = (root / "include/fedkt/status.h").read_text()
    codes = re.findall(r"\b(FKT_HINT_\w+) = (\d+)", header)
    phrases = (root / "src/cli/core/hints.c").read_text()
    library = "".join(p.read_text() for p in sorted((root / "src").rglob("*.c")) if "src/cli/" not in p.as_posix())
    faults, values = [], {}
    for code, value in codes:
        if value in values:
            faults.append(f"include/fedkt/status.h: {code} and {values[value]} are both {value}")
        values[value] = code
        if not re.search(rf"case {code}:", phrases):
            faults.append(f"src/cli/core/hints.c: no phrase for {code}")
        if not re.search(rf"\b{code}\b", library):
            faults.append(f"include/fedkt/status.h: nothing in the library gives {code}")
    return faults, len(codes)


def check_phrases(root, verbs):
    tables = "".join(p.read_text() for p in sorted((root / "src/cli").rglob("*.[ch]")))
    options = set(re.findall(r'\bCLI_(?:OPT_\w+\(|[A-Z]+,)\s*\\?\s*"([\w-]+)"', tables))
    faults = []
    for line, string in strings((root / "src/cli/core/hints.c").read_text()):
        where = f"src/cli/core/hints.c:{line}:"
        faults += [f"{where} no verb has the option '{o}'" for o in OPTION.findall(string) if o[2:] not in options]
        faults += [f"{where} there is no verb '{v}'" for v in COMMAND.findall(string) if v not in verbs]
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    verbs = set(re.findall(r"\bint cli_(\w+)\(", (root / "src/cli/core/verbs.h").read_text()))
    faults, codes = check_codes(root)
    if not verbs or not codes:
        sys.stderr.write("found no verbs or no hint codes\n")
        return 2
    faults += check_strings(root, verbs) + check_phrases(root, verbs)
    print("\n".join(faults) if faults else f"{codes} hint codes, {len(verbs)} verbs")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

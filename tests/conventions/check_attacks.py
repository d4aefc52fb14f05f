#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_attacks.py - every attack that docs/attacks.md lists is a test of that name, in the file named there, and
every test of tests/protocol/test_attacks_*.c is in the list. A test outside that folder may be listed twice (one
function may try several attacks) or not at all.

Usage: check_attacks.py [ROOT]      exit 0: the same, 1: differences on stdout
"""

import pathlib
import re
import sys

OURS = "tests/protocol/"


def rows(text):
    """(number, file, test) of each row; a heading names the file of the rows below it."""
    where = None
    for line in text.splitlines():
        head = re.search(r"\(`((?:tests/)?[\w/]*test_\w+\.(?:c|py))`\)$", line)
        row = re.match(r"\| (\d+) \| .* \| `(\w+)` \| .* \| .* \|$", line)
        if head:
            where = head[1] if "/" in head[1] else OURS + head[1]
        if row:
            yield int(row[1]), where, row[2]


def tests_of(path):
    """Names of the tests in a file that are run: listed for cmocka, or found by unittest."""
    if not path.exists():
        return set()
    text = path.read_text()
    if path.suffix == ".py":
        return set(re.findall(r"(?m)^\s+def (test_\w+)\(self", text))
    defined = set(re.findall(r"(?m)^static void (\w+)\(void \*\*state\)", text))
    listed = set(re.findall(r"\w*(?:unit_test\w*|CASE|TEST|T)\((\w+)[,)]", text))
    return defined & listed


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    found = list(rows((root / "docs/attacks.md").read_text()))
    listed = {(file, name) for _, file, name in found}
    files = {file for file, _ in listed} | {f"{OURS}{p.name}" for p in (root / OURS).glob("test_attacks_*.c")}
    tested = {(file, name) for file in files for name in tests_of(root / file)}
    wrong = [f"{file}: '{name}' is listed and not tested" for file, name in sorted(listed - tested)]
    wrong += [f"{file}: '{name}' is tested and not listed" for file, name in sorted(tested - listed) if OURS in file]
    if [number for number, _, _ in found] != list(range(1, len(found) + 1)):
        wrong.append(f"the attacks are not numbered from 1 to {len(found)}")
    ours = [name for _, file, name in found if OURS in file]
    wrong += [f"'{name}' stands twice in the list" for name in sorted({n for n in ours if ours.count(n) > 1})]
    print("\n".join(wrong) if wrong else f"{len(found)} attacks")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())

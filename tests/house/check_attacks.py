#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_attacks.py - every attack that docs/threat-model.md lists is a test of that name, in the file named there, and
every test of tests/protocol/test_attacks_*.c stands in the list.

Usage: check_attacks.py [ROOT]      exit 0: the same, 1: differences on stdout
"""

import pathlib
import re
import sys


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    listed, numbers, where = set(), [], None
    for line in (root / "docs/threat-model.md").read_text().splitlines():
        head = re.search(r"`(test_attacks_\w+\.c)`\)$", line)
        row = re.match(r"\| (\d+) \| .* \| `(\w+)` \| .* \| .* \|$", line)
        where = head[1] if head else where
        if row:
            listed.add((where, row[2]))
            numbers.append(int(row[1]))
    tested = {
        (path.name, name)
        for path in (root / "tests/protocol").glob("test_attacks_*.c")
        for name in re.findall(r"cmocka_unit_test\((\w+)\)", path.read_text())
    }
    wrong = [f"{file}: '{name}' is listed and not tested" for file, name in sorted(listed - tested)]
    wrong += [f"{file}: '{name}' is tested and not listed" for file, name in sorted(tested - listed)]
    if numbers != list(range(1, len(tested) + 1)):
        wrong.append(f"the attacks are not numbered from 1 to {len(tested)}")
    print("\n".join(wrong) if wrong else f"{len(tested)} attacks")
    return 1 if wrong or not tested else 0


if __name__ == "__main__":
    sys.exit(main())

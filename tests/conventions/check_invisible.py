#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_invisible.py - the table of src/base/invisible.c against Python's Unicode database.

That database does not have Default_Ignorable_Code_Point, but it has what the property is derived from: format
characters (Cf) except the visible ones, and variation selectors, by their names. Blanks are the separators. Each of
these must be in the table, and each entry of the table must be one of them, unassigned, or one of the letters and marks
listed here.

Usage: check_invisible.py [ROOT]      exit 0: the same, 1: differences on stdout
"""

import pathlib
import re
import sys
import unicodedata

VISIBLE_FORMAT = {  # Prepended_Concatenation_Mark, and signs that join hieroglyphs
    *range(0x0600, 0x0606), 0x06DD, 0x070F, *range(0x0890, 0x0892), 0x08E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)
}  # fmt: skip
BLANK_LETTERS = {  # Other_Default_Ignorable_Code_Point among assigned ones, and a braille pattern without a dot
    0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0
}  # fmt: skip


def wanted(c):
    kind = unicodedata.category(chr(c))
    if kind in ("Zs", "Zl", "Zp"):
        return c != 0x20
    if kind == "Cf":
        return c not in VISIBLE_FORMAT
    return c in BLANK_LETTERS or "VARIATION SELECTOR" in unicodedata.name(chr(c), "")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    text = (root / "src/base/invisible.c").read_text()
    rows = [(int(a, 16), int(b, 16)) for a, b in re.findall(r"\{(0x[0-9A-F]+), (0x[0-9A-F]+)\},", text)]
    table = {c for a, b in rows for c in range(a, b + 1)}
    points = [c for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000]
    wrong = [f"U+{c:04X} is missing" for c in points if wanted(c) and c not in table]
    wrong += [
        f"U+{c:04X} {unicodedata.name(chr(c), '')} should not be there"
        for c in points
        if c in table and not wanted(c) and unicodedata.category(chr(c)) != "Cn"
    ]
    if rows != sorted(rows) or any(a > b for a, b in rows):
        wrong.append("the ranges are not in order")
    print("\n".join(wrong[:50]) if wrong else f"{len(rows)} ranges, Unicode {unicodedata.unidata_version}")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())

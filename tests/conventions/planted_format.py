# SPDX-License-Identifier: Apache-2.0
"""planted_format.py - check_format.py must find a file that is formatted otherwise, and a file in any C folder."""

import shutil
import sys

from planted import ROOT, PlantedFaults

GOOD = "int fkt_a(int x)\n{\n    if (x) return 1;\n    return 0;\n}\n"


def main():
    if not shutil.which("clang-format-14") and not shutil.which("clang-format"):
        print("skipped: clang-format is not installed")
        return 77
    faults = PlantedFaults()
    check = [sys.executable, ROOT / "tests/conventions/check_format.py", "--root", "{tree}"]
    tree = {".clang-format": (ROOT / ".clang-format").read_text(), "src/a.c": GOOD}
    faults.run("formatted", check, tree, 0, "1 files are formatted")
    faults.run("a tab", check, {**tree, "src/a.c": GOOD.replace("    if", "\tif")}, 1, "src/a.c: not formatted")
    faults.run("a brace elsewhere", check, {**tree, "fuzz/b.h": "struct b\n{\n    int x;\n};\n"}, 1, "fuzz/b.h")
    faults.run("a kernel", check, {**tree, "src/b.cu": "int  x;\n"}, 1, "src/b.cu: not formatted")
    faults.run("no files", check, {".clang-format": tree[".clang-format"]}, 1, "no C files")
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""planted_headers.py - check_headers.sh must find a header that needs another, has no guard, or is not C++."""

import sys

from planted import ROOT, PlantedFaults

GOOD = "#ifndef A_H\n#define A_H\n#include <stddef.h>\nsize_t a(void);\n#endif\n"
CASES = [
    ("a header that needs another first", "size_t a(void);\n", "c11.c"),
    ("a header without a guard", "struct a { int x; };\n", "c11.c"),
    ("a header that is not C++", "int a(int class);\n", "cxx17.cpp"),
    ("a header that warns", "static int a(void) { int unused; return 0; }\n", "c11.c"),
    (
        "a guard that closes too late for C++",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n#ifndef A_H\n#define A_H\nint a(void);\n'
        "#ifdef __cplusplus\n}\n#endif\n#endif\n",
        "cxx17.cpp",
    ),
]


def main():
    faults = PlantedFaults()
    tool = ["sh", ROOT / "tools" / "check_headers.sh", "{tree}"]
    faults.run("a good header", tool, {"include/fedkt/a.h": GOOD}, 0)
    for title, text, says in CASES:
        faults.run(
            title,
            tool,
            {"include/fedkt/good.h": GOOD, "include/fedkt/a.h": text},
            1,
            f"fedkt/a.h: does not compile alone as {says}",
        )
    faults.run("no headers at all", tool, {"include/readme": ""}, 1, "no public headers")
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())

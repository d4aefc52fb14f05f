# SPDX-License-Identifier: Apache-2.0
"""planted_limits.py - limits.py must report each broken limit and convention, and nothing in a good tree."""

import sys

from planted import SPDX, PlantedFaults, python_tool

HEAD = SPDX + "/* a.c - what it is for. */\n"
BODY = "static int f(int x)\n{\n    return x;\n}\n"
LONG = "static int f(int x)\n{\n" + "    x++;\n" * 78 + "    return x;\n}\n"
GOOD = {
    "src/base/banned.h": SPDX + "/* banned.h - what does not compile. */\n#define strcpy(d, s) no\n",
    "src/base/a.c": HEAD + '/* strcpy( printf( in a comment */\nconst char *s = "strcpy(";\n' + BODY,
    "src/cli/a.c": HEAD + 'int main(void)\n{\n    printf("hello");\n}\n',
    "src/secagg/a.c": HEAD + '/* no float, no double */\nconst char *s = "double";\nint doubled;\n' + BODY,
    "src/secagg/finder.c": SPDX + "/* finder.c - tails. */\n#include <math.h>\ndouble tail;\n",
    "docs/a.md": "x" * 200 + "\n",
}
HALVES = "TO" + "DO"
CASES = [
    ("a file too long", "src/base/a.c", HEAD + "int x;\n" * 600, "file has 602 lines, at most 600"),
    ("a header too long", "src/base/a.h", SPDX + "/* a.h - long. */\n" + "int x;\n" * 219, "header has 221 lines"),
    ("a function too long", "src/base/a.c", HEAD + LONG, "function 'f' has 82 lines, at most 80"),
    ("a long function in a test", "tests/unit/a.c", HEAD + LONG, "function 'f' has 82 lines, at most 80"),
    ("a kernel too long", "src/base/a.cu", HEAD.replace("a.c", "a.cu") + LONG, "function 'f' has 82 lines, at most 80"),
    ("a brace that hides a function", "src/base/a.c", HEAD + "int f(void) {\n}\n", "brace of a function"),
    ("a line too wide", "src/base/a.c", HEAD + "int " + "x" * 116 + ";\n", "line has 121 columns"),
    ("a tab", "src/base/a.c", HEAD + "\tint x;\n", "tab"),
    ("blanks at the end", "src/base/a.c", HEAD + "int x; \n", "blanks at the end"),
    ("no licence line", "src/base/a.c", "/* a.c - what it is for. */\n", "must open with"),
    ("no licence line in a test", "tests/unit/a.c", BODY, "must open with"),
    ("no opening comment", "src/base/a.c", SPDX + BODY, "after the licence line"),
    ("the opening comment of another file", "src/base/a.c", SPDX + "/* b.c - moved. */\n", "after the licence line"),
    ("a note to self in code", "src/base/a.c", HEAD + f"/* {HALVES}: later */\n", "note to self"),
    ("a note to self in docs", "docs/a.md", f"# Heading\n{HALVES}\n", "docs/a.md:2: note to self"),
    ("a machine's path", "docs/a.md", "see /" + "home/me/data\n", "path of one machine"),
    ("a banned function", "src/base/a.c", HEAD + "int x = strcpy(a, b);\n", "'strcpy' is banned"),
    ("a banned function in a test", "tests/unit/a.c", HEAD + "int x = strcpy(a, b);\n", "'strcpy' is banned"),
    ("a library that prints", "src/base/a.c", HEAD + 'int x = printf("x");\n', "neither prints nor ends"),
    ("a library that exits", "src/base/a.c", HEAD + "void f(void) { exit(1); }\n", "neither prints nor ends"),
    ("stdio beside secrets", "src/privacy/a.c", HEAD + "int x = fprintf(f, s);\n", "module that holds secrets"),
    ("a float in a round", "src/secagg/a.c", HEAD + "static float x;\n", "'float': sums of a round are integers"),
    ("a double in a header", "src/secagg/a.h", SPDX + "/* a.h - x. */\ndouble f(int);\n", "'double': sums of a round"),
    ("mathematics in a round", "src/secagg/a.c", HEAD + "#include <math.h>\n", "'<math.h>': sums of a round"),
    ("stderr beside secrets", "src/crypto/a.c", HEAD + "void *p = stderr;\n", "module that holds secrets"),
    ("an exception that is not needed", "tools/limits.txt", "file src/base/a.c 900 long ago\n", "is not needed"),
    ("an exception that is too small", "tools/limits.txt", "columns src/base/wide.c 130 table\n", "at most 130"),
]


def main():
    faults = PlantedFaults()
    tool = python_tool("limits.py")
    faults.run("a good tree", tool, GOOD, 0)
    wide = SPDX + "/* wide.c - a table. */\nint " + "x" * 130 + ";\n"
    for title, path, text, says in CASES:
        files = {**GOOD, path: text}
        if "too small" in title:
            files["src/base/wide.c"] = wide
        faults.run(title, tool, files, 1, says)
    granted = {**GOOD, "src/base/wide.c": wide, "tools/limits.txt": "columns src/base/wide.c 140 a table\n"}
    faults.run("an exception that is needed", tool, granted, 0)
    granted = {**GOOD, "src/base/a.c": HEAD + LONG, "tools/limits.txt": "function src/base/a.c:f 90 one table\n"}
    faults.run("an exception for a function", tool, granted, 0)
    bare = {**GOOD, "tools/limits.txt": "file src/base/a.c 900\n"}
    faults.run("an exception without a reason", tool, bare, 2, "want")
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""limits.py - limits of length, and small conventions, checked on every file.

Lengths:      a file at most 600 lines (above 400 a note is printed), a header 220, a C function 80, a line 120 columns.
Conventions:  a file of src/ opens with the SPDX line and a comment that names the file and says what it is for; no
              notes to self, no paths of one machine; functions of src/base/banned.h are not used; the library does not
              print or exit; crypto/ and privacy/ do not use stdio output at all; secagg/ does not use floating point,
              except in finder.c, which no round runs; C has no tabs and no blanks at line ends, and the brace of a
              function is on its own line.
Exceptions are listed by name in tools/limits.txt, each with a bound and a reason. An exception that is no longer needed
is a violation.

Usage: limits.py [--root DIR]      exit 0: all well, 1: violations on stdout, 2: misuse or a broken exception list
"""

import argparse
import pathlib
import re
import sys

FILE_LINES, FILE_WARN, HEADER_LINES, FUNCTION_LINES, COLUMNS = 600, 400, 220, 80, 120
HEADERS, C = {".h", ".cuh"}, {".c", ".h", ".cu", ".cuh"}
CODE = C | {".py", ".sh"}
TEXT = CODE | {".md", ".txt", ".toml", ".json", ".cff", ".cmake", ".in", ".yml", ".yaml"}
FOLDERS = ["src", "include", "tests", "tools", "fuzz", "examples", "bench", "docs", "oracle", "bindings", "packaging"]
FOLDERS += [".ci"]
SPDX = "SPDX-License-Identifier: Apache-2.0"
# Written in halves, so that this file does not match itself.
NOTES = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE = re.compile(r"(?<![\w.~/-])/(?:work|home|root|Users|mnt)/")
LITERALS = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
PRINTS = re.compile(r"\b(stdout|stderr|(?:v?printf|puts|putchar|perror|exit|_exit|_Exit|abort)(?=\s*\())")
FLOATS = re.compile(r"\b(float|double|_Complex)\b|<(?:math|tgmath|float|complex)\.h>")
FLOATS_ALLOWED = "src/secagg/finder.c"
STDIO = re.compile(r"\b(stdout|stderr|(?:v?[fd]?printf|f?puts|f?putc|putchar|fwrite|perror|exit|abort)(?=\s*\())")


def without_literals(text):
    """The C text with comments and strings blanked, line numbers kept."""
    return LITERALS.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


class Exceptions:
    """Lines of tools/limits.txt: kind path[:function] bound reason; kinds: file header function columns."""

    def __init__(self, path):
        self.bounds, self.used, self.path = {}, set(), path
        for number, line in enumerate(path.read_text().splitlines(), 1) if path.exists() else []:
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            words = line.split(None, 3)
            if len(words) < 4 or words[0] not in ("file", "header", "function", "columns") or not words[2].isdigit():
                sys.stderr.write(f"{path}:{number}: want 'kind path bound reason'\n")
                sys.exit(2)
            self.bounds[(words[0], words[1])] = int(words[2])

    def bound(self, kind, name, usual, measured):
        """The bound for `name`; notes that the exception was needed."""
        special = self.bounds.get((kind, name))
        if special is None:
            return usual
        if measured > usual:
            self.used.add((kind, name))
        return max(usual, special)

    def unused(self):
        return sorted(set(self.bounds) - self.used)


class Inspector:
    def __init__(self, root):
        self.root, self.complaints, self.warnings = root, [], []
        self.exceptions = Exceptions(root / "tools" / "limits.txt")
        banned = root / "src" / "base" / "banned.h"
        names = re.findall(r"^#define (\w+)\(", banned.read_text(), re.M) if banned.exists() else []
        self.banned = re.compile(r"\b(" + "|".join(names) + r")\s*\(") if names else None

    def complain(self, name, line, text):
        self.complaints.append((name, line, text))

    def each_match(self, name, text, pattern, sentence):
        for found in pattern.finditer(text):
            word = found.group(1) or found.group() if found.groups() else found.group()
            self.complain(name, text.count("\n", 0, found.start()) + 1, sentence.format(word))

    def check_measures(self, name, path, lines):
        kind, usual = ("header", HEADER_LINES) if path.suffix in HEADERS else ("file", FILE_LINES)
        bound = self.exceptions.bound(kind, name, usual, len(lines))
        if len(lines) > bound:
            self.complain(name, len(lines), f"{kind} has {len(lines)} lines, at most {bound}")
        elif len(lines) > FILE_WARN and bound == usual:
            self.warnings.append(f"{name}: {len(lines)} lines; is it one noun?")
        widest = max((len(line) for line in lines), default=0)
        bound = self.exceptions.bound("columns", name, COLUMNS, widest)
        for number, line in enumerate(lines, 1):
            if len(line) > bound:
                self.complain(name, number, f"line has {len(line)} columns, at most {bound}")

    def check_functions(self, name, lines):
        """A function stands between a brace in the first column and its twin; its head is the lines just above."""
        start = None
        for number, line in enumerate(lines, 1):
            if re.match(r"[A-Za-z_].*\)\s*\{\s*$", line):
                self.complain(name, number, "the brace of a function stands on a line of its own")
            if line == "{" and start is None:
                start = number - 1
                while start > 1 and not re.match(r"\s*$|[}#]|.*;$", lines[start - 2]):
                    start -= 1
            elif line == "}" and start is not None:
                called = re.search(r"(\w+)\s*\(", " ".join(lines[start - 1 : number]))
                label = f"{name}:{called.group(1) if called else '?'}"
                length = number - start + 1
                bound = self.exceptions.bound("function", label, FUNCTION_LINES, length)
                if length > bound:
                    short = label.split(":")[1]
                    self.complain(name, start, f"function '{short}' has {length} lines, at most {bound}")
                start = None

    def check_c(self, name, path, text, lines):
        bare = without_literals(text)
        for number, line in enumerate(lines, 1):
            if "\t" in line:
                self.complain(name, number, "tab")
            if line != line.rstrip():
                self.complain(name, number, "blanks at the end of the line")
        if path.suffix not in HEADERS:
            self.check_functions(name, bare.splitlines())
        if self.banned and name != "src/base/banned.h":
            self.each_match(name, bare, self.banned, "'{}' is banned, see src/base/banned.h")
        parts = pathlib.PurePath(name).parts
        if parts[:2] == ("src", "secagg") and name != FLOATS_ALLOWED:
            self.each_match(name, bare, FLOATS, "'{}': sums of a round are integers, see docs/decisions/0006-secagg.md")
        if parts[0] == "src" and len(parts) > 2:
            if parts[1] in ("crypto", "privacy", "secagg"):
                self.each_match(name, bare, STDIO, "'{}': no stdio output in a module that holds secrets")
            elif parts[1] != "cli":
                self.each_match(name, bare, PRINTS, "'{}': a library neither prints nor ends the program")

    def check_opening(self, name, path, lines):
        head = lines[1:] if lines and lines[0].startswith("#!") else lines
        if not head or SPDX not in head[0]:
            self.complain(name, 1, f"the file must open with '{SPDX}'")
        elif (
            path.suffix in C
            and name.startswith(("src/", "include/"))
            and (len(head) < 2 or not head[1].startswith(f"/* {path.name} - "))
        ):
            self.complain(name, 2, f"after the licence line comes: '/* {path.name} - what it is for'")

    def check_file(self, path):
        name = path.relative_to(self.root).as_posix()
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            self.complain(name, 1, "not UTF-8")
            return
        lines = text.splitlines()
        self.each_match(name, text, NOTES, "note to self '{}'")
        self.each_match(name, text, MACHINE, "'{}...' is a path of one machine")
        if path.suffix in CODE or path.name == "CMakeLists.txt":
            self.check_measures(name, path, lines)
            self.check_opening(name, path, lines)
        if path.suffix in C:
            self.check_c(name, path, text, lines)

    def check(self):
        paths = [p for p in self.root.iterdir() if p.is_file()]
        for folder in FOLDERS:
            paths += [p for p in (self.root / folder).rglob("*") if p.is_file()]
        for path in sorted(paths):
            parts = path.relative_to(self.root).parts
            if "__pycache__" in parts or "vectors" in parts or "corpus" in parts:
                continue
            if path.suffix in TEXT or parts[0] == ".ci":
                self.check_file(path)
        for kind, name in self.exceptions.unused():
            self.complain("tools/limits.txt", 0, f"the exception '{kind} {name}' is not needed")
        return sorted(self.complaints)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    inspector = Inspector(parser.parse_args().root.resolve())
    complaints = inspector.check()
    for line in inspector.warnings:
        print(f"note: {line}")
    for name, number, text in complaints:
        print(f"{name}:{number}: {text}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

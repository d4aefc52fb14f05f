#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_modules.py - hold every #include of src/, include/ and examples/ against tools/modules.toml.

A module may include: itself, the C library and POSIX, fedkt/status.h, and what its table lists (modules, public
headers, outside libraries). Files under `never` may not be reached at all, not even through a header of an allowed
module. `only` keeps a library to one file or folder of the module. A table may name its folder; without one it is
src/<name>. `posix = false` leaves only the C standard library.

Usage: check_modules.py [--root DIR]      exit 0: all well, 1: violations on stdout, 2: misuse or a broken table
"""

import argparse
import pathlib
import re
import sys
import tomllib

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>|(\S.*))')
STANDARD = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype""".split())
POSIX = set("""arpa/inet dirent fcntl fnmatch ftw getopt glob libgen poll pthread pwd sched semaphore strings termios
unistd sys/auxv sys/file sys/ioctl sys/mman sys/random sys/resource sys/socket sys/stat sys/statvfs sys/time sys/types
sys/uio sys/utsname sys/wait""".split())


def includes_of(path):
    """(line number, "quoted", "angled", "other") for each include; exactly one of the three is set."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, *found.groups()


def code_of(folder):
    """C files, and CUDA's."""
    return sorted(p for kind in ("*.[ch]", "*.cu", "*.cuh") for p in folder.rglob(kind))


def library_allowed(header, libraries):
    """archive covers archive.h, archive_entry.h and archive/...; nothing else."""
    stem = header.removesuffix(".h")
    return any(stem == lib or stem.startswith((lib + "_", lib + "/")) for lib in libraries)


class Tree:
    def __init__(self, root):
        self.root = root
        with open(root / "tools" / "modules.toml", "rb") as file:
            self.modules = tomllib.load(file)
        self.complaints = []

    def folder(self, module):
        return self.root / self.modules[module].get("folder", f"src/{module}")

    def complain(self, path, number, text):
        self.complaints.append((str(path.relative_to(self.root)), number, text))

    def resolve(self, name):
        for base in ("src", "include", "."):
            if (self.root / base / name).is_file():
                return self.root / base / name
        return None

    def reached(self, name, seen):
        """Names of all our headers that `name` brings along, with the chain that leads there."""
        path = self.resolve(name)
        if path is None:
            return
        for _, quoted, _, _ in includes_of(path):
            if quoted and quoted not in seen:
                seen[quoted] = seen[name] + [quoted]
                self.reached(quoted, seen)

    def check_quoted(self, module, rule, path, number, name):
        head, _, tail = name.partition("/")
        allowed = rule.get("modules", [])
        if not tail or head in (".", ".."):
            self.complain(path, number, f"include '{name}' must name its module: \"module/file.h\"")
        elif head == "fedkt":
            stem = tail.removesuffix(".h")
            public = rule.get("public", [])
            if stem != "status" and stem not in public and "*" not in public:
                self.complain(
                    path,
                    number,
                    f"module '{module}' may not include public header '{name}' "
                    f"(allowed: {', '.join(['status', *public])})",
                )
        elif head not in self.modules:
            self.complain(path, number, f"include '{name}' names no module of tools/modules.toml")
        elif head != module and head not in allowed:
            self.complain(
                path,
                number,
                f"module '{module}' may not include '{head}' (allowed: {', '.join(allowed) or 'none'})",
            )
        seen = {name: [name]}
        self.reached(name, seen)
        for banned in rule.get("never", []):
            if banned in seen:
                way = "" if len(seen[banned]) == 1 else f" (by way of {' -> '.join(seen[banned])})"
                self.complain(path, number, f"module '{module}' may never include '{banned}'{way}")

    def check_angled(self, module, rule, path, number, name):
        stem = name.removesuffix(".h")
        if stem in STANDARD or (rule.get("posix", True) and stem in POSIX):
            return
        libraries = rule.get("libraries", [])
        if not library_allowed(name, libraries):
            self.complain(
                path,
                number,
                f"module '{module}' may not use <{name}> " f"(libraries allowed: {', '.join(libraries) or 'none'})",
            )
        for library, place in rule.get("only", {}).items():
            home = self.folder(module) / place
            if library_allowed(name, [library]) and home != path and home not in path.parents:
                self.complain(path, number, f"<{name}> belongs to '{place}' of module '{module}' alone")

    def check_room(self, module):
        rule = self.modules[module]
        for path in code_of(self.folder(module)):
            for number, quoted, angled, other in includes_of(path):
                if quoted:
                    self.check_quoted(module, rule, path, number, quoted)
                elif angled:
                    self.check_angled(module, rule, path, number, angled)
                else:
                    self.complain(path, number, f"include of '{other}' cannot be checked: write the file's name")

    def check(self):
        for module, rule in self.modules.items():
            for other in rule.get("modules", []):
                if other not in self.modules:
                    sys.stderr.write(f"check_modules.py: module '{module}' lists the unknown module '{other}'\n")
                    sys.exit(2)
            self.check_room(module)
        for path in code_of(self.root / "src"):
            if path.relative_to(self.root / "src").parts[0] not in self.modules:
                self.complain(path, 1, "the file belongs to no module of tools/modules.toml")
        return sorted(set(self.complaints))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    tree = Tree(parser.parse_args().root.resolve())
    complaints = tree.check()
    for path, number, text in complaints:
        print(f"{path}:{number}: {text}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

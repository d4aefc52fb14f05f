#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_docs.py - what the documents tell people to type works.

Usage: run_docs.py FEDKT CC [FILE...]      without files: README.md and docs/*.md

A fenced block is tried when the line before it (blank lines between them do not count) is a mark:
  <!-- run -->       a ```sh block: the blocks of one file run in order, in one temporary folder, with `sh -eu`; the
                     folder of the binary comes first in PATH
  <!-- python -->    a ```python block: runs in the same folder and order, with this Python (NumPy is there) and the
                     package of the build tree
  <!-- compile -->   a ```c block: a whole file, compiled against include/ with warnings as errors
A mark before anything else is an error, so that no block is left out by a slip of the pen. Before all that the
extractor is tried on a sample that it must read rightly, and on slips that it must notice.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MARKS = {"run": "sh", "python": "python", "compile": "c"}
FENCE = re.compile(r"(`{3,}|~{3,})\s*(\S*)")

SAMPLE = """\
# A document
```sh
false   # not marked: not run
```
<!-- run -->
```sh
echo one > out
```
text, then a mark and a blank line

<!-- run -->

~~~sh
grep one out
echo '```'
~~~
<!-- compile -->
```c
int main(void) { return 0; }
```
<!-- python -->
```python
print(1)
```
"""
SLIPS = [
    "<!-- run -->\nno block\n",
    "<!-- run -->\n```c\n```\n",
    "<!-- compile -->\n```sh\n```\n",
    "<!-- python -->\n```sh\n```\n",
    "<!-- run -->\n",
    "<!-- run -->\n```sh\nnever closed\n",
]


class Slip(Exception):
    pass


def blocks(text):
    """Gives (line number, mark, code) for each marked block."""
    mark, fence, start, code = None, None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            if line.strip() == fence:
                if mark:
                    yield start, mark, "\n".join(code) + "\n"
                mark, fence = None, None
            else:
                code.append(line)
            continue
        opened = FENCE.match(line)
        if opened:
            if mark and opened[2] != MARKS[mark]:
                raise Slip(f"line {number}: '{mark}' stands before a block of '{opened[2]}'")
            fence, start, code = opened[1], number, []
        elif found := re.fullmatch(r"<!--\s*(run|python|compile)\s*-->", line.strip()):
            mark = found[1]
        elif mark and line.strip():
            raise Slip(f"line {number}: '{mark}' stands before no block")
    if mark or fence:
        raise Slip("the last block or mark is not finished")


def self_test():
    found = list(blocks(SAMPLE))
    wanted = [
        (6, "run", "echo one > out\n"),
        (13, "run", "grep one out\necho '```'\n"),
        (18, "compile", "int main(void) { return 0; }\n"),
        (22, "python", "print(1)\n"),
    ]
    if found != wanted:
        sys.exit(f"the extractor reads its sample wrongly: {found}")
    for slip in SLIPS:
        try:
            list(blocks(slip))
        except Slip:
            continue
        sys.exit(f"the extractor does not notice {slip!r}")


def run_shell(code, fedkt, folder):
    environment = {**os.environ, "PATH": f"{fedkt.parent}:{os.environ['PATH']}", "LC_ALL": "C"}
    return subprocess.run(
        ["sh", "-eu", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )


def run_python(code, fedkt, folder):
    build = fedkt.parent.parent
    environment = {**os.environ, "PYTHONPATH": str(build / "python"), "FEDKT_LIBRARY": str(build / "lib/libfedkt.so")}
    return subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )


def compile_c(code, compiler, folder):
    (folder / "block.c").write_text(code)
    return subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-c", "block.c", "-o", "block.o"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def tour(said):
    """The README's tour shows the thing working: a network that has learned, and sites that gain by tuning."""
    network = re.findall(r"(?m)^accuracy ([\d.]+) % on \d+ images", said)
    if not network or not float(network[-1]) >= 50:
        yield f"the tour's network is right on {network[-1:]} %, not on half of the images"
    mean = re.search(r"(?m)^mean of the sites +([\d.]+) % +([\d.]+) %$", said)
    if not mean or not float(mean[2]) >= float(mean[1]) + 10:
        yield f"the tour's sites do not gain ten points by tuning: {mean and mean[0]}"


CLAIMS = {"README.md": tour}


def try_file(path, text, fedkt, compiler):
    """Gives (blocks tried, complaints)."""
    tried, bad, said = 0, [], ""
    with tempfile.TemporaryDirectory(prefix="fedkt-docs-") as name:
        folder = pathlib.Path(name)
        try:
            for line, mark, code in blocks(text):
                tried += 1
                if mark == "run":
                    done = run_shell(code, fedkt, folder)
                else:
                    done = run_python(code, fedkt, folder) if mark == "python" else compile_c(code, compiler, folder)
                said += done.stdout
                if done.returncode:
                    bad.append(f"{path}:{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
                    break  # later blocks build on earlier ones
        except Slip as slip:
            bad.append(f"{path}: {slip}")
    check = CLAIMS.get(getattr(path, "name", ""))
    if check and not bad:
        bad += [f"{path}: {wrong}" for wrong in check(said)]
    return tried, bad


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    fedkt, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    self_test()
    tried, bad = try_file("sample", SAMPLE, fedkt, compiler)
    if tried != 4 or bad:
        sys.exit("the sample does not run: " + "\n".join(bad))
    if not try_file("sample", SAMPLE.replace("grep one", "grep two"), fedkt, compiler)[1]:
        sys.exit("a failing block is not noticed")
    files = [pathlib.Path(name) for name in sys.argv[3:]] or [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    total = 0
    for path in files:
        tried, found = try_file(path, path.read_text(), fedkt, compiler)
        total += tried
        bad += found
    print("\n".join(bad) or f"{total} blocks of {len(files)} documents")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""test_declarations.py - what declare.py made of the headers, against two C compilers and the lists of symbols."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from fedkt import _declarations as c
from fedkt import _library

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = '#include "fedkt/fedkt.h"\n#include "fedkt/advanced/advanced.h"\n'


def test_every_public_function_is_declared_and_no_other():
    lists = [(ROOT / f"tools/symbols/{tier}.txt").read_text() for tier in ("stable", "advanced")]
    listed = {name for text in lists for name in text.split()}
    assert set(c.FUNCTIONS) == listed
    for name in listed:
        assert getattr(_library.lib, name).argtypes == c.FUNCTIONS[name][1]


def test_sizes_offsets_and_constants(tmp_path):
    compiler = os.environ.get("FEDKT_CC") or shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    claims = []
    for name, kind in c.STRUCTS.items():
        claims.append(f"sizeof(struct {name}) == {ctypes.sizeof(kind)}")
        for field, *_ in kind._fields_:
            member = getattr(kind, field)
            claims.append(f"offsetof(struct {name}, {field}) == {member.offset}")
            claims.append(f"sizeof(((struct {name} *)0)->{field}) == {member.size}")
    constants = {k: v for k, v in vars(c).items() if k.startswith("FKT_") and isinstance(v, (int, float))}
    claims += [f"{name} == {value!r}" for name, value in constants.items()]
    assert len(c.STRUCTS) > 80 and len(constants) > 200
    source = tmp_path / "claims.c"
    source.write_text(HEADERS + "#include <stddef.h>\n" + "".join(f'_Static_assert({x}, "");\n' for x in claims))
    words = [compiler, "-std=c11", "-fsyntax-only", "-I", ROOT / "include", source]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def kind_of(qualified):
    """The ctypes type that declare.py's rules give for a type as clang writes it."""
    stars = qualified.count("*") + qualified.count("[")
    words = [w for w in qualified.split("[")[0].replace("*", " ").split() if w not in ("const", "volatile")]
    name = " ".join(words)
    if stars == 0:
        return {"void": None, "int": ctypes.c_int, "unsigned int": ctypes.c_uint, "double": ctypes.c_double,
                "size_t": ctypes.c_size_t, "fkt_status": ctypes.c_int, "uint32_t": ctypes.c_uint32,
                "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64}.get(
                    name, ctypes.c_int if words[0] == "enum" else c.STRUCTS.get(words[-1], KeyError))  # fmt: skip
    if stars == 1 and name == "char":
        return ctypes.c_char_p
    if stars == 1 and words[0] == "struct" and words[1] in c.STRUCTS:
        return ctypes.POINTER(c.STRUCTS[words[1]])
    if stars == 2:
        return ctypes.POINTER(ctypes.c_char_p if name == "char" else ctypes.c_void_p)
    return ctypes.c_void_p


def test_prototypes_are_those_that_clang_reads(tmp_path):
    clang = shutil.which("clang")
    if not clang:
        pytest.skip("clang is not installed")
    source = tmp_path / "all.c"
    source.write_text(HEADERS)
    words = [clang, "-std=c11", "-fsyntax-only", "-Xclang", "-ast-dump=json", "-I", ROOT / "include", source]
    tree = json.loads(subprocess.check_output(words))
    seen = 0
    for node in tree["inner"]:
        if node["kind"] != "FunctionDecl" or node["name"] not in c.FUNCTIONS:
            continue
        result, parameters = c.FUNCTIONS[node["name"]]
        found = [p["type"]["qualType"] for p in node.get("inner", []) if p["kind"] == "ParmVarDecl"]
        assert [kind_of(kind) for kind in found] == parameters, node["name"]
        written = node["type"]["qualType"].split("(")[0].strip()
        assert kind_of(written) == result, node["name"]
        seen += 1
    assert seen == len(c.FUNCTIONS)

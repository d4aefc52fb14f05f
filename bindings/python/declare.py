#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""declare.py - the public headers of fedkt as ctypes declarations: constants, structs and prototypes.

The build runs it and puts the result beside the package as `_declarations.py`, so that no declaration is written twice
and none can differ from its header. It reads the C that `include/fedkt` is written in (tools/check_headers.sh keeps it
plain: no macros around declarations, no bit fields, no unions), and stops at anything that it does not understand.
`tests/test_declarations.py` has a C compiler check every size, offset and constant.

How C becomes ctypes:
    const char *                    c_char_p
    pointer to a struct that a header defines     POINTER(that struct)
    any other pointer, handles and arrays among them    c_void_p: NumPy gives addresses
    pointer to a pointer            POINTER(c_char_p) for text, else POINTER(c_void_p)
    enum, fkt_status                c_int
Functions are declared with None as `restype` where C has void. A struct `fkt_dataset_options` is the class
`DatasetOptions`.

Usage: declare.py INCLUDE_FOLDER OUTPUT
"""

import pathlib
import re
import sys

NUMBERS = {
    "int": "c_int",
    "unsigned": "c_uint",
    "unsigned long long": "c_ulonglong",
    "char": "c_char",
    "float": "c_float",
    "double": "c_double",
    "size_t": "c_size_t",
    "sig_atomic_t": "c_int",
    "fkt_status": "c_int",
    **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
LIMITS = {"UINT32_MAX": 2**32 - 1}  # of <stdint.h>, where a constant of ours is one of them
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""Made by declare.py from the public headers: do not edit."""

from ctypes import *  # noqa: F403

'''


class Misread(Exception):
    """C that this reader does not know."""


def class_name(struct):
    return "".join(word.capitalize() for word in struct.removeprefix("fkt_").split("_"))


def plain_text(folder):
    """All headers in one text, without comments."""
    files = [p for p in sorted(folder.glob("*.h")) if p.name != "fedkt.h"]
    files += [p for p in sorted(folder.glob("advanced/*.h")) if p.name != "advanced.h"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


class Headers:
    def __init__(self, folder):
        text = plain_text(folder)
        self.constants = {}
        self.read_macros(text)
        text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{', "", text)
        self.read_enums(text)
        self.structs = {
            name: self.fields(body) for name, body in re.findall(r"\bstruct\s+(fkt_\w+)\s*\{(.*?)\}\s*;", text, re.S)
        }
        self.functions = {}
        for result, name, parameters in re.findall(
            r"FKT_API\s+(?:FKT_MUST_USE\s+)?([^;()]*?)\b(fkt_\w+)\s*\(([^;]*)\)\s*;", text, re.S
        ):
            self.functions[name] = (result.strip(), self.parameters(parameters))

    def read_macros(self, text):
        for name, value in re.findall(r"^#define[ \t]+(FKT_\w+|FEDKT_VERSION_\w+)[ \t]+(.+)$", text, re.M):
            value = re.sub(r"\((?:u?int\d+_t)\)", "", value.strip())
            value = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", value)
            if re.fullmatch(r'[-+*/<>() .\w]+|"[^"]*"', value):
                try:
                    self.constants[name] = eval(value, {"__builtins__": {}, **LIMITS}, dict(self.constants))
                except (NameError, SyntaxError, TypeError):
                    continue  # a macro that is not a constant: FKT_API, FKT_MUST_USE

    def read_enums(self, text):
        for body in re.findall(r"\benum\b(?:\s+fkt_\w+)?\s*\{(.*?)\}", text, re.S):
            value = -1
            for item in filter(None, (item.strip() for item in body.split(","))):
                name, _, expression = (part.strip() for part in item.partition("="))
                value = self.number(expression) if expression else value + 1
                self.constants[name] = value

    def number(self, expression):
        return eval(expression, {"__builtins__": {}}, dict(self.constants))

    def fields(self, body):
        """(name, C type, dimensions) of each member; a function pointer has its parameters instead of dimensions."""
        found = []
        for line in filter(None, (line.strip() for line in body.split(";"))):
            hook = re.fullmatch(r"(.*?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)", line, re.S)
            if hook:
                found.append((hook[2], hook[1].strip(), self.parameters(hook[3])))
                continue
            base, declarators = self.split_declaration(line)
            for declarator in declarators:
                stars, name, dimensions = self.declarator(declarator)
                found.append((name, f"{base} {stars}".strip(), dimensions))
        return found

    def split_declaration(self, line):
        match = re.match(r"((?:(?:const|volatile|struct|enum|unsigned|long)\s+)*\w+(?:\s+const)?)\s*(.*)", line, re.S)
        words = match[1].split()
        if len(words) == 1 and not match[2]:
            raise Misread(line)
        if words[-1] not in NUMBERS and "struct" not in words and "enum" not in words and words[-1] != "void":
            match = re.match(r"((?:\w+\s+)+)(.*)", line, re.S)
        return match[1].strip(), [part.strip() for part in match[2].split(",")]

    def declarator(self, text):
        match = re.fullmatch(r"((?:\*|const|\s)*)(\w+)((?:\s*\[[^\]]*\])*)", text, re.S)
        if not match:
            raise Misread(text)
        dimensions = [self.number(d) for d in re.findall(r"\[([^\]]+)\]", match[3])]
        return match[1].replace("const", " ").replace(" ", ""), match[2], dimensions

    def parameters(self, text):
        text = " ".join(text.split())
        if text in ("void", ""):
            return []
        found = []
        for part in text.split(","):
            match = re.fullmatch(r"\s*(.*?)\s*(\w*)\s*(\[[^\]]*\])?\s*", part)
            kind, name, array = match[1], match[2], match[3]
            if name in NUMBERS or name.startswith("fkt_") or name == "void" or not kind:
                kind = f"{kind} {name}".strip()  # a parameter without a name
            found.append(kind + (" *" if array else ""))
        return found

    def ctype(self, kind):
        """The ctypes expression for a C type without dimensions."""
        stars = kind.count("*")
        words = [word for word in kind.replace("*", " ").split() if word not in ("const", "volatile")]
        name = " ".join(words)
        if stars == 0:
            if name == "void":
                return "None"
            if words[0] == "enum":
                return "c_int"
            if words[0] == "struct":
                return class_name(words[1])
            return NUMBERS[name]
        if stars == 1:
            if name == "char":
                return "c_char_p"
            if words[0] == "struct" and words[1] in self.structs:
                return f"POINTER({class_name(words[1])})"
            return "c_void_p"
        if stars == 2:
            return "POINTER(c_char_p)" if name == "char" else "POINTER(c_void_p)"
        return "c_void_p"

    def hook(self, result, parameters):
        kinds = [self.ctype(kind) for kind in parameters]
        return f"CFUNCTYPE({', '.join([self.ctype(result), *kinds])})"

    def field(self, name, kind, more):
        if more and isinstance(more[0], str):
            return self.hook(kind, more)
        expression = self.ctype(kind)
        for size in reversed(more):
            expression += f" * {size}"
        return expression

    def in_order(self):
        """Struct names such that what is held by value comes first."""
        done = []

        def add(name):
            if name in done:
                return
            for _, kind, _ in self.structs[name]:
                words = kind.split()
                if "struct" in words and "*" not in kind:
                    add(words[words.index("struct") + 1])
            done.append(name)

        for name in self.structs:
            add(name)
        return done

    def text(self):
        lines = [HEAD]
        lines += [f"{name} = {value!r}" for name, value in self.constants.items()]
        lines += [f"\n\nclass {class_name(name)}(Structure):\n    pass" for name in self.structs]
        lines.append("\n\nSTRUCTS = {")
        lines += [f'    "{name}": {class_name(name)},' for name in self.structs]
        lines.append("}")
        for name in self.in_order():
            rows = [f'    ("{field}", {self.field(field, kind, more)}),' for field, kind, more in self.structs[name]]
            lines.append(f"{class_name(name)}._fields_ = [\n" + "\n".join(rows) + "\n]")
        lines.append("\nFUNCTIONS = {")
        for name, (result, parameters) in self.functions.items():
            kinds = [self.ctype(kind) for kind in parameters]
            lines.append(f'    "{name}": ({self.ctype(result)}, [{", ".join(kinds)}]),')
        lines.append("}\n")
        return "\n".join(lines)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: declare.py INCLUDE_FOLDER OUTPUT")
    text = Headers(pathlib.Path(sys.argv[1])).text()
    compile(text, sys.argv[2], "exec")
    output = pathlib.Path(sys.argv[2])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

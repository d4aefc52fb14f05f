# SPDX-License-Identifier: Apache-2.0
"""planted_modules.py - check_modules.py must report each kind of forbidden include, and no allowed one."""

import sys

from planted import PlantedFaults, python_tool

RULES = """
[base]
modules = []
[crypto]
modules = ["base"]
libraries = ["sodium", "openssl", "curve"]
only = { openssl = "mask.c", curve = "fast" }
never = ["base/rng.h"]
[moments]
modules = ["base"]
public = ["moments"]
[include]
folder = "include/fedkt"
public = ["*"]
posix = false
"""
GOOD = {
    "tools/modules.toml": RULES,
    "include/fedkt/status.h": "#include <stddef.h>\n",
    "include/fedkt/moments.h": '#include "fedkt/status.h"\n',
    "include/fedkt/privacy.h": "\n",
    "src/base/rng.h": "\n",
    "src/base/text.h": '#include "fedkt/status.h"\n',
    "src/base/shuffle.h": '#include "base/rng.h"\n',
    "src/crypto/key.c": '#include "base/text.h"\n#include <sodium.h>\n#include <unistd.h>\n',
    "src/crypto/mask.c": "#include <openssl/evp.h>\n",
    "src/crypto/fast/a.c": "#include <curve.h>\n",
    "src/moments/sum.c": '#include "fedkt/moments.h"\n#include "base/rng.h"\n',
}
CASES = [
    (
        "a walk module meets another",
        "src/moments/sum.c",
        '\n#include "crypto/key.h"\n',
        "src/moments/sum.c:2: module 'moments' may not include 'crypto' (allowed: base)",
    ),
    ("a library of another module", "src/moments/sum.c", "#include <sodium.h>\n", "may not use <sodium.h>"),
    ("a library by its folder", "src/base/a.c", "#include <sodium/utils.h>\n", "may not use <sodium/utils.h>"),
    (
        "a library outside its file",
        "src/crypto/key.c",
        "#include <openssl/evp.h>\n",
        "src/crypto/key.c:1: <openssl/evp.h> belongs to 'mask.c' of module 'crypto' alone",
    ),
    ("a library outside its folder", "src/crypto/mask.c", "#include <curve.h>\n", "to 'fast' of module 'crypto'"),
    ("a library outside its folder, in a kernel", "src/crypto/slow.cu", "#include <curve.h>\n", "to 'fast' of module"),
    ("a public header of another module", "src/moments/sum.c", '#include "fedkt/privacy.h"\n', "public header"),
    ("a file that is never allowed", "src/crypto/key.c", '#include "base/rng.h"\n', "may never include 'base/rng.h'"),
    (
        "the same through a header",
        "src/crypto/key.c",
        '#include "base/shuffle.h"\n',
        "may never include 'base/rng.h' (by way of base/shuffle.h -> base/rng.h)",
    ),
    ("no module named", "src/base/text.c", '#include "text.h"\n', "must name its module"),
    ("a path around the module", "src/base/text.c", '#include "../crypto/key.h"\n', "must name its module"),
    ("a module that is not in the table", "src/base/text.c", '#include "attic/a.h"\n', "names no module"),
    ("a file outside every module", "src/attic/a.c", "\n", "belongs to no module"),
    ("a computed include", "src/base/text.c", "# include HEADER\n", "cannot be checked"),
    ("POSIX in a public header", "include/fedkt/status.h", "#include <unistd.h>\n", "may not use <unistd.h>"),
    (
        "a private header in a public one",
        "include/fedkt/status.h",
        '#include "base/text.h"\n',
        "may not include 'base'",
    ),
]


def main():
    faults = PlantedFaults()
    tool = python_tool("check_modules.py")
    faults.run("a good tree", tool, GOOD, 0)
    for title, path, text, says in CASES:
        faults.run(title, tool, {**GOOD, path: text}, 1, says)
    broken = {**GOOD, "tools/modules.toml": '[base]\nmodules = ["attic"]\n'}
    faults.run("a table with an unknown module", tool, broken, 2, "unknown module 'attic'")
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())

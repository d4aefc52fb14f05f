# SPDX-License-Identifier: Apache-2.0
"""planted_symbols.py - check_symbols.sh must report an added name, a removed name and a foreign name."""

import sys

from planted import ROOT, PlantedFaults

HEADER = "FKT_API int fkt_a(void); FKT_API const char *\nfkt_b(int x);\n"
SOURCE = "int fkt_a(void) { return 0; }\nconst char *fkt_b(int x) { return x ? 0 : 0; }\n"
SHOW = "gcc -shared -fPIC -o {tree}/lib.so {tree}/lib.c && sh " + str(ROOT / "tools" / "check_symbols.sh")


def main():
    faults = PlantedFaults()
    check = ["sh", "-c", SHOW + " {tree}/lib.so {tree}"]
    good = {"lib.c": SOURCE, "include/fedkt/a.h": HEADER, "tools/symbols.txt": "fkt_a\nfkt_b\n"}
    faults.run("as listed", check, good, 0)
    faults.run("a new name", check, {**good, "lib.c": SOURCE + "int fkt_c(void) { return 1; }\n"}, 1, "+fkt_c")
    faults.run("a lost name", check, {**good, "lib.c": "int fkt_a(void) { return 0; }\n"}, 1, "-fkt_b")
    faults.run(
        "declared, not there",
        check,
        {**good, "lib.c": "int fkt_a(void) { return 0; }\n"},
        1,
        "declared FKT_API but not exported: fkt_b",
    )
    faults.run(
        "a name that is not ours",
        check,
        {**good, "lib.c": SOURCE + "int helper;\n", "tools/symbols.txt": "fkt_a\nfkt_b\nhelper\n"},
        1,
        "does not begin with fkt_: helper",
    )
    bless = ["sh", "-c", SHOW + " --bless {tree}/lib.so {tree} && cat {tree}/tools/symbols.txt"]
    faults.run("blessing", bless, {**good, "tools/symbols.txt": ""}, 0, "fkt_a\nfkt_b\n")
    nothing = [
        "sh",
        "-c",
        "sh " + str(ROOT / "tools" / "check_symbols.sh") + " --bless {tree}/absent.so {tree} 2>&1; "
        "[ $? = 2 ] && cat {tree}/tools/symbols.txt",
    ]
    faults.run("no library: the list stays", nothing, good, 0, "fkt_a\nfkt_b\n")
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())

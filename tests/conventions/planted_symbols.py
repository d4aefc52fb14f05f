# SPDX-License-Identifier: Apache-2.0
"""planted_symbols.py - check_symbols.sh must catch a name too many, a name too few, a name that is not ours, a function
that no header declares, and one that changed its tier."""

import sys

from planted import ROOT, PlantedFaults

HEADER = "FKT_API int fkt_a(void); FKT_API const char *\nfkt_b(int x /* (n) */); /* no FKT_API int fkt_n(void); */\n"
ADVANCED = "FKT_API int fkt_c(void);\n"
SOURCE = (
    "int fkt_a(void) { return 0; }\nconst char *fkt_b(int x) { return x ? 0 : 0; }\n"
    "int fkt_c(void) { return 0; }\n"
)
TOOL = str(ROOT / "tools" / "check_symbols.sh")
SHOW = "gcc -shared -fPIC -o {tree}/lib.so {tree}/lib.c && sh " + TOOL
STABLE, MORE = "tools/symbols/stable.txt", "tools/symbols/advanced.txt"


def main():
    faults = PlantedFaults()
    check = ["sh", "-c", SHOW + " {tree}/lib.so {tree}"]
    good = {
        "lib.c": SOURCE,
        "include/fedkt/a.h": HEADER,
        "include/fedkt/advanced/c.h": ADVANCED,
        STABLE: "fkt_a\nfkt_b\n",
        MORE: "fkt_c\n",
    }
    d = "int fkt_d(void) { return 1; }\n"
    without_b = "int fkt_a(void) { return 0; }\nint fkt_c(void) { return 0; }\n"
    faults.run("as listed", check, good, 0)
    faults.run(
        "declared nowhere", check, {**good, "lib.c": SOURCE + d}, 1, "exported but declared in no public header: fkt_d"
    )
    added = {**good, "lib.c": SOURCE + d, "include/fedkt/d.h": "FKT_API int fkt_d(void);\n"}
    faults.run("a new name", check, added, 1, "+fkt_d")
    gone = {**good, "include/fedkt/a.h": "FKT_API int fkt_a(void);\n", "lib.c": without_b}
    faults.run("a lost name", check, gone, 1, "-fkt_b")
    faults.run(
        "declared, not there", check, {**good, "lib.c": without_b}, 1, "declared FKT_API but not exported: fkt_b"
    )
    moved = {**good, "include/fedkt/a.h": HEADER + ADVANCED, "include/fedkt/advanced/c.h": "\n"}
    faults.run("another tier", check, moved, 1, "the advanced interface differs")
    both = {**good, "include/fedkt/a.h": HEADER + ADVANCED}
    faults.run("both tiers", check, both, 1, "declared in both tiers: fkt_c")
    faults.run(
        "a name that is not ours",
        check,
        {**good, "lib.c": SOURCE + "int helper;\n"},
        1,
        "does not begin with fkt_: helper",
    )
    bless = ["sh", "-c", SHOW + " --bless {tree}/lib.so {tree} && cat {tree}/tools/symbols/*.txt"]
    faults.run("blessing", bless, {**good, STABLE: "", MORE: ""}, 0, "fkt_c\nfkt_a\nfkt_b\n")
    nothing = ["sh", "-c", f"sh {TOOL} --bless {{tree}}/absent.so {{tree}} 2>&1; [ $? = 2 ] && cat {{tree}}/{STABLE}"]
    faults.run("no library: the list stays", nothing, good, 0, "fkt_a\nfkt_b\n")
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())

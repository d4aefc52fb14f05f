# SPDX-License-Identifier: Apache-2.0
"""planted_messages.py - check_messages.py must catch a library that names an option, and a hint code left alone."""

import sys

from planted import SPDX, PlantedFaults, python_tool

STATUS = "enum fkt_hint { FKT_HINT_NONE = 0, FKT_HINT_EXISTS = 1 };\n"
HINTS = 'case FKT_HINT_NONE: return 0;\ncase FKT_HINT_EXISTS: return "give --force, see \'fedkt task\'";\n'
GIVES = "int a = FKT_HINT_NONE;\nint b = FKT_HINT_EXISTS;\n"
COMMENT = '/* "--force" of "fedkt task" */\n'
GOOD = {
    "include/fedkt/status.h": SPDX + STATUS,
    "src/cli/core/verbs.h": SPDX + "int cli_task(const struct cli_command *self, int argc, char **argv);\n",
    "src/cli/core/hints.c": SPDX + HINTS,
    "src/cli/task/task.c": SPDX + 'CLI_OPT_FLAG("force", &o.force, "replace it")\nconst char *s = "give --force";\n',
    "src/base/file.c": SPDX + COMMENT + '#include "x--y.h"\nconst char *s = "fedkt tasks, a--b";\n' + GIVES,
    "src/images/tar.c": SPDX + 'const char *s = "--dereference --hard-dereference, no --sparse";\n',
}
CASES = [
    ("an option", "src/base/a.c", 'f("give --force to replace it");\n', "names the option '--force'"),
    ("an option at the end of a macro", "src/base/a.h", '#define A \\\n    "use " \\\n    "--force"\n', "a.h:3: names"),
    ("an option of another program in a strange place", "src/base/a.c", 'f("--sparse");\n', "option '--sparse'"),
    ("a verb", "src/base/a.c", "f(\"see 'fedkt task'\");\n", "names the verb 'fedkt task'"),
    ("a verb over two lines", "src/base/a.c", 'f("make with fedkt "\n  "task new");\n', "names the verb 'fedkt task'"),
    ("an exception that is not needed", "src/images/tar.c", 'f("--dereference --sparse");\n', "is not needed"),
    ("a code without a phrase", "src/cli/core/hints.c", "case FKT_HINT_NONE: return 0;\n", "no phrase for FKT"),
    ("a code that nothing gives", "src/base/file.c", "int a = FKT_HINT_NONE;\n", "nothing in the library gives FKT"),
    ("two codes of one value", "include/fedkt/status.h", STATUS.replace("= 1", "= 0"), "are both 0"),
    ("an option that does not exist", "src/cli/core/hints.c", HINTS.replace("--force", "--address"), "'--address'"),
    ("a verb that does not exist", "src/cli/core/hints.c", HINTS.replace("fedkt task", "fedkt host"), "verb 'host'"),
]


def main():
    planted = PlantedFaults()
    tool = python_tool("check_messages.py")
    planted.run("a good tree", tool, GOOD, 0)
    for title, path, text, says in CASES:
        planted.run(title, tool, {**GOOD, path: SPDX + text}, 1, says)
    planted.run("a tree without verbs", tool, {**GOOD, "src/cli/core/verbs.h": SPDX}, 2, "no verbs")
    return planted.done()


if __name__ == "__main__":
    sys.exit(main())

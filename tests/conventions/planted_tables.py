# SPDX-License-Identifier: Apache-2.0
"""planted_tables.py - check_tables.py must catch a row that is missing and a name that stands elsewhere."""

import sys

from planted import SPDX, PlantedFaults, python_tool

ROW = '    {"/healthz", REST_NOTHING, FKT_TARGET_HEALTH, FKT_TARGET_AUTH_NONE, "GET, HEAD", "GET, HEAD"},\n'
FILE = '    {"/v1/files/", REST_FILE, FKT_TARGET_FILE, FKT_TARGET_AUTH_SITE, "GET", "GET"},\n'
GOOD = {
    "include/fedkt/privacy.h": "enum fkt_adjacency { FKT_A = 0, FKT_B = 1 }; /* FKT_C */\n",
    "include/fedkt/classifier.h": "enum fkt_head_kind { FKT_L, FKT_Q };\n",
    "src/privacy/adjacency.c": 'x = {[FKT_A] = {{.name = "add-remove"}}, [FKT_B] = {{.name = "swap"}}};\n',
    "src/classifier/heads.c": 'x = {[FKT_L] = {"lda", "LDA"}, [FKT_Q] = {"qda", "QDA"}};\n',
    "src/classifier/description.c": 'return !strcmp(s, "add-remove") || !strcmp(s, "swap");\n',
    "src/net/target.h": "enum fkt_target_what { FKT_T_NONE, FKT_T_BENT, FKT_TARGET_HEALTH, FKT_TARGET_FILE };\n",
    "src/net/target.c": ROW + FILE,
    "src/cli/a.c": '/* "swap", {1, 24, 75} */\nint x = fkt_backend_pick(0);\n',
    "docs/schema/task.json": '{"a": {"enum": ["add-remove", "swap"]}, "b": {"enum": ["add-remove", "swap", null]}}\n',
    "docs/schema/results.json": '{"a": {"lda": 1, "qda": 2}, "b": {"lda": 1, "qda": 2, "resnet8": 3}}\n',
    "docs/openapi.yaml": "paths:\n  /healthz:\n    get:\n      security: [{}]\n  /v1/files/{name}:\n    get:\n"
    "      security: &sites [{site: []}]\n",
}
CASES = [
    ("a missing adjacency", "include/fedkt/privacy.h", ("FKT_B = 1", "FKT_B = 1, FKT_C = 2"), "no row for FKT_C"),
    ("an adjacency that a schema lacks", "docs/schema/task.json", (', "swap"]', "]"), "task.json: adjacencies"),
    ("an adjacency that a model lacks", "src/classifier/description.c", ("swap", "swop"), "does not know"),
    ("a head without a row", "include/fedkt/classifier.h", ("FKT_Q", "FKT_Q, FKT_R"), "no row for FKT_R"),
    ("a head that the schema lacks", "docs/schema/results.json", ('"lda": 1, "qda": 2}', '"lda": 1}'), "heads ['lda']"),
    ("an endpoint without a row", "src/net/target.c", (ROW, ""), "FKT_TARGET_HEALTH has not one row"),
    ("an endpoint not described", "docs/openapi.yaml", ("/healthz", "/health"), "GET /healthz has security None"),
    ("another authentication", "docs/openapi.yaml", ("[{site: []}]", "[{}]"), "GET /v1/files/{name} has security [{}]"),
    ("a method that is not described", "src/net/target.c", ('"GET", "GET"', '"GET, POST", "GET"'), "POST /v1/files/"),
    ("a name beside its table", "src/cli/a.c", ("int x", 'char *s = "swap"; int x'), "a.c:3: repeats a name"),
    ("a backend by name", "src/cli/a.c", ("fkt_backend_pick(0)", "fkt_backend_onednn"), "names a backend"),
    ("the budget split again", "src/cli/a.c", ("int x", "double s[] = {1, 24, 75}; int x"), "default budget split"),
]


def main():
    planted = PlantedFaults()
    tool = python_tool("check_tables.py")
    good = {path: SPDX + text if path.endswith((".c", ".h")) else text for path, text in GOOD.items()}
    planted.run("a good tree", tool, good, 0)
    for title, path, (old, new), says in CASES:
        assert old in good[path], title
        planted.run(title, tool, {**good, path: good[path].replace(old, new)}, 1, says)
    return planted.done()


if __name__ == "__main__":
    sys.exit(main())

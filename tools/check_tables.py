#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_tables.py - adjacencies, heads, endpoints, backends and the default budget split each stand in one table.

Checked: each member of an enum has a row; the schemas and docs/openapi.yaml name what the tables name, no more and no
less; nothing outside a table repeats its names or numbers.

Usage: check_tables.py [--root DIR]      exit 0: all well, 1: differences on stdout
"""

import argparse
import json
import pathlib
import re
import sys

ADJACENCY, HEADS, TARGETS = "src/privacy/adjacency.c", "src/classifier/heads.c", "src/net/target.c"
# classifier/ may not include privacy/ and checks the words of a model's description by itself; compared below.
DESCRIPTION = "src/classifier/description.c"
SECURITY = {  # of docs/openapi.yaml, by the authentication of a row
    "SITE": "[{site: []}]",
    "OPERATOR": "[{}, {token: []}, {cookie: []}]",
    "NONE": "[{}]",
    "TARGET": "[{}]",
}


def members(text, enum):
    """The members of an enum of a header."""
    body = re.search(rf"enum {enum} {{(.*?)}}", text, re.S).group(1)
    return re.findall(r"\b(FKT_\w+)", re.sub(r"/\*.*?\*/", "", body, flags=re.S))


def lists_with(node, word):
    """Each list of a JSON document that holds `word`."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        if word in node:
            yield node
        for child in node:
            yield from lists_with(child, word)


def objects_with(node, key):
    if isinstance(node, dict):
        if key in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from objects_with(child, key)


def rows(root, source, header, enum, faults):
    """Names of a table with designated rows, in order."""
    text = (root / source).read_text()
    found = dict(re.findall(r'\[(FKT_\w+)\] = \{+(?:\s*\.name = )?\s*"([^"]*)"', text))
    for member in members((root / header).read_text(), enum):
        if member not in found:
            faults.append(f"{source}: no row for {member}")
    return list(found.values())


def check_adjacencies(root, faults):
    names = rows(root, ADJACENCY, "include/fedkt/privacy.h", "fkt_adjacency", faults)
    schemas = sorted((root / "docs/schema").glob("*.json"))
    for path in schemas:
        for found in lists_with(json.loads(path.read_text()), names[0]):
            if [x for x in found if x is not None] != names:
                faults.append(f"docs/schema/{path.name}: adjacencies {found}, want {names}")
    known = [line for line in (root / DESCRIPTION).read_text().splitlines() if f'strcmp(s, "{names[0]}")' in line]
    if [re.findall(r'strcmp\(s, "([\w-]+)"\)', line) for line in known] != [names]:
        faults.append(f"{DESCRIPTION}: does not know the adjacencies {names}")
    return names


def check_heads(root, faults):
    names = rows(root, HEADS, "include/fedkt/classifier.h", "fkt_head_kind", faults)
    for found in objects_with(json.loads((root / "docs/schema/results.json").read_text()), names[0]):
        if [name for name in found if not name.startswith("resnet")] != names:  # networks stand beside them
            faults.append(f"docs/schema/results.json: heads {list(found)}, want {names}")
    return names


def described(text):
    """{(path, method): security} of docs/openapi.yaml."""
    found, path, method, alias = {}, None, None, {}
    for line in text.split("\ncomponents:")[0].splitlines():
        if m := re.match(r"  (/\S*):$", line):
            path = m.group(1)
        elif m := re.match(r"    (get|post|head|put|delete):$", line):
            method = m.group(1).upper()
        elif m := re.match(r"      security: (?:&(\w+) )?(.*)$", line):
            alias["*" + (m.group(1) or "")] = m.group(2)
            found[path, method] = alias.get(m.group(2), m.group(2))
    return found


def check_endpoints(root, faults):
    text = (root / TARGETS).read_text()
    table = re.findall(r'\{"(/[^"]*)", \w+, (FKT_TARGET_\w+), FKT_TARGET_AUTH_(\w+), "([^"]*)", "([^"]*)"\}', text)
    for member in members((root / "src/net/target.h").read_text(), "fkt_target_what")[2:]:  # NONE, MALFORMED
        if [what for _, what, *_ in table].count(member) != 1:
            faults.append(f"{TARGETS}: {member} has not one row")
    want = {}
    for path, _, auth, methods, _ in table:
        path = path.split("?")[0]
        for method in methods.split(", "):
            if method != "HEAD":  # is GET without a body, and not written down
                want[path + ("{name}" if path.endswith("files/") else ""), method] = SECURITY[auth]
    got = described((root / "docs/openapi.yaml").read_text())
    for key in sorted(set(want) | set(got)):
        if want.get(key) != got.get(key):
            faults.append(f"docs/openapi.yaml: {key[1]} {key[0]} has security {got.get(key)}, want {want.get(key)}")
    return table


def check_repeats(root, names, faults):
    word = re.compile("|".join(f'"{n}"' for n in names if n != "replace"))
    for path in sorted((root / "src").rglob("*.[ch]")):
        name = path.relative_to(root).as_posix()
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(), flags=re.S)
        for number, line in enumerate(text.splitlines(), 1):
            if word.search(line) and name not in (ADJACENCY, HEADS, DESCRIPTION):
                faults.append(f"{name}:{number}: repeats a name of a table")
            if re.search(r"\bfkt_(backend|learner)_(onednn|ref)\b", line) and not name.startswith("src/nn/"):
                faults.append(f"{name}:{number}: names a backend; use fkt_backend_pick or fkt_learner_pick")
            if re.search(r"\b1, ?24, ?75\b", line):
                faults.append(f"{name}:{number}: writes the default budget split; use FKT_BUDGET_SPLIT_COUNT and so on")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    faults = []
    adjacencies, heads = check_adjacencies(root, faults), check_heads(root, faults)
    endpoints = check_endpoints(root, faults)
    check_repeats(root, adjacencies + heads, faults)
    counts = f"{len(adjacencies)} adjacencies, {len(heads)} heads, {len(endpoints)} endpoints"
    print("\n".join(faults) if faults else counts)
    return 1 if faults or not (adjacencies and heads and endpoints) else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The step `report` of bench/guide.py: tables of heads and students."""

import itertools
import statistics
import sys

from guide_cells import ARMS, EPSILONS, NAMES, NOISES, NONE, SETS, cells

def figure(values):
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def table(head, rows):
    return "\n".join("| " + " | ".join(r) + " |" for r in (head, ["---"] * len(head), *rows))


HEADS = {"nearest_mean": "nearest mean", "lda": "LDA", "qda": "QDA", "rda": "RDA"}
TITLES = {
    ("own", "default"): "our pair, guide alone",
    ("own", "all"): "our pair, all parts",
    ("lite0", "default"): "EfficientNet-Lite0 at 128 px, no codec",
    ("paper", "default"): "TAESD, the paper's mechanism",
}


def heads_table(folders):
    made = cells(folders, "head")
    rows = []
    for name, (pair, parts), head, noise in itertools.product(SETS, TITLES, HEADS, NOISES):
        mine = [c for c in made if (c["set"], c["pair"], c["parts"], c["noise"]) == (name, pair, parts, noise)]
        if not mine:
            continue
        at = lambda e: [100 * c["accuracy"][head] for c in mine if c["epsilon"] == e and head in c["accuracy"]]
        rows.append([NAMES[name], TITLES[pair, parts], HEADS[head], noise, *(figure(at(e)) for e in (*EPSILONS, NONE))])
    columns = ["set", "parts", "head", "noise", *(f"epsilon {e}" for e in EPSILONS), "without noise"]
    return table(columns, rows) if rows else None


def seconds(made):
    """Of a run: the median of those with the fewest workers at once."""
    workers = min(c.get("workers", 1) for c in made)
    took = statistics.median(c["seconds"] for c in made if c.get("workers", 1) == workers)
    return f"{took:.0f}" + (f" ({workers} at once)" if workers > 1 else "")


def students_table(folders):
    made = cells(folders, "student")
    rows = []
    for name, arm, noise in itertools.product(SETS, ARMS, NOISES):
        mine = [c for c in made if (c["set"], c["arm"], c["noise"]) == (name, arm, noise)]
        if not mine:
            continue
        value = lambda c: 100 * c["result"]["test"]["accuracy"]
        at = lambda e: [value(c) for c in mine if c["epsilon"] == e]
        real = arm == "real"
        row = [figure(at(e)) if not real else "" for e in (*EPSILONS, NONE)]
        row[-1] = figure(at("1")) if real else row[-1]
        rows.append([NAMES[name], arm, "" if real else noise, *row, str(len({c["seed"] for c in mine})), seconds(mine)])
    columns = ["set", "ResNet-18 on", "noise", *(f"epsilon {e}" for e in EPSILONS), "without noise", "seeds", "s a run"]
    return table(columns, rows) if rows else None


def report(a):
    made = {"heads": heads_table(a.folders), "students": students_table(a.folders)}
    text = open(a.fill).read() if a.fill else None
    for name, body in made.items():
        if not body:
            print(f"guide.py: nothing for the table '{name}'", file=sys.stderr)
            continue
        if not a.fill:
            print(f"## {name}\n\n{body}\n")
            continue
        first, last = f"<!-- guide:{name} -->\n", f"<!-- /guide:{name} -->"
        if first not in text or last not in text:
            sys.exit(f"guide.py: '{a.fill}' has no markers for '{name}'")
        text = text[: text.index(first) + len(first)] + f"\n{body}\n\n" + text[text.index(last) :]
    if a.fill:
        with open(a.fill, "w") as f:
            f.write(text)

# SPDX-License-Identifier: Apache-2.0
"""test_text.py - what the server says of itself, for every kind of moment: JSON by its schema, metrics by their format,
the page by its own policy.

Usage: test_text.py PAGE_TEXT [--examples]     (--examples rewrites the schema's examples)
Exit 0: all well, 1: not, 77: python3-jsonschema is not installed.
"""

import base64
import hashlib
import html.parser
import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "conventions"))
from check_schemas import complaints  # noqa: E402

SCENES = "gathering advertise coin share mask confirm reveal unmask finishing released given-up failed".split()
SCENES += ["hostile", "seeded"]
EXAMPLES = {"running": "mask", "released": "released", "given-up": "given-up", "seeded": "seeded"}
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
TYPES = {"counter", "gauge", "histogram"}


def parse_sample(line):
    """name, labels, value of one sample; every character must belong to one of them."""
    name = NAME.match(line)
    assert name, f"no name: {line!r}"
    rest, labels = line[name.end() :], {}
    if rest.startswith("{"):
        rest = rest[1:]
        while not rest.startswith("}"):
            label = LABEL.match(rest)
            assert label and label[1] not in labels, f"bad label: {line!r}"
            labels[label[1]] = label[2]
            rest = rest[label.end() :]
            assert rest[0] in ",}", f"bad label: {line!r}"
            rest = rest[1:] if rest[0] == "," else rest
        rest = rest[1:]
    assert re.fullmatch(r" (\d+(\.\d+)?|\+Inf)", rest), f"bad value: {line!r}"
    return name[0], labels, float(rest)


def parse_metrics(text):
    """Families of the text format 0.0.4, strictly: HELP, TYPE, samples, each family once and in one piece."""
    assert text.endswith("\n") and "\r" not in text and "\n\n" not in text
    families, current, seen = {}, None, set()
    lines = text[:-1].split("\n")
    for at, line in enumerate(lines):
        if line.startswith("# HELP "):
            name, text_of_help = line[7:].split(" ", 1)
            assert name not in families and text_of_help.endswith("."), line
            assert lines[at + 1].startswith(f"# TYPE {name} "), f"no TYPE after {line!r}"
            families[name] = current = {"name": name, "samples": []}
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == current["name"] and "type" not in current and kind in TYPES, line
            current["type"] = kind
        else:
            name, labels, value = parse_sample(line)
            endings = ("_bucket", "_sum", "_count") if current["type"] == "histogram" else ("",)
            assert name in [current["name"] + e for e in endings], f"{name} is not of {current['name']}"
            key = (name, tuple(sorted(labels.items())))
            assert key not in seen, f"twice: {line!r}"
            seen.add(key)
            current["samples"].append((name, labels, value))
    for name, family in families.items():
        assert family["samples"], f"{name} has no sample"
        assert name.startswith("fedkt_"), name
        assert (family["type"] == "counter") == name.endswith("_total"), name
        if family["type"] == "histogram":
            check_histogram(family)
    return families


def check_histogram(family):
    name = family["name"]
    buckets = [(float(labels["le"]), n) for full, labels, n in family["samples"] if full == name + "_bucket"]
    count = [n for full, _, n in family["samples"] if full == name + "_count"]
    assert [full for full, _, _ in family["samples"]][-2:] == [name + "_sum", name + "_count"]
    assert buckets == sorted(buckets) and len({le for le, _ in buckets}) == len(buckets), "bounds do not ascend"
    assert [n for _, n in buckets] == sorted(n for _, n in buckets), "not cumulative"
    assert math.isinf(buckets[-1][0]) and count == [buckets[-1][1]], "the last bucket is not the count"


class Strict(html.parser.HTMLParser):
    """The page's parts, and that tags close as they opened."""

    VOID = {"meta", "link", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.text, self.ids, self.attributes = [], {}, set(), []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        for name, value in attrs:
            if name == "id":
                assert value not in self.ids, f"id {value} twice"
                self.ids.add(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.text.setdefault(self.open[-1], []).append(data)


def check_page(page, policy):
    parts = Strict()
    parts.feed(page)
    parts.close()
    assert parts.open == [], f"not closed: {parts.open}"
    for kind in ("script", "style"):
        assert page.count(f"<{kind}") == 1, f"one {kind}"
        text = "".join(parts.text[kind])
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy, f"the policy does not fit the {kind}"
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag, name, value in parts.attributes:
        assert not name.startswith("on") and name != "style", f"<{tag} {name}> would be refused by the policy"
        if name in ("src", "href"):
            assert value.startswith("/") and not value.startswith("//") or value.startswith("data:"), value
    script = "".join(parts.text["script"])
    for wanted in set(re.findall(r'(?:\$|put|show|tile|refill)\("([a-z-]+)"', script)):
        assert wanted in parts.ids, f"the script asks for '{wanted}', which is not there"
    for banned in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
        "http:",
        "https:",
    ):
        assert banned not in script, banned


def main():
    tool = sys.argv[1]

    def ask(*words):
        got = subprocess.run([tool, *words], capture_output=True, check=False)
        assert got.returncode == 0, f"page_text {words}: exit {got.returncode}"
        return got.stdout.decode("utf-8")

    for scene in SCENES:
        for sites in ("12", "1000"):
            line = ask("status", scene, sites)
            assert "\n" not in line and "\r" not in line, "an event is one line"
            found = complaints("status", json.loads(line))
            assert not found, f"{scene}: {found}"
            document = json.loads(line)
            assert len(document["site_status"]) == document["sites"] == len(document["task"]["names"])
            prints = document["task"]["fingerprints"]
            assert len(prints) == document["sites"] and prints[1] == "0714 212e 3b48 5562 6f7c", prints[:2]
            families = parse_metrics(ask("metrics", scene, sites))
            by_status = {labels["status"]: n for _, labels, n in families["fedkt_sites"]["samples"]}
            assert sum(by_status.values()) == int(sites)
            stages = [labels["stage"] for _, labels, n in families["fedkt_stage"]["samples"] if n == 1]
            assert stages == [document["stage"]]
            phases = [labels["phase"] for _, labels, n in families["fedkt_phase"]["samples"] if n == 1]
            assert phases == [document["phase"]] * bool(document["phase"])
    check_page(ask("html"), ask("csp"))
    if "--examples" in sys.argv:
        for name, scene in EXAMPLES.items():
            path = ROOT / "docs" / "schema" / "examples" / f"status.{name}.json"
            path.write_text(json.dumps(json.loads(ask("status", scene)), indent=2) + "\n")
    for broken in ("a 1", "# HELP fedkt_x y.\n# TYPE fedkt_x gauge\nfedkt_x NaN\n", "# HELP fedkt_x y.\nfedkt_x 1\n"):
        try:
            parse_metrics(broken)
        except (AssertionError, TypeError, KeyError):
            continue
        raise AssertionError(f"the parser takes {broken!r}")
    print(f"{len(SCENES)} scenes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_experiment.py - fedkt experiment: what it writes, and what a kill leaves.

Usage: test_experiment.py FEDKT [test...]
"""

import csv
import html.parser
import json
import random
import re
import shutil
import signal
import time
import xml.etree.ElementTree

import binary
from binary import lasting, tree

HEADS = "experiment clients --quick --network none"


class Page(html.parser.HTMLParser):
    """Sections and what a page would fetch."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.fetched, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "section":
            self.sections.append(attrs["id"])
        if tag in ("script", "link", "img", "iframe") or attrs.get("href", "#")[0] != "#":
            self.fetched.append((tag, attrs))
        if tag not in ("meta", "line", "circle", "rect", "path", "polyline", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_startendtag(self, tag, attrs):
        pass


class Experiment(binary.Case):
    def test_list(self):
        text = self.fedkt("experiment --list")
        listed = self.fedkt("experiment --list --json")
        names = [e["name"] for e in listed]
        self.assertEqual(len(names), len(set(names)))
        for name in ("mechanism", "osfl-20", "scale-1000", "personalised", "features", "mia-images", "audit"):
            self.assertIn(name, names)
            self.assertRegex(text, rf"(?m)^{name} +\S")

    def test_tables_plots_and_report(self):
        self.fedkt("experiment mechanism --quick --seeds 0,1 --out run")
        rows = list(csv.DictReader((self.folder / "run/tables/mechanism.csv").read_text().splitlines()))
        at = lambda arm, x: next(
            float(r["mean"]) for r in rows
            if (r["arm"], r["at"], r["panel"], r["measure"]) == (arm, x, "2000-records", "covariance_error")
        )
        self.assertLess(at("joint, add-remove, rie", "1"), at("paper, clamp", "1"))
        self.assertTrue(all(r["seeds"] == "2" for r in rows))
        table = json.loads(self.bytes("run/tables/mechanism.json"))
        self.assertEqual(table["seeds"], "0, 1")
        for panel in ("200-records", "2000-records", "20000-records"):
            svg = xml.etree.ElementTree.fromstring(self.bytes(f"run/plots/mechanism-{panel}.svg"))
            lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
            self.assertEqual(len(lines), 6)
            self.assertTrue(all(len(line.get("points").split()) == 3 for line in lines))
        page = Page(self.bytes("run/report.html").decode())
        self.assertEqual(page.sections, ["mechanism"])
        self.assertEqual(page.fetched, [])
        self.assertEqual(page.open, [])

    def moments_do_not_depend_on_the_number_of_sites(self, run):
        table = json.loads(self.bytes(f"{run}/tables/clients.json"))
        self.assertTrue(table["same_moments"])
        hashes = {}
        real, = [row for row in table["rows"] if row["arm"] == "real"]
        self.assertGreater(real["values"]["real_head"]["mean"], 0.9)
        for row in table["rows"]:
            if row is real:
                continue
            hashes.setdefault(row["arm"], set()).add(row["moments_sha256"])
        self.assertEqual({len(h) for h in hashes.values()}, {1})
        self.assertEqual(len({h for found in hashes.values() for h in found}), 3)  # the arms have different ones
        rounds = [json.loads(p.read_text()) for p in (self.folder / run / "cells").iterdir()]
        for cell in rounds:
            self.fits("cell", cell)
        rounds = [c for c in rounds if c["arm"] != "real"]
        self.assertTrue(all(c["points"][0]["facts"]["protocol"] == "fedkt.secagg/1" for c in rounds))
        named = {c["points"][0]["facts"]["partition"] + ".json" for c in rounds}
        self.assertEqual(named, {p.name for p in (self.folder / run / "partitions").iterdir()})
        fingerprint = json.loads(self.bytes(f"{run}/sets/demo.json"))["sha256"]
        for name in named:
            partition = json.loads(self.bytes(f"{run}/partitions/{name}"))
            self.fits("experiment-partition", partition)
            self.assertEqual(partition["set_sha256"], fingerprint)
            width, owner = partition["digits"], partition["owner"]
            sites = [owner[i : i + width] for i in range(0, len(owner), width)]
            self.assertEqual(len(sites), partition["records"])
            held = [sites.count(f"{s:0{width}d}") for s in range(partition["sites"])]
            self.assertEqual(held, [sum(row) for row in partition["counts"]])
            self.assertEqual(sum(held), partition["records"] - partition["held_out"])

    def test_killed_runs_go_on_to_the_same_bytes(self):
        start = time.monotonic()
        self.fedkt(f"{HEADS} --out whole")
        seconds, wanted = time.monotonic() - start, lasting(self.folder / "whole")
        self.moments_do_not_depend_on_the_number_of_sites("whole")
        chance, killed = random.Random(18), 0
        for _ in range(5):
            process = self.start(f"{HEADS} --out cut{' --resume' if (self.folder / 'cut').exists() else ''}")
            time.sleep(seconds * chance.uniform(0.1, 0.5))
            process.kill()
            process.communicate()
            killed += process.returncode == -9
        self.assertGreater(killed, 1, "hardly any run was caught alive")
        self.fedkt(f"{HEADS} --out cut --resume")
        self.assertEqual(lasting(self.folder / "cut"), wanted)
        self.fedkt("experiment clients --quick --network none --seeds 1 --out cut --resume", code=1)

    def test_a_stop_says_how_to_go_on(self):
        process = self.start("experiment personalised --quick --network resnet18 --threads 1 --out run")
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "training:" in line:
                process.send_signal(signal.SIGINT)
                break
        _, stderr = process.communicate()
        self.assertNotEqual(process.returncode, 0, lines)
        self.assertTrue(
            stderr.endswith(
                "fedkt: stopped before all cells were computed\n"
                "hint: finished cells are kept: the same command with --resume goes on\n"
            ),
            stderr,
        )

    def test_cells_say_what_was_done(self):
        """A cell names an option where it used it: the limit of a set, the network and its images."""
        line = "experiment personalised cost --quick --arms untouched,head-prior,local-sgd,dct-32 --rounds 1"
        self.fedkt(f"{line} --limit 300 --per-class 5 --out run")

        def notes(key):
            cell = json.loads(self.bytes(f"run/cells/{key}.json"))
            self.fits("cell", cell)
            return {k: cell[k] for k in ("limit", "network", "per_class", "rounds") if k in cell}

        self.assertEqual(notes("cost.ten-classes.dct-32.200-images.0"), {"limit": 300})
        for arm, said in (("untouched", {"network": "resnet8", "per_class": 5}), ("head-prior", {}),
                          ("local-sgd", {"network": "resnet8", "rounds": 1})):
            self.assertEqual(notes(f"personalised.demo.{arm}.pathological.0"), {"limit": 300, **said})
        self.fedkt("experiment clients --quick --network none --arms joint --out other")
        self.fedkt("experiment report run other --out joined")  # the set `demo` is whole there, and is not compared
        self.assertIn("5 images of a class, drawn once, for a network; resnet8",
                      self.bytes("joined/report.html").decode())

    def test_a_folder_that_refuses_a_file_ends_the_run(self):
        """The first cell finds that its partition, or its network, cannot be kept: no other is computed in vain."""
        for line, name in (("epsilon --network none", "partitions"),
                           ("personalised --arms tuned,untouched --per-class 2 --limit 200", "networks")):
            run = self.folder / name
            self.fedkt(f"experiment {line} --quick --out {name}")
            cells = len(list((run / "cells").iterdir()))
            for folder in (name, "cells"):
                shutil.rmtree(run / folder)
            (run / name).write_text("")
            process = self.start(f"experiment {line} --quick --out {name} --resume")
            _, stderr = process.communicate()
            self.assertEqual(process.returncode, 1, stderr)
            self.assertNotIn("skipped", stderr)
            self.assertEqual(list((run / "cells").iterdir()), [])
            (run / name).unlink()
            self.fedkt(f"experiment {line} --quick --out {name} --resume")
            self.assertEqual(len(list((run / "cells").iterdir())), cells)

    def test_tables_go_into_marked_blocks(self):
        self.fedkt("experiment mechanism --quick --out run")
        shutil.rmtree(self.folder / "run/tables")
        marks = "<!-- experiment:mechanism -->\nold\n<!-- /experiment:mechanism -->"
        (self.folder / "page.md").write_text(f"a\n{marks}\nz\n")
        self.fedkt("experiment report run --fill page.md")
        text = (self.folder / "page.md").read_text()
        head = r"^a\n<!-- experiment:mechanism -->\n\nfedkt [^\n]*; seed 0; quick cells, [^\n]*\.\n\n"
        self.assertRegex(text, head + r"\| panel \|")
        self.assertTrue(text.endswith("\n<!-- /experiment:mechanism -->\nz\n"))
        self.assertNotIn("old", text)
        self.assertTrue((self.folder / "run/tables/mechanism.csv").exists())
        self.fedkt("experiment report run --fill page.md")
        self.assertEqual((self.folder / "page.md").read_text(), text)
        (self.folder / "bare.md").write_text("nothing\n")
        self.fedkt("experiment report run --fill bare.md", code=1)
        self.assertEqual((self.folder / "bare.md").read_text(), "nothing\n")

    def test_kept_cells_make_the_same_tables(self):
        self.fedkt("experiment mechanism --quick --seeds 0,1 --out run")
        self.fedkt("experiment clients --quick --network none --limit 400 --out limited")
        said = self.fedkt("experiment report run limited --out first --keep kept")
        self.assertEqual(said, "see first/report.html; tables and plots are beside it\n")
        self.assertEqual(sorted(tree(self.folder / "kept")), ["clients.jsonl", "mechanism.jsonl"])
        for line in self.bytes("kept/clients.jsonl").decode().splitlines():
            cell = json.loads(line)
            self.fits("cell", cell)
            self.assertEqual(cell["limit"], 400)
            self.assertEqual(cell["points"][0].get("facts", {}).get("records", 400), 400)
        self.assertIn("; 400 records;", (self.folder / "first/report.html").read_text())
        self.fedkt("experiment report kept", code=2)  # no folder for the report
        self.fedkt("experiment report kept --seeds 0 --out again", code=2)
        self.fedkt("experiment report kept --out again --keep kept-again")
        self.fedkt("experiment report kept/clients.jsonl run kept/mechanism.jsonl --out third --keep kept-again")
        for again in ("again", "third"):
            self.assertEqual(tree(self.folder / again), tree(self.folder / "first"))
        self.assertEqual(tree(self.folder / "kept-again"), tree(self.folder / "kept"))
        self.fedkt("experiment mechanism --quick --seeds 2 --out more")
        kept = self.bytes("kept/mechanism.jsonl")
        self.fedkt("experiment report more --keep kept", code=1)  # would lose what is kept there
        self.assertEqual(self.bytes("kept/mechanism.jsonl"), kept)
        self.fedkt("experiment report more kept --keep kept")
        self.assertGreater(len(self.bytes("kept/mechanism.jsonl")), len(kept))
        with open(self.folder / "kept/clients.jsonl", "a") as file:
            file.write("{}\n")
        n = len(self.bytes("kept/clients.jsonl").splitlines())
        process = self.start("experiment report kept --out bad")
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertRegex(stderr, rf"^fedkt: line {n} of '\S*kept/clients\.jsonl' is not a cell of an experiment\n$")
        self.assertFalse((self.folder / "bad").exists())
        (self.folder / "empty").mkdir()
        self.fedkt("experiment report empty --out bad", code=1)
        self.fedkt("experiment mechanism --quick --out other --keep kept", code=2)

    def test_some_arms_and_few_images(self):
        self.fedkt("experiment epsilon --quick --arms joint --per-class 5 --seeds 1,0 --out run")
        cells = [json.loads(p.read_text()) for p in (self.folder / "run/cells").iterdir()]
        for cell in cells:
            self.fits("cell", cell)
            self.assertEqual((cell["arm"], cell["per_class"]), ("joint", 5))
            self.assertIn("resnet8", cell["points"][0]["values"])
            self.assertEqual(cell["points"][-1]["reference"], "no noise")
            self.assertEqual("resnet8" in cell["points"][-1]["values"], cell["seed"] == 1)  # the first one's alone
        self.assertEqual(sorted(c["seed"] for c in cells), [0, 1])
        page = (self.folder / "run/report.html").read_text()
        self.assertIn("; 5 images of a class, drawn once, for a network;", page)
        self.fedkt("experiment epsilon --quick --arms joint --per-class 6 --seeds 1,0 --out run --resume", code=1)
        self.fedkt("experiment epsilon --quick --arms paper --per-class 5 --seeds 1,0 --out run --resume", code=1)
        self.fedkt("experiment epsilon --quick --arms fedavg --out other", code=2)
        self.fedkt("experiment samples --quick --network none --out none", code=2)  # no cells at all
        self.assertFalse((self.folder / "none").exists())

    def test_the_tables_of_the_documentation_are_those_of_the_kept_cells(self):
        docs = binary.ROOT / "docs"
        shutil.copy(docs / "results.md", self.folder / "results.md")
        self.fedkt(f"experiment report {docs / 'cells'} --out report --fill results.md")
        self.assertEqual(self.bytes("results.md").decode(), (docs / "results.md").read_text())
        marked = set(re.findall(r"<!-- experiment:([a-z0-9-]+) -->", (docs / "results.md").read_text()))
        self.assertEqual(marked, {p.stem for p in (docs / "cells").glob("*.jsonl")})


if __name__ == "__main__":
    binary.main()

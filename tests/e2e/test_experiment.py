#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_experiment.py - fedkt experiment: what it writes, what a kill leaves, what it does without data.

Usage: test_experiment.py FEDKT [test...]
"""

import csv
import html.parser
import json
import random
import shutil
import time
import xml.etree.ElementTree

import binary
from binary import tree

HEADS = "experiment clients --quick --network none"


def lasting(folder):
    """All but the kept encodings, whose rows stand in the order in which threads finished."""
    return {name: digest for name, digest in tree(folder).items() if not name.startswith("encodings/")}


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
        for name in ("mechanism", "epsilon", "osfl-20", "scale-1000", "cost", "codecs", "features", "audit"):
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
        for row in table["rows"]:
            hashes.setdefault(row["arm"], set()).add(row["moments_sha256"])
        self.assertEqual({len(h) for h in hashes.values()}, {1})
        self.assertEqual(len({h for found in hashes.values() for h in found}), 3)  # the arms have different ones
        rounds = [json.loads(p.read_text()) for p in (self.folder / run / "cells").iterdir()]
        for cell in rounds:
            self.fits("cell", cell)
        self.assertTrue(all(c["points"][0]["facts"]["protocol"] == "fedkt.secagg/1" for c in rounds))

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

    def test_missing_data_is_named_and_skipped(self):
        (self.folder / "sets").mkdir()
        (self.folder / "sets/broken.npz").write_bytes(b"not a set")
        line = "experiment epsilon --quick --network none --data sets --sets absent,broken,demo --out run"
        process = self.start(line)
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 3, stderr)
        self.assertRegex(stderr, r"skipped cell 'epsilon\.absent\.paper\.0': '\S*sets' has no set 'absent'")
        skipped = {s["cell"] for s in json.loads(self.bytes("run/skipped.json"))}
        arms = ("paper", "joint", "guide")
        self.assertEqual(skipped, {f"epsilon.{s}.{a}.0" for s in ("absent", "broken") for a in arms})
        made = {p.name for p in (self.folder / "run/cells").iterdir()}
        self.assertEqual(made, {f"epsilon.demo.{a}.0.json" for a in arms})
        self.assertIn("skipped", Page(self.bytes("run/report.html").decode()).sections)

    def test_membership_is_found_without_noise_and_within_the_promise_with_it(self):
        """24,000 decisions of an arm, half of them members: limits are six standard errors above the promise."""
        self.fedkt("experiment mia --quick --out run")
        rows = json.loads(self.bytes("run/tables/mia.json"))["rows"]
        value = lambda row, key: row["values"][key]["mean"]
        control = [row for row in rows if row["arm"] == "control"]
        self.assertGreater(value(control[0], "auc"), 0.9)
        self.assertGreater(value(control[0], "tpr"), 0.1)  # at a false positive rate of 0.001
        bounded = [row for row in rows if "bound" in row["values"]]
        self.assertEqual({row["arm"] for row in bounded}, {"joint-10", "joint-1"})
        for row in bounded:
            bound = value(row, "bound")
            self.assertLess(value(row, "tpr"), bound + 6 * (bound * (1 - bound) / 12000) ** 0.5 + 1e-9, row)
        self.assertLess(bounded[-7]["values"]["auc"]["mean"], 0.6)

    def test_methods_on_features_stand_beside_ours(self):
        """The embedded set is easy: without noise every method is near the head on real features; with it, noise at
        every site costs more than noise that is added once."""
        self.fedkt("experiment features --quick --network none --out run")
        rows = json.loads(self.bytes("run/tables/features.json"))["rows"]
        found = {(r["arm"], r.get("reference") or r["at"]): r["values"] for r in rows}
        accuracy = lambda arm, at: found[arm, at]["accuracy"]["mean"]
        ours, others = ("ours", "ours-central", "ours-images"), ("dp-fedpft", "dp-merf", "dp-merf-latents")
        wanted = {(arm, at) for arm in (*ours, *others, "dp-merf-federated") for at in ("10", "1")}
        wanted |= {(arm, "no noise") for arm in (*ours, *others, "fedpft", "real-features")}
        self.assertEqual(set(found), wanted)
        for arm in ("ours", "fedpft", "dp-fedpft", "dp-merf"):
            self.assertGreater(accuracy(arm, "no noise"), accuracy("real-features", "no noise") - 0.1, arm)
        self.assertGreater(accuracy("dp-merf", "1"), accuracy("dp-merf-federated", "1") + 0.1)
        self.assertGreater(accuracy("ours", "1"), accuracy("dp-fedpft", "1") + 0.1)
        sent = {arm: v["bytes_per_site"]["mean"] for (arm, _), v in found.items() if arm != "real-features"}
        self.assertGreater(min(sent.values()), 1000)
        for path in (self.folder / "run/cells").iterdir():
            self.fits("cell", json.loads(path.read_text()))

    def test_tables_go_into_marked_blocks(self):
        self.fedkt("experiment mechanism --quick --out run")
        shutil.rmtree(self.folder / "run/tables")
        marks = "<!-- experiment:mechanism -->\nold\n<!-- /experiment:mechanism -->"
        (self.folder / "page.md").write_text(f"a\n{marks}\nz\n")
        self.fedkt("experiment report run --fill page.md")
        text = (self.folder / "page.md").read_text()
        self.assertRegex(text, r"^a\n<!-- experiment:mechanism -->\n\nfedkt [^\n]*QUICK\.\n\n\| panel \|")
        self.assertTrue(text.endswith("\n<!-- /experiment:mechanism -->\nz\n"))
        self.assertNotIn("old", text)
        self.assertTrue((self.folder / "run/tables/mechanism.csv").exists())
        self.fedkt("experiment report run --fill page.md")
        self.assertEqual((self.folder / "page.md").read_text(), text)
        (self.folder / "bare.md").write_text("nothing\n")
        self.fedkt("experiment report run --fill bare.md", code=1)
        self.assertEqual((self.folder / "bare.md").read_text(), "nothing\n")


if __name__ == "__main__":
    binary.main()

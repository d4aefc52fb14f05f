#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_bench.py - 'fedkt bench cost' and 'guided', and the scripts of bench/ that compare files and fill tables.

Usage: test_bench.py FEDKT [test...]
"""

import contextlib
import io
import json
import sys

import binary

sys.path.insert(0, str(binary.ROOT / "bench"))

import gpu_report
import moments_diff
import numpy


class Cost(binary.Case):
    def test_rows_of_a_site(self):
        out = self.fedkt("bench cost --codec dct --size 16 --images 60 --classes 3 --threads 1 --json --quiet")
        rows = {row["name"].split("/")[1].rsplit(" dct ")[0]: row for row in out["rows"]}
        stages = ["encode", "statistics and sampling", "decode"]
        self.assertEqual(list(rows), [*stages, "total", "first latent"])
        for row in rows.values():
            self.assertEqual(row["unit"], "s")
            self.assertGreater(row["value"], 0)
            self.assertGreater(row["bound"], 0)
        self.assertAlmostEqual(rows["total"]["value"], sum(rows[s]["value"] for s in stages))
        self.assertIn("3 classes, m = 65", rows["statistics and sampling"]["note"])


class Guided(binary.Case):
    def test_both_ways_of_the_shipped_pair(self):
        out = self.fedkt("bench guided --images 1 --threads 1 --device cpu --json --quiet")
        ways = [row["name"] for row in out["rows"]]
        self.assertEqual(ways, ["guided/twin fedkt-ae 32 px", "guided/gradient fedkt-ae 32 px"])
        for row in out["rows"]:
            self.assertGreater(row["value"], 0)


class Difference(binary.Case):
    def pair(self, change):
        """Latents of two records, and moments of one class with m = 2, before and after `change`."""
        z = {"latents": numpy.array([[1, 2], [3, 4]], "<f4"), "labels": numpy.zeros(2, "<i8")}
        z["image_sha256"] = numpy.zeros((2, 32), "u1")
        m = {"moments": numpy.array([[2, 4, 6, 10, 14, 20]], "<i8"), "records": numpy.zeros((2, 16), "u1")}
        out = []
        for name, arrays, key in (("z", z, "latents"), ("m", m, "moments")):
            paths = [str(self.folder / f"{name}{i}") for i in range(2)]
            moments_diff.save(paths[0], arrays, {"format": "x"})
            moments_diff.save(paths[1], {**arrays, key: change(arrays[key].copy())}, {"format": "x"})
            out.append(moments_diff.compare(*paths))
        return out

    def test_equal_and_different(self):
        latents, moments = self.pair(lambda x: x)
        self.assertEqual([latents["latents"]["different"], moments["second"]["different"]], [0, 0])

        def bent(x):
            x[0, -1] += 3
            return x

        latents, moments = self.pair(bent)
        self.assertEqual([latents["latents"]["different"], latents["latents"]["largest"]], [1, 3])
        self.assertEqual([moments[k]["numbers"] for k in ("counts", "sums", "second")], [1, 2, 3])
        self.assertEqual([moments[k]["different"] for k in ("counts", "sums", "second")], [0, 0, 1])
        self.assertAlmostEqual(moments["second"]["largest_relative"], 3 / 20)

    def test_what_is_no_number_fails(self):
        path = str(self.folder / "z")
        arrays = {"latents": numpy.array([[numpy.nan]], "<f4"), "image_sha256": numpy.zeros((1, 32), "u1")}
        moments_diff.save(path, arrays, {})
        with self.assertRaises(ValueError):
            moments_diff.compare(path, path)

    def test_a_class_for_each_record(self):
        self.fedkt("task new --codec dct --data demo:train --epsilon 10 --delta 1e-5 --out task.json")
        self.fedkt("task new --codec dct --classes a,b,c,d --epsilon 10 --delta 1e-5 --out records.json")
        self.fedkt("encode --task task.json --data demo:train --limit 4 --out z")
        moments_diff.records(str(self.folder / "z"), str(self.folder / "r"))
        self.fedkt("moments --task task.json --latents z --out all")
        self.fedkt("moments --task records.json --latents r --out each")
        load = lambda name: moments_diff.load(str(self.folder / name))[0]["moments"]
        self.assertEqual(load("each")[:, 0].tolist(), [1, 1, 1, 1])
        self.assertEqual(load("each").sum(0).tolist(), load("all").sum(0).tolist())


class Report(binary.Case):
    def put(self, name, document):
        (self.folder / name).write_text(document if isinstance(document, str) else json.dumps(document))

    def test_tables_between_markers(self):
        side = lambda *s: dict(zip(gpu_report.STAGES, ({"seconds": x} for x in s)))
        peer = {**side(0.2, 0.1, 0.5), "gflop_per_image": [100, 200]}
        row = {"case": "A", "images": 1000, "paper": [0.5, 0.1, 1.4], "ours": side(0.1, 0.1, 0.2), "eager": peer}
        row["ours"]["statistics"]["note"] = "3 classes, m = 65; vectors 1 ms, noise 2; median 0.1 s"
        self.put("cost.json", [{**row, "ours_again": side(0.1, 0.1, 0.3), "compiled": {"error": "a|b"}}])
        made = {"name": "codec/encode a", "value": 12345.6, "unit": "images/s", "note": "batch 8"}
        self.put("pair.json", {"a": {"rows": [made, {**made, "unit": "s"}]}, "b": {"error": "exit 1"}})
        self.put("peak.json", {"bf16": {"gflops": 2e6}})
        self.put("tests.csv", "t_a_card,0,1\nt_b_card,1,2\n")
        text = "".join(f"{n}\n<!-- gpu:{n} -->\nold\n<!-- /gpu:{n} -->\n" for n in gpu_report.TABLES)
        self.put("r.md", text)
        with contextlib.redirect_stderr(io.StringIO()):
            made = {n: f([self.folder]) for n, f in gpu_report.TABLES.items()}
            gpu_report.fill(self.folder / "r.md", {n: body for n, body in made.items() if body})
        filled = (self.folder / "r.md").read_text()
        self.assertIn("0.100 / 0.100 / 0.300 = 0.500 | 0.200 / 0.100 / 0.500 = 0.800 | failed: a/b", filled)
        self.assertNotIn("vectors", filled)  # of the other run, which is the slower one
        self.assertIn("| A | 4.0 | 1.60, 1.75 |  | 50 / 33 |  |", filled)
        self.assertIn("| codec: encode a | 12,346 | batch 8 |\n| b | failed: exit 1 |  |\n\n", filled)
        self.assertIn("| tests of label gpu | 2 | 1 | t_b_card |", filled)
        self.assertEqual(filled.count("old"), len([n for n, body in made.items() if not body]))
        again = filled
        gpu_report.fill(self.folder / "r.md", {n: body for n, body in made.items() if body})
        self.assertEqual((self.folder / "r.md").read_text(), again)

    def test_the_page_has_all_markers(self):
        text = (binary.ROOT / "docs" / "results.md").read_text()
        for name in gpu_report.TABLES:
            self.assertEqual([text.count(f"<!-- {s}gpu:{name} -->") for s in ("", "/")], [1, 1], name)


if __name__ == "__main__":
    binary.main()

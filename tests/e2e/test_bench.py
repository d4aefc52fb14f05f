#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_bench.py - 'fedkt bench cost', and the scripts of bench/ that compare files and fill tables.

Usage: test_bench.py FEDKT [test...]
"""

import binary


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


if __name__ == "__main__":
    binary.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_experiment_methods.py - fedkt experiment: attacks find their controls, and methods of others stand beside ours.

Usage: test_experiment_methods.py FEDKT [test...]
"""

import json
import statistics

import binary
from binary import lasting


def mean(row, key):
    return row["values"][key]["mean"]


class Methods(binary.Case):
    def stays_within_the_promise(self, rows, members):
        """True positive rates of arms with a promise, of so many decisions on members and as many on others: six
        standard errors of the threshold's false positive rate, and then of the rate that was found, are allowed."""
        normal = statistics.NormalDist()
        bounded = [row for row in rows if "bound" in row["values"]]
        self.assertEqual({row["arm"] for row in bounded}, {"joint-10", "joint-1"})
        for row in bounded:
            x, found, bound = float(row["at"]), mean(row, "tpr"), mean(row, "bound")
            if x == 1:
                continue
            mu = normal.inv_cdf(bound) - normal.inv_cdf(x)
            most = normal.cdf(mu + normal.inv_cdf(min(x + 6 * (x * (1 - x) / members) ** 0.5, 1 - 1e-9)))
            self.assertLess(found, most + 6 * (most * (1 - most) / members) ** 0.5, row)

    def first_of(self, run, name):
        """All rows of a table, and by arm those of a false positive rate of 0.001."""
        rows = json.loads(self.bytes(f"{run}/tables/{name}.json"))["rows"]
        return rows, {row["arm"]: row for row in rows if row["at"] == "0.001"}

    def test_membership_is_found_without_noise_and_within_the_promise_with_it(self):
        self.fedkt("experiment mia --quick --out run")
        rows, first = self.first_of("run", "mia")
        self.assertGreater(mean(first["control"], "auc"), 0.9)
        self.assertGreater(mean(first["control"], "tpr"), 0.1)
        self.stays_within_the_promise(rows, 12000)
        self.assertLess(mean(first["joint-1"], "auc"), 0.6)

    def test_attacks_on_images_and_models_catch_their_controls(self):
        """Standard error of an area without a leak, of n members and n others: (2 n + 1) / (12 n^2), its root."""
        names = ("mia-images", "mia-heads", "mia-networks")
        line = f"experiment {' '.join(names)} --quick --threads 1 --out run"
        self.fedkt(line)
        caught = {("mia-images", "control"): 0.95, ("mia-heads", "control"): 0.8, ("mia-networks", "members"): 0.8,
                  ("mia-networks", "control"): 0.65}
        for name, members in zip(names, (4800, 4800, 1536)):
            rows, first = self.first_of("run", name)
            error = ((2 * members + 1) / 12) ** 0.5 / members
            for arm in first:
                if (name, arm) in caught:
                    self.assertGreater(mean(first[arm], "auc"), caught[name, arm], (name, arm))
                    self.assertGreater(mean(first[arm], "tpr"), 0.01, (name, arm))
                elif arm == "others":
                    self.assertLess(abs(mean(first[arm], "auc") - 0.5), 4 * error, name)
                    self.assertLess(mean(first[arm], "tpr"), 0.001 + 6 * (0.001 / members) ** 0.5, name)
            self.stays_within_the_promise(rows, members)
        wanted = lasting(self.folder / "run")
        for arm in ("mia-images.demo.joint-10", "mia-heads.demo.paper-10", "mia-networks.demo.members"):
            (self.folder / f"run/cells/{arm}.0.json").unlink()
        self.fedkt(f"{line} --resume")
        self.assertEqual(lasting(self.folder / "run"), wanted)

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
        self.sites_of_features_are_named()

    def sites_of_features_are_named(self):
        """All arms but the head on real features have the sites of one file, and each writes the same bytes."""
        name = "demo.20.dirichlet-0.1.content.0"
        self.assertEqual([p.name for p in (self.folder / "run/partitions").iterdir()], [f"{name}.json"])
        wanted = self.bytes(f"run/partitions/{name}.json")
        for path in (self.folder / "run/cells").iterdir():
            cell = json.loads(path.read_text())
            named = {point["facts"].get("partition") for point in cell["points"]}
            self.assertEqual(named, {None if cell["arm"] == "real-features" else name}, cell["arm"])
        (self.folder / f"run/partitions/{name}.json").unlink()
        (self.folder / "run/cells/features.demo.fedpft.0.json").unlink()
        self.fedkt("experiment features --quick --network none --out run --resume")
        self.assertEqual(self.bytes(f"run/partitions/{name}.json"), wanted)


if __name__ == "__main__":
    binary.main()

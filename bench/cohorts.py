#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cohorts.py - what a task in cohorts takes, level by level: a site, a cohort's server, the sum. The tables of
docs/scale.md.

Usage: cohorts.py FEDKT [--sites N,N,...] [--cohort-size N] [--corrupt F] [--dropped F] [--dim D] [--threads N]

Runs `fedkt simulate --cohort-size`: every site and every server is the protocol's own state machine, one cohort after
the other in one process. Times are processor seconds, so that a busy machine does not change them; memory is the
largest resident set of the process, less that of a run with three sites.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time


def run(a, sites, *more):
    """The JSON of a run, its processor and wall seconds, and its largest resident set in bytes."""
    words = [
        a.fedkt, "simulate", "--data", "demo:train", "--limit", "2000", "--codec", "dct", "--guide", "none", "--size",
        "16", "--dim", str(a.dim), "--epsilon", "1", "--delta", "1e-9", "--sites", str(sites), "--threads",
        str(a.threads), "--json", "--quiet", *more
    ]  # fmt: skip
    with tempfile.TemporaryFile() as out:
        start = time.monotonic()
        child = subprocess.Popen(words, stdout=out)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        if status:
            raise SystemExit(f"{' '.join(words)}: status {status}")
        out.seek(0)
        return json.loads(out.read()), used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("fedkt")
    p.add_argument("--sites", default="1000,10000,100000")
    p.add_argument("--cohort-size", type=int, default=1000)
    p.add_argument("--corrupt", default="0.1")
    p.add_argument("--dropped", default="0.1")
    p.add_argument("--dim", type=int, default=3)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    _, _, _, base = run(a, 3)
    for sites in map(int, a.sites.split(",")):
        crew = ["--corrupt", a.corrupt, "--dropped", a.dropped]
        said, cpu, wall, peak = run(a, sites, *crew, "--cohort-size", str(a.cohort_size))
        told = said["aggregation"]
        row = {"sites": sites, "degree": told["degree"], "threshold": told["threshold"], "up": told["traffic"]["up"],
               "down": told["traffic"]["down"], "cpu": round(cpu, 1), "wall": round(wall, 1),
               "memory_mb": round((peak - base) / 1e6, 1)}  # fmt: skip
        if "cohorts" in told:
            split = told["cohorts"]
            row.update(
                cohorts=split["in_sum"],
                smallest=min(c["sites"] for c in split["list"]),
                largest=max(c["sites"] for c in split["list"]),
                site_cpu_ms=round(1000 * split["cpu_seconds_sites"] / sites, 2),
                server_cpu_s=round(split["cpu_seconds_servers"] / split["in_sum"], 3),
                sum_ms=round(1000 * split["seconds_sum"], 2),
                deviation_against_one=round(split["against_one_cohort"]["standard_deviation"], 3),
                covered=split["colluding_covered"]["sites"],
            )
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

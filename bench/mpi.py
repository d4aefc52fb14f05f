#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mpi.py - speed of encode and moments on several processes, beside one process with as many threads in each.

Usage: mpi.py FEDKT DATA [--ranks 2] [--limit 1500] [--repeat 5] [task new options ...]

Runs alternate, and every result is compared with that of one process before its time counts. Printed are the best wall
times, and the processor time of one process beside that of the busiest rank: on a machine that others use as well the
second ratio is what free cores would give.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def run(words, folder):
    """Wall seconds, and processor seconds of each process."""
    clocked = ["sh", "-c", 'times_of() { "$@"; code=$?; times; exit $code; }; times_of "$@"', "sh"]
    start = time.perf_counter()
    launcher = words[: words.index("--")]
    words = [*launcher, *clocked, *words[len(launcher) + 1 :]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stderr)
    # `times` prints two lines a process: of the shell, and of its children.
    pairs = re.findall(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", done.stdout, re.MULTILINE)
    seconds = [60 * int(a) + float(b) + 60 * int(c) + float(d) for a, b, c, d in pairs]
    return wall, [a + b for a, b in zip(seconds[::2], seconds[1::2])]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("fedkt", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--limit", type=int, default=1500)
    parser.add_argument("--repeat", type=int, default=5)
    asked, more = parser.parse_known_args()
    fedkt, data = str(asked.fedkt.resolve()), str(asked.data.resolve())
    os.environ["OMPI_MCA_hwloc_base_binding_policy"] = "none"
    with tempfile.TemporaryDirectory(prefix="fedkt-mpi-") as folder:
        subprocess.run(
            [fedkt, "task", "new", "--data", data, "--epsilon", "1", "--delta", "1e-5", "--out", "task.json", *more],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        for verb in ("encode", "moments"):
            words = f"{verb} --task task.json --data {data} --limit {asked.limit} --threads 1 --quiet --force --out"
            best = {n: (float("inf"), float("inf")) for n in (1, asked.ranks)}
            for _ in range(asked.repeat):
                for n in best:
                    launcher = ["mpirun", "-n", str(n)] if n > 1 else ["env"]
                    wall, cpu = run([*launcher, "--", fedkt, *words.split(), str(n)], folder)
                    best[n] = min(best[n][0], wall), min(best[n][1], max(cpu))
                if pathlib.Path(folder, "1").read_bytes() != pathlib.Path(folder, str(asked.ranks)).read_bytes():
                    sys.exit(f"{verb}: {asked.ranks} processes give other bytes than one")
            (wall, cpu), (shared, busiest) = best[1], best[asked.ranks]
            print(
                f"{verb}: wall {wall:.2f} s and {shared:.2f} s on {asked.ranks} ranks, {wall / shared:.2f} times; "
                f"processor {cpu:.2f} s and {busiest:.2f} s of the busiest rank, {cpu / busiest:.2f} times "
                f"(load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores)",
                flush=True,
            )


if __name__ == "__main__":
    main()

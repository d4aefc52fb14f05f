#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py - one task with fedkt's own server and in a Flower deployment: wall time, and bytes on loopback.

Bytes are those of the loopback interface, so run it in a network namespace where nothing else speaks; with Flower they
include what its processes say to each other inside a node and inside the server. Both sides begin with a server that
listens and keys that are enrolled, and end when the last site has checked its release.

Usage: unshare -n sh -c 'ip link set lo up && python integrations/flower/bench.py build/release/bin/fedkt [SITES [DIM]]'
with PYTHONPATH=build/release/python:integrations/flower and FEDKT_LIBRARY=build/release/lib/libfedkt.so
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "tests"))

from federation import Federation, entries, until
from programs import Deployment


def loopback():
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split()[1])
    raise SystemExit("there is no loopback interface")


def own(f, program):
    """`fedkt serve` and `fedkt join`, each a process."""
    folder = f.folder
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": folder}
    server = subprocess.Popen(
        [program, "serve", "--task", "task.json", "--state", "own", "--listen", f.listen, "--key", "operator.key",
         "--per-class", "2", "--quiet"], **quiet,
    )  # fmt: skip
    until(lambda: f.task.sha256 != f.unpinned or server.poll() is not None, 60, lambda: server.stderr.read())
    time.sleep(2)
    start, before = time.monotonic(), loopback()
    sites = [
        subprocess.Popen(
            [program, "join", "--task", "task.json", "--key", f"site{i}.key", "--data", f"data{i}.npz", "--state",
             f"own{i}.db", "--ledger", f"own{i}.ledger", "--out", f"own{i}", "--accept-insecure-seed", "--quiet"],
            **quiet,
        )
        for i in range(f.sites)
    ]  # fmt: skip
    for site in sites:
        _, said = site.communicate(timeout=600)
        assert site.returncode == 0, said
    found = {"seconds": time.monotonic() - start, "bytes": loopback() - before}
    server.communicate(timeout=600)
    return found | {"release": (folder / "own0/release.safetensors").read_bytes()}


def flower(f):
    with Deployment(f.folder) as d:
        d.superlink()
        for i in range(f.sites):
            d.node(f"node{i}", f.node(i, "sites"))
        until(lambda: all("SuperExec" in d.said(f"node{i}") for i in range(f.sites)), 120, lambda: d.said("node0"))
        idle = loopback()
        time.sleep(10)
        idle = (loopback() - idle) / 10
        start, before = time.monotonic(), loopback()
        d.run({"task": f"{f.folder}/task.json", "state": f"{f.folder}/server", "per-class": 2})
        results = [f.folder / f"sites/{i}/result/release.safetensors" for i in range(f.sites)]
        until(lambda: all(path.exists() for path in results), 1200, lambda: d.said("superlink")[-3000:])
        found = {"seconds": time.monotonic() - start, "bytes": loopback() - before, "idle_bytes_per_second": idle}
    return found | {"release": results[0].read_bytes()}


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    sites, dim = (int(word) for word in (sys.argv[2:] + ["10", "64"][len(sys.argv) - 2 :])[:2])
    with tempfile.TemporaryDirectory(prefix="fedkt-flower-") as folder:
        f = Federation(folder, sites=sites, dim=dim, phase=300)
        f.unpinned = f.task.sha256
        rows = {}
        for name, side in (("own", lambda: own(f, program)), ("flower", lambda: flower(f))):
            rows[name] = side()
            print(name, {k: v for k, v in rows[name].items() if k != "release"}, file=sys.stderr, flush=True)
        assert rows["own"].pop("release") == rows["flower"].pop("release"), "the releases differ"
        log = f.folder / "sites/0/result/transparency.jsonl"
        rows["messages_in"] = sum(entry["bytes"] for entry in entries(log, "message"))
        print(json.dumps({"sites": sites, "dim": dim, **rows}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_neural.py - what docs/deploy.md and docs/site.md say of a federation with a neural codec, typed by an operator
and three sites. The weights are small and untaught, in TAESD's own layout (tests/cli/fixtures.py), in a cache that all
share; no network is touched.

Usage: run_neural.py FEDKT
"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))
import fixtures  # noqa: E402

SLOW = 600
ADDRESS = "fedkt.example.org:8443"


def block(page, role):
    """The one block of a page that is marked for a role."""
    found = re.findall(rf"<!-- neural {role} -->\n```sh\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert len(found) == 1, f"{page}: {len(found)} blocks for the {role}"
    return found[0]


def main():
    fedkt = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="fedkt-neural-") as name:
        top = pathlib.Path(name)
        environment = {**os.environ, "FEDKT_CACHE": str(top / "cache"), "PATH": f"{fedkt.parent}:{os.environ['PATH']}"}
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]

        def start(where, line):
            line = line.replace(ADDRESS, f"127.0.0.1:{port}").replace("0.0.0.0:8443", f"127.0.0.1:{port}")
            home = {"XDG_DATA_HOME": str(top / where / "data"), "XDG_STATE_HOME": str(top / where / "state-home")}
            return subprocess.Popen(
                ["sh", "-ec", line], cwd=top / where, env={**environment, **home}, text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )  # fmt: skip

        def end(run):
            said, _ = run.communicate(timeout=SLOW)
            if run.returncode != 0:
                sys.exit(f"{run.args[2]}: exit {run.returncode}\n{said}")

        (top / "cache" / "codecs").mkdir(parents=True)
        fixtures.small_network(top / "cache" / "codecs" / "taesd", "taesd", 1)
        (top / "operator").mkdir()
        end(start("operator", "fedkt keygen --out operator.key --name 'Study office'"))
        sites = ("north", "south", "east")
        for i, site in enumerate(sites):
            fixtures.image_folder(top / site / "images", ["normal", "pneumonia"], 4, first_seed=1000 * (i + 1))
            end(start(site, f"fedkt keygen --out site.key --name {site} && cp site.key.pub ../operator/{site}.pub"))
        end(start("operator", "fedkt enroll --roster roster.txt north.pub south.pub east.pub"))
        fixtures.image_folder(top / "operator" / "public-images", ["sky", "sea"], 60)
        end(start("operator", block("docs/deploy.md", "operator")))
        server = start("operator", "exec " + block("docs/deploy.md", "server"))
        while line := server.stdout.readline():
            if line.startswith("page"):
                break
        else:
            sys.exit("the server does not listen")
        joins = []
        for site in sites:
            files = "cp ../operator/task.json ../operator/taesd-32.safetensors .\n"
            joins.append(start(site, files + block("docs/site.md", "site")))
        for run in joins:
            end(run)
        end(server)
        made = [(top / site / "result" / "release.safetensors").read_bytes() for site in sites]
        assert made[0] == made[1] == made[2], "the sites hold different releases"
        images = list((top / "operator" / "state" / "public" / "dataset").rglob("*.png"))
        assert len([p for p in images if p.name != "grid.png"]) == 40, len(images)
    print("a neural federation, as the pages have it")


if __name__ == "__main__":
    main()

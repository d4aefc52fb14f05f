#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_own.py - the way of docs/deploy.md on which the operator's key never comes to the server, typed as written; and
metrics that the pages name are metrics that the server has, label and value included.

Usage: run_own.py FEDKT

Blocks are marked as in run_guides.py, with "own" instead of "step"; the operator and the server have a folder each.
"""

import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

from run_guides import ROOT, SLOW, Slip, steps

NAMED = re.compile(r'`(fedkt_[a-z_]+)(?:\{([a-z_]+)="([^"]*)"\})?`')


def own_steps():
    text = (ROOT / "docs/deploy.md").read_text()
    text = re.sub(r"<!-- step .*-->\n", "", text).replace("<!-- own ", "<!-- step ")
    found = sorted(steps(text, "docs/deploy.md"), key=lambda s: s[0])
    if [s[0] for s in found] != list(range(1, len(found) + 1)) or len(found) < 5:
        raise Slip(f"the steps are numbered {[s[0] for s in found]}")
    return found


class Table:
    def __init__(self, top, fedkt):
        self.top, self.server = top, None
        self.env = os.environ | {"PATH": f"{fedkt.parent}:{os.environ['PATH']}", "LC_ALL": "C"}
        for who in ("operator", "server"):
            (top / who).mkdir()
        self.type("fedkt keygen --out operator.key --name 'Study office'", "operator")
        for site in ("north", "south", "east", "west", "harbour"):
            self.type(f"fedkt keygen --out {site}.key --name {site} && mv {site}.key.pub {site}.pub", "operator")
        self.type("fedkt enroll --roster roster.txt north.pub south.pub east.pub west.pub harbour.pub", "operator")

    def type(self, code, who):
        done = subprocess.run(["sh", "-eu", "-c", code], cwd=self.top / who, env=self.env, capture_output=True,
                              text=True, timeout=SLOW)  # fmt: skip
        if done.returncode:
            raise Slip(f"{who} typed\n{code}\nand read\n{done.stderr}")

    def serve(self, code):
        """Gives its address."""
        log = open(self.top / "server.log", "w+")
        self.server = subprocess.Popen(["sh", "-eu", "-c", "exec " + code.replace("0.0.0.0:8443", "127.0.0.1:0")],
                                       cwd=self.top / "server", env=self.env, stdout=log, stderr=log)  # fmt: skip
        end = time.monotonic() + SLOW
        while True:
            log.seek(0)
            said = log.read()
            heard = re.search(r"listening\D*127\.0\.0\.1:(\d+)", said)
            if heard:
                return f"https://127.0.0.1:{heard[1]}"
            if self.server.poll() is not None or time.monotonic() > end:
                raise Slip(f"the server does not listen:\n{code}\n{said}")
            time.sleep(0.1)

    def close(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(SLOW)


def named():
    """(page, name, label, value) of every metric that a page tells of."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        found += [(page.name, *m.groups()) for m in NAMED.finditer(page.read_text())]
    if not any(label for _, _, label, _ in found):
        raise Slip("no page names a metric with a label: is the pattern still right?")
    return found


def check_metrics(address, token):
    ask = urllib.request.Request(f"{address}/metrics", headers={"Authorization": f"Bearer {token}"})
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    text = urllib.request.urlopen(ask, timeout=60, context=context).read().decode()
    for page, name, label, value in named():
        line = f'{name}{{{label}="{value}"}} ' if label else name
        if not re.search(rf"^{re.escape(line)}" + ("" if label else r"[ {]"), text, re.MULTILINE):
            raise Slip(f"{page} tells of {line.strip()}, and the server has no such metric")


def main():
    top = pathlib.Path(tempfile.mkdtemp(prefix="fedkt-own-"))
    table = None
    try:
        table = Table(top, pathlib.Path(sys.argv[1]).resolve())
        address = None
        for _, role, what in own_steps():
            if role == "carry":
                shutil.copy(top / what[0], top / what[1])
            elif what.startswith("fedkt serve"):
                address = table.serve(what)
            else:
                table.type(what, role)
        if not address or (top / "server" / "operator.key").exists():
            raise Slip("no server was started, or the operator's key came to it")
        check_metrics(address, (top / "server" / "state" / "operator.token").read_text().strip())
    except Slip as slip:
        print(slip)
        return 1
    finally:
        if table:
            table.close()
        shutil.rmtree(top, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

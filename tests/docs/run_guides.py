#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_guides.py - what docs/deploy.md and docs/site.md tell an operator and five sites to type, typed by them.

Usage: run_guides.py FEDKT [--keep FOLDER]

Blocks of the two pages are marked in comments that no reader sees:
  <!-- step 3 operator -->   the ```sh block below is step 3, typed by the operator, in a folder of his own
  <!-- step 1 site -->       typed at each site, one after the other, in a folder of its own
  <!-- step 6 sites -->      typed at all sites at the same time
  <!-- step 5 server -->     typed by the operator in a second window, where it stays; the next step waits until it says
                             that it listens, and in the end it must have ended well by itself
  <!-- step 2 carry site/site.key.pub operator/{site}.pub -->   what the text says is sent: copied for each site
Everything is typed as it is written, but for what the pages say that readers replace by their own: the server's name
and port, and the site's name. Every block must end well, and in the end all five sites hold the same release, which
oracle/transparency.py takes as well.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "conventions"), str(ROOT / "oracle")]
import transparency  # noqa: E402
import fixtures  # noqa: E402

PAGES = ("docs/deploy.md", "docs/site.md")
SITES = {"north": "North clinic", "south": "South clinic", "east": "East clinic", "west": "West clinic",
         "harbour": "Harbour clinic"}  # fmt: skip
CLASSES = ("normal", "pneumonia")
ROLES = ("operator", "site", "sites", "server")
MARK = re.compile(r"<!-- step (\d+) (\w+)(?: (\S+) (\S+))? -->")
SLOW = 600


class Slip(Exception):
    pass


def steps(text, page):
    """(step, role, code or (from, to)) of each mark."""
    found, waiting, fence, code = [], None, False, []
    for number, line in enumerate(text.splitlines(), 1):
        mark = MARK.fullmatch(line.strip())
        if "<!-- step" in line and not mark:
            raise Slip(f"{page}:{number}: no such mark")
        if fence:
            if line.startswith("```"):
                if waiting:
                    found.append((*waiting, "\n".join(code)))
                waiting, fence = None, False
            code.append(line)
        elif mark and mark[2] == "carry":
            found.append((int(mark[1]), "carry", (mark[3], mark[4])))
        elif mark:
            if waiting or mark[2] not in ROLES:
                raise Slip(f"{page}:{number}: a mark before no block, or of nobody")
            waiting = (int(mark[1]), mark[2])
        elif line.startswith("```"):
            if waiting and line.strip() != "```sh":
                raise Slip(f"{page}:{number}: a mark before a block that is no shell")
            fence, code = True, []
        elif waiting and line.strip():
            raise Slip(f"{page}:{number}: a mark before no block")
    if waiting or fence:
        raise Slip(f"{page}: the last block or mark is not finished")
    return found


def all_steps():
    found = []
    for page in PAGES:
        found += steps((ROOT / page).read_text(), page)
    found.sort(key=lambda s: s[0])
    numbers = [s[0] for s in found]
    if numbers != list(range(1, len(numbers) + 1)):
        raise Slip(f"the steps of the two pages together are numbered {numbers}")
    return found


class Walk:
    def __init__(self, top, fedkt):
        self.top, self.servers, self.logs = top, [], {}
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.path = f"{fedkt.parent}:{os.environ['PATH']}"
        (top / "operator").mkdir()
        for n, site in enumerate(SITES):
            (top / site).mkdir()
            for k in (0, 1) if n % 2 == 0 else (n // 2 % 2,):  # some sites have one class alone
                fixtures.image_folder(top / site / "images", [CLASSES[k]], 4 + n, first_seed=1000 * n + 100 * k)

    def own(self, code, site):
        """What readers replace by their own."""
        code = code.replace("fedkt.example.org:8443", f"127.0.0.1:{self.port}").replace(
            "0.0.0.0:8443", f"127.0.0.1:{self.port}"
        )
        code = code.replace("https://localhost:8443", f"https://127.0.0.1:{self.port}")
        return code.replace("North clinic", SITES[site]) if site else code

    def start(self, code, who):
        folder = self.top / who
        home = {"HOME": str(folder / "home"), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": "", "XDG_STATE_HOME": ""}
        environment = {k: v for k, v in {**os.environ, **home}.items() if v} | {"PATH": self.path, "LC_ALL": "C"}
        log = open(self.top / f"{who}.{len(self.logs)}.log", "w+")
        child = subprocess.Popen(
            ["sh", "-eu", "-c", self.own(code, who if who in SITES else None)],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        self.logs[child.pid] = (who, code, log)
        return child

    def words(self, child):
        who, code, log = self.logs[child.pid]
        log.seek(0)
        return f"{who} typed\n{code}\nand read\n{log.read()[-6000:]}"

    def finish(self, children):
        for child in children:
            try:
                status = child.wait(SLOW)
            except subprocess.TimeoutExpired:
                raise Slip(f"it does not end: {self.words(child)}") from None
            if status:
                raise Slip(f"exit code {status}: {self.words(child)}")

    def carry(self, origin, goal):
        for site in SITES:
            there = self.top / origin.replace("site/", f"{site}/").format(site=site)
            here = self.top / goal.replace("site/", f"{site}/").format(site=site)
            if not there.exists():
                raise Slip(f"'{origin}' is to be sent, and is not there")
            here.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(there, here)

    def step(self, role, what):
        if role == "carry":
            self.carry(*what)
        elif role == "operator":
            self.finish([self.start(what, "operator")])
        elif role == "server":
            self.servers.append(self.start(what, "operator"))
            self.listening(self.servers[-1])
        elif role == "sites":
            self.finish([self.start(what, site) for site in SITES])
        else:
            for site in SITES:
                self.finish([self.start(what, site)])
        for server in self.servers:
            if server.poll():
                raise Slip(f"the server has ended with {server.returncode}: {self.words(server)}")

    def listening(self, server):
        end = time.monotonic() + SLOW
        while "listening" not in self.words(server).split("and read", 1)[1]:
            if server.poll() is not None or time.monotonic() > end:
                raise Slip(f"the server does not listen: {self.words(server)}")
            time.sleep(0.1)

    def close(self):
        for server in self.servers:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()

    def schemas(self, site, folder):
        """What was really written is what docs/schema says."""
        try:
            from check_schemas import complaints
        except SystemExit:  # python3-jsonschema is not installed
            return
        lines = (folder / "transparency.jsonl").read_text().splitlines()
        bad = [c for line in lines for c in complaints("transparency", json.loads(line))]
        bad += complaints("receipt", json.loads((folder / "receipt.json").read_text()))
        words = ["fedkt", "verify", "--folder", folder, "--receipt", folder / "receipt.json", "--json"]
        done = subprocess.run(words, env=os.environ | {"PATH": self.path}, capture_output=True, text=True, timeout=SLOW)
        bad += complaints("verify", json.loads(done.stdout or "{}"))
        if bad:
            raise Slip(f"{site}: against docs/schema: {bad[0]}")

    def check(self):
        hashes = set()
        for site in SITES:
            found = [p for p in (self.top / site).rglob("release.safetensors")]
            if len(found) != 1:
                raise Slip(f"{site} holds {len(found)} releases")
            hashes.add(found[0].read_bytes())
            folder = found[0].parent
            self.schemas(site, folder)
            try:  # once more by somebody who shares no code with fedkt
                transparency.verify(folder, self.top / site / "task.json", folder / "receipt.json")
            except transparency.Wrong as wrong:
                raise Slip(f"{site}: oracle/transparency.py says: {wrong}") from None
        if len(hashes) != 1:
            raise Slip("the sites hold different releases")
        if not list((self.top / "operator").rglob("grid.png")):
            raise Slip("the operator holds no images")


def self_test():
    sample = "<!-- step 2 site -->\n\n```sh\none\ntwo\n```\n<!-- step 1 carry a/b c/d -->\n```sh\nnot marked\n```\n"
    if steps(sample, "sample") != [(2, "site", "one\ntwo"), (1, "carry", ("a/b", "c/d"))]:
        sys.exit(f"the extractor reads its sample wrongly: {steps(sample, 'sample')}")
    for slip in ("<!-- step site -->\n", "<!-- step 1 site -->\ntext\n", "<!-- step 1 site -->\n```c\n```\n",
                 "<!-- step 1 stranger -->\n```sh\n```\n", "<!-- step 1 site -->\n", "```sh\n"):  # fmt: skip
        try:
            steps(slip, "slip")
        except Slip:
            continue
        sys.exit(f"the extractor does not notice {slip!r}")


def main():
    fedkt = pathlib.Path(sys.argv[1]).resolve()
    self_test()
    keep = pathlib.Path(sys.argv[3]) if sys.argv[2:3] == ["--keep"] else None
    top = keep or pathlib.Path(tempfile.mkdtemp(prefix="fedkt-guides-"))
    top.mkdir(exist_ok=True)
    alarm = threading.Timer(3 * SLOW, lambda: os._exit(3))
    alarm.daemon = True
    alarm.start()
    walk = Walk(top, fedkt)
    try:
        found = all_steps()
        for number, role, what in found:
            try:
                walk.step(role, what)
            except Slip as slip:
                raise Slip(f"step {number} ({role}): {slip}") from None
        walk.finish(walk.servers)
        walk.check()
    except Slip as slip:
        for server in walk.servers:
            print(walk.words(server))
        print(slip)
        return 1
    finally:
        walk.close()
        if not keep:
            shutil.rmtree(top, ignore_errors=True)
    print(f"{len(found)} steps, {len(SITES)} sites")
    return 0


if __name__ == "__main__":
    sys.exit(main())

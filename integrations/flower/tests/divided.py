# SPDX-License-Identifier: Apache-2.0
"""divided.py - a task in cohorts for the tests: keys and images of its sites, the folder of signed tasks as `fedkt task
new` writes it, and what `fedkt serve` makes of it."""

import fedkt  # first: see fedkt/_library.py

import contextlib
import hashlib
import json
import os
import pathlib
import re
import socket
import subprocess
import threading

from federation import CLASSES, free_port, save_images, until

PROGRAM = os.environ.get("FEDKT_PROGRAM")
PUBLIC = ("release.safetensors", "certificate.json", "grid.png")


def free_ports(n):
    """The first of n ports in a row."""
    while True:
        first = free_port()
        if first + n <= 65535 and all(_is_free(port) for port in range(first, first + n)):
            return first


def _is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def cohort_of(seed, number, key):
    """The rule of docs/scale.md, worked out here again."""
    digest = hashlib.sha256(b"fedkt.cohort/1\n" + seed + key).digest()
    return int.from_bytes(digest[:8], "big") * number >> 64


class Divided:
    """In folder: tasks/, operator.key, site<i>.key, data<i>.npz. sizes: of the cohorts, in their order."""

    def __init__(self, folder, sizes=(4, 4), *, phase=60, dropped=None, rounds=0):
        self.folder, self.sizes, self.sites = pathlib.Path(folder), sizes, sum(sizes)
        self.listen = f"127.0.0.1:{free_ports(len(sizes))}"
        self.keys = [fedkt.Key.make(f"site {i}") for i in range(self.sites)]
        for i, key in enumerate(self.keys):
            key.save(self.folder / f"site{i}.key")
            save_images(self.folder / f"data{i}.npz", i)
        self.operator = fedkt.Key.make("operator")
        self.operator.save(self.folder / "operator.key")
        fedkt.enroll(self.folder / "roster.txt", [key.site_key for key in self.keys])
        self.seed, self.members = self._seed()
        more = ["--dropped", dropped] if dropped is not None else []
        self.run(
            "task", "new", "--out", "tasks", "--classes", ",".join(CLASSES), "--size", 16, "--epsilon", 10, "--delta",
            "1e-5", "--records", 64, "--roster", "roster.txt", "--server", f"https://{self.listen}", "--key",
            "operator.key", "--phase-seconds", phase, "--gather-seconds", 600, "--codec", "dct", "--dim", 5,
            "--insecure-seed", 7, "--cohort-size", -(-self.sites // len(sizes)), "--cohort-seed", self.seed.hex(),
            *(["--rounds", rounds] if rounds else []), *more,
        )  # fmt: skip

    def _seed(self):
        """The first that gives these sizes, and who is in which cohort."""
        number = len(self.sizes)
        for trial in range(10**6):
            seed = trial.to_bytes(32, "big")
            where = [cohort_of(seed, number, key.public) for key in self.keys]
            if [where.count(c) for c in range(number)] == list(self.sizes):
                return seed, [[i for i in range(self.sites) if where[i] == c] for c in range(number)]
        raise AssertionError(f"no seed gives cohorts of {self.sizes}")

    def expire(self, cohort):
        """The task of a cohort says that it has expired long ago; the operator has signed it."""
        path = self.folder / f"tasks/cohort-{cohort:04}.json"
        text, n = re.subn(r'("expires": *)[0-9]+', r"\g<1>1000000000", path.read_text())  # every real keeps its digits
        assert n == 1
        task = re.sub(r',\s*"signature": *\{[^}]*\}|"signature": *\{[^}]*\},', "", text)
        path.write_text(task)
        self.run("task", "sign", "--task", path, "--key", "operator.key")

    def environment(self):
        """The address checks' runtime is for a Python that loads the library; the program has its own."""
        return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def run(self, *words, code=0):
        done = subprocess.run(
            [PROGRAM, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=600,
            stdin=subprocess.DEVNULL, env=self.environment(),
        )  # fmt: skip
        assert done.returncode == code, f"{words}\n{done.stderr}"
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def node(self, i, state, task="tasks"):
        """The settings of a site, for --node-config."""
        return {
            "task": str(self.folder / task), "key": str(self.folder / f"site{i}.key"),
            "data": str(self.folder / f"data{i}.npz"), "state": str(self.folder / state / str(i)),
            "operator-key": self.operator.public.hex(), "accept-insecure-seed": True,
        }  # fmt: skip

    def config(self, state):
        """The --run-config of the server."""
        return {
            "task": str(self.folder / "tasks"), "state": str(self.folder / state / "server"), "out": "", "per-class": 2,
            "hold-seconds": 1, "answer-seconds": 600, "linger-seconds": 2,
        }  # fmt: skip

    @contextlib.contextmanager
    def serving(self):
        """`fedkt serve` with the folder, while the block runs; gives its process. The tasks then pin the certificates of
        its servers."""
        words = ["--task", "tasks", "--state", "https", "--listen", self.listen, "--key", "operator.key", "--per-class",
                 "2", "--linger", "30"]  # fmt: skip
        with open(self.folder / "serve.log", "wb") as file:
            server = subprocess.Popen(
                [PROGRAM, "serve", *words], cwd=self.folder, stdout=file, stderr=file, env=self.environment()
            )
        try:
            said = (self.folder / "serve.log").read_text
            until(lambda: said().count("https://") >= len(self.sizes) or server.poll() is not None, 60, said)
            yield server
        finally:
            server.kill()
            server.wait()

    def by_serve(self, cohorts, server):
        """The sites of these cohorts with `serving()`; gives the public folder of the sum."""
        results = {}
        threads = [threading.Thread(target=self._join, args=(i, c, results)) for c in cohorts for i in self.members[c]]
        [thread.start() for thread in threads]
        [thread.join(300) for thread in threads]
        assert all(isinstance(found, fedkt.JoinResult) for found in results.values()), results
        assert server.wait(200) == 0, (self.folder / "serve.log").read_text()
        return self.folder / "https" / "public"

    def _join(self, i, cohort, results):
        try:
            results[i] = fedkt.join(
                self.folder / f"tasks/cohort-{cohort:04}.json", self.folder / f"site{i}.key",
                self.folder / f"data{i}.npz", state=self.folder / f"https-{i}.db",
                ledger=self.folder / f"https-{i}.ledger", out=self.folder / f"https-out{i}", accept_insecure_seed=True,
            )  # fmt: skip
        except BaseException as error:
            results[i] = error


def same_sum(one, other):
    """Release, certificate and images of two sums are the same bytes; gives the certificate."""
    for name in PUBLIC:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    trees = [sorted(path.relative_to(root / "dataset") for path in (root / "dataset").rglob("*")) for root in (one, other)]
    assert trees[0] == trees[1] and trees[0]
    for path in trees[0]:
        if (one / "dataset" / path).is_file():
            assert (one / "dataset" / path).read_bytes() == (other / "dataset" / path).read_bytes(), path
    return json.loads((one / "certificate.json").read_text())

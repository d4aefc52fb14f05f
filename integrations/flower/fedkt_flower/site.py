# SPDX-License-Identifier: Apache-2.0
"""site.py - what a site has, and one exchange with the server.

Flower may run every message in a process of its own, so nothing lives in memory between two: the machine of the site
(`fedkt.TaskClient`) is opened on its state file and closed again. In the folder `state`:

    client.db       the machine's state, which survives a crash at any moment
    ledger.db       the site's privacy ledger, unless `ledger` names another one
    moments.bin     the moments, so that images are encoded once. PRIVATE
    receipt.json    what the site sent and which heads of the log it received
    lock            held during an exchange
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import time

import fedkt

from . import envelope

NEEDED = ("task", "key", "data", "state")
OPTIONAL = {
    "ledger": "", "dataset": "", "operator-key": "", "out": "", "budget-epsilon": 0.0, "budget-delta": 0.0,
    "accept-weak": False, "accept-insecure-seed": False,
}  # fmt: skip
SIMULATED = {"partition-id", "num-partitions"}


class SiteError(RuntimeError):
    """This site does not take part, and why."""


def settings(node_config, run_config):
    """A site's settings: its own, from --node-config. Only a node that has nothing but a partition number, as those of
    the simulation engine do, takes the run's `simulation.*`, with {} replaced by that number."""
    if set(node_config) <= SIMULATED and "partition-id" in node_config:
        number = str(node_config["partition-id"])
        prefix = "simulation."
        found = {
            name.removeprefix(prefix): value.replace("{}", number) if isinstance(value, str) else value
            for name, value in run_config.items()
            if name.startswith(prefix)
        }
    else:
        found = {name: value for name, value in node_config.items() if name not in SIMULATED}
    missing = [name for name in NEEDED if not found.get(name)]
    if missing:
        raise SiteError(f"--node-config does not say: {', '.join(missing)}")
    unknown = sorted(set(found) - set(NEEDED) - set(OPTIONAL))
    if unknown:
        raise SiteError(f"--node-config has settings that nobody reads: {', '.join(unknown)}")
    return {**OPTIONAL, **found}


def own_task(path, key):
    """The file of the site's task: path itself, or in a folder of cohorts' tasks that of the site's cohort, which its
    key decides."""
    path = pathlib.Path(path)
    if not path.is_dir():
        return path
    cohort = fedkt.Task.load(path / "cohort-0000.json").cohort_of(key.public)
    if cohort is None:
        raise SiteError("the folder of tasks is not of a task in cohorts")
    return path / f"cohort-{cohort:04}.json"


class Site:
    """One site of one task; use it inside `with`, which keeps other exchanges of the same site out."""

    def __init__(self, node_config, run_config):
        self.set = settings(node_config, run_config)
        self.folder = pathlib.Path(self.set["state"])
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.key = fedkt.Key.load(self.set["key"])
        path = own_task(self.set["task"], self.key)
        self.task = fedkt.Task.load(path)
        operator = self.set["operator-key"]
        self.task.verify(bytes.fromhex(operator) if operator else None)
        self.facts = json.loads(path.read_text())
        self._check()
        self.hash = bytes.fromhex(self.task.sha256)
        self.common = None if self.task.cohort is None else bytes.fromhex(self.task.sum_sha256)

    def _check(self):
        """What `fedkt join` asks before it reads an image."""
        if "federation" not in self.facts or "service" not in self.facts:
            raise SiteError("the task is not for a federation with a server")
        seeded = self.facts["service"].get("insecure_seed") is not None
        if seeded and not self.set["accept-insecure-seed"]:
            raise SiteError("all randomness of this task comes from a seed that is written in it: nothing is private")
        if not seeded and self.set["accept-insecure-seed"]:
            raise SiteError("the task has no insecure seed to accept")

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        with self._stack:
            lock = self._stack.enter_context(open(self.folder / "lock", "w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SiteError("another exchange of this site is under way") from None
            self.client = self._stack.enter_context(self._open())
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *why):
        return self._stack.__exit__(*why)

    # ---- the machine ----

    def _moments(self):
        path = self.folder / "moments.bin"
        if path.exists():
            return fedkt.Moments.load(self.task, path)
        found = fedkt.moments(self.task, self.set["data"])
        most = self.facts["federation"]["records"]
        if found.counts.max() > most:
            raise SiteError(f"more than {most} records of a class, and the task allows a site no more")
        part = self.folder / "moments.part"
        found.save(part, force=True)
        part.chmod(0o600)
        os.replace(part, path)
        return found

    def _open(self):
        return fedkt.TaskClient(
            self.task, self.key.secret, self.folder / "client.db",
            ledger=self.set["ledger"] or self.folder / "ledger.db", dataset=self.set["dataset"] or self.task.name,
            moments=self._moments(), budget_epsilon=float(self.set["budget-epsilon"]),
            budget_delta=float(self.set["budget-delta"]), accept_weak=bool(self.set["accept-weak"]),
        )  # fmt: skip

    # ---- an exchange ----

    def hear(self, answer):
        """Gives an Answer of the server to the machine."""
        client = self.client
        if answer.taken is not None and client.wants == "send":
            sent, taken = answer.taken
            if hashlib.sha256(client.send()).digest() == sent:
                client.sent(taken)
        if answer.message is not None:
            if answer.head[0]:
                client.heard_head(*answer.head)
            if client.wants == "recv":
                client.recv(answer.message)
        if client.wants == "ended" and answer.files:
            self._keep(answer.files)

    def ask(self):
        """The Request that the machine wants to make."""
        client = self.client
        wants = client.wants
        if wants == "recv":
            self._check_time()
        return envelope.Request(client.site, wants, client.has, client.send() if wants == "send" else b"")

    def _check_time(self):
        expires, view = self.facts["service"]["expires"], self.client.view()
        if expires and time.time() > expires and not view["masked"] and not view["phase"]:
            raise SiteError("the task has expired")

    def _keep(self, files):
        """Checks the finished task against this site's receipt, and only then keeps its files."""
        self.client.receipt(self.folder / "receipt.json", force=True)
        out = pathlib.Path(self.set["out"] or self.folder / "result")
        if out.exists():
            return
        part = out.with_name(out.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        for name, data in files.items():
            (part / name).write_bytes(data)
        if self.client.view()["stage"] == "released":
            self.found = fedkt.verify(part, task=self.task, receipt=self.folder / "receipt.json")
        part.rename(out)

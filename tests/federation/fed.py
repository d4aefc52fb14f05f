# SPDX-License-Identifier: Apache-2.0
"""fed.py - whole federations of real processes on loopback, for the tests of this folder.

A test file calls `main()`: its command line is FEDKT PLAN [unittest's words]. FEDKT is the binary (the variable
FEDKT_BIN names another one for the server alone, e.g. one with a thread sanitizer), PLAN prints what a task asks of
noise (plan.c). Everything is waited for by looking, never by sleeping for a guess; the limits below are for machines
that are busy with something else.
"""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import expect
import fixtures
import wire

FEDKT = PLAN = None
SLOW = 180  # seconds until something that should come is given up
MEMORY = "/dev/shm" if "TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK) else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, look, seconds=SLOW, pause=0.01):
    """The first true value that `look` gives."""
    end = time.monotonic() + seconds
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(pause)


class Process:
    """A child whose words are kept."""

    def __init__(self, words, cwd, name, env=None, prefix=()):
        self.name, self.lines, self.talk = name, [], []
        self.child = subprocess.Popen(
            [*prefix, *map(str, words)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, text=True, env=env
        )  # fmt: skip
        self.readers = [
            threading.Thread(target=self.read, args=(self.child.stdout, self.lines), daemon=True),
            threading.Thread(target=self.read, args=(self.child.stderr, self.talk), daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, into):
        for line in stream:
            into.append(line.rstrip("\n"))

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.child.send_signal(number)

    def stop(self):
        self.signal(signal.SIGSTOP)

    def go(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """As a power cut: nothing is tidied up."""
        self.signal(signal.SIGKILL)
        return self.wait()

    def ended(self):
        return self.child.poll() is not None

    def wait(self, seconds=SLOW):
        try:
            code = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end\n{self.words()}") from None
        for reader in self.readers:
            reader.join(5)
        self.child.stdout.close()
        self.child.stderr.close()
        return code

    def words(self):
        return "\n".join(["stdout:", *self.lines[-30:], "stderr:", *self.talk[-30:]])


class Federation:
    """Keys, roster, task, data and processes of one task, in one folder."""

    def __init__(self, folder, sites=5, seed=7, classes=("a", "b", "c"), dim=5, phase=30, gather=60, rounds=4,
                 dropped=1, host="127.0.0.1", extra=(), records=64):  # fmt: skip
        self.folder, self.sites, self.seed, self.classes = pathlib.Path(folder), sites, seed, classes
        self.address = f"{host}:{free_port()}"
        self.processes, self.server, self.site = [], None, {}
        self.all = []  # of every run
        self.lives, self.monitor, self.within = 0, {}, lambda look: look()
        self.records = records
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keys()
        self.tls()
        self.task("task.json", dim=dim, phase=phase, gather=gather, rounds=rounds, dropped=dropped, extra=extra)
        for i in range(sites):
            self.images(i)

    # -- making --

    def run(self, *words, code=0):
        done = subprocess.run(
            [FEDKT, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=SLOW,
            stdin=subprocess.DEVNULL
        )  # fmt: skip
        if done.returncode != code:
            raise AssertionError(f"fedkt {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done

    def keys(self):
        self.run("keygen", "--out", "operator.key", "--name", "the operator")
        for i in range(self.sites):
            self.run("keygen", "--out", f"site{i}.key", "--name", f"site number {i}")
        self.run("enroll", "--roster", "roster.txt", *(f"site{i}.key.pub" for i in range(self.sites)))

    def tls(self):
        """The server's certificate, before its first start, so that the task can hold its pin."""
        state = self.folder / "state"
        state.mkdir(mode=0o700)
        make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=fedkt"
        names = ["-keyout", state / "tls.key", "-out", state / "tls.pem"]
        subprocess.run([*make.split(), *names], check=True, capture_output=True, timeout=SLOW)
        (state / "tls.key").chmod(0o600)

    def task(self, name, dim, phase, gather, rounds, dropped, extra=(), epsilon="10"):
        """`rounds`, `dropped` None: what the program chooses; `dim` None: there is no codec."""
        seed = [] if self.seed is None else ["--insecure-seed", self.seed]
        chosen = ["--codec", "none"] if dim is None else ["--codec", "dct", "--dim", dim]
        chosen += [] if rounds is None else ["--rounds", rounds]
        chosen += [] if dropped is None else ["--dropped", dropped]
        self.run(
            "task", "new", "--out", name, "--classes", ",".join(self.classes), "--size", 16,
            "--epsilon", epsilon, "--delta", "1e-5", "--records", self.records, "--roster", "roster.txt",
            "--server", f"https://{self.address}", "--certificate", "state/tls.pem", "--key", "operator.key",
            "--phase-seconds", phase, "--gather-seconds", gather, *chosen, *seed, *extra
        )  # fmt: skip

    def images(self, i):
        """Site i holds one to three classes, never the same number of records."""
        mine = [self.classes[(i + j) % len(self.classes)] for j in range(1 + i % min(3, len(self.classes)))]
        for k, name in enumerate(mine):
            fixtures.image_folder(self.folder / f"data{i}", [name], 2 + (i + k) % 3, first_seed=1000 * i + 100 * k)

    # -- running --

    def start(self, words, name, binary=None, prefix=()):
        process = Process([binary or FEDKT, *words], self.folder, name, prefix=prefix)
        self.processes.append(process)
        self.all.append(process)
        return process

    def serve(self, *extra, state="state", task="task.json", wait=True, prefix=(), per_class=2):
        """A life of the server; the old one must be over."""
        self.lives += 1
        words = [
            "serve",
            "--task",
            task,
            "--state",
            state,
            "--listen",
            self.address,
            "--json",
            "--stay",
            "--per-class",
            per_class,
        ]
        binary = os.environ.get("FEDKT_BIN")
        server = self.start([*words, *extra], f"server, life {self.lives}", binary, prefix)
        if wait:
            self.server = server
            until("the server listens", lambda: server.lines or server.ended())
            if server.ended():
                raise AssertionError(f"the server ended with {server.wait()}\n{server.words()}")
        return server

    def join(self, i, *extra, task="task.json", key=None, state=None, ledger=None, prefix=()):
        words = ["join", "--task", task, "--key", key or f"site{i}.key", "--data", f"data{i}"]
        words += ["--state", state or f"site{i}.state", "--ledger", ledger or f"site{i}.ledger"]
        words += [] if self.seed is None else ["--accept-insecure-seed"]
        out = [] if "--out" in extra else ["--out", f"out{i}-{len(self.processes)}"]
        process = self.start([*words, *out, *extra], f"site {i}", prefix=prefix)
        process.out = self.folder / [*out, *extra][[*out, *extra].index("--out") + 1]
        self.site[i] = process
        return process

    def join_all(self, sites=None):
        for i in range(self.sites) if sites is None else sites:
            self.join(i)

    def close(self):
        for process in self.processes:
            if not process.ended():
                process.signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def forget(self):
        """As before the first start: keys, task, data and certificate stay."""
        self.close()
        self.processes, self.site, self.server = [], {}, None
        for path in self.folder.iterdir():
            if path.name.startswith(("out", "site")) and not path.name.endswith((".key", ".pub")):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in (self.folder / "state").iterdir():
            if not path.name.startswith("tls."):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    # -- looking --

    def door(self, i=None, **more):
        """A hand-made connection, in the seat of site i with its key."""
        seed = None if i is None else key_seed(self.folder / f"site{i}.key")
        told = {"seed": seed, "site": i or 0, "task": bytes.fromhex(self.plan_json["sha256"])}
        return wire.Door(self.address, **{**told, **more})

    def status(self):
        """As a monitor on the server's own machine sees it."""

        def look():
            door = self.door()
            try:
                return json.loads(door.raw("GET", "/status.json", headers=self.monitor).body)
            finally:
                door.close()

        return self.within(look)

    def seen(self, what, look, seconds=SLOW):
        """The first status that `look` likes; with the processes' own words when there is none."""

        def ask():
            with contextlib.suppress(OSError, ValueError, wire.http.client.HTTPException):
                self.last = self.status()
                return look(self.last) and self.last
            return None

        try:
            return until(what, ask, seconds, pause=0.03)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{getattr(self, 'last', None)}\n{self.talk()}") from None

    def ended(self, seconds=SLOW):
        """Waits for the server's end of the task."""
        return self.seen("the task ends", lambda s: s["stage"] in ("released", "given-up"), seconds)["stage"]

    def talk(self):
        return "\n".join(f"== {p.name}: {p.child.poll()}\n{p.words()}" for p in self.processes)

    @property
    def public(self):
        return self.folder / "state" / "public"

    def log(self, path=None):
        text = (path or self.public / "transparency.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def release_bytes(self):
        return (self.public / "release.safetensors").read_bytes()

    # -- what must come out --

    @functools.cached_property
    def plan_json(self):
        said = subprocess.run([PLAN, self.folder / "task.json"], capture_output=True, text=True, check=True)
        return json.loads(said.stdout)

    @functools.cached_property
    def plan(self):
        return expect.Plan(PLAN, self.folder / "task.json")

    @functools.cache
    def moments(self, i):
        out = self.folder / f"moments{i}.safetensors"
        self.run("moments", "--task", "task.json", "--data", f"data{i}", "--out", out.name)
        return expect.exact(out)

    @functools.cache
    def vector(self, i):
        """What site i puts under its masks."""
        return expect.share(self.plan, self.seed, i, self.moments(i))

    def wrong(self, survivors):
        """What is wrong with the release's numbers: "" when they are what these survivors' records and noise give."""
        numbers = expect.released(self.public / "release.safetensors")
        if self.seed is None:
            return expect.near(self.plan, numbers, [self.moments(i) for i in survivors])
        right = numbers == expect.release(self.plan, [self.vector(i) for i in survivors])
        return "" if right else "the release is not the sum of the survivors' moments and noise"

    def survivors(self):
        """Of the release's round, by the transparency log."""
        lines = self.log()
        (made,) = [line for line in lines if line["event"] == "release"]
        (told,) = [line for line in lines if line["event"] == "survivors" and line["round"] == made["round"]]
        bits = int.from_bytes(bytes.fromhex(told["survivors"]), "little")
        return [i for i in range(self.sites) if bits >> i & 1]

    def verify(self, *extra, folder=None, good=True):
        """`fedkt verify` and oracle/transparency.py give the same verdict on what was published."""
        words = ["--task", self.folder / "task.json", *extra]
        ours = [FEDKT, "verify", "--folder", folder or self.public, *words]
        stranger = [sys.executable, "-B", expect.ROOT / "oracle" / "transparency.py", folder or self.public, *words]
        for line in (ours, stranger):
            done = subprocess.run(line, capture_output=True, text=True, timeout=SLOW, cwd=self.folder)
            if (done.returncode == 0) != good or done.returncode > 1:
                raise AssertionError(f"{line[:3]}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")


def key_seed(path):
    return bytes.fromhex(json.loads(pathlib.Path(path).read_text())["secret"])[:32]


class Case(unittest.TestCase):
    """Each test has a folder, and children that do not outlive it."""

    longMessage = True

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fedkt-federation-", dir=MEMORY)).resolve()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.made = 0

    def federation(self, **more):
        self.made += 1
        fed = Federation(self.folder / f"f{self.made}", **more)
        self.addCleanup(self.no_sanitizer_spoke, fed)
        self.addCleanup(fed.close)
        return fed

    def no_sanitizer_spoke(self, fed):
        for process in fed.all:
            talk = "\n".join(process.talk)
            for word in ("Sanitizer", "runtime error:"):
                self.assertNotIn(word, talk, process.name)

    def released(self, fed):
        """The release is there, right to the last bit, and everything about it can be checked."""
        self.assertEqual(fed.ended(), "released", fed.talk())
        survivors = fed.survivors()
        self.assertEqual(fed.wrong(survivors), "")
        fed.verify()
        return survivors

    def sites_end(self, fed, sites, code=0):
        for i in sites:
            self.assertEqual(fed.site[i].wait(), code, fed.site[i].words())


def main():
    global FEDKT, PLAN
    if len(sys.argv) < 3 or not all(os.access(path, os.X_OK) for path in sys.argv[1:3]):
        sys.exit(f"usage: {sys.argv[0]} FEDKT PLAN [test...]")
    FEDKT, PLAN = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(2))
    os.environ["LC_ALL"] = "C"
    os.environ["LSAN_OPTIONS"] = f"suppressions={expect.ROOT / 'tests/e2e/lsan.supp'}:print_suppressions=0"
    unittest.main(module="__main__")

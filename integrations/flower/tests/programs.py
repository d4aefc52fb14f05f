# SPDX-License-Identifier: Apache-2.0
"""programs.py - Flower's programs in a folder of their own: they are started, watched, and ended by their ids."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import federation
from certificates import make_node_key, make_tls
from federation import free_port, until

APP = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(sys.executable).parent


class Programs:
    """with Programs(folder) as p: p.start("name", "flower-superlink", ...); what still runs in the end is ended."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = federation.environment(self.folder)
        self.environment["PATH"] = f"{BIN}{os.pathsep}{self.environment['PATH']}"
        self.running = {}

    def __enter__(self):
        return self

    def __exit__(self, *why):
        for name in list(self.running):
            self.end(name)

    def start(self, name, program, *words, **environment):
        """A process group of its own, so that the processes that it starts end with it."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                [str(BIN / program), *map(str, words)], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**self.environment, **environment}, cwd=self.folder, start_new_session=True,
            )  # fmt: skip

    def end(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)

    def call(self, program, *words):
        done = subprocess.run(
            [str(BIN / program), *map(str, words)], capture_output=True, text=True, timeout=300,
            env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{program} {words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def said(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    # ---- Flower ----

    def connection(self, port, **more):
        """The SuperLink that `flwr` speaks to, in Flower's own file of settings."""
        home = self.folder / "flwr"
        home.mkdir(exist_ok=True)
        rows = {"address": f"127.0.0.1:{port}", **more}
        lines = [f"{name} = {json.dumps(value)}" for name, value in rows.items()]
        (home / "config.toml").write_text("\n".join(["[superlink]", 'default = "here"', "", "[superlink.here]", *lines, ""]))

    def run(self, config, *words, app=APP):
        """`flwr run` of the app; gives the id of the run."""
        text = " ".join(f"{name}={json.dumps(value)}" for name, value in config.items())
        said = self.call("flwr", "run", app, "--format", "json", "--run-config", text, *words)
        return json.loads(said[said.index("{") :])["run-id"]

    def log(self, run):
        """What the ServerApp said."""
        return self.call("flwr", "log", run, "here", "--show")

    def all_said(self, run):
        return "\n".join([f"==== {name}\n{self.said(name)[-3000:]}" for name in self.running] + [self.log(run)])

    def status(self, run):
        """"running", "finished:completed", "finished:failed" and so on."""
        said = self.call("flwr", "ls", "--run-id", run, "--format", "json")
        return json.loads(said[said.index("{") :])["runs"][0]["status"]


class Deployment(Programs):
    """A SuperLink with TLS and authentication of nodes, and nodes beside it."""

    def __init__(self, folder):
        super().__init__(folder)
        make_tls(folder)
        self.port = free_port()
        self.connection(self.port, **{"root-certificates": str(folder / "ca.crt")})

    def superlink(self):
        self.start(
            "superlink", "flower-superlink", "--port", self.port, "--ssl-ca-certfile", "ca.crt", "--ssl-certfile",
            "server.pem", "--ssl-keyfile", "server.key", "--enable-supernode-auth",
            "--disable-runtime-dependency-installation",
        )  # fmt: skip
        until(lambda: "Uvicorn running" in self.said("superlink"), 180, lambda: self.said("superlink"))

    def node(self, name, settings, *, register=True, **environment):
        key = self.folder / f"{name}.node"
        make_node_key(key)
        if register:
            self.call("flwr", "supernode", "register", f"{key}.pub", "here")
        text = " ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={str(v).lower()}" for k, v in settings.items())
        self.start(
            name, "flower-supernode", "--root-certificates", "ca.crt", "--superlink", f"127.0.0.1:{self.port}",
            "--auth-supernode-private-key", key, "--port", free_port(), "--node-config", text, **environment,
        )  # fmt: skip

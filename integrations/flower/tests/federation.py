# SPDX-License-Identifier: Apache-2.0
"""federation.py - what the tests share: a signed task with keys and images of five sites, and its release as fedkt's own
server makes it, over HTTPS and in memory."""

import fedkt  # first: see fedkt/_library.py

import json
import os
import pathlib
import socket
import threading
import time

import numpy as np

SITES, CLASSES = 5, ["a", "b", "c"]
FILES = ("release.safetensors", "certificate.json", "transparency.jsonl")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(look, seconds, why):
    """Waits for a true answer of look(), which it gives; why() says what is known when there is none."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"waited in vain: {why()}"
        time.sleep(0.05)
    return found


def save_images(path, i):
    """The images of site i."""
    chance = np.random.default_rng(i)
    n = 6 + i
    images = chance.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)
    labels = (np.arange(n) % len(CLASSES)).astype(np.uint8)
    np.savez(path, train_images=images, train_labels=labels[:, None])


class Federation:
    """In folder: task.json, operator.key, site<i>.key, data<i>.npz. phase: seconds that a phase waits for a site."""

    def __init__(self, folder, *, sites=SITES, phase=60, gather=600, seed=7, dim=5):
        self.folder, self.sites, self.listen = pathlib.Path(folder), sites, f"127.0.0.1:{free_port()}"
        self.keys = [fedkt.Key.make(f"site {i}") for i in range(sites)]
        for i, key in enumerate(self.keys):
            key.save(self.folder / f"site{i}.key")
            save_images(self.folder / f"data{i}.npz", i)
        self.operator = fedkt.Key.make("operator")
        self.operator.save(self.folder / "operator.key")
        members = fedkt.Federation([key.public for key in self.keys], records=64, dropped=1, corrupt=1)
        service = fedkt.Service(
            f"https://{self.listen}", names=[key.name for key in self.keys], gather_seconds=gather,
            phase_seconds=phase, insecure_seed=seed,
        )  # fmt: skip
        task = fedkt.Task.make(CLASSES, epsilon=10, delta=1e-5, codec="dct", size=16, dim=dim, federation=members,
                               service=service, name="loopback")  # fmt: skip
        task.sign(self.operator.secret)
        task.save(self.folder / "task.json")

    @property
    def task(self):
        return fedkt.Task.load(self.folder / "task.json")

    def node(self, i, state):
        """The settings of a site, for --node-config."""
        return {
            "task": str(self.folder / "task.json"), "key": str(self.folder / f"site{i}.key"),
            "data": str(self.folder / f"data{i}.npz"), "state": str(self.folder / state / str(i)),
            "operator-key": self.operator.public.hex(), "accept-insecure-seed": True,
        }  # fmt: skip

    def by_https(self):
        """fedkt's own server and sites; gives the release. The task then pins the server's certificate."""
        results, events = {}, []
        (self.folder / "https").mkdir()

        def keep(name, call):
            try:
                results[name] = call()
            except BaseException as error:
                results[name] = error

        def serve():
            return fedkt.serve(
                self.folder / "task.json", self.folder / "https/state", self.listen,
                key=self.folder / "operator.key", per_class=2, linger_seconds=30, on_event=lambda e: events.append(e),
            )  # fmt: skip

        def join(i):
            return fedkt.join(
                self.folder / "task.json", self.folder / f"site{i}.key", self.folder / f"data{i}.npz",
                state=self.folder / f"https/{i}.db", ledger=self.folder / f"https/{i}.ledger",
                out=self.folder / f"https/out{i}", accept_insecure_seed=True,
            )  # fmt: skip

        threads = [threading.Thread(target=keep, args=("server", serve))]
        threads[0].start()
        until(lambda: events or "server" in results, 60, lambda: results)
        threads += [threading.Thread(target=keep, args=(i, lambda i=i: join(i))) for i in range(self.sites)]
        [thread.start() for thread in threads[1:]]
        [thread.join(300) for thread in threads]
        assert all(isinstance(results.get(i), fedkt.JoinResult) for i in range(self.sites)), results
        self.sent_bytes = sum(results[i].sent_bytes for i in range(self.sites))
        return (self.folder / "https/out0/release.safetensors").read_bytes()

    def in_memory(self, lost=None):
        """fedkt's own server, with carriers; gives the release. `lost` falls silent instead of sending its masked
        vector."""
        folder = self.folder / "memory"
        folder.mkdir()
        task = self.task
        server = fedkt.TaskServer(task, folder / "state", per_class=2)
        sites = [
            fedkt.TaskClient(
                task, key.secret, folder / f"{i}.db", ledger=folder / f"{i}.ledger", dataset="mine",
                moments=fedkt.moments(task, self.folder / f"data{i}.npz"),
            )
            for i, key in enumerate(self.keys)
        ]  # fmt: skip
        alive, now = set(range(self.sites)), int(time.time() * 1000)
        while any(sites[i].wants != "ended" for i in alive):
            now += 100
            server.tick(now)
            for i in sorted(alive):
                site = sites[i]
                if site.wants == "send" and i == lost and site.view()["masked"]:
                    alive.remove(i)
                elif site.wants == "send":
                    taken = server.deliver(i, site.send())
                    server.settle()
                    site.sent(taken)
                elif site.wants == "recv":
                    answer = server.collect(i, *site.has)
                    server.settle()
                    site.recv(answer)
            if server.has_work():
                server.worked(server.work())
            server.settle()
        assert server.view()["stage"] == "released", server.view()
        return pathlib.Path(server.file("release.safetensors")).read_bytes()


def entries(path, event):
    """Lines of a transparency log."""
    found = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [entry for entry in found if entry["event"] == event]


def environment(folder):
    """For Flower's programs: settings and bundles of their own in `folder`, and nothing sent to anybody."""
    here = pathlib.Path(__file__).resolve().parent.parent
    path = os.pathsep.join(filter(None, [str(here), os.environ.get("PYTHONPATH")]))
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    home = {"FLWR_HOME": str(folder / "flwr"), "HOME": str(folder)}
    return {**os.environ, **home, **quiet, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

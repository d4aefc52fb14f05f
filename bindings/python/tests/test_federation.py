# SPDX-License-Identifier: Apache-2.0
"""test_federation.py - secure aggregation, keys, and whole federations: in memory through carriers, over HTTPS through
join and serve, and with the program's own server; the same release, bit for bit, from a known seed."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

import fedkt
from conftest import PROGRAM

SITES, CLASSES = 5, ["a", "b", "c"]


# ---- the machines ----


def machines(vectors, lost=None, dropped=1, **more):
    """Server and sites of a round; carries until masks can come off. `lost` never sends its masked vector."""
    keys = [fedkt.Key.make() for _ in vectors]
    params = fedkt.SecAggParams.find(
        [key.public for key in keys], length=3, bound=10**6, dropped=dropped, corrupt=1, **more
    )
    server = fedkt.SecAggServer(params)
    sites = [fedkt.SecAggClient(params, i, key.secret, vector) for i, (key, vector) in enumerate(zip(keys, vectors))]
    while server.state not in ("unmask", "failed"):
        told = server.next()
        if told is None:
            server.close_phase()
            continue
        to, message = told
        sites[to].recv(message)
        if to == lost and sites[to].state == "mask":
            continue
        server.recv(to, sites[to].send())
    return server, sites


def test_a_sum_that_nobody_sees():
    vectors = np.random.default_rng(1).integers(-(10**6), 10**6, (6, 3))
    server, sites = machines(vectors)
    assert server.census()["revealed"] >= server.params.threshold
    server.unmask()
    total, survivors = server.total()
    assert (total == vectors.sum(0)).all() and survivors.all() and server.state == "done"
    assert all(server.site(i) is fedkt.Status.OK for i in range(6))


def test_a_lost_site_is_not_in_the_sum():
    vectors = np.arange(18).reshape(6, 3)
    server, _ = machines(vectors, lost=2)
    server.unmask()
    total, survivors = server.total()
    assert survivors.tolist() == [True, True, False, True, True, True]
    assert (total == np.delete(vectors, 2, 0).sum(0)).all()


def test_a_vector_from_a_function_and_a_ledger_that_is_asked():
    keys = [fedkt.Key.make() for _ in range(3)]
    params = fedkt.SecAggParams.find([k.public for k in keys], length=2, bound=100, dropped=0, corrupt=1)
    asked = []
    sites = [
        fedkt.SecAggClient(
            params, i, key.secret, lambda length, i=i: np.full(length, i, np.int16),
            reserve=lambda session: asked.append(("reserve", session)),
            spend=lambda session: asked.append(("spend", session)),
        )
        for i, key in enumerate(keys)
    ]  # fmt: skip
    server = fedkt.SecAggServer(params, round=bytes(range(16)))
    while server.state != "unmask":
        to, message = server.next()
        sites[to].recv(message)
        server.recv(to, sites[to].send())
    server.unmask()
    assert server.total()[0].tolist() == [3, 3]
    assert [what for what, _ in asked] == ["reserve"] * 3 + ["spend"] * 3
    assert len({session for _, session in asked}) == 1 and len(asked[0][1]) == 32


@pytest.mark.parametrize(
    "vector, kind, words",
    [
        (np.zeros(3), fedkt.ArgumentError, "whole numbers"),
        (np.zeros(4, int), fedkt.ArgumentError, "whole numbers"),
        (np.array([1, 2, np.nan]), fedkt.ArgumentError, "whole numbers"),
        (np.array([1, 2, 2**63], np.uint64), fedkt.ArgumentError, "63 bits"),
        (np.array([1, 2, 10**9]), fedkt.FedktError, "bound"),
        (lambda length: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_a_bad_vector_ends_the_round_for_its_site(vector, kind, words):
    good = np.zeros(3, int)
    with pytest.raises(kind, match=words):
        machines([vector, good, good, good, good])


def test_bytes_that_are_not_messages():
    keys = [fedkt.Key.make() for _ in range(3)]
    params = fedkt.SecAggParams.find([k.public for k in keys], length=2, bound=100, dropped=0, corrupt=1)
    for junk in (b"", b"x", os.urandom(1000), bytes(10**6)):
        client = fedkt.SecAggClient(params, 0, keys[0].secret, np.zeros(2, int))
        server = fedkt.SecAggServer(params)
        with pytest.raises(fedkt.PeerError):
            client.recv(junk)
        with pytest.raises(fedkt.PeerError):
            client.recv(server.next()[1])  # sticky
        with pytest.raises(fedkt.FedktError):
            server.recv(1, junk)
        for bad in (3, -1, 2**40):
            with pytest.raises(fedkt.ArgumentError):
                server.recv(bad, b"x")
    for use in (lambda: client.recv("text"), lambda: client.recv(None), server.unmask, server.total):
        with pytest.raises(fedkt.FedktError):
            use()
    for bad in ({"index": 3}, {"index": -1}, {"secret": b"short"}, {"secret": bytes(64)}):
        with pytest.raises(fedkt.FedktError):
            fedkt.SecAggClient(**{"params": params, "index": 0, "secret": keys[0].secret, "vector": [0, 0], **bad})
    with pytest.raises(fedkt.ArgumentError, match="16 bytes"):
        fedkt.SecAggServer(params, round=b"x")
    for options in ({"dropped": 9}, {"corrupt": 9}, {"bound": 2**63}, {"length": 0}, {"length": 2**33}):
        with pytest.raises(fedkt.FedktError):
            fedkt.SecAggParams.find(
                [k.public for k in keys], **{"length": 2, "bound": 100, "dropped": 0, "corrupt": 1, **options}
            )
    client.close()
    with pytest.raises(fedkt.ArgumentError, match="is closed"):
        client.wants


def test_keys_and_rosters(cli, tmp_path):
    keys = [fedkt.Key.make(f"site {i}") for i in range(3)]
    for i, key in enumerate(keys):
        key.save(tmp_path / f"{i}.key")
        key.save_public(tmp_path / f"{i}.pub")
    assert (tmp_path / "0.key").stat().st_mode & 0o777 == 0o600
    assert fedkt.Key.load(tmp_path / "0.key").secret == keys[0].secret
    sites = [fedkt.SiteKey.load(tmp_path / f"{i}.pub") for i in range(3)]
    assert sites == [key.site_key for key in keys] and "SECRET" in repr(keys[0])
    assert fedkt.enroll(tmp_path / "roster", sites) == 3
    cli("enroll", "--roster", "theirs", "0.pub", "1.pub", "2.pub")
    assert (tmp_path / "roster").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert fedkt.load_roster(tmp_path / "roster") == sites
    with pytest.raises(fedkt.MachineError):
        fedkt.enroll(tmp_path / "roster", sites[:1])
    (tmp_path / "0.key").chmod(0o644)
    with pytest.raises(fedkt.ArgumentError):
        fedkt.Key.load(tmp_path / "0.key")
    with pytest.raises(fedkt.FedktError):
        fedkt.SiteKey.load(tmp_path / "0.key")


# ---- federations ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Federation:
    """Keys, certificate, images and a signed task of five sites, all made by the package."""

    def __init__(self, folder, seed=7):
        self.folder, self.listen = folder, f"127.0.0.1:{free_port()}"
        self.keys = [fedkt.Key.make(f"site {i}") for i in range(SITES)]
        for i, key in enumerate(self.keys):
            key.save(folder / f"site{i}.key")
            self.images(i)
        self.operator = fedkt.Key.make("operator")
        self.operator.save(folder / "operator.key")
        sites = fedkt.Federation([k.public for k in self.keys], records=64, dropped=1, corrupt=1)
        service = fedkt.Service(
            f"https://{self.listen}", names=[k.name for k in self.keys], gather_seconds=60, phase_seconds=30,
            insecure_seed=seed,
        )  # fmt: skip
        task = fedkt.Task.make(CLASSES, epsilon=10, delta=1e-5, codec="dct", size=16, dim=5, federation=sites,
                               service=service, name="loopback")  # fmt: skip
        task.sign(self.operator.secret)
        task.save(folder / "task.json")

    def images(self, i):
        chance = np.random.default_rng(i)
        n = 6 + i
        images = chance.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)
        labels = (np.arange(n) % 3).astype(np.uint8)
        np.savez(self.folder / f"data{i}.npz", train_images=images, train_labels=labels[:, None])

    @property
    def task(self):
        return fedkt.Task.load(self.folder / "task.json")

    def serve(self, state, events, results, **more):
        try:
            results["server"] = fedkt.serve(
                self.folder / "task.json", self.folder / state, self.listen, key=self.folder / "operator.key",
                per_class=2, linger_seconds=30, on_event=events.append, **more,
            )  # fmt: skip
        except BaseException as error:
            results["server"] = error

    def join(self, i, results, **more):
        try:
            results[i] = fedkt.join(
                self.folder / "task.json", self.folder / f"site{i}.key", self.folder / f"data{i}.npz",
                state=self.folder / f"site{i}.state", ledger=self.folder / f"site{i}.ledger",
                out=self.folder / f"out{i}", accept_insecure_seed=True, **more,
            )  # fmt: skip
        except BaseException as error:
            results[i] = error

    def forget(self):
        for path in self.folder.iterdir():
            if path.name.endswith((".state", ".ledger")) or path.name.startswith("out"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def until(look, seconds=120):
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def in_memory(federation, folder):
    """The same task through carriers; gives the release's bytes."""
    folder.mkdir()
    task = federation.task
    server = fedkt.TaskServer(task, folder / "state", per_class=2)
    names = {"data_options": {"classes": CLASSES}}
    sites = []
    for i, key in enumerate(federation.keys):
        moments = fedkt.moments(task, federation.folder / f"data{i}.npz", **names)
        sites.append(
            fedkt.TaskClient(task, key.secret, folder / f"{i}.state", ledger=folder / f"{i}.ledger", dataset="mine",
                             moments=moments)  # fmt: skip
        )
    assert [site.site for site in sites] == list(range(SITES))
    now = int(time.time() * 1000)
    while any(site.wants != "ended" for site in sites):
        now += 100
        server.tick(now)
        for i, site in enumerate(sites):
            if site.wants == "send":
                message = site.send()
                taken = server.deliver(i, message)
                server.settle()
                site.sent(taken)
            elif site.wants == "recv":
                answer = server.collect(i, *site.has)
                server.settle()
                site.recv(answer)
            site.heard_head(*server.head()) if server.head()[0] else None
        if server.has_work():
            server.worked(server.work())
        server.settle()
    assert server.view()["stage"] == "released" and sites[0].view()["spent"]
    assert server.deliver(0, b"late") is False
    sites[1].receipt(folder / "receipt.json")
    found = fedkt.verify(os.path.dirname(server.file("transparency.jsonl")), task=task, receipt=folder / "receipt.json")
    assert found.survivors == SITES and found.counted
    with open(server.file("release.safetensors"), "rb") as file:
        return file.read()


def test_the_same_release_by_https_in_memory_and_from_the_program(tmp_path):
    """A known seed: everything that is random is the same."""
    f = Federation(tmp_path)
    events, results = [], {}
    threads = [threading.Thread(target=f.serve, args=("state", events, results))]
    threads[0].start()
    until(lambda: events or "server" in results)
    assert "server" not in results, results["server"]
    assert events[0].kind == "listening" and events[0].facts["listen"] == f.listen and events[0].facts["pinned"]
    told = []
    hook = {"on_event": lambda event: told.append(event)}
    threads += [threading.Thread(target=f.join, args=(i, results), kwargs=hook) for i in range(SITES)]
    [thread.start() for thread in threads[1:]]
    [thread.join(180) for thread in threads]
    for i in range(SITES):
        assert isinstance(results[i], fedkt.JoinResult), results[i]
        assert results[i].counted and results[i].stage == "released" and results[i].site == i
    assert results["server"].stage == "released" and results["server"].survivors == SITES
    assert {"signed", "seeded", "records", "view"} <= {event.kind for event in told}
    release = (tmp_path / "out0" / "release.safetensors").read_bytes()
    assert not fedkt.Release.load(tmp_path / "out0" / "release.safetensors").is_private
    assert in_memory(f, tmp_path / "memory") == release
    if PROGRAM:
        f.forget()
        assert of_the_program(f, tmp_path) == release


def of_the_program(f, folder):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    (folder / "theirs").mkdir(mode=0o700)
    for name in ("tls.pem", "tls.key"):  # the task pins them
        shutil.copy(folder / "state" / name, folder / "theirs" / name)
    server = subprocess.Popen(
        [PROGRAM, "serve", "--task", "task.json", "--state", "theirs", "--listen", f.listen, "--per-class", "2",
         "--quiet"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    try:
        results = {}
        threads = [threading.Thread(target=f.join, args=(i, results)) for i in range(SITES)]
        [thread.start() for thread in threads]
        [thread.join(180) for thread in threads]
        assert all(isinstance(results[i], fedkt.JoinResult) for i in range(SITES)), results
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()
    return (folder / "out0" / "release.safetensors").read_bytes()


def test_ctrl_c_stops_a_server_and_nothing_is_lost(tmp_path):
    f = Federation(tmp_path)
    words = (tmp_path / "task.json", tmp_path / "state", f.listen)
    seen = []

    def kill(event):
        if not seen:
            seen.append(event)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fedkt.serve(*words, key=tmp_path / "operator.key", on_event=kill)
    with pytest.raises(fedkt.Stopped) as caught:
        fedkt.serve(*words, on_event=lambda event: event.kind == "view")
    assert caught.value.result.stage == "gathering"
    with pytest.raises(ZeroDivisionError):
        fedkt.serve(*words, on_event=lambda event: 1 / 0)


def test_bad_input_to_join_and_serve(tmp_path):
    f = Federation(tmp_path)
    for bad in ({"task": tmp_path / "no"}, {"key": tmp_path / "no"}, {"data": tmp_path / "no"},
                {"operator_key": bytes(32)}, {"budget_epsilon": float("nan")}, {"device": "x"}):  # fmt: skip
        options = {"task": tmp_path / "task.json", "key": tmp_path / "site0.key", "data": tmp_path / "data0.npz",
                   "state": tmp_path / "s", "ledger": tmp_path / "l", "accept_insecure_seed": True, **bad}  # fmt: skip
        with pytest.raises(fedkt.FedktError):
            fedkt.join(**options)
    with pytest.raises(fedkt.FedktError) as caught:  # a seed must be accepted
        fedkt.join(tmp_path / "task.json", tmp_path / "site0.key", tmp_path / "data0.npz", state=tmp_path / "s",
                   ledger=tmp_path / "l")  # fmt: skip
    assert not caught.value.result.counted
    for listen in ("nowhere", "127.0.0.1", "1.2.3.4:99999"):
        with pytest.raises(fedkt.FedktError):
            fedkt.serve(tmp_path / "task.json", tmp_path / "state", listen, key=tmp_path / "operator.key")
    with pytest.raises(fedkt.FedktError):
        fedkt.TaskServer(tmp_path / "no", tmp_path / "x")
    with pytest.raises(fedkt.DataError, match="federation"):
        fedkt.release(f.task, [], ledger=None)
    task = fedkt.Task.load(tmp_path / "task.json")
    task.verify(f.operator.public)
    with pytest.raises(fedkt.PeerError):
        task.verify(f.keys[0].public)
    assert fedkt.SecAggParams.of(task).length > 0 and len(fedkt.SecAggParams.of(task).roster) == SITES

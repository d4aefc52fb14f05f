# SPDX-License-Identifier: Apache-2.0
"""test_deployment.py - a real deployment on loopback: flower-superlink and flower-supernode processes, TLS, registered
node keys. One node comes late and counts; one is killed while its masked vector is on the way, and the release is that
of fedkt's own server which loses the same site; a node whose key is not registered is turned away."""

import os
import shutil
import signal
import time

import pytest

import fedkt

pytest.importorskip("flwr", reason="flwr is not installed: pip install flwr")

from federation import SITES, Federation, entries, until
from programs import APP, Deployment

KILLED, LATE = 2, 4
pytestmark = pytest.mark.skipif(bool(os.environ.get("FEDKT_SANITIZE")), reason="Flower's processes run without checks")


def bundle(folder):
    """The app with the ClientApp that can be stopped."""
    shutil.copytree(APP, folder, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    shutil.copy(APP / "tests/stopping_client.py", folder / "fedkt_flower/stopping_client.py")
    file = folder / "pyproject.toml"
    file.write_text(file.read_text().replace("fedkt_flower.client:app", "fedkt_flower.stopping_client:app"))


def test_superlink_and_supernodes_one_late_one_killed(tmp_path):
    f = Federation(tmp_path, phase=90)
    bundle(tmp_path / "app")
    mark = tmp_path / "stopped"
    with Deployment(tmp_path) as d:
        d.superlink()
        d.node("stranger", f.node(LATE, "stranger"), register=False)
        for i in set(range(SITES)) - {LATE}:
            d.node(f"node{i}", f.node(i, "sites"), **({"FEDKT_TEST_STOP": str(mark)} if i == KILLED else {}))
        config = {"task": f"{tmp_path}/task.json", "state": f"{tmp_path}/server", "per-class": 2, "linger-seconds": 60}
        run = d.run(config, app=tmp_path / "app")
        until(lambda: all((tmp_path / f"sites/{i}/client.db").exists() for i in range(SITES) if i != LATE), 240,
              lambda: d.all_said(run))  # fmt: skip
        began = time.time() * 1000
        d.node(f"node{LATE}", f.node(LATE, "sites"))
        until(mark.exists, 240, lambda: d.all_said(run))
        d.end(f"node{KILLED}", signal.SIGKILL)
        until(lambda: d.status(run).startswith("finished"), 500, lambda: d.all_said(run))
        assert d.status(run) == "finished:completed", d.all_said(run)
        assert "released" in d.log(run) and "No SuperNode found with the given public key" in d.said("superlink")
    assert not (tmp_path / "stranger").exists(), "a node whose key is not registered was given a message"
    log = tmp_path / "sites/0/result/transparency.jsonl"
    assert entries(log, "begin")[0]["at"] > began, "the round began without the late node"
    assert [entry["site"] for entry in entries(log, "lost")] == [KILLED]
    assert entries(log, "survivors")[0]["count"] == SITES - 1
    expected = f.in_memory(lost=KILLED)
    for i in set(range(SITES)) - {KILLED}:
        assert (tmp_path / f"sites/{i}/result/release.safetensors").read_bytes() == expected
        found = fedkt.verify(tmp_path / f"sites/{i}/result", task=f.task, receipt=tmp_path / f"sites/{i}/receipt.json")
        assert found.counted and found.survivors == SITES - 1
    assert not (tmp_path / f"sites/{KILLED}/result").exists()


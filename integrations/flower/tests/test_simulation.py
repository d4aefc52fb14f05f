# SPDX-License-Identifier: Apache-2.0
"""test_simulation.py - `flwr run` on Flower's simulation engine: the release that fedkt's own server makes over HTTPS, bit
for bit, of one task with five nodes and of a task in cohorts."""

import os

import pytest

import fedkt

pytest.importorskip("flwr", reason="flwr is not installed: pip install flwr")
pytest.importorskip("ray", reason="Flower's simulation engine is not installed: pip install 'flwr[simulation]'")

from divided import PROGRAM, Divided, same_sum
from federation import SITES, Federation, free_port, until
from programs import Programs

pytestmark = pytest.mark.skipif(bool(os.environ.get("FEDKT_SANITIZE")), reason="Flower's processes run without checks")


def simulate(folder, task, sites, **more):
    """`flwr run` to its end; task: a file or folder in `folder`. The server's state is in server/, sites/ has the sites'."""
    config = {
        "task": f"{folder}/{task}", "state": f"{folder}/server", "per-class": 2,
        "simulation.task": f"{folder}/{task}", "simulation.key": f"{folder}/site{{}}.key",
        "simulation.data": f"{folder}/data{{}}.npz", "simulation.state": f"{folder}/sites/{{}}",
        "simulation.accept-insecure-seed": True, **more,
    }  # fmt: skip
    port = free_port()
    with Programs(folder) as p:
        p.start("superlink", "flower-superlink", "--insecure", "--simulation", "--port", port,
                "--disable-runtime-dependency-installation")  # fmt: skip
        p.connection(port, insecure=True)
        until(lambda: "Uvicorn running" in p.said("superlink"), 180, lambda: p.said("superlink"))
        run = p.run(config, "--federation-config", f"num-supernodes={sites} client-resources-num-cpus=1")
        until(lambda: p.status(run).startswith("finished"), 500, lambda: p.said("superlink"))
        assert p.status(run) == "finished:completed", p.said("superlink")


def test_flwr_run_on_the_simulation_engine(tmp_path):
    f = Federation(tmp_path)
    expected = f.by_https()
    simulate(tmp_path, "task.json", SITES)
    for i in range(SITES):
        assert (tmp_path / f"sites/{i}/result/release.safetensors").read_bytes() == expected
        found = fedkt.verify(tmp_path / f"sites/{i}/result", task=f.task, receipt=tmp_path / f"sites/{i}/receipt.json")
        assert found.counted and found.survivors == SITES


@pytest.mark.skipif(not PROGRAM, reason="FEDKT_PROGRAM does not name the program fedkt")
def test_cohorts_on_the_simulation_engine(tmp_path):
    """Two cohorts with their sites, and a third whose task has expired: it fails, and the sum is that of `fedkt serve`
    for the same tasks."""
    f = Divided(tmp_path, (4, 4, 3))
    f.expire(2)
    with f.serving() as server:  # both wait a minute until they believe the clock
        simulate(tmp_path, "tasks", f.sites, **{"linger-seconds": 10})
        expected = f.by_serve([0, 1], server)
    told = same_sum(tmp_path / "server/public", expected)["cohorts"]
    assert (told["in_sum"], told["missing"]) == (2, [2])
    for c in range(2):
        for i in f.members[c]:
            home = tmp_path / f"sites/{i}"
            said = f.run("verify", "--folder", "server/public", "--receipt", home / "receipt.json", "--json")
            assert (said["in_sum"], said["survivors"]) == (2, 8) and said["receipt_compared"]
            found = fedkt.verify(home / "result", task=tmp_path / f"tasks/cohort-{c:04}.json")
            assert found.survivors == 4

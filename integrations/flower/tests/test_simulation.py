# SPDX-License-Identifier: Apache-2.0
"""test_simulation.py - `flwr run` on Flower's simulation engine with five nodes: the release that fedkt's own server
makes over HTTPS, bit for bit."""

import os

import pytest

import fedkt

pytest.importorskip("flwr", reason="flwr is not installed: pip install flwr")
pytest.importorskip("ray", reason="Flower's simulation engine is not installed: pip install 'flwr[simulation]'")

from federation import SITES, Federation, free_port, until
from programs import Programs

pytestmark = pytest.mark.skipif(bool(os.environ.get("FEDKT_SANITIZE")), reason="Flower's processes run without checks")


def test_flwr_run_on_the_simulation_engine(tmp_path):
    f = Federation(tmp_path)
    expected = f.by_https()
    place, port = str(tmp_path), free_port()
    config = {
        "task": f"{place}/task.json", "state": f"{place}/server", "per-class": 2,
        "simulation.task": f"{place}/task.json", "simulation.key": f"{place}/site{{}}.key",
        "simulation.data": f"{place}/data{{}}.npz", "simulation.state": f"{place}/sites/{{}}",
        "simulation.accept-insecure-seed": True,
    }  # fmt: skip
    with Programs(tmp_path) as p:
        p.start("superlink", "flower-superlink", "--insecure", "--simulation", "--port", port,
                "--disable-runtime-dependency-installation")  # fmt: skip
        p.connection(port, insecure=True)
        until(lambda: "Uvicorn running" in p.said("superlink"), 180, lambda: p.said("superlink"))
        run = p.run(config, "--federation-config", f"num-supernodes={SITES} client-resources-num-cpus=1")
        until(lambda: p.status(run).startswith("finished"), 500, lambda: p.said("superlink"))
        assert p.status(run) == "finished:completed", p.said("superlink")
    for i in range(SITES):
        assert (tmp_path / f"sites/{i}/result/release.safetensors").read_bytes() == expected
        found = fedkt.verify(tmp_path / f"sites/{i}/result", task=f.task, receipt=tmp_path / f"sites/{i}/receipt.json")
        assert found.counted and found.survivors == SITES

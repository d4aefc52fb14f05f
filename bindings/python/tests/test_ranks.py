# SPDX-License-Identifier: Apache-2.0
"""test_ranks.py - simulate() on several processes that mpi4py connects, started by mpirun: the releases of one process
to the bit, one failure on all, and nothing left in the communicator. Skipped without mpirun or mpi4py."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import fedkt

SCRIPT = """
import json, os, sys
import fedkt
from mpi4py import MPI

comm, kind = MPI.COMM_WORLD, sys.argv[1]
data = fedkt.Dataset.open("demo:train", limit=101)
options = {"codec": "dct", "epsilon": [10, 1]}
if comm.rank == 1:  # only here, so that one process fails by itself
    options.update({"codec": {"codec": "nonsense"}, "python": {"epsilon": "ten"},
                    "hook": {"progress": lambda *_: 1 / 0},
                    "library": {"holdout": 0.99999}, "stop": {"progress": lambda *_: True}}.get(kind, {}))
told = {"rank": comm.rank}
try:
    found = fedkt.simulate(data, delta=1e-5, test="demo:test", sites=5, size=16, dim=16, insecure_seed=3, comm=comm,
                           **options)
    told["none"] = found is None
    if found is not None:
        told["releases"] = [release.sha256 for release in found.releases]
        told["accuracy"] = found.accuracy(0)
except Exception as error:
    told["error"], told["said"] = type(error).__name__, str(error)
told["others"] = comm.allgather(comm.rank)  # the caller's communicator is as it was
with open(f"{kind}-{comm.size}-{comm.rank}.json", "w") as file:
    json.dump(told, file)
"""


@pytest.fixture
def ranks(tmp_path):
    """Runs the script on n processes; gives what each has told, in the order of their ranks."""
    if os.environ.get("FEDKT_SANITIZE"):
        pytest.skip("mpirun is not run with address checks")
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    pytest.importorskip("mpi4py")
    environment = dict(
        os.environ,
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_hwloc_base_binding_policy="none",
    )
    probe = ["mpirun", "-n", "2", "true"]
    if subprocess.run(probe, env=environment, capture_output=True, stdin=subprocess.DEVNULL).returncode:
        pytest.skip("mpirun cannot start two processes here")
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(n, kind="well"):
        words = ["mpirun", "-n", str(n), sys.executable, "-B", "script.py", kind]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stderr
        return [json.loads((tmp_path / f"{kind}-{n}-{rank}.json").read_text()) for rank in range(n)]

    return run


def test_releases_are_those_of_one_process(ranks):
    one = fedkt.simulate(fedkt.Dataset.open("demo:train", limit=101), epsilon=[10, 1], delta=1e-5, test="demo:test",
                         sites=5, codec="dct", size=16, dim=16, insecure_seed=3)  # fmt: skip
    wanted = [release.sha256 for release in one.releases]
    for n in (2, 3):
        told = ranks(n)
        assert told[0]["releases"] == wanted and told[0]["accuracy"] == list(one.accuracy(0))
        assert [each["none"] for each in told] == [False] + [True] * (n - 1)
        assert all(each["others"] == list(range(n)) for each in told)


@pytest.mark.parametrize(
    "kind, errors, words",
    [
        ("codec", ["ArgumentError", "ArgumentError"], "there is no codec or guide 'nonsense'"),
        ("python", ["ArgumentError", "ArgumentError"], "epsilon must be a number"),
        ("library", ["ArgumentError", "ArgumentError"], "hold-out"),
        ("stop", ["Stopped", "Stopped"], "stopped while"),
        ("hook", ["Stopped", "ZeroDivisionError"], ""),
    ],
)
def test_a_failure_of_one_is_raised_on_all(ranks, kind, errors, words):
    told = ranks(2, kind)
    assert [each["error"] for each in told] == errors
    assert all(words in each["said"] for each in told) and all(each["others"] == [0, 1] for each in told)


def test_what_is_not_a_communicator_is_refused():
    for bad in (7, "world", object()):
        with pytest.raises(fedkt.ArgumentError, match="a communicator of mpi4py: it has no"):
            fedkt.simulate("demo:train", epsilon=1, delta=1e-5, codec="dct", comm=bad)

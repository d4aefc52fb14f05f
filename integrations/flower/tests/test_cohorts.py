# SPDX-License-Identifier: Apache-2.0
"""test_cohorts.py - a task in cohorts inside Flower, on a grid in this process: the sum that `fedkt serve` makes of the
same tasks, bit for bit; a cohort that fails; nodes whose tasks or names are not theirs."""

import hashlib
import shutil

import pytest

import fedkt

pytest.importorskip("flwr", reason="flwr is not installed: pip install flwr")

from divided import PROGRAM, Divided, same_sum
from fedkt_flower import envelope
from fedkt_flower.server import run_cohorts
from fedkt_flower.site import Site, SiteError, own_task
from local_grid import RUN, LocalGrid

pytestmark = pytest.mark.skipif(not PROGRAM, reason="FEDKT_PROGRAM does not name the program fedkt")


def summed(f, state, change=lambda i, reply: reply, nodes=None):
    """The public folder of the sum, from all sites."""
    grid = LocalGrid(nodes or [f.node(i, state) for i in range(f.sites)], change)
    run_cohorts(grid, RUN, f.config(state))
    return f.folder / state / "server" / "public"


def test_the_sum_that_fedkt_serve_makes(tmp_path):
    """Half of the sites have the folder of tasks, half their own cohort's alone."""
    f = Divided(tmp_path, (4, 5))
    with f.serving() as server:
        expected = f.by_serve([0, 1], server)
    nodes = [
        f.node(i, "flower", "tasks" if i % 2 else f"tasks/cohort-{c:04}.json")
        for i in range(f.sites) for c in range(2) if i in f.members[c]
    ]  # fmt: skip
    found = summed(f, "flower", nodes=nodes)
    told = same_sum(found, expected)["cohorts"]
    assert [(row["index"], row["sites"], row["survivors"]) for row in told["list"]] == [(0, 4, 4), (1, 5, 5)]
    for c in range(2):
        for name in ("release.safetensors", "certificate.json", "grid.png"):
            ours, theirs = (root / f"cohorts/{c:04}" / name for root in (found, expected))
            assert ours.read_bytes() == theirs.read_bytes()
        for i in f.members[c]:
            home = tmp_path / "flower" / str(i)
            task = tmp_path / f"tasks/cohort-{c:04}.json"
            assert fedkt.verify(home / "result", task=task, receipt=home / "receipt.json").counted
            receipt = ["--receipt", home / "receipt.json"]
            said = f.run("verify", "--folder", found, "--task", "tasks/sum.json", "--json", *receipt)
            assert (said["cohorts"], said["in_sum"], said["survivors"]) == (2, 2, 9) and said["receipt_compared"]


def test_a_cohort_that_fails_does_not_stop_the_other(tmp_path):
    """One site of cohort 1 is there and never delivers a message, and the cohort bears nobody's loss. Its nodes are told,
    and the sum is that of the library without it. A second run on the same state makes nothing new."""
    f = Divided(tmp_path, phase=2, dropped=0, rounds=1)
    silent = f.members[1][0]
    found = summed(f, "flower", lambda i, reply: None if i == silent and _delivers(reply) else reply)
    first = (found / "release.safetensors").read_bytes()
    said = f.run("verify", "--folder", found, "--json")
    assert (said["cohorts"], said["in_sum"], said["survivors"]) == (2, 1, 4)
    again = tmp_path / "again"
    shutil.copytree(found / "cohorts", again / "cohorts")
    cohorts = fedkt.Cohorts.load(tmp_path / "tasks")
    name = hashlib.sha256((found / "cohorts/0000/release.safetensors").read_bytes()).hexdigest()
    cohorts.add_up(again, [name, None], per_class=2)
    told = same_sum(found, again)
    assert told["cohorts"]["missing"] == [1]
    assert "1 of 2 cohorts gave no release: their sites are not in the sum" in told["warnings"]
    for c, stage in enumerate(("released", "given-up")):
        for i in f.members[c]:
            if i != silent:
                with Site(f.node(i, "flower"), {}) as site:
                    assert (site.client.wants, site.client.view()["stage"]) == ("ended", stage)
    assert summed(f, "flower", nodes=[]) == found and (found / "release.safetensors").read_bytes() == first


def test_all_cohorts_fail(tmp_path):
    f = Divided(tmp_path, phase=1, dropped=0, rounds=1)
    with pytest.raises(RuntimeError, match="all 2 cohorts were given up"):
        summed(f, "flower", lambda i, reply: None if _delivers(reply) else reply)
    assert not (tmp_path / "flower/server/public/release.safetensors").exists()


def _delivers(reply):
    return reply.has_content() and bool(reply.content[envelope.RECORD]["data"])


def test_a_node_speaks_for_the_site_of_its_key_alone(tmp_path):
    """A reply that names the other cohort is refused: the key that signed it is on the roster of one cohort."""
    f = Divided(tmp_path)
    rosters = {}
    for c in range(2):
        task = fedkt.Task.load(tmp_path / f"tasks/cohort-{c:04}.json")
        rosters[bytes.fromhex(task.sha256)] = fedkt.SecAggParams.of(task).roster
    own, other = rosters
    key = f.keys[f.members[0][0]]
    request = envelope.Request(rosters[own].index(key.public), "recv", (bytes(16), 0))
    content = envelope.write_request(request, own, RUN, bytes(16), key.secret)
    assert envelope.read_request(content, RUN, bytes(16), rosters) == (own, request)
    content = envelope.write_request(request, other, RUN, bytes(16), key.secret)
    with pytest.raises(envelope.EnvelopeError, match="not signed by it"):
        envelope.read_request(content, RUN, bytes(16), rosters)
    content = envelope.write_request(request, bytes(32), RUN, bytes(16), key.secret)
    with pytest.raises(envelope.EnvelopeError, match="another task"):
        envelope.read_request(content, RUN, bytes(16), rosters)


def test_the_first_message_names_the_sum_and_no_other_does(tmp_path):
    f = Divided(tmp_path)
    task = fedkt.Task.load(tmp_path / "tasks/cohort-0000.json")
    own, common = bytes.fromhex(task.sha256), bytes.fromhex(task.sum_sha256)
    assert common.hex() == fedkt.Task.load(tmp_path / "tasks/sum.json").sha256
    first = envelope.write_answer(envelope.Answer(common, bytes(16)))
    assert envelope.read_answer(first, own, common).message is None
    with pytest.raises(envelope.EnvelopeError, match="another task"):
        envelope.read_answer(first, own)
    later = envelope.write_answer(envelope.Answer(common, bytes(16), fedkt.Message("running", bytes(16), 1, b"m")))
    with pytest.raises(envelope.EnvelopeError, match="another task"):
        envelope.read_answer(later, own, common)


def test_which_task_is_a_sites_own(tmp_path):
    f = Divided(tmp_path)
    for c in range(2):
        for i in f.members[c]:
            assert own_task(tmp_path / "tasks", f.keys[i]) == tmp_path / f"tasks/cohort-{c:04}.json"
    with pytest.raises(fedkt.FedktError, match="not on the roster|roster"):
        stranger = fedkt.Key.make()
        stranger.save(tmp_path / "stranger.key")
        with Site({**f.node(0, "x"), "key": str(tmp_path / "stranger.key")}, {}):
            pass
    shutil.copy(tmp_path / "tasks/cohort-0001.json", tmp_path / "tasks/cohort-0000.json")
    with pytest.raises(fedkt.FedktError, match="is not the task of cohort 0"):
        summed(f, "swapped")
    (tmp_path / "empty").mkdir()
    for path in ("empty", "nowhere"):
        with pytest.raises((fedkt.FedktError, SiteError)):
            Site({**f.node(0, "x"), "task": str(tmp_path / path)}, {})

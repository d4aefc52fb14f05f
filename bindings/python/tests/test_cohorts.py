# SPDX-License-Identifier: Apache-2.0
"""test_cohorts.py - a task in cohorts through the package: the folder of its tasks, who is in which, and the sum of
their releases as an outsider checks it with the program."""

import hashlib
import json
import shutil
import time

import numpy as np
import pytest

import fedkt

SITES, CLASSES = 8, ["a", "b"]
SEED = bytes(range(32))


def cohort_of(key):
    """docs/scale.md, worked out here again."""
    digest = hashlib.sha256(b"fedkt.cohort/1\n" + SEED + key).digest()
    return int.from_bytes(digest[:8], "big") * 2 >> 64


@pytest.fixture
def keys(cli, tmp_path):
    """Keys of eight sites, four in each cohort, and the folder of their tasks."""
    found = [[], []]
    while min(map(len, found)) < SITES // 2:
        key = fedkt.Key.make(f"site {len(found[0]) + len(found[1])}")
        cohort = found[cohort_of(key.public)]
        if len(cohort) < SITES // 2:
            cohort.append(key)
    fedkt.enroll(tmp_path / "roster.txt", [key.site_key for cohort in found for key in cohort])
    fedkt.Key.make("operator").save(tmp_path / "operator.key")
    cli("task", "new", "--out", "tasks", "--classes", ",".join(CLASSES), "--size", 16, "--epsilon", 10, "--delta",
        "1e-5", "--records", 64, "--roster", "roster.txt", "--server", "https://127.0.0.1:8443", "--key",
        "operator.key", "--codec", "dct", "--dim", 3, "--insecure-seed", 7, "--cohort-size", 4, "--cohort-seed",
        SEED.hex())  # fmt: skip
    return found


def released(cohorts, c, keys, folder, out):
    """One cohort through carriers; gives the SHA-256 of its release."""
    task, place = cohorts.task(c), folder / f"cohort-{c:04}"
    server = fedkt.TaskServer(task, place, out=cohorts.folder(out, c), per_class=1)
    chance = np.random.default_rng(c)
    sites = {}
    for i, key in enumerate(keys):
        images = chance.integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
        moments = fedkt.moments(task, (images, np.arange(6) % 2), data_options={"classes": CLASSES})
        site = fedkt.TaskClient(task, key.secret, place / f"{i}.db", ledger=place / f"{i}.ledger", dataset="mine",
                                moments=moments)  # fmt: skip
        sites[site.site] = site
    now = int(time.time() * 1000)
    while any(site.wants != "ended" for site in sites.values()):
        now += 100
        server.tick(now)
        for i, site in sites.items():
            if site.wants == "send":
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
    return server.view()["release_sha256"]


def numbers(path):
    """The integers of a release, read from its file."""
    data = path.read_bytes()
    at = 8 + int.from_bytes(data[:8], "little")
    first, last = json.loads(data[8:at])["moments"]["data_offsets"]
    return np.frombuffer(data[at + first : at + last], np.int64)


def test_the_sum_of_two_cohorts(cli, keys, tmp_path):
    cohorts = fedkt.Cohorts.load(tmp_path / "tasks")
    out = tmp_path / "public"
    made = [released(cohorts, c, keys[c], tmp_path / "state", out) for c in range(2)]
    found = cohorts.add_up(out, made, per_class=2)
    assert (found.cohorts, found.sites, found.survivors) == (2, SITES, SITES)
    assert hashlib.sha256((out / "release.safetensors").read_bytes()).hexdigest() == found.release_sha256
    parts = [numbers(cohorts.folder(out, c) / "release.safetensors") for c in range(2)]
    assert (numbers(out / "release.safetensors") == parts[0] + parts[1]).all()
    said = cli("verify", "--folder", "public", "--task", "tasks/sum.json", "--json")
    assert (said["cohorts"], said["in_sum"], said["survivors"]) == (2, 2, SITES)
    assert cohorts.add_up(out, made, per_class=2) == found
    for bad in (made[::-1], [made[0], "0" * 64]):
        with pytest.raises(fedkt.FedktError, match="is not the release that cohort . ended with"):
            cohorts.add_up(out, bad)
    shutil.copy(cohorts.folder(out, 0) / "release.safetensors", cohorts.folder(out, 1) / "release.safetensors")
    with pytest.raises(fedkt.FedktError, match="is not the release that cohort 1 ended with"):
        cohorts.add_up(out, [made[0], made[0]])


def test_the_tasks_of_a_division(keys, tmp_path):
    cohorts = fedkt.Cohorts.load(tmp_path / "tasks")
    assert len(cohorts) == 2 and cohorts.file(1) == str(tmp_path / "tasks/cohort-0001.json")
    whole = fedkt.Task.load(tmp_path / "tasks/sum.json")
    assert whole.cohort is None
    for c in range(2):
        task = cohorts.task(c)
        assert task.cohort == c and task.sites == SITES // 2 and task.sum_sha256 == whole.sha256
        assert [whole.cohort_of(key.public) for key in keys[c]] == [c] * 4
    plain = fedkt.Task.make(CLASSES, epsilon=8, delta=1e-5, codec="dct", size=16, dim=3)
    assert plain.cohort is None and plain.cohort_of(keys[0][0].public) is None
    with pytest.raises(fedkt.FedktError, match="is not in cohorts"):
        plain.sum_sha256
    for bad in (-1, 2, 1.5, "1"):
        with pytest.raises(fedkt.ArgumentError):
            cohorts.task(bad)
    for releases in ([], [None], [None] * 3, [1, 2], "ab"):
        with pytest.raises(fedkt.FedktError):
            cohorts.add_up(tmp_path / "x", releases)
    with pytest.raises(fedkt.PeerError, match="no cohort has a release"):
        cohorts.add_up(tmp_path / "x", [None, ""])
    task = cohorts.task(0)
    cohorts.close()
    with pytest.raises(fedkt.ArgumentError, match="is closed"):
        task.name
    (tmp_path / "tasks/cohort-0001.json").unlink()
    for folder in ("tasks", "nowhere"):
        with pytest.raises(fedkt.FedktError):
            fedkt.Cohorts.load(tmp_path / folder)

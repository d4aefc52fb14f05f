# SPDX-License-Identifier: Apache-2.0
"""test_rounds.py - the two apps' parts on a grid in this process: the release of fedkt's own server, bit for bit; nodes
that are silent, that lie, that fail; messages that are not ours."""

import hashlib

import pytest

import fedkt

pytest.importorskip("flwr", reason="flwr is not installed: pip install flwr")

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict

from federation import SITES, Federation, entries
from fedkt_flower import client, envelope
from fedkt_flower.rounds import Rounds
from fedkt_flower.site import Site, SiteError, settings
from local_grid import RUN, LocalGrid


def released(f, state, change=lambda i, reply: reply, **more):
    """(release, Rounds) of a federation whose nodes' replies are changed."""
    grid = LocalGrid([f.node(i, state) for i in range(f.sites)], change)
    with fedkt.TaskServer(f.task, f.folder / state / "server", per_class=2) as server:
        rounds = Rounds(grid, [server], RUN, **{"hold": 1, "linger": 5, **more})
        (view,) = rounds.until_over(pause=0.005)
        assert view["stage"] == "released", view
        return open(server.file("release.safetensors"), "rb").read(), rounds


def test_the_release_of_our_own_server(tmp_path):
    f = Federation(tmp_path)
    release, rounds = released(f, "flower")
    assert release == f.in_memory()
    assert rounds.traffic.refused == rounds.traffic.failed == 0
    for i in range(SITES):
        result = tmp_path / "flower" / str(i) / "result"
        assert (result / "release.safetensors").read_bytes() == release
        found = fedkt.verify(result, task=f.task, receipt=tmp_path / "flower" / str(i) / "receipt.json")
        assert found.counted and found.survivors == SITES
    assert not fedkt.Release.load(result / "release.safetensors").is_private


def test_a_silent_node_is_lost_and_the_others_release(tmp_path):
    f = Federation(tmp_path, phase=2)

    gone = []

    def change(i, reply):
        """Node 3 never delivers its masked vector, nor anything after it."""
        if i == 3 and reply.has_content():
            record = reply.content[envelope.RECORD]
            if record["after"] >= 3 and record["data"]:
                gone.append(i)
        return None if i in gone else reply

    release, rounds = released(f, "flower", change)
    log = tmp_path / "flower/0/result/transparency.jsonl"
    assert [entry["site"] for entry in entries(log, "lost")] == [3]
    assert entries(log, "survivors")[0]["count"] == SITES - 1
    assert release == f.in_memory(lost=3)


def test_a_node_that_fails_is_asked_again(tmp_path):
    f, failed = Federation(tmp_path), []

    def change(i, reply):
        if i == 2 and len(failed) < 2:
            failed.append(reply)
            return Message(Error(0, "out of memory"), reply_to=_query_of(reply))
        return reply

    release, rounds = released(f, "flower", change)
    assert rounds.traffic.failed == 2 and release == f.in_memory()


def test_a_failure_tells_the_server_nothing(tmp_path, caplog):
    f = Federation(tmp_path)
    query = _query_of(Message(RecordDict(), 1000, envelope.MESSAGE_TYPE))
    for change in ({"data": "/secret/place"}, {"key": "/secret/place"}, {"task": "/secret/place"}, {"state": "/dev/null/x"}):
        context = Context(RUN, 1, {**f.node(0, "x"), **change}, RecordDict(), {})
        caplog.clear()
        with pytest.raises(client.ExchangeError) as caught:
            client.app(query, context)
        assert str(caught.value) == "the site's own log says why"
        assert caught.value.__context__ is None and caught.value.__cause__ is None


def _query_of(reply):
    """A message with the metadata that a reply to it needs."""
    query = Message(RecordDict(), reply.metadata.src_node_id, envelope.MESSAGE_TYPE)
    for field, value in {"_message_id": reply.metadata.reply_to_message_id, "_run_id": RUN}.items():
        query.metadata.__dict__[field] = value
    return query


@pytest.mark.parametrize("field, value", [
    ("site", 0), ("site", 5), ("site", -1), ("site", "1"), ("wants", "ended"), ("wants", "x"), ("round", b"x"),
    ("round", bytes(range(16))), ("after", 77), ("after", 2**32), ("data", b"x"), ("data", "x"), ("task", bytes(32)),
    ("signature", bytes(64)), ("signature", b""), ("signature", None), ("after", 1.0), ("after", float("nan")),
])  # fmt: skip
def test_a_reply_that_was_changed_is_refused(tmp_path, field, value):
    key = fedkt.Key.make()
    roster = [fedkt.Key.make().public, key.public, fedkt.Key.make().public]
    task, nonce = hashlib.sha256(b"task").digest(), bytes(16)
    request = envelope.Request(1, "recv", (bytes(16), 3))
    content = envelope.write_request(request, task, RUN, nonce, key.secret)
    assert envelope.read_request(content, RUN, nonce, {task: roster}) == (task, request)
    record = dict(content[envelope.RECORD])
    record.pop(field) if value is None else record.update({field: value})
    with pytest.raises(envelope.EnvelopeError):
        changed = RecordDict({envelope.RECORD: ConfigRecord(record)})
        envelope.read_request(changed, RUN, nonce, {task: roster})


def test_a_reply_counts_once_and_for_one_run():
    key = fedkt.Key.make()
    task, nonce = bytes(32), bytes(16)
    request = envelope.Request(0, "send", (bytes(16), 3), b"message")
    content = envelope.write_request(request, task, RUN, nonce, key.secret)
    rosters = {task: [key.public]}
    assert envelope.read_request(content, RUN, nonce, rosters) == (task, request)
    for run, other in ((RUN + 1, nonce), (RUN, bytes([1]) * 16)):
        with pytest.raises(envelope.EnvelopeError, match="not signed"):
            envelope.read_request(content, run, other, rosters)
    for junk in (RecordDict(), RecordDict({"x": ConfigRecord()}), None):
        with pytest.raises(envelope.EnvelopeError):
            envelope.read_request(junk, RUN, nonce, rosters)


def test_a_node_that_lies_about_its_site_does_not_count(tmp_path):
    """Node 1 answers in the name of site 0, with its own key: refused, and site 1 is lost."""
    f = Federation(tmp_path, phase=2, gather=3)

    def change(i, reply):
        if i == 1 and reply.has_content():
            reply.content[envelope.RECORD]["site"] = 0
        return reply

    release, rounds = released(f, "flower", change, linger=1)
    assert rounds.traffic.refused > 0
    assert entries(tmp_path / "flower/0/result/transparency.jsonl", "survivors")[0]["count"] == SITES - 1


@pytest.mark.parametrize("field, value", [
    ("nonce", b"x"), ("task", bytes(32)), ("stage", "x"), ("round", b""), ("index", -1), ("index", "1"),
    ("data", "text"), ("lost", 12345), ("head", "short"), ("entry", 1.5), ("taken", 2), ("sent", b"x"),
    ("release.safetensors", "text"),
])  # fmt: skip
def test_an_answer_that_is_malformed_reaches_no_machine(field, value):
    task = hashlib.sha256(b"task").digest()
    answer = envelope.Answer(task, bytes(16), fedkt.Message("running", bytes(16), 2, b"m"), (3, "ab" * 32),
                             (bytes(32), True), {"release.safetensors": b"r"})  # fmt: skip
    content = envelope.write_answer(answer)
    assert envelope.read_answer(content, task) == answer
    content[envelope.RECORD][field] = value
    with pytest.raises(envelope.EnvelopeError):
        envelope.read_answer(content, task)


def test_settings_of_a_site(tmp_path):
    f = Federation(tmp_path)
    mine = f.node(0, "x")
    run = {"simulation.task": "/t", "simulation.key": "/k{}", "simulation.data": "/d{}", "simulation.state": "/s{}"}
    assert settings({"partition-id": 4, "num-partitions": 5}, run)["key"] == "/k4"
    assert settings({**mine, "partition-id": 4}, run)["key"] == mine["key"]
    for bad in ({}, {"partition-id": 1, "key": "x"}, {**mine, "kye": "x"}):
        with pytest.raises(SiteError):
            settings(bad, run)
    with pytest.raises(SiteError, match="nothing is private"):
        Site({**mine, "accept-insecure-seed": False}, {})
    with pytest.raises(fedkt.PeerError):
        Site({**mine, "operator-key": f.keys[0].public.hex()}, {})
    with Site(mine, {}), pytest.raises(SiteError, match="another exchange"):
        with Site(mine, {}):
            pass
    plain = Federation(_folder(tmp_path / "plain"), seed=None)
    with pytest.raises(SiteError, match="no insecure seed"):
        Site(plain.node(0, "x"), {})


def _folder(path):
    path.mkdir()
    return path

# SPDX-License-Identifier: Apache-2.0
"""envelope.py - what travels in Flower's messages: one ConfigRecord, "fedkt", each way.

Flower's nodes only answer, fedkt's sites only ask. A node's reply is therefore the site's request (what it has, and the
message that it sends), and the server's next message to that node is the answer to it; the first one is empty.

    to a site     task, nonce; after a request: stage, round, index, data, lost (fedkt.Message), entry and head of the
                  transparency log, taken (what became of the last message), files of the finished task. Without a
                  stage, `task` is what all tasks of the run have in common: the task itself, or that of the sum
    to the server task, site, wants, round and after (what the site has), data, signature

The signature is Ed25519 by the site's enrolled key over the digest of: label, task, run of Flower, nonce, site, wants,
round, after, data. Flower's own authentication of nodes binds a node to the SuperLink, not to the roster of the signed
task; this does. The nonce is fresh in every message, so a request counts once.

Everything that is read here is hostile: its type and length are checked before it is used.
"""

from __future__ import annotations

import dataclasses
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from flwr.app import ConfigRecord, RecordDict

import fedkt

RECORD = "fedkt"
MESSAGE_TYPE = "query"
LABEL = b"fedkt-flower-1"
NONCE = ROUND = 16
WANTS = ("send", "recv", "ended")
FILES = ("release.safetensors", "certificate.json", "transparency.jsonl")


class EnvelopeError(ValueError):
    """A message that is not one of ours, or not signed by whom it names."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a site is told. message None: nothing yet, the site is asked to report. taken: (SHA-256 of a message of the
    site, whether the server has it on disk), or None."""

    task: bytes
    nonce: bytes
    message: fedkt.Message | None = None
    head: tuple[int, str] = (0, "")
    taken: tuple[bytes, bool] | None = None
    files: dict[str, bytes] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Request:
    """What a site says: which message it has, and the one that it sends (b"": none)."""

    site: int
    wants: str
    has: tuple[bytes, int]
    data: bytes = b""


# ---- reading ----


def _fields(content, where):
    record = content.get(RECORD) if isinstance(content, RecordDict) else None
    if not isinstance(record, ConfigRecord):
        raise EnvelopeError(f"{where} has no ConfigRecord '{RECORD}'")
    return record


def _bytes(record, name, length=None):
    value = record.get(name)
    if not isinstance(value, bytes) or (length is not None and len(value) != length):
        raise EnvelopeError(f"'{name}' is not bytes" + (f" ({length})" if length is not None else ""))
    return value


def _whole(record, name, most):
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise EnvelopeError(f"'{name}' is not a number from 0 to {most}")
    return value


def _choice(record, name, choices):
    value = record.get(name)
    if not isinstance(value, str) or value not in choices:
        raise EnvelopeError(f"'{name}' is none of {', '.join(choices)}")
    return value


# ---- to a site ----


def write_answer(answer):
    fields = {"task": answer.task, "nonce": answer.nonce}
    if answer.message is not None:
        m = answer.message
        fields |= {"stage": m.stage, "round": m.round, "index": m.index, "data": m.data, "lost": int(m.lost)}
        fields |= {"entry": answer.head[0], "head": answer.head[1]}
    if answer.taken is not None:
        fields |= {"sent": answer.taken[0], "taken": int(answer.taken[1])}
    fields |= {name: data for name, data in answer.files.items() if name in FILES}
    return RecordDict({RECORD: ConfigRecord(fields)})


def _read_message(record):
    lost = _whole(record, "lost", 2**31 - 1)
    try:
        status = fedkt.Status(lost)
    except ValueError:
        raise EnvelopeError(f"'lost' is no status: {lost}") from None
    return fedkt.Message(
        _choice(record, "stage", fedkt.carrier.STAGES), _bytes(record, "round", ROUND),
        _whole(record, "index", 2**32 - 1), _bytes(record, "data"), status,
    )  # fmt: skip


def read_answer(content, task, common=None):
    """An Answer of the server. task: the 32 bytes of the site's own; common: of the sum, where it is in cohorts."""
    record = _fields(content, "the server's message")
    named = _bytes(record, "task", 32)
    if named != task and ("stage" in record or named != common):
        raise EnvelopeError("the server runs another task than this site's")
    out = {"task": named, "nonce": _bytes(record, "nonce", NONCE)}
    if "stage" in record:
        out["message"] = _read_message(record)
        head = record.get("head")
        if not isinstance(head, str) or len(head) not in (0, 64):
            raise EnvelopeError("'head' is not a SHA-256")
        out["head"] = (_whole(record, "entry", 2**63 - 1), head)
    if "taken" in record:
        out["taken"] = (_bytes(record, "sent", 32), bool(_whole(record, "taken", 1)))
    out["files"] = {name: _bytes(record, name) for name in FILES if name in record}
    return Answer(**out)


# ---- to the server ----


def _digest(task, run, nonce, request):
    """SHA-256 of the label and of every part, each after its length."""
    parts = (
        task, run.to_bytes(8, "little"), nonce, request.site.to_bytes(4, "little"), request.wants.encode(),
        request.has[0], request.has[1].to_bytes(4, "little"), hashlib.sha256(request.data).digest(),
    )  # fmt: skip
    out = hashlib.sha256(LABEL)
    for part in parts:
        out.update(len(part).to_bytes(8, "little") + part)
    return out.digest()


def write_request(request, task, run, nonce, secret):
    """Signed; secret: the 64 bytes of the site's key (`fedkt.Key.secret`)."""
    signature = Ed25519PrivateKey.from_private_bytes(secret[:32]).sign(_digest(task, run, nonce, request))
    fields = {
        "task": task, "site": request.site, "wants": request.wants, "round": request.has[0],
        "after": request.has[1], "data": request.data, "signature": signature,
    }  # fmt: skip
    return RecordDict({RECORD: ConfigRecord(fields)})


def read_request(content, run, nonce, rosters):
    """(task, Request) that the site itself has signed, for this task, this run of Flower and this nonce. rosters: of
    each task of the run, by its hash."""
    record = _fields(content, "a node's reply")
    task = _bytes(record, "task", 32)
    roster = rosters.get(task)
    if roster is None:
        raise EnvelopeError("a node takes part in another task")
    request = Request(
        _whole(record, "site", len(roster) - 1),
        _choice(record, "wants", WANTS),
        (_bytes(record, "round", ROUND), _whole(record, "after", 2**32 - 1)),
        _bytes(record, "data"),
    )
    if (request.wants == "send") != bool(request.data):
        raise EnvelopeError("a site sends exactly when it wants to")
    key = Ed25519PublicKey.from_public_bytes(roster[request.site])
    try:
        key.verify(_bytes(record, "signature", 64), _digest(task, run, nonce, request))
    except InvalidSignature:
        raise EnvelopeError(f"a reply in the name of site {request.site} is not signed by it") from None
    return task, request

# SPDX-License-Identifier: Apache-2.0
"""remote.py - a federation over HTTPS as library calls: a site's part (`join`) and the server (`serve`).

Stopping either at any moment, with Ctrl-C for example, loses nothing: the same call continues.
"""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

from . import _declarations as c
from . import _values
from ._library import last_error, lib
from ._work import Work
from .carrier import server_output, site_account
from .codecs import network_files
from .errors import Status, state_error
from .tasks import Task

JOIN_EVENTS = {
    value: name.removeprefix("FKT_JOIN_EVENT_").lower()
    for name, value in vars(c).items()
    if name.startswith("FKT_JOIN_EVENT_")
}
SERVE_EVENTS = {
    value: name.removeprefix("FKT_SERVE_EVENT_").lower()
    for name, value in vars(c).items()
    if name.startswith("FKT_SERVE_EVENT_")
}


def _stage(value):
    return _values.decode(lib.fkt_stage_name(value))


@dataclasses.dataclass(frozen=True)
class JoinEvent:
    """Something that happened at a site. kind: "signed", "seeded", "dataset", "codec", "encoded", "records",
    "over_budget", "view", "trouble" or "well"; facts: what belongs to it. Those that count records are PRIVATE."""

    kind: str
    facts: dict


@dataclasses.dataclass(frozen=True)
class JoinResult:
    """How a site's part ended. counted: its records are in the release. out: the folder with the verified files."""

    out: str | None
    stage: str
    site: int
    rounds: int
    records: int
    sent_bytes: int
    over: bool
    counted: bool
    release_sha256: str
    task_sha256: str


@dataclasses.dataclass(frozen=True)
class ServeView:
    """How a task stands at its server."""

    stage: str
    phase: str
    round: int
    sites: int
    ready: int
    expected: int
    heard: int
    lost: int
    survivors: int
    needed: int
    reason: str
    release_sha256: str

    @classmethod
    def of(cls, struct):
        found = {field.name: getattr(struct, field.name) for field in dataclasses.fields(cls)}
        found["stage"] = _stage(struct.stage)
        return cls(**{k: _values.decode(v) if isinstance(v, bytes) else v for k, v in found.items()})


@dataclasses.dataclass(frozen=True)
class ServeEvent:
    """kind: "listening" (listen, pin, folder, token_file in facts), "view" or "over"; view: a ServeView or None."""

    kind: str
    facts: dict
    view: Any


def _join_event(struct):
    facts = {}
    if struct.key:
        facts["key"] = ctypes.string_at(struct.key, c.FKT_SA_KEY)
    if struct.dataset:
        facts["images"] = lib.fkt_dataset_size(struct.dataset)
    if struct.codec:
        facts["codec"] = _values.decode(lib.fkt_codec_identity(struct.codec))
    if JOIN_EVENTS.get(struct.kind) == "encoded":
        facts.update(found=struct.found, made=struct.made)
    if struct.skipped:
        facts["skipped"] = struct.skipped.contents.count
    if struct.spent:
        facts["ledger"] = _values.decode(struct.ledger)
    if struct.view:
        view = struct.view.contents
        facts.update(stage=_stage(view.stage), round=view.begun, phase=_values.decode(view.phase),
                     masked=bool(view.masked), spent=bool(view.spent), sent_bytes=view.sent_bytes)  # fmt: skip
    if struct.text:
        facts["text"] = _values.decode(struct.text)
    return JoinEvent(JOIN_EVENTS.get(struct.kind, str(struct.kind)), facts)


def _serve_event(struct):
    facts = {}
    if struct.place:
        place = struct.place.contents
        for name in ("listen", "pin", "folder", "token_file"):
            facts[name] = _values.decode(getattr(place, name))
        facts.update(local=bool(place.local), pinned=bool(place.pinned))
    view = ServeView.of(struct.view.contents) if struct.view else None
    return ServeEvent(SERVE_EVENTS.get(struct.kind, str(struct.kind)), facts, view)


def _hook(work, on_event, convert, kind):
    """The event hook: a true answer, or an exception, stops."""

    def hook(_self, event):
        if work.stop:
            return 1
        if on_event is None:
            return 0
        return work.guard(lambda: bool(on_event(convert(event.contents))), 1)

    return kind(hook)


def _need(name):
    if not hasattr(lib, name):
        raise state_error("this library was built without HTTPS")
    return getattr(lib, name)


def join(task, key, data, *, operator_key=None, split=None, limit=None, skip_bad=False, bits=0, calibration=None,
         guide_calibration=None, encodings=None, ledger=None, dataset=None, budget_epsilon=0.0, budget_delta=0.0,
         state=None, out=None, force=False, accept_weak=False, accept_insecure_seed=False, patience_seconds=0,
         threads=0, on_event=None, progress=None, **machine):  # fmt: skip
    """`fedkt join`: one site's part in a federation, from its images to a release that it has checked. task, key and
    data are paths. Gives a JoinResult; when the task is over and its release does not hold this site's records, the
    PeerError that is raised has it as `result`. It connects to the server that the signed task names, and to nothing
    else. on_event gets a JoinEvent; a true answer stops (`Stopped`)."""
    work = Work(progress)
    function = _need("fkt_join")
    spec = c.JoinSpec(
        task=_values.path("task", task, optional=False),
        key=_values.path("key", key, optional=False),
        data=_values.path("data", data, optional=False),
        data_options=c.DatasetOptions(
            split=_values.text("split", split),
            limit=_values.whole("limit", limit or 0),
            skip_bad=bool(skip_bad),
            bits=_values.whole("bits", bits, 0, _values.U32),
        ),
        encodings=_values.path("encodings", encodings),
        **network_files(calibration, guide_calibration, threads, machine),
        **site_account(ledger, dataset, state, budget_epsilon, budget_delta, optional=True),
        out=_values.path("out", out),
        force=bool(force),
        accept_weak=bool(accept_weak),
        accept_insecure_seed=bool(accept_insecure_seed),
        patience_seconds=_values.whole("patience_seconds", patience_seconds, 0, _values.U32),
        progress=work.hook,
        stop=ctypes.addressof(work.flag),
    )
    if operator_key is not None:
        signer = _values.key(operator_key)
        spec.operator_key, spec.kept = ctypes.addressof(signer), signer
    spec.event = _hook(work, on_event, _join_event, type(spec.event))
    result = c.JoinResult()
    try:
        error = None

        def call():
            nonlocal error
            status = function(ctypes.byref(spec), ctypes.byref(result))
            if status != Status.OK:
                error = last_error(status)
            return Status.OK

        work.run(call)
        found = _result_of(result)
        if error is not None:
            error.result = found
            raise error
        return found
    finally:
        lib.fkt_join_result_clear(ctypes.byref(result))


def _result_of(result):
    return JoinResult(
        _values.decode(result.out),
        _stage(result.stage),
        result.site,
        result.rounds,
        result.records,
        result.sent_bytes,
        bool(result.over),
        bool(result.verified.counted),
        _values.decode(result.verified.release_sha256),
        _values.decode(result.verified.task_sha256),
    )


def serve(task, state, listen, *, key=None, certificate=None, private_key=None, out=None, calibration=None,
          guide_calibration=None, per_class=0, format="folder", threads=0, accept_weak=False, stay=False,
          linger_seconds=0, on_event=None, progress=None, **machine):  # fmt: skip
    """`fedkt serve`: the server of one task, from its first start to the last site that fetches the result. task, state
    and key are paths; listen is "127.0.0.1:8443", port 0 for any free one. Gives a ServeView; one that was given up
    raises PeerError with the view as `result`. on_event gets a ServeEvent; a true answer stops (`Stopped`)."""
    work = Work(progress)
    function = _need("fkt_serve")
    spec = c.ServeSpec(
        task=_values.path("task", task, optional=False),
        state=_values.path("state", state, optional=False),
        listen=_values.text("listen", listen, optional=False),
        key=_values.path("key", key),
        certificate=_values.path("certificate", certificate),
        private_key=_values.path("private_key", private_key),
        **server_output(out, per_class, format),
        **network_files(calibration, guide_calibration, threads, machine),
        accept_weak=bool(accept_weak),
        stay=bool(stay),
        linger_seconds=_values.whole("linger_seconds", linger_seconds, 0, _values.U32),
        progress=work.hook,
        stop=ctypes.addressof(work.flag),
    )
    spec.event = _hook(work, on_event, _serve_event, type(spec.event))
    last = c.ServeView()
    try:
        work.run(function, ctypes.byref(spec), ctypes.byref(last))
    except Exception as error:
        error.result = ServeView.of(last)
        raise
    return ServeView.of(last)


@dataclasses.dataclass(frozen=True)
class Verification:
    """What an outsider's check of a finished task found; `verify` raises where something is false."""

    entries: int
    rounds: int
    sites: int
    survivors: int
    confirmed: int
    task_sha256: str
    release_sha256: str
    counted: bool


def verify(folder, *, task=None, receipt=None):
    """`fedkt verify`: checks transparency log, release and certificate of a finished task, and a site's receipt."""
    out = c.Verification()
    known = None if task is None else Task.of(task)
    place, paper = _values.path("folder", folder, optional=False), _values.path("receipt", receipt)
    if known is None:
        Work().run(lib.fkt_verify_folder, ctypes.byref(out), place, None, paper)
    else:
        with known._use() as t:
            Work().run(lib.fkt_verify_folder, ctypes.byref(out), place, t, paper)
    return Verification(
        out.entries, out.rounds, out.sites, out.survivors, out.confirmed, _values.decode(out.task_sha256),
        _values.decode(out.release_sha256), bool(out.counted),
    )  # fmt: skip

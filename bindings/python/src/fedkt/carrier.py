# SPDX-License-Identifier: Apache-2.0
"""carrier.py - the two sides of a task for a transport of your own (`fedkt/advanced/mailbox.h`): the server's mailbox
and a site's endpoint. `join` and `serve` are the same with HTTPS.

    server    every second or more often: tick(now); for what came in: deliver(); for who asks: collect(); settle(), and
              only then let answers leave, with head(). has_work(): run work() in a thread of its own, then worked().
    site      while wants is not "ended": send what send() gives, then sent(); bring what recv() waits for.
"""

from __future__ import annotations

import ctypes
import dataclasses

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, last_error, lib
from ._work import run
from .codecs import network_files
from .errors import FedktError, Status, argument_error, state_error
from .tasks import Task

WANTS = {c.FKT_ENDPOINT_SEND: "send", c.FKT_ENDPOINT_RECV: "recv", c.FKT_ENDPOINT_ENDED: "ended"}
STAGES = {_values.decode(lib.fkt_stage_name(i)): i for i in range(c.FKT_STAGE_GATHERING, c.FKT_STAGE_GIVEN_UP + 1)}
_STAGE_NAMES = {value: name for name, value in STAGES.items()}
_NO_ROUND = bytes(c.FKT_MAILBOX_ROUND)


@dataclasses.dataclass(frozen=True)
class Message:
    """What a site is told: a message of a round (round, its name; index, from 1; data), or no data and the stage of the
    task alone. lost: Status.OK, or why the site is out of the round that it asked about."""

    stage: str
    round: bytes = _NO_ROUND
    index: int = 0
    data: bytes = b""
    lost: Status = Status.OK


def _round(value):
    data = _NO_ROUND if value is None else bytes(value)
    if len(data) != c.FKT_MAILBOX_ROUND:
        raise argument_error(f"round must have {c.FKT_MAILBOX_ROUND} bytes")
    return data


def server_output(out, per_class, format):
    """Where a server puts the result and how many images of which kind: members of its spec."""
    return {
        "out": _values.path("out", out),
        "per_class": _values.whole("per_class", per_class, 0, 10**8),
        "format": _values.choice("format", format, lib.fkt_export_parse),
    }


def site_account(ledger, dataset, state, budget_epsilon, budget_delta, *, optional):
    """Who pays for a site's records and what survives a crash: members of a site's spec. optional: names that are left
    out are the library's to choose."""
    return {
        "ledger": _values.path("ledger", ledger, optional=optional),
        "dataset": _values.text("dataset", dataset, optional=optional),
        "state": _values.path("state", state, optional=optional),
        "budget_epsilon": _values.real("budget_epsilon", budget_epsilon),
        "budget_delta": _values.real("budget_delta", budget_delta),
    }


class TaskServer(Handle):
    """The server's side of one task over all its rounds, on a journal in a folder. One that is opened again on the same
    folder continues. task: signed, with a service; machine: weights, guide_weights, dtype, low_memory, device."""

    _free = "fkt_server_close"
    _noun = "server"

    def __init__(self, task, folder, *, out=None, calibration=None, guide_calibration=None, per_class=0,
                 format="folder", threads=0, **machine):  # fmt: skip
        super().__init__()
        self.task = Task.of(task)
        spec = c.ServerSpec(
            folder=_values.path("folder", folder, optional=False),
            **server_output(out, per_class, format),
            **network_files(calibration, guide_calibration, threads, machine),
        )
        with self.task._use() as t:
            spec.task = t
            run(lib.fkt_server_open, ctypes.byref(self._pointer), ctypes.byref(spec))
        self._mailbox = c.Mailbox()
        with self._use() as p:
            lib.fkt_server_mailbox(p, ctypes.byref(self._mailbox))

    def _site(self, site):
        return _values.whole("site", site, 0, self._mailbox.sites - 1)

    def deliver(self, site, message):
        """A message that the transport has authenticated as this site's. True: taken; False: not wanted (late, twice),
        and nothing changed. PeerError: it is false, and the site is lost for this round."""
        data = bytes(message)
        with self._change():
            status = self._mailbox.deliver(self._mailbox.self, self._site(site), data, len(data))
            if status == Status.STATE:
                return False
            check(status)
            return True

    def collect(self, site, round=None, after=0):
        """The newest Message for a site that has had message `after` of `round`."""
        out = c.Message()
        name = _round(round)
        with self._change():
            check(
                self._mailbox.collect(
                    self._mailbox.self, self._site(site), name, _values.whole("after", after, 0, _values.U32),
                    ctypes.byref(out),
                )
            )  # fmt: skip
            data = ctypes.string_at(out.bytes, out.len) if out.len else b""
        return Message(_STAGE_NAMES[out.stage], bytes(out.round), out.index, data, Status(out.lost))

    def tick(self, now_ms):
        """Milliseconds since 1970; at least every second."""
        with self._change():
            check(self._mailbox.tick(self._mailbox.self, _values.whole("now_ms", now_ms)))

    def settle(self):
        """Everything before it is on disk when it returns."""
        with self._change():
            check(self._mailbox.settle(self._mailbox.self))

    def has_work(self):
        """True once for each piece of heavy work."""
        with self._change():
            return bool(self._mailbox.has_work(self._mailbox.self))

    def work(self):
        """Does it; beside the other calls, in a thread of its own if they must not wait. Gives what worked() takes."""
        found = []

        def call():
            status = self._mailbox.work(self._mailbox.self)
            found.append((status, None if status == Status.OK else last_error(status)))
            return Status.OK

        with self._use():
            run(call)
        return found[0]

    def worked(self, result):
        """Brings the result of work() back. A round that failed is not an error of the server."""
        with self._change():
            status = self._mailbox.worked(self._mailbox.self, result[0])
            if status != Status.OK:
                raise result[1] if isinstance(result[1], FedktError) else last_error(status)

    def view(self):
        """How the task stands: {"stage": ..., "phase": ..., "round": ..., "heard": ..., ...}."""
        out = c.MailboxView()
        with self._change():
            self._mailbox.view(self._mailbox.self, ctypes.byref(out))
            names = ("round", "sites", "ready", "expected", "heard", "lost", "survivors", "needed", "messages",
                     "message_bytes", "log_entries")  # fmt: skip
            found = {name: getattr(out, name) for name in names}
            for name in ("phase", "reason", "release_sha256"):
                found[name] = _values.decode(getattr(out, name))
            found["stage"] = _STAGE_NAMES[out.stage]
        return found

    def head(self):
        """(number of entries, SHA-256) of the transparency log as it is on disk; it goes out with every answer."""
        entry, text = ctypes.c_uint64(), ctypes.create_string_buffer(65)
        with self._change():
            self._mailbox.head(self._mailbox.self, ctypes.byref(entry), text)
        return entry.value, _values.decode(text.value)

    def file(self, name):
        """The path of a public file of the finished task; None: there is none, or not yet."""
        with self._change():
            found = self._mailbox.file(self._mailbox.self, _values.text("name", name, optional=False))
        return _values.decode(found)


class TaskClient(Handle):
    """A site's side of one task over all its rounds, on a state file that survives a crash. moments: Moments of the
    task. The ledger pays before anything leaves."""

    _free = "fkt_client_close"
    _noun = "client"

    def __init__(self, task, secret, state, *, ledger, dataset, moments, budget_epsilon=0.0, budget_delta=0.0,
                 accept_weak=False):  # fmt: skip
        super().__init__()
        self.task = Task.of(task)
        if self.task.weak and not accept_weak:
            raise state_error(f"the promise is weak: {self.task.weak}", "accept_weak takes part all the same")
        if moments.task.sha256 != self.task.sha256:
            raise argument_error("the moments belong to another task")
        key, exact = _values.secret(secret), moments.packed
        spec = c.ClientSpec(
            secret=ctypes.addressof(key),
            **site_account(ledger, dataset, state, budget_epsilon, budget_delta, optional=False),
            most_epsilon=0.0 if accept_weak else c.FKT_PROMISE_EPSILON,
            moments=_values.address(exact),
        )
        with self.task._use() as t, moments.records._change() as records:
            spec.task, spec.records = t, records
            run(lib.fkt_client_open, ctypes.byref(self._pointer), ctypes.byref(spec))
        self._endpoint = c.Endpoint()
        with self._use() as p:
            lib.fkt_client_endpoint(p, ctypes.byref(self._endpoint))

    @property
    def site(self):
        """Its index on the roster."""
        with self._use() as p:
            return lib.fkt_client_site(p)

    @property
    def wants(self):
        """"send", "recv" or "ended"; the last also after a failure."""
        with self._change():
            return WANTS[self._endpoint.wants(self._endpoint.self)]

    @property
    def has(self):
        """(round, index) of the message that it has, for collect()."""
        name, after = (ctypes.c_uint8 * c.FKT_MAILBOX_ROUND)(), ctypes.c_uint32()
        with self._change():
            self._endpoint.has(self._endpoint.self, ctypes.addressof(name), ctypes.addressof(after))
        return bytes(name), after.value

    def send(self):
        """The next message; the same one again until sent()."""
        cap = self._endpoint.out_max
        out, length = ctypes.create_string_buffer(max(cap, 1)), ctypes.c_size_t()
        with self._change():
            check(self._endpoint.send(self._endpoint.self, ctypes.addressof(out), cap, ctypes.addressof(length)))
        return out.raw[: length.value]

    def sent(self, taken):
        """True: the server has it on disk; False: it did not want it."""
        with self._change():
            check(self._endpoint.sent(self._endpoint.self, bool(taken)))

    def recv(self, message):
        """A Message of the server."""
        data = bytes(message.data)
        struct = c.Message(index=_values.whole("index", message.index, 0, _values.U32), len=len(data))
        struct.round = (ctypes.c_uint8 * c.FKT_MAILBOX_ROUND).from_buffer_copy(_round(message.round))
        block = ctypes.create_string_buffer(data, max(len(data), 1))
        struct.bytes = ctypes.addressof(block)
        if message.stage not in STAGES:
            raise argument_error(f"stage: '{message.stage}' is none of {', '.join(STAGES)}")
        struct.stage, struct.lost = STAGES[message.stage], int(message.lost)
        with self._change():
            check(self._endpoint.recv(self._endpoint.self, ctypes.byref(struct)))

    def heard_head(self, entry, sha256):
        """The head of the transparency log that came with an answer; kept, to be compared in the end."""
        with self._change():
            check(
                self._endpoint.heard_head(
                    self._endpoint.self, _values.whole("entry", entry), _values.text("sha256", sha256, optional=False)
                )
            )

    def receipt(self, path, *, force=False):
        """What it sent and which heads it received, for `verify`."""
        with self._change() as p:
            check(lib.fkt_client_receipt(p, _values.path("path", path, optional=False), bool(force)))

    def view(self):
        """{"stage": ..., "begun": ..., "phase": ..., "masked": ..., "spent": ..., "sent_bytes": ...}."""
        out = c.ClientView()
        with self._change() as p:
            lib.fkt_client_get_view(p, ctypes.byref(out))
            return {
                "stage": _STAGE_NAMES[out.stage],
                "begun": out.begun,
                "phase": _values.decode(out.phase),
                "masked": bool(out.masked),
                "spent": bool(out.spent),
                "sent_bytes": out.sent_bytes,
            }

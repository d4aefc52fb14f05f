# SPDX-License-Identifier: Apache-2.0
"""secagg.py - secure aggregation as two state machines, bytes in and bytes out (docs/protocol.md). No socket, no clock:
the caller moves the messages and supplies the time.

>>> import fedkt, numpy
>>> keys = [fedkt.Key.make() for _ in range(4)]
>>> params = fedkt.SecAggParams.find([key.public for key in keys], length=3, bound=1000, dropped=0, corrupt=1)
>>> server = fedkt.SecAggServer(params)
>>> sites = [fedkt.SecAggClient(params, i, key.secret, numpy.array([i, 10 * i, -i])) for i, key in enumerate(keys)]
>>> while server.state != "unmask":
...     to, message = server.next()
...     sites[to].recv(message)
...     server.recv(to, sites[to].send())
>>> server.unmask()
>>> total, survivors = server.total()
>>> total.tolist(), survivors.tolist()
([6, 60, -6], [True, True, True, True])
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import Sequence

import numpy as np

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from ._work import run
from .errors import FedktError, Status, argument_error, state_error
from .tasks import Task

WANTS = {c.FKT_SA_SEND: "send", c.FKT_SA_RECV: "recv", c.FKT_SA_ENDED: "ended"}


@dataclasses.dataclass
class SecAggParams:
    """What all parties of a round agree on (docs/protocol.md 1). roster: the sites' public keys, 32 bytes each."""

    roster: Sequence[bytes]
    length: int
    bound: int
    dropped: int
    corrupt: int
    degree: int
    threshold: int
    bits: int
    attempts: int = 1
    keystream: str = "aes-256-ctr"
    task: bytes = bytes(32)

    @classmethod
    def find(cls, roster, *, length, bound, dropped, corrupt, security=40, failure=20, **more):
        """With the smallest degree and threshold that keep the promises. bound: of the absolute value of each entry."""
        roster = [bytes(key) for key in roster]
        degree, threshold = ctypes.c_uint32(), ctypes.c_uint32()
        sites = _values.whole("sites", len(roster), 3, c.FKT_SA_SITES_MAX)
        check(
            lib.fkt_sa_find(
                sites,
                _values.whole("corrupt", corrupt, 0, _values.U32), _values.whole("dropped", dropped, 0, _values.U32),
                _values.whole("security", security, 1, 1000), _values.whole("failure", failure, 1, 1000),
                ctypes.byref(degree), ctypes.byref(threshold),
            )
        )  # fmt: skip
        bits = lib.fkt_sa_bits(sites, _values.whole("bound", bound, 1))
        if not bits:
            raise argument_error("sums of so many sites with this bound have more than 62 bits")
        self = cls(roster, length, bound, dropped, corrupt, degree.value, threshold.value, bits, **more)
        self.check()
        return self

    @classmethod
    def of(cls, task):
        """The parameters that follow from a task with a federation."""
        task = Task.of(task)
        struct, shares = c.SaParams(), c.SharePlan()
        with task._use() as t:
            check(lib.fkt_federation_open(t, ctypes.byref(struct), ctypes.byref(shares)))
            keys = ctypes.string_at(struct.roster, 32 * struct.sites)
        return cls(
            [keys[i : i + 32] for i in range(0, len(keys), 32)],
            struct.length,
            struct.bound,
            struct.dropped,
            struct.corrupt,
            struct.degree,
            struct.threshold,
            struct.bits,
            struct.attempts,
            _values.decode(lib.fkt_keystream_name(struct.keystream)),
            bytes(struct.task),
        )

    def _struct(self):
        keys = [bytes(key) for key in self.roster]
        if any(len(key) != c.FKT_SA_KEY for key in keys):
            raise argument_error(f"a key of the roster has {c.FKT_SA_KEY} bytes")
        roster = np.frombuffer(b"".join(keys), np.uint8).copy()
        out = c.SaParams(sites=_values.whole("sites", len(keys), 3, c.FKT_SA_SITES_MAX))
        for name in ("dropped", "corrupt", "degree", "threshold", "attempts", "bits", "length"):
            setattr(out, name, _values.whole(name, getattr(self, name), 0, _values.U32))
        out.bound = _values.whole("bound", self.bound, 1)
        out.keystream = _values.choice("keystream", self.keystream, lib.fkt_keystream_parse)
        task = bytes(self.task)
        if len(task) != 32:
            raise argument_error("task must be the 32 bytes of a hash")
        out.task = (ctypes.c_uint8 * 32).from_buffer_copy(task)
        out.roster, out.kept = _values.address(roster), roster
        return out

    def check(self):
        """Raises where the parameters cannot be."""
        check(lib.fkt_sa_params_check(ctypes.byref(self._struct())))


class _Machine(Handle):
    """A state machine: every call changes it."""

    def _message(self, message):
        try:
            return bytes(message)
        except TypeError:
            raise argument_error(f"a message is bytes, not {type(message).__name__}") from None


class SecAggClient(_Machine):
    """A site's machine. Do what `wants` says until it is "ended": send() what it has, recv() what came for it.

    vector: int64 (length), or a function (length) -> array that is called once, when the vector is due. reserve and
    spend: functions of the 32 bytes of the session that ask the site's ledger, before the vector is asked for and
    before the first share leaves; one that raises ends the round for this site. None: there is no ledger to ask.
    Errors are sticky.
    """

    _free = "fkt_sa_client_free"
    _noun = "client of secure aggregation"

    def __init__(self, params, index, secret, vector, *, reserve=None, spend=None):
        super().__init__()
        self._failure = None
        self.params = params
        struct = params._struct()
        self._capacity = lib.fkt_sa_to_server_max(ctypes.byref(struct))
        kinds = [kind for _, kind in c.SaSite._fields_]
        self._site = c.SaSite(
            kinds[0](self._ledger_hook(reserve)),
            kinds[1](self._vector_hook(vector)),
            kinds[2](self._ledger_hook(spend)),
            None,
        )
        key = _values.secret(secret)
        check(
            lib.fkt_sa_client_new(
                ctypes.byref(self._pointer), ctypes.byref(struct), _values.whole("index", index, 0, struct.sites - 1),
                key, ctypes.byref(self._site), None,
            )
        )  # fmt: skip

    def _guard(self, function):
        """The status of a hook; an exception is kept, to be raised when the machine has returned."""
        try:
            function()
            return Status.OK
        except FedktError as error:
            self._failure = error
            return int(error.status)
        except BaseException as error:  # noqa: B902
            self._failure = error
            return Status.STATE

    def _ledger_hook(self, function):
        def hook(_self, session):
            return self._guard(lambda: function and function(ctypes.string_at(session, c.FKT_SA_SESSION)))

        return hook

    def _vector_hook(self, vector):
        def fill(x, length):
            found = np.asarray(vector(length) if callable(vector) else vector)
            if found.dtype.kind not in "iu" or found.shape != (length,):
                raise argument_error(f"the vector must be whole numbers of the shape ({length},), not {found.dtype} "
                                     f"{found.shape}")  # fmt: skip
            if found.dtype.kind == "u" and found.size and int(found.max()) > 2**63 - 1:
                raise argument_error("the vector has a number beyond 63 bits")
            ctypes.memmove(x, found.astype(np.int64).tobytes(), 8 * length)

        return lambda _self, x, length: self._guard(lambda: fill(x, length))

    def _finish(self, status):
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        check(status)

    @property
    def wants(self):
        """"send", "recv" or "ended"."""
        with self._change() as p:
            return WANTS[lib.fkt_sa_client_wants(p)]

    @property
    def state(self):
        with self._change() as p:
            return _values.decode(lib.fkt_sa_state_name(lib.fkt_sa_client_state(p)))

    def recv(self, message):
        """A whole message of the server."""
        data = self._message(message)
        with self._change() as p:
            self._finish(lib.fkt_sa_client_recv(p, data, len(data)))

    def send(self):
        """The next message to the server."""
        out, length = ctypes.create_string_buffer(max(self._capacity, 1)), ctypes.c_size_t()
        with self._change() as p:
            self._finish(lib.fkt_sa_client_send(p, out, self._capacity, ctypes.byref(length)))
        return out.raw[: length.value]


class SecAggServer(_Machine):
    """The server's machine. round: 16 fresh bytes; None: from the operating system. patience_ms: how long a phase waits
    for sites, by the clock that tick() brings; 0: until close_phase()."""

    _free = "fkt_sa_server_free"
    _noun = "server of secure aggregation"

    def __init__(self, params, *, round=None, patience_ms=0):
        super().__init__()
        self.params = params
        struct = params._struct()
        self._sites, self._length = struct.sites, struct.length
        self._capacity = lib.fkt_sa_to_site_max(ctypes.byref(struct))
        name = os.urandom(c.FKT_SA_ROUND) if round is None else bytes(round)
        if len(name) != c.FKT_SA_ROUND:
            raise argument_error(f"round must have {c.FKT_SA_ROUND} bytes")
        check(
            lib.fkt_sa_server_new(
                ctypes.byref(self._pointer), ctypes.byref(struct), name, _values.whole("patience_ms", patience_ms)
            )
        )

    @property
    def state(self):
        """"advertise", ..., "unmask", "done" or "failed"."""
        with self._change() as p:
            return _values.decode(lib.fkt_sa_state_name(lib.fkt_sa_server_state(p)))

    def recv(self, site, message):
        """A message that the transport has authenticated as this site's. Raises what is wrong with it: PeerError, and
        the site is lost; ArgumentError with Status.STATE, late or twice, and nothing changed."""
        data = self._message(message)
        with self._change() as p:
            check(lib.fkt_sa_server_recv(p, _values.whole("site", site, 0, self._sites - 1), data, len(data)))

    def next(self):
        """(site, message) to be sent, or None: nothing to say now."""
        out, to, length = ctypes.create_string_buffer(max(self._capacity, 1)), ctypes.c_uint32(), ctypes.c_size_t()
        with self._change() as p:
            check(lib.fkt_sa_server_next(p, ctypes.byref(to), out, self._capacity, ctypes.byref(length)))
        return (to.value, out.raw[: length.value]) if length.value else None

    def tick(self, now_ms):
        """The time, which never goes back."""
        with self._change() as p:
            check(lib.fkt_sa_server_tick(p, _values.whole("now_ms", now_ms)))

    def close_phase(self):
        """Ends the phase now, as a deadline does."""
        with self._change() as p:
            check(lib.fkt_sa_server_close(p))

    def lost(self, site):
        """The transport has given this site up."""
        with self._change() as p:
            check(lib.fkt_sa_server_lost(p, _values.whole("site", site, 0, self._sites - 1)))

    def unmask(self):
        """In the state "unmask": takes the masks off."""
        with self._change() as p:
            if lib.fkt_sa_server_state(p) != c.FKT_SA_STATE_UNMASK:
                raise state_error("masks are taken off in the state 'unmask' alone")
            run(lib.fkt_sa_server_unmask, p)

    def total(self):
        """(sum over the survivors, (sites) True for a survivor)."""
        total, survivors = ctypes.c_void_p(), ctypes.c_void_p()
        with self._change() as p:
            check(lib.fkt_sa_server_total(p, ctypes.byref(total), ctypes.byref(survivors)))
            return (
                _values.copied(total.value, ctypes.c_int64, (self._length,)),
                _values.copied(survivors.value, ctypes.c_uint8, (self._sites,)).astype(bool),
            )

    def census(self):
        """Who is where: {"expected": ..., "heard": ..., "masked": ..., ...}."""
        out = c.SaCensus()
        with self._change() as p:
            lib.fkt_sa_server_census(p, ctypes.byref(out))
        return {name: getattr(out, name) for name, _ in out._fields_}

    def site(self, site):
        """Status.OK, or what the site left or was lost with."""
        with self._change() as p:
            return Status(lib.fkt_sa_server_site(p, _values.whole("site", site, 0, self._sites - 1)))

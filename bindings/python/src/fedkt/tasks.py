# SPDX-License-Identifier: Apache-2.0
"""tasks.py - a task: everything that must be the same at every site."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
from typing import Sequence

import numpy as np

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from .codecs import DEFAULT_CODEC, DEFAULT_GUIDE, open_part
from .errors import argument_error


@dataclasses.dataclass
class Federation:
    """The sites of a task. roster: their public keys, 32 bytes each. dropped: how many may be lost in a round; corrupt:
    how many may collude with the server. records: the most records of one class that a site may hold."""

    roster: Sequence[bytes]
    records: int
    dropped: int
    corrupt: int
    noise: str = "distributed"
    keystream: str = "aes-256-ctr"
    security: int = 0
    failure: int = 0
    attempts: int = 0

    def _choices(self):
        keys = [bytes(key) for key in self.roster]
        if any(len(key) != c.FKT_SA_KEY for key in keys):
            raise argument_error(f"a key of the roster has {c.FKT_SA_KEY} bytes")
        roster = np.frombuffer(b"".join(keys), np.uint8).copy()
        out = c.FederationChoices(
            sites=len(keys),
            dropped=_values.whole("dropped", self.dropped, 0, _values.U32),
            corrupt=_values.whole("corrupt", self.corrupt, 0, _values.U32),
            security=_values.whole("security", self.security, 0, _values.U32),
            failure=_values.whole("failure", self.failure, 0, _values.U32),
            attempts=_values.whole("attempts", self.attempts, 0, _values.U32),
            records=_values.whole("records", self.records),
            keystream=_values.choice("keystream", self.keystream, lib.fkt_keystream_parse),
            noise=_values.choice("noise", self.noise, lib.fkt_noise_parse),
            roster=_values.address(roster),
        )
        out.kept = roster
        return out


@dataclasses.dataclass
class Service:
    """The server of a task: its address, "https://host:port". expires: seconds since 1970, 0: never. names: what people
    call the sites. insecure_seed: TESTS ONLY, everything random comes from it."""

    address: str
    pin: str | None = None
    gather_seconds: int = 0
    phase_seconds: int = 0
    rounds: int = 0
    expires: int = 0
    names: Sequence[str] | None = None
    insecure_seed: int | None = None

    def _choices(self):
        out = c.ServiceChoices(
            address=_values.text("address", self.address, optional=False),
            pin=_values.text("pin", self.pin),
            gather_seconds=_values.whole("gather_seconds", self.gather_seconds, 0, _values.U32),
            phase_seconds=_values.whole("phase_seconds", self.phase_seconds, 0, _values.U32),
            rounds=_values.whole("rounds", self.rounds, 0, _values.U32),
            expires=_values.whole("expires", self.expires),
        )
        if self.names is not None:
            out.names = _values.texts("names", self.names)[0]
        if self.insecure_seed is not None:
            out.kept = ctypes.c_uint64(_values.whole("insecure_seed", self.insecure_seed))
            out.insecure_seed = ctypes.addressof(out.kept)
        return out


class Task(Handle):
    """What all sites agree on: classes, image size, networks, privacy.

    >>> import fedkt
    >>> task = fedkt.Task.make(["cat", "dog"], epsilon=8, delta=1e-5, codec="dct", size=16, dim=32)
    >>> task.classes, task.epsilon, task.length
    (['cat', 'dog'], 8.0, 33)
    """

    _free = "fkt_task_free"
    _noun = "task"

    @classmethod
    def make(
        cls,
        classes,
        *,
        epsilon,
        delta,
        codec=DEFAULT_CODEC,
        guide="default",
        size=32,
        dim=0,
        name=None,
        adjacency="add-remove",
        mechanism="joint",
        filter="bilinear",
        fit="crop",
        joined=False,
        pooled=False,
        coordinates="gain-shape",
        gamma=0,
        clip=0,
        rq=0,
        budget_split=None,
        calibration=None,
        guide_calibration=None,
        weights=None,
        guide_weights=None,
        federation=None,
        service=None,
        accept_weak=False,
    ):
        """codec and guide: names or Codec objects, or None; guide "default": fedkt-guide beside fedkt-ae, and without a
        codec, else none. budget_split: shares for the count, and for sum and second moment of each part. accept_weak:
        a promise that is too weak to be called private is made all the same, and the task says so."""
        if guide == "default":
            guide = DEFAULT_GUIDE if codec is None or codec == DEFAULT_CODEC else None
        parts = []
        if codec is not None:
            parts.append(open_part(codec, False, size, dim, calibration, {"weights": weights, "device": "cpu"}))
        if guide is not None:
            options = {"weights": guide_weights, "device": "cpu"}
            parts.append(open_part(guide, True, size, 0, guide_calibration, options))
        if not parts:
            raise argument_error("a task needs a codec, a guide, or both")
        choices = c.TaskChoices(
            name=_values.text("name", name),
            filter=_values.choice("filter", filter, lib.fkt_filter_parse),
            fit=_values.choice("fit", fit, lib.fkt_fit_parse),
            joined=bool(joined),
            pooled=bool(pooled),
            privacy=c.PrivacySpec(
                epsilon=_values.real("epsilon", epsilon),
                delta=_values.real("delta", delta),
                adjacency=_values.choice("adjacency", adjacency, lib.fkt_adjacency_parse),
                mechanism=_values.choice("mechanism", mechanism, lib.fkt_mechanism_parse),
            ),
            accept_weak=bool(accept_weak),
        )
        names, choices.n_classes = _values.texts("classes", classes)
        choices.classes = names
        kept = [federation._choices() if federation else None, service._choices() if service else None]
        if kept[0]:
            choices.federation = ctypes.pointer(kept[0])
        if kept[1]:
            choices.service = ctypes.pointer(kept[1])
        rows = (c.PartChoice * len(parts))()
        for row, (network, cal) in zip(rows, parts):
            row.coordinates = _values.choice("coordinates", coordinates, lib.fkt_coordinate_parse)
            row.gamma = _values.real("gamma", gamma)
            row.clip = _values.real("clip", clip) if network.decodes else 0
            row.rq = _values.whole("rq", rq, 0, _values.U32)
            row.calibration = ctypes.pointer(cal._struct)
        cls._split(choices, rows, 1 if joined else len(parts), budget_split)
        self = cls()
        with parts[0][0]._use() as first, parts[-1][0]._use() as last:
            rows[0].codec, rows[len(parts) - 1].codec = first, last
            check(lib.fkt_task_make(ctypes.byref(self._pointer), ctypes.byref(choices), rows, len(parts)))
        return self

    @staticmethod
    def _split(choices, rows, n, split):
        if split is None:
            return
        split = [_values.real("budget_split", share) for share in split]
        if len(split) != 1 + 2 * n or not all(share > 0 for share in split[1:]):
            raise argument_error(f"budget_split must be {1 + 2 * n} numbers, those after the first above 0")
        choices.privacy.split_count = split[0]
        for p in range(n):
            rows[p].split_sum, rows[p].split_moment = split[1 + 2 * p], split[2 + 2 * p]

    @classmethod
    def load(cls, path):
        self = cls()
        check(lib.fkt_task_load(ctypes.byref(self._pointer), _values.path("path", path, optional=False)))
        return self

    @classmethod
    def parse(cls, json):
        """From the text of a task file."""
        data = json.encode() if isinstance(json, str) else bytes(json)
        self = cls()
        check(lib.fkt_task_parse(ctypes.byref(self._pointer), data, len(data)))
        return self

    @classmethod
    def of(cls, source):
        """A Task, or the path of one."""
        if isinstance(source, Task):
            return source
        if isinstance(source, (str, bytes, os.PathLike, pathlib.Path)):
            return cls.load(source)
        raise argument_error(f"task must be a Task or a path, not {type(source).__name__}")

    def save(self, path, *, force=False):
        with self._use() as p:
            check(lib.fkt_task_save(p, _values.path("path", path, optional=False), bool(force)))

    def sign(self, secret):
        """The operator's signature; secret: 64 bytes (`fedkt.Key.secret`)."""
        data = _values.secret(secret)
        with self._change() as p:
            check(lib.fkt_task_sign(p, data))

    def verify(self, operator_key=None):
        """Raises unless it is signed, by this key where one is given."""
        data = None if operator_key is None else _values.key(operator_key)
        with self._use() as p:
            check(lib.fkt_task_verify(p, data))

    def _get(self, function, *more):
        with self._use() as p:
            return function(p, *more)

    @property
    def name(self):
        return _values.decode(self._get(lib.fkt_task_name))

    @property
    def sha256(self):
        return _values.decode(self._get(lib.fkt_task_sha256))

    @property
    def classes(self):
        with self._use() as p:
            return [_values.decode(lib.fkt_task_class(p, k)) for k in range(lib.fkt_task_classes(p))]

    @property
    def size(self):
        """Side of its images, in pixels."""
        return self._get(lib.fkt_task_size)

    @property
    def fit(self):
        return _values.decode(lib.fkt_fit_name(self._get(lib.fkt_task_fit)))

    @property
    def filter(self):
        return _values.decode(lib.fkt_filter_name(self._get(lib.fkt_task_filter)))

    @property
    def length(self):
        """Numbers of a record vector, all parts."""
        with self._use() as p:
            return lib.fkt_layout_length(lib.fkt_task_layout(p))

    @property
    def _privacy(self):
        with self._use() as p:
            return c.PrivacySpec.from_buffer_copy(lib.fkt_task_privacy(p).contents)

    @property
    def epsilon(self):
        return self._privacy.epsilon

    @property
    def delta(self):
        return self._privacy.delta

    @property
    def adjacency(self):
        return _values.decode(lib.fkt_adjacency_name(self._privacy.adjacency))

    @property
    def weak(self):
        """Why its promise is too weak to be called private; "" where it is not."""
        why = ctypes.create_string_buffer(c.FKT_PROMISE_WORDS)
        weak = self._get(lib.fkt_task_promise, why) == c.FKT_PROMISE_WEAK
        return _values.decode(why.value) if weak else ""

    @property
    def sites(self):
        """Sites of its federation; 0: it has none."""
        with self._use() as p:
            federation = lib.fkt_task_federation(p)
            return federation.contents.sites if federation else 0

    @property
    def cohort(self):
        """Which cohort it is the task of; None: it is not in cohorts, or it is the task of their sum."""
        with self._use() as p:
            division = lib.fkt_task_division(p)
            index = division.contents.index if division else c.FKT_DIVISION_WHOLE
        return None if index == c.FKT_DIVISION_WHOLE else index

    def cohort_of(self, key):
        """To which cohort the site with this public key belongs; None: the task is not in cohorts."""
        index = self._get(lib.fkt_task_cohort_of, _values.key(key))
        return None if index == c.FKT_DIVISION_WHOLE else index

    @property
    def sum_sha256(self):
        """Of a task in cohorts: the hash of the task of their sum, the same for all cohorts."""
        out = ctypes.create_string_buffer(c.FKT_SHA256_HEX)
        check(self._get(lib.fkt_task_sum_sha256, out))
        return _values.decode(out.value)

    def open_data(self, source, **options):
        """A dataset with the classes and the fit of this task: a path, arrays or records (`Dataset.of`); a Dataset is
        checked. limit chooses records as this task's adjacency asks for."""
        from .datasets import Dataset

        if isinstance(source, Dataset):
            if source.classes != self.classes:
                raise argument_error("the dataset has other classes than the task, or in another order")
            if source.fit != self.fit:
                raise argument_error(f"the dataset was opened with fit '{source.fit}', the task has '{self.fit}'")
            return source
        options.setdefault("classes", self.classes)
        options.setdefault("fit", self.fit)
        options.setdefault("limit_by_number", bool(lib.fkt_adjacency_counts_public(self._privacy.adjacency)))
        return Dataset.of(source, **options)

    def __repr__(self):
        if self.closed:
            return "<fedkt.Task, closed>"
        return f"<fedkt.Task '{self.name}', {len(self.classes)} classes, {self.size} px, epsilon {self.epsilon:g}>"

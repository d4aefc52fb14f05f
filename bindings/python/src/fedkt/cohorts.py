# SPDX-License-Identifier: Apache-2.0
"""cohorts.py - a task in cohorts (`fedkt/cohorts.h`): the folder of its tasks, and the sum of the cohorts' releases.

    cohorts = fedkt.Cohorts.load("tasks")                           what `fedkt task new --cohort-size` has written
    servers = [fedkt.TaskServer(cohorts.task(i), f"state/cohort-{i:04}", out=cohorts.folder("public", i), per_class=1)
               for i in range(len(cohorts))]                        each in its own time, until all are over
    cohorts.add_up("public", [server.view()["release_sha256"] for server in servers])
"""

from __future__ import annotations

import ctypes
import dataclasses
import pathlib

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from ._work import Work
from .carrier import server_output
from .codecs import settings
from .errors import argument_error
from .tasks import Task


@dataclasses.dataclass(frozen=True)
class CohortSum:
    """cohorts: how many are in the sum; sites: of all cohorts; survivors: of those that are in it."""

    cohorts: int
    sites: int
    survivors: int
    release_sha256: str


class Cohorts(Handle):
    """The tasks of all cohorts of one division; their rosters together are the roster that each of them names.
    Signatures are not checked (`Task.verify`)."""

    _free = "fkt_cohorts_free"
    _noun = "division"

    @classmethod
    def load(cls, folder):
        self = cls()
        check(lib.fkt_cohorts_load(ctypes.byref(self._pointer), _values.path("folder", folder, optional=False)))
        return self

    def __len__(self):
        with self._use() as p:
            return lib.fkt_cohorts_number(p)

    def file(self, i):
        """The path of the task of cohort i."""
        with self._use() as p:
            return _values.decode(lib.fkt_cohorts_file(p, _values.whole("i", i, 0, lib.fkt_cohorts_number(p) - 1)))

    def task(self, i):
        """The task of cohort i, which lives as long as it is used."""
        number = _values.whole("i", i, 0, len(self) - 1)
        task = Task(owner=self)
        with self._use() as p:
            task._pointer = ctypes.c_void_p(lib.fkt_cohorts_task(p, number))
        return task

    @staticmethod
    def folder(out, i):
        """Where the public folder of cohort i is, below that of the sum."""
        return pathlib.Path(out) / "cohorts" / f"{i:04}"

    def add_up(self, out, releases, *, per_class=0, format="folder", threads=0, progress=None, **machine):
        """Adds the cohorts' releases up: release, certificate and images of the sum in `out`, the same that `fedkt
        serve` makes. releases: for each cohort the SHA-256 of the release that it ended with, None or "" for one that
        gave none. PeerError: there is none at all. Gives a CohortSum."""
        hashes = [_values.text("releases", value) or b"" for value in releases]
        if len(hashes) != len(self):
            raise argument_error(f"releases has {len(hashes)} entries for {len(self)} cohorts")
        names, _ = _values.texts("releases", hashes)
        work = Work(progress)
        spec = c.CohortsSumSpec(
            **server_output(out, per_class, format), release_sha256=names, settings=settings(**machine),
            threads=_values.whole("threads", threads, 0, 4096), progress=work.hook,
        )  # fmt: skip
        found = c.CohortsSum()
        with self._use() as p:
            spec.cohorts = p
            work.run(lib.fkt_cohorts_add_up, ctypes.byref(found), ctypes.byref(spec))
        return CohortSum(found.in_sum, found.sites, found.survivors, _values.decode(found.release_sha256))

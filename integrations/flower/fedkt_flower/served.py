# SPDX-License-Identifier: Apache-2.0
"""served.py - the server's side of one task of a run: a whole task, or one cohort of a task in cohorts.

`fedkt.TaskServer` does what a server does; here are what stands around it in any run: the heavy work in a thread of its
own, what a site sends and asks, and the public files once the task is over. Each has its own journal, rounds, deadlines
and log, so that one that is given up stops no other."""

from __future__ import annotations

import logging
import pathlib
import threading

import fedkt

from . import envelope

OVER = ("released", "given-up")
log = logging.getLogger("flwr")


class Served:
    """server: a `fedkt.TaskServer`, which this one does not close."""

    def __init__(self, server):
        self.server = server
        self.hash = bytes.fromhex(server.task.sha256)
        self.roster = fedkt.SecAggParams.of(server.task).roster
        cohort = server.task.cohort
        self.name = "" if cohort is None else f"cohort {cohort}, "
        self._worker = None
        self._files: dict[str, bytes] = {}

    def over(self):
        return self._worker is None and self.server.view()["stage"] in OVER

    def deliver(self, request):
        """True: what the site sends is taken."""
        try:
            return self.server.deliver(request.site, request.data)
        except fedkt.PeerError as error:
            log.warning("fedkt: %ssite %d: %s", self.name, request.site, error)
            return False

    def work(self):
        """Starts what there is to do, and brings back what is done; waits for nothing."""
        if self._worker is None and self.server.has_work():
            found = []
            thread = threading.Thread(target=lambda: found.append(self.server.work()), name="fedkt-work")
            thread.start()
            self._worker = (thread, found)
        if self._worker is not None and not self._worker[0].is_alive():
            (_, found), self._worker = self._worker, None
            self.server.worked(found[0])

    def answer_to(self, request, held):
        """What the site is told; None: nothing yet. held: it has waited long enough."""
        message = self.server.collect(request.site, *request.has)
        if message.data or message.lost is not fedkt.Status.OK or message.stage in OVER or held:
            return message
        return None

    def files(self):
        """The public files of the finished task, read once."""
        if not self._files:
            paths = {name: self.server.file(name) for name in envelope.FILES}
            self._files = {name: pathlib.Path(path).read_bytes() for name, path in paths.items() if path}
        return self._files

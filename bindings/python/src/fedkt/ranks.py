# SPDX-License-Identifier: Apache-2.0
"""ranks.py - several processes that share one call (`fedkt/advanced/ranks.h`), connected by an mpi4py communicator.

Any object with mpi4py's methods of a communicator will do: nothing is imported from that package. Messages are carried
as src/mpi/mpi.c carries them for the program: in pieces of at most 1 GiB, since MPI counts with int; a wait tests the
request and sleeps, so that it leaves the core to others and Ctrl-C ends it. What is carried is PRIVATE, and MPI does
not encrypt it.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np

from . import _declarations as c
from .errors import FedktError, Status, argument_error, error_of

_MESSAGE, _ALARM = 1, 2
_PIECE = 1 << 30
_NEEDED = ("Get_rank", "Get_size", "Dup", "Free", "Isend", "Irecv", "Recv", "Iprobe", "Ibarrier", "allgather")
_CALLS = dict(c.Ranks._fields_)


class Stop(Exception):
    """The work was asked to stop."""


class Alone:
    """One process: nobody to agree with."""

    first, struct = True, None

    def __enter__(self):
        return self

    def __exit__(self, *_failure):
        return False

    def begin(self):
        pass


class Together:
    """The processes of a communicator during one call, made by each of them with the same arguments.

    with shared(comm, work) as ranks:
        ...                     # what may fail on one of them alone
        ranks.begin()           # raises on all where one has failed
        options.ranks = ranks.struct
        work.run(...)
    """

    def __init__(self, comm, work):
        missing = [name for name in _NEEDED if not callable(getattr(comm, name, None))]
        if missing:
            raise argument_error(f"comm must be a communicator of mpi4py: it has no {missing[0]}()")
        self.work, self.begun, self.heard = work, False, False
        self.comm = comm.Dup()  # so that messages of ours and of the caller's do not mix
        self.first = self.comm.Get_rank() == 0
        table = {"send": self._send, "recv": self._recv, "alarm": self._alarm, "alarmed": self._alarmed}
        self._calls = {name: _CALLS[name](function) for name, function in table.items()}
        self.struct = ctypes.pointer(
            c.Ranks(rank=self.comm.Get_rank(), size=self.comm.Get_size(), **self._calls)
        )

    def __enter__(self):
        return self

    def __exit__(self, _kind, failure, _trace):
        if not self.begun:
            self._agree(failure)
        if self.struct.contents.failed != 2:  # else messages are lost, and others may be gone
            self._end()
        return False

    def begin(self):
        """Every process has got this far, or the failure of the first that has not is raised on all."""
        self.begun = True
        failure = self._agree(None)
        if failure is not None:
            raise failure

    def _agree(self, failure):
        said = None
        if isinstance(failure, FedktError):
            said = (int(failure.status), failure.sentence, failure.hint)
        elif failure is not None:
            said = (int(Status.STOPPED), f"rank {self.comm.Get_rank()} has ended: {failure!r}", "")
        found = [one for one in self.comm.allgather(said) if one is not None]
        return error_of(*found[0]) if found else None

    def _end(self):
        """Alarms that nobody looked at are received, so that nothing is under way when the communicator is freed."""
        self._wait(self.comm.Ibarrier())  # every alarm was sent before its sender's last message
        while self.comm.Iprobe(tag=_ALARM):
            self.comm.Recv(bytearray(), tag=_ALARM)
        self.comm.Free()

    def _wait(self, request, receives=False):
        pause = 20e-6
        while not request.Test():
            if self.work.stop and self.work.failure is None:  # Ctrl-C; a hook that failed is agreed on with the others
                self._give_up(request, receives)
                raise Stop
            time.sleep(pause)
            pause = min(2 * pause, 2e-3)

    @staticmethod
    def _give_up(request, receives):
        """The buffer is the library's, which frees it: a receive is cancelled first, as src/mpi/mpi.c explains."""
        if receives:
            request.Cancel()
            for _ in range(250):
                if request.Test():
                    return
                time.sleep(2e-3)
        request.Free()

    def _carry(self, begin, receives, other, address, n):
        """A status: an exception must not pass through C."""
        try:
            done = 0
            while True:
                piece = min(n - done, _PIECE)
                block = (ctypes.c_uint8 * piece).from_address(address + done) if piece else bytearray()
                self._wait(begin(np.frombuffer(block, np.uint8), other, tag=_MESSAGE), receives)
                done += piece
                if done >= n:
                    return Status.OK
        except Stop:
            return Status.STOPPED
        except BaseException as error:  # noqa: B902
            if self.work.failure is None:
                self.work.failure = error
            return Status.IO

    def _send(self, _self, to, data, n):
        return self._carry(self.comm.Isend, False, to, data or 0, n)

    def _recv(self, _self, origin, data, n):
        return self._carry(self.comm.Irecv, True, origin, data or 0, n)

    def _alarm(self, _self):
        try:
            for to in range(self.comm.Get_size()):
                if to != self.comm.Get_rank():
                    self.comm.Isend(bytearray(), to, tag=_ALARM).Free()  # an empty message needs nobody to wait for it
        except Exception:
            pass  # the others then notice the failure when their shards are done

    def _alarmed(self, _self):
        try:
            self.heard = self.heard or bool(self.comm.Iprobe(tag=_ALARM))
        except Exception:
            return 0
        return int(self.heard)


def shared(comm, work):
    """The processes of a communicator, or this one alone where it is None or has no other."""
    if comm is None or (callable(getattr(comm, "Get_size", None)) and comm.Get_size() == 1):
        return Alone()
    return Together(comm, work)

# SPDX-License-Identifier: Apache-2.0
"""_work.py - long calls: progress, and Ctrl-C.

Python runs signal handlers in its main thread alone, between two instructions, so that a main thread inside a C call
does not see Ctrl-C. A long call is therefore made in a thread of its own while the caller waits; on an exception there,
KeyboardInterrupt for example, the library is asked to stop, the caller waits for it and then lets the exception go on.

The same makes fork safe. GNU OpenMP, on which networks are trained, remembers its team of threads in the thread that
began it. A process that is forked from such a thread has the memory of a team that does not exist, and waits for it for
ever. The threads of calls are over when the call returns, so that no thread that can fork has a team.

`progress` of a public function is None (silent), True (a bar of `tqdm`, where that is installed), or a function
`(what, done, total)`, with total 0 where it is unknown; a true answer stops the work (`fedkt.Stopped`). It may be
called from several threads, one at a time.
"""

from __future__ import annotations

import ctypes
import threading

from . import _declarations as c
from ._handle import under_way
from ._library import last_error
from .errors import Status, argument_error


class _Bar:
    """A bar of tqdm for each stage of the work."""

    def __init__(self, make):
        self.make, self.bar, self.what = make, None, None

    def __call__(self, what, done, total):
        if what != self.what:
            self.close()
            self.what, self.bar = what, self.make(total=total or None, desc=what)
        self.bar.update(done - self.bar.n)

    def close(self):
        if self.bar is not None:
            self.bar.close()


def _reporter(progress):
    if progress is None or progress is False:
        return None
    if progress is True:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return _Bar(tqdm)
    if not callable(progress):
        raise argument_error("progress must be None, True or a function of (what, done, total)")
    return progress


class Work:
    """One long call: the hook that the library gets, and how the call ends.

    work = Work(progress)
    options.progress = work.hook
    work.run(lib.fkt_..., ...)
    """

    def __init__(self, progress=None):
        self.report = _reporter(progress)
        self.stop = False
        self.failure = None  # raised in a callback, to go on when the library has returned
        # sig_atomic_t for calls that poll a flag; an int is what that is on every platform of ours.
        self.flag = ctypes.c_int(0)
        self._step = c.Progress._fields_[0][1](self._on_step)
        self.progress = c.Progress(self._step, None)

    @property
    def hook(self):
        return ctypes.pointer(self.progress)

    def _on_step(self, _self, what, done, total):
        if self.stop:
            return 1
        if self.report is None:
            return 0
        return self.guard(lambda: bool(self.report(what.decode("utf-8", "replace"), done, total)), 1)

    def guard(self, function, otherwise):
        """What function() gives, for a callback: an exception must not pass through C. It stops the work."""
        try:
            return function()
        except BaseException as error:  # noqa: B902
            if self.failure is None:
                self.failure = error
            self.ask_to_stop()
            return otherwise

    def ask_to_stop(self):
        self.stop = True
        self.flag.value = 1

    def run(self, function, *arguments):
        """Calls and checks; FKT_OK or an exception. Gives the status, which is OK."""
        try:
            status, error = self._in_a_thread(function, arguments)
        finally:
            if isinstance(self.report, _Bar):
                self.report.close()
        if self.failure is not None:
            raise self.failure
        if error is not None:
            raise error
        return status

    def _here(self, function, arguments):
        with under_way():
            status = function(*arguments)
        return status, None if status == Status.OK else last_error(status)

    def _in_a_thread(self, function, arguments):
        result = []
        given_up = []
        go, done = threading.Lock(), threading.Lock()  # not Events: acquire is the wait that Ctrl-C ends everywhere
        go.acquire()
        done.acquire()

        def call():
            go.acquire()
            if given_up:
                return
            try:
                result.append(self._here(function, arguments))
            except BaseException as error:  # noqa: B902
                result.append((Status.ARG, error))
            finally:
                done.release()

        try:
            threading.Thread(target=call, name="fedkt", daemon=True).start()
        except BaseException:  # Ctrl-C in start(), which waits: the caller frees what the thread would use
            given_up.append(True)
            go.release()
            raise
        interrupted = None
        while True:
            try:
                if go.locked():
                    go.release()  # more than once is harmless: the thread takes it once
                done.acquire()
                break
            except BaseException as error:  # noqa: B902
                interrupted = interrupted or error
                self.ask_to_stop()
        if interrupted is not None:
            raise interrupted
        return result[0]


def run(function, *arguments):
    """A call that has no progress hook, so that Ctrl-C takes effect when it ends."""
    return Work().run(function, *arguments)

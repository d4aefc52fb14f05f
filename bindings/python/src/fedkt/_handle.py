# SPDX-License-Identifier: Apache-2.0
"""_handle.py - an object of the library with a life of its own.

A handle is freed when it is closed or collected, but never while a call uses it: close() in one thread during a call in
another takes effect when that call returns. A closed handle raises. Handles that calls change are used by one thread at
a time; others wait.

A child process made by fork shares nothing with its parent but has a copy of everything. Locks are made new there. A
fork during a call of another thread leaves that call's locks inside the library taken for ever, so that the child
refuses to use the library: it raises.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref

from ._library import lib
from .errors import state_error

_handles = weakref.WeakSet()
_under_way = set()  # one token for each call; adding and discarding are atomic
_broken = False


@contextlib.contextmanager
def under_way():
    """Around every call that may take a lock inside the library."""
    if _broken:
        raise state_error(
            "this process was forked while another thread was in a call of fedkt",
            "start workers with the 'spawn' or 'forkserver' method, or fork while no call is under way",
        )
    token = object()
    _under_way.add(token)
    try:
        yield
    finally:
        _under_way.discard(token)


class Handle:
    """Base of all handles. `_free` names the C function that ends it."""

    _free = ""
    _noun = "object"

    def __init__(self, owner=None):
        """owner: a handle from which this one is borrowed; then it is not freed here."""
        self._pointer = ctypes.c_void_p()
        self._owner = owner
        self._keep = None
        self._users = 0  # calls under way
        self._loans = 0  # arrays over its memory, and handles that borrow it
        self._held = []  # handles that it borrows
        self._closed = False
        self._make_locks()
        _handles.add(self)

    def _make_locks(self):
        self._lock = threading.RLock()  # a collection inside a locked block may end an array over this handle
        self._turn = threading.RLock()

    @property
    def closed(self):
        """True after close()."""
        return self._closed

    def close(self):
        """Frees it. More than once is fine; every other use afterwards raises."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            last = self._unused()
        if last:
            self._end()

    def _unused(self):
        return self._closed and self._users == 0 and self._loans == 0

    def _end(self):
        pointer, self._pointer = self._pointer, ctypes.c_void_p()
        if pointer and self._owner is None:
            getattr(lib, self._free)(pointer)
        self._owner = self._keep = None
        while self._held:
            self._held.pop()._take_back()

    def _lend(self):
        """Its memory is needed until _take_back(), whoever closes it meanwhile."""
        with self._lock:
            if self._closed:
                raise state_error(f"the {self._noun} is closed")
            self._loans += 1

    def _take_back(self):
        with self._lock:
            self._loans -= 1
            last = self._unused()
        if last:
            self._end()

    def _hold(self, other):
        """Borrows another handle until this one is freed."""
        other._lend()
        self._held.append(other)

    @contextlib.contextmanager
    def _use(self):
        """The pointer, which stays valid inside the block."""
        with self._lock:
            if self._closed:
                raise state_error(f"the {self._noun} is closed")
            self._users += 1
        try:
            with under_way() if self._owner is None else self._owner._use():
                yield self._pointer
        finally:
            with self._lock:
                self._users -= 1
                last = self._unused()
            if last:
                self._end()

    @contextlib.contextmanager
    def _change(self):
        """As _use, by one thread at a time."""
        with self._turn, self._use() as pointer:
            yield pointer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        with contextlib.suppress(Exception):
            self.close()

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} cannot be pickled: save it to a file, and load that")


class Loan:
    """Keeps a handle's memory alive as long as this object lives: the owner of an array over it."""

    def __init__(self, handle):
        handle._lend()
        self.handle = handle

    def __del__(self):
        if hasattr(self, "handle"):
            self.handle._take_back()


def _after_fork():
    global _broken
    _broken = _broken or bool(_under_way)
    _under_way.clear()
    for handle in list(_handles):
        handle._make_locks()
        handle._users = 0


os.register_at_fork(after_in_child=_after_fork)

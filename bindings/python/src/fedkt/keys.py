# SPDX-License-Identifier: Apache-2.0
"""keys.py - who takes part: key files, their public parts, rosters."""

from __future__ import annotations

import ctypes
import dataclasses

from . import _declarations as c
from . import _values
from ._library import check, lib
from .errors import argument_error


@dataclasses.dataclass(frozen=True)
class SiteKey:
    """The public part of a key: its name, "" for none, and 32 bytes."""

    name: str
    key: bytes

    @classmethod
    def load(cls, path):
        """A file that a site has sent ("fedkt.site/1"); its proof of possession is checked. Hostile input."""
        out = c.SiteKey()
        check(lib.fkt_site_key_load(ctypes.byref(out), _values.path("path", path, optional=False)))
        return cls(_values.decode(out.name), bytes(out.key))

    @property
    def fingerprint(self):
        """Twenty digits in groups of four, to be compared by telephone."""
        out = ctypes.create_string_buffer(c.FKT_FINGERPRINT)
        lib.fkt_fingerprint(out, _values.key(self.key))
        return _values.decode(out.value)


class Key:
    """A secret signing key, of a site or of the operator. It is wiped when the object is collected; the bytes that
    `secret` gives are Python's and are not.

    >>> import fedkt
    >>> key = fedkt.Key.make("north hospital")
    >>> key.name, len(key.public), len(key.secret)
    ('north hospital', 32, 64)
    """

    def __init__(self):
        self._struct = c.Key()

    @classmethod
    def make(cls, name=None):
        """A new key from the operating system's randomness."""
        self = cls()
        check(lib.fkt_key_make(ctypes.byref(self._struct), _values.text("name", name)))
        return self

    @classmethod
    def load(cls, path):
        self = cls()
        check(lib.fkt_key_load(ctypes.byref(self._struct), _values.path("path", path, optional=False)))
        return self

    def save(self, path, *, force=False):
        """The whole key; the file is readable by its owner alone."""
        name = _values.path("path", path, optional=False)
        check(lib.fkt_key_save(ctypes.byref(self._struct), name, bool(force), None))

    def save_public(self, path, *, force=False):
        """The public part with a proof of possession, for the operator."""
        name = _values.path("path", path, optional=False)
        check(lib.fkt_site_key_save(ctypes.byref(self._struct), name, bool(force)))

    @property
    def name(self):
        return _values.decode(self._struct.site.name)

    @property
    def public(self):
        return bytes(self._struct.site.key)

    @property
    def site_key(self):
        return SiteKey(self.name, self.public)

    @property
    def secret(self):
        return bytes(self._struct.secret)

    def __del__(self):
        if lib is not None:
            lib.fkt_key_clear(ctypes.byref(self._struct))

    def __repr__(self):
        return f"<fedkt.Key '{self.name}' {self.site_key.fingerprint}: SECRET>"

    def __reduce__(self):
        raise TypeError("a Key cannot be pickled: save it to a file, and load that")


def load_roster(path):
    """The sites of a roster file, in the order that numbers them: [SiteKey, ...]."""
    out = c.Roster()
    check(lib.fkt_roster_load(ctypes.byref(out), _values.path("path", path, optional=False)))
    try:
        keys = ctypes.string_at(out.keys, 32 * out.n)
        return [SiteKey(_values.decode(out.names[i]) or "", keys[32 * i : 32 * i + 32]) for i in range(out.n)]
    finally:
        lib.fkt_roster_clear(ctypes.byref(out))


def enroll(path, sites):
    """Adds sites to a roster file, which is made when it is not there. Gives the number of sites on it."""
    rows = (c.SiteKey * max(len(sites), 1))()
    for row, site in zip(rows, sites):
        name = _values.text("name", site.name, optional=False)
        if len(name) >= c.FKT_KEY_NAME:
            raise argument_error(f"a name has at most {c.FKT_KEY_NAME - 1} bytes")
        row.name, row.key = name, (ctypes.c_uint8 * 32).from_buffer_copy(bytes(_values.key(site.key)))
    total = ctypes.c_uint32()
    check(lib.fkt_roster_enroll(_values.path("path", path, optional=False), rows, len(sites), ctypes.byref(total)))
    return total.value

# SPDX-License-Identifier: Apache-2.0
"""errors.py - what every failed call raises: a status, a sentence, and perhaps a hint.

>>> import fedkt
>>> try:
...     fedkt.Dataset.open("no/such/folder")
... except fedkt.FedktError as error:
...     print(error.status.name, "|", error.sentence)
IO | cannot open 'no/such/folder': No such file or directory
"""

from __future__ import annotations

import enum

from . import _declarations as c

Status = enum.IntEnum(
    "Status",
    {"OK": c.FKT_OK, **{k.removeprefix("FKT_E_"): v for k, v in vars(c).items() if k.startswith("FKT_E_")}},
)
Hint = enum.IntEnum(
    "Hint", {k.removeprefix("FKT_HINT_"): v for k, v in vars(c).items() if k.startswith("FKT_HINT_")}
)

Status.__doc__ = "What a call answers; values are pinned (`fedkt/status.h`)."
Hint.__doc__ = "The remedy behind a hint, for programs that phrase it in their own words."


class FedktError(Exception):
    """A call failed. `status` is a `Status`, or a plain int where a newer library has one that is not known here;
    `sentence` says what happened; `hint` what to do next, or ""; `hint_code` and `hint_values` are the hint for
    programs."""

    def __init__(self, status, sentence, hint="", hint_code=0, hint_values=()):
        super().__init__(status, sentence, hint, hint_code, hint_values)
        self.status = _member(Status, status)
        self.sentence = sentence
        self.hint = hint
        self.hint_code = _member(Hint, hint_code)
        self.hint_values = tuple(hint_values)

    def __str__(self):
        return f"{self.sentence}\nhint: {self.hint}" if self.hint else self.sentence


class ArgumentError(FedktError, ValueError):
    """1x: the caller asked for something impossible."""


class MachineError(FedktError):
    """2x: the machine let us down: memory, files, randomness."""


class Stopped(MachineError):
    """24: a progress or event hook asked to stop. Ctrl-C raises KeyboardInterrupt instead."""


class DataError(FedktError):
    """3x: a file, an image or a number is not what it claims to be."""


class PeerError(FedktError):
    """4x: a peer in a protocol sent what it must not, or too few peers are left."""


class BudgetError(FedktError):
    """6x: the privacy budget does not allow it."""


_FAMILIES = {1: ArgumentError, 2: MachineError, 3: DataError, 4: PeerError, 6: BudgetError}


def _member(kind, value):
    try:
        return kind(value)
    except ValueError:
        return value


def error_of(status, sentence, hint="", hint_code=0, hint_values=()):
    """The exception of this status; it is not raised."""
    family = Stopped if status == Status.STOPPED else _FAMILIES.get(status // 10, FedktError)
    return family(status, sentence, hint, hint_code, hint_values)


def argument_error(sentence, hint=""):
    return error_of(Status.ARG, sentence, hint)


def state_error(sentence, hint=""):
    return error_of(Status.STATE, sentence, hint)

# SPDX-License-Identifier: Apache-2.0
"""_values.py - Python values on their way to C and back: text, numbers, names of enums, NumPy arrays.

ctypes cuts integers to their width and text at its first NUL without a word, and believes every address. So each value
is checked here, and an array has the type, the shape and the order in memory that the call reads before its address is
taken. An array that fits is borrowed as it is; one in another order is copied; another type is refused.
"""

from __future__ import annotations

import ctypes
import operator
import os

import numpy as np

from ._library import lib
from .errors import Status, argument_error, error_of

U32 = 2**32 - 1
U64 = 2**64 - 1


def text(name, value, optional=True):
    """str as UTF-8 bytes; None stays None where it is allowed."""
    if value is None and optional:
        return None
    if not isinstance(value, (str, bytes)):
        raise argument_error(f"{name} must be text, not {type(value).__name__}")
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if b"\0" in data:
        raise argument_error(f"{name} must not hold a NUL character")
    return data


def path(name, value, optional=True):
    """A path as the bytes of the file system."""
    if value is None and optional:
        return None
    try:
        data = os.fsencode(value)
    except TypeError:
        raise argument_error(f"{name} must be a path, not {type(value).__name__}") from None
    if b"\0" in data:
        raise argument_error(f"{name} must not hold a NUL character")
    return data


def whole(name, value, low=0, high=U64):
    try:
        number = operator.index(value)
    except TypeError:
        raise argument_error(f"{name} must be a whole number, not {type(value).__name__}") from None
    if not low <= number <= high:
        raise argument_error(f"{name} must be between {low} and {high}, not {number}")
    return number


def real(name, value):
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise argument_error(f"{name} must be a number, not {type(value).__name__}") from None
    if not np.isfinite(number):
        raise argument_error(f"{name} must be finite, not {number}")
    return number


def choice(name, value, parse):
    """A member of an enum by its name, as files and the command line write it; parse is the library's."""
    member = parse(text(name, value, optional=False))
    if member < 0:
        raise argument_error(f"{name}: '{value}' is unknown")
    return member


def texts(name, values):
    """(char *array, length) of some strings."""
    if isinstance(values, (str, bytes)) or values is None:
        raise argument_error(f"{name} must be a list of text")
    items = [text(name, value, optional=False) for value in values]
    return (ctypes.c_char_p * max(len(items), 1))(*items), len(items)


def device(value):
    """struct fkt_device of "cpu", "cuda", "cuda:1", "auto"."""
    from . import _declarations as c
    from ._library import check

    out = c.Device()
    check(lib.fkt_device_parse(ctypes.byref(out), text("device", value, optional=False)))
    return out


def decode(data):
    return data.decode("utf-8", "replace") if data is not None else None


# ---- arrays ----


def array(name, value, dtype, shape):
    """A C-ordered array of exactly this type; shape has None where any length will do. Borrowed where it fits."""
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor of PyTorch
        value = value.detach().cpu().numpy()
    try:
        found = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise argument_error(f"{name} is not an array: {error}") from None
    if found.dtype != dtype:
        raise argument_error(f"{name} must be of type {np.dtype(dtype)}, not {found.dtype}")
    wanted = "(" + ", ".join("n" if size is None else str(size) for size in shape) + ")"
    if found.ndim != len(shape) or any(s is not None and s != f for s, f in zip(shape, found.shape)):
        raise argument_error(f"{name} must have the shape {wanted}, not {found.shape}")
    return np.ascontiguousarray(found)


def reals(name, value, shape):
    """float64, from any real type; finite."""
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    found = np.asarray(value)
    if found.dtype.kind not in "fiu":
        raise argument_error(f"{name} must hold real numbers, not {found.dtype}")
    found = array(name, found.astype(np.float64, copy=False), np.float64, shape)
    if not np.isfinite(found).all():
        raise error_of(Status.NUMERIC, f"{name} holds a number that is not finite")
    return found


def labels(name, value, n=None, classes=None):
    """uint32 labels from any array of whole numbers."""
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    found = np.asarray(value)
    if found.ndim == 2 and found.shape[1] == 1:  # MedMNIST
        found = found[:, 0]
    if found.ndim != 1 or (n is not None and len(found) != n):
        raise argument_error(f"{name} must have the shape ({'n' if n is None else n},), not {found.shape}")
    if found.dtype.kind not in "iu" and found.size:
        raise argument_error(f"{name} must be whole numbers, not {found.dtype}")
    high = U32 if classes is None else classes - 1
    if found.size and not (found.min() >= 0 and found.max() <= high):
        raise argument_error(f"{name} must be between 0 and {high}")
    return np.ascontiguousarray(found, dtype=np.uint32)


def address(value):
    return value.ctypes.data


def view(pointer, ctype, shape, owner):
    """A NumPy array over memory of the library, without a copy; `owner` stays alive as long as the array."""
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, dtype=np.dtype(ctype))
    block = type("Block", (ctype * count,), {}).from_address(pointer)
    block.owner = owner
    return np.frombuffer(block, dtype=np.dtype(ctype)).reshape(shape)


def copied(pointer, ctype, shape):
    """A copy of memory of the library."""
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0 or not pointer:
        return np.empty(shape, dtype=np.dtype(ctype))
    return np.frombuffer((ctype * count).from_address(pointer), dtype=np.dtype(ctype)).reshape(shape).copy()


def _bytes(name, value, length):
    data = bytes(value)
    if len(data) != length:
        raise argument_error(f"{name} must have {length} bytes, not {len(data)}")
    return (ctypes.c_uint8 * length).from_buffer_copy(data)


def key(value):
    """A public key, 32 bytes."""
    return _bytes("key", value, 32)


def secret(value):
    """A signing key, 64 bytes."""
    return _bytes("secret", value, 64)

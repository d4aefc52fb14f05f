# SPDX-License-Identifier: Apache-2.0
"""_library.py - finds libfedkt, loads it and declares its functions; turns a status into an exception.

The library is looked for in this order: the file that FEDKT_LIBRARY names, the one that came with the package
(`lib/` beside this file), the system's.

OpenBLAS chooses its kernels while it is loaded, by the processor's model number, and takes a processor that it does not
know for one of 2004 (`fedkt/machine.h`). The command line starts itself again with OPENBLAS_CORETYPE; a package cannot
start Python again. So, unless the variable is set, a small Python process loads the library first and says what it
should be, and it is set here before the library is loaded. Results are then those of the command line, bit for bit.
It is too late where another package has loaded the same OpenBLAS file already (NumPy of a Linux distribution, not of
PyPI): a warning says so.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import subprocess
import sys
import warnings

from . import _declarations as c
from .errors import Status, error_of

__version__ = "0.1.0"

CORE = "OPENBLAS_CORETYPE"
_PROBE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.fkt_blas_core_advice.restype = ctypes.c_char_p
sys.stdout.write((library.fkt_blas_core_advice() or b"").decode())
"""


def find():
    """The path of the library, or a name for the dynamic linker."""
    named = os.environ.get("FEDKT_LIBRARY")
    if named:
        return named
    own = sorted((pathlib.Path(__file__).parent / "lib").glob("libfedkt.so*"))
    return str(own[0]) if own else ctypes.util.find_library("fedkt") or "libfedkt.so.0"


def _set_blas_core(path):
    if CORE in os.environ or not sys.executable:
        return
    try:
        words = [sys.executable, "-I", "-S", "-c", _PROBE, path]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return
    if done.returncode == 0 and done.stdout:
        os.environ[CORE] = done.stdout


def _load():
    path = find()
    _set_blas_core(path)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"cannot load the fedkt library: {error}; set FEDKT_LIBRARY to the path of libfedkt.so"
        ) from None
    for name, (result, parameters) in c.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            continue  # a library without HTTPS lacks some (FEDKT_NET=OFF); using one raises AttributeError
        function.restype = result
        function.argtypes = parameters
    version = library.fkt_version().decode()
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"fedkt {__version__} needs the library of the same minor version, but {path} is {version}")
    wanted = library.fkt_blas_core_advice()
    if wanted:
        warnings.warn(
            f"OpenBLAS runs on kernels for '{library.fkt_blas_core().decode()}', which are slow on this processor, and "
            f"was loaded before fedkt; set {CORE}={wanted.decode()} before Python starts, or import fedkt first",
            RuntimeWarning,
            stacklevel=4,
        )
    return library


lib = _load()


def library_version():
    """The version of the C library that is loaded.

    >>> import fedkt
    >>> fedkt.library_version() == fedkt.__version__
    True
    """
    return lib.fkt_version().decode()


def last_error(status):
    """The exception of the call that has just failed in this thread."""
    values = [lib.fkt_error_hint_value(i).decode("utf-8", "replace") for i in (0, 1)]
    return error_of(
        status,
        lib.fkt_error_text().decode("utf-8", "replace") or Status(status).name,
        lib.fkt_error_hint().decode("utf-8", "replace"),
        lib.fkt_error_hint_code(),
        [value for value in values if value],
    )


def check(status):
    """Raises for every status but OK. To be called in the thread of the call, before another one."""
    if status != Status.OK:
        raise last_error(status)

# SPDX-License-Identifier: Apache-2.0
"""fedkt - one synthetic, differentially private image dataset from many sites.

A thin layer over the C library, whose headers have the details (`include/fedkt`). Images are uint8 RGB arrays; they
and what is computed are passed without copies. A failed call raises `FedktError`.
"""

from ._library import __version__, library_version  # before NumPy: see _library.py
from .datasets import Dataset
from .errors import (
    ArgumentError,
    BudgetError,
    DataError,
    FedktError,
    Hint,
    MachineError,
    PeerError,
    Status,
    Stopped,
)

__all__ = [
    "ArgumentError",
    "BudgetError",
    "DataError",
    "Dataset",
    "FedktError",
    "Hint",
    "MachineError",
    "PeerError",
    "Status",
    "Stopped",
    "__version__",
    "library_version",
]

# SPDX-License-Identifier: Apache-2.0
"""fedkt - one synthetic, differentially private image dataset from many sites.

A thin layer over the C library, whose headers have the details (`include/fedkt`). Images are uint8 RGB arrays; they
and what is computed are passed without copies. A failed call raises `FedktError`.

    images -> Dataset -> moments(task, data) -> release(task, [...], ledger=...) -> Release: heads, images, samples
    PRIVATE until the release; public from there on, whatever is done with it
"""

from ._library import __version__, library_version  # before NumPy: see _library.py
from .codecs import Calibration, Codec
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
from .draw import release
from .gaussians import Gaussians
from .heads import Head, WholeModel, evaluate_heads
from .models import Evaluation, Model, evaluate
from .pipelines import Moments, Pipeline, encode, moments
from .plans import PrivacyPlan, privacy
from .releases import Release
from .simulation import Simulation, simulate
from .tasks import Federation, Service, Task
from .training import Epoch, train

__all__ = [
    "ArgumentError",
    "BudgetError",
    "Calibration",
    "Codec",
    "DataError",
    "Dataset",
    "Epoch",
    "Evaluation",
    "Federation",
    "FedktError",
    "Gaussians",
    "Head",
    "Hint",
    "MachineError",
    "Model",
    "Moments",
    "PeerError",
    "Pipeline",
    "PrivacyPlan",
    "Release",
    "Service",
    "Simulation",
    "Status",
    "Stopped",
    "Task",
    "WholeModel",
    "__version__",
    "encode",
    "evaluate",
    "evaluate_heads",
    "library_version",
    "moments",
    "privacy",
    "release",
    "simulate",
    "train",
]

# SPDX-License-Identifier: Apache-2.0
"""fedkt - one synthetic, differentially private image dataset from many sites.

A thin layer over the C library, whose headers have the details (`include/fedkt`). Images are uint8 RGB arrays; they
and what is computed are passed without copies. A failed call raises `FedktError`.

    images -> Dataset -> moments(task, data) -> release(task, [...], ledger=...) -> Release: heads, images, samples
    PRIVATE until the release; public from there on, whatever is done with it
"""

from ._library import __version__, library_version  # before NumPy: see _library.py
from .carrier import Message, TaskClient, TaskServer
from .codecs import Calibration, Codec
from .cohorts import Cohorts, CohortSum
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
from .keys import Key, SiteKey, enroll, load_roster
from .models import Evaluation, Model, evaluate
from .pipelines import Moments, Pipeline, encode, moments
from .plans import PrivacyPlan, privacy
from .releases import Release
from .remote import JoinEvent, JoinResult, ServeEvent, ServeView, Verification, join, serve, verify
from .secagg import SecAggClient, SecAggParams, SecAggServer
from .simulation import Simulation, simulate
from .tasks import Federation, Service, Task
from .training import Epoch, train

__all__ = [
    "ArgumentError",
    "BudgetError",
    "Calibration",
    "Codec",
    "CohortSum",
    "Cohorts",
    "DataError",
    "Dataset",
    "Epoch",
    "Evaluation",
    "Federation",
    "FedktError",
    "Gaussians",
    "Head",
    "Hint",
    "JoinEvent",
    "JoinResult",
    "Key",
    "MachineError",
    "Message",
    "Model",
    "Moments",
    "PeerError",
    "Pipeline",
    "PrivacyPlan",
    "Release",
    "SecAggClient",
    "SecAggParams",
    "SecAggServer",
    "ServeEvent",
    "ServeView",
    "Service",
    "Simulation",
    "SiteKey",
    "Status",
    "Stopped",
    "Task",
    "TaskClient",
    "TaskServer",
    "Verification",
    "WholeModel",
    "__version__",
    "encode",
    "enroll",
    "evaluate",
    "evaluate_heads",
    "join",
    "library_version",
    "load_roster",
    "moments",
    "privacy",
    "release",
    "serve",
    "simulate",
    "train",
    "verify",
]

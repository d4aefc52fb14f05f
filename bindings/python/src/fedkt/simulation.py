# SPDX-License-Identifier: Apache-2.0
"""simulation.py - many sites in one process: what accuracy does a release have at which epsilon?"""

from __future__ import annotations

import ctypes
import json

import numpy as np

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from ._work import Work
from .codecs import DEFAULT_CODEC, DEFAULT_GUIDE, Calibration, Codec
from .datasets import Dataset
from .errors import Status, argument_error
from .ranks import shared
from .releases import Release, guided_options
from .training import recipe_of

PHASES = {
    lib.fkt_sa_state_name(i).decode(): i for i in range(c.FKT_SA_STATE_ADVERTISE, c.FKT_SA_STATE_REVEAL + 1)
}


class Simulation(Handle):
    """A finished simulation. Arms are its releases, one for each epsilon, and last the reference from exact moments,
    which is NOT private; nor are the accuracies."""

    _free = "fkt_sweep_free"
    _noun = "simulation"

    @property
    def names(self):
        """Of the arms: "epsilon 10", ..., "no privacy"."""
        with self._use() as p:
            return [
                _values.decode(lib.fkt_sweep_arm(p, i).contents.name) for i in range(lib.fkt_sweep_arms(p))
            ]

    @property
    def releases(self):
        """The first release of each epsilon."""
        found = []
        with self._use() as p:
            for i in range(lib.fkt_sweep_arms(p) - 1):
                release = Release(owner=self)
                release._pointer = ctypes.c_void_p(lib.fkt_sweep_arm(p, i).contents.release)
                found.append(release)
        return found

    def accuracy(self, arm, head="lda"):
        """(mean, standard deviation) over the draws of an arm; NaN without test data."""
        kind = _values.choice("head", head, lib.fkt_head_parse)
        mean, deviation = ctypes.c_double(), ctypes.c_double()
        with self._use() as p:
            arm = _values.whole("arm", arm, 0, lib.fkt_sweep_arms(p) - 1)
            lib.fkt_sweep_accuracy(p, arm, kind, ctypes.byref(mean), ctypes.byref(deviation))
        return mean.value, deviation.value

    def _json(self, function):
        text = ctypes.c_char_p()
        with self._use() as p:
            check(function(p, ctypes.byref(text)))
        try:
            return json.loads(text.value)
        finally:
            lib.fkt_string_free(text)

    @property
    def results(self):
        """Everything, as `fedkt simulate --json` prints it. NOT private."""
        return self._json(lib.fkt_sweep_results_json)

    @property
    def partition(self):
        """The owner of each record. NOT private."""
        return self._json(lib.fkt_sweep_partition_json)

    def tiles(self, arm, rows, columns, *, guided=True):
        """Samples of an arm for a sheet: uint8 (rows, columns, S, S, 3), a class in each row."""
        with self._use() as p:
            arm = _values.whole("arm", arm, 0, lib.fkt_sweep_arms(p) - 1)
            task = lib.fkt_pipeline_task(lib.fkt_sweep_pipeline(p))
            rows = _values.whole("rows", rows, 1, lib.fkt_task_classes(task))
            columns = _values.whole("columns", columns, 1, 10**6)
            size = lib.fkt_task_size(task)
            out = np.empty((rows, columns, size, size, 3), np.uint8)
            Work().run(lib.fkt_sweep_tiles, p, arm, bool(guided), rows, columns, _values.address(out))
        return out

    def generate(self, arm, folder, per_class, *, format="folder", force=False):
        """A dataset from the release of an arm, as `Release.generate` writes it."""
        with self._change() as p:
            arm = _values.whole("arm", arm, 0, lib.fkt_sweep_arms(p) - 2)
            Work().run(
                lib.fkt_sweep_generate, p, arm, _values.path("folder", folder, optional=False),
                _values.whole("per_class", per_class, 1, 10**8),
                _values.choice("format", format, lib.fkt_export_parse), bool(force),
            )  # fmt: skip

    def __repr__(self):
        return "<fedkt.Simulation, closed>" if self.closed else f"<fedkt.Simulation: {', '.join(self.names)}>"


def _epsilons(epsilon):
    try:
        found = np.ascontiguousarray(np.atleast_1d(np.asarray(epsilon, float)))
    except (TypeError, ValueError):
        found = np.empty((0, 0))
    if found.ndim != 1:
        raise argument_error("epsilon must be a number or several")
    return found


def _dropout(spec, dropout):
    if dropout is None:
        return
    phases = dropout if isinstance(dropout, dict) else {"mask": dropout}
    for phase, share in phases.items():
        if phase not in PHASES:
            raise argument_error(f"dropout: '{phase}' is none of {', '.join(PHASES)}")
        spec.dropout[PHASES[phase]] = _values.real("dropout", share)


def _parts(spec, codec, guide, size, dim, calibration, guide_calibration, choices, machine):
    """Networks and calibrations, which the sweep takes."""
    if guide == "default":
        guide = DEFAULT_GUIDE if codec is None or codec == DEFAULT_CODEC else None
    machine = dict(machine)
    weights, guide_weights = machine.pop("weights", None), machine.pop("guide_weights", None)
    opened = []
    for name, file, own, free in ((codec, calibration, weights, dim), (guide, guide_calibration, guide_weights, 0)):
        if name is None:
            continue
        if isinstance(name, Codec):
            raise argument_error("codec and guide are given by name: the simulation takes them over")
        network = Codec(name, size, free, weights=own, **machine)
        opened.append((network, Calibration.of(network, file)))
    if not opened:
        raise argument_error("a task needs a codec, a guide, or both")
    spec.parts = len(opened)
    for i, (network, cal) in enumerate(opened):
        spec.part[i] = c.PartChoice(clip=choices.pop("clip", 0.0) if network.decodes else 0.0, **choices)
        spec.codec[i] = network._pointer
        spec.calibration[i] = ctypes.pointer(cal._struct)
    return opened


def simulate(data, *, epsilon, delta, test=None, holdout=0.0, sites=20, partition="iid", participation=1.0,
             dropout=None, dropped=None, corrupt=None, records=0, noise=None, keystream="aes-256-ctr", runs=1, seed=0,
             insecure_seed=None, codec=DEFAULT_CODEC, guide="default", size=32, dim=0, calibration=None,
             guide_calibration=None, adjacency="add-remove", mechanism="joint", filter="bilinear", fit="crop",
             joined=False, pooled=False, coordinates="gain-shape", gamma=0.0, clip=0.0, rq=0, estimator="clamp",
             guided="auto", name="fedkt simulation", accept_weak=False, encodings=None, skip_bad=False, threads=0,
             train=None, train_per_class=500, comm=None, progress=None, **machine):  # fmt: skip
    """`fedkt simulate`: the records of `data` over sites, a round of secure aggregation and a release for each epsilon,
    closed-form heads and their accuracies on `test` or on a share of the data that is held out.

    epsilon: a number or several. partition: "iid", "dirichlet:0.3", "pfllib:0.3" or "pathological:2". dropout: the
    share of sites that are lost before their upload, or {phase: share}. train: "resnet18" or "resnet8", a network for
    each arm, with train_per_class images of each class; or a dictionary {"network": ..., "epochs": ..., ...}.

    comm: a communicator of mpi4py, `MPI.COMM_WORLD` say, whose processes all make this call with the same arguments
    and share the encoding. The first gets the simulation, the same as of one process to the bit; the others get None.
    What they send each other is PRIVATE, and MPI does not encrypt it (`docs/cluster.md`).

    >>> import fedkt
    >>> found = fedkt.simulate("demo:train", epsilon=[10, 1], delta=1e-5, test="demo:test", sites=5, codec="dct",
    ...                        size=16, dim=16)
    >>> found.names
    ['epsilon 10', 'epsilon 1', 'no privacy']
    >>> found.accuracy(0)[0] > 0.2
    True
    """
    spec = c.SweepSpec()
    lib.fkt_sweep_default(ctypes.byref(spec))
    work = Work(progress)
    self, kept = Simulation(), ctypes.c_void_p()
    try:
        with shared(comm, work) as ranks:
            adjacent = _values.choice("adjacency", adjacency, lib.fkt_adjacency_parse)
            by_number = bool(lib.fkt_adjacency_counts_public(adjacent))
            images = data if isinstance(data, Dataset) else Dataset.of(data, fit=fit, limit_by_number=by_number)
            tested = None
            if test is not None:
                tested = test if isinstance(test, Dataset) else Dataset.of(test, fit=fit, classes=images.classes)
            epsilons = _epsilons(epsilon)
            spec.epsilon, spec.n_epsilon = _values.address(epsilons), len(epsilons)
            spec.holdout = _values.real("holdout", holdout)
            spec.draws = _values.whole("runs", runs, 1, c.FKT_SWEEP_DRAWS_MAX)
            spec.seed = _values.whole("seed", seed)
            spec.partition = c.PartitionSpec(sites=_values.whole("sites", sites, 1, 10**6), seed=spec.seed)
            words = _values.text("partition", partition, optional=False)
            check(lib.fkt_partition_parse(ctypes.byref(spec.partition), words))
            spec.participation = _values.real("participation", participation)
            _dropout(spec, dropout)
            if dropped is not None:
                spec.dropped = _values.whole("dropped", dropped, 0, _values.U32 - 1)
            if corrupt is not None:
                spec.corrupt = _values.whole("corrupt", corrupt, 0, _values.U32 - 1)
            spec.records = _values.whole("records", records)
            spec.noise = -1 if noise is None else _values.choice("noise", noise, lib.fkt_noise_parse)
            spec.keystream = _values.choice("keystream", keystream, lib.fkt_keystream_parse)
            spec.estimator = _values.choice("estimator", estimator, lib.fkt_estimator_parse)
            spec.guided = guided_options(guided)
            known = ctypes.c_uint64(0 if insecure_seed is None else _values.whole("insecure_seed", insecure_seed))
            if insecure_seed is not None:
                spec.insecure_seed = ctypes.addressof(known)
            spec.skip_bad, spec.threads = bool(skip_bad), _values.whole("threads", threads, 0, 4096)
            spec.progress = work.hook
            spec.task = c.TaskChoices(
                name=_values.text("name", name),
                filter=_values.choice("filter", filter, lib.fkt_filter_parse),
                fit=_values.choice("fit", fit, lib.fkt_fit_parse),
                joined=bool(joined),
                pooled=bool(pooled),
                accept_weak=bool(accept_weak),
                privacy=c.PrivacySpec(
                    delta=_values.real("delta", delta),
                    adjacency=adjacent,
                    mechanism=_values.choice("mechanism", mechanism, lib.fkt_mechanism_parse),
                ),
            )
            choices = {
                "coordinates": _values.choice("coordinates", coordinates, lib.fkt_coordinate_parse),
                "gamma": _values.real("gamma", gamma),
                "clip": _values.real("clip", clip),
                "rq": _values.whole("rq", rq, 0, _values.U32),
            }
            if encodings is not None:
                check(lib.fkt_encodings_open(ctypes.byref(kept), _values.path("encodings", encodings)))
                spec.encodings = kept
            self._hold(images)  # the sweep reads them until it is freed
            spec.data = images._pointer
            if tested is not None:
                self._hold(tested)
                spec.test = tested._pointer
            self._keep = (spec, work, known, ranks)
            opened = _parts(spec, codec, guide, size, dim, calibration, guide_calibration, choices, machine)
            _run(self, spec, work, opened, ranks)
        if not ranks.first:
            return None
        if train is not None:
            _train(self, train, train_per_class, skip_bad, spec, work, machine.get("device", "cpu"))
    finally:
        lib.fkt_encodings_close(kept)
    return self


def _run(self, spec, work, opened, ranks):
    """The sweep. A rank that fails by itself calls fkt_ranks_agree, in which the others are waiting for it."""

    def call():
        status = lib.fkt_sweep_new(ctypes.byref(self._pointer), ctypes.byref(spec))
        if status == Status.OK:
            status = lib.fkt_sweep_run(self._pointer)
        return lib.fkt_ranks_agree(ranks.struct, status)

    ranks.begin()
    spec.ranks = ranks.struct
    try:
        work.run(call)
    finally:
        for network, _ in opened:  # taken, also when it fails
            network._pointer = ctypes.c_void_p()
            network.close()


def _train(self, train, per_class, skip_bad, spec, work, device):
    options = {"network": train} if isinstance(train, str) else dict(train)
    network = c.SweepNetwork(
        architecture=_values.choice("network", options.pop("network", "resnet18"), lib.fkt_architecture_parse),
        per_class=_values.whole("train_per_class", per_class, 1, 10**8),
        skip_bad=bool(skip_bad),
        progress=work.hook,
    )
    options.setdefault("seed", spec.seed)
    options.setdefault("threads", spec.threads)
    network.recipe = recipe_of(device=device, **options)
    with self._change() as p:
        work.run(lib.fkt_sweep_train, p, ctypes.byref(network))

# SPDX-License-Identifier: Apache-2.0
"""training.py - a network from a release, or from images: what `fedkt train` does.

A model that has seen nothing but a private release is as private as the release. What it may claim is in its origin.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from ._work import Work
from .datasets import Dataset
from .errors import Status, argument_error
from .gaussians import estimate_options
from .models import Model
from .releases import Release, guided_options

USUAL_SIZE = 32
_WHOLE = {"epochs": _values.U32, "batch": _values.U32, "pad": _values.U32, "seed": _values.U64, "threads": 4096}
_REAL = ("rate", "momentum", "decay", "warmup", "step_every", "step_by", "smoothing", "ema", "beta1", "beta2",
         "temperature")  # fmt: skip
OPTIMIZERS = {"sgd": c.FKT_LEARN_SGD, "adam": c.FKT_LEARN_ADAM}
DTYPES = {"f32": c.FKT_LEARN_DTYPE_F32, "bf16": c.FKT_LEARN_DTYPE_BF16}


def _member(name, value, table):
    if value not in table:
        raise argument_error(f"{name}: '{value}' is none of {', '.join(table)}")
    return table[value]


def recipe_of(device="cpu", schedule=None, optimizer="sgd", dtype="f32", flip=True, nesterov=True, **numbers):
    """struct fkt_recipe: the library's defaults, and what is given."""
    recipe = c.Recipe()
    lib.fkt_recipe_default(ctypes.byref(recipe))
    for name, value in numbers.items():
        if value is None:
            continue
        if name in _WHOLE:
            setattr(recipe, name, _values.whole(name, value, 0, _WHOLE[name]))
        elif name in _REAL:
            setattr(recipe, name, _values.real(name, value))
        else:
            raise TypeError(f"train() has no option '{name}'")
    recipe.optimizer = _member("optimizer", optimizer, OPTIMIZERS)
    if recipe.optimizer == c.FKT_LEARN_ADAM and numbers.get("rate") is None:
        recipe.rate = 0.001
    if schedule is not None:
        recipe.schedule = _values.choice("schedule", schedule, lib.fkt_schedule_parse)
    recipe.dtype = _member("dtype", dtype, DTYPES)
    recipe.flip, recipe.nesterov = bool(flip), bool(nesterov)
    recipe.device = _values.device(device)
    return recipe


class Epoch(dict):
    """What one epoch came to, by the names of struct fkt_epoch: epoch, loss, accuracy, held_loss, ..."""

    @classmethod
    def of(cls, struct):
        return cls({name: getattr(struct, name) for name, *_ in struct._fields_})


class _Source(Handle):
    _free = "fkt_training_source_free"
    _noun = "training source"


class _Teacher(Handle):
    _free = "fkt_teacher_free"
    _noun = "teacher"


class _Trainer(Handle):
    _free = "fkt_trainer_free"
    _noun = "trainer"


class _Job:
    """One training run: everything that the library borrows while it lasts."""

    def __init__(self, work):
        self.work, self.stack = work, contextlib.ExitStack()
        self.kept = []

    def use(self, handle):
        return self.stack.enter_context(handle._use())

    def read(self, data, recipe, size, filter, order, folder):
        spec = c.TrainingSourceSpec(
            data=self.use(data),
            folder=folder,
            size=size,
            filter=_values.choice("filter", filter, lib.fkt_filter_parse),
            order=None if order is None else self.use(order),
            options=c.TrainingSetOptions(threads=recipe.threads, progress=self.work.hook),
        )
        return self._source(spec)

    def draw(self, release, recipe, per_class, draw_seed, fresh, estimate, guided, teach, machine, order):
        all_networks = teach is not None or guided.kind in (c.FKT_GUIDED_ON, c.FKT_GUIDED_GRADIENT)
        pipeline = release.pipeline(networks="all" if all_networks else "codec", **machine)
        spec = c.TrainingSourceSpec(
            release=self.use(release),
            fresh=bool(fresh),
            order=None if order is None else self.use(order),
            options=c.TrainingSetOptions(threads=recipe.threads, progress=self.work.hook),
            draw=c.DrawOptions(
                per_class=per_class, seed=draw_seed, estimate=estimate, guided=guided, pipeline=self.use(pipeline)
            ),
        )
        if teach is not None:
            teacher = _Teacher()
            kind = _values.choice("teacher_head", teach[0], lib.fkt_head_parse)
            parts = _values.choice("teacher_parts", teach[1], lib.fkt_heads_on_parse)
            into, pipeline = ctypes.byref(teacher._pointer), spec.draw.pipeline
            self.work.run(lib.fkt_teacher_of_release, into, spec.release, pipeline, kind, parts)
            spec.teacher = self.use(teacher)
        return self._source(spec)

    def _source(self, spec):
        source = _Source()
        self.kept.append(spec)
        self.work.run(lib.fkt_training_source_new, ctypes.byref(source._pointer), ctypes.byref(spec))
        return self.use(source)


def train(source, *, per_class=500, draw_seed=0, fresh=False, guided="auto", estimator="clamp", tau=0.0, pool=0.0,
          mix=None, public=None, public_name="public images", public_each=0, holdout=0.0, network="resnet18",
          stem="cifar", size=None, filter="bilinear", start=None, teacher=None, teacher_head="rda",
          teacher_parts="default", teacher_share=None, checkpoint=None, checkpoint_steps=0, resume=False,
          averaged=False, on_epoch=None, progress=None, machine=None, **recipe):  # fmt: skip
    """`fedkt train`: a Model that learns from a Release (images are drawn and decoded in memory) or from a dataset (a
    Dataset, a path, arrays or records).

    per_class, draw_seed, fresh, guided, estimator, tau, pool: of a release; fresh draws others in each epoch. mix: real
    images beside them; the model is then NOT private. public: unlabelled public images, which teacher="head" labels.
    holdout: the share on which epochs are evaluated. start: a Model to start from. teacher: "head", the release's own,
    or a Model. recipe: epochs, batch, rate, momentum, decay, schedule, warmup, step_every, step_by, flip, pad,
    smoothing, ema, temperature, optimizer, beta1, beta2, nesterov, dtype, seed, threads, device. averaged: the result
    is the moving average (ema). on_epoch gets an Epoch; a true answer stops. The recipe repeats to the bit on one
    machine with the same number of threads.

    >>> import fedkt
    >>> data = fedkt.Dataset.open("demo:train", limit=200)
    >>> task = fedkt.Task.make(data.classes, epsilon=10, delta=1e-5, codec="dct", size=16, dim=32)
    >>> release = fedkt.release(task, fedkt.moments(task, data), ledger=None)
    >>> model = fedkt.train(release, per_class=10, network="resnet8", epochs=1, batch=20, pad=2)
    >>> model.origin["is_private"], model.origin["epsilon"]
    (True, 10.0)
    """
    taught_by_head = isinstance(teacher, str)
    if taught_by_head and teacher != "head":
        raise argument_error(f"teacher: '{teacher}' is neither 'head' nor a Model")
    if taught_by_head and not isinstance(source, Release):
        raise argument_error("teacher='head' needs a release")
    if public is not None and not taught_by_head:
        raise argument_error("public images need teacher='head', which labels them")
    if taught_by_head and recipe.get("temperature") is None:
        recipe["temperature"] = c.FKT_TEACHER_TEMPERATURE
    numbers = recipe_of(**recipe)
    numbers.share = 0.0 if teacher is None else 1.0 if taught_by_head else 0.5
    if teacher is not None and teacher_share is not None:
        numbers.share = _values.real("teacher_share", teacher_share)
    check(lib.fkt_recipe_check(ctypes.byref(numbers)))
    taught_by_model = None if teacher is None or taught_by_head else teacher
    like = start if start is not None else taught_by_model
    work = Work(progress)
    job = _Job(work)
    with job.stack:
        if isinstance(source, Release):
            least = 0 if public is not None else 1
            images = job.draw(
                source, numbers, _values.whole("per_class", per_class, least, 10**8),
                _values.whole("draw_seed", draw_seed), fresh, estimate_options(estimator, tau, pool),
                guided_options(guided), (teacher_head, teacher_parts) if taught_by_head else None, dict(machine or {}),
                like,
            )  # fmt: skip
        else:
            folder = os.fsencode(source) if isinstance(source, (str, bytes, os.PathLike)) else None
            side = size if size is not None else like.size if like is not None else USUAL_SIZE
            images = job.read(
                Dataset.of(source), numbers, _values.whole("size", side, 1, 65535), filter, like, folder
            )
        _add_images(job, images, holdout, numbers, mix, public, public_name, public_each)
        return _learn(job, images, numbers, network, stem, start, taught_by_model, checkpoint, checkpoint_steps, resume,
                      averaged, on_epoch, recipe)  # fmt: skip


def _add_images(job, images, holdout, numbers, mix, public, public_name, public_each):
    share = _values.real("holdout", holdout)
    if share != 0:
        job.work.run(lib.fkt_training_source_hold_out, images, share, numbers.seed, numbers.epochs)
    if mix is not None:
        job.work.run(lib.fkt_training_source_mix, images, job.use(Dataset.of(mix)), None)
    if public is not None:
        unlabelled = {"unlabelled": True} if isinstance(public, (str, bytes, os.PathLike)) else {}
        job.work.run(
            lib.fkt_training_source_public, images, job.use(Dataset.of(public, **unlabelled)),
            _values.text("public_name", public_name), _values.whole("public_each", public_each), None,
        )  # fmt: skip


def _learn(job, images, numbers, network, stem, start, teacher, checkpoint, checkpoint_steps, resume, averaged,
           on_epoch, told):  # fmt: skip
    pictures = lib.fkt_training_source_set(images).contents
    spec = c.ModelSpec(
        architecture=_values.choice("network", network, lib.fkt_architecture_parse),
        stem=_values.choice("stem", stem, lib.fkt_stem_parse),
        size=pictures.size,
        classes=pictures.classes,
        n_classes=pictures.n_classes,
        seed=numbers.seed,
    )
    first, trainer, model = Model(), _Trainer(), Model()
    given = None if start is None else job.use(start)
    job.work.run(lib.fkt_model_start, ctypes.byref(first._pointer), given, ctypes.byref(spec), None)
    run_spec = c.TrainerSpec(
        start=job.use(first),
        recipe=numbers,
        held=lib.fkt_training_source_held(images),
        teacher=None if teacher is None else job.use(teacher),
    )
    lib.fkt_training_source_images(images, ctypes.byref(run_spec.source))
    job.work.run(lib.fkt_trainer_new, ctypes.byref(trainer._pointer), ctypes.byref(run_spec))
    path = _values.path("checkpoint", checkpoint)
    t = job.use(trainer)
    if resume and path is not None and os.path.exists(path):
        job.work.run(lib.fkt_trainer_resume, t, path)

    def epoch(_ctx, struct):
        if on_epoch is None:
            return Status.OK
        stop = job.work.guard(lambda: bool(on_epoch(Epoch.of(struct.contents))), True)
        if stop:
            job.work.ask_to_stop()
        return Status.STOPPED if stop else Status.OK

    hooks = c.TrainerHooks(
        epoch=c.TrainerHooks._fields_[0][1](epoch),
        checkpoint=path,
        checkpoint_steps=_values.whole("checkpoint_steps", checkpoint_steps, 0, _values.U32),
        progress=job.work.hook,
    )
    job.work.run(lib.fkt_trainer_run, t, ctypes.byref(hooks))
    job.work.run(lib.fkt_trainer_model, t, bool(averaged), ctypes.byref(model._pointer))
    n = ctypes.c_size_t()
    history = lib.fkt_trainer_history(t, ctypes.byref(n))
    model.history = [Epoch.of(history[i]) for i in range(n.value)]
    origin = c.ModelOrigin()
    lib.fkt_training_origin(ctypes.byref(origin), ctypes.byref(pictures), given, run_spec.teacher)
    words = ", ".join(f"{k}={v!r}" for k, v in sorted(told.items()))
    origin.recipe = f"fedkt.train({words})".encode()[:511]
    with model._use() as m:
        lib.fkt_model_set_origin(m, ctypes.byref(origin))
    return model


# SPDX-License-Identifier: Apache-2.0
"""pipelines.py - images to latents and to moments under a task.

Latents and moments carry no noise: they are as PRIVATE as the images. Only a release and what is made of it may leave.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

import numpy as np

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from ._work import Work, run
from .codecs import settings
from .errors import argument_error
from .tasks import Task


class Records(Handle):
    """Which images some moments are about. As PRIVATE as the images."""

    _free = "fkt_records_free"
    _noun = "set of records"

    def __init__(self, task):
        super().__init__()
        check(lib.fkt_records_new(ctypes.byref(self._pointer), task._privacy.adjacency))

    @property
    def copies(self):
        """How many were exact copies of another one."""
        with self._use() as p:
            return lib.fkt_records_copies(p)


class Moments(Handle):
    """Exact counts, sums and second moments per class of some records. PRIVATE.

    >>> import fedkt
    >>> data = fedkt.Dataset.open("demo:train", limit=50)
    >>> task = fedkt.Task.make(data.classes, epsilon=8, delta=1e-5, codec="dct", size=16, dim=32)
    >>> moments = fedkt.moments(task, data)
    >>> moments.counts.tolist()
    [5, 5, 5, 5, 5, 5, 5, 5, 5, 5]
    """

    _free = "fkt_moments_free"
    _noun = "moments"

    def __init__(self, task):
        super().__init__()
        self.task = task
        with task._use() as t:
            check(
                lib.fkt_moments_new(
                    ctypes.byref(self._pointer), lib.fkt_task_classes(t), lib.fkt_task_layout(t), 0
                )
            )
        self.records = Records(task)
        self.skipped = 0

    @classmethod
    def load(cls, task, path):
        """A file of `fedkt moments`, of this task."""
        self = cls(Task.of(task))
        with self.task._use() as t, self._use() as p, self.records._use() as r:
            run(lib.fkt_moments_load, p, t, _values.path("path", path, optional=False), r)
        return self

    def save(self, path, *, force=False):
        with self.task._use() as t, self._change() as p, self.records._change() as r:
            check(lib.fkt_moments_save(p, t, r, _values.path("path", path, optional=False), bool(force)))

    @property
    def packed(self):
        """A copy of the integers, in the order of the task's layout."""
        out = ctypes.c_void_p()
        with self._change() as p:
            check(lib.fkt_moments_packed(p, ctypes.byref(out)))
            return _values.copied(out.value, ctypes.c_int64, (lib.fkt_moments_numbers(p),))

    @property
    def counts(self):
        """(K) records of each class."""
        packed = self.packed
        with self._use() as p:
            classes, layout = lib.fkt_moments_classes(p), lib.fkt_moments_layout(p)
            at = [lib.fkt_layout_count(layout, classes, k) for k in range(classes)]
        return packed[at]

    @property
    def sha256(self):
        out = ctypes.create_string_buffer(c.FKT_SHA256_HEX)
        with self._change() as p:
            check(lib.fkt_moments_sha256(p, out))
        return _values.decode(out.value)

    def __repr__(self):
        if self.closed:
            return "<fedkt.Moments, closed>"
        return f"<fedkt.Moments of {int(self.counts.sum())} records: PRIVATE>"


class Pipeline(Handle):
    """An opened task: the networks of its parts, calibrations and coordinates. It may be used from many threads."""

    _free = "fkt_pipeline_free"
    _noun = "pipeline"

    def __init__(self, task, *, calibration=None, guide_calibration=None, networks=True, **machine):
        """networks False: a pipeline that begins at latents, for which weights need not be there. machine: weights,
        guide_weights, dtype, low_memory, device."""
        super().__init__()
        self.task = Task.of(task)
        files = c.PartFiles(
            _values.path("calibration", calibration), _values.path("guide_calibration", guide_calibration)
        )
        with self.task._use() as t:
            if networks:
                options = settings(**machine)
                run(lib.fkt_pipeline_open, ctypes.byref(self._pointer), t, ctypes.byref(files), ctypes.byref(options))
            else:
                run(lib.fkt_pipeline_open_latents, ctypes.byref(self._pointer), t, ctypes.byref(files))

    @property
    def length(self):
        """Numbers of a record vector, all parts."""
        with self._use() as p:
            return lib.fkt_pipeline_length(p)

    def vectors(self, images):
        """uint8 (n, S, S, 3) to record vectors (n, length) float64, and their integers (n, length) int32. PRIVATE. It
        runs on the calling thread."""
        size = self.task.size
        images = _values.array("images", images, np.uint8, (None, size, size, 3))
        with self._use() as p:
            length = lib.fkt_pipeline_length(p)
            w = np.zeros((len(images), length))
            q = np.zeros((len(images), length), np.int32)
            if len(images):
                run(lib.fkt_pipeline_vectors, p, _values.address(images), len(images), _values.address(w),
                    _values.address(q))  # fmt: skip
        return w, q

    def decode(self, vectors):
        """Record vectors (n, length) to images, by the codec's part of them."""
        with self._use() as p:
            vectors = _values.reals("vectors", vectors, (None, lib.fkt_pipeline_length(p)))
            size = self.task.size
            images = np.empty((len(vectors), size, size, 3), np.uint8)
            if len(vectors):
                run(lib.fkt_pipeline_decode, p, _values.address(vectors), len(vectors), _values.address(images))
        return images

    def encode(self, data, path, *, force=False, skip_bad=False, encodings=None, threads=0, progress=None):
        """Latents of all records to a safetensors file, as `fedkt encode` writes it. Gives the number of records."""
        with Run(self, data, skip_bad, encodings, threads, progress) as r:
            r.work.run(
                lib.fkt_pipeline_encode, r.pipeline, r.data, None, 0, _values.path("path", path, optional=False),
                bool(force), ctypes.byref(r.options),
            )  # fmt: skip
            return lib.fkt_dataset_size(r.data) - r.skipped.count

    def moments(self, data, *, indices=None, skip_bad=False, encodings=None, threads=0, progress=None):
        """The moments of all records, or of some."""
        out = Moments(self.task)
        index = None
        if indices is not None:
            index = _values.labels("indices", indices, classes=len(data)).astype(np.uintp)
            if not len(index):
                return out
        with Run(self, data, skip_bad, encodings, threads, progress) as r, out._change() as m:
            with out.records._change() as records:
                r.options.records = records
                r.work.run(
                    lib.fkt_pipeline_moments, r.pipeline, r.data, None if index is None else _values.address(index),
                    0 if index is None else len(index), m, ctypes.byref(r.options),
                )  # fmt: skip
            out.skipped = r.skipped.count
        return out

    def latents_moments(self, path):
        """The moments of a latents file."""
        out = Moments(self.task)
        with self._use() as p, out._change() as m, out.records._change() as records:
            run(lib.fkt_pipeline_latents, p, _values.path("path", path, optional=False), m, records)
        return out


class Run:
    """Everything that lives during one pass over a dataset: handles in use, options, the folder of encodings."""

    def __init__(self, pipeline, data, skip_bad, encodings, threads, progress):
        self.pipeline_handle, self.data_handle, self.folder = pipeline, data, encodings
        self.work = Work(progress)
        self.skipped = c.Skipped()
        self.options = c.PipelineOptions(
            threads=_values.whole("threads", threads, 0, 4096), progress=self.work.hook
        )
        if skip_bad:
            self.options.skipped = ctypes.pointer(self.skipped)
        self.encodings = ctypes.c_void_p()

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            self.pipeline = self.stack.enter_context(self.pipeline_handle._use())
            self.data = self.stack.enter_context(self.data_handle._use())
            self.stack.callback(lib.fkt_skipped_clear, self.skipped)
            if self.folder is not None:
                check(lib.fkt_encodings_open(ctypes.byref(self.encodings), _values.path("encodings", self.folder)))
                self.stack.callback(lib.fkt_encodings_close, self.encodings)
                self.options.encodings = self.encodings
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()


def encode(task, data, path, *, force=False, skip_bad=False, encodings=None, threads=0, progress=None, calibration=None,
           guide_calibration=None, data_options=None, **machine):  # fmt: skip
    """`fedkt encode`: latents of the images under a task, into a file. PRIVATE. Gives the number of records.

    data: anything that `Dataset.of` takes; data_options go there. machine: weights, guide_weights, dtype, low_memory,
    device.
    """
    pipeline = Pipeline(task, calibration=calibration, guide_calibration=guide_calibration, **machine)
    images = _open(pipeline.task, data, skip_bad, data_options)
    return pipeline.encode(
        images, path, force=force, skip_bad=skip_bad, encodings=encodings, threads=threads, progress=progress
    )


def moments(task, data=None, *, latents=None, skip_bad=False, encodings=None, threads=0, progress=None,
            calibration=None, guide_calibration=None, data_options=None, **machine):  # fmt: skip
    """`fedkt moments`: the moments of images, or of a latents file, under a task. PRIVATE."""
    if (data is None) == (latents is None):
        raise argument_error("give either data or latents")
    files = {"calibration": calibration, "guide_calibration": guide_calibration}
    if latents is not None:
        return Pipeline(task, networks=False, **files).latents_moments(latents)
    pipeline = Pipeline(task, **files, **machine)
    images = _open(pipeline.task, data, skip_bad, data_options)
    return pipeline.moments(images, skip_bad=skip_bad, encodings=encodings, threads=threads, progress=progress)


def _open(task, data, skip_bad, options):
    options = dict(options or {})
    if isinstance(data, (str, bytes, os.PathLike)):
        options.setdefault("skip_bad", skip_bad)
    return task.open_data(data, **options)

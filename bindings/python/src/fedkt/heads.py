# SPDX-License-Identifier: Apache-2.0
"""heads.py - closed-form classifiers on record vectors, and whole models: a head with its encoders."""

from __future__ import annotations

import ctypes
import os
import tempfile

import numpy as np

from . import _declarations as c
from . import _safetensors, _values
from ._handle import Handle
from ._library import check, lib
from ._work import Work, run
from .errors import argument_error


class Head(Handle):
    """A closed-form head: "nearest_mean", "lda", "qda" or "rda". It may be used from many threads.

    It takes record vectors (`Pipeline.vectors`), all of their numbers or those of its own parts (`take`).
    """

    _free = "fkt_head_free"
    _noun = "head"

    @classmethod
    def load(cls, path):
        self = cls()
        check(lib.fkt_head_load(ctypes.byref(self._pointer), _values.path("path", path, optional=False)))
        return self

    def save(self, path, *, force=False):
        with self._use() as p:
            check(lib.fkt_head_save(p, _values.path("path", path, optional=False), bool(force)))

    @property
    def kind(self):
        with self._use() as p:
            return _values.decode(lib.fkt_head_name(lib.fkt_head_kind_of(p)))

    @property
    def classes(self):
        with self._use() as p:
            return [_values.decode(lib.fkt_head_class(p, k)) for k in range(lib.fkt_head_classes(p))]

    @property
    def length(self):
        """Numbers that it takes of a record vector."""
        with self._use() as p:
            return lib.fkt_head_length(p)

    @property
    def parts(self):
        """(offset, length) of each of its parts in the record vector."""
        with self._use() as p:
            return [
                (lib.fkt_head_part_offset(p, i), lib.fkt_head_part_length(p, i)) for i in range(lib.fkt_head_parts(p))
            ]

    def take(self, vectors):
        """The numbers of its parts, of whole record vectors."""
        vectors = np.asarray(vectors)
        parts = self.parts
        need = max(offset + length for offset, length in parts)
        if vectors.ndim != 2 or vectors.shape[1] < need:
            raise argument_error(f"record vectors must have the shape (n, {need} or more), not {vectors.shape}")
        return np.concatenate([vectors[:, offset : offset + length] for offset, length in parts], axis=1)

    def _vectors(self, p, vectors):
        length = lib.fkt_head_length(p)
        found = np.asarray(vectors)
        if found.ndim == 2 and found.shape[1] > length:
            found = self.take(found)
        return _values.reals("vectors", found, (None, length))

    def predict(self, vectors):
        """(n) uint32: the class of each record vector."""
        with self._use() as p:
            vectors = self._vectors(p, vectors)
            out = np.zeros(len(vectors), np.uint32)
            if len(vectors):
                run(lib.fkt_head_predict, p, _values.address(vectors), len(vectors), _values.address(out))
        return out

    def posterior(self, vectors, temperature=1.0):
        """(n, K) probabilities, with equal priors."""
        with self._use() as p:
            vectors = self._vectors(p, vectors)
            out = np.zeros((len(vectors), lib.fkt_head_classes(p)))
            if len(vectors):
                run(lib.fkt_head_posterior, p, _values.address(vectors), len(vectors),
                    _values.real("temperature", temperature), _values.address(out))  # fmt: skip
        return out

    def _bytes(self):
        """Of its file."""
        with tempfile.TemporaryDirectory(prefix="fedkt-") as folder:
            path = os.path.join(folder, "head")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    def tensors(self):
        """Its numbers, as in its file (docs/formats.md, "Heads"): "bias" (K) and, of a linear head, "weight" (K, m); of
        QDA "mean" (K, m) and "map" (K, m, m), or "map.0", "map.1", ... of several parts."""
        return _safetensors.parse(self._bytes())

    def __reduce__(self):
        return _head_of_bytes, (self._bytes(),)

    def __repr__(self):
        if self.closed:
            return "<fedkt.Head, closed>"
        return f"<fedkt.Head {self.kind}, {len(self.classes)} classes, {self.length} numbers>"


def _head_of_bytes(data):
    with tempfile.TemporaryDirectory(prefix="fedkt-") as folder:
        path = os.path.join(folder, "head")
        with open(path, "wb") as file:
            file.write(data)
        return Head.load(path)


def heads_of(release_pointer, on):
    """{name: Head} of a release."""
    struct = c.Heads()
    run(lib.fkt_heads_of_release, ctypes.byref(struct), release_pointer, on)
    found = {}
    try:
        for kind in range(struct.n):
            if struct.head[kind]:
                head = Head()
                head._pointer = ctypes.c_void_p(struct.head[kind])
                struct.head[kind] = None  # it is the Head's now
                found[head.kind] = head
    finally:
        lib.fkt_heads_clear(struct)
    return found


def evaluate_heads(heads, pipeline, data, *, threads=0, progress=None, skip_bad=False, encodings=None):
    """{name: accuracy} of heads on the images of a dataset, in one pass; heads: {name: Head}."""
    from .pipelines import Run

    names = list(heads)
    scores = (c.Score * max(len(names), 1))()
    classes = len(pipeline.task.classes)
    with Run(pipeline, data, skip_bad, encodings, threads, progress) as r:
        for i, name in enumerate(names):
            check(lib.fkt_score_init(scores[i], classes))
            r.stack.callback(lib.fkt_score_clear, scores[i])
        pointers = (ctypes.c_void_p * max(len(names), 1))()
        for i, name in enumerate(names):
            pointers[i] = r.stack.enter_context(heads[name]._use())
        r.work.run(lib.fkt_heads_evaluate, r.pipeline, r.data, None, 0, pointers, len(names), scores,
                   ctypes.byref(r.options))  # fmt: skip
        return {name: lib.fkt_score_accuracy(scores[i]) for i, name in enumerate(names)}


class WholeModel(Handle):
    """A head with the encoders that it needs: pixels in, classes out. It may be used from many threads."""

    _free = "fkt_whole_free"
    _noun = "whole model"

    @classmethod
    def make(cls, pipeline, head, release):
        self = cls()
        with pipeline._use() as p, head._use() as h, release._use() as r:
            run(lib.fkt_whole_make, ctypes.byref(self._pointer), p, h, r)
        return self

    @classmethod
    def load(cls, path):
        self = cls()
        run(lib.fkt_whole_load, ctypes.byref(self._pointer), _values.path("path", path, optional=False))
        return self

    def save(self, path, *, force=False):
        """safetensors, or ONNX where the name ends in ".onnx"."""
        name = _values.path("path", path, optional=False)
        function = lib.fkt_whole_export_onnx if name.endswith(b".onnx") else lib.fkt_whole_save
        with self._use() as p:
            run(function, p, name, bool(force))

    @property
    def size(self):
        with self._use() as p:
            return lib.fkt_whole_size(p)

    @property
    def classes(self):
        with self._use() as p:
            return [_values.decode(lib.fkt_whole_class(p, k)) for k in range(lib.fkt_whole_classes(p))]

    @property
    def not_private(self):
        """Why it may not be called private; "" where it may."""
        with self._use() as p:
            return _values.decode(lib.fkt_whole_not_private(p))

    def scores(self, images, *, threads=0, device="cpu", progress=None):
        """uint8 (n, S, S, 3) to float32 (n, K): the head's scores."""
        work = Work(progress)
        options = c.PredictOptions(
            threads=_values.whole("threads", threads, 0, 4096), progress=work.hook, device=_values.device(device)
        )
        with self._use() as p:
            size = lib.fkt_whole_size(p)
            images = _values.array("images", images, np.uint8, (None, size, size, 3))
            out = np.zeros((len(images), lib.fkt_whole_classes(p)), np.float32)
            if len(images):
                work.run(lib.fkt_whole_predict, p, _values.address(images), len(images), _values.address(out),
                         ctypes.byref(options))  # fmt: skip
        return out

    def predict(self, images, **options):
        """(n) the class of each image."""
        return self.scores(images, **options).argmax(axis=1)

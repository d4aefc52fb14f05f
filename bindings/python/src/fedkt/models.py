# SPDX-License-Identifier: Apache-2.0
"""models.py - convolutional classifiers: their files, predictions and evaluation. `train` (training.py) makes them."""

from __future__ import annotations

import ctypes
import dataclasses

import numpy as np

from . import _declarations as c
from . import _values
from ._handle import Handle, Loan
from ._library import check, lib
from ._work import Work, run
from .datasets import Dataset
from .errors import argument_error


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a classifier came to on some images: confusion is (K, K), rows are the truth; loss is the mean
    cross-entropy; calibration_error as Guo et al. 2017."""

    accuracy: float
    loss: float
    calibration_error: float
    confusion: np.ndarray


class EvaluationStruct:
    """struct fkt_evaluation, to be filled by a call."""

    def __init__(self, classes):
        self.struct = c.Evaluation()
        check(lib.fkt_evaluation_init(ctypes.byref(self.struct), classes))

    def result(self):
        s, k = self.struct, self.struct.score.classes
        return Evaluation(
            lib.fkt_evaluation_accuracy(s),
            lib.fkt_evaluation_loss(s),
            lib.fkt_evaluation_calibration_error(s),
            _values.copied(s.score.confusion, ctypes.c_uint64, (k, k)),
        )

    def __del__(self):
        if lib is not None:
            lib.fkt_evaluation_clear(self.struct)


class Model(Handle):
    """A ResNet-18 or ResNet-8. It may predict in many threads at once.

    Files are safetensors with torchvision's names, so that PyTorch loads them with `load_state_dict`.
    """

    _free = "fkt_model_free"
    _noun = "model"

    @classmethod
    def load(cls, path, size=0):
        """safetensors or ONNX; hostile input. size: side of its images, where the file does not say."""
        self = cls()
        name = _values.path("path", path, optional=False)
        run(lib.fkt_model_load, ctypes.byref(self._pointer), name, _values.whole("size", size, 0, 65535))
        return self

    def save(self, path, *, force=False):
        """safetensors, or ONNX where the name ends in ".onnx"."""
        name = _values.path("path", path, optional=False)
        function = lib.fkt_model_export_onnx if name.endswith(b".onnx") else lib.fkt_model_save
        with self._use() as p:
            run(function, p, name, bool(force))

    @property
    def architecture(self):
        with self._use() as p:
            return _values.decode(lib.fkt_architecture_name(lib.fkt_model_architecture(p)))

    @property
    def stem(self):
        with self._use() as p:
            return _values.decode(lib.fkt_stem_name(lib.fkt_model_stem(p)))

    @property
    def size(self):
        """Side of its images, in pixels."""
        with self._use() as p:
            return lib.fkt_model_size(p)

    @property
    def classes(self):
        with self._use() as p:
            return [_values.decode(lib.fkt_model_class(p, k)) for k in range(lib.fkt_model_classes(p))]

    @property
    def parameters(self):
        """How many numbers it has learnt."""
        with self._use() as p:
            return lib.fkt_model_parameters(p)

    @property
    def origin(self):
        """What a reader must know of its data: {"is_private": ..., "epsilon": ..., "data": ..., ...}."""
        with self._use() as p:
            struct = lib.fkt_model_origin(p).contents
            found = {name: getattr(struct, name) for name, *_ in struct._fields_}
        found["is_private"] = bool(found["is_private"])
        return {k: _values.decode(v) if isinstance(v, bytes) else v for k, v in found.items()}

    def tensors(self):
        """{name: float32 array}, by torchvision's names. Views that cannot be written to; the model
        is freed after the last of them."""
        found = {}
        with self._use() as p:
            loan = Loan(self)
            for i in range(lib.fkt_model_tensors(p)):
                t = lib.fkt_model_tensor(p, i)
                array = _values.view(t.data, ctypes.c_float, tuple(t.shape[: t.rank]), loan)
                array.flags.writeable = False
                found[_values.decode(t.name)] = array
        return found

    def _predict(self, images, want_features, threads, dtype, device, progress):
        if dtype not in ("f32", "bf16"):
            raise argument_error(f"dtype: '{dtype}' is neither 'f32' nor 'bf16'")
        work = Work(progress)
        options = c.PredictOptions(
            threads=_values.whole("threads", threads, 0, 4096),
            dtype=c.FKT_LEARN_DTYPE_BF16 if dtype == "bf16" else c.FKT_LEARN_DTYPE_F32,
            progress=work.hook,
            device=_values.device(device),
        )
        with self._use() as p:
            size = lib.fkt_model_size(p)
            images = _values.array("images", images, np.uint8, (None, size, size, 3))
            logits = np.zeros((len(images), lib.fkt_model_classes(p)), np.float32)
            features = np.zeros((len(images), lib.fkt_model_features(p)), np.float32) if want_features else None
            if len(images):
                work.run(
                    lib.fkt_model_predict, p, _values.address(images), len(images), _values.address(logits),
                    None if features is None else _values.address(features), ctypes.byref(options),
                )  # fmt: skip
        return logits, features

    def logits(self, images, *, threads=0, dtype="f32", device="cpu", progress=None):
        """uint8 (n, S, S, 3) to float32 (n, K)."""
        return self._predict(images, False, threads, dtype, device, progress)[0]

    def features(self, images, *, threads=0, dtype="f32", device="cpu", progress=None):
        """uint8 (n, S, S, 3) to float32 (n, F): what goes into the last layer."""
        return self._predict(images, True, threads, dtype, device, progress)[1]

    def predict(self, images, **options):
        """(n) the class of each image."""
        return self.logits(images, **options).argmax(axis=1)

    def open_data(self, path, *, split=None, limit=None, skip_bad=False, bits=0):
        """A dataset of files with the model's classes, in its order, made square as its training images were."""
        options = c.DatasetOptions(
            split=_values.text("split", split),
            limit=_values.whole("limit", limit or 0),
            skip_bad=bool(skip_bad),
            bits=_values.whole("bits", bits, 0, _values.U32),
        )
        out = Dataset()
        with self._use() as p:
            run(lib.fkt_model_open_dataset, ctypes.byref(out._pointer), p, _values.path("path", path, optional=False),
                ctypes.byref(options), 1)  # fmt: skip
        return out

    def __repr__(self):
        if self.closed:
            return "<fedkt.Model, closed>"
        private = "private" if self.origin["is_private"] else "NOT private"
        return f"<fedkt.Model {self.architecture}, {len(self.classes)} classes, {self.size} px, {private}>"


def evaluate(model, data, *, filter="bilinear", threads=0, device="cpu", skip_bad=False, progress=None, **options):
    """`fedkt evaluate`: a Model or a WholeModel on labelled images; data: a Dataset, a path, arrays or records.

    >>> import fedkt
    >>> train, test = fedkt.Dataset.open("demo:train", limit=100), fedkt.Dataset.open("demo:test", limit=50)
    >>> model = fedkt.train(train, network="resnet8", size=16, epochs=1, batch=20, pad=2)
    >>> found = fedkt.evaluate(model, test)
    >>> int(found.confusion.sum()), 0 <= found.accuracy <= 1
    (50, True)
    """
    from .heads import WholeModel

    whole = isinstance(model, WholeModel)
    if not whole and not isinstance(model, Model):
        raise argument_error(f"model must be a Model or a WholeModel, not {type(model).__name__}")
    if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__"):
        data = model.open_data(data, skip_bad=skip_bad, **options)
    else:
        data = Dataset.of(data, **options)
        if data.classes != model.classes:
            raise argument_error("the dataset has other classes than the model, or in another order")
    work = Work(progress)
    skipped = c.Skipped()
    more = c.TrainingSetOptions(
        threads=_values.whole("threads", threads, 0, 4096), progress=work.hook, device=_values.device(device)
    )
    if skip_bad:
        more.skipped = ctypes.pointer(skipped)
    found = EvaluationStruct(len(model.classes))
    into, way = ctypes.byref(found.struct), _values.choice("filter", filter, lib.fkt_filter_parse)
    with model._use() as m, data._use() as d:
        try:
            if whole:
                work.run(lib.fkt_whole_evaluate, into, m, d, ctypes.byref(more))
            else:
                work.run(lib.fkt_model_evaluate, into, None, m, d, way, None, ctypes.byref(more))
        finally:
            lib.fkt_skipped_clear(skipped)
    return found.result()

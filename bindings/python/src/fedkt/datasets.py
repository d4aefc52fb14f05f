# SPDX-License-Identifier: Apache-2.0
"""datasets.py - labelled images: from files, from arrays, from the datasets of PyTorch and of Hugging Face."""

from __future__ import annotations

import ctypes
import os

import numpy as np

from . import _declarations as c
from . import _records, _values
from ._handle import Handle
from ._library import check, lib
from ._work import run
from .errors import argument_error


def _options(split, classes, limit, fit, skip_bad, bits, unlabelled, limit_by_number):
    options = c.DatasetOptions(
        split=_values.text("split", split),
        limit=_values.whole("limit", limit or 0),
        limit_by_number=bool(limit_by_number),
        skip_bad=bool(skip_bad),
        fit=_values.choice("fit", fit, lib.fkt_fit_parse),
        bits=_values.whole("bits", bits, 0, _values.U32),
        unlabelled=bool(unlabelled),
    )
    if classes is not None:
        options.classes, options.n_classes = _values.texts("classes", classes)
    return options


class Dataset(Handle):
    """Labelled images. Make one with `open`, `from_arrays`, `from_records` or `of`.

    >>> import fedkt
    >>> data = fedkt.Dataset.open("demo:train", limit=30)
    >>> len(data), len(data.classes)
    (30, 10)
    >>> image, label = data[0]
    >>> image.shape, image.dtype.name
    ((32, 32, 3), 'uint8')
    """

    _free = "fkt_dataset_free"
    _noun = "dataset"

    @classmethod
    def open(
        cls,
        path,
        *,
        split=None,
        classes=None,
        limit=None,
        fit="crop",
        skip_bad=False,
        bits=0,
        unlabelled=False,
        limit_by_number=False,
    ):
        """A folder (ImageFolder), a tar of one, a WebDataset, CIFAR binaries, MNIST idx files, a MedMNIST .npz, or
        "demo:train" and "demo:test". limit: at most so many records, spread evenly over the classes. classes: the
        agreed list of names; None: those that are found."""
        self = cls()
        options = _options(split, classes, limit, fit, skip_bad, bits, unlabelled, limit_by_number)
        name = _values.path("path", path, optional=False)
        run(lib.fkt_dataset_open, ctypes.byref(self._pointer), name, ctypes.byref(options))
        return self

    @classmethod
    def from_arrays(cls, images, labels, *, classes=None, limit=None, fit="crop", limit_by_number=False, name=None):
        """images: uint8 (n, height, width, 3), or (n, height, width) grey, or a list of images of any sizes. An array
        of the first kind in C order is not copied: it must not change while the dataset lives. labels: (n) whole
        numbers. classes: a name for each label; None: "0", "1", ...

        >>> import fedkt, numpy
        >>> images = numpy.zeros((4, 8, 8, 3), numpy.uint8)
        >>> data = fedkt.Dataset.from_arrays(images, [0, 1, 1, 0], classes=["cat", "dog"])
        >>> data.classes, data.labels.tolist()
        (['cat', 'dog'], [0, 1, 1, 0])
        """
        arrays = c.DatasetArrays(borrow=1, name=_values.text("name", name))
        keep = _records.put_images(arrays, images)
        found = _values.labels("labels", labels, arrays.n)
        if classes is None:
            classes = [str(k) for k in range(int(found.max()) + 1 if len(found) else 0)]
        names, arrays.n_classes = _values.texts("classes", classes)
        arrays.classes = names
        arrays.labels = _values.address(found)
        options = _options(None, None, limit, fit, False, 0, False, limit_by_number)
        self = cls()
        self._keep = keep
        run(lib.fkt_dataset_from_arrays, ctypes.byref(self._pointer), ctypes.byref(arrays), ctypes.byref(options))
        return self

    @classmethod
    def from_records(cls, records, *, classes=None, image=None, label=None, **options):
        """Any dataset with len() and [i]: PyTorch's give (image, label), those of Hugging Face a dictionary. An image
        is a PIL image, an array (h, w, 3) or (h, w) of uint8, or a tensor (3, h, w) of uint8 or of floats from 0 to 1.
        image, label: the keys of a dictionary; None: found by name. classes: None: what the dataset says of itself
        (`classes`, or `features[label].names`). All images are read into memory.

        >>> import fedkt, numpy
        >>> pairs = [(numpy.full((8, 8, 3), 20 * i, numpy.uint8), i % 2) for i in range(6)]
        >>> fedkt.Dataset.from_records(pairs, classes=["even", "odd"]).labels.tolist()
        [0, 1, 0, 1, 0, 1]
        """
        images, labels, names = _records.read(records, image, label)
        return cls.from_arrays(images, labels, classes=names if classes is None else classes, **options)

    @classmethod
    def of(cls, source, **options):
        """A dataset from a path, from a pair (images, labels) of arrays, or from records; a Dataset stays itself."""
        if isinstance(source, Dataset):
            if options:
                raise argument_error("a Dataset is opened already: give its options where it is opened")
            return source
        if isinstance(source, (str, bytes, os.PathLike)):
            return cls.open(source, **options)
        if isinstance(source, tuple) and len(source) == 2:
            return cls.from_arrays(*source, **options)
        return cls.from_records(source, **options)

    def __len__(self):
        with self._use() as p:
            return lib.fkt_dataset_size(p)

    @property
    def classes(self):
        """The names of the classes."""
        with self._use() as p:
            return [_values.decode(lib.fkt_dataset_class(p, k)) for k in range(lib.fkt_dataset_classes(p))]

    @property
    def labels(self):
        """(n) uint32."""
        with self._use() as p:
            n = lib.fkt_dataset_size(p)
            return np.fromiter((lib.fkt_dataset_label(p, i) for i in range(n)), np.uint32, n)

    @property
    def format(self):
        with self._use() as p:
            return _values.decode(lib.fkt_dataset_format(p))

    @property
    def fit(self):
        """How images are made square: "crop", "pad" or "stretch"."""
        with self._use() as p:
            return _values.decode(lib.fkt_fit_name(lib.fkt_dataset_fit(p)))

    @property
    def skipped(self):
        """Files that were neither image nor label."""
        with self._use() as p:
            return lib.fkt_dataset_skipped(p)

    def name(self, i):
        """Where record i comes from, for messages."""
        with self._use() as p:
            return _values.decode(lib.fkt_dataset_name(p, self._index(p, i)))

    def _index(self, p, i):
        n = lib.fkt_dataset_size(p)
        number = _values.whole("index", i, -(2**63), 2**63 - 1)
        number += n if number < 0 else 0
        if not 0 <= number < n:
            raise IndexError(f"record {i} of {n}")
        return number

    def __getitem__(self, i):
        """(image, label): the record at its own size, uint8 (h, w, 3)."""
        with self._use() as p:
            number = self._index(p, i)
            rgb, width, height = ctypes.c_void_p(), ctypes.c_uint32(), ctypes.c_uint32()
            check(
                lib.fkt_dataset_read_original(
                    p, number, ctypes.byref(rgb), ctypes.byref(width), ctypes.byref(height)
                )
            )
            try:
                image = _values.copied(rgb.value, ctypes.c_uint8, (height.value, width.value, 3))
            finally:
                lib.fkt_image_free(rgb)
            return image, int(lib.fkt_dataset_label(p, number))

    def read(self, i, size, filter="bilinear"):
        """Record i scaled to (size, size, 3), as a task reads it."""
        size = _values.whole("size", size, 1, 65536)
        out = np.empty((size, size, 3), np.uint8)
        way = _values.choice("filter", filter, lib.fkt_filter_parse)
        with self._use() as p:
            check(lib.fkt_dataset_read(p, self._index(p, i), size, way, _values.address(out), None))
        return out

    def __repr__(self):
        if self.closed:
            return "<fedkt.Dataset, closed>"
        return f"<fedkt.Dataset of {len(self)} images, {len(self.classes)} classes, {self.format}>"

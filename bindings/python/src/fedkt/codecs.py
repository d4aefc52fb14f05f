# SPDX-License-Identifier: Apache-2.0
"""codecs.py - the frozen public networks between images and latents, and their public calibrations."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from ._work import Work, run
from .errors import argument_error

DEFAULT_CODEC = "fedkt-ae"
DEFAULT_GUIDE = "fedkt-guide"


def settings(weights=None, guide_weights=None, dtype="f32", low_memory=False, device="auto"):
    """What a machine brings along: where weights are, where and how fast networks run."""
    return c.CodecSettings(
        weights=_values.path("weights", weights),
        guide_weights=_values.path("guide_weights", guide_weights),
        dtype=_values.choice("dtype", dtype, lib.fkt_codec_dtype_parse),
        low_memory=bool(low_memory),
        device=_values.device(device),
    )


def network_files(calibration, guide_calibration, threads, machine):
    """What join, serve and a task's server are told about networks: members of their specs."""
    return {
        "calibration": _values.path("calibration", calibration),
        "guide_calibration": _values.path("guide_calibration", guide_calibration),
        "settings": settings(**machine),
        "threads": _values.whole("threads", threads, 0, 4096),
    }


class Codec(Handle):
    """A frozen public network: images to latents and, for a codec, back. A guide has no way back.

    Names: "fedkt-ae" (default), "dct", "taesd", ...; guides: "fedkt-guide", "resnet18", ... dim: length of the latent,
    for codecs that leave it free. It may be used from many threads at once.

    >>> import fedkt, numpy
    >>> codec = fedkt.Codec("dct", size=16, dim=32)
    >>> latents = codec.encode(numpy.zeros((5, 16, 16, 3), numpy.uint8))
    >>> latents.shape, latents.dtype.name, codec.decode(latents).shape
    ((5, 32), 'float32', (5, 16, 16, 3))
    """

    _free = "fkt_codec_free"
    _noun = "codec"

    def __init__(self, name=DEFAULT_CODEC, size=32, dim=0, *, weights=None, dtype="f32", low_memory=False,
                 device="auto"):  # fmt: skip
        super().__init__()
        spec = c.CodecSpec(
            name=_values.text("name", name, optional=False),
            size=_values.whole("size", size, 1, 65535),
            dim=_values.whole("dim", dim, 0, 2**24),
            settings=settings(weights, None, dtype, low_memory, device),
        )
        run(lib.fkt_codec_open, ctypes.byref(self._pointer), ctypes.byref(spec))

    def _text(self, function):
        with self._use() as p:
            return _values.decode(function(p))

    @property
    def name(self):
        return self._text(lib.fkt_codec_name)

    @property
    def identity(self):
        """One line that fixes the codec's arithmetic; its hash is part of a task."""
        return self._text(lib.fkt_codec_identity)

    @property
    def size(self):
        """Side of its images, in pixels."""
        with self._use() as p:
            return lib.fkt_codec_size(p)

    @property
    def dim(self):
        """Length of its latents."""
        with self._use() as p:
            return lib.fkt_codec_dim(p)

    @property
    def decodes(self):
        """False for a guide."""
        with self._use() as p:
            return bool(lib.fkt_codec_decodes(p))

    @property
    def dtype(self):
        """What it computes in: "f32" or "bf16"."""
        with self._use() as p:
            return _values.decode(lib.fkt_codec_dtype_name(lib.fkt_codec_dtype_used(p)))

    @property
    def device(self):
        """What it runs on: "cpu", "cuda:0"."""
        with self._use() as p:
            out = ctypes.create_string_buffer(c.FKT_DEVICE_NAME)
            lib.fkt_device_name(lib.fkt_codec_device_used(p), out)
            return _values.decode(out.value)

    def encode(self, images):
        """uint8 (n, S, S, 3) to float32 (n, dim)."""
        with self._use() as p:
            size, dim = lib.fkt_codec_size(p), lib.fkt_codec_dim(p)
            images = _values.array("images", images, np.uint8, (None, size, size, 3))
            latents = np.empty((len(images), dim), np.float32)
            if len(images):
                run(lib.fkt_codec_encode, p, _values.address(images), len(images), _values.address(latents))
        return latents

    def decode(self, latents):
        """float32 (n, dim) to uint8 (n, S, S, 3)."""
        with self._use() as p:
            size, dim = lib.fkt_codec_size(p), lib.fkt_codec_dim(p)
            latents = _values.array("latents", latents, np.float32, (None, dim))
            images = np.empty((len(latents), size, size, 3), np.uint8)
            if len(latents):
                run(lib.fkt_codec_decode, p, _values.address(latents), len(latents), _values.address(images))
        return images

    def __repr__(self):
        return "<fedkt.Codec, closed>" if self.closed else f"<fedkt.Codec {self.identity}>"


class Calibration:
    """What is publicly known of a codec's latents: u = map (z - centre). Never from private data.

    >>> import fedkt
    >>> calibration = fedkt.Calibration.of(fedkt.Codec("dct", size=16, dim=32))
    >>> calibration.map.shape, calibration.source
    ((32, 32), 'analytic natural-image spectrum')
    """

    def __init__(self):
        self._struct = c.Calibration()

    @classmethod
    def of(cls, codec, file=None):
        """The one that is built in for this codec, or that of a file, checked against the codec."""
        if isinstance(file, Calibration):
            return file
        self = cls()
        with codec._use() as p:
            if file is None:
                check(lib.fkt_calibration_embedded(self._struct, p))
            else:
                check(lib.fkt_calibration_load(self._struct, _values.path("file", file)))
                check(lib.fkt_calibration_check(self._struct, p))
        return self

    @classmethod
    def load(cls, path):
        self = cls()
        check(lib.fkt_calibration_load(self._struct, _values.path("path", path, optional=False)))
        return self

    @classmethod
    def make(cls, codec, data, *, source, top=0, filter="bilinear", threads=0, progress=None):
        """From a PUBLIC image set, in two passes; source names it. top: dimensions to keep, 0: all."""
        self = cls()
        work = Work(progress)
        options = c.PipelineOptions(threads=_values.whole("threads", threads, 0, 4096), progress=work.hook)
        with codec._use() as p, data._use() as d:
            work.run(
                lib.fkt_calibrate, ctypes.byref(self._struct), p, d,
                _values.choice("filter", filter, lib.fkt_filter_parse), _values.whole("top", top, 0, 2**24),
                _values.text("source", source, optional=False), ctypes.byref(options),
            )  # fmt: skip
        return self

    def save(self, path, *, force=False):
        check(lib.fkt_calibration_save(self._struct, _values.path("path", path, optional=False), bool(force)))

    @property
    def source(self):
        return _values.decode(self._struct.source)

    @property
    def radius(self):
        return self._struct.radius

    def _tensor(self, pointer, *shape):
        return _values.view(pointer, ctypes.c_float, shape, self)

    @property
    def centre(self):
        return self._tensor(self._struct.centre, self._struct.raw_dim)

    @property
    def map(self):
        return self._tensor(self._struct.map, self._struct.dim, self._struct.raw_dim)

    @property
    def unmap(self):
        return self._tensor(self._struct.unmap, self._struct.raw_dim, self._struct.dim)

    def __del__(self):
        if lib is not None:
            lib.fkt_calibration_clear(self._struct)

    def __reduce__(self):
        raise TypeError("a Calibration cannot be pickled: save it to a file, and load that")


def open_part(network, guide, size, dim, calibration, options):
    """(Codec, Calibration) of one part of a task; network is a name or a Codec."""
    codec = network if isinstance(network, Codec) else Codec(network, size, 0 if guide else dim, **options)
    if codec.decodes == guide:
        kind, other = ("codec", "guide") if guide else ("guide", "codec")
        raise argument_error(f"'{codec.name}' is a {kind}, not a {other}")
    return codec, Calibration.of(codec, calibration)

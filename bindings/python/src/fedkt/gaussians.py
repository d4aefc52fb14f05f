# SPDX-License-Identifier: Apache-2.0
"""gaussians.py - the class Gaussians that are estimated from a release, and samples of them."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _declarations as c
from . import _values
from ._library import lib
from ._work import run


def estimate_options(estimator, tau, pool):
    return c.EstimateOptions(
        _values.choice("estimator", estimator, lib.fkt_estimator_parse),
        _values.real("tau", tau),
        _values.real("pool", pool),
    )


class Gaussians:
    """One Gaussian per class, for one part of the record vector: count (K), mean (K, m), cov (K or 1, m, m), ...

    Arrays are views of the library's memory, which lives as long as any of them.
    """

    def __init__(self):
        self._struct = c.Gaussians()

    def _array(self, name, *shape):
        return _values.view(getattr(self._struct, name), ctypes.c_double, shape, self)

    @property
    def count(self):
        return self._array("count", self._struct.classes)

    @property
    def mean(self):
        return self._array("mean", self._struct.classes, self._struct.length)

    @property
    def cov(self):
        s = self._struct
        return self._array("cov", 1 if s.pooled else s.classes, s.length, s.length)

    @property
    def noise_edge(self):
        s = self._struct
        return self._array("noise_edge", 1 if s.pooled else s.classes)

    @property
    def signal(self):
        return self._array("signal", self._struct.classes)

    @property
    def below_noise(self):
        """(K) True: the class cannot be told from no records at all."""
        return np.array([bool(lib.fkt_gaussians_below_noise(self._struct, k)) for k in range(self._struct.classes)])

    def sample(self, label, n, *, seed=0, first=0):
        """(n, m): samples first .. first + n - 1 of a class, by the seed alone."""
        label = _values.whole("label", label, 0, self._struct.classes - 1)
        out = np.empty((_values.whole("n", n, 0, 2**31), self._struct.length))
        if len(out):
            run(lib.fkt_gaussians_sample, ctypes.byref(self._struct), label, _values.whole("seed", seed),
                _values.whole("first", first), len(out), _values.address(out))  # fmt: skip
        return out

    def __del__(self):
        if lib is not None:
            lib.fkt_gaussians_clear(self._struct)

    def __reduce__(self):
        raise TypeError("Gaussians cannot be pickled: save the release to a file, and load that")

# SPDX-License-Identifier: Apache-2.0
"""expect.py - the release that a seeded federation must give, worked out without it.

Exact moments of every site come from `fedkt moments`, which knows nothing of federations; shares of the noise from the
oracle's discrete Gaussian on the streams that a seed names (site i: 3 + 2i); their sum over the survivors is rounded
as docs/privacy.md has it. Nothing here has seen a mask.
"""

import functools
import json
import math
import pathlib
import subprocess
import sys
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
for folder in ("oracle", "tests/cli", "tests/e2e"):
    sys.path.insert(0, str(ROOT / folder))

import numpy  # noqa: E402
import tensors  # noqa: E402
from discrete_gaussian import Digits, draw  # noqa: E402


class Plan:
    """What the task says of noise."""

    def __init__(self, tool, task):
        said = subprocess.run([tool, task], capture_output=True, text=True, check=True, timeout=60)
        told = json.loads(said.stdout)
        self.lengths, self.pooled, self.numbers = told["lengths"], told["pooled"], told["vector"]
        self.classes, self.count_scale = told["classes"], told["count_scale"]
        self.variance = tuple(Fraction(num, 1 << shift) for num, shift in told["variance"])

    def kinds(self):
        """For every number of a vector, which variance its noise has: counts 0, part p 1 + 3p to 3 + 3p."""
        one, moments = [0], []
        for p, m in enumerate(self.lengths):
            triangle = [2 + 3 * p + (i != j) for i in range(m) for j in range(i, m)]
            one += [1 + 3 * p] * m + ([] if self.pooled else triangle)
            moments += triangle if self.pooled else []
        return one * self.classes + moments


@functools.cache
def noise(seed, site, kinds, variance):
    source = Digits(seed, 3 + 2 * site)
    return [draw(source, variance[k]) if variance[k] else 0 for k in kinds]


def exact(path):
    """The numbers of a moments file."""
    return numpy.frombuffer(tensors.load(path)["tensors"]["moments"][2], "<i8").tolist()


def share(plan, seed, site, moments):
    """A site's vector as it goes under the masks."""
    kinds = tuple(plan.kinds())
    scaled = [x * plan.count_scale if k == 0 else x for x, k in zip(moments, kinds)]
    return [a + b for a, b in zip(scaled, noise(seed, site, kinds, plan.variance))]


def release(plan, shares):
    """What the survivors' shares become: their sum, counts in units again, halves to the even integer."""
    total = [sum(column) for column in zip(*shares)]
    for at in (at for at, kind in enumerate(plan.kinds()) if kind == 0):
        total[at] = round(Fraction(total[at], plan.count_scale))
    return total


def near(plan, numbers, moments, sigmas=12):
    """Whether a release without a seed can be the sum of these exact moments and their shares of the noise: a mask that
    stayed on would be off by 2^(b-2) or so. 12 standard deviations: 4e-33 for one number."""
    for at, kind in enumerate(plan.kinds()):
        want, scale = sum(m[at] for m in moments), plan.count_scale if kind == 0 else 1
        wide = math.sqrt(len(moments) * plan.variance[kind]) / scale
        if not abs(numbers[at] - want) <= sigmas * wide + 1:
            return f"number {at} of the release is {numbers[at]}, not {want} and noise of {wide:.1f}"
    return ""


def released(path):
    return numpy.frombuffer(tensors.load(path)["tensors"]["moments"][2], "<i8").tolist()

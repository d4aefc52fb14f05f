# SPDX-License-Identifier: Apache-2.0
"""plans.py - what a release costs, before there is one."""

from __future__ import annotations

import ctypes
import dataclasses

from . import _declarations as c
from . import _values
from ._library import check, lib
from .errors import argument_error


@dataclasses.dataclass(frozen=True)
class PrivacyPlan:
    """The noise of a release: mu is its Gaussian-DP parameter; sigma_count, sigma_sum and sigma_moment are standard
    deviations in the units of the radius, the last two for each part of the record vector. weak: why the promise is too
    weak to be called private, or ""."""

    epsilon: float
    delta: float
    adjacency: str
    mu: float
    epsilon_spent: float
    sigma_count: float
    sigma_sum: tuple
    sigma_moment: tuple
    weak: str


def privacy(epsilon, delta, *, adjacency="add-remove", mechanism="joint", radius=1.0, split=(1, 24, 75), pooled=False):
    """The plan for (epsilon, delta). radius: of the ball of each part, one number or several; split: shares of the
    budget for the count, then for sum and second moment of each part.

    >>> import fedkt
    >>> plan = fedkt.privacy(8, 1e-5)
    >>> round(plan.mu, 3), plan.epsilon_spent <= 8
    (1.666, True)
    """
    radii = [_values.real("radius", r) for r in (radius if hasattr(radius, "__iter__") else [radius])]
    shares = [_values.real("split", share) for share in split]
    if not 1 <= len(radii) <= c.FKT_PARTS_MAX or len(shares) != 1 + 2 * len(radii):
        raise argument_error("split must hold the count's share, then two shares for each radius")
    spec = c.PrivacySpec(
        epsilon=_values.real("epsilon", epsilon),
        delta=_values.real("delta", delta),
        adjacency=_values.choice("adjacency", adjacency, lib.fkt_adjacency_parse),
        mechanism=_values.choice("mechanism", mechanism, lib.fkt_mechanism_parse),
        split_count=shares[0],
        parts=len(radii),
        pooled=bool(pooled),
    )
    for p, r in enumerate(radii):
        spec.part[p] = c.PrivacyPart(r, shares[1 + 2 * p], shares[2 + 2 * p])
    plan = c.PrivacyPlan()
    check(lib.fkt_privacy_plan(ctypes.byref(plan), ctypes.byref(spec)))
    return plan_of(plan)


def plan_of(plan):
    """A PrivacyPlan from the library's struct."""
    spec = plan.spec
    why = ctypes.create_string_buffer(c.FKT_PROMISE_WORDS)
    lib.fkt_privacy_promise(spec.epsilon, spec.delta, 0.0, why)
    sigmas = plan.sigma[: spec.parts]
    return PrivacyPlan(
        spec.epsilon,
        spec.delta,
        _values.decode(lib.fkt_adjacency_name(spec.adjacency)),
        plan.mu,
        plan.epsilon_spent,
        plan.sigma_count,
        tuple(s.sum for s in sigmas),
        tuple(s.moment for s in sigmas),
        _values.decode(why.value),
    )

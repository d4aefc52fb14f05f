# SPDX-License-Identifier: Apache-2.0
"""draw.py - the call that makes a release: sites' moments added up, the ledger debited, noise drawn, the file written.
The order matters: every check comes before the ledger is debited."""

from __future__ import annotations

import contextlib
import ctypes
import math

from . import _declarations as c
from . import _values
from ._library import check, lib
from ._work import run
from .errors import Status, argument_error, error_of
from .pipelines import Moments, Pipeline
from .releases import Release
from .tasks import Task


def _add_up(task, moments):
    """One Moments with all records of the sites; refuses a record that is in two of them."""
    items = [moments] if isinstance(moments, (Moments, str, bytes)) or hasattr(moments, "__fspath__") else list(moments)
    if not items:
        raise argument_error("there are no moments")
    total = Moments(task)
    for i, item in enumerate(items):
        site = item if isinstance(item, Moments) else Moments.load(task, item)
        if site.task.sha256 != task.sha256:
            raise error_of(Status.MISMATCH, f"moments {i} belong to another task")
        shared = ctypes.c_size_t()
        with total._change() as t, total.records._change() as known, site._change() as s, site.records._change() as own:
            check(lib.fkt_records_merge(known, own, ctypes.byref(shared)))
            if shared.value:
                raise argument_error(f"moments {i} share {shared.value} images with others, which would count twice")
            check(lib.fkt_moments_merge(t, s))
    return total, len(items)


def release(task, moments, *, ledger, dataset=None, budget_epsilon=None, budget_delta=None, out=None, force=False,
            insecure_seed=None, accept_weak=False, calibration=None, guide_calibration=None):  # fmt: skip
    """`fedkt release`: adds the sites' moments up, debits the ledger, draws the noise. moments: Moments or files.

    ledger: the path of a privacy ledger, made when it is absent, which records what each dataset has spent; or None:
    nobody keeps account, and the caller must not release these records twice. dataset: the account in it; None: the
    task's name. out: a file for the release, whose space is reserved before the ledger is debited. insecure_seed: TESTS
    ONLY, noise from a known seed. Ctrl-C does not stop it once the ledger is debited.
    """
    task = Task.of(task)
    if task.sites:
        raise error_of(
            Status.MISMATCH, f"task '{task.name}' is for a federation, whose numbers leave the sites only under masks"
        )
    if task.weak and not accept_weak:
        hint = "accept_weak makes the release all the same"
        raise error_of(Status.MISMATCH, f"the promise is weak: {task.weak}", hint)
    if (budget_epsilon is None) != (budget_delta is None):
        raise argument_error("budget_epsilon and budget_delta must be given together")
    pipeline = Pipeline(task, calibration=calibration, guide_calibration=guide_calibration, networks=False)
    total, sites = _add_up(task, moments)
    result = Release()
    seed = None if insecure_seed is None else ctypes.c_uint64(_values.whole("insecure_seed", insecure_seed))
    charge = c.LedgerCharge(
        dataset=_values.text("dataset", task.name if dataset is None else dataset),
        task_sha256=_values.text("task", task.sha256),
        adjacency=task._privacy.adjacency,
        budget_epsilon=0.0 if budget_epsilon is None else _values.real("budget_epsilon", budget_epsilon),
        budget_delta=0.0 if budget_delta is None else _values.real("budget_delta", budget_delta),
        most_epsilon=0.0 if accept_weak else c.FKT_PROMISE_EPSILON,
        insecure_seed=seed is not None,
        accounting=c.FKT_ACCOUNTING_GDP,
        delta=task.delta,
        task_name=_values.text("task", task.name),
    )
    path = _values.path("out", out)
    account = _values.path("ledger", ledger)

    def draw():
        with contextlib.ExitStack() as stack:
            t = stack.enter_context(task._use())
            w = stack.enter_context(pipeline._use())
            m = stack.enter_context(total._change())
            calibrations = lib.fkt_pipeline_calibration(w, 0)
            facts = c.RoundFacts(sites=sites, survivors=sites)
            plan = c.PrivacyPlan()
            check(lib.fkt_privacy_plan(ctypes.byref(plan), lib.fkt_task_privacy(t)))
            file = ctypes.c_void_p()
            if path is not None:
                check(lib.fkt_release_reserve(ctypes.byref(file), t, calibrations, facts, path, bool(force)))
                stack.callback(lambda: lib.fkt_release_file_free(file))
            once = c.Ledger()
            if account is None:
                check(lib.fkt_ledger_init(once, plan.mu * plan.mu, 0.0))
                facts.composed_epsilon = plan.epsilon_spent
            else:
                _pay(once, account, charge, plan, total, facts, task.delta)
            check(
                lib.fkt_release_make(
                    ctypes.byref(result._pointer), t, calibrations, m, facts, once,
                    None if seed is None else ctypes.byref(seed),
                )
            )  # fmt: skip
            if path is not None:
                check(lib.fkt_release_write(file, result._pointer))
        return Status.OK

    run(draw)
    return result


def _pay(once, account, charge, plan, total, facts, delta):
    records, n, spent = ctypes.c_void_p(), ctypes.c_size_t(), c.LedgerSpent()
    charge.mu = plan.mu
    with total.records._change() as r:
        check(lib.fkt_records_list(r, ctypes.byref(records), ctypes.byref(n)))
        charge.records = ctypes.cast(records, ctypes.POINTER(c.RecordDigest))
        charge.n_records = n.value
        check(lib.fkt_ledger_file_pay(once, account, charge, spent))
    facts.composed_epsilon = lib.fkt_ledger_epsilon(delta, spent)
    if math.isnan(facts.composed_epsilon):
        raise error_of(Status.NUMERIC, "the ledger's sum is not a number")

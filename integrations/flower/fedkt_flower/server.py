# SPDX-License-Identifier: Apache-2.0
"""server.py - the ServerApp: one task from its first node to its release, or all cohorts of a task and their sum. A run
that was stopped loses nothing: the next `flwr run` with the same `state` continues from its journals.

    task       a file: one task                          a folder, as `fedkt task new --cohort-size` writes it: all cohorts
    state      journal and log                           cohort-0000/, cohort-0001/, ...: those of each cohort
    out        release, certificate, log, images         the same of the sum, and cohorts/0000/, ...: of each cohort

The folders of cohorts are those of `fedkt serve`, and so are the files."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pathlib

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

import fedkt

from .rounds import Rounds

log = logging.getLogger("flwr")
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    missing = [name for name in ("task", "state") if not config[name]]
    if missing:
        raise ValueError(f"--run-config does not say: {', '.join(missing)}")
    run_task = run_cohorts if pathlib.Path(config["task"]).is_dir() else run_one
    run_task(grid, context.run_id, config)


def run_rounds(grid, run, config, servers):
    """Carries until all servers are over; gives their views."""
    rounds = Rounds(
        grid, servers, run, hold=config["hold-seconds"], answer=config["answer-seconds"],
        linger=config["linger-seconds"],
    )  # fmt: skip
    views = rounds.until_over()
    log.info("fedkt: %s", " ".join(f"{k}={v}" for k, v in dataclasses.asdict(rounds.traffic).items()))
    return views


def run_one(grid, run, config):
    task = fedkt.Task.load(config["task"])
    task.verify()
    with fedkt.TaskServer(task, config["state"], out=config["out"] or None, per_class=config["per-class"]) as server:
        (view,) = run_rounds(grid, run, config, [server])
    if view["stage"] != "released":
        raise RuntimeError(f"the task was given up: {view['reason']}")
    log.info("fedkt: released %s, %d survivors", view["release_sha256"], view["survivors"])


def run_cohorts(grid, run, config):
    """A cohort that is given up is missing from the sum, whose certificate says so."""
    state = pathlib.Path(config["state"])
    out = pathlib.Path(config["out"] or state / "public")
    with contextlib.ExitStack() as stack:
        cohorts = stack.enter_context(fedkt.Cohorts.load(config["task"]))
        tasks = [cohorts.task(i) for i in range(len(cohorts))]
        for task in tasks:
            task.verify()
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        servers = [
            stack.enter_context(
                fedkt.TaskServer(task, state / f"cohort-{i:04}", out=cohorts.folder(out, i), per_class=1)
            )
            for i, task in enumerate(tasks)
        ]  # one image of each class: images are made of the sum
        views = run_rounds(grid, run, config, servers)
        for i, view in enumerate(views):
            how = view["release_sha256"] or f"given up: {view['reason']}"
            log.info("fedkt: cohort %d, %d survivors: %s", i, view["survivors"], how)
        releases = [view["release_sha256"] if view["stage"] == "released" else None for view in views]
        if not any(releases):
            raise RuntimeError(f"all {len(views)} cohorts were given up: {views[0]['reason']}")
        found = cohorts.add_up(out, releases, per_class=config["per-class"])
    log.info(
        "fedkt: the sum of %d of %d cohorts is %s, %d survivors of %d sites", found.cohorts, len(views),
        found.release_sha256, found.survivors, found.sites,
    )  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""server.py - the ServerApp: one task from its first node to its release. A run that was stopped loses nothing: the next
`flwr run` with the same `state` continues from its journal."""

from __future__ import annotations

import dataclasses
import logging

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
    task = fedkt.Task.load(config["task"])
    task.verify()
    with fedkt.TaskServer(task, config["state"], out=config["out"] or None, per_class=config["per-class"]) as server:
        rounds = Rounds(
            grid, server, context.run_id, hold=config["hold-seconds"], answer=config["answer-seconds"],
            linger=config["linger-seconds"],
        )  # fmt: skip
        view = rounds.until_over()
    log.info("fedkt: %s", " ".join(f"{k}={v}" for k, v in dataclasses.asdict(rounds.traffic).items()))
    if view["stage"] != "released":
        raise RuntimeError(f"the task was given up: {view['reason']}")
    log.info("fedkt: released %s, %d survivors", view["release_sha256"], view["survivors"])

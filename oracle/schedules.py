#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rates that PyTorch's schedulers give, step by step: makes tests/vectors/classifier/schedules.json.

usage: oracle/schedules.py OUT.json      (needs PyTorch; the numbers are kept, so that the tests do not)

Every scheduler is stepped after each batch. Formulae: src/classifier/recipe.c.
"""

import hashlib
import json
import sys
import warnings

import torch
from torch.optim import lr_scheduler as lr

warnings.filterwarnings("ignore")  # steps of a scheduler without steps of its optimizer

CASES = [
    # schedule, epochs, steps per epoch, rate, warm-up epochs, step every, step by
    ("constant", 3, 4, 0.1, 0, 10, 0.1),
    ("step", 9, 5, 0.1, 0, 3, 0.1),
    ("step", 7, 6, 0.4, 1.5, 0.5, 0.7),
    ("step", 4, 3, 0.05, 0, 0.05, 0.9),
    ("cosine", 5, 7, 0.1, 0, 10, 0.1),
    ("cosine", 6, 10, 0.05, 2, 10, 0.1),
    ("cosine", 4, 5, 0.3, 0.5, 10, 0.1),
    ("cosine", 1, 1, 0.2, 0, 10, 0.1),
    ("one-cycle", 10, 10, 0.1, 0, 10, 0.1),
    ("one-cycle", 7, 3, 0.4, 0, 10, 0.1),
    ("one-cycle", 1, 3, 0.4, 0, 10, 0.1),
    ("one-cycle", 1, 1, 0.4, 0, 10, 0.1),
    ("one-cycle", 2, 5, 2.0, 0, 10, 0.1),
]


def half_up(x):
    return int(x + 0.5)


def scheduler(optimizer, schedule, epochs, per_epoch, rate, warmup, every, by):
    steps, before = epochs * per_epoch, half_up(warmup * per_epoch)
    if schedule == "one-cycle":
        return lr.OneCycleLR(optimizer, max_lr=rate, total_steps=steps, cycle_momentum=False)
    if schedule == "constant":
        return lr.ConstantLR(optimizer, factor=1.0)
    if schedule == "step":
        main = lr.StepLR(optimizer, step_size=max(1, half_up(every * per_epoch)), gamma=by)
    else:
        main = lr.CosineAnnealingLR(optimizer, T_max=steps - before)
    if before == 0:
        return main
    start = lr.LinearLR(optimizer, start_factor=1 / before, total_iters=before - 1)
    return lr.SequentialLR(optimizer, [start, main], milestones=[before])


def rates(case):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=case[3], momentum=0.9)
    s = scheduler(optimizer, *case)
    out = []
    for step in range(case[1] * case[2]):
        out.append(optimizer.param_groups[0]["lr"])
        if step + 1 < case[1] * case[2]:
            s.step()
    return out


def main():
    keys = ("schedule", "epochs", "steps_per_epoch", "rate", "warmup", "step_every", "step_by")
    text = json.dumps({"cases": [dict(zip(keys, c), rates=rates(c)) for c in CASES]}, indent=1) + "\n"
    with open(sys.argv[1], "w") as f:
        f.write(text)
    with open(sys.argv[1].replace(".json", ".md"), "w") as f:
        f.write(
            "- file: schedules.json\n- what: the rate of every step, by PyTorch's schedulers\n"
            "- made_by: oracle/schedules.py\n"
            "- command: python3 oracle/schedules.py tests/vectors/classifier/schedules.json\n"
            f"- sha256: {hashlib.sha256(text.encode()).hexdigest()}\n- torch: {torch.__version__.split('+')[0]}\n"
        )


if __name__ == "__main__":
    main()

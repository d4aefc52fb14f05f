#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images per second of whole training steps (forward, loss, backward, SGD), PyTorch beside us in one run.

usage: bench/train.py --fedkt BINARY [--models resnet18] [--sizes 32,64] [--batch 64] [--rounds 5] [--steps 10]
                      [--threads 2] [--dtypes f32,bf16] [--forms compiled,eager] [--json OUT] [--quiet] [--quick]

It wants a machine with nothing else to do, and three to eight minutes a case, most of them for PyTorch's compiler;
--quick, a minute: ResNet-18 at 32 px, compiled and channels-last, two rounds, no memory. Run it with a Python that has
PyTorch from PyPI. A case is told as soon as it is known.

PyTorch is given its best form: {compiled, eager} x {channels-last, NCHW}, SGD in its fused form, pictures in memory as
float tensors in the layout it likes, the same threads as ours. Each form is tried for a few steps and its losses are
checked against plain eager first; the one with the fastest step goes into the rounds. Then, round by round, PyTorch and
`fedkt bench train` take turns, --steps steps each after warming up. Told are the fastest step of all rounds and the
median over rounds of the median step.

Memory is the most that a process ever held (ru_maxrss), of one that does nothing but the best form, and of our bench;
what PyTorch's process holds before there is a network is told beside it. bf16 is timed only where our side finds tiles
(AMX) that work; PyTorch runs in a child process (bench/beside.py), which may die of it.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import beside

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))

WARM, TRIED, CHECKED = 2, 3, 3
TOLERANCE = {"f32": 1e-3, "bf16": 1e-1}  # of the first losses against plain eager f32
RATE = 1e-3  # of bench/train.c


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


# -------------------------------------------------------------------------------------------------- the child: PyTorch


class Peer:
    def __init__(self, threads):
        import torch

        torch.set_num_threads(threads)
        self.torch, self.ready = torch, {}
        self.idle = peak_mb()

    def make(self, q):
        """A function that does one step and gives its loss."""
        import learn

        torch = self.torch
        torch.manual_seed(1)
        layout = torch.channels_last if q["channels_last"] else torch.contiguous_format
        net = learn.build(q["model"], "cifar").train().to(memory_format=layout)
        x = torch.randn(q["batch"], 3, q["size"], q["size"], generator=torch.Generator().manual_seed(2))
        x, label = x.contiguous(memory_format=layout), torch.arange(q["batch"]) % 10
        sgd = torch.optim.SGD(
            net.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=q["form"] != "plain"
        )

        def loss_of(x):
            with torch.autocast("cpu", torch.bfloat16, enabled=q["dtype"] == "bf16"):
                z = net(x)
            return torch.nn.functional.cross_entropy(z.float(), label)

        if q["form"] == "compiled":
            torch._dynamo.reset()
            loss_of = torch.compile(loss_of, dynamic=False)

        def step():
            sgd.zero_grad(set_to_none=True)
            loss = loss_of(x)
            loss.backward()
            sgd.step()
            return loss.item()

        return step

    def check(self, q, step):
        plain = self.make(dict(q, form="plain", channels_last=False, dtype="f32"))
        for i in range(CHECKED):
            got, want = step(), plain()
            if not abs(got - want) <= TOLERANCE[q["dtype"]] * abs(want):
                raise RuntimeError(f"loss {got:.6g} of step {i + 1} is {want:.6g} in plain eager")

    def time(self, q):
        key = json.dumps({k: v for k, v in q.items() if k not in ("steps", "lean")}, sort_keys=True)
        if key not in self.ready:
            self.ready.clear()
            step = self.make(q)
            if not q["lean"]:
                self.check(q, step)
            self.ready[key] = step
        step, took = self.ready[key], []
        for i in range(WARM + q["steps"]):
            start = time.perf_counter()
            step()
            took.append(time.perf_counter() - start)
        took = took[WARM:]
        rates = {"best": q["batch"] / min(took), "median": q["batch"] / statistics.median(took)}
        return {**rates, "peak_mb": peak_mb(), "idle_mb": self.idle}


# ---------------------------------------------------------------------------------------------------------- the parent


def ours(a, case, steps):
    model, size, dtype = case
    words = [
        a.fedkt,
        "bench",
        "train",
        "--network",
        model,
        "--sizes",
        str(size),
        "--batch",
        str(a.batch),
        "--dtype",
        dtype,
    ]
    words += ["--images", str(a.batch * steps), "--threads", str(a.threads), "--json", "--quiet"]
    words += beside.on_processor(a.fedkt)
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        return {"error": (p.stderr.strip().splitlines() or [f"exit {p.returncode}"])[0]}
    answer = json.loads(p.stdout)
    rows = {r["name"].partition("/")[2].split(" ")[0]: r for r in answer["rows"] if r["name"].endswith(dtype)}
    return {"isa": answer["isa"], **rows}


def find_best(a, kid, case, talk):
    """The form of PyTorch with the fastest step: (question, rate) or (None, reason)."""
    model, size, dtype = case
    best, fastest, reason = None, 0.0, "nothing ran"
    for form, channels_last in itertools.product(a.forms.split(","), (True,) if a.quick else (True, False)):
        q = dict(model=model, size=size, dtype=dtype, batch=a.batch, form=form, channels_last=channels_last)
        q.update(steps=TRIED, lean=False)
        answer = kid.ask(**q)
        label = f"  {form} {'nhwc' if channels_last else 'nchw'}"
        if "error" in answer:
            reason = answer["error"]
            talk(f"{label}: {reason}")
            continue
        talk(f"{label}: {answer['best']:.1f}/s")
        if answer["best"] > fastest:
            best, fastest = dict(q, steps=a.steps), answer["best"]
    return (best, fastest) if best else (None, reason)


def memory_of(a, q):
    """Of a process that does this form alone."""
    kid = beside.Child(__file__, a.threads, a.threads)
    try:
        return kid.ask(**dict(q, lean=True, steps=TRIED))
    finally:
        kid.close()


def measure(a, case, talk):
    model, size, dtype = case
    row = {"model": model, "size": size, "dtype": dtype, "batch": a.batch, "unit": "images/s"}
    if dtype == "bf16":
        isa = ours(a, (model, 8, "f32"), 1).get("isa")
        if isa != "amx":
            talk(f"{model} {size} px bf16: not timed, '{isa}' has no tiles for it")
            return []
    talk(f"{model} {size} px {dtype}")
    kid = beside.Child(__file__, a.threads, a.threads)
    try:
        q, found = find_best(a, kid, case, talk)
        rates = {"ours": [], "peer": []}
        mine = {}
        for _ in range(a.rounds):
            if q:
                answer = kid.ask(**q)
                if "error" not in answer:
                    rates["peer"].append(answer)
            mine = ours(a, case, a.steps)
            if "error" not in mine:
                rates["ours"].append({"best": mine["step"]["value"], "median": mine["median"]["value"]})
    finally:
        kid.close()
    for who, got in rates.items():
        best, median = [r["best"] for r in got], [r["median"] for r in got]
        row[who] = {"best": max(best), "median": statistics.median(median)} if got else None
    row["peer_form"] = {k: q[k] for k in ("form", "channels_last")} if q else {"unavailable": found}
    if row["ours"] and row["peer"]:
        row["ratio_to_peer"] = {k: row["ours"][k] / row["peer"][k] for k in ("best", "median")}
    if "error" in mine:
        row["ours_unavailable"] = mine["error"]
    else:
        row.update({k: mine["step"][k] for k in ("bound", "bound_name", "ratio_to_bound", "note")}, isa=mine["isa"])
        row["ours_mb"] = mine["memory"]["value"]
    if q and not a.quick:
        memory = memory_of(a, q)
        row["peer_mb"], row["peer_idle_mb"] = memory.get("peak_mb"), memory.get("idle_mb")
    return [row]


def show(rows):
    cell = lambda r, who: f"{r[who]['best']:9.1f} {r[who]['median']:9.1f}" if r[who] else f"{'-':>9} {'-':>9}"
    mb = lambda r, key: f"{r[key]:8.0f}" if r.get(key) else f"{'-':>8}"
    head = " ".join(f"{h:>9}" for h in ("ours best", "median", "peer best", "median"))
    print(f"{'network':9} {'px':>3} {'dtype':5} {head}  ratio {'ours MB':>8} {'peer MB':>8}  form")
    for r in rows:
        f = r["peer_form"]
        form = f.get("unavailable") or f"{f['form']} {'nhwc' if f['channels_last'] else 'nchw'}"
        if r.get("peer_idle_mb"):
            form += f" ({r['peer_idle_mb']:.0f} MB before a network)"
        ratio = f"{r['ratio_to_peer']['best']:5.2f}x" if "ratio_to_peer" in r else "     -"
        note = f" [ours: {r['ours_unavailable']}]" if "ours_unavailable" in r else ""
        case = f"{r['model']:9} {r['size']:3} {r['dtype']:5}"
        print(f"{case} {cell(r, 'ours')} {cell(r, 'peer')} {ratio} {mb(r, 'ours_mb')} {mb(r, 'peer_mb')}  {form}{note}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fedkt", required=True)
    p.add_argument("--models", default="resnet18")
    p.add_argument("--sizes", default="32,64")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--dtypes", default="f32,bf16")
    p.add_argument("--forms")
    p.add_argument("--json")
    p.add_argument("--quiet", action="store_true")
    p.add_argument("--quick", action="store_true")
    a = p.parse_args()
    a.forms = a.forms or ("compiled" if a.quick else "compiled,eager")
    if a.quick:
        a.sizes, a.rounds = "32", 2
    load, rows = os.getloadavg()[0], []
    for model, size, dtype in itertools.product(a.models.split(","), map(int, a.sizes.split(",")), a.dtypes.split(",")):
        found = measure(a, (model, size, dtype), beside.talk(a.quiet))
        rows += found
        show(found)
        beside.write_json(a.json, a, load, rows, "torch")
    beside.remark_on_company(load)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        beside.serve(Peer(int(sys.argv[2])).time)
    else:
        main()

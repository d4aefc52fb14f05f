#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images per second through the neural codecs, PyTorch beside us in one run on one machine.

usage: bench/codec.py [--fedkt BINARY] [--data DIR] [--images 1000] [--dcae-images 64] [--rounds 5] [--only SUBSTRING]
                      [--threads 2] [--dtypes f32,bf16] [--forms compiled,frozen,eager] [--json OUT] [--scratch DIR]
                      [--quick]

It wants a machine with nothing else to do, and half an hour of it; --quick, two minutes: TAESD at 32 px alone, 500
images, channels-last, batch 32, compiled and frozen, one round. --quick does not need diffusers.

Run it with a Python that has PyTorch, diffusers and safetensors from PyPI. Cases: TAESD at 32 and 64 px (weights of
DIR/codecs, or random ones), DC-AE f32c32 at 64 px (random weights, written to the scratch folder); encode and decode;
f32 and bf16. Without --fedkt PyTorch is measured alone.

PyTorch is given its best form: every combination of {eager, traced + frozen + optimised for inference, compiled with
frozen weights} x {NCHW, channels-last} x batch that is not hopeless is tried for a moment, each checked against plain
eager first; the fastest goes into the rounds. Inputs lie in memory as float tensors in the layout it likes, inference
mode is on, threads are the same as ours. Then, round by round, PyTorch and `fedkt bench codec` take turns; best and
median of each are printed. PyTorch runs in a child process (bench/beside.py).
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import beside

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "..", "oracle")
sys.path.insert(0, ORACLE)

CASES = [  # name for us, name and layouts for PyTorch, side, batches to try
    ("taesd", "taesd", ("taesd",), 32, (8, 16, 32, 64, 128)),
    ("taesd", "taesd", ("taesd",), 64, (4, 8, 16, 32, 64)),
    ("dc-ae-f32c32-in", "dc-ae-f32c32", ("diffusers", "efficientvit"), 64, (4, 16, 32)),
]
FORMS = ("compiled", "frozen", "eager")  # the likely winners first
READY = 2  # an encoder and a decoder
PASSES, PATIENCE = 5, 30.0  # of bench/codec.c
TOLERANCE = {"f32": 1e-4, "bf16": 5e-2}

# -------------------------------------------------------------------------------------------------- the child: PyTorch


class Peer:
    """Networks in one dtype, made ready form by form, kept so that rounds are fast."""

    def __init__(self, threads, dtype):
        import torch

        torch.set_num_threads(threads)
        self.torch = torch
        self.dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
        self.tolerance = TOLERANCE[dtype]
        self.nets, self.ready = {}, {}

    def net(self, name, layout, weights):
        import networks
        import random_weights

        key = (name, layout)
        if key not in self.nets:
            if weights:
                from safetensors.torch import load_file

                path = os.path.join(weights, name)
                parts = {s: load_file(f"{path}{s}.safetensors") for s in ("_encoder", "_decoder")}
                net = networks.load(networks.build(name, layout), layout, parts)
            else:
                net = random_weights.network(name, layout)
            self.nets[key] = net.to(self.dtype)
        return self.nets[key]

    def half(self, net, what):
        """The encoder or decoder as a module of its own; AutoencoderTiny's shift of pixels is left out."""
        inner = getattr(net, "inner", net)
        return inner.encoder if what == "encode" else inner.decoder

    def input(self, name, what, size, images, channels_last):
        import networks

        m = networks.DCAE.get(name)
        if what == "encode":
            shape = (images, 3, size, size)
        elif m:
            f = 2 ** (len(m.widths) - 1)
            shape = (images, m.latent, size // f, size // f)
        else:
            shape = (images, networks.TINY_CONFIG[name]["latent_channels"], size // 8, size // 8)
        torch = self.torch
        x = torch.rand(shape, generator=torch.Generator().manual_seed(1)).to(self.dtype)
        return x.contiguous(memory_format=torch.channels_last) if channels_last else x

    def prepare(self, q):
        key = json.dumps({k: q[k] for k in ("name", "layout", "what", "size", "form", "channels_last", "batch")})
        if key in self.ready:
            return self.ready[key]
        torch = self.torch
        plain = self.half(self.net(q["name"], q["layout"], q["weights"]), q["what"])
        x = self.input(q["name"], q["what"], q["size"], q["batch"], q["channels_last"])
        plain.to(memory_format=torch.channels_last if q["channels_last"] else torch.contiguous_format)
        want = plain(x)
        if q["form"] == "frozen":
            # The trace records inference tensors; it is made without them.
            with torch.inference_mode(False), torch.no_grad():
                run = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(plain, x.clone())))
        elif q["form"] == "compiled":
            import torch._inductor.config as inductor

            inductor.freezing = True
            torch._dynamo.reset()
            run = torch.compile(plain, dynamic=False)
        else:
            run = plain
        for _ in range(3):
            got = run(x)
        error = float((got.float() - want.float()).abs().max() / want.float().abs().max())
        if not error <= self.tolerance:
            raise RuntimeError(f"form '{q['form']}' is wrong by {error:.1e}")
        while len(self.ready) >= READY:  # each holds a copy of the weights
            self.ready.pop(next(iter(self.ready)))
        self.ready[key] = run
        return run

    def time(self, q):
        run = self.prepare(q)
        x = self.input(q["name"], q["what"], q["size"], q["images"] // q["batch"] * q["batch"], q["channels_last"])
        parts = list(x.split(q["batch"]))
        run(parts[0])
        ticks = [time.perf_counter()]
        for part in parts:
            run(part)
            ticks.append(time.perf_counter())
        shortest = min(b - a for a, b in zip(ticks, ticks[1:]))
        return {"rate": len(parts) * q["batch"] / (ticks[-1] - ticks[0]), "peak": q["batch"] / shortest}


def child(threads, dtype):
    peer = Peer(threads, dtype)
    with peer.torch.inference_mode():
        beside.serve(peer.time)


# ---------------------------------------------------------------------------------------------------------- the parent


def find_best(kid, case, what, images, weights, forms, talk, layouts_of_memory=(True, False)):
    """The fastest form of PyTorch for this case: (question, rate), or (None, reason). Forms are judged by their fastest
    batch, which other work on the machine disturbs least; one that is far behind with the middle batch is not tried
    with others."""
    _, name, layouts, size, batches = case
    best, fastest, reason = None, 0.0, "nothing ran"
    batches = sorted(batches, key=lambda b: abs(b - batches[len(batches) // 2]))
    for layout, form, channels_last in itertools.product(layouts, forms, layouts_of_memory):
        label = f"  {layout} {form} {'nhwc' if channels_last else 'nchw'}"
        for batch in batches:
            q = dict(name=name, layout=layout, what=what, size=size, form=form, channels_last=channels_last)
            q.update(batch=batch, weights=weights, images=max(batch, min(images, 6 * batch)))
            answers = [kid.ask(**q) for _ in range(3)]
            if any("error" in x for x in answers):
                reason = next(x["error"] for x in answers if "error" in x)
                talk(f"{label}: {reason}")
                break
            rate = max(x["peak"] for x in answers)
            talk(f"{label} batch {batch}: {rate:.1f}/s")
            if rate < 0.8 * fastest:
                break
            if rate > fastest:
                best, fastest = dict(q, images=max(batch, images)), rate
    return (best, fastest) if best else (None, reason)


def ours(a, case, dtype, images):
    """{'isa': ..., 'encode': row, 'decode': row} from one call of our bench, or {'error': ...}."""
    words = [a.fedkt, "bench", "codec", "--codec", case[0], "--weights", own_weights(a, case), "--size", str(case[3])]
    words += ["--dtype", dtype, "--images", str(images), "--threads", str(a.threads), "--json"]
    words += beside.on_processor(a.fedkt)
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        return {"error": (p.stderr.strip().splitlines() or [f"exit {p.returncode}"])[0]}
    answer = json.loads(p.stdout)
    out = {"isa": answer["isa"]}
    for row in answer["rows"]:
        suite, _, rest = row["name"].partition("/")
        if suite == "codec" and rest.split(" ")[0] in ("encode", "decode"):
            out[rest.split(" ")[0]] = row
    return out


def own_weights(a, case):
    if case[0] == "taesd" and a.data:
        return os.path.join(a.data, "codecs")
    stem = os.path.join(a.scratch, f"{case[1]}.{case[2][-1]}")
    path = stem + ("_encoder" if case[2][-1] == "taesd" else "") + ".safetensors"
    if not os.path.exists(path):
        import random_weights

        random_weights.main(case[1], case[2][-1], stem + ".safetensors")
    return path


def peer_pass(kid, q):
    """Best of PASSES passes, no further one after PATIENCE seconds: what our bench does."""
    rates, peaks, start = [], [], time.perf_counter()
    for i in range(PASSES):
        answer = kid.ask(**q)
        if "error" in answer or (i > 1 and time.perf_counter() - start > PATIENCE):
            break
        rates.append(answer["rate"])
        peaks.append(answer["peak"])
    return (max(rates), max(peaks)) if rates else (None, None)


def rounds(a, kid, case, dtype, images, best):
    """Rates of each round, {(who, what): [...]}, and what our bench said last."""
    rates = {(who, what): [] for who in ("ours", "peer", "peak") for what in best}
    mine = {}
    for _ in range(a.rounds):
        for what, (q, _) in best.items():
            rate, peak = peer_pass(kid, q) if q else (None, None)
            if rate:
                rates["peer", what].append(rate)
                rates["peak", what].append(peak)
        if a.fedkt and "error" not in mine:
            mine = ours(a, case, dtype, images)
            for what in best:
                if what in mine:
                    rates["ours", what].append(float(mine[what]["value"]))
    return rates, mine


def measure(a, kid, case, dtype, talk):
    taesd = case[0] == "taesd"
    images = a.images if taesd else a.dcae_images
    if dtype == "bf16" and a.fedkt:
        first = ours(a, case, dtype, 8)
        if first.get("isa", "amx") != "amx":
            talk(f"{case[0]} {case[3]} px bf16: not timed, '{first['isa']}' has no tiles for it")
            return []
    peer_weights = os.path.join(a.data, "codecs") if taesd and a.data else ""
    best = {}
    for what in ("encode", "decode"):
        talk(f"{case[0]} {case[3]} px {dtype} {what}")
        orders = (True,) if a.quick else (True, False)
        best[what] = find_best(kid, case, what, images, peer_weights, a.forms.split(","), talk, orders)
    rates, mine = rounds(a, kid, case, dtype, images, best)
    rows = []
    for what, (q, found) in best.items():
        row = {"codec": case[0], "size": case[3], "dtype": dtype, "what": what, "images": images, "unit": "images/s"}
        for who in ("ours", "peer"):
            got = rates[who, what]
            row[who] = {"best": max(got), "median": statistics.median(got)} if got else None
        row["peer_fastest_batch"] = max(rates["peak", what] + [found if q else 0.0])
        form = {k: q[k] for k in ("layout", "form", "channels_last", "batch")} if q else {"unavailable": str(found)}
        row["peer_form"] = form
        if "error" in mine:
            row["ours_unavailable"] = mine["error"]
        if what in mine:
            row.update({k: mine[what].get(k) for k in ("bound", "bound_name", "ratio_to_bound")}, isa=mine["isa"])
        if row["ours"] and row["peer"]:
            row["ratio_to_peer"] = {k: row["ours"][k] / row["peer"][k] for k in ("best", "median")}
        rows.append(row)
    return rows


def show(rows):
    cell = lambda r, who: f"{r[who]['best']:9.1f} {r[who]['median']:9.1f}" if r[who] else f"{'-':>9} {'-':>9}"
    head = ["ours best", "median", "peer best", "median"]
    print(f"{'codec':16} {'px':>3} {'dtype':5} {'what':6} {' '.join(f'{h:>9}' for h in head)}  ratio  form")
    for r in rows:
        f = dict(r["peer_form"])
        form = f.get("unavailable")
        if not form:
            form = f"{f['layout']} {f['form']} {'nhwc' if f['channels_last'] else 'nchw'} batch {f['batch']}"
        ratio = f"{r['ratio_to_peer']['best']:5.2f}x" if "ratio_to_peer" in r else "     -"
        note = f" [ours: {r['ours_unavailable']}]" if "ours_unavailable" in r else ""
        case = f"{r['codec']:16} {r['size']:3} {r['dtype']:5} {r['what']:6}"
        print(f"{case} {cell(r, 'ours')} {cell(r, 'peer')} {ratio}  {form}{note}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fedkt")
    p.add_argument("--data")
    p.add_argument("--images", type=int, default=1000)
    p.add_argument("--dcae-images", type=int, default=64)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--dtypes", default="f32,bf16")
    p.add_argument("--forms")
    p.add_argument("--only", default="", help="cases whose CODEC-PX-DTYPE contains this")
    p.add_argument("--json")
    p.add_argument("--scratch")
    p.add_argument("--quiet", action="store_true")
    p.add_argument("--quick", action="store_true")
    a = p.parse_args()
    talk = beside.talk(a.quiet)
    cases = [(*c[:4], (32,)) for c in CASES[:1]] if a.quick else CASES
    a.forms = a.forms or ",".join(FORMS[:2] if a.quick else FORMS)
    if a.quick:
        a.rounds, a.images = 1, min(a.images, 500)
    a.scratch = a.scratch or tempfile.mkdtemp()
    load = os.getloadavg()[0]
    rows = []
    for dtype in a.dtypes.split(","):
        for case in cases:
            if a.only not in f"{case[0]}-{case[3]}-{dtype}":
                continue
            kid = beside.Child(__file__, a.threads, a.threads, dtype)
            try:
                rows += measure(a, kid, case, dtype, talk)
            finally:
                kid.close()
    show(rows)
    beside.remark_on_company(load)
    beside.write_json(a.json, a, load, rows, "torch", *([] if a.quick else ["diffusers"]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(int(sys.argv[2]), sys.argv[3])
    else:
        main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One card: the client cost of the paper's table and ResNet-18 training, PyTorch beside us in one run.

usage: bench/gpu.py PART[,PART...] --fedkt BINARY --out DIR [--device cuda] [--scratch DIR] [--codecs DIR]
                    [--only SUBSTRING] [--forms eager,compiled,default] [--short] [--again] [--quick]

Parts, in the order in which they are worth running:
  versions   card, driver, clocks, CUDA, cuDNN, PyTorch          -> OUT/versions.json
  weights    random weights of the real shapes, f16              -> SCRATCH (taesd: those of --codecs, where given)
  warm       PyTorch's compiler for all cases at once, so that its cache is full when it is timed
  peak       the best matrix product (cuBLAS through PyTorch)    -> OUT/peak.json
  cost       encode, statistics and sampling, decode             -> OUT/cost.json
  train      ResNet-18, batch 256                                -> OUT/train.json
  pair       ours alone: encoders of the shipped pair, guided images -> OUT/pair.json
  any        ours again with algorithms that need not repeat (FEDKT_CUDA_ANY_ALGORITHM=1) -> OUT/any.json

Run it with a Python that has PyTorch and safetensors; diffusers is not needed. A file is written again after every
measurement; a measurement that fails or takes too long is a row with "error", and the rest goes on. What is timed on
PyTorch's side stands in bench/gpu_torch.py. Ours is `fedkt bench cost` and `fedkt bench train`: images uint8 in
pageable host memory, latents float32 in host memory, copies and conversions inside the measured time, best of five
passes; training with the images on the card, an epoch at a time. --forms: PyTorch's forms of training that are timed;
--short: shorter epochs; `train,pair --forms eager --short` takes less than a minute. --quick: few images, small
networks, nothing compiled, for a look whether everything runs.
"""

import argparse
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# name of the paper's row, our codec, name and layout in oracle/networks.py, side, batches eager, batches compiled
CASES = [
    ("TAESD 32 px", "taesd", "taesd", "taesd", 32, (250, 500, 1000), (500, 1000)),
    ("DC-AE f32c32 64 px", "dc-ae-f32c32-in", "dc-ae-f32c32", "efficientvit", 64, (250, 500, 1000), (500,)),
    ("DC-AE f64c128 64 px", "dc-ae-f64c128-in", "dc-ae-f64c128", "efficientvit", 64, (500, 1000), (500,)),
    ("DC-AE f32c32 128 px", "dc-ae-f32c32-in", "dc-ae-f32c32", "efficientvit", 128, (125, 250), (250,)),
]
QUICK = [
    ("TAESD 32 px", "taesd", "taesd", "taesd", 32, (10, 20), ()),
    ("DC-AE tiny 64 px", "dc-ae", "tiny-f32", "efficientvit", 64, (10, 20), ()),
]
PAPER = {  # RTX 5090, seconds: encode, statistics and sampling, decode
    "TAESD 32 px": (0.020, 0.009, 0.059),
    "DC-AE f32c32 64 px": (0.474, 0.003, 0.850),
    "DC-AE f64c128 64 px": (0.473, 0.002, 0.939),
    "DC-AE f32c32 128 px": (1.616, 0.006, 3.433),
}
TRAIN = [  # network, side, dtype, images, forms
    ("resnet18", 32, "bf16", 51200, ("eager", "compiled", "default")),
    ("resnet18", 64, "bf16", 25600, ("eager", "compiled", "default")),
    ("resnet18", 32, "f32", 25600, ("eager", "default")),
]
QUICK_TRAIN = [("resnet8", 16, "f32", 64, ("eager",)), ("resnet8", 16, "bf16", 64, ("eager",))]
SHORT = {"bf16": 0.5, "f32": 0.4}  # of the images
PAIR = [("fedkt-ae", 32), ("fedkt-guide", 32), ("fedkt-ae", 64), ("fedkt-guide", 64)]
BATCH, EPOCHS, PASSES, CLASSES = 256, 2, 5, 10
LIMIT = {"weights": 60, "warm": 180, "peak": 60, "codec": 90, "ours": 60, "train": 90}  # seconds of one child


def tail(text):
    return " | ".join(text.strip().splitlines()[-3:])[-400:]


def run(words, limit, env):
    """(exit status, stdout, stderr); a child that takes too long is ended with all that it started."""
    p = subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = p.communicate(timeout=limit)
        return p.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        return -1, p.communicate()[0], f"took more than {limit} s"


def answers(a, what, limit, questions):
    """Answers of one process of bench/gpu_torch.py, each maybe {"error": ...}."""
    words = [sys.executable, os.path.join(HERE, "gpu_torch.py"), what, json.dumps(questions)]
    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(a.scratch, "inductor"))
    if any(q.get("warm") for q in questions):
        env["TORCHINDUCTOR_COMPILE_THREADS"] = "4"
    rc, out, err = run([*words, "--device", a.device or "cpu"], limit, env)
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]  # a process that died: the first
    return found + [{"error": f"exit {rc}: {tail(err)}"}] * (len(questions) - len(found))


def ask(a, what, limit, **q):
    return answers(a, what, limit, [q])[0]


def fedkt(a, *words, **env):
    """What `fedkt bench ... --json` prints, or {"error": ...}."""
    words = [a.fedkt, "bench", *map(str, words), "--json", "--quiet"]
    words += ["--device", a.device] if a.device else []
    rc, out, err = run(words, LIMIT["ours"], dict(os.environ, **env))
    return json.loads(out) if rc == 0 else {"error": f"exit {rc}: {tail(err)}"}


def write(a, name, document):
    path = os.path.join(a.out, name)
    with open(path + ".new", "w") as f:
        json.dump(document, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


def read(a, name, default):
    try:
        with open(os.path.join(a.out, name)) as f:
            return json.load(f)
    except OSError:
        return default


def words_of(*command):
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=30)
        return p.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


# --------------------------------------------------------------------------------------------------------------- parts


def versions(a):
    smi = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,temperature.gpu"
    row = words_of("nvidia-smi", f"--query-gpu={smi}", "--format=csv,noheader").splitlines()
    out = {"nvidia_smi": dict(zip(smi.split(","), (w.strip() for w in row[0].split(",")))) if row else None}
    nvcc = words_of("nvcc", "--version") or words_of("/usr/local/cuda/bin/nvcc", "--version")
    nvcc = re.search(r"release (\S+),", nvcc)
    out.update(nvcc=nvcc.group(1) if nvcc else None, fedkt=words_of(a.fedkt, "--version"))
    import beside

    out.update(machine=beside.machine(), load_at_start=os.getloadavg()[0], peer=ask(a, "versions", 60))
    small = ["train", "--network", "resnet8", "--sizes", 16, "--batch", 16, "--images", 64]
    out["ours"] = {k: v for k, v in fedkt(a, *small).items() if k != "rows"}
    write(a, "versions.json", out)
    print(json.dumps(out))


def weights_path(a, case, half=""):
    if case[1] == "taesd" and a.codecs:
        return os.path.join(a.codecs, f"taesd{half}.safetensors")
    return os.path.join(a.scratch, f"{case[2]}{half}.safetensors")


def ours_weights(a, case):
    return weights_path(a, case, "_encoder" if case[3] == "taesd" else "")


def weights(a):
    for case in a.cases:
        if not os.path.exists(ours_weights(a, case)):
            q = dict(name=case[2], layout=case[3], path=weights_path(a, case), dtype="f16")
            print(case[2], json.dumps(ask(a, "weights", LIMIT["weights"], **q)), flush=True)


def codec_question(a, case, form, batches, **more):
    q = dict(name=case[2], layout=case[3], size=case[4], weights=weights_path(a, case), images=a.images)
    return dict(q, classes=CLASSES, batches=batches, form=form, passes=PASSES, **more)


def train_question(case, form, **more):
    network, size, dtype, images, _ = case
    q = dict(model=network, size=size, dtype=dtype, batch=min(BATCH, images // 4), images=images)
    return dict(q, form=form, epochs=EPOCHS, **more)


def warm(a):
    """The compiler uses many cores and little of the card: all cases at once."""
    jobs = [("codec", codec_question(a, c, "compiled", [b], warm=1)) for c in a.cases for b in c[6]]
    jobs += [("train", train_question(t, f, warm=1)) for t in a.train for f in t[4] if f != "eager"]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for (what, q), said in zip(jobs, pool.map(lambda j: ask(a, j[0], LIMIT["warm"], **j[1]), jobs)):
            name = f"{q.get('name', q.get('model'))} {q['size']} {q.get('batches', q.get('dtype'))} {q['form']}"
            print(f"warm {what} {name}: {said.get('error', 'ok')}", flush=True)


def peak(a):
    write(a, "peak.json", {d: ask(a, "peak", LIMIT["peak"], dtype=d) for d in ("bf16", "f32")})


def ours_cost(a, case, dtype, **env):
    words = ["cost", "--codec", case[1], "--size", case[4], "--images", a.images, "--classes", CLASSES]
    said = fedkt(a, *words, "--weights", ours_weights(a, case), "--dtype", dtype, **env)
    if "error" in said:
        return said
    rows = {r["name"].partition("/")[2].partition(f" {case[1]} ")[0]: r for r in said["rows"]}
    out = {"document": {k: v for k, v in said.items() if k != "rows"}}
    for key, r in (
        ("encode", rows["encode"]),
        ("statistics", rows["statistics and sampling"]),
        ("decode", rows["decode"]),
        ("first", rows["first latent"]),
    ):
        median = re.search(r"median (\S+) s", r["note"])
        out[key] = {"seconds": r["value"], "median": float(median.group(1)) if median else None, "note": r["note"]}
    return out


def cost(a):
    rows = []
    for case in a.cases:
        row = {"case": case[0], "images": a.images, "classes": CLASSES, "dtype": "bf16", "paper": PAPER.get(case[0])}
        rows.append(row)
        row["ours"] = ours_cost(a, case, "bf16")
        write(a, "cost.json", rows)
        for form, batches in (("eager", case[5]), ("compiled", case[6])):
            if not batches:
                continue
            row[form] = ask(a, "codec", LIMIT["codec"], **codec_question(a, case, form, batches))
            write(a, "cost.json", rows)
        if a.again:
            row["ours_again"] = ours_cost(a, case, "bf16")
        write(a, "cost.json", rows)
        print(json.dumps({k: v.get("error", "ok") for k, v in row.items() if isinstance(v, dict)}), flush=True)


def ours_train(a, case, **env):
    network, size, dtype, images, _ = case
    words = ["train", "--network", network, "--sizes", size, "--batch", min(BATCH, images // 4)]
    said = fedkt(a, *words, "--images", images, "--dtype", dtype, **env)
    if "error" in said:
        return said
    rows = {r["name"].partition("/")[2].split(" ")[0]: r for r in said["rows"]}
    row = rows["epoch" if "epoch" in rows else "step"]
    return {"images_per_s": row["value"], "median": rows["median"]["value"], "note": row["note"], "what": row["name"]}


def train(a):
    rows = []
    eager = answers(a, "train", LIMIT["train"], [train_question(c, "eager") for c in a.train])  # they start at once
    for case, said in zip(a.train, eager):
        row = dict(zip(("network", "size", "dtype", "images"), case), batch=min(BATCH, case[3] // 4), eager=said)
        rows.append(row)
        row["ours"] = ours_train(a, case)
        write(a, "train.json", rows)
        for form in case[4]:
            if form != "eager":
                row[form] = ask(a, "train", LIMIT["train"], **train_question(case, form))
                write(a, "train.json", rows)
        if a.again:
            row["ours_again"] = ours_train(a, case)
        write(a, "train.json", rows)
        print(json.dumps({k: v.get("error", "ok") for k, v in row.items() if isinstance(v, dict)}), flush=True)


def pair(a):
    """Rows of `fedkt bench codec` and `guided`; the definition by gradient is f32 whatever the encoders are."""
    said = {"guided": fedkt(a, "guided", "--images", 8 if a.quick else 2048, "--dtype", "auto")}
    for codec, size in PAIR[:2] if a.quick else PAIR:
        words = ["codec", "--codec", codec, "--size", size, "--dtype", "auto"]
        said[f"{codec} {size} px"] = fedkt(a, *words, *(["--images", 16] if a.quick else []))
        write(a, "pair.json", said)
    for name, document in said.items():
        for r in document.get("rows", []):
            if r["unit"] == "images/s":
                print(f"{r['name']}: {r['value']:,.0f} images/s, {r['note']}")
        if "error" in document:
            print(f"{name}: {document['error']}")


def any_algorithm(a):
    free = {"FEDKT_CUDA_ANY_ALGORITHM": "1"}
    rows = []
    for c in a.cases[:2]:
        rows.append({"case": c[0], "dtype": "bf16", **ours_cost(a, c, "bf16", **free)})
        write(a, "any.json", rows)
    for t in a.train:
        rows.append({"case": f"{t[0]} {t[1]} px", "dtype": t[2], **ours_train(a, t, **free)})
        write(a, "any.json", rows)


PARTS = {f.__name__: f for f in (versions, weights, warm, peak, cost, train, pair)} | {"any": any_algorithm}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("parts")
    p.add_argument("--fedkt", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--device", default="cuda", help="'': no --device at all, PyTorch on the processor")
    p.add_argument("--scratch")
    p.add_argument("--codecs")
    p.add_argument("--only", default="", help="cases whose name contains this")
    p.add_argument("--forms", default="eager,compiled,default", help="of PyTorch's training; eager is always timed")
    p.add_argument("--short", action="store_true", help="fewer images in an epoch of training")
    p.add_argument("--images", type=int, default=1000)
    p.add_argument("--jobs", type=int, default=8, help="compilers at once")
    p.add_argument("--again", action="store_true", help="ours once more after PyTorch: what the card's clocks do")
    p.add_argument("--quick", action="store_true")
    a = p.parse_args()
    a.fedkt = os.path.abspath(a.fedkt)
    a.scratch = a.scratch or tempfile.mkdtemp()
    a.cases, a.train = (QUICK, QUICK_TRAIN) if a.quick else (CASES, TRAIN)
    a.images = 20 if a.quick else a.images
    a.cases = [c for c in a.cases if a.only in c[0]]
    a.train = [t for t in a.train if a.only in f"{t[0]} {t[1]} px {t[2]}"]
    a.train = [(*t[:3], int(t[3] * SHORT[t[2]]), t[4]) if a.short else t for t in a.train]
    a.train = [(*t[:4], [f for f in t[4] if f in a.forms.split(",")]) for t in a.train]
    for folder in (a.out, a.scratch):
        os.makedirs(folder, exist_ok=True)
    for name in a.parts.split(","):
        if name not in PARTS:
            sys.exit(f"gpu.py: unknown part '{name}': {', '.join(PARTS)}")
        PARTS[name](a)


if __name__ == "__main__":
    main()

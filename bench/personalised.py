#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's personalised table: per-site accuracy of a network pretrained on X* and tuned at each site, beside local
training and one round of federated averaging, on the same records.

usage: bench/personalised.py FEDKT DATA [--codec taesd --weights PATH (--calibration FILE | --public SET)]
                             [--network resnet8] [--limit 5000] [--test-limit 2000] [--seeds 0,1,2] [...]

DATA has splits `train` and `test` (CIFAR-10). For each seed: the sites' training records make a release (20 sites,
epsilon 10), a network learns from pictures drawn from it, and `fedkt personalize` judges every way on the test split,
shared out over the sites as they hold the classes. The exact sums do not depend on who holds what, so one release and
one network serve all partitions of a seed; that network has seen none of the records that are judged. Noise comes from
the operating system. --limit takes that many training records, the same ones in release, tuning and local training.

With the defaults it is meant to end within 25 minutes on two cores that do nothing else. Prints Markdown on stdout:
mean over the sites, then mean and standard deviation over the seeds, in per cent; --keep DIR keeps every JSON.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

WAYS = ("local", "fedavg", "fedavg_tuned", "global", "tuned")
NAMES = {
    "local": "local only",
    "fedavg": "FedAvg, one round",
    "fedavg_tuned": "FedAvg, one round, last layer tuned",
    "global": "X*, untouched",
    "tuned": "X*, last layer tuned (ours)",
}


def run(*words):
    words = [str(word) for word in words]
    print("$ " + shlex.join(["fedkt", *words[1:]]), file=sys.stderr, flush=True)
    done = subprocess.run([*words, "--json", "--quiet"], stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)  # it has said why
    return json.loads(done.stdout)


def codec_words(a):
    words = ["--codec", a.codec, "--size", a.size]
    return words + (["--weights", a.weights] if a.weights else [])


def calibrate(a, folder):
    if a.calibration or not a.public:
        return a.calibration
    made = folder / "calibration.safetensors"
    top = ["--top", a.top] if a.top else []
    name, *rest = codec_words(a)[1:]
    run(a.fedkt, "codec", "calibrate", name, *rest, *top, "--public", a.public, "--out", made)
    return made


def pretrain(a, seed, calibration, folder):
    """A release of the training records, and a network that learned from pictures drawn from it."""
    out = folder / f"run-{seed}"
    model = folder / f"model-{seed}.safetensors"
    threads = ["--threads", a.threads] if a.threads else []
    words = ["--data", a.data, "--split", "train", "--limit", a.limit, "--sites", a.sites, "--seed", seed]
    words += ["--epsilon", a.epsilon, "--delta", a.delta, "--coordinates", a.coordinates, "--out", out]
    words += ["--calibration", calibration] if calibration else []
    run(a.fedkt, "simulate", *words, *codec_words(a), *threads)
    words = ["--release", out / "release.safetensors", "--network", a.model, "--per-class", a.per_class]
    words += ["--epochs", a.epochs, "--draw-seed", seed, "--seed", seed + 1, "--out", model]
    words += ["--test", a.data, "--test-split", "test", "--test-limit", a.test_limit]
    words += ["--weights", a.weights] if a.weights else []
    trained = run(a.fedkt, "train", *words, *threads)
    return model, trained


def personalize(a, seed, model, partition):
    words = ["--model", model, "--data", a.data, "--split", "train", "--limit", a.limit]
    words += ["--test-split", "test", "--test-limit", a.test_limit, "--sites", a.sites, "--partition", partition]
    words += ["--epochs-local", a.epochs_local, "--epochs-tune", a.epochs_tune, "--batch", a.batch, "--seed", seed]
    words += ["--threads", a.threads] if a.threads else []
    if a.baselines:
        words += ["--baselines", a.baselines, "--rounds", a.rounds]
        words += ["--baseline-set", a.baseline_set] if a.baseline_set else []
    return run(a.fedkt, "personalize", *words)


def spread(values):
    mean = sum(values) / len(values)
    return mean, (sum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)) ** 0.5


def cell(values):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    mean, deviation = spread(values)
    return f"{100 * mean:.1f} ± {100 * deviation:.1f}" if len(values) > 1 else f"{100 * mean:.1f}"


def table(a, results, trained, seconds):
    print(
        f"{a.model}, {a.sites} sites, {a.limit} training records, {a.test_limit} test records, epsilon {a.epsilon}, "
        f"{a.codec}, {a.coordinates}, {a.per_class} pictures drawn per class; epochs: {a.epochs} on X*, "
        f"{a.epochs_local} local, {a.epochs_tune} of tuning; seeds {a.seeds}; {seconds / 60:.0f} minutes\n"
    )
    print("| mean accuracy over the sites, % | " + " | ".join(a.partitions) + " |")
    print("|---|" + "---|" * len(a.partitions))
    for way in WAYS:
        cells = [cell([found["mean"][way] for found in results[partition]]) for partition in a.partitions]
        print(f"| {NAMES[way]} | " + " | ".join(cells) + " |")
    for name in results[a.partitions[0]][0].get("baselines", {}).get("methods", []):
        found = {p: [one["baselines"]["mean"][name] for one in results[p]] for p in a.partitions}
        print(f"| {name}, {a.rounds} rounds | " + " | ".join(cell(found[p]) for p in a.partitions) + " |")
    print("| *standard deviation over the sites, ours* | ", end="")
    print(
        " | ".join(cell([found["spread"]["tuned"] for found in results[partition]]) for partition in a.partitions)
        + " |"
    )
    left = {partition: sum(len(found["left_out"]) for found in results[partition]) for partition in a.partitions}
    print("| *sites without test records, all seeds* | " + " | ".join(str(left[p]) for p in a.partitions) + " |\n")
    print(f"The network from X* on all test records: {cell([found['test']['accuracy'] for found in trained])} %.")


def arguments():
    p = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("fedkt")
    p.add_argument("data")
    p.add_argument("--codec", default="dct")
    p.add_argument("--weights", help="of the codec")
    p.add_argument("--calibration", help="public calibration of the codec")
    p.add_argument("--public", help="public image set to make one from")
    p.add_argument("--top", type=int, help="keep the strongest directions of that calibration")
    p.add_argument("--size", type=int, default=32)
    p.add_argument("--coordinates", default="gain-shape")
    p.add_argument("--model", default="resnet8", choices=("resnet8", "resnet18"))
    p.add_argument("--sites", type=int, default=20)
    p.add_argument("--partitions", default="pathological:2,dirichlet:0.1")
    p.add_argument("--limit", type=int, default=5000)
    p.add_argument("--test-limit", type=int, default=2000)
    p.add_argument("--per-class", type=int, default=500)
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--epochs-local", type=int, default=10)
    p.add_argument("--epochs-tune", type=int, default=20)
    p.add_argument("--batch", type=int, default=32, help="of local training and tuning")
    p.add_argument("--epsilon", default="10")
    p.add_argument("--delta", default="1e-5")
    p.add_argument("--baselines", help="methods of others, as in `fedkt personalize --baselines`")
    p.add_argument("--rounds", type=int, default=10, help="of those")
    p.add_argument("--baseline-set", help="their other numbers")
    p.add_argument("--seeds", default="0,1,2")
    p.add_argument("--threads", type=int)
    p.add_argument("--keep", type=pathlib.Path, help="folder for every JSON, models and runs; made new")
    a = p.parse_args()
    a.partitions = a.partitions.split(",")
    return a


def main():
    a = arguments()
    start = time.monotonic()
    results, trained = {partition: [] for partition in a.partitions}, []
    with tempfile.TemporaryDirectory() as temporary:
        folder = a.keep or pathlib.Path(temporary)
        if a.keep:
            os.makedirs(folder)
        calibration = calibrate(a, folder)
        for seed in map(int, a.seeds.split(",")):
            model, found = pretrain(a, seed, calibration, folder)
            trained.append(found)
            for partition in a.partitions:
                found = personalize(a, seed, model, partition)
                results[partition].append(found)
                name = f"personalize-{seed}-{partition.replace(':', '-')}.json"
                (folder / name).write_text(json.dumps(found, indent=1))
    table(a, results, trained, time.monotonic() - start)


if __name__ == "__main__":
    main()

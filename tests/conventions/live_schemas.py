# SPDX-License-Identifier: Apache-2.0
"""live_schemas.py - what the program writes follows the published schemas, in a small run from task to dataset.

Usage: live_schemas.py FEDKT      exit 0: all well, 1: not, 77: python3-jsonschema is not installed
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
for place in ("oracle", "tests/cli"):
    sys.path.insert(0, str(ROOT / place))

import fixtures  # noqa: E402
import tensors  # noqa: E402
from check_schemas import complaints  # noqa: E402

SMALL = ["--codec", "dct", "--dim", "8"]
PRIVACY = ["--epsilon", "1", "--delta", "1e-5"]
NAMES = ["task", "moments", "ledger", "release", "made"]
KINDS = [
    [],
    ["--adjacency", "replace-any"],
    ["--adjacency", "replace", "--mechanism", "paper", "--coordinates", "clip"],
]


class Walk:
    def __init__(self, program, folder):
        self.program, self.folder, self.bad, self.checked = program, folder, 0, 0

    def run(self, *words):
        got = subprocess.run(
            [self.program, *words, "--quiet", "--json"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if got.returncode != 0:
            print(f"fedkt {' '.join(words)}: exit {got.returncode}: {got.stderr}")
            sys.exit(1)
        return json.loads(got.stdout)

    def file(self, name):
        return json.loads(pathlib.Path(self.folder, name).read_text())

    def check(self, schema, document, what):
        self.checked += 1
        for line in complaints(schema, document):
            print(f"{what}: {line}")
            self.bad = 1


def one_walk(walk, number, extra):
    task, moments, ledger, release, made = (f"{name}-{number}" for name in NAMES)
    costs = [word for word in extra if word not in ("--coordinates", "clip")]
    walk.check("privacy", walk.run("privacy", *PRIVACY, *costs, "--dim", "8", "--clip", "1"), "privacy")
    if not extra:
        words = ["--adjacency", "add-remove", "--trials", "1000"]
        walk.check("privacy-audit", walk.run("audit", *PRIVACY, *words), "privacy audit")
    walk.run("task", "new", "--data", "demo:train", *SMALL, *PRIVACY, *extra, "--out", task)
    walk.check("task", walk.file(task), task)
    walk.run("moments", "--task", task, "--data", "demo:train", "--limit", "100", "--out", moments)
    walk.run("release", "--task", task, "--moments", moments, "--ledger", ledger, "--out", release)
    walk.check("ledger", walk.run("ledger", "--ledger", ledger), ledger)
    walk.run("generate", "--release", release, "--per-class", "1", "--out", made)
    walk.check("certificate", walk.file(f"{made}/certificate.json"), f"certificate {extra}")


def tasks_with_a_guide(walk):
    """Codec and guide side by side, joined, pooled, and a guide alone."""
    folder = pathlib.Path(walk.folder)
    fixtures.small_guide(folder / "guide", 1)
    fixtures.image_folder(folder / "public", ["a", "b"], 40, first_seed=20)
    words = ["--weights", "guide", "--size", "32", "--top", "6", "--public", "public", "--out", "guide.cal"]
    walk.run("codec", "calibrate", "resnet", *words)
    networks = ["--guide-weights", "guide", "--guide-calibration", "guide.cal"]
    alone = ["--codec", "none"]
    for extra in (SMALL, [*SMALL, "--joined"], [*alone], [*alone, "--moments", "pooled"]):
        made = ["--data", "demo:train", "--guide", "resnet", *networks, *PRIVACY, *extra]
        walk.run("task", "new", *made, "--out", "guided", "--force")
        walk.check("task", walk.file("guided"), f"task {extra}")
        words = ["--task", "guided", "--data", "demo:train", "--limit", "50", *networks]
        walk.run("moments", *words, "--out", "sums", "--force")
        words = ["--task", "guided", "--moments", "sums", "--guide-calibration", "guide.cal", "--dataset", str(extra)]
        walk.run("release", *words, "--ledger", f"ledger{extra}", "--out", "numbers", "--force")
        told = tensors.load(folder / "numbers")["meta"]["certificate"]
        walk.check("certificate", json.loads(told), f"certificate {extra}")


def a_federation_with_a_server(walk):
    for name in ("one", "two", "three"):
        walk.run("keygen", "--out", name, "--name", f"site {name}")
        walk.check("key", walk.file(name), "a key")
        walk.check("site", walk.file(f"{name}.pub"), "a site")
    walk.run("enroll", "--roster", "enrolled", "one.pub", "two.pub", "three.pub")
    words = ["--roster", "enrolled", "--records", "9", "--classes", "a,b", "--server", "https://[::1]:8443"]
    for more in ([], ["--insecure-seed", "7", "--expires", "2d", "--rounds", "64"]):
        walk.run("task", "new", *words, *more, *PRIVACY, "--key", "one", "--out", "served", "--force")
        walk.check("task", walk.file("served"), f"task --server {more}")
        walk.check("task", walk.run("task", "show", "--task", "served")["task"], "task show")


def a_personalised_network(walk):
    words = ["train", "--data", "demo:train", "--limit", "40", "--network", "resnet8", "--size", "8"]
    walk.run(*words, "--epochs", "1", "--batch", "8", "--threads", "1", "--out", "network")
    words = ["personalize", "--model", "network", "--data", "demo:train", "--limit", "60", "--threads", "1"]
    sites = ["--sites", "3", "--partition", "dirichlet:0.1", "--epochs-local", "1", "--out", "sites"]
    walk.check("personalize", walk.run(*words, *sites), "personalize")
    walk.check("personalize", walk.file("sites/results.json"), "personalize --out")
    others = ["--sites", "3", "--ways", "global", "--baselines", "fedavg,apple", "--rounds", "1"]
    walk.check("personalize", walk.run(*words, *others), "personalize --baselines")
    for more in (["--out", "mine"], ["--test", "demo:test", "--test-limit", "20"], ["--holdout", "0"]):
        walk.check("personalize", walk.run(*words, "--sites", "1", *more), f"personalize {more}")
    words[1:3] = ["--release", "release-0", "--network", "resnet8", "--per-class", "2", "--epochs", "1"]
    for more in ([], ["--fresh", "--model-out", "first"]):
        walk.check("personalize", walk.run(*words, "--sites", "1", *more), f"personalize --release {more}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        walk = Walk(pathlib.Path(sys.argv[1]).resolve(), folder)
        for number, extra in enumerate(KINDS):
            one_walk(walk, number, extra)
        tasks_with_a_guide(walk)
        shares = ["--noise", "distributed", "--sites", "20"]
        walk.check("privacy", walk.run("privacy", *PRIVACY, *shares, "--dim", "8", "--clip", "1"), "privacy, shares")
        printed = walk.run(
            "simulate",
            "--data",
            "demo:train",
            "--limit",
            "200",
            "--holdout",
            "0.2",
            *SMALL,
            "--sites",
            "3",
            "--epsilon",
            "10,1",
            "--delta",
            "1e-5",
            "--insecure-seed",
            "1",
            "--out",
            "run",
        )
        walk.check("results", printed, "simulate --json")
        walk.check("results", walk.file("run/results.json"), "results.json")
        for path in sorted(pathlib.Path(folder, "run").rglob("certificate.json")):
            walk.check("certificate", json.loads(path.read_text()), str(path.relative_to(folder)))
            walk.check("task", json.loads((path.parent / "task.json").read_text()), f"task beside {path}")
        roster = json.loads((path.parent / "task.json").read_text())["federation"]["roster"]
        pathlib.Path(folder, "roster").write_text("# the sites' keys\n" + "\n".join(roster) + "\n")
        words = ["--roster", "roster", "--records", "1000", "--classes", "a,b", "--keystream", "chacha20"]
        walk.run("task", "new", *words, *PRIVACY, "--out", "federated")
        walk.check("task", walk.file("federated"), "task --roster")
        a_federation_with_a_server(walk)
        a_personalised_network(walk)
    print(f"{walk.checked} documents")
    return walk.bad


if __name__ == "__main__":
    sys.exit(main())

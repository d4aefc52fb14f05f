#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_words.py - what people read on a terminal says what is so, and no more.

Usage: run_words.py FEDKT LOG_FOLDER     (LOG_FOLDER makes public folders, tests/oracle/log_folder.c)
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "oracle"))
import transparency  # noqa: E402

ADDRESS = "https://fedkt.example.org:8443"


class Trial:
    def __init__(self, fedkt, maker, folder):
        self.fedkt, self.folder, self.bad, self.looks = pathlib.Path(fedkt).resolve(), pathlib.Path(folder), 0, 0
        self.maker = pathlib.Path(maker).resolve()

    def run(self, *words, timeout=60):
        return subprocess.run([self.fedkt, *words], cwd=self.folder, capture_output=True, text=True, timeout=timeout)

    def must(self, *words):
        done = self.run(*words)
        if done.returncode:
            sys.exit(f"fedkt {' '.join(words)}: {done.stderr}")
        return done.stdout

    def want(self, truth, what):
        self.looks += 1
        if not truth:
            print(f"wrong: {what[:4000]}")
            self.bad = 1


def check_show(trial):
    """Sentences stand on lines of their own, and nothing of ours is shown as a control character."""
    for name in ("operator", "north", "south", "east"):
        trial.must("keygen", "--out", f"{name}.key", "--name", name)
    trial.must("enroll", "--roster", "roster", "north.key.pub", "south.key.pub", "east.key.pub")
    words = "task new --codec dct --classes a,b --epsilon 1 --delta 1e-5 --dim 8 --roster roster --records 100".split()
    trial.must(*words, "--server", ADDRESS, "--key", "operator.key", "--out", "task.json")
    said = trial.must("task", "show", "--task", "task.json")
    trial.want("?" not in said, f"a '?' in what task show prints:\n{said}")
    for sentence in ("Protected: ", "Differential privacy with ", "Every site adds ", "Not protected: "):
        trial.want(re.search(rf"^ {{12}}{sentence}", said, re.MULTILINE), f"'{sentence}' begins no line:\n{said}")


def check_operator(trial):
    """Verify says that the operator was compared only where there was something to compare with."""
    good = trial.folder / "good"
    good.mkdir()
    subprocess.run([trial.maker, good, "7", "1", "1"], check=True)
    task = json.loads((good / "task.json").read_text())
    key = task.pop("signature")["key"]
    (trial.folder / "unsigned.json").write_text(json.dumps(task))
    for words, compared in (
        ([], False),
        (["--task", "unsigned.json"], False),
        (["--task", "good/task.json"], True),
        (["--operator", key], True),
        (["--task", "unsigned.json", "--operator", key], True),
    ):
        said = trial.must("verify", "--folder", "good", *words)
        told = json.loads(trial.must("verify", "--folder", "good", *words, "--json"))
        trial.want(told["operator_compared"] is compared, f"operator_compared with {words}")
        trial.want(told["task_compared"] is ("--task" in words), f"task_compared with {words}")
        trial.want(("NOT compared" in said) is not compared, f"what is said of the operator with {words}:\n{said}")


def check_claims(trial):
    """Nothing ties the numbers of a release to the vectors: that is said, to people and to programs."""
    said = trial.must("verify", "--folder", "good")
    told = json.loads(trial.must("verify", "--folder", "good", "--json"))
    trial.want("of this task" not in said and "the only one in this log" in said, f"the only release:\n{said}")
    trial.want(re.search(r"^certificate  the server's claim: ", said, re.MULTILINE), f"the certificate:\n{said}")
    trial.want("NOT checked: that its numbers are the sum of these sites' vectors" in said, f"the sum:\n{said}")
    trial.want("and that they contain noise" in said, f"the noise:\n{said}")
    trial.want(told.get("sum_proved") is False and told.get("noise_proved") is False, f"{told}")


def check_odd_files(trial):
    """A pipe does not hold verify up, and a link does not lead it out of the folder; the oracle says the same."""
    for name in ("transparency.jsonl", "release.safetensors", "certificate.json", "grid.png"):
        for make in (os.mkfifo, lambda path: path.symlink_to(trial.folder / "good" / path.name)):
            bad = trial.folder / "odd"
            shutil.copytree(trial.folder / "good", bad)
            (bad / name).unlink()
            make(bad / name)
            linked = (bad / name).is_symlink()
            try:
                done = trial.run("verify", "--folder", "odd", timeout=20)
            except subprocess.TimeoutExpired:
                trial.want(False, f"verify waits for a pipe '{name}'")
            else:
                fits = linked and name != "grid.png"  # whoever gives the folder may have put the three there himself
                trial.want(done.returncode == (0 if fits else 1), f"{name}, link {linked}: {done.stderr}")
            try:
                transparency.verify(bad)
                fits = True
            except transparency.Wrong:
                fits = False
            trial.want(fits == (linked and name != "grid.png"), f"the oracle on {name}, link {linked}")
            shutil.rmtree(bad)


def main():
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(sys.argv[1], sys.argv[2], folder)
        check_show(trial)
        check_operator(trial)
        check_claims(trial)
        check_odd_files(trial)
    print(f"{trial.looks} looks")
    return trial.bad


if __name__ == "__main__":
    sys.exit(main())

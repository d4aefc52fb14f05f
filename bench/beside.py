# SPDX-License-Identifier: Apache-2.0
"""What benchmarks with PyTorch beside us share: PyTorch in a child process, the machine in words, a remark on company.

PyTorch runs in a child, since bf16 can kill a process where AMX is announced and does not work; a child that dies is
reported as such and the rest goes on. Parent and child speak JSON, one line each way.
"""

import functools
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile


class Child:
    """`script --child WORDS...` as a process that answers questions; begun with the first one."""

    def __init__(self, script, threads, *words):
        self.words = [sys.executable, os.path.abspath(script), "--child", *map(str, words)]
        self.env = dict(os.environ, OMP_NUM_THREADS=str(threads), TORCHINDUCTOR_CACHE_DIR=tempfile.mkdtemp())
        self.p = None

    def ask(self, **q):
        if not self.p:
            self.p = subprocess.Popen(
                self.words,
                env=self.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        try:
            self.p.stdin.write(json.dumps(q) + "\n")
            self.p.stdin.flush()
            line = self.p.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        rc = self.p.wait()
        self.p = None
        return {"error": f"the process died: {signal.Signals(-rc).name if rc < 0 else rc}"}

    def close(self):
        if self.p:
            self.p.stdin.close()
            self.p.wait()
            self.p = None


def serve(answer):
    """The child's side: one answer a line, until there are no more questions."""
    import warnings

    warnings.filterwarnings("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is talk
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as e:  # a form that does not exist here is an answer, not an end
            said = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        print(json.dumps(said), file=out, flush=True)


def machine(*packages):
    """Processor, kernel and the versions of these packages."""
    import importlib.metadata

    model = "unknown"
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            words = dict(line.split(":", 1) for line in f if ":" in line)
        pick = lambda k: next((v.strip() for n, v in words.items() if n.strip() == k), "?")
        model = f"{pick('model name')} family {pick('cpu family')} model {pick('model')}"
    versions = {p: importlib.metadata.version(p) for p in packages}
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(), **versions}


@functools.cache
def on_processor(fedkt):
    """Words that keep `fedkt bench` off a card."""
    p = subprocess.run([fedkt, "bench", "--help"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return ["--device", "cpu"] if "--device" in p.stdout else []


def talk(quiet):
    return (lambda s: None) if quiet else (lambda s: print(s, file=sys.stderr, flush=True))


def remark_on_company(load):
    if load > 0.5:
        print(f"The machine was busy at the start (load {load:.1f}): repeat it on a quiet one before")
        print("these ratios are quoted. PyTorch seems to suffer more from company than we do.")


def write_json(path, a, load, rows, *packages):
    if not path:
        return
    with open(path, "w") as f:
        head = {"machine": machine(*packages), "load_at_start": load, "threads": a.threads, "rounds": a.rounds}
        json.dump({**head, "rows": rows}, f, indent=1)
        f.write("\n")

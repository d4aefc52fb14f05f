# SPDX-License-Identifier: Apache-2.0
"""The step `card` of bench/guide.py: students, several at once on one card, until the time is over.

A cell begins only if it can end: as many seconds must be left as the longest run of its arm took with as many workers,
and a tenth more; before there was one, --cell or the longest run of any arm. What still runs at the end is killed and
leaves no cell. Workers are
processes of `fedkt train` that share the card; each gets its share of the processor's threads.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

from guide_cells import ARMS, LONG, SEEDS, cell_path, cells, inputs, students, write

RECIPE = "--network resnet18 --per-class 1000 --fresh --epochs 50 --batch 256 --rate 0.1 --warmup 2 --dtype bf16"
RECIPE += " --codec-dtype bf16"  # in f32 the guided decoder takes most of the time of a run
QUICK = "--network resnet8 --per-class 4 --fresh --epochs 1 --batch 16"


def say(text):
    print(text, file=sys.stderr, flush=True)


def command(a, cell, worker):
    """The words of `fedkt train` for this cell."""
    name, arm, _, _, seed = cell
    pair, options = ARMS[arm]
    below = lambda *parts: os.path.join(a.out, *parts)
    source = below(inputs(cell)[0])
    recipe = (QUICK if a.quick else RECIPE).split()
    if pair == "real":
        recipe.remove("--fresh")
        for option in [o for o in ("--codec-dtype", "--per-class") if o in recipe]:
            at = recipe.index(option)
            del recipe[at : at + 2]
        recipe[recipe.index("--epochs") + 1] = "1" if a.quick else "20"
        words = [a.fedkt, "train", "--data", source, *recipe]
    else:
        if arm in LONG and not a.quick:
            recipe[recipe.index("--epochs") + 1] = "75"
        words = [a.fedkt, "train", "--release", source, *recipe, "--draw-seed", str(seed), *options.split()]
        words += [below("sets", "public.tar")] if "--public" in options else []  # behind the option --public
    words += ["--weights", below("codecs")] if pair == "paper" else []
    words += ["--threads", str(max(1, (os.cpu_count() or 1) // a.workers))] if a.workers > 1 else []
    words += ["--seed", str(seed + 1), "--test", below("sets", f"{name}-test.tar"), "--device", a.device or "cuda"]
    return [*words, "--out", below(f"model-{worker}.safetensors"), "--force", "--json", "--quiet"]


class Card:
    """Cells that are left to do, and the processes that do them."""

    def __init__(self, a):
        self.a, self.begun, self.lock = a, time.monotonic(), threading.Lock()
        self.longest, self.running, self.ended, self.failed = {}, set(), False, 0
        for c in cells([a.out], "student"):
            if c.get("workers", 1) == a.workers:
                self.note(c["arm"], c["seconds"])
        ready = [c for c in students(SEEDS[:1] if a.quick else SEEDS) if c[0] in a.sets]
        ready = [c for c in ready if all(os.path.exists(os.path.join(a.out, file)) for file in inputs(c))]
        self.todo = [c for c in ready if not os.path.exists(cell_path(a.out, "student", *c))]
        say(f"{len(self.todo)} cells to do, {len(ready) - len(self.todo)} done, {a.workers} at once")

    def left(self):
        return self.a.seconds - (time.monotonic() - self.begun)

    def note(self, arm, seconds):
        self.longest[arm] = max(self.longest.get(arm, 0), seconds)

    def next(self):
        """The first cell that can still end, or None. One that cannot stays, in case that a shorter one follows it."""
        with self.lock:
            for i, cell in enumerate(self.todo):
                unknown = max([self.a.cell, *self.longest.values()])
                needed = 1.1 * self.longest[cell[1]] if cell[1] in self.longest else unknown
                if self.left() >= needed and not self.ended:
                    return self.todo.pop(i)
        return None

    def run(self, words):
        """(exit status, stdout) of a process; it is killed when the time is over."""
        p = subprocess.Popen(words, stdout=subprocess.PIPE)
        with self.lock:
            self.running.add(p)
        try:
            out, _ = p.communicate(timeout=max(0, self.left()))
        except subprocess.TimeoutExpired:
            p.kill()
            out, _ = p.communicate()
        with self.lock:
            self.running.discard(p)
        return p.returncode, out

    def work(self, worker):
        while (cell := self.next()) is not None:
            words, since = command(self.a, cell, worker), time.monotonic()
            rc, out = self.run(words)
            took = time.monotonic() - since
            title = "{}, {}, {}, epsilon {}, seed {}".format(*cell)
            if rc != 0:
                self.failed += 1
                how = "killed" if rc == -signal.SIGKILL else f"exit {rc}: {' '.join(words)}"
                say(f"{took:6.1f} s  {title}: {how}")
                continue
            result = json.loads(out)
            facts = dict(zip(("set", "arm", "noise", "epsilon", "seed"), cell))
            facts |= {"seconds": round(took, 1), "workers": self.a.workers}
            write(cell_path(self.a.out, "student", *cell), {**facts, "result": result, "command": " ".join(words)})
            with self.lock:
                self.note(cell[1], took)
            say(f"{took:6.1f} s  {title}: {100 * result['test']['accuracy']:.1f} %")

    def end(self):
        with self.lock:
            self.ended = True
            for p in self.running:
                p.kill()


def card(a):
    """Exit status 1 if a cell failed or was killed."""
    c = Card(a)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    threads = [threading.Thread(target=c.work, args=(i,)) for i in range(a.workers)]
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        c.end()
    say(f"{c.left():.0f} s are left, {len(c.todo)} cells are not begun, {c.failed} failed")
    sys.exit(1 if c.failed else 0)

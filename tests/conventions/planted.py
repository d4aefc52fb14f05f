# SPDX-License-Identifier: Apache-2.0
"""planted.py - for planted_*.py: runs a tool on a small tree with one fault and compares what it reports."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"


class PlantedFaults:
    """Counts the cases and remembers the failures; `done` gives the exit status."""

    def __init__(self):
        self.cases = self.failures = 0

    def run(self, title, command, files, status, says=""):
        """files: {path: text}, laid out in a fresh folder; '{tree}' in the command becomes that folder."""
        self.cases += 1
        with tempfile.TemporaryDirectory() as tree:
            for name, text in files.items():
                path = pathlib.Path(tree, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            words = [str(word).replace("{tree}", tree) for word in command]
            got = subprocess.run(words, capture_output=True, text=True, cwd=tree, stdin=subprocess.DEVNULL, check=False)
        output = got.stdout + got.stderr
        if got.returncode != status or says not in output:
            self.failures += 1
            print(f"{title}: exit {got.returncode}, want {status}; must say: {says!r}\n{output}")

    def done(self):
        print(f"{self.cases} cases, {self.failures} failed")
        return 1 if self.failures or not self.cases else 0


def python_tool(name):
    return [sys.executable, ROOT / "tools" / name, "--root", "{tree}"]

# SPDX-License-Identifier: Apache-2.0
"""test_tutorial.py - the tutorial and the example of README.md run, each in a process and a folder of its own."""

import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent


def said(words, folder):
    done = subprocess.run([sys.executable, "-B", *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tutorial(tmp_path):
    text = said([FOLDER / "tutorial.py"], tmp_path)
    assert "refused: the ledger" in text and "sum [30 35 40] of 5 sites" in text and "private: True" in text
    files = ("ledger.db", "release.safetensors", "model.safetensors", "whole.onnx", "synthetic/grid.png")
    assert [name for name in files if not (tmp_path / name).is_file()] == []


def test_the_example_of_the_readme(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    assert 0 < float(said(["-c", code], tmp_path)) <= 1

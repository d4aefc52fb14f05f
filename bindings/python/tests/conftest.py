# SPDX-License-Identifier: Apache-2.0
"""conftest.py - what the tests share: the program that results are compared with, small image sets."""

import fedkt  # first: see fedkt/_library.py

import json
import os
import subprocess

import numpy as np
import pytest

PROGRAM = os.environ.get("FEDKT_PROGRAM")


@pytest.fixture
def cli(tmp_path):
    """Runs the program in the test's folder; gives its JSON with --json, else its text."""
    if not PROGRAM:
        pytest.skip("FEDKT_PROGRAM does not name the program fedkt")

    def run(*words, code=0):
        words = [PROGRAM, *map(str, words)]
        # The address checks' runtime is for a Python that loads the library; the program has its own.
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, env=environment
        )
        assert done.returncode == code, f"{words}\n{done.stderr}"
        return json.loads(done.stdout) if "--json" in words else done.stdout

    return run


@pytest.fixture
def pixels():
    """60 images (16, 16, 3) of three classes that differ in colour, and their labels."""
    chance = np.random.default_rng(7)
    labels = np.arange(60) % 3
    images = chance.integers(0, 100, (60, 16, 16, 3), dtype=np.uint8)
    images[np.arange(60), :, :, labels] += 120
    return images, labels


def pytest_report_header(config):
    return f"fedkt {fedkt.__version__}, library {os.environ.get('FEDKT_LIBRARY', 'of the package')}"

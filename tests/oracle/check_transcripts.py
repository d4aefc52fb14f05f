#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_transcripts.py - the C code plays seeded rounds; oracle/secagg.py must find nothing wrong with them, and must
find something wrong once a byte is altered.

Usage: check_transcripts.py PROGRAM
"""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "oracle"))
from secagg_transcript import verify  # noqa: E402 - in this process, where it remembers what it has computed


def alter(transcript):
    """The last byte of the last message, or a claim of success where there is none."""
    if transcript.pop("failed", False):
        transcript |= {"survivors": [], "total": []}
    else:
        event = [e for e in transcript["events"] if "from" in e][-1]
        event["bytes"] = event["bytes"][:-1] + ("1" if event["bytes"][-1] != "1" else "2")
    return transcript


def main():
    bad = []
    with tempfile.TemporaryDirectory(prefix="fedkt-oracle-") as folder:
        names = subprocess.run([sys.argv[1], folder], check=True, capture_output=True, text=True).stdout.split()
        for path in map(pathlib.Path, names):
            transcript = json.loads(path.read_text())
            bad += [f"{path.name}: {finding}" for finding in verify(transcript)]
            if not verify(alter(transcript)):
                bad.append(f"{path.name}: an altered byte is not noticed")
    print("\n".join(bad) or f"{len(names)} rounds")
    return 1 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main())

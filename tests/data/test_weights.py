#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The real TAESD through the binary: verify knows it and notices one flipped bit; it works from the cache; a short
simulation at 32 px beats guessing by far.

Needs FEDKT_DATA with codecs/taesd_{encoder,decoder}.safetensors, eurosat.tar and tiny-imagenet-12k.tar.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def fedkt(*words, **environment):
    line = [sys.argv[1], *map(str, words), "--quiet", "--json"]
    return subprocess.run(line, capture_output=True, text=True, env={**os.environ, **environment})


def answer(*words, **environment):
    got = fedkt(*words, **environment)
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def main():
    if not os.environ.get("FEDKT_DATA"):
        print("skipped: FEDKT_DATA is not set")
        return 77
    data = pathlib.Path(os.environ["FEDKT_DATA"])
    with tempfile.TemporaryDirectory() as name:
        cache, calibration = pathlib.Path(name, "cache"), pathlib.Path(name, "c.safetensors")
        here = cache / "codecs" / "taesd"
        here.mkdir(parents=True)
        for part in ("encoder", "decoder"):
            shutil.copyfile(data / "codecs" / f"taesd_{part}.safetensors", here / f"taesd_{part}.safetensors")
        assert answer("codec", "verify", "taesd", FEDKT_CACHE=str(cache))["verdict"] == "verified"
        codec = ("--codec", "taesd", "--size", 32)
        public = ("--public", data / "tiny-imagenet-12k.tar", "--limit", 2000)
        answer("codec", "calibrate", *codec, *public, "--out", calibration, FEDKT_CACHE=str(cache))
        federation = ("--holdout", 0.2, "--partition", "dirichlet:0.1", "--epsilon", 10, "--delta", 1e-5)
        private = ("--data", data / "eurosat.tar", "--limit", 5000, "--calibration", calibration)
        result = answer("simulate", *private, *codec, *federation, FEDKT_CACHE=str(cache))
        print(result["accuracy"], result["accuracy_without_privacy"])
        assert result["accuracy_without_privacy"]["qda"] > 0.65 and result["accuracy"]["lda"] > 0.55
        encoder = here / "taesd_encoder.safetensors"
        spoilt = bytearray(encoder.read_bytes())
        spoilt[len(spoilt) // 2] ^= 1
        encoder.write_bytes(spoilt)
        got = fedkt("codec", "verify", "taesd", FEDKT_CACHE=str(cache))
        assert got.returncode == 1 and "is not the known file of this name" in got.stderr, got
    return 0


if __name__ == "__main__":
    sys.exit(main())

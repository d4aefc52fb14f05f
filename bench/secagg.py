#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one site pays for secure aggregation: fedkt beside Flower's SecAgg+, in one run on one machine.

Flower (flwr from PyPI, with its own dependencies) is driven through the four stages of its client mod, with the
neighbours' keys and ciphertexts made beforehand and outside the clock. Same number of neighbours, same threshold, same
number of entries. Processor time, best of several for Flower, median over the sites for fedkt. The two do not do the
same: Flower signs nothing, checks no survivor set, seeds a Mersenne Twister with 32 bits for each mask, and rounds
floats; fedkt's figure includes all that docs/protocol.md asks of a site.

    python3 bench/secagg.py --fedkt build/release/bin/fedkt [--sites 1000] [--classes 10] [--rounds 5] [--json FILE]
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import time


def ours(fedkt, sites, classes):
    cmd = [fedkt, "bench", "secagg", "--sites", str(sites), "--classes", str(classes), "--json"]
    rows = json.loads(subprocess.run(cmd, check=True, capture_output=True, text=True).stdout)["rows"]
    return {r["name"].split("/")[1].split()[0]: r for r in rows}


def flower(degree, threshold, entries, rounds):
    import importlib

    import numpy as np
    from flwr.common import ndarrays_to_parameters
    from flwr.common.secure_aggregation.crypto.symmetric_encryption import encrypt, generate_shared_key
    from flwr.common.secure_aggregation.secaggplus_constants import Key
    from flwr.common.secure_aggregation.secaggplus_utils import share_keys_plaintext_concat
    from flwr.supercore.primitives.asymmetric import bytes_to_public_key, generate_key_pairs, public_key_to_bytes

    # the package names a function like the module: ask for the module
    mod = importlib.import_module("flwr.client.mod.secure_aggregation.secaggplus_mod")
    others = range(1, degree + 1)
    pairs = {i: (generate_key_pairs(), generate_key_pairs()) for i in others}
    keys = {i: [public_key_to_bytes(a[1]), public_key_to_bytes(b[1])] for i, (a, b) in pairs.items()}
    share = bytes(range(68))  # as long as a share of 32 bytes is there
    params = ndarrays_to_parameters([np.random.default_rng(1).normal(size=entries)])
    best, traffic = {}, {}
    for _ in range(rounds):
        state, spent = mod.SecAggPlusState(), {}

        def timed(name, call):
            start = time.process_time()
            result = call()
            spent[name] = time.process_time() - start
            return result

        setup = {
            Key.SAMPLE_NUMBER: degree + 1,
            Key.SHARE_NUMBER: degree + 1,
            Key.THRESHOLD: threshold,
            Key.CLIPPING_RANGE: 8.0,
            Key.TARGET_RANGE: 1 << 22,
            Key.MOD_RANGE: 1 << 32,
            Key.MAX_WEIGHT: 1000.0,
        }
        own = timed("setup", lambda: mod._setup(state, setup))
        roster = {"0": [own[Key.PUBLIC_KEY_1], own[Key.PUBLIC_KEY_2]], **{str(i): k for i, k in keys.items()}}
        sent = timed("share", lambda: mod._share_keys(state, roster))
        mine = bytes_to_public_key(own[Key.PUBLIC_KEY_2])
        boxes = [
            encrypt(generate_shared_key(pairs[i][1][0], mine), share_keys_plaintext_concat(i, 0, share, share))
            for i in others
        ]
        came = {Key.CIPHERTEXT_LIST: boxes, Key.SOURCE_LIST: list(others)}
        masked = timed("mask", lambda: mod._collect_masked_vectors(state, came, 100, params))
        lost = max(1, degree // 10)
        ask = {Key.ACTIVE_NODE_ID_LIST: list(range(0, degree + 1 - lost)), Key.DEAD_NODE_ID_LIST: list(others)[-lost:]}
        shares = timed("unmask", lambda: mod._unmask(state, ask))
        spent["all"] = sum(spent.values())
        best = {k: min(v, best.get(k, v)) for k, v in spent.items()}
        up = sum(map(len, sent[Key.CIPHERTEXT_LIST])) + sum(map(len, shares[Key.SHARE_LIST]))
        down = sum(len(k) for pair in roster.values() for k in pair) + sum(map(len, boxes))
        traffic = {"protocol_kb": (up + down) / 1e3, "vector_kib": sum(map(len, masked[Key.MASKED_PARAMETERS])) / 1024}
    return best, traffic


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--fedkt", required=True)
    ap.add_argument("--sites", type=int, default=1000)
    ap.add_argument("--classes", type=int, default=10)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--json")
    a = ap.parse_args()
    rows = ours(a.fedkt, a.sites, a.classes)
    k, t = map(int, re.search(r"k=(\d+) t=(\d+)", rows["site"]["note"]).groups())
    try:
        import flwr
    except ImportError:
        sys.exit("install the peer first: pip install flwr")
    spent, traffic = flower(k, t, 8385 * a.classes, a.rounds)
    out = {
        "machine": platform.processor() or platform.machine(),
        "sites": a.sites,
        "classes": a.classes,
        "degree": k,
        "threshold": t,
        "fedkt_site_ms": rows["site"]["value"],
        "fedkt_floor_ms": rows["site"]["bound"],
        "fedkt_protocol_kb": rows["traffic"]["value"],
        "fedkt_vector_kib": rows["vector"]["value"],
        "flower_version": flwr.__version__,
        "flower_site_ms": {n: 1e3 * s for n, s in spent.items()},
        "flower_protocol_kb": traffic["protocol_kb"],
        "flower_vector_kib": traffic["vector_kib"],
        "times": 1e3 * spent["all"] / rows["site"]["value"],
    }
    print(json.dumps(out, indent=2))
    if a.json:
        with open(a.json, "w") as f:
            json.dump(out, f, indent=2)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""test_secaggplus.py - what docs/flower.md says of Flower's own SecAgg+, checked with the installed flwr. A failure means
that Flower has changed, and that the page must be read again."""

import numpy as np
import pytest

import fedkt  # noqa: F401

pytest.importorskip("flwr", reason="flwr is not installed: pip install flwr")
mod = pytest.importorskip("flwr.client.mod.secure_aggregation.secaggplus_mod", reason="this flwr has no SecAgg+")

from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ConfigRecord
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.common.secure_aggregation.secaggplus_constants import Key
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen


def folded(key):
    return int(np.bitwise_xor.reduce(np.frombuffer(key, "<u4")))


def test_a_pairwise_mask_has_a_seed_of_28_bits():
    mine = ec.generate_private_key(ec.SECP384R1())
    ones, zeros = 0, 2**32 - 1
    for _ in range(200):
        key = generate_shared_key(mine, ec.generate_private_key(ec.SECP384R1()).public_key())
        assert len(key) == 44
        ones |= folded(key)
        zeros &= folded(key)
        short = folded(key).to_bytes(4, "little")
        assert (pseudo_rand_gen(key, 2**32, [(9,)])[0] == pseudo_rand_gen(short, 2**32, [(9,)])[0]).all()
    assert bin(ones & ~zeros).count("1") <= 28


def test_both_shares_of_one_node_are_given_to_whoever_asks():
    state = mod.SecAggPlusState(nid=1, threshold=2)
    state.rd_seed_share_dict = {1: b"seed 1", 2: b"seed 2", 3: b"seed 3"}
    state.sk1_share_dict = {1: b"key 1", 2: b"key 2", 3: b"key 3"}
    asked = ConfigRecord({Key.ACTIVE_NODE_ID_LIST: [1, 2, 3], Key.DEAD_NODE_ID_LIST: [2]})
    found = mod._unmask(state, asked)
    assert {b"seed 2", b"key 2"} <= set(found[Key.SHARE_LIST])

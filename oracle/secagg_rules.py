# SPDX-License-Identifier: Apache-2.0
"""secagg_rules.py - parameters, keys, masks, coin and graph of docs/protocol.md (sections 1, 2.5, 3, 4, 5)."""

import dataclasses
import functools
import struct

from secagg_primitives import (
    ELL,
    H,
    IDENTITY,
    KDF,
    aes256_ctr,
    chacha20,
    chacha20_block,
    ed25519_key_ok,
    le,
    point_add,
    point_mul,
    ristretto_base,
    ristretto_decode,
    ristretto_encode,
    ristretto_ok,
    scalar_bytes,
    scalar_reduce,
    u32,
    x25519,
)
from secagg_wire import AUTH, Refused, chunks, longest

# ---- 1 parameters --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Params:
    sites: int
    dropped: int
    corrupt: int
    degree: int
    threshold: int
    attempts: int
    length: int
    bits: int
    bound: int
    keystream: str
    task: bytes
    roster: tuple

    @property
    def complete(self):
        return self.degree == self.sites - 1

    @property
    def stay(self):
        """N - D: how many must stay."""
        return self.sites - self.dropped

    @staticmethod
    def from_json(j):
        plain = {k: v for k, v in j.items() if k not in ("task", "roster")}
        return Params(**plain, task=bytes.fromhex(j["task"]), roster=tuple(bytes.fromhex(k) for k in j["roster"]))

    def to_json(self):
        return {**dataclasses.asdict(self), "task": self.task.hex(), "roster": [k.hex() for k in self.roster]}

    def faults(self):
        """What section 1 has against these parameters, one sentence each."""
        n, d, c, k, t = self.sites, self.dropped, self.corrupt, self.degree, self.threshold
        rules = [
            (3 <= n <= 65536, "sites is not in 3..65536"),
            (0 <= d and 0 <= c and n - d - c >= 2, "N - D - C is below 2"),
            (self.complete or (k % 2 == 0 and k <= n - 2), "degree is neither N - 1 nor even and at most N - 2"),
            (2 * t > k and t <= k, "threshold is not in k/2 < t <= k"),
            (1 <= self.attempts <= 16, "attempts is not in 1..16"),
            (8 <= self.bits <= 62 and self.length >= 1, "length or bits is out of range"),
            (self.bound >= 1 and n * self.bound < 2 ** (self.bits - 1), "B is 0, or N*B not below 2^(b-1)"),
            (self.keystream in ("aes-256-ctr", "chacha20"), "no such keystream"),
            (len(self.task) == 32, "the task hash has not 32 bytes"),
            (len(self.roster) == n and len(set(self.roster)) == n, "the roster is not N different keys"),
            (all(map(ed25519_key_ok, self.roster)), "the roster holds a key that is none"),
        ]
        if self.complete:
            rules += [
                (2 * t > n - 1 + c, "complete graph: 2t is not above N - 1 + C"),
                (t <= n - 1 - d, "complete graph: t is above N - 1 - D"),
                (t > c + d, "complete graph: t is not above C + D"),
            ]
        else:
            rules.append(((n - 2 * d - c) * (k - t + 1) > d * (k - t), "too many sites could take part twice"))
        faults = [why for good, why in rules if not good]
        if not faults and longest(True, self) >= 2**31:
            faults = ["the longest message has 2^31 bytes or more"]
        return faults


# ---- 2.5 session, 3.1 to 3.5 keys, commitments and signed hashes ---------------------------------------------------


def session_of(params, round_):
    return H("session", params.task, round_)


def mask_secret(s, session, site):
    return KDF(scalar_bytes(s), "mask key", session, u32(site))


def advert_hash(session, site, channel_key, mask_key):
    return H("advertise", session, u32(site), channel_key, mask_key)


def seal_key(secret, peer_key, session, seed, sender, receiver):
    return KDF(x25519(secret, peer_key), "seal", session, seed, u32(sender), u32(receiver))


def pair_key(secret, peer_key, session, seed, site, peer):
    return KDF(x25519(secret, peer_key), "pair", session, seed, u32(min(site, peer)), u32(max(site, peer)))


def delivered_hash(session, seed, delivered):
    return H("delivered", session, seed, delivered)


def stream_key(pair, delivered):
    """3.4: of a pair key and the hash of U2."""
    return KDF(pair, "pair stream", delivered)


def self_key(u, session, site):
    return KDF(scalar_bytes(u), "self", session, u32(site))


def self_commitment(u, session, site):
    return H("self commitment", session, u32(site), scalar_bytes(u))


def confirm_hash(session, seed, survivors):
    return H("confirm", session, seed, survivors)


# ---- 2.2 keystream as numbers of the ring --------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def stream(keystream, key, length, bits):
    """The first `length` words of a key's stream; the ring takes their low b bits."""
    size, letter = (4, "I") if bits <= 32 else (8, "Q")
    data = (aes256_ctr if keystream == "aes-256-ctr" else chacha20)(key, length * size)
    return struct.unpack(f"<{length}{letter}", data)


def signed(x, bits):
    x %= 2**bits
    return x - 2**bits if x >= 2 ** (bits - 1) else x


# ---- 4 the coin ----------------------------------------------------------------------------------------------------


def leaf_node(session, throw, site, channel_key, mask_key, commitment):
    digest = H("leaf", session, u32(throw), u32(site), channel_key, mask_key, commitment)
    return digest, commitment


def fold_factor(digest):
    return scalar_reduce(H("fold 0", digest) + H("fold 1", digest))


@functools.lru_cache(maxsize=None)
def parent_node(left, right):
    """(digest, point) of two children; refuses a point that is no canonical encoding or the identity."""
    if not ristretto_ok(left[1]) or not ristretto_ok(right[1]):
        raise Refused(AUTH, "a point in the coin's tree is no point, or the identity")
    digest = H("node", left[0], left[1], right[0], right[1])
    right_times_h = point_mul(fold_factor(digest), ristretto_decode(right[1]))
    point = ristretto_encode(point_add(ristretto_decode(left[1]), right_times_h))
    if point == IDENTITY:
        raise Refused(AUTH, "a fold of the coin's tree is the identity")
    return digest, point


def coin_levels(leaves):
    """All levels of the tree, leaves first; the last holds the root alone."""
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        row = levels[-1]
        pairs = [parent_node(row[i], row[i + 1]) for i in range(0, len(row) - 1, 2)]
        levels.append(pairs + row[len(row) - len(row) % 2 :])
    return levels


def coin_path(levels, position):
    """The siblings on the way up, as bytes."""
    path = b""
    for row in levels[:-1]:
        if position ^ 1 < len(row):
            path += b"".join(row[position ^ 1])
        position //= 2
    return path


def path_bytes(leaves, position):
    n = 0
    while leaves > 1:
        n += 64 * (position ^ 1 < leaves)
        leaves, position = (leaves + 1) // 2, position // 2
    return n


def coin_climb(node, leaves, position, path):
    """The root (R, P) from a leaf and its path."""
    siblings = [(c[:32], c[32:]) for c in chunks(path, 64)]
    while leaves > 1:
        if position ^ 1 < leaves:
            other = siblings.pop(0)
            node = parent_node(other, node) if position & 1 else parent_node(node, other)
        leaves, position = (leaves + 1) // 2, position // 2
    return node


def coin_value(levels, scalars):
    """V: the scalars folded as the points were."""
    values = [list(scalars)]
    for row in levels[1:]:
        below, nodes = values[-1], levels[len(values) - 1]
        assert len(below) == len(nodes)
        folded = [(below[i] + fold_factor(row[i // 2][0]) * below[i + 1]) % ELL for i in range(0, len(below) - 1, 2)]
        values.append(folded + below[len(below) - len(below) % 2 :])
    return values[-1][0]


def seed_of(session, root=None, v=None):
    """The seed; V*G must be the root's point."""
    if root is None:
        return H("seed", session)
    if le(v) >= ELL:
        raise Refused(AUTH, "V is not below l")
    if ristretto_base(le(v)) != root[1]:
        raise Refused(AUTH, "V does not open the coin that was committed to")
    return H("seed", session, root[0], v)


# ---- 5 the graph ---------------------------------------------------------------------------------------------------


def graph_words(session, seed):
    key, block = KDF(seed, "graph", session), 0
    while True:
        yield from struct.unpack("<16I", chacha20_block(key, block, bytes(12)))
        block += 1


@functools.lru_cache(maxsize=None)
def ring(sites, session, seed):
    """Sites in the order of the ring."""
    order, words = list(range(sites)), graph_words(session, seed)
    for i in range(sites - 1, 0, -1):
        w = next(words)
        while w >= 2**32 - 2**32 % (i + 1):
            w = next(words)
        j = w % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def sides(params, session, seed, site):
    """The k/2 sites after this one on the ring, and the k/2 before it."""
    order = ring(params.sites, session, seed)
    at = order.index(site)
    steps = range(1, params.degree // 2 + 1)
    return [[order[(at + sign * step) % params.sites] for step in steps] for sign in (1, -1)]


def neighbours(params, session, seed, site):
    """Ascending by number."""
    if params.complete:
        return [j for j in range(params.sites) if j != site]
    return sorted(sum(sides(params, session, seed, site), []))


def witnesses(params, session, seed):
    """On a sparse graph: the sites at places 0 to k - 1, ascending by number."""
    return sorted(ring(params.sites, session, seed)[: params.degree])

# SPDX-License-Identifier: Apache-2.0
"""secagg_vectors.py - test vectors of the aggregation protocol, the same bytes every time."""

import hashlib
import json

import secagg_examples
import secagg_refusals
from secagg_primitives import (
    ELL,
    P,
    ZERO,
    Entropy,
    ed25519_public,
    edwards_decode,
    edwards_encode,
    point_add,
    point_mul,
    ristretto_base,
    same_point,
    scalar_bytes,
    seal,
    x25519_public,
)
from secagg_rules import (
    Params,
    advert_hash,
    coin_levels,
    coin_path,
    coin_value,
    confirm_hash,
    delivered_hash,
    leaf_node,
    mask_secret,
    neighbours,
    pair_key,
    ring,
    seal_key,
    seed_of,
    self_commitment,
    self_key,
    session_of,
    stream,
    stream_key,
    witnesses,
)
from secagg_transcript import play, verify
from secagg_wire import longest, pack

# ---- rounds --------------------------------------------------------------------------------------------------------

COMPLETE = dict(sites=4, dropped=1, corrupt=0, degree=3, threshold=2, attempts=1, length=7, bits=32, bound=2**28,
                keystream="chacha20", seed=4)  # fmt: skip
SPARSE = dict(sites=12, dropped=2, corrupt=1, degree=4, threshold=3, attempts=3, length=5, bits=32, bound=2**27,
              keystream="aes-256-ctr", seed=4)  # fmt: skip
ROUNDS = {
    "complete_chacha20_32": dict(COMPLETE, silent=[["masked", 2]]),
    "complete_aes_40": dict(COMPLETE, sites=5, degree=4, threshold=3, bits=40, bound=2**36, keystream="aes-256-ctr",
                            silent=[["reveal", 1]]),
    "complete_aes_11": dict(COMPLETE, length=5, bits=11, bound=255, keystream="aes-256-ctr"),
    "sparse_aes_32": dict(SPARSE, silent=[["open 1", 3], ["masked", 8]]),
    "sparse_chacha20_40": dict(SPARSE, bits=40, bound=2**35, keystream="chacha20", silent=[["shares", 5]]),
    "sparse_sides": dict(SPARSE, sites=14, dropped=3, corrupt=5, degree=8, threshold=5, length=1,
                         silent=[["masked", 0], ["masked", 2]]),
}  # fmt: skip


# ---- one function at a time ----------------------------------------------------------------------------------------


def hexed(value):
    return value.hex() if isinstance(value, bytes) else value


def case(function, out, **inputs):
    return {"function": function, **{k: hexed(v) for k, v in inputs.items()}, "out": hexed(out)}


def keys_and_hashes(e):
    task, round_, session, seed = e.take(32), e.take(16), e.take(32), e.take(32)
    a, b = e.take(32), e.take(32)
    params = Params(**{**dict.fromkeys("sites dropped corrupt degree threshold attempts length bits bound".split(), 0),
                       "keystream": "", "task": task, "roster": ()})  # fmt: skip
    yield case("session", session_of(params, round_), task=task, round=round_)
    for site, peer in ((0, 1), (3, 2), (65535, 300)):
        s = e.scalar()
        here = dict(session=session, site=site)
        keys = dict(channel_key=x25519_public(a), mask_key=x25519_public(b))
        yield case("advert_hash", advert_hash(session, site, **keys), **here, **keys)
        yield case("mask_secret", mask_secret(s, session, site), **here, seed=scalar_bytes(s))
        yield case("self_key", self_key(s, session, site), **here, seed=scalar_bytes(s))
        yield case("self_commitment", self_commitment(s, session, site), **here, seed=scalar_bytes(s))
        pair = dict(secret=a, peer_key=x25519_public(b), session=session, seed=seed)
        yield case("seal_key", seal_key(a, x25519_public(b), session, seed, site, peer), **pair, site=site, peer=peer)
        back = seal_key(a, x25519_public(b), session, seed, peer, site)
        yield case("seal_key_back", back, **pair, site=site, peer=peer)
        yield case("pair_key", pair_key(a, x25519_public(b), session, seed, site, peer), **pair, site=site, peer=peer)
    for n in (1, 2, 125):
        survivors = e.take(n)
        out = confirm_hash(session, seed, survivors)
        yield case("confirm_hash", out, session=session, seed=seed, survivors=survivors)
        out = delivered_hash(session, seed, survivors)
        yield case("delivered_hash", out, session=session, seed=seed, delivered=survivors)
        yield case("stream_key", stream_key(a, out), secret=a, delivered_hash=out)
    key, plain = e.take(32), e.take(64)
    yield case("seal", seal(key, plain), key=key, plain=plain)


def graphs(e):
    for sites, degree in ((4, 3), (6, 4), (12, 4), (33, 8), (200, 20), (1000, 96)):
        session, seed = e.take(32), e.take(32)
        p = Params(sites, 0, 0, degree, degree // 2 + 1, 1, 1, 8, 0, "chacha20", bytes(32), ())
        order = [] if p.complete else ring(sites, session, seed)
        some = sorted({0, 1, sites // 2, sites - 1})
        around = {str(i): neighbours(p, session, seed, i) for i in some}
        seen = [] if p.complete else witnesses(p, session, seed)
        here = dict(sites=sites, degree=degree, session=session, seed=seed)
        yield case("graph", around, **here, ring=order, witnesses=seen)


def coins(e):
    for n in (1, 2, 3, 4, 5, 7, 12):
        session, throw = e.take(32), n % 3 + 1
        sites = [3 * i + 1 for i in range(n)]
        scalars, keys = [e.scalar() for _ in sites], [(e.take(32), e.take(32)) for _ in sites]
        points = [ristretto_base(r) for r in scalars]
        levels = coin_levels([leaf_node(session, throw, i, *k, p) for i, k, p in zip(sites, keys, points)])
        v = scalar_bytes(coin_value(levels, scalars))
        leaves = [
            dict(site=i, channel_key=k[0].hex(), mask_key=k[1].hex(), scalar=scalar_bytes(r).hex(), coin=p.hex())
            for i, k, r, p in zip(sites, keys, scalars, points)
        ]
        root = levels[-1][0]
        out = dict(
            digest=root[0].hex(),
            point=root[1].hex(),
            v=v.hex(),
            seed=seed_of(session, root, v).hex(),
            paths=[coin_path(levels, i).hex() for i in range(n)],
        )
        yield case("coin", out, session=session, throw=throw, leaves=leaves)
    session = e.take(32)
    yield case("complete_seed", seed_of(session), session=session)


def vectors_(e):
    for bits in (8, 11, 31, 32, 33, 40, 61, 62):
        for keystream in ("aes-256-ctr", "chacha20"):
            key, half = e.take(32), 2 ** (bits - 1)
            numbers = [int.from_bytes(e.take(8), "little") % (2 * half) - half for _ in range(7)] + [
                -half,
                half - 1,
                -1,
            ]
            here = dict(bits=bits, keystream=keystream, key=key, numbers=numbers)
            words = stream(keystream, key, len(numbers), bits)
            yield case("pack", pack(numbers, bits), bits=bits, numbers=numbers)
            yield case("mask", pack([a + w for a, w in zip(numbers, words)], bits), **here, subtract=0)
            yield case("mask", pack([a - w for a, w in zip(numbers, words)], bits), **here, subtract=1)


def limits():
    shapes = [(3, 2, 1, 8), (4, 3, 7, 32), (12, 4, 5, 40), (1000, 96, 83850, 32), (65536, 200, 3, 62), (129, 128, 1, 8)]
    for sites, degree, length, bits in shapes:
        p = Params(sites, 0, 0, degree, degree // 2 + 1, 3, length, bits, 1, "chacha20", bytes(32), ())
        inputs = dict(sites=sites, degree=degree, attempts=3, length=length, bits=bits)
        yield case("limits", {"to_server": longest(True, p), "to_site": longest(False, p)}, **inputs)


def parameters():
    """Section 1: sets that are right, and for each rule sets that break it; the roster is made by the test."""
    base = {k: COMPLETE[k] for k in "sites dropped corrupt degree threshold attempts length bits bound".split()}
    sparse = {k: SPARSE[k] for k in base}
    changes = [
        (base, {}),
        (base, dict(threshold=1)),
        (base, dict(threshold=3)),
        (base, dict(threshold=0)),
        (base, dict(corrupt=1)),
        (base, dict(dropped=2)),
        (base, dict(bits=7, bound=1)),
        (base, dict(bits=8, bound=31)),
        (base, dict(bits=8, bound=32)),
        (base, dict(bits=62, bound=2**58)),
        (base, dict(bits=62, bound=2**59)),
        (base, dict(bits=63)),
        (base, dict(length=0)),
        (base, dict(attempts=0)),
        (base, dict(attempts=16)),
        (base, dict(attempts=17)),
        (base, dict(sites=2, degree=1, threshold=1, dropped=0)),
        (base, dict(sites=3, degree=2, threshold=2, dropped=0)),
        (base, dict(sites=3, degree=2, threshold=2, dropped=0, corrupt=1)),
        (base, dict(sites=3, degree=2, threshold=2, dropped=1)),
        (base, dict(sites=7, degree=6, threshold=4, dropped=2, corrupt=1)),
        (base, dict(sites=7, degree=6, threshold=5, dropped=1, corrupt=3)),
        (base, dict(sites=7, degree=6, threshold=5, dropped=1, corrupt=4)),
        (base, dict(sites=7, degree=6, threshold=4, dropped=1, corrupt=3)),
        (sparse, {}),
        (sparse, dict(degree=5)),
        (sparse, dict(degree=10, threshold=6)),
        (sparse, dict(degree=12, threshold=7)),
        (sparse, dict(threshold=2)),
        (sparse, dict(threshold=4)),
        (sparse, dict(threshold=5)),
        (sparse, dict(dropped=10)),
        (sparse, dict(dropped=9, corrupt=1)),
        (sparse, dict(dropped=4, corrupt=1)),
        (sparse, dict(dropped=4, corrupt=2)),
        (sparse, dict(dropped=5, corrupt=1)),
        (sparse, dict(dropped=4, corrupt=1, threshold=4)),
        (sparse, dict(dropped=5, corrupt=1, threshold=4)),
        (base, dict(bound=0)),
        (sparse, dict(dropped=9, corrupt=2)),
    ]
    seeds = [Entropy(1, i).take(32) for i in range(12)]
    keys = [ed25519_public(s) for s in seeds]
    for start, change in changes:
        values = {**start, **change}
        p = Params(**values, keystream="chacha20", task=bytes(32), roster=tuple(keys[: values["sites"]]))
        yield case("parameters", 0 if not p.faults() else 10, **values)


def rosters():
    """Section 1: the first of four keys is one that is none, in each way."""
    keys = [ed25519_public(Entropy(2, i).take(32)) for i in range(4)]
    order_8 = point_mul(ELL, edwards_decode((3).to_bytes(32, "little")))
    assert same_point(point_mul(8, order_8), ZERO) and not same_point(point_mul(4, order_8), ZERO)
    changes = {
        "good": keys[0],
        "twice": keys[1],
        "identity": (1).to_bytes(32, "little"),
        "order 4": bytes(32),
        "order 8": edwards_encode(order_8),
        "mixed order": edwards_encode(point_add(order_8, edwards_decode(keys[0]))),
        "not canonical": (P + 3).to_bytes(32, "little"),
        "not on the curve": (2).to_bytes(32, "little"),
    }
    shape = {k: COMPLETE[k] for k in "sites dropped corrupt degree threshold attempts length bits bound".split()}
    for what, key in changes.items():
        roster = (key, *keys[1:])
        p = Params(**shape, keystream="chacha20", task=bytes(32), roster=roster)
        yield case("roster", 10 if p.faults() else 0, what=what, **shape, roster=[k.hex() for k in roster])


def functions():
    e = Entropy(9, 9)
    return [*keys_and_hashes(e), *graphs(e), *coins(e), *vectors_(e), *limits(), *parameters(), *rosters()]


# ---- files ---------------------------------------------------------------------------------------------------------


def rows(values):
    return "[\n" + ",\n".join(json.dumps(v) for v in values) + "\n]"


def written(value):
    """JSON with one case, event or site a line, so that a change reads as one in a diff."""
    if isinstance(value, list):
        return rows(value) + "\n"
    lists = [f'"{k}": {rows(v) if k in ("secrets", "events") else json.dumps(v)}' for k, v in value.items()]
    return "{\n" + ",\n".join(lists) + "\n}\n"


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    rounds = {name: play(spec) for name, spec in ROUNDS.items()}
    for name, transcript in rounds.items():
        assert not verify(transcript) and "total" in transcript, name
    refusals = secagg_refusals.all_of(rounds)
    files = {**{f"round_{k}": v for k, v in rounds.items()}, "functions": functions(), "refusals": refusals}
    files["examples"] = secagg_examples.cases(case)
    sums = {}
    for name, value in files.items():
        text = written(value)
        (folder / f"{name}.json").write_text(text)
        sums[f"{name}.json"] = hashlib.sha256(text.encode()).hexdigest()
    sidecar = {
        "what": "rounds of the aggregation protocol, its functions one by one, and messages that must be refused",
        "tool": "oracle/secagg.py, Python 3 (standard library only)",
        "command": "/usr/bin/python3 oracle/secagg.py vectors tests/vectors/secagg",
        "sha256": sums,
        "tolerance": "none: bytes and numbers must be equal",
    }
    (folder / "README.json").write_text(json.dumps(sidecar, indent=2) + "\n")
    return 0

# SPDX-License-Identifier: Apache-2.0
"""secagg_examples.py - the worked examples of docs/protocol.md section 9.

`blocks` gives the text of each block as it stands on the page, `cases` the same numbers for the C code, in the form of
the other function vectors. All inputs are runs of consecutive bytes, so that nobody has to copy them.
"""

import textwrap

from secagg_primitives import (
    aes256_ctr,
    chacha20,
    ed25519_public,
    ed25519_sign,
    parts_of,
    ristretto_base,
    scalar_bytes,
    scalar_reduce,
    seal,
    x25519,
    x25519_public,
)
from secagg_rules import (
    Params,
    advert_hash,
    coin_levels,
    coin_path,
    coin_value,
    delivered_hash,
    fold_factor,
    leaf_node,
    mask_secret,
    neighbours,
    pair_key,
    ring,
    seal_key,
    seed_of,
    session_of,
    stream_key,
    witnesses,
)
from secagg_wire import bitmap, encode, pack


def run(start, n):
    """n consecutive bytes."""
    return bytes((start + i) % 256 for i in range(n))


def scalar(start):
    return scalar_reduce(run(start, 64))


def params(sites=8, degree=4):
    return Params(sites, 1, 0, degree, degree // 2 + 1, 2, 5, 11, 1, "chacha20", run(0, 32), ())


SESSION = session_of(params(), run(0x20, 16))
NUMBERS = [1, -1, 1023, -1024, 5]


def show(name, value):
    """One line, or more when it is long: name, blanks, hex."""
    if not isinstance(value, bytes):
        return f"{name:<17} {value}"
    lines = textwrap.wrap(value.hex(), 64)
    return "\n".join(f"{label:<17} {line}" for label, line in zip([name] + [""] * len(lines), lines))


def block(*rows):
    return "\n".join(show(name, value) for name, value in rows) + "\n"


# ---- the examples --------------------------------------------------------------------------------------------------


def session():
    hashed = parts_of("session", [run(0, 32), run(0x20, 16)])
    return block(("task hash", run(0, 32)), ("round", run(0x20, 16)), ("hashed", hashed), ("session", SESSION))


class Advert:
    """Site 1 of the examples."""

    seed, c, s = run(0x30, 32), run(0x50, 32), scalar(0x70)
    m = mask_secret(s, SESSION, 1)
    keys = {"channel_key": x25519_public(c), "mask_key": x25519_public(m)}
    digest = advert_hash(SESSION, 1, **keys)
    signature = ed25519_sign(seed, digest)


def advertise():
    return block(
        ("signing seed", Advert.seed),
        ("roster key", ed25519_public(Advert.seed)),
        ("site", 1),
        ("c", Advert.c),
        ("s", scalar_bytes(Advert.s)),
        ("m", Advert.m),
        ("channel key", Advert.keys["channel_key"]),
        ("mask key", Advert.keys["mask_key"]),
        ("hash", Advert.digest),
        ("signature", Advert.signature),
    )


class Coin:
    """Throw 1 of sites 0, 1 and 2."""

    scalars = [scalar(0x10 * i) for i in (1, 2, 3)]
    points = [ristretto_base(r) for r in scalars]
    keys = [(run(0xA0 + i, 32), run(0xB0 + i, 32)) for i in range(3)]
    leaves = [leaf_node(SESSION, 1, i, *k, p) for i, (k, p) in enumerate(zip(keys, points))]
    levels = coin_levels(leaves)
    root, v = levels[-1][0], scalar_bytes(coin_value(levels, scalars))
    seed = seed_of(SESSION, root, v)


def coin():
    rows = []
    for i in range(3):
        rows += [(f"r of site {i}", scalar_bytes(Coin.scalars[i])), ("r*G", Coin.points[i])]
        rows += [("digest", Coin.leaves[i][0])]
    left = Coin.levels[1][0]
    rows += [("0 and 1: digest", left[0]), ("h", scalar_bytes(fold_factor(left[0]))), ("point", left[1])]
    rows += [("root: R", Coin.root[0]), ("h", scalar_bytes(fold_factor(Coin.root[0]))), ("P", Coin.root[1])]
    rows += [("path of site 2", coin_path(Coin.levels, 2)), ("V", Coin.v), ("seed", Coin.seed)]
    return block(*rows)


def graph():
    order = ring(8, SESSION, Coin.seed)
    rows = [("ring", " ".join(map(str, order)))]
    rows += [(f"of site {i}", " ".join(map(str, neighbours(params(), SESSION, Coin.seed, i)))) for i in (0, 1)]
    rows += [("witnesses", " ".join(map(str, witnesses(params(), SESSION, Coin.seed))))]
    return block(*rows)


M0 = mask_secret(scalar(0x40), SESSION, 0)
PAIR = pair_key(M0, Advert.keys["mask_key"], SESSION, Coin.seed, 0, 1)
DELIVERED = bitmap(8, [0, 1, 2, 4, 5, 6, 7])
HASHED = delivered_hash(SESSION, Coin.seed, DELIVERED)
STREAM = stream_key(PAIR, HASHED)


def pair():
    def words(data, size):
        return " ".join(f"{int.from_bytes(data[i : i + size], 'little'):#x}" for i in range(0, len(data), size))

    rows = [("m of site 0", M0), ("mask key of 0", x25519_public(M0)), ("mask key of 1", Advert.keys["mask_key"])]
    rows += [("X25519", x25519(M0, Advert.keys["mask_key"])), ("pair key", PAIR)]
    rows += [("U2", DELIVERED), ("hash of U2", HASHED), ("stream key", STREAM)]
    for name, cipher in (("aes", aes256_ctr), ("chacha20", chacha20)):
        data = cipher(STREAM, 16)
        rows += [(f"{name}: bytes", data), ("b <= 32", words(data, 4)), ("b > 32", words(data, 8))]
    return block(*rows)


C0 = run(0x60, 32)
SEAL = seal_key(C0, Advert.keys["channel_key"], SESSION, Coin.seed, 0, 1)
SHARES = scalar_bytes(scalar(0x81)) + scalar_bytes(scalar(0x91))


def sealed():
    rows = [("c of site 0", C0), ("channel key of 1", Advert.keys["channel_key"]), ("seal key 0->1", SEAL)]
    return block(*rows, ("plaintext", SHARES), ("sealed", seal(SEAL, SHARES)))


def packed():
    return block(("numbers", " ".join(map(str, NUMBERS))), ("b", 11), ("packed", pack(NUMBERS, 11)))


def message():
    """Advertise of site 1 on a complete graph, field by field."""
    values = {"session": SESSION, "site": 1, **Advert.keys, "coin": b"", "signature": Advert.signature}
    data = encode(True, "advertise", values)
    parts = [
        ("0a20", "field 1, 32 bytes: session", SESSION),
        ("1001", "field 2: site 1", b""),
        ("1a8601", "field 3, 134 bytes: Advertise", b""),
        ("0a20", "its field 1: channel key", Advert.keys["channel_key"]),
        ("1220", "its field 2: mask key", Advert.keys["mask_key"]),
        ("2240", "its field 4: signature (field 3, the coin, is empty and not written)", Advert.signature),
    ]
    assert data == b"".join(bytes.fromhex(head) + value for head, _, value in parts)
    lines = []
    for head, what, value in parts:
        lines += [f"{head:<8}{what}"] + [" " * 8 + line for line in textwrap.wrap(value.hex(), 64)]
    return "\n".join(lines) + "\n"


EXAMPLES = dict(
    session=session,
    advertise=advertise,
    coin=coin,
    graph=graph,
    pair=pair,
    sealed=sealed,
    packed=packed,
    message=message,
)


def blocks():
    """What stands on the page, by the name in the mark before each block."""
    return {name: make() for name, make in EXAMPLES.items()}


# ---- the same for the C code ---------------------------------------------------------------------------------------


def coin_case():
    leaves = [
        dict(site=i, channel_key=k[0].hex(), mask_key=k[1].hex(), scalar=scalar_bytes(r).hex(), coin=p.hex())
        for i, (k, r, p) in enumerate(zip(Coin.keys, Coin.scalars, Coin.points))
    ]
    paths = [coin_path(Coin.levels, i).hex() for i in range(3)]
    digest, point = Coin.root
    out = dict(digest=digest.hex(), point=point.hex(), v=Coin.v.hex(), seed=Coin.seed.hex(), paths=paths)
    return dict(function="coin", session=SESSION.hex(), throw=1, leaves=leaves, out=out)


def cases(case):
    """`case` is that of secagg_vectors.py."""
    keys, p = Advert.keys, params()
    pairs = dict(session=SESSION, seed=Coin.seed, site=0, peer=1)
    around = {str(i): neighbours(p, SESSION, Coin.seed, i) for i in (0, 1)}
    sent = {"session": SESSION, "site": 1, **keys, "coin": b"", "signature": Advert.signature}
    return [
        case("session", SESSION, task=run(0, 32), round=run(0x20, 16)),
        case("mask_secret", Advert.m, session=SESSION, site=1, seed=scalar_bytes(Advert.s)),
        case("advert_hash", Advert.digest, session=SESSION, site=1, **keys),
        case("sign", Advert.signature, seed=Advert.seed, hash=Advert.digest),
        coin_case(),
        case("graph", around, sites=8, degree=4, session=SESSION, seed=Coin.seed, ring=ring(8, SESSION, Coin.seed),
             witnesses=witnesses(p, SESSION, Coin.seed)),
        case("pair_key", PAIR, secret=M0, peer_key=keys["mask_key"], **pairs),
        case("delivered_hash", HASHED, session=SESSION, seed=Coin.seed, delivered=DELIVERED),
        case("stream_key", STREAM, secret=PAIR, delivered_hash=HASHED),
        case("stream", aes256_ctr(STREAM, 16), keystream="aes-256-ctr", key=STREAM),
        case("stream", chacha20(STREAM, 16), keystream="chacha20", key=STREAM),
        case("seal_key", SEAL, secret=C0, peer_key=keys["channel_key"], **pairs),
        case("seal", seal(SEAL, SHARES), key=SEAL, plain=SHARES),
        case("pack", pack(NUMBERS, 11), bits=11, numbers=NUMBERS),
        case("message", encode(True, "advertise", sent), to_server=1, kind=1),
    ]  # fmt: skip

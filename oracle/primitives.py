#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Second opinions on src/crypto/: digests from hashlib, sealed messages and Ed25519 points from Python's integers.

Writes tests/vectors/crypto_digest.txt, crypto_seal.txt and crypto_keys.txt into the folder given. Lines:
  digest  label key parts... digest    all hex, "-" is empty; key "-" is none; the last field is BLAKE2b-256
  seal    key plaintext sealed         ChaCha20-Poly1305 with a zero nonce and no associated data
  keys    word key                     word: good, small (order), mixed (order), noncanonical, off (the curve)
Before it writes it holds its own ChaCha20-Poly1305 against RFC 8439 2.8.2 and its points against RFC 8032 7.1.
"""

import hashlib
import random
import sys

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1


# -- BLAKE2b over labelled parts (docs/protocol.md 2.1)
def digest(label, key, parts):
    data = bytes([len(label)]) + label + b"".join(len(p).to_bytes(8, "little") + p for p in parts)
    return hashlib.blake2b(data, digest_size=32, key=key).digest()


# -- ChaCha20-Poly1305 (RFC 8439)
def quarter(s, a, b, c, d):
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        v = s[z] ^ s[x]
        s[z] = ((v << turn) | (v >> (32 - turn))) & 0xFFFFFFFF


def chacha_block(key, counter, nonce):
    words = b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce
    start = [int.from_bytes(words[i : i + 4], "little") for i in range(0, 64, 4)]
    s = list(start)
    for _ in range(10):
        for i in range(4):
            quarter(s, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join(((x + y) & 0xFFFFFFFF).to_bytes(4, "little") for x, y in zip(s, start))


def poly1305(key, data):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for i in range(0, len(data), 16):
        total = (total + int.from_bytes(data[i : i + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((total + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def seal(key, plain, nonce=bytes(12), aad=b""):
    stream = b"".join(chacha_block(key, 1 + i, nonce) for i in range((len(plain) + 63) // 64))
    sealed = bytes(a ^ b for a, b in zip(plain, stream))
    padded = aad + bytes(-len(aad) % 16) + sealed + bytes(-len(sealed) % 16)
    lengths = len(aad).to_bytes(8, "little") + len(sealed).to_bytes(8, "little")
    return sealed + poly1305(chacha_block(key, 0, nonce)[:32], padded + lengths)


# -- points of edwards25519 (RFC 8032 5.1), affine
def add(p, q):
    (x1, y1), (x2, y2) = p, q
    k = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + k, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - k, -1, P) % P,
    )


def multiply(n, p):
    total = (0, 1)
    while n:
        if n & 1:
            total = add(total, p)
        p, n = add(p, p), n >> 1
    return total


def decode(y, sign):
    """The point, or None when there is none."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return (P - x if x % 2 != sign else x, y)


def encode(p):
    return (p[1] | (p[0] & 1) << 255).to_bytes(32, "little").hex()


BASE = decode(4 * pow(5, -1, P) % P, 0)


def in_main_group(p):
    """The criterion of src/crypto/sign.c: (l - 1)P = -P."""
    return multiply(L - 1, p) == (-p[0] % P, p[1])


def keys(rng):
    generator = None  # of the eight points of small order
    while generator is None or multiply(4, generator) == (0, 1):
        point = decode(rng.randrange(P), 0)
        generator = multiply(L, point) if point else None
    small = [multiply(i, generator) for i in range(8)]
    for p in small:
        yield "small", encode(p)
    for scalar in (1, 2, L - 1, rng.randrange(1, L), rng.randrange(1, L)):
        good = multiply(scalar, BASE)
        assert in_main_group(good)
        yield "good", encode(good)
        for p in small[1:]:
            assert not in_main_group(add(good, p))
            yield "mixed", encode(add(good, p))
    for y in range(P, 2**255):  # y - p in 0..18, with either sign, whether or not there is a point
        for sign in (0, 1):
            yield "noncanonical", (y | sign << 255).to_bytes(32, "little").hex()
    for y in (1, P - 1):  # x = 0 has no negative
        yield "noncanonical", (y | 1 << 255).to_bytes(32, "little").hex()
    left = 6
    while left:
        y = rng.randrange(P)
        if decode(y, 0) is None:
            yield "off", y.to_bytes(32, "little").hex()
            left -= 1


def self_check():
    text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    text += b"sunscreen would be it."
    sealed = seal(
        bytes(range(0x80, 0xA0)),
        text,
        bytes.fromhex("070000004041424344454647"),
        bytes.fromhex("50515253c0c1c2c3c4c5c6c7"),
    )
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691" and sealed[:4].hex() == "d31a8d34"
    secret = hashlib.sha512(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")).digest()
    clamped = int.from_bytes(secret[:32], "little") & (2**254 - 8) | 2**254
    assert encode(multiply(clamped, BASE)) == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert multiply(L, BASE) == (0, 1)


def field(data):
    return data.hex() if data else "-"


def main():
    self_check()
    rng = random.Random(8439)
    folder = sys.argv[1]
    with open(f"{folder}/crypto_digest.txt", "w", encoding="ascii") as out:
        for label in (b"a", b"fedkt/1 session", b"x" * 255):
            for sizes in ((), (0,), (0, 0), (1,), (32, 4), (127, 128, 129), (700,)):
                for key in (b"", rng.randbytes(32)):
                    parts = [rng.randbytes(n) for n in sizes]
                    print(*map(field, [label, key, *parts, digest(label, key, parts)]), file=out)
    with open(f"{folder}/crypto_seal.txt", "w", encoding="ascii") as out:
        for size in (0, 1, 15, 16, 17, 63, 64, 65, 80, 127, 300):
            key, plain = rng.randbytes(32), rng.randbytes(size)
            print(*map(field, [key, plain, seal(key, plain)]), file=out)
    with open(f"{folder}/crypto_keys.txt", "w", encoding="ascii") as out:
        for word, key in keys(rng):
            print(word, key, file=out)


if __name__ == "__main__":
    main()

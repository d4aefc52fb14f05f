# SPDX-License-Identifier: Apache-2.0
"""secagg_primitives.py - the building blocks of docs/protocol.md section 2, in plain Python.

Written from the standards, not from our C code, so that the two can be held against each other: RFC 7748 (X25519),
RFC 8032 (Ed25519), RFC 8439 (ChaCha20, Poly1305), RFC 9496 (ristretto255), FIPS 197 and SP 800-38A (AES-256-CTR).
Clear rather than fast, and nothing here is constant time: a verifier's tool, never a site's.
"""

import functools
import hashlib
import struct

# ---- 2.1 hash and key derivation ----------------------------------------------------------------------------------


def u32(x):
    return struct.pack("<I", x)


def parts_of(label, parts):
    name = ("fedkt/1 " + label).encode("ascii")
    return bytes([len(name)]) + name + b"".join(struct.pack("<Q", len(p)) + p for p in parts)


def H(label, *parts):
    return hashlib.blake2b(parts_of(label, parts), digest_size=32).digest()


def KDF(key, label, *parts):
    assert len(key) == 32
    return hashlib.blake2b(parts_of(label, parts), digest_size=32, key=key).digest()


# ---- the field of 2^255 - 19 and the scalars modulo l ------------------------------------------------------------

P = 2**255 - 19
ELL = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def le(b):
    return int.from_bytes(b, "little")


def scalar_bytes(x):
    return (x % ELL).to_bytes(32, "little")


def scalar_ok(b):
    return len(b) == 32 and le(b) < ELL


def scalar_reduce(wide):
    """64 bytes to a number below l (2.2)."""
    assert len(wide) == 64
    return le(wide) % ELL


# ---- X25519 (RFC 7748) ---------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def x25519(k, u):
    n = bytearray(k)
    n[0] &= 248
    n[31] = n[31] & 127 | 64
    n, x1 = le(n), le(u) % 2**255
    x2, z2, x3, z3 = 1, 0, x1, 1
    for t in range(254, -1, -1):
        bit = n >> t & 1
        if bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        a, b, c, d = (x2 + z2) % P, (x2 - z2) % P, (x3 + z3) % P, (x3 - z3) % P
        aa, bb, da, cb = a * a % P, b * b % P, d * a % P, c * b % P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
        if bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def x25519_public(k):
    return x25519(bytes(k), (9).to_bytes(32, "little"))


@functools.lru_cache(maxsize=None)
def x25519_key_ok(u):
    """2.2: canonical, and not of low order (any secret that is a multiple of 8 sends those to zero)."""
    return len(u) == 32 and le(u) < P and x25519(bytes(32), u) != bytes(32)


# ---- the curve of Ed25519 in extended coordinates ------------------------------------------------------------------


def point_add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


ZERO = (0, 1, 1, 0)


def point_mul(s, p):
    q = ZERO
    while s > 0:
        if s & 1:
            q = point_add(q, p)
        p, s = point_add(p, p), s >> 1
    return q


def edwards_x(y, sign):
    """The x that belongs to y, or None."""
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * SQRT_M1 % P
    if (x * x - xx) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = edwards_x(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


@functools.lru_cache(maxsize=1)
def base_doubles():
    doubles = [BASE]
    while len(doubles) < 253:
        doubles.append(point_add(doubles[-1], doubles[-1]))
    return doubles


def base_mul(s):
    s, q = s % ELL, ZERO
    for i, p in enumerate(base_doubles()):
        if s >> i & 1:
            q = point_add(q, p)
    return q


# ---- Ed25519 (RFC 8032) --------------------------------------------------------------------------------------------


def edwards_encode(p):
    z = pow(p[2], P - 2, P)
    x, y = p[0] * z % P, p[1] * z % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


@functools.lru_cache(maxsize=None)
def edwards_decode(b):
    """The point, or None where the encoding is not canonical or not on the curve."""
    y, sign = le(b) & 2**255 - 1, b[31] >> 7
    x = edwards_x(y, sign) if y < P else None
    return None if x is None else (x, y, 1, x * y % P)


@functools.lru_cache(maxsize=None)
def ed25519_key_ok(pk):
    """Section 1, roster: canonical, of the prime-order group, not the identity."""
    p = edwards_decode(pk) if len(pk) == 32 else None
    return p is not None and edwards_encode(p) != edwards_encode(ZERO) and same_point(point_mul(ELL, p), ZERO)


def same_point(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def ed25519_expand(seed):
    h = hashlib.sha512(seed).digest()
    return le(h[:32]) & 2**254 - 8 | 2**254, h[32:]


@functools.lru_cache(maxsize=None)
def ed25519_public(seed):
    return edwards_encode(base_mul(ed25519_expand(seed)[0]))


@functools.lru_cache(maxsize=None)
def ed25519_sign(seed, msg):
    a, prefix = ed25519_expand(seed)
    pk = ed25519_public(seed)
    r = le(hashlib.sha512(prefix + msg).digest()) % ELL
    big_r = edwards_encode(base_mul(r))
    k = le(hashlib.sha512(big_r + pk + msg).digest()) % ELL
    return big_r + scalar_bytes(r + k * a)


@functools.lru_cache(maxsize=None)
def ed25519_verify(pk, msg, sig):
    """s below l, and s*B - k*A encodes to the very bytes of R: no cofactor, no second encoding."""
    a = edwards_decode(pk)
    if len(sig) != 64 or a is None or not scalar_ok(sig[32:]):
        return False
    k = le(hashlib.sha512(sig[:32] + pk + msg).digest()) % ELL
    minus_a = (P - a[0], a[1], 1, P - a[3])
    return edwards_encode(point_add(base_mul(le(sig[32:])), point_mul(k, minus_a))) == sig[:32]


# ---- ristretto255 (RFC 9496) ---------------------------------------------------------------------------------------


def negative(x):
    return x & 1


def magnitude(x):
    return P - x if negative(x) else x


def sqrt_ratio(u, v):
    """(was square, non-negative root of u/v, or of i*u/v)."""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    if check in (-u % P, -u * SQRT_M1 % P):
        r = r * SQRT_M1 % P
    return check in (u % P, -u % P), magnitude(r)


INVSQRT_A_MINUS_D = sqrt_ratio(1, (-1 - D) % P)[1]


@functools.lru_cache(maxsize=None)
def ristretto_decode(b):
    """The point, or None (RFC 9496, 4.3.1)."""
    s = le(b)
    if len(b) != 32 or s >= P or negative(s):
        return None
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, inv = sqrt_ratio(1, v * u2 * u2 % P)
    den_x = inv * u2 % P
    den_y = inv * den_x * v % P
    x, y = magnitude(2 * s * den_x % P), u1 * den_y % P
    t = x * y % P
    return None if not square or negative(t) or y == 0 else (x, y, 1, t)


def ristretto_encode(p):
    """RFC 9496, 4.3.2."""
    x, y, z, t = p
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    inv = sqrt_ratio(1, u1 * u2 * u2 % P)[1]
    den1, den2 = inv * u1 % P, inv * u2 % P
    z_inv = den1 * den2 * t % P
    if negative(t * z_inv % P):
        x, y, den_inv = y * SQRT_M1 % P, x * SQRT_M1 % P, den1 * INVSQRT_A_MINUS_D % P
    else:
        den_inv = den2
    if negative(x * z_inv % P):
        y = -y % P
    return magnitude(den_inv * (z - y) % P).to_bytes(32, "little")


IDENTITY = bytes(32)  # the identity's encoding


@functools.lru_cache(maxsize=None)
def ristretto_base(s):
    return ristretto_encode(base_mul(s))


def ristretto_ok(b):
    """A point that may stand in a message: canonical and not the identity."""
    return len(b) == 32 and b != IDENTITY and ristretto_decode(b) is not None


# ---- ChaCha20 and ChaCha20-Poly1305 (RFC 8439) ---------------------------------------------------------------------


def quarter(s, a, b, c, d):
    for x, y, z, r in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = s[x] + s[y] & 0xFFFFFFFF
        v = s[z] ^ s[x]
        s[z] = (v << r | v >> 32 - r) & 0xFFFFFFFF


@functools.lru_cache(maxsize=None)
def chacha20_block(key, counter, nonce):
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key), counter]
    start += struct.unpack("<3I", nonce)
    s = start[:]
    for _ in range(10):
        for i in range(4):
            quarter(s, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *(a + b & 0xFFFFFFFF for a, b in zip(s, start)))


def chacha20(key, n, counter=0, nonce=bytes(12)):
    """The first n bytes of the stream."""
    blocks = (chacha20_block(key, counter + i, nonce) for i in range((n + 63) // 64))
    return b"".join(blocks)[:n]


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def poly1305(key, msg):
    r, s = le(key[:16]) & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF, le(key[16:])
    acc = 0
    for i in range(0, len(msg), 16):
        acc = (acc + le(msg[i : i + 16] + b"\1")) * r % (2**130 - 5)
    return (acc + s & 2**128 - 1).to_bytes(16, "little")


def aead_tag(key, ciphertext, aad, nonce):
    def padded(x):
        return x + bytes(-len(x) % 16)

    data = padded(aad) + padded(ciphertext) + struct.pack("<QQ", len(aad), len(ciphertext))
    return poly1305(chacha20_block(key, 0, nonce)[:32], data)


def seal(key, plain, aad=b"", nonce=bytes(12)):
    c = xor(plain, chacha20(key, len(plain), 1, nonce))
    return c + aead_tag(key, c, aad, nonce)


def unseal(key, sealed, aad=b"", nonce=bytes(12)):
    """The plaintext, or None."""
    c, tag = sealed[:-16], sealed[-16:]
    return xor(c, chacha20(key, len(c), 1, nonce)) if aead_tag(key, c, aad, nonce) == tag else None


# ---- AES-256-CTR (FIPS 197, SP 800-38A) ----------------------------------------------------------------------------


def xtime(a):
    return a << 1 ^ (0x11B if a & 0x80 else 0)


def make_sbox():
    exp, log, x = [0] * 256, [0] * 256, 1
    for i in range(255):
        exp[i], log[x] = x, i
        x ^= xtime(x)  # times 3, a generator
    box = []
    for a in range(256):
        b = exp[-log[a] % 255] if a else 0
        box.append(0x63 ^ b ^ functools.reduce(int.__xor__, (b << i & 0xFF | b >> 8 - i for i in range(1, 5))))
    return box


SBOX = make_sbox()


@functools.lru_cache(maxsize=64)
def aes256_schedule(key):
    """15 round keys of 16 bytes."""
    w = [list(key[i : i + 4]) for i in range(0, 32, 4)]
    rcon = 1
    for i in range(8, 60):
        t = w[-1]
        if i % 8 == 0:
            t = [SBOX[b] for b in t[1:] + t[:1]]
            t[0] ^= rcon
            rcon = xtime(rcon)
        elif i % 8 == 4:
            t = [SBOX[b] for b in t]
        w.append([a ^ b for a, b in zip(w[-8], t)])
    return [sum(w[i : i + 4], []) for i in range(0, 60, 4)]


def aes256_block(key, block):
    keys = aes256_schedule(key)
    s = [a ^ b for a, b in zip(block, keys[0])]
    for r in range(1, 15):
        s = [SBOX[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]  # bytes and rows
        if r < 14:
            mixed = []
            for c in range(0, 16, 4):
                a = s[c : c + 4]
                whole = a[0] ^ a[1] ^ a[2] ^ a[3]
                mixed += [a[i] ^ whole ^ xtime(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
            s = mixed
        s = [a ^ b for a, b in zip(s, keys[r])]
    return bytes(s)


def aes256_ctr(key, n, counter=0):
    """The first n bytes of the stream; the whole block is the counter, big-endian."""
    blocks = (aes256_block(key, (counter + i).to_bytes(16, "big")) for i in range((n + 15) // 16))
    return b"".join(blocks)[:n]


# ---- Shamir over the scalars (2.2) ---------------------------------------------------------------------------------


def shamir_split(secret, points, coefficients):
    """Values at `points` of the polynomial with `secret` at 0 and coefficients of degree 1, 2, ..."""
    shares = {}
    for x in points:
        value = 0
        for c in reversed([secret, *coefficients]):
            value = (value * x + c) % ELL
        shares[x] = value
    return shares


def shamir_join(shares):
    """The value at 0 through all points of {x: value}."""
    total = 0
    for x, value in shares.items():
        up = down = 1
        for other in shares:
            if other != x:
                up, down = up * other % ELL, down * (other - x) % ELL
        total += value * up * pow(down, -1, ELL)
    return total % ELL


# ---- entropy of tests: the seeded source of src/crypto/entropy.c --------------------------------------------------


class Entropy:
    """A ChaCha20 stream under a key from a seed and a stream number; tests and --insecure-seed only."""

    def __init__(self, seed, stream):
        self.key = hashlib.blake2b(b"fedkt seeded v1\0" + struct.pack("<QQ", seed, stream), digest_size=32).digest()
        self.left, self.block = b"", 0

    def take(self, n):
        while len(self.left) < n:
            self.left += chacha20_block(self.key, self.block, bytes(12))
            self.block += 1
        out, self.left = self.left[:n], self.left[n:]
        return out

    def scalar(self):
        return scalar_reduce(self.take(64))

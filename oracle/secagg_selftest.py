# SPDX-License-Identifier: Apache-2.0
"""secagg_selftest.py - the building blocks against the vectors of their standards, and a few rounds."""

import json

from secagg_primitives import *  # noqa: F403 - every name of it is under test
from secagg_transcript import play, verify

SUNSCREEN = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
SUNSCREEN += b"sunscreen would be it."
AES_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")

# RFC 8032, 7.1: seed, public key, message, signature
ED25519 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]

# RFC 9496, A.1: 0*G to 15*G
RISTRETTO = """
0000000000000000000000000000000000000000000000000000000000000000
e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76
6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919
94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259
da80862773358b466ffadfe0b3293ab3d9fd53c5ea6c955358f568322daf6a57
e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e
f64746d3c92b13050ed8d80236a7f0007c3b3f962f5ba793d19a601ebb1df403
44f53520926ec81fbd5a387845beb7df85a96a24ece18738bdcfa6a7822a176d
903293d8f2287ebe10e2374dc1a53e0bc887e592699f02d077d5263cdd55601c
02622ace8f7303a31cafc63f8fc48fdc16e1c8c8d234b2f0d6685282a9076031
20706fd788b2720a1ed2a5dad4952b01f413bcf0e7564de8cdc816689e2db95f
bce83f8ba5dd2fa572864c24ba1810f9522bc6004afe95877ac73241cafdab42
e4549ee16b9aa03099ca208c67adafcafa4c3f3e4e5303de6026e3ca8ff84460
aa52e000df2e16f55fb1032fc33bc42742dad6bd5a8fc0be0167436c5948501f
46376b80f409b29dc2b5f6f0c52591990896e5716f41477cd30085ab7f10301e
e0c418f7c8d9c4cdd7395b93ea124f3ad99021bb681dfc3302a9d99a2e53e64e
""".split()

# RFC 9496, A.2, one of each kind: non-canonical, negative, no square root, negative xy, y = 0
RISTRETTO_BAD = """
00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f
0100000000000000000000000000000000000000000000000000000000000000
26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371
3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e
ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f
""".split()


def check(name, good):
    if not good:
        raise SystemExit(f"selftest: {name} is wrong")


def hex_is(name, got, want):
    check(f"{name} (got {got.hex()})", got.hex() == want.replace(" ", ""))


def test_x25519():
    k, u = (
        bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
        bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"),
    )
    hex_is("RFC 7748, 5.2", x25519(k, u), "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    k = u = (9).to_bytes(32, "little")
    hex_is("RFC 7748, once", x25519(k, u), "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079")
    a = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    b = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    hex_is("RFC 7748, 6.1", x25519_public(a), "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    hex_is("RFC 7748, 6.1, shared", x25519(a, x25519_public(b)), shared)
    hex_is("RFC 7748, 6.1, other side", x25519(b, x25519_public(a)), shared)
    for low in (0, 1, P - 1, P, P + 1, 2**255 + 9):
        check(f"low or non-canonical {low}", not x25519_key_ok(low.to_bytes(32, "little")))
    check("base point", x25519_key_ok((9).to_bytes(32, "little")))


def test_ed25519():
    for seed, public, msg, sig in ED25519:
        seed, public, msg, sig = map(bytes.fromhex, (seed, public, msg, sig))
        hex_is("RFC 8032 key", ed25519_public(seed), public.hex())
        hex_is("RFC 8032 signature", ed25519_sign(seed, msg), sig.hex())
        check("RFC 8032 verify", ed25519_verify(public, msg, sig) and ed25519_key_ok(public))
        check("wrong message", not ed25519_verify(public, msg + b"x", sig))
        malleable = sig[:32] + (le(sig[32:]) + ELL).to_bytes(32, "little")
        check("S not below l", not ed25519_verify(public, msg, malleable))
    check("identity as a key", not ed25519_key_ok((1).to_bytes(32, "little")))
    check("order 4 as a key", not ed25519_key_ok(bytes(32)))


def test_ristretto():
    for i, want in enumerate(RISTRETTO):
        hex_is(f"RFC 9496, {i}*G", ristretto_base(i), want)
        p = ristretto_decode(bytes.fromhex(want))
        hex_is(f"RFC 9496, {i}*G again", ristretto_encode(point_add(p, ZERO)), want)
    for bad in RISTRETTO_BAD:
        check(f"RFC 9496, bad {bad}", not ristretto_ok(bytes.fromhex(bad)))
    check("the identity may not stand in a message", not ristretto_ok(IDENTITY))


def test_chacha20():
    key = bytes(range(32))
    block = chacha20_block(key, 1, bytes.fromhex("000000090000004a00000000"))
    hex_is("RFC 8439, 2.3.2", block[:16], "10f1e7e4d13b5915500fdd1fa32071c4")
    hex_is("RFC 8439, A.1", chacha20(bytes(32), 16), "76b8e0ada0f13d90405d6ae55386bd28")
    mac = bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
    hex_is("RFC 8439, 2.5.2", poly1305(mac, b"Cryptographic Forum Research Group"), "a8061dc1305136c6c22b8baf0c0127a9")
    key, nonce = bytes(range(0x80, 0xA0)), bytes.fromhex("070000004041424344454647")
    aad = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    sealed = seal(key, SUNSCREEN, aad, nonce)
    hex_is("RFC 8439, 2.8.2", sealed[:16], "d31a8d34648e60db7b86afbc53ef7ec2")
    hex_is("RFC 8439, 2.8.2, tag", sealed[-16:], "1ae10b594f09e26a7e902ecbd0600691")
    check("opens", unseal(key, sealed, aad, nonce) == SUNSCREEN)
    check("does not open", unseal(key, sealed[:-1] + b"\0", aad, nonce) is None)


def test_aes():
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")
    hex_is("FIPS 197, C.3", aes256_block(bytes(range(32)), plain), "8ea2b7ca516745bfeafc49904b496089")
    counter = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
    stream = aes256_ctr(AES_KEY, 32, counter)
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    want = "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    hex_is("SP 800-38A, F.5.5", xor(plain, stream), want)


def test_shamir():
    e = Entropy(7, 0)
    secret, rest = e.scalar(), [e.scalar() for _ in range(2)]
    shares = shamir_split(secret, [1, 4, 9, 65536], rest)
    for left_out in shares:
        check("Shamir", shamir_join({x: v for x, v in shares.items() if x != left_out}) == secret)
    check("too few", shamir_join({1: shares[1], 4: shares[4]}) != secret)


def test_blake2b():
    hex_is(
        "RFC 7693, A",
        hashlib.blake2b(b"abc").digest(),
        "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
        "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
    )


def primitives():
    tests = [test_blake2b, test_x25519, test_ed25519, test_ristretto, test_chacha20, test_aes, test_shamir]
    for test in tests:
        test()
    return len(tests)


# ---- whole rounds, and a verifier that can say no ------------------------------------------------------------------

SMALL = dict(sites=4, dropped=1, corrupt=0, degree=3, threshold=2, attempts=1, length=3, bits=32, bound=1000,
             keystream="chacha20", seed=1)  # fmt: skip
SPARSE = dict(SMALL, sites=8, degree=4, threshold=3, attempts=2, dropped=1, bits=40, keystream="aes-256-ctr")
ROUNDS = [SMALL, dict(SMALL, silent=[["masked", 2]]), dict(SMALL, silent=[["reveal", 0]]),
          dict(SPARSE, silent=[["open 1", 5]]), dict(SPARSE, silent=[["shares", 7]]),
          dict(SPARSE, silent=[["confirm", 3]])]  # fmt: skip


def broken(transcript):
    """(what, transcript with one thing wrong): each must be noticed."""
    text = json.dumps(transcript)
    for number, event in enumerate(transcript["events"]):
        if "bytes" in event:
            other = json.loads(text)
            data = bytearray.fromhex(event["bytes"])
            data[-1] ^= 1
            other["events"][number]["bytes"] = data.hex()
            yield f"event {number}", other
    other = json.loads(text)
    other["total"][0] += 1
    yield "total", other
    other = json.loads(text)
    other["secrets"][0]["vector"][0] += 1
    yield "vector", other


def rounds():
    for spec in ROUNDS:
        transcript = play(spec)
        check(f"round {spec}", verify(transcript) == [])
        del transcript["secrets"]
        check(f"round {spec} without secrets", verify(transcript) == [])
    for what, transcript in broken(play(ROUNDS[1])):
        check(f"the verifier on a broken {what}", verify(transcript) != [])
    return len(ROUNDS)

# SPDX-License-Identifier: Apache-2.0
"""secagg_wire.py - what the messages of proto/fedkt.proto look like as bytes (docs/protocol.md 2.3, 2.4, 6).

A message is a pair (kind, fields): kind is the body's name in lower case, fields a dictionary of ints and bytes with
every field present, `session` and (to the server) `site` among them. Decoding accepts canonical bytes alone.
"""

# The statuses that a refusal carries (fedkt/status.h).
STATE, FORMAT, AUTH, TOO_FEW = 11, 40, 41, 42
STOPPED = 24  # what a site says that leaves for reasons of its own


class Refused(Exception):
    """A message that a party must not accept, and why."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status, self.why = status, why


# kind: (number in the oneof, ((field's number, name, type), ...))
TO_SERVER = {
    "advertise": (3, ((1, "channel_key", bytes), (2, "mask_key", bytes), (3, "coin", bytes), (4, "signature", bytes))),
    "open": (4, ((1, "attempt", int), (2, "scalar", bytes), (3, "next_coin", bytes))),
    "shares": (5, ((1, "sealed", bytes), (2, "self_commitment", bytes))),
    "masked": (6, ((1, "packed", bytes),)),
    "confirm": (7, ((1, "signature", bytes),)),
    "reveal": (8, ((1, "shares", bytes),)),
    "leave": (9, ((1, "status", int),)),
}
TO_SITE = {
    "begin": (2, ((1, "round", bytes), (2, "task", bytes))),
    "coin": (3, ((1, "attempt", int), (2, "leaves", int), (3, "position", int), (4, "path", bytes))),
    "neighbours": (4, ((1, "scalar", bytes), (2, "present", bytes), (3, "adverts", bytes))),
    "deliver": (5, ((1, "delivered", bytes), (2, "sealed", bytes))),
    "survivors": (6, ((1, "survivors", bytes),)),
    "confirmed": (7, ((1, "present", bytes), (2, "signatures", bytes))),
    "aborted": (8, ((1, "status", int),)),
}


def heads(to_server):
    return ((1, "session", bytes), (2, "site", int)) if to_server else ((1, "session", bytes),)


# ---- protobuf ------------------------------------------------------------------------------------------------------


def varint(x):
    out = b""
    while x > 127:
        out, x = out + bytes([x & 127 | 128]), x >> 7
    return out + bytes([x])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def encode_fields(fields, values):
    """proto3: what is zero or empty is not written."""
    return b"".join(field(n, values[name]) for n, name, _ in fields if values[name])


def encode(to_server, kind, values):
    number, fields = (TO_SERVER if to_server else TO_SITE)[kind]
    return encode_fields(heads(to_server), values) + field(number, encode_fields(fields, values))


def read_varint(data, at):
    x = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Refused(FORMAT, "a varint does not end")
        x, shift, at = x | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return x, at


def read_fields(data):
    """(number, value) in the order of the bytes."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 2:
            n, at = read_varint(data, at)
            value, at = data[at : at + n], at + n
            if at > len(data):
                raise Refused(FORMAT, "a field ends beyond the message")
        else:
            raise Refused(FORMAT, f"wire type {tag & 7} is not used")
        yield tag >> 3, value


def take(fields, pairs):
    """Fills in what was not written, and notices what does not belong."""
    known = {n: (name, kind) for n, name, kind in fields}
    values = {name: kind() for _, name, kind in fields}
    for number, value in pairs:
        name, kind = known.get(number, (None, None))
        if name is None or not isinstance(value, kind) or (kind is int and value >= 2**32):
            raise Refused(FORMAT, f"field {number} does not belong here")
        values[name] = value
    return values


def decode(to_server, data, limit):
    """(kind, values) of canonical bytes (2.4); `limit` is the longest that an honest party could send (6)."""
    if len(data) > limit:
        raise Refused(FORMAT, f"{len(data)} bytes are more than {limit}")
    kinds = {number: kind for kind, (number, _) in (TO_SERVER if to_server else TO_SITE).items()}
    pairs = list(read_fields(data))
    bodies = [(kinds[n], v) for n, v in pairs if n in kinds]
    if len(bodies) != 1 or not isinstance(bodies[0][1], bytes):
        raise Refused(FORMAT, f"{len(bodies)} bodies in one message")
    kind, body = bodies[0]
    values = take(heads(to_server), [(n, v) for n, v in pairs if n not in kinds])
    values |= take((TO_SERVER if to_server else TO_SITE)[kind][1], read_fields(body))
    if encode(to_server, kind, values) != data:
        raise Refused(FORMAT, "the encoding is not canonical")
    return kind, values


# ---- 2.3 bitmaps and packed vectors --------------------------------------------------------------------------------


def bitmap(n, bits):
    out = bytearray((n + 7) // 8)
    for i in bits:
        out[i // 8] |= 1 << i % 8
    return bytes(out)


def bits_of(data, n, what):
    """The set bits of a bitmap of n bits."""
    sized(data, (n + 7) // 8, what)
    value = int.from_bytes(data, "little")
    if value >> n:
        raise Refused(FORMAT, f"unused bits of {what} are set")
    return [i for i in range(n) if value >> i & 1]


def packed_bytes(length, bits):
    return (length * bits + 7) // 8


def pack(numbers, bits):
    value = 0
    for i, x in enumerate(numbers):
        value |= x % 2**bits << i * bits
    return value.to_bytes(packed_bytes(len(numbers), bits), "little")


def unpack(data, length, bits):
    sized(data, packed_bytes(length, bits), "the packed vector")
    value = int.from_bytes(data, "little")
    if value >> length * bits:
        raise Refused(FORMAT, "unused bits of the packed vector are set")
    return [value >> i * bits & 2**bits - 1 for i in range(length)]


def sized(data, n, what):
    if len(data) != n:
        raise Refused(FORMAT, f"{what} has {len(data)} bytes, not {n}")


def chunks(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


# ---- 6 limits ------------------------------------------------------------------------------------------------------


def longest(to_server, params):
    """The longest encoding that an honest party could send under these parameters."""
    n, k = params.sites, params.degree
    depth = (n - 1).bit_length()
    most = {
        "advertise": {"channel_key": 32, "mask_key": 32, "coin": 0 if params.complete else 32, "signature": 64},
        "open": {"attempt": params.attempts, "scalar": 32, "next_coin": 32},
        "shares": {"sealed": 80 * k, "self_commitment": 32},
        "masked": {"packed": packed_bytes(params.length, params.bits)},
        "confirm": {"signature": 64},
        "reveal": {"shares": 32 * k},
        "leave": {"status": 2**32 - 1},
        "begin": {"round": 16, "task": 32},
        "coin": {"attempt": params.attempts, "leaves": n, "position": n - 1, "path": 64 * depth},
        "neighbours": {"scalar": 0 if params.complete else 32, "present": (k + 7) // 8, "adverts": 128 * k},
        "deliver": {"delivered": (n + 7) // 8, "sealed": 80 * k},
        "survivors": {"survivors": (n + 7) // 8},
        "confirmed": {"present": (k + 7) // 8, "signatures": 64 * k},
        "aborted": {"status": 2**32 - 1},
    }
    table = TO_SERVER if to_server else TO_SITE
    sparse_only = {"open", "coin"} if params.complete else set()
    return max(
        longest_of(to_server, kind, fields, most[kind], n)
        for kind, (_, fields) in table.items()
        if kind not in sparse_only
    )


def longest_of(to_server, kind, fields, most, sites):
    values = {name: most[name] if t is int else bytes(most[name]) for _, name, t in fields}
    return len(encode(to_server, kind, {"session": bytes(32), "site": sites - 1, **values}))

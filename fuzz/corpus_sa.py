# SPDX-License-Identifier: Apache-2.0
"""corpus_sa.py - seeds for the targets of secure aggregation (fuzz_sa.h and fuzz_sa_talk.c have the layout).

No message with a signature stands here: an input names the honest message of a phase and edits it, or scripts a
conversation. Raw messages are there to begin with for the decoder alone.
"""

COMPLETE, SPARSE = 0, 8
UP = {"advertise": 0, "open": 1, "shares": 2, "masked": 3, "confirm": 4, "reveal": 5}
DOWN = {"begin": 0, "coin": 1, "neighbours": 2, "deliver": 3, "survivors": 4, "confirmed": 5}
XOR, LENGTH, SET, FROM, COPY, NUMBER, BECOME = range(7)


def head(graph, phase, site=1, how=1):
    return bytes([graph | phase | site << 4, how])


def edit(what, field, where=0, value=0):
    return bytes([what << 4 | field, where & 255, where >> 8, value])


def varint(x):
    out = b""
    while x >= 128:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def field(number, body):
    if isinstance(body, int):
        return varint(number << 3) + varint(body)
    return varint(number << 3 | 2) + varint(len(body)) + body


def raw(graph, phase, message):
    return head(graph, phase, how=0) + message


def to_server():
    files = {}
    session = field(1, bytes(range(32)))
    for name, phase in UP.items():
        for graph, g in ((COMPLETE, "complete"), (SPARSE, "sparse")):
            if name == "open" and graph == COMPLETE:
                continue
            files[f"{name}-{g}"] = head(graph, phase)
    files["bad-session"] = head(COMPLETE, UP["shares"]) + edit(XOR, 0, 3, 1)
    files["bad-signature"] = head(COMPLETE, UP["advertise"]) + edit(XOR, 4, 40, 16)
    files["bad-key-of-another"] = head(SPARSE, UP["advertise"]) + edit(FROM, 1, 0, 2)
    files["bad-key-low-order"] = head(COMPLETE, UP["advertise"]) + edit(LENGTH, 2) + edit(LENGTH, 2, 32)
    files["bad-scalar"] = head(SPARSE, UP["open"]) + edit(SET, 1, 31, 255)
    files["bad-throw"] = head(SPARSE, UP["open"]) + edit(NUMBER, 1, 9)
    files["bad-sealed-short"] = head(COMPLETE, UP["shares"]) + edit(LENGTH, 1, 160)
    files["bad-commitment"] = head(COMPLETE, UP["shares"]) + edit(XOR, 2, 0, 1)
    files["bad-vector"] = head(COMPLETE, UP["masked"]) + edit(XOR, 1, 0, 1)
    files["bad-vector-spare-bits"] = head(COMPLETE, UP["masked"]) + edit(SET, 1, 10, 255)
    files["bad-reveal"] = head(SPARSE, UP["reveal"]) + edit(XOR, 1, 1, 1) + edit(XOR, 1, 33, 1)
    files["bad-reveal-large"] = head(COMPLETE, UP["reveal"]) + edit(SET, 1, 31, 255)
    files["bad-early"] = head(COMPLETE, UP["shares"]) + edit(BECOME, 0, UP["reveal"], 1)
    files["bad-name"] = head(COMPLETE, UP["confirm"]) + edit(NUMBER, 0, 3)
    files["raw-leave"] = raw(COMPLETE, 3, session + field(2, 1) + field(9, field(1, 60)))
    files["raw-empty-body"] = raw(COMPLETE, 0, session + field(2, 1) + field(3, b""))
    files["raw-twice"] = raw(COMPLETE, 0, session + session + field(2, 1) + field(9, b""))
    files["raw-unknown"] = raw(COMPLETE, 0, session + field(2, 1) + field(9, b"") + field(14, 7))
    files["raw-overlong"] = raw(COMPLETE, 0, session + b"\x10\x81\x00" + field(9, b""))
    files["raw-huge"] = raw(COMPLETE, 0, session + b"\x32\xff\xff\xff\xff\x0f")
    files["empty"] = b""
    return files


def to_site():
    files = {}
    session = field(1, bytes(range(32)))
    for name, phase in DOWN.items():
        for graph, g in ((COMPLETE, "complete"), (SPARSE, "sparse")):
            if name == "coin" and graph == COMPLETE:
                continue
            files[f"{name}-{g}"] = head(graph, phase)
    files["bad-task"] = head(COMPLETE, DOWN["begin"]) + edit(XOR, 2, 5, 1)
    files["bad-round"] = head(COMPLETE, DOWN["begin"]) + edit(XOR, 1, 5, 1)
    files["bad-path"] = head(SPARSE, DOWN["coin"]) + edit(XOR, 1, 0, 1)
    files["bad-point"] = head(SPARSE, DOWN["coin"]) + edit(SET, 1, 63, 255)
    files["bad-leaves"] = head(SPARSE, DOWN["coin"]) + edit(NUMBER, 1, 40000, 12)
    files["bad-throw"] = head(SPARSE, DOWN["coin"]) + edit(NUMBER, 0, 3)
    files["bad-value"] = head(SPARSE, DOWN["neighbours"]) + edit(XOR, 1, 9, 2)
    files["bad-advert"] = head(COMPLETE, DOWN["neighbours"]) + edit(XOR, 3, 130, 8)
    files["fewer-neighbours"] = head(COMPLETE, DOWN["neighbours"]) + edit(XOR, 2, 0, 4) + edit(LENGTH, 3, 256)
    files["bad-bitmap"] = head(COMPLETE, DOWN["neighbours"]) + edit(XOR, 2, 0, 128)
    files["bad-box"] = head(COMPLETE, DOWN["deliver"]) + edit(XOR, 2, 81, 1)
    files["fewer-peers"] = head(COMPLETE, DOWN["deliver"]) + edit(XOR, 1, 0, 4) + edit(LENGTH, 2, 160)
    files["boxes-of-another"] = head(COMPLETE, DOWN["deliver"]) + edit(FROM, 2, 0, 2)
    files["fewer-survivors"] = head(COMPLETE, DOWN["survivors"]) + edit(XOR, 1, 0, 1)
    files["survivors-of-none"] = head(COMPLETE, DOWN["survivors"]) + edit(SET, 1, 0, 0)
    files["fewer-confirmed"] = head(COMPLETE, DOWN["confirmed"]) + edit(XOR, 1, 0, 4) + edit(LENGTH, 2, 128)
    files["bad-confirmed"] = head(SPARSE, DOWN["confirmed"]) + edit(XOR, 2, 70, 4)
    files["bad-early"] = head(COMPLETE, DOWN["deliver"]) + edit(BECOME, 0, DOWN["confirmed"], 1)
    files["raw-aborted"] = raw(COMPLETE, 3, session + field(8, field(1, 42)))
    files["raw-begin"] = raw(COMPLETE, 0, field(2, field(1, bytes(16)) + field(2, b"\x7a" * 32)))
    files["raw-two-bodies"] = raw(COMPLETE, 0, session + field(6, field(1, b"\x0f")) + field(8, b""))
    files["raw-default"] = raw(COMPLETE, 0, session + field(8, field(1, 0)))
    files["raw-cut"] = raw(COMPLETE, 0, session[:20])
    files["empty"] = b""
    return files


DELIVER, LOSE, TWICE, ALTER, RESIZE, EXCHANGE, PAST, SILENT, REFUSE, CLOSE = 0, 7, 8, 9, 10, 11, 12, 13, 14, 15


def step(what, which=0, more=0):
    return bytes([what, which, more])


def talk():
    some = lambda n: step(DELIVER) * n
    files = {"honest": b"\0", "honest-sparse": b"\1", "honest-any": b"\2", "honest-newest": b"\5", "empty": b""}
    for n, when in ((0, "begin"), (6, "advertise"), (12, "share"), (20, "mask"), (27, "confirm"), (35, "reveal")):
        files[f"silent-{when}"] = b"\0" + some(n) + step(SILENT, 2, n & 1)
        files[f"twist-{when}"] = b"\0" + some(n) + step(ALTER, 1, 37)
        files[f"swap-{when}"] = b"\1" + some(n) + step(EXCHANGE, 0, 1)
        files[f"past-{when}"] = b"\0" + some(n) + step(PAST, n // 2, 129) + step(PAST, n // 3, 0)
    files["lost-two"] = b"\0" + some(9) + step(SILENT, 0, 1) + step(SILENT, 3, 1)
    files["every-letter-twice"] = b"\2" + (step(TWICE) + some(2)) * 30
    files["refused"] = b"\0" + step(REFUSE, 1, 1) + some(15) + step(REFUSE, 2, 0)
    files["cut-and-grown"] = b"\1" + some(10) + step(RESIZE, 2, 9) + some(5) + step(RESIZE, 1, 4)
    files["closed-early"] = b"\0" + some(5) + step(CLOSE) + some(12) + step(CLOSE)
    files["losses"] = b"\1" + (some(11) + step(LOSE, 3)) * 5
    return files

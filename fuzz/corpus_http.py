# SPDX-License-Identifier: Apache-2.0
"""corpus_http.py - seeds for fuzz_http: scripts of steps (fuzz_http.c has the layout). They contain no signatures:
a step states who signs, and what is altered afterwards."""

CLOCK, TURN, GET, POST, HEAD, PUT, TARGET, HEADER = range(8)
MESSAGES, WAIT, NOW, KNOWN, TASK, FILE, UP, BENT, PAGE, STATUS, METRICS, HEALTH, NOTHING, LOGIN = range(14)
LETTER = {"T": 0, "S": 6, "F": 8, "R": 9, "G": 10, "W": 11, "X": 12, "?": 13}
HEADER_LINE = b"Fedkt site=0, nonce=" + b"0" * 32 + b", seq=1, sig=" + b"0" * 128


def step(what, site=0, where=0, bent=0, more=0, address=0, raw=None):
    tail = b"" if raw is None else bytes([len(raw)]) + raw
    return bytes([what, site | address << 2, where, bent, more]) + tail


def post(letter, site=0, **more):
    return step(POST, site, MESSAGES, more=16 + LETTER[letter], **more)


def turn():
    return step(TURN)


def files():
    poll, now, known = (step(GET, 0, where) for where in (WAIT, NOW, KNOWN))
    talk = now + poll + turn() + post("T") + turn() + known + turn() + post("S") + post("F", 1) + turn() + known
    people = b"".join(step(GET, 0, where) for where in (PAGE, STATUS, METRICS, HEALTH, LOGIN, UP, BENT, NOTHING))
    return {
        "talk.bin": talk,
        "second_poll.bin": poll + turn() + step(GET, 0, WAIT) + turn() + step(CLOCK, more=60) + turn(),
        "all_sites_poll.bin": b"".join(step(GET, i, WAIT) for i in range(3)) + turn() + post("R") + turn(),
        "work.bin": step(GET, 1, WAIT) + post("W") + turn() + turn() + post("T") + turn(),
        "given_up.bin": post("G") + turn() + post("T") + now + turn(),
        "mailbox_dies.bin": poll + turn() + post("X") + post("T", 1) + turn() + post("T", 2) + turn(),
        "each_bend.bin": b"".join(post("T", bent=1 << i, address=i % 4) + turn() for i in range(8)),
        "bends_in_pairs.bin": b"".join(
            post("T", i % 4, bent=1 << i | 1 << j, address=j % 4) for i in range(8) for j in range(i)
        ),
        "refused_often.bin": b"".join(step(GET, 0, NOTHING) for _ in range(20)) + post("T", address=1) + turn(),
        "forgiven.bin": b"".join(step(GET, 0, NOTHING) for _ in range(14)) + step(CLOCK, more=255) * 12 + post("T"),
        "too_fast.bin": b"".join(post("T") for _ in range(12)) + turn() + step(CLOCK, more=40) + post("T") + turn(),
        "people.bin": people,
        "methods.bin": b"".join(step(m, 0, t) for m in (GET, POST, HEAD, PUT) for t in (MESSAGES, NOW, TASK, METRICS)),
        "targets.bin": b"".join(
            step(TARGET, i % 3, address=i % 4, raw=raw)
            for i, raw in enumerate(
                (b"/v1/messages?round=-&after=4294967296&wait=1", b"/v1/messages?round=-&after=1&wait=4294967295",
                 b"/v1/files/grid.png", b"/files/grid.png", b"/v1/task ", b"//v1/task", b"/login?token=", b"*", b"/")
            )
        ),
        "headers.bin": b"".join(
            step(HEADER, i % 3, where, address=i % 4, raw=raw)
            for i, (where, raw) in enumerate(
                ((TASK, HEADER_LINE), (TASK, HEADER_LINE[:-1]), (STATUS, b"Bearer sesame"), (STATUS, b"Bearer "),
                 (TASK, HEADER_LINE.replace(b"site=0", b"site=9")), (NOW, b"Fedkt site="), (TASK, b""))
            )
        ),
    }  # fmt: skip

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""transparency.py - an independent check of what a server published.

Written from docs/http.md and docs/protocol.md alone.

Usage: transparency.py FOLDER [--task TASK.json] [--receipt RECEIPT.json] [--operator HEX]
       prints one line; exit 0: everything fits, 1: the line says what does not

FOLDER holds transparency.jsonl, release.safetensors and certificate.json. Standard library only; signatures are checked
with the Ed25519 of secagg_primitives.py. It knows nothing of the C code, so that the two can be compared: a folder
that one of them takes and the other refuses is a bug in one of them.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import struct
import sys
import types

from secagg_primitives import ed25519_verify
from secagg_rules import confirm_hash, seed_of, session_of, witnesses

# ---- JSON with one way to write it ---------------------------------------------------------------------------------

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Wrong(Exception):
    """Says what does not fit."""


def need(good, why):
    if not good:
        raise Wrong(why)


def pairs(items):
    need(len({k for k, _ in items}) == len(items), "a key stands twice in an object")
    return dict(items)


def load(data, what):
    try:
        return json.loads(data.decode("utf-8", "strict"), object_pairs_hook=pairs, parse_constant=lambda c: 1 / 0)
    except (ValueError, ArithmeticError, RecursionError) as problem:
        raise Wrong(f"{what} is not JSON: {problem}") from None


def real(x):
    """17 digits, a point or an exponent, and nothing in an exponent that need not be there."""
    text = "%.17g" % x
    if "e" in text:
        head, power = text.split("e")
        return f"{head}e{'-' if power[0] == '-' else ''}{power.lstrip('+-').lstrip('0')}"
    return text if "." in text else text + ".0"


def word(s):
    return '"' + "".join(ESCAPES.get(c) or (f"\\u{ord(c):04X}" if ord(c) < 32 else c) for c in s) + '"'


def dump(value, indent=0, depth=0):
    """Keys sorted by their bytes; indent 0: no blanks."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return real(value)
    if isinstance(value, str):
        return word(value)
    feed = "\n" + " " * (indent * (depth + 1)) if indent else ""
    last = "\n" + " " * (indent * depth) if indent else ""
    if isinstance(value, list):
        inner = [dump(v, indent, depth + 1) for v in value]
        left, right = "[]"
    else:
        colon = ": " if indent else ":"
        keys = sorted(value, key=lambda k: k.encode())
        inner = [word(k) + colon + dump(value[k], indent, depth + 1) for k in keys]
        left, right = "{}"
    return left + ",".join(feed + part for part in inner) + (last if inner else "") + right


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# ---- lines ---------------------------------------------------------------------------------------------------------


def hexadecimal(n):
    return lambda v: isinstance(v, str) and re.fullmatch(f"[0-9a-f]{{{2 * n}}}", v, re.ASCII) is not None


def whole(v):
    return isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**53


def text(v):
    return isinstance(v, str) and len(v.encode()) <= 1024 and "\0" not in v


def bitmap(v):
    return isinstance(v, str) and re.fullmatch("([0-9a-f]{2})*", v, re.ASCII) is not None


def site_or_null(v):
    return v is None or whole(v)


def mapping(v):
    return isinstance(v, dict)


COMMON = {"at": whole, "entry": whole, "event": text, "prev": hexadecimal(32)}
ROUND = {"round": whole}
KINDS = ("advertise", "open", "shares", "masked", "confirm", "reveal", "leave")
EVENTS = {
    "open": {"schema": text, "task": mapping, "version": text},
    "start": {"version": text},
    "refused": {"site": site_or_null, "why": text, "times": whole},
    "begin": ROUND | {"name": hexadecimal(16)},
    "message": ROUND | {"site": whole, "kind": text, "bytes": whole, "sha256": hexadecimal(32), "verdict": whole},
    "phase": ROUND | {"phase": text, "heard": whole, "expected": whole, "why": text},
    "lost": ROUND | {"site": whole, "status": whole, "phase": text},
    "survivors": ROUND | {"seed": hexadecimal(32), "survivors": bitmap, "count": whole},
    "confirmed": ROUND | {"site": whole, "signature": hexadecimal(64)},
    "failed": ROUND | {"reason": text},
    "given-up": {"reason": text},
    "release": ROUND | {"survivors": whole, "sha256": hexadecimal(32), "certificate_sha256": hexadecimal(32)},
    "file": {"name": text, "bytes": whole, "sha256": hexadecimal(32)},
    "no-dataset": {"reason": text},
    "end": {},
}


def read_line(data, entry, prev):
    line = load(data, "it")
    need(mapping(line), "it is no object")
    need(dump(line).encode() == data, "it is not written in the one way")
    kinds = COMMON | EVENTS.get(line.get("event") if isinstance(line.get("event"), str) else None, {"": whole})
    need(set(line) == set(kinds), "its keys are not those of its event")
    bad = [key for key, kind in kinds.items() if not kind(line[key])]
    need(not bad, f"'{', '.join(bad)}' is not what it must be")
    need(line["entry"] == entry, "its number is wrong")
    need(line["prev"] == prev, "it does not follow from the line before")
    return line


# ---- the task ------------------------------------------------------------------------------------------------------


def signed_task(task):
    """The task without its signature, its hash, and the operator's key under it (None: it is not signed)."""
    task = dict(task)
    signature = task.pop("signature", None)
    digest = hashlib.sha256(dump(task).encode()).digest()
    if signature is None:
        return task, digest, None
    key, name = bytes.fromhex(signature["key"]), b"fedkt-task-1"
    signed = bytes([len(name)]) + name + struct.pack("<Q", len(digest)) + digest
    signed = hashlib.blake2b(signed, digest_size=32).digest()
    need(ed25519_verify(key, signed, bytes.fromhex(signature["bytes"])), "the operator's signature is false")
    return task, digest, key


def read_task(task):
    """Parameters, the hash, and the operator's key under it."""
    task, digest, key = signed_task(task)
    need(key is not None, "the task is not signed")
    need("service" in task and "federation" in task, "the task has no server")
    f = task["federation"]
    params = types.SimpleNamespace(
        sites=f["sites"],
        stay=f["sites"] - f["dropped"],
        bound=f["bound"],
        degree=f["degree"],
        threshold=f["threshold"],
        complete=f["degree"] == f["sites"] - 1,
        task=digest,
        roster=[bytes.fromhex(k) for k in f["roster"]],
    )
    return task, params, digest.hex(), key.hex()


# ---- the log -------------------------------------------------------------------------------------------------------


class Round:
    def __init__(self, name):
        self.name, self.masked, self.survivors, self.seed, self.signatures = name, set(), None, None, {}
        self.lost, self.parted = set(), set()

    def take_survivors(self, line, params):
        need(self.survivors is None, "a second list of survivors")
        bits = bytes.fromhex(line["survivors"])
        need(len(bits) == (params.sites + 7) // 8, "the bitmap has another length")
        there = {i for i in range(8 * len(bits)) if bits[i // 8] >> (i % 8) & 1}
        need(all(i < params.sites for i in there), "the bitmap has bits beyond the roster")
        need(len(there) == line["count"] >= params.stay, "the number of survivors is wrong")
        self.survivors, self.bits, self.seed = there, bits, bytes.fromhex(line["seed"])

    def take(self, line, params):
        if line["event"] == "survivors":
            self.take_survivors(line, params)
        elif line["event"] == "confirmed":
            need(self.survivors is not None and line["site"] in self.survivors, "one that is no survivor signed")
            need(line["site"] not in self.signatures, "a site signs twice")
            self.signatures[line["site"]] = bytes.fromhex(line["signature"])
        elif line["event"] == "lost":
            self.take_loss(line["site"])
        elif line["event"] == "message":
            self.take_message(line["site"], line["kind"], line["verdict"])

    def take_loss(self, site):
        need(site not in self.lost, "a site is lost twice")
        answered = self.survivors is None and site in self.masked and site not in self.parted
        need(not answered, "a site is lost after its vector was taken, and it neither left nor was refused")
        self.lost.add(site)

    def take_message(self, site, kind, verdict):
        need(site not in self.lost, "a site that was lost says something")
        if verdict != 0 or kind == "leave":
            self.parted.add(site)
        if verdict == 0 and kind == "masked":
            need(site not in self.masked, "a second vector of a site")
            self.masked.add(site)

    def check(self, params):
        need(self.survivors is not None, "the round has no list of survivors")
        need(self.masked == self.survivors, "the survivors are not those whose vectors came")
        session = session_of(params, self.name)
        if params.complete:
            need(self.seed == seed_of(session), "the seed does not follow from the session")
            seen = len(self.signatures)
        else:
            seen = len(set(witnesses(params, session, self.seed)) & set(self.signatures))
        need(len(self.signatures) >= params.stay and seen >= params.threshold, "too few signed the survivors")
        signed = confirm_hash(session, self.seed, self.bits)
        for site, signature in sorted(self.signatures.items()):
            need(ed25519_verify(params.roster[site], signed, signature), f"the signature of site {site} is false")


class Log:
    def __init__(self, receipt, task):
        self.receipt, self.wanted, self.entries, self.head = receipt, task, 0, "0" * 64
        self.names, self.round, self.release, self.given_up, self.ended, self.files = [], None, None, False, False, []
        self.bare = False

    def take_open(self, line):
        need(line["schema"] == "fedkt.transparency/1", "another schema")
        self.task, self.params, self.task_sha256, self.operator = read_task(line["task"])
        if self.wanted:
            _, wanted, operator = signed_task(self.wanted)
            need(wanted.hex() == self.task_sha256, "the log is of another task")
            need(operator is None or operator.hex() == self.operator, "another operator signed the task")
        if self.receipt:
            need(self.receipt.task == self.task_sha256, "the receipt is of another task")
            need(self.receipt.site < self.params.sites, "the receipt is of a site that is not there")

    def take_begin(self, line):
        need(not self.round, "a round begins within another")
        need(len(self.names) < self.task["service"]["rounds"], "more rounds than the task allows")
        need(line["round"] == len(self.names) + 1 and line["name"] not in self.names, "the round's number or name")
        self.names.append(line["name"])
        self.round = Round(bytes.fromhex(line["name"]))

    def take_release(self, line):
        self.round.check(self.params)
        need(line["survivors"] == len(self.round.survivors), "the number of survivors is wrong")
        self.release, self.round = (line, self.round), None

    def take(self, line):
        event, over = line["event"], self.release or self.given_up
        need(not self.ended, "a line after the end")
        need((event == "open") == (self.entries == 0), "'open' is the first line and no other")
        need(not (over and event in ("begin", "release", "given-up")), "the task was over")
        if event == "open":
            return self.take_open(line)
        need(event == "refused" or line.get("site", 0) < self.params.sites, "a site that is not on the roster")
        if "round" in line and event != "begin":
            need(self.round and line["round"] == len(self.names), "that round is not under way")
        if event == "begin":
            self.take_begin(line)
        elif event == "release":
            self.take_release(line)
        elif event == "failed":
            self.round = None
        elif event == "no-dataset":
            need(self.release and not self.files and not self.bare, "'no-dataset' where it cannot stand")
            self.bare = True
        elif event == "file":
            need(not self.bare, "a file, and the log has said that there are no images")
            good = re.fullmatch("[a-z0-9_-][a-z0-9._-]{0,62}", line["name"], re.ASCII)
            need(good and len(self.files) < 8, "a file of such a name")
            self.files.append(line)
        elif event == "given-up":
            need(not self.round, "a round is under way")
            self.given_up = True
        elif event == "end":
            need(over, "neither a release nor 'given-up'")
            self.ended = True
        elif self.round:
            self.round.take(line, self.params)

    def feed(self, data):
        try:
            need(len(data) <= (17 << 20 if self.entries == 0 else 32 << 10), "it is too long")
            line = read_line(data, self.entries + 1, self.head)
            name = self.round.name.hex() if self.round else ""
            self.take(line)
            self.entries, self.head = self.entries + 1, sha256(data)
            if self.receipt:
                self.receipt.take(line, self.entries, self.head, name)
        except Wrong as wrong:
            raise Wrong(f"transparency.jsonl line {self.entries + 1}: {wrong}") from None

    def end(self):
        need(self.ended, "transparency.jsonl has no line 'end'")
        if self.receipt:
            self.receipt.end()


class Receipt:
    def __init__(self, data):
        j = load(data, "the receipt")
        need(mapping(j) and set(j) == {"schema", "task_sha256", "site", "heads", "messages"}, "the receipt's keys")
        need(j["schema"] == "fedkt.receipt/1" and hexadecimal(32)(j["task_sha256"]), "the receipt's schema or task")
        need(whole(j["site"]) and j["site"] < 65536, "the receipt's site")
        self.task, self.site, self.heads, self.sent = j["task_sha256"], j["site"], {}, {}
        need(isinstance(j["heads"], list) and isinstance(j["messages"], list), "the receipt's lists")
        last = 0
        for h in j["heads"]:
            need(mapping(h) and set(h) == {"entry", "sha256"} and hexadecimal(32)(h["sha256"]), "a head")
            need(whole(h["entry"]) and h["entry"] >= max(last, 1), "heads are not ascending")
            last = h["entry"]
            need(h["sha256"] not in self.heads.setdefault(last, []), "a head stands twice")
            self.heads[last].append(h["sha256"])
        self.last = last
        for m in j["messages"]:
            need(mapping(m) and set(m) == {"round", "kind", "sha256", "bytes", "taken"}, "a message")
            need(m["kind"] in KINDS, "a message's kind")
            need(hexadecimal(16)(m["round"]) and hexadecimal(32)(m["sha256"]), "a message's round or hash")
            need(whole(m["bytes"]) and m["bytes"] > 0 and isinstance(m["taken"], bool), "a message's length")
            self.sent[m["round"], m["sha256"]] = [m["bytes"], m["kind"], m["taken"], m["taken"]]

    def take(self, line, entry, head, name):
        need(self.heads.pop(entry, [head]) == [head], "the site was told another line")
        if line["event"] == "message" and line["site"] == self.site:
            found = self.sent.get((name, line["sha256"]))
            if found:
                need(found[:2] == [line["bytes"], line["kind"]], "a message of the site has another length or kind")
                need(line["verdict"] == 0 or not found[2], "a message that was acknowledged is called refused")
                found[3] = False
            else:
                need(entry > self.last, "a message that the site never sent")

    def end(self):
        need(not self.heads, "the site was told of lines that are not there")
        need(not any(missing for *_, missing in self.sent.values()), "a message that was acknowledged is not there")


# ---- the files -----------------------------------------------------------------------------------------------------


def read_release(data):
    """Metadata and the bytes of the moments."""
    need(len(data) >= 8, "release.safetensors is cut")
    (n,) = struct.unpack("<Q", data[:8])
    need(n <= len(data) - 8, "release.safetensors is cut")
    header = load(data[8 : 8 + n], "release.safetensors")
    begin, end = header["moments"]["data_offsets"]
    need(header["moments"]["dtype"] == "I64" and 0 <= begin <= end <= len(data) - 8 - n, "the moments' place")
    return header["__metadata__"], data[8 + n + begin : 8 + n + end]


def plain(path):
    """The bytes of a regular file; a pipe would hold us up."""
    need(path.is_file() or not path.exists(), f"{path.name} is not a regular file")
    return path.read_bytes()


def weigh(path):
    """Length and hash of a file, or of a folder: the sorted lines "sha256  path\\n" of its files."""
    every = [path, *path.rglob("*")]
    need(all((p.is_file() or p.is_dir()) and not p.is_symlink() for p in every), f"{path.name}: links, or no files")
    if path.is_file():
        return path.stat().st_size, sha256(path.read_bytes())
    files = [p for p in path.rglob("*") if p.is_file()]
    lines = sorted(f"{sha256(p.read_bytes())}  {p.relative_to(path)}\n".encode() for p in files)
    return sum(p.stat().st_size for p in files), sha256(b"".join(lines))


def weak(task):
    """The promise is too weak to be called private: docs/privacy.md."""
    federation, privacy = task["federation"], task["privacy"]
    bound = federation["records"] * federation["sites"] * len(task["classes"])
    if federation["records"] == 2**20 and not task.get("service"):  # nobody knows a bound
        bound = 0
    return privacy["epsilon"] > 20 or privacy["delta"] > min(1e-3, 1 / max(bound, 1)) * (1 + 1e-12)


def check_files(folder, log):
    release = folder / "release.safetensors"
    if log.given_up:
        need(not os.path.lexists(release), "there is a release, and the log says that there is none")
        return
    line, round_ = log.release
    data, stated = plain(release), plain(folder / "certificate.json")
    need(sha256(data) == line["sha256"], "release.safetensors is not the one of the log")
    need(sha256(stated) == line["certificate_sha256"], "certificate.json is not the one of the log")
    meta, moments = read_release(data)
    need(sha256(meta["task"].encode()) == log.task_sha256, "the release is of another task")
    inside = load(meta["certificate"].encode(), "the certificate inside the release")
    need((dump(inside, 2) + "\n").encode() == stated, "certificate.json is not the release's own")
    privacy, seeded = log.task["privacy"], "insecure_seed" in log.task["service"]
    wanted = {
        "task_sha256": log.task_sha256,
        "noised_moments_sha256": sha256(moments),
        "sites": log.params.sites,
        "survivors": len(round_.survivors),
        "epsilon": privacy["epsilon"],
        "delta": privacy["delta"],
        "adjacency": privacy["adjacency"],
        "private": not seeded and not weak(log.task),
        "promise": "weak" if weak(log.task) else None,
    }
    for key, value in wanted.items():
        need(inside.get(key) == value, f"certificate.json: '{key}' does not follow")
    most = log.params.bound * len(round_.survivors)
    if log.task["federation"]["noise"] == "central":
        most += 40 * max(inside["sigma_count"], inside["sigma_sum"], inside["sigma_moment"])
    numbers = struct.unpack(f"<{len(moments) // 8}q", moments)
    need(max(map(abs, numbers)) <= most, "the release has a number that so many sites cannot add up to")
    need("none" not in inside["ledger"], "certificate.json: it is of a simulation")
    for f in log.files:
        if os.path.lexists(folder / f["name"]):
            need(weigh(folder / f["name"]) == (f["bytes"], f["sha256"]), f"{f['name']} is another one")


def verify(folder, task=None, receipt=None, operator=None):
    """Raises Wrong; gives the log."""
    folder = pathlib.Path(folder)
    log = Log(
        receipt and Receipt(pathlib.Path(receipt).read_bytes()), task and load(pathlib.Path(task).read_bytes(), task)
    )
    try:
        lines = plain(folder / "transparency.jsonl").split(b"\n")
        need(lines.pop() == b"", "transparency.jsonl does not end with a newline")
        for data in lines:
            log.feed(data)
        log.end()
        need(operator in (None, log.operator), "another operator signed the task")
        check_files(folder, log)
    except (OSError, KeyError, TypeError, ValueError, IndexError) as problem:  # of a shape that nothing above expects
        raise Wrong(f"{type(problem).__name__}: {problem}") from None
    return log


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name in ("task", "receipt", "operator"):
        parser.add_argument(f"--{name}")
    a = parser.parse_args()
    try:
        log = verify(a.folder, a.task, a.receipt, a.operator)
    except (Wrong, OSError) as wrong:
        print(wrong)
        return 1
    print(f"{log.entries} lines, {len(log.names)} rounds: everything fits")
    return 0


if __name__ == "__main__":
    sys.exit(main())

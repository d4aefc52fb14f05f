#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_transparency.py - `fedkt verify` and oracle/transparency.py agree on good folders, known lies and random lies.

Usage: check_transparency.py MAKER FEDKT [FOLDER...]

MAKER writes good folders, by hand and with a real host. Each lie is told in one place, and the log is chained anew
behind it, so that the chain alone does not give it away. Lies of the list must be refused by both; random changes must
get the same verdict from both, whatever it is. With FOLDERs (each with task.json, and a receipt.json or none, in it)
those are taken for good ones too.
"""

import copy
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "oracle"))
import transparency  # noqa: E402

SEED, RANDOM_LIES = 20240611, 120


class Folder:
    """A good folder, and lies about it in a copy."""

    def __init__(self, good, work, fedkt):
        self.good, self.work, self.fedkt, self.bad = good, work, fedkt, []
        self.lines = [json.loads(line) for line in (good / "transparency.jsonl").read_text().splitlines()]

    def write(self, lines):
        """Chains the lines; gives the heads."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.good, self.work)
        prev, out, heads = "0" * 64, [], []
        for number, line in enumerate(lines, 1):
            data = transparency.dump(line | {"entry": number, "prev": prev}).encode()
            prev = transparency.sha256(data)
            heads.append(prev)
            out.append(data + b"\n")
        (self.work / "transparency.jsonl").write_bytes(b"".join(out))
        return heads

    def verdicts(self, receipt, task):
        """(fedkt's, the oracle's), each None when it fits, else the sentence."""
        extra = [] if not receipt else ["--receipt", str(self.work / "receipt.json")]
        extra += [] if not task else ["--task", str(self.work / "task.json")]
        done = subprocess.run(
            [self.fedkt, "verify", "--folder", str(self.work), *extra], capture_output=True, text=True, timeout=120
        )
        c = None if done.returncode == 0 else done.stderr.splitlines()[0]
        if done.returncode not in (0, 1):
            raise SystemExit(f"fedkt left with {done.returncode}: {done.stderr}")
        try:
            paths = {"task": task and self.work / "task.json", "receipt": receipt and self.work / "receipt.json"}
            transparency.verify(self.work, **paths)
            return c, None
        except transparency.Wrong as wrong:
            return c, str(wrong)

    def expect(self, name, good, receipt=False, task=False):
        c, python = self.verdicts(receipt, task)
        if (c is None) != good or (python is None) != good:
            self.bad.append(f"{name}: wanted {'good' if good else 'bad'}; fedkt says {c!r}, the oracle {python!r}")

    def agree(self, name, receipt):
        c, python = self.verdicts(receipt, False)
        if (c is None) != (python is None):
            self.bad.append(f"{name}: fedkt says {c!r}, the oracle {python!r}")
        return c is None


def index(lines, event, n=0):
    """The n-th line of that event, of those in the round of the release where there are some."""
    found = [i for i, line in enumerate(lines) if line["event"] == event]
    begin = max(i for i, line in enumerate(lines) if line["event"] == "begin")
    return ([i for i in found if i > begin] or found)[n]


def lies(lines):
    """Name -> lines with one lie in them."""
    out = {}

    def lie(name, change):
        changed = copy.deepcopy(lines)
        out[name] = change(changed) or changed

    def put(event, n, /, **values):
        return lambda l: l[index(l, event, n)].update(values)

    def gone(site):
        return {"at": 1, "event": "lost", "phase": "mask", "round": round_, "site": site, "status": 7}

    survivors = lines[index(lines, "survivors")]
    round_ = survivors["round"]
    more = bytes([bytes.fromhex(survivors["survivors"])[0] ^ 1]).hex() + survivors["survivors"][2:]
    release = index(lines, "release")
    lie("open twice", lambda l: l.insert(1, l[0]))
    lie("no open", lambda l: l[1:])
    lie("no end", lambda l: l[:-1])
    lie("after the end", lambda l: l.append(copy.deepcopy(l[1])))
    lie("survivors changed", put("survivors", 0, survivors=more, count=survivors["count"] + 1))
    lie("count changed", put("survivors", 0, count=survivors["count"] + 1))
    lie("seed changed", put("survivors", 0, seed="33" * 32))
    lie("survivors twice", lambda l: l.insert(index(l, "survivors"), l[index(l, "survivors")]))
    lie(
        "signature of another",
        lambda l: l[index(l, "confirmed")].update(signature=l[index(l, "confirmed", 1)]["signature"]),
    )
    lie("signatures removed", lambda l: [x for x in l if x["event"] != "confirmed"])
    lie("signature twice", lambda l: l.insert(index(l, "confirmed"), l[index(l, "confirmed")]))
    lie("signed by another site", put("confirmed", 0, site=lines[index(lines, "confirmed", 1)]["site"]))
    begin = index(lines, "begin", -1)
    masked = [i for i, l in enumerate(lines) if i > begin and l["event"] == "message" and l["kind"] == "masked"]
    lie("vector removed", lambda l: l.pop(masked[0]) and None)
    lie("vector refused", lambda l: l[masked[0]].update(verdict=41))
    lie("vector twice", lambda l: l.insert(masked[0], l[masked[0]]))
    lie("vector after its loss", lambda l: l.insert(masked[0], gone(l[masked[0]]["site"])))
    lie("lost after its vector", lambda l: l.insert(masked[0] + 1, gone(l[masked[0]]["site"])))
    lie("lost twice", lambda l: l.insert(index(l, "lost"), l[index(l, "lost")]))
    lie("round renamed", put("begin", -1, name="0f" * 16))
    lie("second release", lambda l: l.insert(release + 1, l[release]))
    lie("round after the release", lambda l: l.insert(release + 1, l[index(l, "begin")] | {"name": "0e" * 16}))
    lie("release of another hash", put("release", 0, sha256="00" * 32))
    lie("certificate of another hash", put("release", 0, certificate_sha256="00" * 32))
    lie("survivors in the release", put("release", 0, survivors=lines[release]["survivors"] - 1))
    grid = [l["name"] for l in lines if l["event"] == "file"].index("grid.png")
    lie("file of another hash", put("file", grid, sha256="00" * 32))
    bare = {"event": "no-dataset", "reason": "x", "at": 1}
    lie("images, and none", lambda l: l.insert(-1, bare))
    lie("no images before the release", lambda l: l.insert(release, bare))
    lie("no images twice", lambda l: l[: release + 1] + [bare, bare] + l[-1:])
    lie("file above", put("file", 0, name="../x"))
    lie("site not on the roster", put("message", 0, site=60000))
    lie("a key more", put("start", 0, note="x"))
    lie("a number as text", put("phase", 0, heard="1"))
    lie("a number below zero", put("phase", 0, heard=-1))
    lie("a number too large", put("phase", 0, heard=2**53))
    lie("an event that is none", put("start", 0, event="party"))
    lie("task unsigned", lambda l: l[0]["task"].pop("signature") and None)
    lie("task changed", lambda l: l[0]["task"].update(name="x"))
    lie("schema changed", put("open", 0, schema="fedkt.transparency/2"))
    lie("given up and released", lambda l: l.insert(release, {"event": "given-up", "reason": "x", "at": 1}))
    return out


def alter(rng, lines):
    """One random change that a log could hold: a value, a line, an order."""
    lines = copy.deepcopy(lines)
    i = rng.randrange(1, len(lines))
    kind = rng.randrange(6)
    if kind == 0:
        lines.pop(i)
    elif kind == 1:
        lines.insert(rng.randrange(1, len(lines)), lines[i])
    elif kind == 2:
        j = rng.randrange(1, len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    else:
        key = rng.choice(sorted(lines[i]))
        value = lines[i][key]
        if isinstance(value, int):
            value = rng.choice([value + 1, max(value - 1, 0), 0, 2**53 - 1, str(value), None, True])
        elif isinstance(value, str) and re.fullmatch("[0-9a-f]+", value):
            at = rng.randrange(len(value))
            value = value[:at] + rng.choice("0123456789abcdefG") + value[at + 1 :]
        else:
            value = rng.choice(["x", "", "masked", "all", 3, None, 'é\n"\\\x01', "y" * 1025])
        lines[i][key] = value
    return lines


def try_bytes(folder, rng):
    """Flipped and cut bytes of every file, nothing chained anew."""
    for name in ("transparency.jsonl", "certificate.json", "release.safetensors"):
        data = (folder.good / name).read_bytes()
        for _ in range(8):
            at = rng.randrange(len(data))
            folder.write(folder.lines)
            (folder.work / name).write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
            folder.expect(f"{name}: byte {at} flipped", False)
        folder.write(folder.lines)
        (folder.work / name).write_bytes(data[: rng.randrange(len(data))])
        folder.expect(f"{name}: cut", False)


def try_receipt(folder):
    heads = folder.write(folder.lines)
    receipt = json.loads((folder.good / "receipt.json").read_text())
    for name, good, change in [
        ("untouched", True, lambda r: None),
        ("a head changed", False, lambda r: r["heads"][-1].update(sha256="00" * 32)),
        ("a head beyond", False, lambda r: r["heads"].append({"entry": len(heads) + 1, "sha256": "00" * 32})),
        ("two heads of one line", False, lambda r: r["heads"].append(r["heads"][-1] | {"sha256": "00" * 32})),
        ("a head twice", False, lambda r: r["heads"].append(r["heads"][-1])),
        ("heads out of order", False, lambda r: r["heads"].reverse()),
        ("no heads", True, lambda r: r["heads"].clear()),
        ("a message more", False, lambda r: r["messages"].append(r["messages"][0] | {"sha256": "00" * 32})),
        (
            "one that was not taken",
            True,
            lambda r: r["messages"].append(r["messages"][0] | {"sha256": "00" * 32, "taken": False}),
        ),
        ("a message forgotten", False, lambda r: r["messages"].pop(0) and None),
        ("another length", False, lambda r: r["messages"][0].update(bytes=1 + r["messages"][0]["bytes"])),
        ("another kind", False, lambda r: r["messages"][0].update(kind="open")),
        ("a kind that no site sends", False, lambda r: r["messages"][0].update(kind="unreadable")),
        ("no kind", False, lambda r: r["messages"][0].pop("kind") and None),
        ("another task", False, lambda r: r.update(task_sha256="00" * 32)),
        ("another site", False, lambda r: r.update(site=60000)),
        ("a key more", False, lambda r: r.update(note=1)),
    ]:
        changed = copy.deepcopy(receipt)
        change(changed)
        (folder.work / "receipt.json").write_text(json.dumps(changed))
        folder.expect(f"receipt: {name}", good, receipt=True)
    own = index(folder.lines, "message", 0)
    while folder.lines[own]["site"] != receipt["site"]:
        own += 1
    for name, good, change in [
        ("taken, and called refused", False, lambda l: l[own].update(verdict=22)),
        ("called another", False, lambda l: l[own].update(kind="open")),
        ("never sent, and refused", False, lambda l: l.insert(own, l[own] | {"sha256": "00" * 32, "verdict": 21})),
        ("of another site", True, lambda l: l.insert(own, l[own] | {"sha256": "00" * 32, "verdict": 21, "site": 3})),
    ]:  # told to the site from the beginning: the heads fit
        changed = copy.deepcopy(folder.lines)
        change(changed)
        heads = folder.write(changed)
        told = receipt | {"heads": [{"entry": n, "sha256": h} for n, h in enumerate(heads, 1)]}
        (folder.work / "receipt.json").write_text(json.dumps(told))
        folder.expect(f"blame: {name}", good, receipt=True)
    # A log that was rewritten and chained anew: only the receipt knows.
    folder.write(folder.lines[:1] + [dict(folder.lines[1], at=5)] + folder.lines[2:])
    folder.expect("rewritten, no receipt", True)
    folder.expect("rewritten, receipt", False, receipt=True)


def check(folder, rng, number):
    folder.write(folder.lines)
    kept = (folder.good / "receipt.json").exists()
    folder.expect("good", True, receipt=kept, task=True)
    given = json.loads((folder.good / "task.json").read_text())
    signature = given.pop("signature")
    folder.write(folder.lines)
    (folder.work / "task.json").write_text(json.dumps(given))
    folder.expect("the given task is unsigned", True, task=True)
    signature["bytes"] = "00" + signature["bytes"][2:]
    (folder.work / "task.json").write_text(json.dumps(given | {"signature": signature}))
    folder.expect("the given task is signed falsely", False, task=True)
    for name, lines in lies(folder.lines).items():
        folder.write(lines)
        folder.expect(name, False)
    try_bytes(folder, rng)
    if kept:
        try_receipt(folder)
    taken = 0
    for n in range(number):
        folder.write(alter(rng, folder.lines))
        taken += folder.agree(f"random change {n}", receipt=kept and n % 2 == 1)
    if number >= 50 and not 0 < taken < number:
        folder.bad.append(f"{taken} of {number} random changes are taken: they say nothing")
    return folder.bad


def main():
    maker, fedkt, *others = sys.argv[1:]
    bad, rng = [], random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="fedkt-log-") as name:
        top = pathlib.Path(name)
        for sites, dropped, corrupt, number in ((7, 1, 1, RANDOM_LIES), (52, 2, 1, 4)):
            good = top / f"good{sites}"
            good.mkdir()
            subprocess.run([maker, str(good), str(sites), str(dropped), str(corrupt)], check=True)
            bad += [f"{sites} sites: {b}" for b in check(Folder(good, top / "work", fedkt), rng, number)]
        served = top / "served"
        subprocess.run([maker, str(served)], check=True)
        for other in [served, *map(pathlib.Path, others)]:
            bad += [f"{other}: {b}" for b in check(Folder(other, top / "work", fedkt), rng, 20)]
    print("\n".join(bad) or f"fedkt and the oracle agree (seed {SEED})")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())

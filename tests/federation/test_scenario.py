#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_scenario.py - one server, twelve sites with different classes, two of them killed, and three intruders.

Usage: test_scenario.py FEDKT PLAN [test...]

Eleven sites are `fedkt join`, one is the oracle's site in Python, which also sends every request twice. The release
must be the exact sum and noise that expect.py works out without any of it.
"""

import hashlib
import json
import re
import shutil

import fed
import wire
from pace import Pace


class Scenario(fed.Case):
    SITES, PYTHON = 12, 11

    def stranger(self, f, site, **more):
        """Somebody with a key of his own in another's seat."""
        return f.door(site, **{"seed": bytes(range(32)), **more})

    def wrong_key(self, f):
        door = self.stranger(f, 4)
        answer = door.ask("GET", "/v1/task")
        self.assertEqual((answer.code, answer.title), (401, "signature"))
        answer = door.ask("POST", "/v1/messages", b"\x0a\x01x")
        self.assertEqual((answer.code, answer.title), (401, "signature"))
        door.site = 400
        answer = door.ask("GET", "/v1/task")
        self.assertEqual((answer.code, answer.title), (401, "unknown-site"))
        door.close()
        f.run("keygen", "--out", "stranger.key")
        said = f.run("join", "--task", "task.json", "--key", "stranger.key", "--data", "data0", "--state", "x.state",
                     "--ledger", "x.ledger", "--out", "x", "--accept-insecure-seed", code=1)  # fmt: skip
        self.assertIn("roster", said.stderr)

    def other_task(self, f):
        """The same keys, another promise: nothing of it may reach this server."""
        f.task("other.json", dim=5, phase=30, gather=60, rounds=4, dropped=2, epsilon="1")
        process = f.join(5, task="other.json", state="other.state", ledger="other.ledger")
        self.assertEqual(process.wait(), 1, process.words())
        self.assertIn("task", process.talk[-1] + process.talk[0])
        self.assertFalse(process.out.exists())

    def replayed(self, f):
        """A request that was right once, a second time."""
        door = f.door(6)
        self.assertEqual(door.ask("GET", "/v1/task").code, 200)
        headers = door.signed("GET", "/v1/task")
        first = door.raw("GET", "/v1/task", headers=headers)
        self.assertEqual((first.code, json.loads(first.body)), (200, json.loads((f.folder / "task.json").read_text())))
        again = door.raw("GET", "/v1/task", headers=headers)
        self.assertEqual((again.code, again.title), (401, "replayed"))
        headers["Authorization"] = headers["Authorization"].replace("seq=", "seq=1")
        self.assertEqual(door.raw("GET", "/v1/task", headers=headers).title, "signature")
        door.close()

    def python_site(self, f):
        task = json.loads((f.folder / "task.json").read_text())
        params = wire.params_of(task, f.plan_json["sha256"], f.plan_json["vector"])
        site = wire.PythonSite(f.door(self.PYTHON), params, f.seed, f.vector(self.PYTHON))
        site.start()
        return site

    def test_twelve_sites(self):
        f = self.federation(sites=self.SITES, dropped=2, phase=10, gather=120, seed=20, classes=("a", "b", "c", "d"))
        oracle_vector = [f.vector(i) for i in range(self.SITES)]  # before the clock runs
        self.assertEqual(len(oracle_vector), self.SITES)
        f.serve()
        self.wrong_key(f)
        self.other_task(f)
        self.replayed(f)
        f.join_all(range(self.SITES - 2))
        python = self.python_site(f)
        f.seen("eleven wait", lambda s: s["ready"] == self.SITES - 1)
        pace = Pace(f, first=0, second=1)
        f.join(self.SITES - 2)
        pace.arrive("advertise")
        pace.kill(2)  # gone before its shares: not in the sum
        pace.gone = 1
        pace.go_on()
        pace.gone = 0
        pace.go_on()  # after the deadline of the phase that site 2 is missing in
        pace.kill(3)  # gone after its vector: in the sum, its masks come off by others' shares
        pace.let_go()
        survivors = self.released(f)
        self.assertEqual(survivors, [i for i in range(self.SITES) if i != 2], f.talk())
        self.sites_end(f, [i for i in range(self.SITES - 1) if i not in (2, 3)])
        python.join(60)
        self.everyone_agrees(f, python)
        self.log_tells(f)
        self.changed_afterwards(f)

    def everyone_agrees(self, f, python):
        self.assertIsNone(python.error)
        self.assertEqual((python.stage, python.taken), ("released", 5))
        self.assertEqual([a.title for a in python.replays], ["replayed"] * 5)
        self.assertEqual([a.code for a in python.repeats[:-1]], [409] * 4)
        for i in (0, 1, 4, 10):
            self.assertEqual((f.site[i].out / "release.safetensors").read_bytes(), f.release_bytes())
            f.verify("--receipt", f.site[i].out / "receipt.json")

    def log_tells(self, f):
        lines = f.log()
        refused = {(line["site"], line["why"]) for line in lines if line["event"] == "refused"}
        for who in ((4, "signature"), (400, "unknown-site"), (5, "other-task"), (6, "replayed"), (11, "replayed")):
            self.assertIn(who if who[0] != 400 else (None, "unknown-site"), refused)
        lost = {(line["site"], line["phase"]) for line in lines if line["event"] == "lost"}
        self.assertEqual(lost, {(2, "share"), (3, "confirm")})
        self.assertEqual(sum(line["event"] == "begin" for line in lines), 1)

    def changed_afterwards(self, f):
        """A server that rewrites what it has published, with a chain that is right again, is caught by a receipt; with
        one that is not, by anybody."""
        receipt, bad = f.site[0].out / "receipt.json", f.folder / "bad"
        shutil.copytree(f.public, bad)
        lines = (f.public / "transparency.jsonl").read_text().splitlines()
        told = [json.loads(line) for line in lines]
        kept = [line for line, t in zip(lines, told) if (t["event"], t.get("site")) != ("refused", 6)]
        self.assertLess(len(kept), len(lines))
        for chained in (False, True):
            self.write_log(bad / "transparency.jsonl", kept, chained)
            f.verify(folder=bad, good=chained)
            f.verify("--receipt", receipt, folder=bad, good=False)

    def write_log(self, path, lines, chained):
        prev = "0" * 64
        for i, line in enumerate(lines):
            if chained:
                line = re.sub(r'"entry":\d+', f'"entry":{i + 1}', line)
                lines[i] = re.sub(r'"prev":"[0-9a-f]{64}"', f'"prev":"{prev}"', line)
            prev = hashlib.sha256(lines[i].encode()).hexdigest()
        path.write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    fed.main()

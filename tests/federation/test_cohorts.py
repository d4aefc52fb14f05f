#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_cohorts.py - tasks in cohorts, with real processes: one server process for all cohorts, a process for each site.

Usage: test_cohorts.py FEDKT PLAN [test...]

The assignment of sites, the seed of each cohort and every number of the sum are worked out here again, from
docs/scale.md and the oracle; nothing of it comes from the program under test.
"""

import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

import expect
import fed
import wire

sys.path.insert(0, str(expect.ROOT / "oracle"))
import cohorts as oracle  # noqa: E402


def cohort_of(seed, number, key):
    digest = hashlib.sha256(b"fedkt.cohort/1\n" + bytes.fromhex(seed) + bytes.fromhex(key)).digest()
    return int.from_bytes(digest[:8], "big") * number >> 64


def insecure_seed(seed, index):
    return (seed + index * 0x9E3779B97F4A7C15) % 2**53 if index else seed


def read_json(text):
    """Reals keep their digits, which are compared as text in a log."""
    return json.loads(text, parse_float=lambda digits: f"real:{digits}")


def write_json(value):
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return re.sub(r'"real:([^"]*)"', r"\1", text)


def free_ports(n):
    while True:
        first = fed.free_port()
        if first + n > 65535:
            continue
        try:
            for port in range(first, first + n):
                with fed.socket.socket() as s:
                    s.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue


class Cohorts(fed.Federation):
    """A task in cohorts; `sizes` are those that the assignment must give, in their order."""

    def __init__(self, folder, sizes, phase=30, rounds=4, seed=7, dropped=None):
        self.sizes, self.cohort_seed = sizes, None
        self.phase, self.rounds, self.dropped = phase, rounds, dropped
        super().__init__(folder, sites=sum(sizes), seed=seed, classes=("a", "b"), dim=3, phase=phase, rounds=rounds)

    def public_keys(self):
        return [json.loads((self.folder / f"site{i}.key.pub").read_text())["key"] for i in range(self.sites)]

    def members_by(self, seed):
        keys, number = self.public_keys(), len(self.sizes)
        return [[i for i in range(self.sites) if cohort_of(seed, number, keys[i]) == c] for c in range(number)]

    def find_seed(self, start=0):
        """Of the seeds 0, 1, ... the first that gives these sizes."""
        for trial in range(start, start + 2_000_000):
            seed = f"{trial:064x}"
            if [len(cohort) for cohort in self.members_by(seed)] == list(self.sizes):
                return seed
        raise AssertionError(f"no seed gives cohorts of {self.sizes}")

    def task(self, name, dim, phase, gather, rounds, dropped, extra=(), epsilon="10"):
        self.address = f"127.0.0.1:{free_ports(len(self.sizes))}"
        self.dim = dim
        self.cohort_seed = self.find_seed()
        self.members = self.members_by(self.cohort_seed)
        self.make_tasks("tasks", self.cohort_seed)

    def make_tasks(self, out, cohort_seed):
        division = ["--cohort-size", self.sites // len(self.sizes), "--cohort-seed", cohort_seed]
        self.make_task(out, "roster.txt", *division)

    def make_task(self, out, roster, *more):
        dropped = [] if self.dropped is None else ["--dropped", self.dropped]
        self.run(
            "task", "new", "--out", out, "--classes", ",".join(self.classes), "--size", 16, "--epsilon", 10, "--delta",
            "1e-5", "--records", self.records, "--roster", roster, "--server", f"https://{self.address}",
            "--certificate", "state/tls.pem", "--key", "operator.key", "--phase-seconds", self.phase,
            "--gather-seconds", 60, "--rounds", self.rounds, "--codec", "dct", "--dim", self.dim, "--insecure-seed",
            self.seed, *dropped, *more
        )  # fmt: skip

    def smaller_task(self, out, c):
        """The task of cohort c without its last site, all else as it should be, signed by the operator."""
        kept = self.members[c][:-1]
        self.run("enroll", "--roster", "smaller.txt", *(f"site{i}.key.pub" for i in kept))
        self.make_task("plain.json", "smaller.txt")
        plain = read_json((self.folder / "plain.json").read_text())
        task = read_json((self.folder / "tasks" / f"cohort-{c:04}.json").read_text())
        task["federation"] = plain["federation"]
        if "names" in task["service"]:
            task["service"]["names"] = plain["service"]["names"]
        task.pop("signature")
        (self.folder / out).write_text(write_json(task))
        self.run("task", "sign", "--task", out, "--key", "operator.key")
        return read_json((self.folder / out).read_text())

    def serve_all(self, *extra):
        given = ["--certificate", "state/tls.pem", "--private-key", "state/tls.key"]
        server = self.serve(*given, *extra, task="tasks", wait=False)
        fed.until("all cohorts are served", lambda: len(server.lines) >= len(self.sizes) or server.ended())
        self.server = server
        return server

    def join_cohorts(self, cohorts, but=()):
        for c in cohorts:
            for i in self.members[c]:
                if i not in but:
                    self.join(i, task=f"tasks/cohort-{c:04}.json")

    def summed(self):
        """The server's line about the sum."""

        def look():
            lines = [json.loads(line) for line in list(self.server.lines)]
            return next((line for line in lines if line.get("sum")), None) or (self.server.ended() and {"sum": False})

        said = fed.until("the sum is made", look)
        if not said["sum"]:
            raise AssertionError(f"the server ended with {self.server.wait()}\n{self.server.words()}")
        return said

    def cohort_plan(self, c):
        return expect.Plan(fed.PLAN, self.folder / "tasks" / f"cohort-{c:04}.json")

    def site_moments(self, i, c):
        out = self.folder / f"moments{i}.safetensors"
        if not out.exists():
            self.run("moments", "--task", f"tasks/cohort-{c:04}.json", "--data", f"data{i}", "--out", out.name)
        return expect.exact(out)

    def expected(self, cohorts):
        """The sum of these cohorts' releases, each with all of its sites, without a mask."""
        total = None
        for c in cohorts:
            plan, seed = self.cohort_plan(c), insecure_seed(self.seed, c)
            shares = [expect.share(plan, seed, at, self.site_moments(i, c)) for at, i in enumerate(self.members[c])]
            release = expect.release(plan, shares)
            total = release if total is None else [a + b for a, b in zip(total, release)]
        return total

    def certificate(self):
        return json.loads((self.public / "certificate.json").read_text())

    def all_images(self):
        """What all sites hold, in one folder."""
        for i in range(self.sites):
            for path in (self.folder / f"data{i}").rglob("*.png"):
                to = self.folder / "all" / path.parent.name / f"{i}-{path.name}"
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, to)
        return "all"


def simulate(f, out, *extra):
    f.run(
        "simulate", "--data", "all", "--sites", f.sites, "--codec", "dct", "--dim", f.dim, "--size", 16, "--epsilon",
        10, "--delta", "1e-5", "--records", f.records, "--insecure-seed", f.seed, "--out", out, "--guide", "none",
        *extra
    )  # fmt: skip
    return f.folder / out


class Test(fed.Case):
    def cohorts(self, sizes, **more):
        self.made += 1
        f = Cohorts(self.folder / f"f{self.made}", sizes, **more)
        self.addCleanup(self.no_sanitizer_spoke, f)
        self.addCleanup(f.close)
        return f

    def simulated_sizes(self, folder):
        listed = json.loads((folder / "certificate.json").read_text())["cohorts"]["list"]
        return [cohort["sites"] for cohort in listed]

    def check_figures(self, f, inside):
        """What the certificate states, against the oracle."""
        said = f.certificate()
        told = said["cohorts"]
        listed = told["list"]
        self.assertEqual((told["number"], told["in_sum"]), (len(f.sizes), len(inside)))
        self.assertEqual([cohort["index"] for cohort in listed], inside)
        self.assertEqual(told["missing"], [c for c in range(len(f.sizes)) if c not in inside])
        self.assertEqual([cohort["sites"] for cohort in listed], [f.sizes[c] for c in inside])
        self.assertEqual((said["sites"], said["survivors"]), (f.sites, sum(c["survivors"] for c in listed)))
        factor = oracle.factor([(cohort["counted"], cohort["survivors"]) for cohort in listed])
        self.assertAlmostEqual(told["against_one_cohort"]["variance"] / float(factor), 1, delta=1e-3)
        self.assertAlmostEqual(
            told["against_one_cohort"]["standard_deviation"] ** 2, told["against_one_cohort"]["variance"], delta=1e-9
        )
        covered = oracle.covered_by(f.sites, [(cohort["sites"], cohort["corrupt_tolerated"]) for cohort in listed])
        self.assertEqual(told["colluding_covered"]["sites"], covered)
        self.assertEqual(told["promise_of_sum"]["mu"], said["mu"])
        plans = [f.cohort_plan(c) for c in inside]
        moment = sum(cohort["survivors"] * plan.variance[2] for cohort, plan in zip(listed, plans))
        self.assertAlmostEqual(told["noise_of_sum"]["sigma_moment"] / float(moment) ** 0.5, 1, delta=1e-9)

    def test_three_cohorts_add_up(self):
        """Real processes, the oracle and a simulation give the same numbers; the log, the certificate and a receipt can
        be checked, also after a power cut; a changed sum is found."""
        f = self.cohorts([4, 4, 4], seed=6)
        f.all_images()
        sizes = self.simulated_sizes(simulate(f, "sim", "--cohort-size", 4))
        f.sizes = sizes
        f.cohort_seed = f.find_seed()
        f.members = f.members_by(f.cohort_seed)
        shutil.rmtree(f.folder / "tasks")
        f.make_tasks("tasks", f.cohort_seed)
        f.serve_all()
        f.join_cohorts(range(3))
        said = f.summed()
        numbers = expect.released(f.public / "release.safetensors")
        self.assertEqual(numbers, f.expected(range(3)))
        # The simulation has other records in each cohort. Half a record of a cohort's count goes to the even integer,
        # so that its direction depends on the exact count: a sum of counts may differ by one for each cohort.
        simulated = expect.released(f.folder / "sim" / "release.safetensors")
        for at, kind in enumerate(f.cohort_plan(0).kinds()):
            self.assertLessEqual(abs(numbers[at] - simulated[at]), 3 if kind == 0 else 0, at)
        self.assertEqual(said["release_sha256"], hashlib.sha256(f.release_bytes()).hexdigest())
        self.check_figures(f, [0, 1, 2])
        self.sites_end(f, range(12))
        self.verify_everything(f)
        before = f.release_bytes()
        f.server.kill()
        f.serve_all()
        f.summed()
        self.assertEqual(f.release_bytes(), before)

    def verify_everything(self, f):
        site = f.members[1][0]
        receipt = next(f.site[site].out.rglob("receipt*.json"))
        words = ["verify", "--folder", f.public, "--json"]
        said = json.loads(f.run(*words, "--task", "tasks/sum.json", "--receipt", receipt).stdout)
        self.assertEqual((said["cohorts"], said["in_sum"], said["survivors"]), (3, 3, 12))
        self.assertTrue(said["receipt_compared"])
        f.run(*words, "--task", "tasks/cohort-0002.json")
        f.run("verify", "--folder", f.public / "cohorts" / "0001", "--receipt", receipt)
        other = self.folder / "other"
        for change in (self.swap_cohorts, self.drop_cohort, self.change_number, self.raise_composed):
            shutil.rmtree(other, ignore_errors=True)
            shutil.copytree(f.public, other)
            change(other)
            words = f.run("verify", "--folder", other, code=1).stderr
            self.assertIn("fedkt: ", words, change.__name__)
        self.assertIn("the certificate of the sum does not follow from its cohorts' releases", words)

    @staticmethod
    def swap_cohorts(folder):
        (folder / "cohorts" / "0000").rename(folder / "spare")
        (folder / "cohorts" / "0001").rename(folder / "cohorts" / "0000")
        (folder / "spare").rename(folder / "cohorts" / "0001")

    @staticmethod
    def drop_cohort(folder):
        shutil.rmtree(folder / "cohorts" / "0002")

    @staticmethod
    def change_number(folder):
        path = folder / "release.safetensors"
        data = bytearray(path.read_bytes())
        at = 8 + int.from_bytes(data[:8], "little")
        head = json.loads(bytes(data[8:at]))
        data[at + head["moments"]["data_offsets"][0]] ^= 1
        path.write_bytes(data)

    def raise_composed(self, folder):
        """A release that states others of the same records beside it, and does not contradict itself."""
        path = folder / "release.safetensors"
        data = path.read_bytes()
        at = 8 + int.from_bytes(data[:8], "little")
        head = json.loads(data[8:at])
        before = "one record is protected, not one person"
        more = "other releases of the same dataset were made beside this one: see composed_epsilon"

        def lie(text, gap):
            changed, n = re.subn(r'("composed_epsilon": ?)10\.0', r"\g<1>11.0", text)
            self.assertEqual((n, text.count(before)), (1, 1))
            return changed.replace(f'"{before}', f'"{more}",{gap}"{before}')

        head["__metadata__"]["certificate"] = lie(head["__metadata__"]["certificate"], "")
        packed = json.dumps(head, separators=(",", ":"), sort_keys=True).encode()
        packed += b" " * (-len(packed) % 8)
        path.write_bytes(len(packed).to_bytes(8, "little") + packed + data[at:])
        said = folder / "certificate.json"
        said.write_text(lie(said.read_text(), "\n    "))

    def test_cohort_that_dies(self):
        """One site of cohort 1 is there and never speaks. Its cohort has one round and tolerates nobody's loss: it is
        given up, its sites do not count, and the sum says so."""
        f = self.cohorts([4, 4], phase=3, rounds=1, dropped=0)
        f.serve_all()
        silent = f.members[1][0]
        task = json.loads((f.folder / "tasks" / "cohort-0001.json").read_text())
        told = subprocess.run(
            [fed.PLAN, f.folder / "tasks" / "cohort-0001.json"], capture_output=True, text=True, check=True
        )
        door = wire.Door(
            task["service"]["address"].removeprefix("https://"), seed=fed.key_seed(f.folder / f"site{silent}.key"),
            site=0, task=bytes.fromhex(json.loads(told.stdout)["sha256"])
        )  # fmt: skip
        f.join_cohorts([0, 1], but=[silent])

        def knock():
            door.ask("GET", "/v1/messages?round=-&after=0&wait=1")
            said = [json.loads(line) for line in list(f.server.lines)]
            return any(line.get("cohort") == 1 and line.get("stage") == "given-up" for line in said)

        fed.until("cohort 1 is given up", knock)
        door.close()
        f.summed()
        self.assertEqual(expect.released(f.public / "release.safetensors"), f.expected([0]))
        self.check_figures(f, [0])
        self.assertIn("1 of 2 cohorts gave no release: their sites are not in the sum", f.certificate()["warnings"])
        said = json.loads(f.run("verify", "--folder", f.public, "--json").stdout)
        self.assertEqual((said["cohorts"], said["in_sum"], said["survivors"]), (2, 1, 4))
        self.sites_end(f, f.members[0])
        self.leave_a_site_out(f)
        shutil.copy(f.public / "cohorts/0000/release.safetensors", f.public / "cohorts/0001/release.safetensors")
        f.run("verify", "--folder", f.public, code=1)

    def expire(self, f, c):
        """The task of cohort c has expired long ago; signed by the operator."""
        path = f.folder / "tasks" / f"cohort-{c:04}.json"
        task = read_json(path.read_text())
        task["service"]["expires"] = 1_000_000_000
        task.pop("signature")
        path.write_text(write_json(task))
        f.run("task", "sign", "--task", path, "--key", "operator.key")

    def test_cohort_that_has_expired(self):
        """Cohort 1 expires and no round of it begins; cohort 0 has its release when the server is started again. The
        expired one is missing from the sum, with a log that says so. When all have expired, the server refuses."""
        f = self.cohorts([4, 4])
        self.expire(f, 1)
        f.serve_all()
        f.join_cohorts([0])
        self.sites_end(f, f.members[0])
        f.server.kill()
        f.serve_all()
        f.summed()
        self.assertEqual(expect.released(f.public / "release.safetensors"), f.expected([0]))
        self.check_figures(f, [0])
        log = (f.public / "cohorts" / "0001" / "transparency.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(line)["event"] for line in log], ["open", "start", "start", "given-up", "end"])
        said = json.loads(f.run("verify", "--folder", f.public, "--json").stdout)
        self.assertEqual((said["cohorts"], said["in_sum"], said["survivors"]), (2, 1, 4))
        f.server.kill()
        self.expire(f, 0)
        serve = ["serve", "--task", "tasks", "--listen", "127.0.0.1:0", "--certificate", "state/tls.pem"]
        said = f.run(*serve, "--private-key", "state/tls.key", "--state", "elsewhere", code=1)
        self.assertIn("fedkt: cohort 0: the task has expired: 2001-09-09", said.stderr)
        self.assertIn("set the clock if it is wrong", said.stderr)

    def test_open_files(self):
        """The limit of open files is shared by all cohorts: raised where that is allowed, else a line at the start."""
        f = self.cohorts([4, 4, 4])
        (f.folder / "spare").mkdir(mode=0o700)
        serve = ["serve", "--task", "tasks", "--certificate", "state/tls.pem", "--private-key", "state/tls.key"]
        words = [fed.FEDKT, *serve, "--listen", "127.0.0.1:0", "--state", "spare/state"]
        few = ["sh", "-c", 'ulimit -n 500 && exec "$@"', "sh"]
        done = subprocess.run([*few, *map(str, words)], cwd=f.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("3 cohorts of up to 4 sites need 68 connections each, and 500 open files allow 49", done.stderr)
        self.assertIn("hint: raise the hard limit of open files", done.stderr)
        self.assertEqual(list((f.folder / "spare").iterdir()), [])
        f.serve_all()
        limits = pathlib.Path(f"/proc/{f.server.child.pid}/limits").read_text()
        soft, hard = re.search(r"Max open files +(\d+|unlimited) +(\d+|unlimited)", limits).groups()
        if hard == "unlimited" or int(hard) >= 256 + 3 * (32 + 4096):
            self.assertTrue(soft == "unlimited" or int(soft) >= 256 + 3 * (32 + 4096), limits)

    def leave_a_site_out(self, f):
        """The operator signs a task of cohort 1 without one of its sites, and publishes a log of it."""
        log = f.public / "cohorts" / "0001" / "transparency.jsonl"
        whole = log.read_text()
        task = f.smaller_task("smaller.json", 1)
        for given, code in ((None, 0), (task, 1)):
            prev, lines = "0" * 64, []
            for line in map(read_json, whole.splitlines()):
                if line["event"] not in ("open", "given-up", "end"):
                    continue
                if line["event"] == "open" and given:
                    line["task"] = given
                line["entry"], line["prev"] = len(lines) + 1, prev
                lines.append(write_json(line))
                prev = hashlib.sha256(lines[-1].encode()).hexdigest()
            log.write_text("".join(line + "\n" for line in lines))
            said = f.run("verify", "--folder", f.public, code=code)
        self.assertIn("the rosters of all cohorts have 7 sites, and the division has 8", said.stderr)
        log.write_text(whole)

    def test_lies_about_cohorts(self):
        f = self.cohorts([4, 4])
        first, second = (json.loads((f.folder / "tasks" / f"cohort-{c:04}.json").read_text()) for c in range(2))
        moved, own = f.members[1][0], f.members[0][0]
        first["federation"]["roster"][-1] = second["federation"]["roster"][0]
        (f.folder / "moved.json").write_text(json.dumps(first))
        join = ["--accept-insecure-seed", "--ledger", "l", "--state", "s", "--out", "o", "--patience", 5]
        for i in (moved, own):  # the site that was moved, and one that would sit beside it
            said = f.run("join", "--task", "moved.json", "--key", f"site{i}.key", "--data", f"data{i}", *join, code=1)
            self.assertIn("is in the roster of cohort 0 and belongs to cohort 1", said.stderr)
        f.run("task", "sign", "--task", "moved.json", "--key", "operator.key", code=1)
        # another division, signed by the operator too: its sites are not heard by the first one's servers
        start = int(f.cohort_seed, 16) + 1
        other = f.find_seed(start)
        while not set(f.members_by(other)[0]) & set(f.members[0]) or f.members_by(other) == f.members:
            other = f.find_seed(int(other, 16) + 1)
        both = min(set(f.members_by(other)[0]) & set(f.members[0]))
        f.make_tasks("others", other)
        f.serve_all()
        words = ["join", "--task", "others/cohort-0000.json", "--key", f"site{both}.key", "--data", f"data{both}"]
        said = f.run(*words, *join, code=1)
        self.assertIn("the server runs another task than the one of this site", said.stderr)
        f.server.kill()
        serve = ["serve", "--state", "elsewhere", "--listen", "127.0.0.1:0"]
        shutil.copytree(f.folder / "tasks", f.folder / "fewer")
        f.smaller_task("fewer/cohort-0001.json", 1)
        said = f.run(*serve, "--task", "fewer", code=1)
        self.assertIn("'fewer': the rosters of all cohorts have 7 sites, and the division has 8", said.stderr)
        self.assertFalse((f.folder / "elsewhere").exists())
        shutil.copy(f.folder / "others" / "cohort-0001.json", f.folder / "tasks" / "cohort-0001.json")
        said = f.run(*serve, "--task", "tasks", code=1)
        self.assertIn("is of another division than", said.stderr)

    def test_one_cohort_changes_nothing(self):
        f = self.cohorts([4, 4])
        f.all_images()
        plain, one = simulate(f, "plain"), simulate(f, "one", "--cohort-size", 8)
        for name in ("task.json", "certificate.json", "release.safetensors"):
            self.assertEqual((plain / name).read_bytes(), (one / name).read_bytes(), name)


if __name__ == "__main__":
    fed.main()

# SPDX-License-Identifier: Apache-2.0
"""test_join.py - `fedkt join` against servers that are not what they should be, over real TLS on loopback.

Usage: test_join.py FEDKT [test...]
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import binary
from hub_server import certificates
from lying_server import NONCE, Liar, closing, problem, told
import fixtures

SECONDS = 60


def expire(case, seconds):
    """The task's last moment, signed again."""
    task = json.loads((case.folder / "task.json").read_text())
    task.pop("signature")
    task["service"]["expires"] = int(time.time()) + seconds
    (case.folder / "task.json").write_text(json.dumps(task))
    case.fedkt("task sign --task task.json --key operator.key")


class Join(binary.Case):
    @classmethod
    def setUpClass(cls):
        cls.pki = certificates(tempfile.mkdtemp(prefix="fedkt-net-"))
        cls.addClassCleanup(shutil.rmtree, cls.pki)

    def setUp(self):
        super().setUp()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        for name in ("operator", "site0", "site1", "site2"):
            self.fedkt(f"keygen --out {name}.key")
        self.fedkt("enroll --roster roster.txt site0.key.pub site1.key.pub site2.key.pub")
        fixtures.image_folder(self.folder / "images", ["cat", "dog"], 2)

    def serve(self, certificate="server", pinned=None, **more):
        """A server, and a task that names it; `pinned`: the certificate that the task believes in."""
        liar = Liar(self.pki / f"{certificate}.pem", self.pki / f"{certificate}.key", **more)
        self.addCleanup(liar.close)
        self.task(liar.address, pinned or certificate)
        return liar

    def task(self, address, pinned="server", extra="", epsilon=1):
        self.fedkt(
            f"task new --codec dct --classes cat,dog --size 16 --dim 8 --epsilon {epsilon} "
            "--delta 1e-5 --roster roster.txt"
            " --records 10"
            f" --dropped 0 --server {address} --certificate {self.pki}/{pinned}.pem --key operator.key --out task.json"
            f" --force {extra}"
        )

    def begin(self, *words, key="site0.key", data="images"):
        line = [binary.FEDKT, "join", "--task", "task.json", "--key", key, "--data", data, *words]
        run = subprocess.Popen(
            line, cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )  # fmt: skip
        self.addCleanup(lambda: (run.kill(), run.communicate()) if run.poll() is None else None)
        return run

    def refuse(self, sentence, *words, code=1, **more):
        run = self.begin(*words, **more)
        out, talk = run.communicate(timeout=SECONDS)
        self.assertEqual((run.returncode, out), (code, ""), talk)
        self.assertIn(sentence, talk)
        self.assertFalse([p for p in self.folder.rglob("*.result*")])
        return talk

    def until(self, what, ready):
        end = time.monotonic() + SECONDS
        while not ready():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)


class Doors(Join):
    """Before a request is even made."""

    def test_another_key(self):
        liar = self.serve("server", pinned="other")
        talk = self.refuse("given up after 2 seconds: what answers at the server's address has another key than the "
                           "task names", "--patience", "2")  # fmt: skip
        self.assertIn("hint: ask the operator", talk)
        self.assertEqual(talk.count("; trying again"), 1)
        self.assertEqual(liar.log, [])

    def test_a_limit_is_remarked_on(self):
        """The promise for the whole set is weaker then."""
        self.serve("server", pinned="other")
        talk = self.refuse("given up after 1 second", "--patience", "1", "--limit", "3")
        self.assertIn("fedkt: with --limit the promise covers the records that were kept", talk)

    def test_a_log_states_nothing_about_the_images(self):
        """Where stderr is no terminal, others may read it: no name and no number of the site's images goes there."""
        self.serve("server", pinned="other")
        cats = self.folder / "images" / "cat"
        first = sorted(cats.iterdir())[0]
        shutil.copy(first, cats / f"copy{first.suffix}")
        (cats / "bad.png").write_bytes(b"no image")
        for log in ([], ["--log", "jsonl"]):
            shutil.rmtree(self.folder / "state", ignore_errors=True)
            talk = self.refuse("another key than the task", "--skip-bad", "--patience", "1", *log)
            self.assertIn("left out files that could not be read as images; --dry-run names them", talk)
            self.assertIn("some records have the pixels and the label of another one", talk)
            for word in ("bad.png", "1 image", "1 record"):
                self.assertNotIn(word, talk)
        run = self.begin("--dry-run", "--skip-bad")
        _, talk = run.communicate(timeout=SECONDS)
        self.assertIn("left out 1 image that could not be read", talk)
        self.assertIn("bad.png", talk)
        self.assertIn("1 record has the pixels and the label of another one", talk)

    def test_names_and_authorities_play_no_part(self):
        """The certificate is for another name, and signed by nobody we know; its key is the pinned one."""
        liar = self.serve("other")
        liar.answers = [problem(403, "other-task")]
        self.refuse("another task")
        self.assertEqual(len(liar.log), 1)

    def test_tls_1_2(self):
        liar = self.serve(newest=ssl.TLSVersion.TLSv1_2)
        self.refuse("given up after 1 seconds: the server cannot be reached", "--patience", "1")
        self.assertEqual(liar.log, [])

    def test_nobody_there(self):
        liar = self.serve()
        liar.close()
        talk = self.refuse("given up after 2 seconds: the server cannot be reached", "--patience", "2")
        self.assertRegex(talk, "(?m)^fedkt: the server cannot be reached.*; trying again$")

    def test_not_https(self):
        """A plain HTTP server at the address: nothing is said to it in the clear."""
        import http.server
        import threading

        seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def parse_request(self):
                seen.append(self.raw_requestline)
                return False

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.task(f"https://127.0.0.1:{server.server_address[1]}")
        self.refuse("cannot be reached", "--patience", "1")
        self.assertNotIn(b"HTTP", b"".join(seen))


class Impostors(Join):
    """Somebody answers some of a site's connections under another key."""

    WRONG = "what answers at the server's address has another key than the task names, and was sent nothing"

    def serve(self, *betrayed):
        liar = super().serve("server", impostor=[self.pki / "other.pem", self.pki / "other.key"])
        liar.betrayed = set(betrayed)
        return liar

    def told(self, talk):
        lines = [json.loads(line) for line in talk.splitlines()]
        return [line.get("reason", "") for line in lines if line.get("state") in ("trouble", "well")]

    def test_some_connections(self):
        """Refused without a byte, said once for each change, tried again; the site goes on with the server."""
        liar = self.serve(3, 4, 6)
        waits = [closing(told(204)), closing((503, [("Retry-After", "0")], b""))]
        liar.answers = [closing(problem(401, "nonce")), *waits, problem(401, "signature")]
        talk = self.refuse("does not accept the signature of site 0", "--log", "jsonl")
        self.assertEqual([len(liar.log), liar.handshakes], [4, 7])
        self.assertEqual(self.told(talk), [self.WRONG, "the server is busy", self.WRONG])

    def test_files(self):
        liar = self.serve(2, 3)
        liar.answers = [closing(told(410, "released")), (404, [], b"")]
        talk = self.refuse("the server has no file 'release.safetensors'", "--log", "jsonl")
        self.assertEqual([entry[1].split("/")[2][:8] for entry in liar.log], ["messages", "files"])
        self.assertEqual(self.told(talk), [self.WRONG])

    def test_until_the_task_expires(self):
        liar = self.serve(*range(1, 1000))
        expire(self, 12)
        self.refuse("the task has expired", code=3)
        self.assertEqual(liar.log, [])
        self.assertGreater(liar.handshakes, 2)


class Answers(Join):
    def test_requests_are_signed_and_one_connection_serves(self):
        liar = self.serve()
        liar.answers = [problem(401, "nonce"), told(204), told(204), problem(401, "signature")]
        self.refuse("does not accept the signature of site 0")
        self.assertEqual(liar.connections, 1)
        self.assertEqual(len(liar.log), 4)
        for method, path, headers, _ in liar.log:
            self.assertEqual((method, path), ("GET", "/v1/messages?round=-&after=0&wait=25"))
            self.assertRegex(
                headers["Authorization"], r"^Fedkt site=0, nonce=[0-9a-f]{32}, seq=\d+, sig=[0-9a-f]{128}$"
            )
            self.assertRegex(headers["Fedkt-Task"], r"^[0-9a-f]{64}$")
            self.assertTrue(headers["User-Agent"].startswith("fedkt/"))
            self.assertNotIn("Cookie", headers)
        numbers = [int(re.search(r"seq=(\d+)", entry[2]["Authorization"])[1]) for entry in liar.log]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertIn("nonce=" + "0" * 32, liar.log[0][2]["Authorization"])
        self.assertIn("nonce=" + NONCE, liar.log[1][2]["Authorization"])

    def test_redirects_are_not_followed(self):
        elsewhere = self.serve()
        liar = self.serve()
        liar.answers = [(307, [("Location", elsewhere.address + "/v1/messages")], b"")]
        self.refuse("no fedkt server answers here", "--patience", "1")
        self.assertEqual(elsewhere.log, [])

    def test_an_answer_without_end(self):
        liar = self.serve()
        liar.answers = [told(200, "running", b"x" * 5_000_000, round="0" * 32, index="1")]
        self.refuse("its answer is too long", "--patience", "1")

    def test_nonsense(self):
        liar = self.serve()
        liar.answers = [
            told(200, "running", b"x", round="0" * 32, index="0"),
            (204, [("Fedkt-Stage", "gathering"), ("Fedkt-Stage", "released")], b""),
            (204, [("Fedkt-Stage", "gathering"), ("Fedkt-Log", "1:" + "z" * 64)], b""),
            told(410, "running"),
            (200, [], b"<html>a login page</html>"),
        ]
        self.refuse("the server's answer cannot be read", "--patience", "4")
        self.assertGreater(len(liar.log), 4)

    def test_a_log_that_is_rewritten(self):
        """Two heads for one entry: the site goes on, and both are in its receipt."""
        liar = self.serve()
        heads = ["a" * 64, "b" * 64]
        liar.answers = [*(told(204, log=f"1:{h}") for h in heads), told(410, "given-up"), (200, [], b"{}\n")]
        _, talk = self.begin("--out", "result").communicate(timeout=SECONDS)
        self.assertIn("failed the check", talk)
        receipt = json.loads((self.folder / "result.wrong-1" / "receipt.json").read_text())
        self.assertEqual(receipt["heads"], [{"entry": 1, "sha256": h} for h in heads])

    def test_lines_for_machines(self):
        """With --log jsonl every line is JSON, with the time; the last one is the error."""
        liar = self.serve()
        self.task(liar.address, extra="--insecure-seed 5")
        liar.answers = [(503, [], b""), told(204), told(204), problem(401, "signature")]
        before = time.time()
        talk = self.refuse("does not accept the signature", "--accept-insecure-seed", "--log", "jsonl")
        *said, error = [json.loads(line) for line in talk.splitlines()]
        self.assertEqual(error["event"], "error")
        for line in said:
            self.assertLess(abs(line["at"] / 1000 - before), SECONDS)
        kinds = [line["state"] for line in said]
        self.assertEqual(kinds[:2], ["task", "warning"])
        self.assertEqual(said[0]["operator"], False)
        self.assertIn("NOT PRIVATE", said[1]["reason"])
        self.assertLess(kinds.index("trouble"), kinds.index("well"))

    def test_files_that_are_not_there(self):
        """Released, says the server, and then has nothing to show."""
        liar = self.serve()
        liar.answers = [told(410, "released"), (404, [], b"")]
        self.refuse("the server has no file 'release.safetensors'")
        self.assertEqual(liar.log[-1][1], "/v1/files/release.safetensors")

    def test_files_that_are_being_compared(self):
        """503 while a server that was started again looks at its files: asked again as it says, however often."""
        liar = self.serve()
        liar.answers = [told(410, "given-up"), *([(503, [("Retry-After", "0")], b"")] * 14), (200, [], b"{}\n")]
        started = time.monotonic()
        _, talk = self.begin("--out", "result").communicate(timeout=SECONDS)
        self.assertIn("the server's files, now in 'result.wrong-1', failed the check", talk)
        self.assertEqual(talk.count("the server is busy"), 1)
        self.assertEqual(len(liar.log), 16)
        self.assertLess(time.monotonic() - started, 40)

    def test_files_that_do_not_fit(self):
        liar = self.serve()
        liar.answers = [told(410, "given-up"), (200, [], b'{"entry": 1}\n')]
        for n in (1, 2):  # evidence, and each run leaves that of the one before
            liar.answers[-1] = (200, [], b'{"entry": %d}\n' % n)
            run = self.begin("--out", "result")
            _, talk = run.communicate(timeout=SECONDS)
            self.assertEqual(run.returncode, 1)
            self.assertIn(f"the server's files, now in 'result.wrong-{n}', failed the check", talk)
        self.assertFalse((self.folder / "result").exists())
        for n in (1, 2):
            wrong = self.folder / f"result.wrong-{n}"
            self.assertEqual((wrong / "transparency.jsonl").read_bytes(), b'{"entry": %d}\n' % n)
            self.assertTrue((wrong / "receipt.json").exists())

    def test_files_that_do_not_come(self):
        """Released, and then silence: patience holds for files too, and so it does when the server is gone."""
        for silence in ("stall", (503, [], b"")):
            liar = self.serve()
            liar.answers = [told(410, "released"), silence]
            started = time.monotonic()
            self.refuse("given up after 3 seconds", "--patience", "3")
            self.assertLess(time.monotonic() - started, 30)


class Expires(Join):
    """The task's last day ends while a site waits."""

    def state(self):
        (path,) = (self.folder / "state").rglob("*.db")
        with contextlib.closing(sqlite3.connect(path)) as db:
            return [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("who", "moments")]

    def test_nothing_stays(self):
        self.serve()
        expire(self, SECONDS // 4)
        run = self.begin()
        _, talk = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, 3, talk)
        self.assertIn("the task has expired: ", talk)
        self.assertEqual(self.state(), [1, 0])
        self.refuse("the task has expired", code=3)
        self.refuse("the task has expired", "--dry-run", code=3)

    def test_after_a_crash(self):
        """Killed before the hour, started after it: refused, and what was computed is gone."""
        liar = self.serve()
        expire(self, SECONDS // 4)
        run = self.begin()
        self.until("a request", lambda: liar.log)
        run.kill()
        run.communicate()
        self.assertEqual(self.state(), [1, 1])
        time.sleep(SECONDS // 4 + 2)
        self.refuse("the task has expired", "--dry-run", code=3)
        self.assertEqual(self.state(), [1, 1])
        self.refuse("the task has expired", code=3)
        self.assertEqual(self.state(), [1, 0])


class Stops(Join):
    def stop(self, liar, signals):
        liar.log.clear()
        run = self.begin()
        self.until("a request", lambda: liar.log)
        started = time.monotonic()
        run.send_signal(signals)
        _, talk = run.communicate(timeout=SECONDS)
        self.assertLess(time.monotonic() - started, 10)  # a second where nobody else works; the poll would take 40
        self.assertEqual(run.returncode, 128 + signals, talk)
        self.assertIn("hint: run the same command again to continue", talk)

    def test_while_the_server_says_nothing(self):
        liar = self.serve()
        liar.answers = ["stall"]
        self.stop(liar, signal.SIGINT)
        self.stop(liar, signal.SIGTERM)

    def test_no_core_dump(self):
        """A site's key, masks and numbers are in its memory: a crash leaves no copy of it, and nobody else looks in."""
        liar = self.serve()
        liar.answers = ["stall"]
        run = self.begin()
        self.until("a request", lambda: liar.log)
        with open(f"/proc/{run.pid}/limits") as limits:
            core = [line.split()[4:6] for line in limits if line.startswith("Max core file size")]
        run.send_signal(signal.SIGSEGV)
        run.communicate(timeout=SECONDS)
        self.assertEqual(core, [["0", "0"]])

    def test_while_waiting_to_try_again(self):
        liar = self.serve()
        liar.answers = [(503, [("Retry-After", "200")], b"")]
        self.stop(liar, signal.SIGINT)


class Home(Join):
    """Refused before anybody is called."""

    def setUp(self):
        super().setUp()
        self.liar = self.serve()

    def tearDown(self):
        self.assertEqual(self.liar.connections, 0)

    def test_dry_run_writes_and_sends_nothing(self):
        before = binary.tree(self.folder)
        got = self.fedkt("join --task task.json --key site0.key --data images --dry-run --json")
        self.assertEqual(binary.tree(self.folder), before)
        self.assertFalse((self.folder / "data").exists() or (self.folder / "state").exists())
        self.assertEqual([m["kind"] for m in got["messages"]], ["advertise", "shares", "masked", "confirm", "reveal"])
        self.assertEqual((got["records"], got["site"], got["epsilon_before"]), (4, 0, 0))
        self.assertAlmostEqual(got["epsilon_after"], 1, delta=1e-6)
        self.assertGreater(got["sigma"]["count"], 0)

    def test_dry_run_says_that_it_wrote_encodings(self):
        line = "join --task task.json --key site0.key --data images --dry-run"
        self.assertTrue(self.fedkt(line).endswith("\nnothing was sent, and nothing was written\n"))
        said = self.fedkt(f"{line} --encodings kept")
        self.assertTrue(said.endswith("\nnothing was sent, and nothing was written but the encodings\n"), said)
        self.assertTrue(any((self.folder / "kept").iterdir()))

    def test_another_operator(self):
        self.refuse("signed", "--operator", "site1.key.pub")

    def test_a_key_that_is_not_on_the_roster(self):
        self.refuse("roster", key="operator.key")

    def test_an_expired_task(self):
        """There is nothing to try again, unless it is this machine's clock."""
        path = self.folder / "task.json"
        task = json.loads(path.read_text())
        task["service"]["expires"] = 1600000000
        del task["signature"]
        path.write_text(json.dumps(task))
        self.fedkt("task sign --task task.json --key operator.key")
        talk = self.refuse("the task has expired: 2020-09-13", code=3)
        self.assertIn("this machine's clock says 20", talk)

    def test_a_rehearsal(self):
        self.task(self.liar.address, extra="--insecure-seed 5")
        self.refuse("nothing is private")
        got = self.fedkt("join --task task.json --key site0.key --data images --dry-run --json --accept-insecure-seed")
        self.assertIs(got["private"], False)

    def test_a_weak_promise(self):
        """A site takes part only when it says so itself, whoever signed the task."""
        self.task(self.liar.address, extra="--accept-weak-promise", epsilon=30)
        self.refuse("the promise of task 'unnamed' is weak: epsilon 30 is above 20")
        line = "join --task task.json --key site0.key --data images --dry-run --accept-weak-promise"
        got = self.fedkt(f"{line} --json")
        self.assertEqual((got["private"], got["promise"]), (False, "weak"))
        self.assertIn("WEAK PROMISE: epsilon 30 is above 20", self.fedkt(line))

    def test_too_many_records(self):
        fixtures.image_folder(self.folder / "many", ["cat"], 11)
        weaker = "a limit also takes fewer, but weakens the promise for the whole set"
        talk = self.refuse("11 records of class 'cat', but the task allows a site 10", data="many")
        self.assertIn(weaker, talk)
        self.task(self.liar.address, extra="--adjacency replace")
        self.assertNotIn(weaker, self.refuse("11 records of class 'cat'", data="many"))

    def test_a_limit_in_a_dry_run(self):
        for words, told in ((), False), (("--limit", "3"), True):
            run = self.begin("--dry-run", *words)
            _, talk = run.communicate(timeout=SECONDS)
            self.assertEqual(run.returncode, 0, talk)
            self.assertEqual("fedkt: with --limit the promise covers the records that were kept" in talk, told, talk)

    def test_a_folder_that_is_not_ours(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "thesis.txt").write_text("years of work")
        self.refuse("mine", "--out", "mine")
        self.refuse("mine", "--out", "mine", "--force")
        self.assertTrue((self.folder / "mine" / "thesis.txt").exists())

    def test_an_old_task(self):
        text = (self.folder / "task.json").read_text()
        (self.folder / "task.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 2.0'))
        run = self.begin()
        _, talk = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, 1, talk)


if __name__ == "__main__":
    binary.main()

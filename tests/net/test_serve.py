#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_serve.py - `fedkt serve` from its first start to the next: pin, token, words, signals. What it serves is tested
in tests/federation, how it behaves among bad neighbours in test_rate_limit.py.

Usage: test_serve.py FEDKT
"""

import hashlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

import fixtures

FEDKT = str(pathlib.Path(sys.argv.pop(1)).resolve())
SLOW = 120


class Serve(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fedkt-serve-")
        self.addCleanup(folder.cleanup)
        self.folder, self.servers = pathlib.Path(folder.name), []
        for name in ("operator", "a", "b", "c"):
            self.run_fedkt("keygen", "--out", f"{name}.key", "--name", name)
        self.run_fedkt("enroll", "--roster", "roster.txt", "a.key.pub", "b.key.pub", "c.key.pub")
        self.run_fedkt(
            *"task new --codec dct --out task.json --classes x,y --dim 5 --size 16 "
            "--epsilon 10 --delta 1e-5 --records 64".split(),
            *"--dropped 0 --roster roster.txt --server https://127.0.0.1:8443".split(),
        )

    def tearDown(self):
        for server in self.servers:
            if server.poll() is None:
                server.kill()
            server.communicate()

    def run_fedkt(self, *words, code=0):
        done = subprocess.run([FEDKT, *words], cwd=self.folder, capture_output=True, text=True, timeout=SLOW)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def serve(self, *words, state="state", task="task.json"):
        """A server that listens, and its first line."""
        server = subprocess.Popen(
            [FEDKT, "serve", "--task", task, "--state", state, "--json", *words],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.servers.append(server)
        line = server.stdout.readline()
        if not line:
            self.fail(server.communicate()[1])
        return server, json.loads(line)

    def end(self, server, number=signal.SIGTERM):
        server.send_signal(number)
        out, talk = server.communicate(timeout=SLOW)
        self.assertEqual(server.returncode, 130 if number == signal.SIGINT else 0, talk)
        self.assertEqual(out, "")
        return talk

    @staticmethod
    def get(url, token=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            asked = urllib.request.Request(url, headers=headers)
            with urllib.request.urlopen(asked, context=context, timeout=SLOW) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    def test_the_first_start_puts_the_pin_in(self):
        server, said = self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")
        self.assertTrue(said["pinned_now"])
        task = json.loads((self.folder / "task.json").read_text())
        self.assertEqual(task["service"]["pin"], said["pin"])
        self.run_fedkt("task", "verify", "--task", "task.json", "--operator", "operator.key.pub")
        self.assertEqual(self.get(said["page"])[0], 200)
        status = json.loads(self.get(said["page"] + "status.json")[1])
        self.assertEqual((status["stage"], status["sites"]), ("gathering", 3))
        self.assertEqual(status["task"]["sha256"], said["task_sha256"])
        self.assertIn("epsilon", status["task"]["privacy"].lower())
        talk = self.end(server)
        self.assertIn("was added to 'task.json'", talk)
        self.assertIn("start it again", talk)
        before = (self.folder / "task.json").read_bytes()
        server, again = self.serve("--listen", "127.0.0.1:0")  # the key is needed no more
        self.assertFalse(again["pinned_now"])
        self.assertEqual((again["pin"], again["task_sha256"]), (said["pin"], said["task_sha256"]))
        self.end(server, signal.SIGINT)
        self.assertEqual((self.folder / "task.json").read_bytes(), before)
        self.assertEqual(stat.S_IMODE((self.folder / "state").stat().st_mode), 0o700)

    def test_the_token(self):
        server, said = self.serve("--listen", "0.0.0.0:0", "--key", "operator.key")
        self.assertTrue(said["token_needed"])
        path = self.folder / said["token_file"]
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        token = path.read_text().strip()
        self.assertRegex(token, "^[0-9a-f]{64}$")
        here = f"https://127.0.0.1:{said['listen'].rpartition(':')[2]}/"
        self.assertEqual(self.get(here + "status.json")[0], 401)
        self.assertEqual(self.get(here + "status.json", token)[0], 200)
        self.assertEqual(self.get(here + "healthz")[0], 200)
        self.assertNotIn(token, json.dumps(said) + self.end(server))
        server, said = self.serve("--listen", "127.0.0.1:0")
        self.assertEqual(path.read_text().strip(), token)
        self.end(server)
        path.write_text("nonsense")
        refused = self.run_fedkt("serve", "--task", "task.json", "--state", "state", "--listen", "127.0.0.1:0", code=1)
        self.assertIn("does not hold a token", refused.stderr)

    def test_a_forwarder_on_this_machine(self):
        """It listens on loopback, but sites come by another name: the page is not for whoever is carried here."""
        self.run_fedkt(
            *"task new --codec dct --out far.json --classes x,y --dim 5 --size 16 "
            "--epsilon 10 --delta 1e-5 --records 64".split(),
            *"--dropped 0 --roster roster.txt --server https://fedkt.example.org:8443".split(),
        )
        words = ["--listen", "127.0.0.1:0", "--key", "operator.key"]
        server, said = self.serve(*words, state="far", task="far.json")
        self.assertTrue(said["token_needed"])
        self.assertEqual(said["page"], "https://fedkt.example.org:8443/")
        token = (self.folder / said["token_file"]).read_text().strip()
        self.assertEqual(self.get(f"https://{said['listen']}/status.json")[0], 401)
        self.assertEqual(self.get(f"https://{said['listen']}/status.json", token)[0], 200)
        self.end(server)

    def test_a_port_in_use_and_a_state_in_use(self):
        server, said = self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")
        words = ["serve", "--task", "task.json", "--state", "state", "--listen"]
        refused = self.run_fedkt(*words, said["listen"], code=1)
        self.assertIn("the port is in use", refused.stderr)
        refused = self.run_fedkt(*words, "127.0.0.1:0", code=1)
        self.assertIn("in use by another process", refused.stderr)
        self.assertEqual(self.get(said["page"])[0], 200)
        self.end(server)

    def test_a_refused_start_leaves_the_task_alone(self):
        """Whatever is wrong with the rest: the task is pinned and signed when the server listens, and not before."""
        before = (self.folder / "task.json").read_bytes()
        words = ["serve", "--task", "task.json", "--key", "operator.key"]
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            refused = self.run_fedkt(*words, "--state", "state", "--listen", f"127.0.0.1:{port}", code=1)
        self.assertIn("the port is in use", refused.stderr)
        self.assertIn("the task names the port", refused.stderr)
        (self.folder / "file").write_text("not a folder")
        words += ["--listen", "127.0.0.1:0"]
        self.run_fedkt(*words, "--state", "state", "--out", "file/out", code=1)
        self.run_fedkt(*words, "--state", "state", "--out", "file", code=1)
        self.run_fedkt(*words, "--state", "file", code=1)
        self.assertEqual((self.folder / "task.json").read_bytes(), before)
        server, said = self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")  # and nothing is in the way
        self.assertTrue(said["pinned_now"])
        self.end(server)
        (self.folder / "task.json").write_bytes(before.replace(b'"x"', b'"z"'))  # another task, unsigned
        other = (self.folder / "task.json").read_bytes()
        refused = self.run_fedkt(*words, "--state", "state", code=1)
        self.assertIn("another task", refused.stderr)
        self.assertEqual((self.folder / "task.json").read_bytes(), other)

    def test_another_port_than_the_task_names(self):
        server, _ = self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")
        self.assertIn("sites connect to port 8443", self.end(server))

    def test_an_address_without_a_port(self):
        self.run_fedkt(
            *"task new --codec dct --force --out task.json --classes a,b --epsilon 4 --delta 1e-5 --records 64".split(),
            *"--roster roster.txt --server https://[::1]".split(),
        )
        server, _ = self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")
        self.assertIn("sites connect to port 443,", self.end(server))
        names = ["openssl", "x509", "-in", self.folder / "state/tls.pem", "-noout", "-ext", "subjectAltName"]
        told = subprocess.run(names, check=True, capture_output=True, text=True).stdout
        self.assertIn("IP Address:0:0:0:0:0:0:0:1,", told)

    def test_an_expired_task_is_not_begun(self):
        """A clock that is wrong for one start must not be the end of the task."""
        self.run_fedkt(
            *"task new --codec dct --out task.json --force --classes x,y --dim 5 "
            "--size 16 --epsilon 10 --delta 1e-5".split(),
            *"--records 64 --dropped 0 --roster roster.txt --server https://127.0.0.1:8443 --expires 1d".split(),
        )
        task = json.loads((self.folder / "task.json").read_text())
        task["service"]["expires"] = 1600000000
        (self.folder / "task.json").write_text(json.dumps(task))
        words = ["serve", "--task", "task.json", "--state", "state", "--listen", "127.0.0.1:0"]
        before = (self.folder / "task.json").read_bytes()
        refused = self.run_fedkt(*words, "--key", "operator.key", code=1)
        self.assertIn("has expired: 2020-09-13", refused.stderr)
        self.assertIn("this machine's clock says 20", refused.stderr)
        self.assertEqual((self.folder / "task.json").read_bytes(), before)

    def test_a_key_that_others_can_read(self):
        server, _ = self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")
        self.end(server)
        for name in ("tls.pem", "tls.key"):
            (self.folder / name).write_bytes((self.folder / "state" / name).read_bytes())
        words = "serve --task task.json --state state --listen 127.0.0.1:0".split()
        own = ["--certificate", "tls.pem", "--private-key", "tls.key"]
        for mode in (0o644, 0o604, 0o660):
            (self.folder / "tls.key").chmod(mode)
            refused = self.run_fedkt(*words, *own, code=1)
            self.assertIn(f"(mode {mode:o})", refused.stderr)
            self.assertIn("chmod 600 tls.key", refused.stderr)
        for mode in (0o600, 0o400, 0o640):  # a group that is there for keys may read it, as Debian's ssl-cert does
            (self.folder / "tls.key").chmod(mode)
            self.end(self.serve("--listen", "127.0.0.1:0", *own)[0])

    def test_the_state_is_the_servers_alone(self):
        """0700 from its first moment, whatever the umask: also when the start is refused after it was made."""
        words = "serve --task task.json --state state --listen 127.0.0.1:0 --key operator.key".split()
        old = os.umask(0)
        try:
            self.run_fedkt(*words, "--calibration", "none.safetensors", code=1)
        finally:
            os.umask(old)
        self.assertEqual(stat.S_IMODE((self.folder / "state").stat().st_mode), 0o700)

    def refused(self, sentence, hint):
        before = sorted(p.name for p in (self.folder / "state").iterdir())
        done = self.run_fedkt(*"serve --task task.json --state state --listen 127.0.0.1:0".split(), code=1)
        self.assertIn(sentence, done.stderr)
        self.assertIn(f"hint: {hint}", done.stderr)
        self.assertEqual(sorted(p.name for p in (self.folder / "state").iterdir()), before)

    def test_a_state_that_others_can_reach(self):
        self.end(self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")[0])
        state = self.folder / "state"
        for mode in (0o755, 0o770, 0o701):
            state.chmod(mode)
            sentence = f"users other than its owner may read or change 'state' (mode {mode:o})"
            self.refused(sentence, "run 'chmod 700 state'")
        state.chmod(0o700)
        state.rename(self.folder / "elsewhere")
        state.symlink_to("elsewhere")
        self.end(self.serve("--listen", "127.0.0.1:0")[0])  # a link of its own user, as systemd makes one
        if os.geteuid() == 0:
            os.lchown(state, 54321, 54321)
            self.refused("'state' belongs to another user (uid 54321)", "use one that this user has made")

    def test_a_token_that_others_can_reach(self):
        self.end(self.serve("--listen", "127.0.0.1:0", "--key", "operator.key")[0])
        token = self.folder / "state" / "operator.token"
        token.chmod(0o644)
        sentence = "users other than its owner may read or change 'state/operator.token' (mode 644)"
        self.refused(sentence, "run 'chmod 600 ")
        token.chmod(0o600)
        token.rename(self.folder / "token")
        token.symlink_to(self.folder / "token")
        self.refused("'state/operator.token' is a symbolic link", "put the file itself there")
        token.unlink()
        (self.folder / "token").rename(token)
        self.end(self.serve("--listen", "127.0.0.1:0")[0])

    @unittest.skipUnless(os.geteuid() == 0, "to give files away needs root")
    def test_what_belongs_to_another_user(self):
        """An ordinary user's server uses no file of a third one, whatever its mode lets him do."""
        user, other = 54321, 54322
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, user, user)

        def start(*words):
            line = ["serve", "--task", "task.json", "--state", "state", "--listen", "127.0.0.1:0", "--json", *words]
            run = subprocess.Popen(
                [FEDKT, *line], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                user=user, group=user
            )  # fmt: skip
            self.servers.append(run)
            listens = run.stdout.readline()
            run.send_signal(signal.SIGTERM)
            return bool(listens), run.communicate(timeout=SLOW)[1]

        os.chown(self.folder / "operator.key", other, user)
        (self.folder / "operator.key").chmod(0o640)
        self.assertIn(f"'operator.key' belongs to another user (uid {other})", start("--key", "operator.key")[1])
        os.chown(self.folder / "operator.key", user, user)
        (self.folder / "operator.key").chmod(0o600)
        self.assertTrue(start("--key", "operator.key")[0])
        for name in ("state", "state/operator.token", "state/tls.key", "state/journal.db"):
            path = self.folder / name
            mode = stat.S_IMODE(path.stat().st_mode)
            os.chown(path, other, user)
            path.chmod(mode | mode >> 3)  # the group is his
            listens, talk = start()
            self.assertFalse(listens)
            self.assertIn(f"'{name}' belongs to another user (uid {other})", talk)
            os.chown(path, user, user)
            path.chmod(mode)
        self.assertTrue(start()[0])

    def give_up(self, reason):
        """As if the server had given the task up: the fact, and the last lines of its log."""
        journal = sqlite3.connect(self.folder / "state" / "journal.db")
        with journal:
            entry, last = journal.execute("SELECT entry, text FROM line ORDER BY entry DESC LIMIT 1").fetchone()
            for more in ({"event": "given-up", "reason": reason}, {"event": "end"}):
                entry, line = entry + 1, {
                    "at": json.loads(last)["at"],
                    "prev": hashlib.sha256(last.encode()).hexdigest(),
                }
                last = json.dumps(line | more | {"entry": entry}, sort_keys=True, separators=(",", ":"))
                journal.execute("INSERT INTO line VALUES(?, ?)", (entry, last))
            journal.execute("INSERT INTO fact VALUES('given-up', ?)", (reason,))
        journal.close()

    def test_a_task_that_was_given_up(self):
        """It is over for the server and for its sites: 3, so that nothing starts them again."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.run_fedkt(
            *"task new --codec dct --out task.json --force --classes x,y --dim 5 "
            "--size 16 --epsilon 10 --delta 1e-5".split(),
            *f"--records 64 --dropped 0 --roster roster.txt --server https://127.0.0.1:{port}".split(),
        )
        server, said = self.serve("--listen", f"127.0.0.1:{port}", "--key", "operator.key")
        self.end(server)
        self.give_up("nobody came")
        fixtures.image_folder(self.folder / "images", ["x", "y"], 2)
        server, _ = self.serve("--listen", f"127.0.0.1:{port}", "--linger", "10")
        site = self.run_fedkt(
            *"join --task task.json --key a.key --data images --state a.db --ledger a.ledger --out result".split(),
            code=3,
        )
        self.assertIn("the task was given up: nothing was released", site.stderr)
        self.assertIn("as its log states", site.stdout)
        _, talk = server.communicate(timeout=SLOW)
        self.assertEqual(server.returncode, 3, talk)
        self.assertIn("the task was given up: nobody came", talk)

    def test_words_for_people(self):
        server = subprocess.Popen(
            [FEDKT, *"serve --task task.json --state state --listen 127.0.0.1:0 --key operator.key".split()],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.servers.append(server)
        facts = [server.stdout.readline().split(maxsplit=1)[0] for _ in range(6)]
        self.assertEqual(facts, ["listening", "for", "pin", "task", "page", "open"])
        self.end(server)


if __name__ == "__main__":
    unittest.main(verbosity=2)

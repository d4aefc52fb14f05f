# SPDX-License-Identifier: Apache-2.0
"""test_pull.py - `fedkt codec pull` against a hub on loopback: what arrives, what is refused, what a kill leaves.

Usage: test_pull.py FEDKT [test...]
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import binary
from hub_server import Hub, certificates

REPO = "madebyollin/taesd"
WEIGHTS, CONFIG = "diffusion_pytorch_model.safetensors", "config.json"
SIZE = 3_000_000


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Pull(binary.Case):
    @classmethod
    def setUpClass(cls):
        cls.pki = certificates(tempfile.mkdtemp(prefix="fedkt-net-"))
        cls.addClassCleanup(shutil.rmtree, cls.pki)

    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.place = self.cache / "codecs" / "taesd"
        self.part = self.cache / "codecs" / "taesd.part"
        self.hub = self.open_hub()
        self.hub.files = {WEIGHTS: random.Random(1).randbytes(SIZE), CONFIG: b'{"scaling_factor": 1.0}'}
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and k != "HF_ENDPOINT"},
            "FEDKT_CACHE": str(self.cache),
            "FEDKT_CACERT": str(self.pki / "ca.pem"),
            "NO_PROXY": "*",
        }

    def open_hub(self, **more):
        hub = Hub(self.pki, **more)
        self.addCleanup(hub.close)
        return hub

    def begin(self, *words, hub=None):
        line = [binary.FEDKT, "codec", "pull", "taesd", "--hub", hub or self.hub.address, "--json", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        run = subprocess.Popen(line, cwd=self.folder, env=self.environment, text=True, **pipes)
        self.addCleanup(lambda: (run.kill(), run.communicate()) if run.poll() is None else None)
        return run

    def pull(self, *words, **more):
        run = self.begin(*words, **more)
        out, talk = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, talk)
        return json.loads(out)

    def refuse(self, sentence, *words, code=1, **more):
        run = self.begin(*words, **more)
        out, talk = run.communicate(timeout=60)
        self.assertEqual((run.returncode, out), (code, ""), talk)
        self.assertIn(sentence, talk)
        self.assertRegex(talk, r"\Afedkt: [^\n]+\n(hint: [^\n]+\n)?\Z")
        return talk

    def until(self, ready, seconds=20):
        end = time.monotonic() + seconds
        while not ready():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.01)

    def arrived(self):
        path = self.part / f"{WEIGHTS}.part"
        return path.stat().st_size if path.exists() else 0

    def interrupt(self, how=signal.SIGKILL, at=SIZE // 5):
        """A pull that is ended by a signal on its way; gives the bytes that it left."""
        self.hub.pace = (65536, 0.02)
        run = self.begin()
        self.until(lambda: self.arrived() >= at)
        run.send_signal(how)
        self.talk = run.communicate(timeout=30)[1]
        self.code = run.returncode
        self.hub.pace = None
        self.assertFalse(self.place.exists())
        kept = self.arrived()
        self.assertTrue(at <= kept < SIZE)
        self.hub.forget()
        return kept

    def whole(self):
        """The folder is as it should be, and nothing unfinished is left."""
        for name, data in self.hub.files.items():
            self.assertEqual(sha256((self.place / name).read_bytes()), sha256(data), name)
        names = sorted(path.name for path in self.place.iterdir())
        self.assertEqual(names, sorted([".fedkt", CONFIG, WEIGHTS, "fedkt-weights.json"]))
        self.assertFalse(self.part.exists())
        record = json.loads((self.place / "fedkt-weights.json").read_text())
        self.fits("weights", record)
        return record

    def nothing_in_place(self):
        self.assertFalse(self.place.exists())


class Arrives(Pull):
    def test_fresh(self):
        got = self.pull()
        record = self.whole()
        self.assertEqual((record["repo"], record["commit"], record["revision"]), (REPO, self.hub.commit, "main"))
        checked = {file["name"]: (file["checked"], file["sha256"], file["size"]) for file in record["files"]}
        weights, config = self.hub.files[WEIGHTS], self.hub.files[CONFIG]
        self.assertEqual(checked[WEIGHTS], ("hub", sha256(weights), SIZE))
        self.assertEqual(checked[CONFIG], ("first-seen", sha256(config), len(config)))
        self.assertEqual(got["commit"], self.hub.commit)
        self.assertEqual({file["name"]: file["transferred"] for file in got["files"]}[WEIGHTS], SIZE)
        self.hub.forget()
        self.assertTrue(self.pull()["already_here"])
        self.assertEqual(self.hub.log, [])
        self.refuse("give --force", "--revision", "v2")

    def test_one_commit_for_all_files(self):
        self.pull("--revision", "refs/pr/1")
        paths = [entry[1] for entry in self.hub.log if "/resolve/" in entry[1]]
        self.assertIn("/resolve/refs%2Fpr%2F1/", paths[0])
        self.assertTrue(all(f"/resolve/{self.hub.commit}/" in path for path in paths[1:]), paths)

    def test_moved_repository(self):
        self.hub.moved = (REPO, "others/taesd")
        self.pull()
        self.whole()

    def test_force_replaces(self):
        self.pull()
        self.hub.files[WEIGHTS] = random.Random(2).randbytes(SIZE // 2)
        self.hub.commit = "d" * 40
        self.assertFalse(self.pull("--force")["already_here"])
        self.assertEqual(self.whole()["commit"], "d" * 40)

    def test_files_of_somebody_else_stay(self):
        self.place.mkdir(parents=True)
        (self.place / "mine.safetensors").write_bytes(b"x")
        for words in ([], ["--force"]):
            self.refuse("holds files that were not pulled", *words)
        self.assertEqual([path.name for path in self.place.iterdir()], ["mine.safetensors"])

    def test_files_that_came_without_the_marker_stay(self):
        """What may not be replaced is found out before anything is fetched."""
        self.pull()
        (self.place / ".fedkt").unlink()
        self.hub.forget()
        self.refuse("holds files that fedkt did not make", "--force")
        self.assertEqual(self.hub.log, [])
        self.assertEqual(len(list(self.place.iterdir())), 3)

    def test_commit_that_fails_keeps_what_arrived(self):
        """Files of somebody else appear under the final name while the fetch is going on."""
        self.hub.pace = (65536, 0.02)
        run = self.begin()
        self.until(lambda: self.arrived() > 0)
        self.place.mkdir()
        (self.place / "mine").write_bytes(b"x")
        self.hub.pace = None
        self.assertIn("is not empty", run.communicate(timeout=30)[1])
        self.assertEqual(run.returncode, 1)
        self.assertEqual([path.name for path in self.place.iterdir()], ["mine"])
        self.assertEqual((self.part / WEIGHTS).read_bytes(), self.hub.files[WEIGHTS])
        shutil.rmtree(self.place)
        self.hub.forget()
        self.pull()
        self.whole()
        self.assertEqual(self.hub.sent("/store/"), 0)

    def test_here_already_is_looked_at(self):
        self.pull()
        other = self.open_hub()
        other.files = self.hub.files
        self.refuse("was pulled from", hub=other.address)
        os.truncate(self.place / WEIGHTS, 10)
        self.refuse("is now missing or changed")
        (self.place / WEIGHTS).unlink()
        self.assertIn("--force", self.refuse("is now missing or changed"))
        self.pull("--force")
        self.whole()

    def test_gathering_folder_holds_something_else(self):
        self.part.mkdir(parents=True)
        (self.part / "model.safetensors").write_bytes(b"x")
        (self.part / "folder" / "deep").mkdir(parents=True)
        os.symlink("/etc/passwd", self.part / "link")
        self.pull()
        self.whole()
        self.assertTrue(pathlib.Path("/etc/passwd").exists())

    def test_gathering_folder_leads_elsewhere(self):
        self.part.parent.mkdir(parents=True)
        (self.folder / "elsewhere").mkdir()
        os.symlink(self.folder / "elsewhere", self.part)
        self.refuse("is not a folder of yours")
        self.assertEqual(self.hub.log, [])
        self.assertEqual(list((self.folder / "elsewhere").iterdir()), [])

    def test_small_answers_from_elsewhere(self):
        """A hub that says neither hash nor commit."""
        self.hub.commit, self.hub.stated = None, {WEIGHTS: None}
        run = self.begin()
        self.assertIn("names no commit", run.communicate(timeout=30)[1])
        self.assertEqual(run.returncode, 0)
        record = self.whole()
        self.assertEqual([file["checked"] for file in record["files"]], ["first-seen"] * 2)
        self.assertIsNone(record["commit"])


class Resumes(Pull):
    def test_after_kill(self):
        kept = self.interrupt()
        got = self.pull()
        self.whole()
        self.assertEqual(self.hub.sent("/store/"), SIZE - kept)
        self.assertEqual({file["name"]: file["transferred"] for file in got["files"]}[WEIGHTS], SIZE - kept)

    def test_after_interrupt(self):
        self.interrupt(signal.SIGINT)
        self.assertEqual(self.code, 130)
        self.assertIn("stopped while fetching", self.talk)
        self.assertIn("hint: run it again", self.talk)
        self.pull()
        self.assertLess(self.hub.sent("/store/"), SIZE)
        self.whole()

    def test_changed_meanwhile(self):
        """Same address, other bytes: the tag tells, and everything comes anew."""
        self.hub.commit = None
        self.interrupt()
        self.hub.files[WEIGHTS] = random.Random(3).randbytes(SIZE)
        self.pull()
        self.whole()
        conditions = [entry[3] for entry in self.hub.log if "/store/" in entry[1]]
        self.assertTrue(conditions[-1])
        self.assertEqual(self.hub.sent("/store/"), SIZE)

    def test_changed_and_nobody_says_so(self):
        """A server that ignores the condition: the hash tells."""
        self.hub.commit = None
        kept = self.interrupt()
        self.hub.if_range = False
        self.hub.files[WEIGHTS] = random.Random(3).randbytes(SIZE)
        self.pull()
        self.whole()
        self.assertEqual(self.hub.sent("/store/"), SIZE - kept + SIZE)

    def test_damaged_part(self):
        self.interrupt()
        with open(self.part / f"{WEIGHTS}.part", "r+b") as file:
            file.write(bytes(1000))
        self.pull()
        self.whole()

    def test_tag_that_would_be_a_header(self):
        self.interrupt()
        tag = self.part / f"{WEIGHTS}.part.tag"
        tag.write_bytes(tag.read_bytes().rstrip(b"\n") + b"\r\nX-Other: 1\n")
        self.pull()
        self.whole()
        self.assertEqual([entry[3] for entry in self.hub.log if "/store/" in entry[1] and entry[5]], [None])

    def test_no_ranges(self):
        self.interrupt()
        self.hub.ranges = False
        self.pull()
        self.whole()
        self.assertEqual(self.hub.sent("/store/"), SIZE)

    def test_weak_tag(self):
        self.hub.weak = True
        self.interrupt()
        self.pull()
        self.whole()
        self.assertEqual(self.hub.sent("/store/"), SIZE)

    def test_other_revision(self):
        self.interrupt()
        self.hub.commit = "e" * 40
        self.hub.files[WEIGHTS] = random.Random(4).randbytes(SIZE + 1)
        self.pull()
        self.assertEqual(self.whole()["commit"], "e" * 40)

    def test_part_longer_than_the_file(self):
        self.interrupt()
        with open(self.part / f"{WEIGHTS}.part", "ab") as file:
            file.write(bytes(2 * SIZE))
        self.pull()
        self.whole()

    def test_range_beyond_the_end(self):
        """A hub that states a hash and no size; the part is as long as the file, and wrong."""
        self.hub.stated_size = {WEIGHTS: ""}
        kept = self.interrupt()
        with open(self.part / f"{WEIGHTS}.part", "ab") as file:
            file.write(bytes(SIZE - kept))
        self.pull()
        self.whole()
        self.assertIn(416, [entry[4] for entry in self.hub.log])

    def test_connection_that_breaks(self):
        for reset in (False, True):
            with self.subTest(reset=reset):
                self.hub.cut, self.hub.reset = SIZE // 3, reset
                self.pull("--force")
                self.whole()


class Refuses(Pull):
    def test_wrong_hash(self):
        self.hub.stated = {WEIGHTS: "0" * 64}
        self.refuse("has the wrong SHA-256")
        self.nothing_in_place()
        self.assertEqual([path.name for path in self.part.iterdir()], [CONFIG])

    def test_truncated_for_ever(self):
        self.hub.cut, self.hub.ranges = SIZE // 2, False
        self.refuse("cannot fetch")
        self.nothing_in_place()

    def test_stalled(self):
        self.hub.stall = True
        began = time.monotonic()
        self.refuse("has sent nothing for too long", "--stall", "1")
        self.assertLess(time.monotonic() - began, 8)
        self.nothing_in_place()

    def test_two_commits(self):
        for commits in ({WEIGHTS: "d" * 40}, {CONFIG: None}, {WEIGHTS: None}):
            with self.subTest(commits=commits):
                self.hub.commits = commits
                self.refuse("the hub answers for 'config.json' from commit")
                self.nothing_in_place()

    def test_commits_that_are_none(self):
        for commit in ("..", "a" * 65, "A" * 40, "c/d"):
            self.hub.commit = commit
            self.refuse("that is not a commit")
        self.nothing_in_place()

    def test_large_config(self):
        self.hub.files[CONFIG] = bytes(2**20 + 1)
        self.refuse("the hub states 1048577 bytes for 'config.json', which has 1048576 at most")
        self.hub.stated_size, self.hub.chunked = {CONFIG: ""}, True
        self.refuse("is too large: more than 1048576 bytes")
        self.nothing_in_place()

    def test_redirect_loops(self):
        self.hub.to = "/loop"
        self.refuse("redirects in a circle")
        self.hub.loop = True
        self.refuse("redirects in a circle")

    def test_redirect_to_http(self):
        self.hub.to = "http://127.0.0.1:9/x"
        self.refuse("redirects away from https")
        self.refuse("is not the https address of a hub", hub="http://127.0.0.1:9", code=2)
        self.refuse("is not the https address of a hub", hub="https://name:secret@127.0.0.1", code=2)

    def test_certificates(self):
        for name in ("self", "other"):
            hub = self.open_hub(certificate=name)
            hub.files = self.hub.files
            self.refuse("is not trusted", hub=hub.address)
            self.assertEqual(hub.log, [])
        del self.environment["FEDKT_CACERT"]
        self.refuse("is not trusted")
        self.assertIn("cannot read certificates", self.refuse("certificate", "--cacert", "none.pem"))
        self.pull("--cacert", str(self.pki / "ca.pem"))

    def test_answers(self):
        self.refuse("'a/../b' is not a branch", "--revision", "a/../b", code=2)
        talk = self.refuse("answered 404", hub=self.hub.address + "/elsewhere")
        self.assertIn("hint: check the names of repository", talk)
        for code, words in ((403, "is refused: the server answered 403"), (500, "the server answered 500")):
            self.hub.code = code
            self.refuse(words)
        self.nothing_in_place()

    def test_more_than_announced(self):
        self.hub.stated_size = {WEIGHTS: SIZE - 10}
        self.refuse("does not have the size that was announced")
        self.hub.chunked = True
        self.hub.files[WEIGHTS] = bytes(50_000_000)
        self.refuse("does not have the size that was announced")
        self.until(lambda: self.hub.log[-1][1].startswith("/store/"))
        self.assertLess(self.hub.log[-1][5], 50_000_000)  # it was not listened to until the end
        self.hub.files[WEIGHTS] = bytes(SIZE)
        self.hub.stated_size = {WEIGHTS: SIZE + 10}
        self.refuse("does not have the size that was announced")
        self.nothing_in_place()

    def test_two_at_once(self):
        self.hub.pace = (65536, 0.02)
        first = self.begin()
        self.until(lambda: self.arrived() > 0)
        self.refuse("another process is fetching")
        self.hub.pace = None
        first.communicate(timeout=30)
        self.assertEqual(first.returncode, 0)
        self.whole()

    def test_offline(self):
        self.hub.close()
        talk = self.refuse("cannot fetch")
        for word in (CONFIG, WEIGHTS, REPO, str(self.place)):
            self.assertIn(word, talk.splitlines()[1])
        self.assertFalse(self.part.exists())
        self.assertFalse(self.place.with_name(self.place.name + ".lock").exists())

    def test_disk_full(self):
        self.cache.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(self.cache)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            self.skipTest("needs the right to mount")
        self.addCleanup(subprocess.run, ["umount", str(self.cache)], check=True)
        self.assertIn("hint: free some space", self.refuse("No space left"))
        self.nothing_in_place()
        subprocess.run(["mount", "-o", "remount,size=16m", str(self.cache)], check=True)
        self.hub.forget()
        self.pull()
        self.whole()
        self.assertLess(self.hub.sent("/store/"), SIZE)

    def test_cache_that_cannot_be_written(self):
        self.cache.write_text("a file")
        self.refuse("cannot make folder")


if __name__ == "__main__":
    binary.main()

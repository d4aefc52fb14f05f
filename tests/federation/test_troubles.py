#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_troubles.py - what goes wrong around a federation: a full disk, two servers in one folder, a site twice.

Usage: test_troubles.py FEDKT PLAN [test...]
"""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import fed


class Weak(fed.Case):
    def test_a_weak_promise(self):
        """Server and sites accept it one by one, and the status and `verify` call it what it is."""
        f = self.federation(sites=3, dropped=0, seed=None)
        accept = "--accept-weak-promise"
        f.task("weak.json", dim=5, phase=30, gather=60, rounds=4, dropped=0, extra=[accept], epsilon="30")
        refused = f.serve(task="weak.json", wait=False)
        self.assertEqual(refused.wait(), 1, refused.words())
        self.assertIn("is weak: epsilon 30 is above 20", "\n".join(refused.talk))
        f.serve(accept, task="weak.json")
        self.assertIn("WEAK PROMISE: epsilon 30 is above 20", json.dumps(f.status()))
        for i in range(f.sites):
            f.join(i, accept, task="weak.json")
        self.assertEqual(f.ended(), "released")
        for i in range(f.sites):
            self.assertEqual(f.site[i].wait(), 0, f.site[i].words())
        self.assertIn("WEAK PROMISE", f.run("verify", "--folder", f.public).stdout)
        told = json.loads(f.run("verify", "--folder", f.public, "--json").stdout)
        self.assertEqual((told["private"], told["promise"]), (False, "weak"))
        certificate = json.loads((f.public / "certificate.json").read_text())
        self.assertEqual((certificate["private"], certificate["promise"]), (False, "weak"))


class Twice(fed.Case):
    def test_two_servers_on_one_folder(self):
        f = self.federation()
        f.serve()
        second = f.start(
            ["serve", "--task", "task.json", "--state", "state", "--listen", "127.0.0.1:0", "--json"], "second server"
        )
        self.assertEqual(second.wait(), 1, second.words())
        self.assertEqual(second.lines, [])
        f.join_all()
        self.assertEqual(self.released(f), list(range(f.sites)))
        self.sites_end(f, range(f.sites))

    def test_another_tasks_folder(self):
        f = self.federation()
        f.serve()
        self.assertEqual(f.server.kill(), -9)
        f.task("other.json", dim=5, phase=30, gather=60, rounds=4, dropped=1, epsilon="1")
        other = f.serve(task="other.json", wait=False)
        self.assertEqual(other.wait(), 1, other.words())
        self.assertIn("task", other.talk[-1] + other.talk[0])

    def test_a_site_twice(self):
        """The same state file is held by one process; another state file of the same site is refused by the ledger,
        or by the server, and never spends anything twice."""
        f = self.federation()
        f.serve()
        f.join_all(range(f.sites - 1))
        f.seen("all but one wait", lambda s: s["ready"] == f.sites - 1)
        first, twin = f.site[0], f.join(0)
        self.assertEqual(twin.wait(), 1, twin.words())
        f.site[0] = first
        f.join(f.sites - 1)
        self.assertEqual(self.released(f), list(range(f.sites)))
        self.sites_end(f, range(f.sites))
        late = f.join(0, state="another.state")
        self.assertEqual(late.wait(), 1, late.words())
        self.assertFalse(late.out.exists())
        self.assertRegex("\n".join(late.talk), "spent|ledger")

    def test_a_site_that_comes_back_after_the_end(self):
        """The same state: nothing is computed or spent again, the files are fetched."""
        f = self.federation()
        f.serve()
        f.join_all()
        self.released(f)
        self.sites_end(f, range(f.sites))
        again = f.join(0)
        self.assertEqual(again.wait(), 0, again.words())
        self.assertEqual((again.out / "release.safetensors").read_bytes(), f.release_bytes())

    def test_a_result_stays_when_the_server_changes_its_mind(self):
        """What was checked once is never replaced by what cannot be; that is kept beside it, each time."""
        f = self.federation()
        f.serve()
        f.join_all()
        self.released(f)
        self.sites_end(f, range(f.sites))
        out = f.site[0].out
        before = fed_tree(out)
        log = f.public / "transparency.jsonl"
        log.chmod(0o644)
        log.write_bytes(log.read_bytes().replace(b'"count":', b'"cuont":'))
        for n in (1, 2):
            again = f.join(0, "--out", out.name, "--force")
            self.assertEqual(again.wait(), 1, again.words())
            self.assertIn(f"now in '{out.name}.wrong-{n}', failed the check", "\n".join(again.talk))
            self.assertEqual(fed_tree(out), before)
            self.assertEqual((f.folder / f"{out.name}.wrong-{n}" / "transparency.jsonl").read_bytes(), log.read_bytes())

    def test_the_server_comes_back_after_the_end(self):
        f = self.federation()
        f.serve()
        f.join_all()
        self.released(f)
        self.sites_end(f, range(f.sites))
        before = fed_tree(f.public)
        f.server.kill()
        f.serve()
        self.assertEqual(f.ended(), "released")
        self.assertEqual(fed_tree(f.public), before)
        f.verify()


class Compared(fed.Case):
    """A server that was started again after the end makes its files anew, which takes a while."""

    IMAGES = 6000

    def again(self, f):
        f.server.kill()
        shutil.rmtree(f.public / "dataset", ignore_errors=True)
        f.serve(per_class=self.IMAGES)
        return f.seen("it compares", lambda s: s["stage"] == "finishing" and s["comparing"])

    def test_sites_wait_for_the_files(self):
        """503 with Retry-After, not 404: sites that know of the release ask again, through a second kill."""
        f = self.federation(sites=4, dropped=0)
        f.serve(per_class=self.IMAGES)
        f.join_all()
        self.released(f)
        self.sites_end(f, range(f.sites))
        before = fed_tree(f.public)
        status = self.again(f)
        self.assertEqual((status["release_sha256"], status["grid"], status["reason"]), ("", False, ""))
        f.join_all()  # the same state: nothing but the files is asked for
        busy = "the server is busy"
        fed.until("all have heard 503", lambda: all(busy in p.words() or p.ended() for p in f.site.values()))
        door = f.door(0)
        for target in ("/v1/files/release.safetensors", "/files/transparency.jsonl"):
            answer = door.ask("GET", target)
            self.assertEqual((answer.code, answer.title), (503, "busy"))
            self.assertGreater(int(answer.headers["Retry-After"]), 0)
        door.close()
        self.again(f)
        self.assertEqual(f.ended(), "released")
        self.sites_end(f, range(f.sites))
        self.assertEqual(fed_tree(f.public), before)
        for process in f.site.values():
            self.assertEqual((process.out / "release.safetensors").read_bytes(), before["release.safetensors"])


class Stopped(fed.Case):
    def test_while_it_makes_images(self):
        """SIGTERM in the midst of decoding: it ends soon, and the next start does the work again."""
        f = self.federation(sites=4, dropped=0)
        server = f.serve(per_class=3000)
        f.join_all()
        f.seen("it makes images", lambda s: s["stage"] == "finishing")
        release = fed.until("the release", lambda: self.written(f))
        begun = time.monotonic()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.words())
        self.assertLess(time.monotonic() - begun, 15)
        self.assertIn("start it again", server.words())
        self.assertFalse((f.public / "dataset").exists())  # it did not wait until all of them were there
        f.serve(per_class=3000)
        self.assertEqual(self.released(f), list(range(f.sites)))
        self.assertEqual(f.release_bytes(), release)
        self.sites_end(f, range(f.sites))

    @staticmethod
    def written(f):
        """The release, once images are being made of it."""
        return next(f.public.glob("dataset*/train/*/*.png"), None) and f.release_bytes()


def fed_tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@unittest.skipUnless(os.geteuid() == 0, "a disk of its own needs root")
class Full(fed.Case):
    """The server's state on a small disk that somebody else fills."""

    def mount(self, folder, size):
        words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", folder]
        if subprocess.run(words, capture_output=True).returncode != 0:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)

    def fill(self, folder):
        """To the last page."""
        with open(folder / "ballast", "wb", buffering=0) as out:
            try:
                while True:
                    out.write(bytes(4096))
            except OSError:
                pass

    def small(self, **more):
        """A federation whose state lies on a disk of 16 MB."""
        f = self.federation(**more)
        keep = {p.name: p.read_bytes() for p in (f.folder / "state").iterdir()}
        self.mount(f.folder / "state", "16m")
        for name, data in keep.items():
            (f.folder / "state" / name).write_bytes(data)
            (f.folder / "state" / name).chmod(0o600)
        return f

    def test_full_while_sites_come(self):
        f = self.small(phase=120)
        f.serve()
        f.join_all(range(f.sites - 1))
        f.seen("four wait", lambda s: s["ready"] == f.sites - 1)
        self.fill(f.folder / "state")
        f.join(f.sites - 1)
        self.assertEqual(f.server.wait(), 1, f.server.words())
        self.assertRegex("\n".join(f.server.talk), "full|space")
        (f.folder / "state" / "ballast").unlink()
        f.serve()
        self.assertEqual(self.released(f), list(range(f.sites)))
        self.sites_end(f, range(f.sites))

    def test_full_before_the_first_start(self):
        f = self.small()
        self.fill(f.folder / "state")
        server = f.serve(wait=False)
        self.assertEqual(server.wait(), 1, server.words())
        (f.folder / "state" / "ballast").unlink()
        f.serve()
        f.join_all()
        self.assertEqual(self.released(f), list(range(f.sites)))


if __name__ == "__main__":
    fed.main()

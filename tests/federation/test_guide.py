#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_guide.py - federations whose record vectors have a codec's part and a guide's.

Usage: test_guide.py FEDKT PLAN [test...]

A small seeded one, whose release must be the exact sum and noise that expect.py works out, with sites that bring
another guide or another calibration; and one of 64 + 64 numbers and ten classes, whose bytes a proxy between the sites
and the server counts, TLS and all.
"""

import contextlib
import json
import socket
import threading

import fed
import fixtures

PAPER = 335360  # bytes: the paper's 327.5 KiB
CLASSES = tuple("abcdefghij")


class Proxy:
    """Passes connections on to another port and counts the bytes towards it."""

    def __init__(self, address, port):
        host, mine = address.rsplit(":", 1)
        self.port, self.up, self.lock = port, 0, threading.Lock()
        self.door = socket.create_server((host, int(mine)))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.door.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.connection, args=(near,), daemon=True).start()

    def connection(self, near):
        with near, socket.socket() as far:
            with contextlib.suppress(OSError):
                far.connect(("127.0.0.1", self.port))
                back = threading.Thread(target=self.pump, args=(far, near, False), daemon=True)
                back.start()
                self.pump(near, far, True)
                back.join()

    def pump(self, one, other, count):
        with contextlib.suppress(OSError):
            while block := one.recv(1 << 16):
                if count:
                    with self.lock:
                        self.up += len(block)
                other.sendall(block)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.door.close()


class Guide(fed.Case):
    def guided(self, features, top, **more):
        """A federation with a guide of `top` of `features` numbers."""
        folder = self.folder / f"f{self.made + 1}"
        folder.mkdir()
        public = folder / "public"
        fixtures.image_folder(public, ["a", "b"], 50, first_seed=50000)
        for seed, name in ((1, "guide"), (2, "guide-other")):
            fixtures.small_guide(folder / name, seed, widths=(8, 8, 16, features))
        extra = ["--guide", "resnet", "--guide-weights", "guide", "--guide-calibration", "guide.cal"]
        for out, kept in (("guide.cal", top), ("other.cal", top - 1)):
            self.fedkt(folder, "codec", "calibrate", "resnet", "--weights", "guide", "--size", 16, "--top", kept,
                       "--public", "public", "--out", out)  # fmt: skip
        return self.federation(extra=[*extra, *more.pop("extra", ())], **more)

    def fedkt(self, folder, *words):
        process = fed.Process([fed.FEDKT, *words], folder, "fedkt")
        self.assertEqual(process.wait(), 0, process.words())

    @staticmethod
    def networks(weights="guide", calibration="guide.cal"):
        return ["--guide-weights", weights, "--guide-calibration", calibration]

    def moments(self, f):
        """Exact moments need the guide as well."""
        made = f.run

        def run(*words, **more):
            return made(*words, *(self.networks() if words[0] == "moments" else ()), **more)

        f.run = run

    @staticmethod
    def names(folder):
        return {path.name for path in folder.iterdir()}

    def one_line(self, process, words):
        """The process ends with one sentence that has these words, and a hint."""
        self.assertEqual(process.wait(), 1, process.words())
        said = process.talk[-2:]  # notes about the task come first
        self.assertEqual(len(said), 2, process.words())
        self.assertRegex(said[0], f"^fedkt: .*{words}")
        self.assertTrue(said[1].startswith("hint: "), process.words())

    def refused(self, f, site, words, *networks):
        """One line, before anything is sent or spent."""
        self.one_line(f.join(site, *networks, "--out", "x.out", state="x.state", ledger="x.ledger"), words)
        for name in ("x.ledger", "x.state", "x.out"):
            self.assertFalse((f.folder / name).exists(), name)

    def test_small(self):
        f = self.guided(features=16, top=6, sites=5, dropped=1, seed=11, phase=60)
        self.moments(f)
        task = json.loads((f.folder / "task.json").read_text())
        self.assertEqual((task["guide"]["coordinates"]["length"], len(task["privacy"]["budget_split"])), (7, 5))
        f.serve(*self.networks())
        for i in range(f.sites):
            f.join(i, *self.networks())
        self.assertEqual(self.released(f), list(range(f.sites)), f.talk())
        self.sites_end(f, range(f.sites))
        for i in range(f.sites):
            f.verify("--receipt", f.site[i].out / "receipt.json")
        certificate = json.loads((f.public / "certificate.json").read_text())
        self.assertGreater(certificate["sigma_moment"], certificate["guide"]["sigma_moment"])
        self.assertEqual(certificate["task_sha256"], f.plan_json["sha256"])

    def test_other_networks(self):
        """Another guide's weights, another calibration, or none: a site sends nothing, and a server does not listen."""
        f = self.guided(features=16, top=6, sites=3, dropped=0, seed=11, phase=60)
        other = {
            "the weights in .* are not those of the task's guide": self.networks(weights="guide-other"),
            "calibration": self.networks(calibration="other.cal"),
            "guide 'resnet'": [],
        }
        proxied, port = f.address, fed.free_port()
        f.address = f"127.0.0.1:{port}"
        proxy = Proxy(proxied, port)
        self.addCleanup(proxy.close)
        held = {"operator.token", *self.names(f.folder / "state")}  # what the page needs may be there
        for words, networks in other.items():
            self.one_line(f.serve(*networks, wait=False), words)
            self.assertLessEqual(self.names(f.folder / "state"), held)
            with self.assertRaises(OSError):
                socket.create_connection(("127.0.0.1", port), 1)
        f.serve(*self.networks())
        for words, networks in other.items():
            self.refused(f, 0, words, *networks)
        self.assertEqual(f.status()["ready"], 0)
        self.assertEqual(proxy.up, 0, "a site with another network has sent something")

    def test_alone(self):
        """A guide alone, one second moment for all classes: heads, and no images."""
        f = self.guided(features=16, top=6, sites=3, dropped=0, seed=12, phase=60, dim=None,
                        extra=["--moments", "pooled"])  # fmt: skip
        self.moments(f)
        f.serve(*self.networks())
        for i in range(f.sites):
            f.join(i, *self.networks())
        self.assertEqual(self.released(f), list(range(f.sites)), f.talk())
        self.sites_end(f, range(f.sites))
        certificate = json.loads((f.public / "certificate.json").read_text())
        self.assertEqual((certificate["moments"]["pooled"], "codec" in certificate), (True, False))

    def test_upload(self):
        """64 + 64 numbers, ten classes, the widest numbers of a task whose author knows no bound on the records."""
        f = self.guided(features=64, top=64, sites=3, dropped=0, seed=None, phase=120, dim=64, classes=CLASSES,
                        records=1 << 20, extra=["--accept-weak-promise"])  # fmt: skip
        self.moments(f)
        proxied, port = f.address, fed.free_port()
        f.address = f"127.0.0.1:{port}"
        proxy = Proxy(proxied, port)
        self.addCleanup(proxy.close)
        f.serve(*self.networks(), "--accept-weak-promise")
        for i in range(f.sites):
            f.join(i, *self.networks(), "--accept-weak-promise")
        self.assertEqual(self.released(f), list(range(f.sites)), f.talk())
        self.sites_end(f, range(f.sites))
        self.assertEqual(f.plan_json["vector"], 44210)
        self.assertGreater(proxy.up / f.sites, 44210 * 35 / 8)
        self.assertLessEqual(proxy.up / f.sites, PAPER)
        print(f"a site sent {proxy.up / f.sites:.0f} bytes over HTTPS")


if __name__ == "__main__":
    fed.main()

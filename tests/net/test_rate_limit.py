#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_rate_limit.py - the HTTPS server among bad neighbours, many at once: the others go on being served.

Usage: test_rate_limit.py GATE_SERVER [TestClass ...]      FEDKT_TEST_LIGHT=1: fewer bad requests (under sanitizers)
"""

import contextlib
import os
import socket
import sys
import threading
import time
import unittest

from request_check_client import POLL, STRANGER, GoodNeighbour, Line, Server, Site, request, until

PROGRAM = sys.argv[1]
LIGHT = bool(os.environ.get("FEDKT_TEST_LIGHT"))
GARBAGE = 1000 if LIGHT else 10000


class Crowds(unittest.TestCase):
    def test_slow_loris(self):
        """Two hundred requests, a byte now and then: each is cut off when its time is over."""
        with Server(PROGRAM, request=4, idle=30) as server, GoodNeighbour(server) as good:
            lines = [Line(server.address, STRANGER) for _ in range(200)]
            for i, line in enumerate(lines):
                line.send(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n" if i % 2 else b"GET /he")
            alive, end = lines, time.monotonic() + 60
            while alive and time.monotonic() < end:
                alive = [line for line in alive if self.drip(line)]
                time.sleep(0.2)
            self.assertEqual(len(alive), 0)
            self.assertLess(good.slowest, 20)
            self.assertTrue(until(lambda: server.status()["traffic"]["connections"] < 10))
            for line in lines:
                line.close()

    @staticmethod
    def drip(line):
        try:
            line.send(b"x")
            line.sock.settimeout(0.001)
            return bool(line.sock.recv(1000))
        except TimeoutError:
            return True
        except OSError:
            return False

    def test_slow_bodies_of_a_known_site(self):
        with Server(PROGRAM, request=3) as server, GoodNeighbour(server):
            a = Site(server, 1, source=STRANGER).learn()
            with Line(server.address, STRANGER) as line:
                line.send(
                    request(
                        "POST", "/v1/messages", a.headers("POST", "/v1/messages", b"T") + [("Content-Length", 1000)]
                    )
                )
                self.assertTrue(until(lambda: not self.drip(line), 30))

    def test_half_open_connections(self):
        """Everything is taken by connections that never speak; who speaks is served all the same."""
        with Server(PROGRAM, connections=100, idle=120, request=120) as server:
            lines = [Line(server.address, STRANGER, tls=False) for _ in range(150)]
            lines += [socket.create_connection(server.address, source_address=(STRANGER, 0)) for _ in range(50)]
            with GoodNeighbour(server) as good:
                self.assertTrue(until(lambda: good.served >= 3 or good.error, 90))
            for line in lines:
                line.close()

    def test_strangers_who_are_answered_keep_nobody_out(self):
        """Health checks and requests that are told the nonce, over more connections than there are: none of them is
        worth keeping, and a site that comes gets in."""
        for target in ("/healthz", "/v1/task"):
            with Server(PROGRAM, connections=128, idle=120, request=120) as server:
                knock = request("GET", target, Site(server, 0).headers("GET", target))
                lines, over = [], threading.Event()
                threads = [
                    threading.Thread(target=self.crowd, args=(server, i, knock, lines, over)) for i in range(2, 6)
                ]
                for t in threads:
                    t.start()
                try:
                    self.assertTrue(until(lambda: len(lines) > 300, 120))
                    with GoodNeighbour(server) as good:
                        self.assertTrue(until(lambda: good.served >= 3 or good.error, 90))
                    self.assertLess(good.slowest, 20)
                finally:
                    over.set()
                    for t in threads:
                        t.join()
                    for line in lines:
                        line.close()

    @staticmethod
    def crowd(server, number, knock, lines, over):
        """From one address: ever new connections; whoever is not closed stays and knocks again."""
        mine = []
        while not over.is_set():
            for line in [None, *mine[-40:]]:
                try:
                    if not line:
                        line = Line(server.address, f"127.0.0.{number}")
                        mine.append(line)
                        lines.append(line)
                    line.sock.settimeout(2)
                    line.send(knock)
                    line.read()
                except (OSError, EOFError):
                    if line in mine:
                        mine.remove(line)
                        line.close()

    def test_a_health_check_is_one_request(self):
        with Server(PROGRAM) as server, Line(server.address, STRANGER) as line:
            line.send(request("GET", "/healthz"))
            self.assertEqual((line.read().code, line.closed(20)), (200, True))

    def test_one_address_and_one_site_have_their_share(self):
        with Server(PROGRAM, connections=256, rate=1000) as server:
            a, others = server.site(0), [Line(server.address, STRANGER, tls=False) for _ in range(100)]
            self.assertTrue(until(lambda: server.status()["traffic"]["connections"] <= 70))
            self.assertEqual(sum(line.closed(0.05) for line in others), 36)  # two threads accept: the oldest, or nearly
            self.assertFalse(others[-1].closed(0.2))
            lines = [Line(server.address) for _ in range(12)]
            for line in lines:
                line.send(a.raw("GET", "/v1/task"))
                self.assertEqual(line.read().code, 200)
            self.assertEqual([line.closed(5) for line in lines[:4]], [True] * 4)
            lines[4].send(a.raw("GET", "/v1/task"))
            self.assertEqual(lines[4].read().code, 200)
            for line in (*others, *lines):
                line.close()

    def test_garbage(self):
        """Thousands of bad requests over a few connections. The address is soon turned away."""
        with Server(PROGRAM) as server, GoodNeighbour(server) as good:
            codes, lock = {}, threading.Lock()

            def throw(count, kind):
                line = None
                for i in range(count):
                    try:
                        line = line or Line(server.address, STRANGER)
                        line.send(kind(i))
                        code = line.read().code
                        with lock:
                            codes[code] = codes.get(code, 0) + 1
                    except (OSError, EOFError):
                        if line:
                            line.close()
                        line = None

            kinds = (
                lambda i: request("GET", f"/{i}"),
                lambda i: request("POST", "/v1/messages", [("Authorization", f"Fedkt site={i}")], b"x" * (i % 3000)),
                lambda i: request("BREW", "/v1/task", [("Fedkt-Task", "z" * 64)]),
                lambda i: request("GET", POLL.format(25), Site(server, i % 8).headers("GET", "/")),
            )
            threads = [
                threading.Thread(target=throw, args=(GARBAGE // 4 if n < 3 else 200, k)) for n, k in enumerate(kinds)
            ]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertGreater(codes.get(429, 0), GARBAGE // 4)
            self.assertTrue(all(400 <= code < 500 for code in codes), codes)
            self.assertLess(good.slowest, 20)


class Bodies(unittest.TestCase):
    def test_bodies_that_never_end(self):
        """Strangers who know the task send messages in the names of sites, but for the last byte: they get a part of
        the room, and the sites theirs, on a connection that has brought a signature, or from where one came before."""
        with Server(PROGRAM, sites=300, message=1 << 20, rate=1000, connections=1024) as server:
            known, polled, fresh = (server.site(i) for i in (7, 8, 9))
            self.assertEqual(known.poll().code, 204)
            head, half, lines = Site(server, 0, seed=bytes(32)), b"T" * ((1 << 20) - 1), []
            head.nonce = known.nonce
            try:
                for i in range(160):  # more than there is for everybody together
                    if i == 32:  # these are read: there is no room any more for who has shown nothing
                        self.assertTrue(until(lambda: self.may_begin(fresh) == 503))
                    line, head.site = Line(server.address, f"127.0.0.{2 + i % 16}"), i % 80
                    lines.append(line)
                    said = [*head.headers("POST", "/v1/messages"), ("Content-Length", 1 << 20)]
                    with contextlib.suppress(OSError):
                        line.send(request("POST", "/v1/messages", said) + half)
                full = fresh.post(b"T")
                self.assertEqual((full.code, full.title), (503, "busy"))
                self.assertEqual(known.post(b"T" * (1 << 20)).code, 204)  # from an address of its own
                with Line(server.address, "127.0.0.99") as line:
                    line.send(polled.raw("GET", POLL.format(0)))
                    self.assertEqual(line.read().code, 204)
                    line.send(polled.raw("POST", "/v1/messages", b"T" * (1 << 20)))
                    self.assertEqual(line.read().code, 204)
                alone = server.site(299, source="127.0.0.2")
                self.assertEqual(alone.poll().code, 204)
            finally:
                for line in lines:
                    line.close()
            self.assertTrue(until(lambda: fresh.post(b"T").code == 204))

    @staticmethod
    def may_begin(site):
        """What a message is told before a byte of it comes: 100, or why not."""
        with Line(site.server.address, site.source) as line:
            said = [("Expect", "100-continue"), ("Content-Length", 2)]
            line.send(request("POST", "/v1/messages", [*site.headers("POST", "/v1/messages", b"Tx"), *said]))
            return line.read().code

    def test_a_body_that_breaks_off_is_blamed(self):
        with Server(PROGRAM, refusals=10) as server:
            a = server.site(0, source=STRANGER)
            for _ in range(10):
                with Line(server.address, STRANGER) as line:
                    said = [*a.headers("POST", "/v1/messages", b"TT"), ("Content-Length", 2)]
                    line.send(request("POST", "/v1/messages", said) + b"T")
                    self.assertTrue(until(lambda: server.status()["traffic"]["connections"] == 2))
                self.assertTrue(until(lambda: server.status()["traffic"]["connections"] == 1))
            self.assertEqual(server.get("/nothing", source=STRANGER).code, 429)
            self.assertEqual(server.get("/nothing").code, 404)

    def test_more_bodies_than_fit(self):
        """While 64 MB of sites' bodies are on their way, one for which nothing speaks is sent away before it begins."""
        size = 8 << 20
        with Server(PROGRAM, sites=12, message=size) as server:
            body, lines = b"T" + bytes(size - 1), []
            for i in range(8):
                site, line = server.site(i), Line(server.address)
                lines.append(line)
                line.send(site.raw("GET", "/v1/task"))
                self.assertEqual(line.read().code, 200)
                line.send(site.raw("POST", "/v1/messages", body)[:-1])
            a, answers = server.site(10), []
            self.assertTrue(until(lambda: answers.append(a.announce_small()) or answers[-1].code == 503))
            self.assertEqual((answers[-1].title, answers[-1].headers["retry-after"]), ("busy", "2"))
            self.assertEqual(a.ask("GET", "/v1/task").code, 200)
            for line in lines:
                line.send(b"\0")
            self.assertEqual({line.read().code for line in lines}, {204})
            for line in lines:
                line.close()
            self.assertEqual(a.post(b"T").code, 204)

    def test_bodies_in_crowds(self):
        """Many large bodies at once, right ones: all are taken, now or when there is room."""
        with Server(PROGRAM, sites=40, rate=1000) as server:
            sites = [server.site(i) for i in range(40)]
            failures = []

            def send(site):
                try:
                    for _ in range(5):
                        answer = site.post(b"T" + bytes(65000))
                        assert answer.code == 204, answer
                except Exception as e:  # pylint: disable=broad-except
                    failures.append(e)

            threads = [threading.Thread(target=send, args=(s,)) for s in sites]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(failures, [])
            self.assertEqual(server.status()["messages"], 200)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[1:], exit=False, verbosity=2).result.wasSuccessful() else 1)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_request_check.py - what the HTTPS server answers to sites, people and noise, and how it stops. Crowds:
test_rate_limit.py.

Usage: test_request_check.py GATE_SERVER [TestClass ...]
"""

import os
import ssl
import sys
import time
import unittest

from request_check_client import POLL, STRANGER, GoodNeighbour, Line, Server, Site, request, tls_context, until

PROGRAM = sys.argv[1]


class Sites(unittest.TestCase):
    """What sites may and may not do, one after the other."""

    def test_a_conversation(self):
        with Server(PROGRAM) as server:
            a = server.site(3)
            answer = a.ask("GET", "/v1/task")
            self.assertEqual((answer.code, answer.body), (200, b'{"task": "a test"}\n'))
            self.assertEqual(answer.headers["fedkt-stage"], "gathering")
            self.assertEqual(a.poll().code, 204)
            posted = a.post(b"T hello")
            self.assertEqual((posted.code, posted.headers["fedkt-stage"]), (204, "running"))
            self.assertRegex(posted.headers["fedkt-log"], "^[1-9][0-9]*:[0-9a-f]{64}$")
            letter = a.poll()
            self.assertEqual((letter.code, letter.body, letter.headers["fedkt-index"]), (200, b"T hello", "1"))
            self.assertEqual(letter.headers["content-type"], "application/x-protobuf")
            known = f"/v1/messages?round={letter.headers['fedkt-round']}&after=1&wait=0"
            self.assertEqual(a.ask("GET", known).code, 204)
            self.assertEqual((a.post(b"S").code, a.post(b"F").code), (409, 422))
            self.assertEqual(a.ask("GET", known).headers["fedkt-lost"], "40")
            self.assertEqual(a.ask("GET", "/v1/files/transparency.jsonl").code, 404)
            with open(f"{server.folder.name}/transparency.jsonl", "w", encoding="ascii") as file:
                file.write("{}\n" * 100000)
            self.assertEqual(server.site(1).post(b"W").code, 204)
            self.assertTrue(until(lambda: server.status()["stage"] == "released"))
            over = a.poll()
            self.assertEqual((over.code, over.title, over.headers["fedkt-stage"]), (410, "over", "released"))
            self.assertEqual((a.post(b"T").code, a.post(b"T").title), (410, "over"))
            self.assertEqual(a.ask("GET", "/v1/files/transparency.jsonl").body, b"{}\n" * 100000)

    def test_refusals(self):
        with Server(PROGRAM) as server:
            a = server.site(0)

            def refused(code, title, **bent):
                site = Site(server, bent.pop("site", 0), seed=bent.pop("seed", None))
                site.nonce, site.task = bent.pop("nonce", a.nonce), bent.pop("task", site.task)
                headers = site.headers("POST", "/v1/messages", b"T", bent.pop("seq", None))
                headers = bent.pop("headers", lambda h: h)(headers)
                with Line(server.address) as line:
                    line.send(request("POST", "/v1/messages", headers, bent.pop("body", b"T")))
                    answer = line.read()
                self.assertEqual((answer.code, answer.title), (code, title))
                self.assertEqual("fedkt-nonce" in answer.headers, code == 401)
                self.assertFalse(bent)
                return answer

            refused(400, "malformed", headers=lambda h: [])
            refused(400, "malformed", headers=lambda h: h[:1])
            refused(400, "malformed", headers=lambda h: h[1:])
            refused(400, "malformed", headers=lambda h: [("Authorization", h[0][1] + "0"), h[1]])
            refused(400, "malformed", headers=lambda h: [("Authorization", "Bearer x"), h[1]])
            refused(401, "unknown-site", site=8)
            refused(401, "unknown-site", site=2**32 - 1)
            refused(403, "other-task", task=bytes(32))
            refused(401, "nonce", nonce=bytes(16))
            refused(401, "signature", seed=bytes(32))
            refused(401, "signature", body=b"U")
            a.post(b"T")
            self.assertEqual(refused(401, "replayed", seq=a.seq).headers["fedkt-floor"], str(a.seq))
            refused(401, "replayed", seq=0)
            self.assertEqual(refused(401, "ahead", seq=2**63 - 1).headers["fedkt-floor"], str(a.seq))  # a stolen key
            self.assertEqual(a.post(b"T").code, 204)
            wanted = {"unknown-site": 2, "signature": 2, "other-task": 1, "replayed": 2, "malformed": 5}
            status = server.status()["refused"]
            self.assertEqual({k: v for k, v in status.items() if v}, wanted)

    def test_targets_and_methods(self):
        with Server(PROGRAM) as server:
            a = server.site(0)
            for target in (
                "/v1/files/../tls.key", "/v1/files/..%2f..%2ftls.key", "/v1/files//etc/passwd", "/v1/files/tls.key",
                "/v1/files/%2e%2e/tls.key", "/files/../tls.key", "/../tls.key", "/tls.key", "/v1/", "/v1/task/",
                "/v1/files/transparency.jsonl%00", "/v1/files/transparency.jsonl?x",
            ):  # fmt: skip
                self.assertEqual(a.ask("GET", target).code, 404, target)
            for target in (POLL.format(-1), "/v1/messages?round=-", POLL.format("1&x=1")):
                self.assertEqual(a.ask("GET", target).code, 400, target)
            for method, target, allow in (
                ("PUT", "/v1/messages", "GET, POST"), ("GET", "/v1/messages", "GET, POST"),
                ("DELETE", "/v1/task", "GET"), ("HEAD", "/v1/task", "GET"), ("POST", "/", "GET, HEAD"),
                ("OPTIONS", "/metrics", "GET, HEAD"),
            ):  # fmt: skip
                answer = a.ask(method, target)
                self.assertEqual((answer.code, answer.headers["allow"]), (405, allow), (method, target))

    def test_bodies(self):
        with Server(PROGRAM) as server:
            a = server.site(0)
            big = b"T" + bytes(65535)
            self.assertEqual(a.post(big).code, 204)
            self.assertEqual(a.poll().body, big)
            for length in (65537, 10**15):  # the answer does not wait for the body
                answer = a.announce(length)
                self.assertEqual((answer.code, answer.title), (413, "too-large"))
            with Line(server.address) as line:
                chunked = [("Transfer-Encoding", "chunked")]
                line.send(request("POST", "/v1/messages", a.headers("POST", "/v1/messages", b"T") + chunked))
                self.assertEqual((line.read().code), 411)
                self.assertTrue(line.closed(20))
            for lengths in ((1, 2), (2, 1), (1, 1)):  # said twice: nobody knows where the next request begins
                with Line(server.address) as line:
                    said = [("Content-Length", n) for n in lengths]
                    line.send(request("POST", "/v1/messages", a.headers("POST", "/v1/messages", b"T") + said) + b"T")
                    answer = line.read()
                    self.assertEqual((answer.code, answer.title), (400, "malformed"))
                    self.assertTrue(line.closed(20))
            with Line(server.address) as line:
                line.send(request("GET", "/v1/task", a.headers("GET", "/v1/task", b"x"), b"x"))
                self.assertEqual(line.read().code, 413)
            with Line(server.address) as line:  # a body in pieces, after the server said that it wants it
                wanted = [("Expect", "100-continue"), ("Content-Length", 6)]
                line.send(request("POST", "/v1/messages", a.headers("POST", "/v1/messages", b"Tslow!") + wanted))
                self.assertEqual(line.head()[0], 100)
                for piece in (b"Ts", b"lo", b"w!"):
                    line.send(piece)
                    time.sleep(0.05)
                self.assertEqual(line.read().code, 204)
            with Line(server.address) as line:  # half a body, and gone
                line.send(
                    request("POST", "/v1/messages", a.headers("POST", "/v1/messages", b"T") + [("Content-Length", 100)])
                )
                line.send(b"T" * 50)
            self.assertEqual(a.post(b"T").code, 204)
            self.assertEqual(server.status()["refused"]["too-large"], 3)

    def test_a_slow_line(self):
        """Who sends steadily, at more than eight kilobytes a second, has the time that it takes."""
        with Server(PROGRAM, request=2) as server, Line(server.address) as line:
            raw = server.site(0).raw("POST", "/v1/messages", b"T" + bytes(60000))
            for at in range(0, len(raw), 6000):
                line.send(raw[at : at + 6000])
                time.sleep(0.3)
            self.assertEqual(line.read().code, 204)

    def test_pipelining_and_keep_alive(self):
        with Server(PROGRAM) as server, Line(server.address) as line:
            a = server.site(0)
            line.send(a.raw("POST", "/v1/messages", b"Tone") + a.raw("GET", POLL.format(5)) + a.raw("GET", "/v1/task"))
            self.assertEqual([line.read().code for _ in range(3)], [204, 200, 200])
            for _ in range(5):
                line.send(a.raw("GET", "/v1/task"))
                self.assertEqual(line.read().code, 200)

    def test_polls(self):
        with Server(PROGRAM) as server, Line(server.address) as first, Line(server.address) as second:
            a = server.site(0)
            first.send(a.raw("GET", POLL.format(20)))
            self.assertTrue(until(lambda: server.status()["traffic"]["parked"] == 1))
            second.send(a.raw("GET", POLL.format(20)))
            self.assertEqual(first.read().code, 204)  # ended by the second
            a.post(b"Tnews")
            self.assertEqual(second.read().body, b"Tnews")
            begun = time.monotonic()
            known = f"/v1/messages?round={'ab' + ''.join(f'{i:02x}' for i in range(1, 16))}&after=1&wait=1"
            self.assertEqual(a.ask("GET", known).code, 204)
            self.assertGreaterEqual(time.monotonic() - begun, 0.9)
            gone = Line(server.address)  # a client that goes away while it waits
            gone.send(server.site(1).raw("GET", POLL.format(2)))
            self.assertTrue(until(lambda: server.status()["traffic"]["parked"] == 1))
            gone.close()
            self.assertTrue(until(lambda: server.status()["traffic"]["parked"] == 0))

    def test_letters_that_are_not_read(self):
        """One letter of a site is on its way at a time: the next one ends the connection of the one before."""
        with Server(PROGRAM, message=32 << 20, rate=1000) as server:
            a = server.site(0)
            self.assertEqual(a.post(b"T" * (32 << 20)).code, 204)
            lines = [Line(server.address) for _ in range(4)]
            for line in lines:
                line.send(a.raw("GET", POLL.format(0)))
                self.assertEqual(line.head()[0], 200)  # and not a byte more
            self.assertTrue(
                until(lambda: server.status()["traffic"]["connections"] == 2)
            )  # the last, and this question
            self.assertEqual((a.post(b"T").code, a.poll().body), (204, b"T"))
            for line in lines:
                line.close()

    def test_rates(self):
        with Server(PROGRAM, rate=5, refusals=10) as server:
            a = server.site(0)
            with Line(server.address) as line:
                line.send(b"".join(a.raw("GET", "/v1/task") for _ in range(12)))
                codes = [line.read().code for _ in range(12)]
            self.assertEqual(codes[:5], [200] * 5)
            self.assertIn(429, codes)
            self.assertEqual(set(codes), {200, 429})
            time.sleep(1.5)
            self.assertEqual(a.ask("GET", "/v1/task").code, 200)
            codes = [server.get("/nothing", source=STRANGER).code for _ in range(12)]
            self.assertEqual(codes, [404] * 10 + [429] * 2)
            answer = server.get("/nothing", source=STRANGER)
            self.assertEqual((answer.code, answer.title), (429, "too-often"))
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
            self.assertEqual(server.get("/healthz", source=STRANGER).code, 200)
            self.assertEqual(a.ask("GET", "/v1/task").code, 200)

    def test_a_stranger_behind_the_same_address(self):
        """Sites behind one NAT or forwarder with somebody who is refused all the time go on being served."""
        with Server(PROGRAM, refusals=10) as server:
            old, new = server.site(0, source=STRANGER), Site(server, 1, source=STRANGER)
            with Line(server.address, STRANGER) as kept:
                kept.send(old.raw("GET", "/v1/task"))
                self.assertEqual(kept.read().code, 200)
                self.assertEqual([server.get("/x", source=STRANGER).code for _ in range(11)], [404] * 10 + [429])
                bad = Site(server, 2, seed=bytes(32), source=STRANGER)
                bad.nonce = old.nonce
                self.assertEqual((bad.post(b"T").code, bad.poll().code), (429, 429))
                kept.send(old.raw("POST", "/v1/messages", b"T"))
                self.assertEqual(kept.read().code, 204)
                self.assertEqual((new.learn().post(b"T").code, new.poll().code), (204, 200))


class People(unittest.TestCase):
    def test_loopback_needs_no_token(self):
        with Server(PROGRAM) as server:
            page = server.get("/")
            self.assertEqual((page.code, page.headers["content-type"]), (200, "text/html; charset=utf-8"))
            self.assertIn("script-src 'sha256-", page.headers["content-security-policy"])
            for name, value in (
                ("strict-transport-security", "max-age=31536000"), ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"), ("cache-control", "no-store"),
            ):  # fmt: skip
                self.assertEqual(page.headers[name], value)
            self.assertEqual(server.get("/healthz").body, b"ok\n")
            self.assertEqual(server.get("/metrics").headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
            head = server.get("/", method="HEAD")
            self.assertEqual((head.code, head.headers["content-length"]), (200, page.headers["content-length"]))
            self.assertEqual(server.get("/events", method="HEAD").headers["content-type"], "text/event-stream")
            self.assertEqual(server.get("/grid.png").code, 404)

    def test_a_name_from_elsewhere_needs_the_token(self):
        """A page of a stranger whose name was made to lead to this machine has the browser's ear, but not our name."""
        with Server(PROGRAM, token="sesame") as server:
            for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "127.255.0.3:8443", "[::1]", "[::1]:8443"):
                self.assertEqual(server.get("/status.json", host=host).code, 200, host)
            for host in (
                "fedkt.example.org", "evil.example:8443", "127.0.0.1.evil.example", "localhost.evil.example:1", "127.1",
                "10.0.0.1:8443", "[::2]:8443", "::1", "[::1", "[::1]x", "127.0.0.1:", "127.0.0.1:8443x", "", "[", ":1",
                "127.0.0.1@evil.example", "0.0.0.0",
            ):  # fmt: skip
                answer = server.get("/status.json", host=host)
                self.assertEqual((answer.code, answer.title), (401, "token"), host)
            bearer = [("Authorization", "Bearer sesame")]
            self.assertEqual(server.get("/status.json", headers=bearer, host="evil.example").code, 200)
            with Line(server.address) as line:
                line.send(b"GET /status.json HTTP/1.0\r\n\r\n")
                self.assertEqual(line.read().code, 401)

    def test_behind_a_forwarder(self):
        """It listens on loopback, but the task says that it is reached from elsewhere: who knocks here is not known."""
        with Server(PROGRAM, token="sesame", address="https://fedkt.example.org:8443") as server:
            self.assertEqual(server.get("/status.json").code, 401)
            self.assertEqual(server.get("/status.json", headers=[("Authorization", "Bearer sesame")]).code, 200)

    def test_the_token(self):
        with Server(PROGRAM, listen="0.0.0.0:0", token="sesame") as server:
            server.address = ("127.0.0.1", server.address[1])
            answer = server.get("/")
            self.assertEqual((answer.code, answer.title), (401, "token"))
            self.assertEqual(answer.headers["www-authenticate"], "Bearer")
            self.assertNotIn("fedkt-nonce", answer.headers)
            self.assertEqual(server.get("/healthz").code, 200)
            self.assertEqual(server.get("/metrics", headers=[("Authorization", "Bearer sesame")]).code, 200)
            self.assertEqual(server.get("/metrics", headers=[("Authorization", "Bearer sesam")]).code, 401)
            self.assertEqual(server.get("/login?token=wrong").code, 401)
            login = server.get("/login?token=sesame")
            self.assertEqual((login.code, login.headers["location"]), (303, "/"))
            cookie, _, how = login.headers["set-cookie"].partition(";")
            self.assertNotIn("sesame", cookie)
            for word in ("HttpOnly", "Secure", "SameSite=Strict"):
                self.assertIn(word, how)
            self.assertEqual(server.get("/status.json", headers=[("Cookie", cookie)]).code, 200)
            self.assertEqual(server.get("/status.json", headers=[("Cookie", cookie[:-1] + "g")]).code, 401)

    def test_events(self):
        with Server(PROGRAM) as server:
            a = server.site(0)
            lines = [Line(server.address) for _ in range(33)]
            for line in lines:
                line.send(request("GET", "/events"))
            codes = sorted(line.head()[0] for line in lines)
            self.assertEqual(codes, [200] * 32 + [503])
            with Line(server.address) as line:
                lines[0].close()
                self.assertTrue(until(lambda: self.event_of(server) is not None))
            open_one = next(line for line in lines[1:] if b"retry-after" not in line.buffer.lower())
            a.post(b"Tnow")
            self.assertTrue(until(lambda: self.read_more(open_one) and b'"stage":"running"' in open_one.buffer))
            for line in lines:
                line.close()

    @staticmethod
    def read_more(line):
        line.sock.settimeout(1)
        try:
            line.more()
        except TimeoutError:
            pass
        return True

    @staticmethod
    def event_of(server):
        """A place is free once the server has seen that somebody left, at the next event."""
        server.site(1).post(b"Tchange")
        with Line(server.address) as line:
            line.send(request("GET", "/events"))
            if line.head()[0] != 200:
                return None
            while b"event: status\ndata: {" not in line.buffer:
                line.more()
            return line.buffer

    def test_files(self):
        with Server(PROGRAM) as server:
            for name in ("grid.png", "release.safetensors"):
                with open(f"{server.folder.name}/{name}", "wb") as file:
                    file.write(name.encode() * 1000)
            self.assertEqual(server.get("/files/grid.png").code, 404)
            server.site(0).post(b"R")
            self.assertEqual(server.get("/grid.png").body, b"grid.png" * 1000)
            answer = server.get("/files/release.safetensors")
            self.assertEqual(answer.headers["content-disposition"], 'attachment; filename="release.safetensors"')
            self.assertEqual(server.get("/files/certificate.json").code, 404)
            self.assertEqual(server.get("/files/tls.key").code, 404)


class Transport(unittest.TestCase):
    def test_nothing_older_than_tls_1_3(self):
        with Server(PROGRAM) as server, GoodNeighbour(server):
            with Line(server.address) as line:
                self.assertEqual(line.sock.version(), "TLSv1.3")
            for version in (ssl.TLSVersion.TLSv1_2,):
                with self.assertRaises((ssl.SSLError, OSError)):
                    Line(server.address, STRANGER, context=tls_context(version))
            with self.assertRaises((ssl.SSLError, OSError)):
                old = tls_context(ssl.TLSVersion.TLSv1_2)
                old.set_ciphers("ALL:@SECLEVEL=0")
                Line(server.address, STRANGER, context=old)

    def test_plain_http_and_noise(self):
        with Server(PROGRAM, request=4) as server, GoodNeighbour(server):
            for noise in (
                b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                b"\x16\x03\x01\xff\xff" + bytes(5000),
                os.urandom(3000),
            ):
                with Line(server.address, STRANGER, tls=False) as line:
                    line.send(noise)
                    self.assertTrue(line.closed(40))
                    self.assertNotIn(b"HTTP/1.1 200", line.buffer)

    def test_headers_beyond_measure(self):
        with Server(PROGRAM, request=4) as server, GoodNeighbour(server):
            for raw in (
                b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100000 + b"\r\n\r\n",
                b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                b"GET /healthz HTTP/1.1\r\n" + b"".join(b"H%d: x\r\n" % i for i in range(5000)) + b"\r\n",
                b"\r\n" * 50000,
                b"\x00\x01\x02 garbage\r\n\r\n",
                b"GET / HTTP/9.9\r\n\r\n",
                b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            ):
                with Line(server.address, STRANGER) as line:
                    try:
                        line.send(raw)
                        self.assertGreaterEqual(line.read().code, 400, raw[:60])
                    except (EOFError, OSError):
                        pass  # closed without a word, which is an answer too


class Stopping(unittest.TestCase):
    def test_with_everything_under_way(self):
        server = Server(PROGRAM)
        polls = [Line(server.address) for _ in range(8)]
        for i, line in enumerate(polls):
            line.send(server.site(i).raw("GET", POLL.format(25)))
        events = Line(server.address)
        events.send(request("GET", "/events"))
        half = Line(server.address)
        half.send(b"GET /hea")
        self.assertTrue(until(lambda: server.status()["traffic"]["parked"] == 8))
        begun = time.monotonic()
        server.process.stdin.close()
        answers = [line.read() for line in polls]
        self.assertEqual({(a.code, a.title) for a in answers}, {(503, "busy")})
        self.assertIn("retry-after", answers[0].headers)
        self.assertEqual(server.process.wait(timeout=60), 0)
        self.assertLess(time.monotonic() - begun, 30)
        for line in (*polls, events, half):
            line.close()
        server.stop()

    def test_a_mailbox_that_fails(self):
        server = Server(PROGRAM)
        waiting = Line(server.address)
        waiting.send(server.site(1).raw("GET", POLL.format(25)))
        self.assertTrue(until(lambda: server.status()["traffic"]["parked"] == 1))
        self.assertEqual(server.site(0).post(b"X").code, 503)
        self.assertEqual(waiting.read().code, 503)
        waiting.close()
        code, said = server.stop()
        self.assertEqual((code, said), (1, "request_check_server: the disk is full\n"))


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[1:], exit=False, verbosity=2).result.wasSuccessful() else 1)

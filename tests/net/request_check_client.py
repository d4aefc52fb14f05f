# SPDX-License-Identifier: Apache-2.0
"""request_check_client.py - a server for tests (request_check_server.c) and clients of it: sockets, TLS and HTTP by
hand, so that they
can misbehave; signatures from the oracle, not from our C code."""

import contextlib
import hashlib
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "oracle"))
import http_auth  # noqa: E402

TASK = hashlib.sha256(b"task").digest()
STRANGER = "127.0.0.2"  # bad clients come from here: what they do counts against their address
PATIENCE = 60
POLL = "/v1/messages?round=-&after=0&wait={}"


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def seed_of(site):
    return hashlib.sha256(f"site {site}".encode()).digest()


class Answer:
    def __init__(self, code, headers, body):
        self.code, self.headers, self.body = code, headers, body

    @property
    def title(self):
        return json.loads(self.body)["title"]

    def __repr__(self):
        return f"<{self.code} {self.headers} {self.body[:200]!r}>"


class Line:
    """One connection; TLS unless told otherwise."""

    def __init__(self, address, source="127.0.0.1", tls=True, context=None):
        self.sock = socket.create_connection(address, timeout=PATIENCE, source_address=(source, 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as libcurl does
        self.buffer = b""
        if tls:
            context = context or tls_context()
            try:
                self.sock = context.wrap_socket(self.sock)
            except BaseException:
                self.sock.close()
                raise

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.sock.sendall(data)

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError("the server closed the connection")
        self.buffer += data

    def head(self):
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        return int(lines[0].split()[1]), {k.lower(): v.strip() for k, _, v in (n.partition(":") for n in lines[1:])}

    def read(self, method="GET"):
        code, headers = self.head()
        length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        while len(self.buffer) < length:
            self.more()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Answer(code, headers, body)

    def closed(self, seconds):
        """True when the server ends the connection within so many seconds."""
        self.sock.settimeout(seconds)
        try:
            while self.sock.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True


def tls_context(newest=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if newest:
        context.maximum_version = newest
    return context


def request(method, target, headers=(), body=None, host="127.0.0.1:8443"):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{k}: {v}" for k, v in headers)]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class Site:
    """A site's side by hand. seq starts at a number that grows from test to test."""

    def __init__(self, server, site, seed=None, source="127.0.0.1"):
        self.server, self.site, self.seed, self.source = server, site, seed or seed_of(site), source
        self.nonce, self.seq, self.task = bytes(16), time.time_ns() // 1000, TASK

    def headers(self, method, target, body=b"", seq=None):
        if seq is None:
            self.seq += 1
            seq = self.seq
        line = http_auth.header(self.seed, self.task, self.nonce, seq, self.site, method, target, body)
        return [("Authorization", line), ("Fedkt-Task", self.task.hex())]

    def raw(self, method, target, body=None):
        return request(method, target, self.headers(method, target, body or b""), body)

    def learn(self):
        """The nonce, from the first answer."""
        with Line(self.server.address, self.source) as line:
            line.send(self.raw("GET", "/v1/task"))
            answer = line.read()
            assert answer.code == 401 and answer.title == "nonce", answer
            self.nonce = bytes.fromhex(answer.headers["fedkt-nonce"])
        return self

    def ask(self, method, target, body=None):
        with Line(self.server.address, self.source) as line:
            line.send(self.raw(method, target, body))
            return line.read(method)

    def post(self, body):
        return self.ask("POST", "/v1/messages", body)

    def announce_small(self):
        """The head of a small message, asking whether it may come: 100, or why not."""
        with Line(self.server.address, self.source) as line:
            more = [("Expect", "100-continue"), ("Content-Length", 2)]
            line.send(request("POST", "/v1/messages", [*self.headers("POST", "/v1/messages", b"Tx"), *more]))
            answer = line.read()
            if answer.code == 100:
                line.send(b"Tx")
                answer = line.read()
            return answer

    def announce(self, length):
        """The head of a message that is so long; its body never comes."""
        with Line(self.server.address, self.source) as line:
            headers = [*self.headers("POST", "/v1/messages"), ("Content-Length", length)]
            line.send(request("POST", "/v1/messages", headers))
            answer = line.read()
            assert line.closed(PATIENCE)
            return answer

    def poll(self, wait=0):
        return self.ask("GET", POLL.format(wait))


class Server:
    def __init__(self, program, sites=8, **limits):
        self.folder = tempfile.TemporaryDirectory(prefix="fedkt-gate-")
        words = [f"{k}={v}" for k, v in limits.items()]
        self.process = subprocess.Popen(
            [program, self.folder.name, str(sites), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        host, _, port = self.process.stdout.readline().strip().rpartition(":")
        if not port:
            raise RuntimeError(self.process.stderr.read())
        self.address = (host, int(port))

    def site(self, site, **more):
        return Site(self, site, **more).learn()

    def get(self, target, method="GET", headers=(), source="127.0.0.1", host="127.0.0.1:8443"):
        with Line(self.address, source) as line:
            line.send(request(method, target, headers, host=host))
            return line.read(method)

    def status(self):
        return json.loads(self.get("/status.json").body)

    def stop(self):
        """Exit status, and what it said on stderr."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE)
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        self.folder.cleanup()
        return code, said

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None and kind:
            self.process.kill()
        if not self.process.stdout.closed:
            code, said = self.stop()
            assert kind or code == 0, f"the server ended with {code}: {said}"


class GoodNeighbour(threading.Thread):
    """A site that behaves, on one connection and on new ones, while others do not."""

    def __init__(self, server, site=0):
        super().__init__(daemon=True)
        self.me, self.over, self.served, self.slowest, self.error = server.site(site), threading.Event(), 0, 0.0, None

    def run(self):
        try:
            while not self.over.is_set():
                begun = time.monotonic()
                posted, polled = self.me.post(b"T good"), self.me.poll()
                assert posted.code == 204 and polled.code == 200 and polled.body == b"T good", (posted, polled)
                self.slowest = max(self.slowest, time.monotonic() - begun)
                self.served += 1
                time.sleep(0.2)
        except Exception as e:  # pylint: disable=broad-except
            self.error = e

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        self.join(PATIENCE)
        if not kind:
            assert self.error is None, f"the good neighbour was not served: {self.error!r}"
            assert self.served > 0, "the good neighbour was not served"

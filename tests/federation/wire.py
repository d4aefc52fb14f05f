# SPDX-License-Identifier: Apache-2.0
"""wire.py - speaking docs/http.md by hand: signed requests of any kind, and a whole site in Python.

Neither uses a line of the program under test: requests are signed by the oracle's Ed25519, messages are made by the
oracle's site (docs/protocol.md). That a federation of our sites and this one adds up is the protocol tested from
outside; that it can send what no honest site sends is what intruders are made of.
"""

import http.client
import json
import pathlib
import ssl
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "oracle"))

import http_auth  # noqa: E402
from secagg_parties import Site  # noqa: E402
from secagg_primitives import Entropy  # noqa: E402
from secagg_rules import Params  # noqa: E402

NO_NONCE = "0" * 32


class Answer:
    def __init__(self, response):
        self.code, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def title(self):
        return json.loads(self.body)["title"]


def tls():
    """Any certificate will do: these tests look at what the server says, not at who it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


class Door:
    """A connection to the server, and whoever stands there: a seat, a key, a task."""

    def __init__(self, address, seed=None, site=0, task=bytes(32), timeout=60):
        self.host, port = address.rsplit(":", 1)
        self.port, self.seed, self.site, self.task, self.timeout = int(port), seed, site, task, timeout
        self.nonce, self.seq, self.line = NO_NONCE, time.time_ns() // 1000, None

    def raw(self, method, target, body=b"", headers=None):
        if self.line is None:
            self.line = http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=tls())
        try:
            self.line.request(method, target, body=body or None, headers=headers or {})
            return Answer(self.line.getresponse())
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self):
        if self.line:
            self.line.close()
        self.line = None

    def signed(self, method, target, body=b""):
        """The headers of the next request: kept by whoever wants to send it again."""
        self.seq += 1
        word = http_auth.header(
            self.seed, self.task, bytes.fromhex(self.nonce), self.seq, self.site, method, target, body
        )
        return {"Authorization": word, "Fedkt-Task": self.task.hex()}

    def once(self, method, target, body=b""):
        return self.raw(method, target, body, self.signed(method, target, body))

    def ask(self, method, target, body=b""):
        """Signed; learns the server's nonce, and the floor under its own numbers, where it must."""
        for _ in range(4):
            answer = self.once(method, target, body)
            if answer.code != 401 or answer.title not in ("nonce", "replayed", "ahead"):
                break
            self.nonce = answer.headers["Fedkt-Nonce"]
            floor = int(answer.headers.get("Fedkt-Floor", 0))
            self.seq = floor if answer.title == "ahead" else max(self.seq, floor)
        return answer


def params_of(task, sha256, numbers):
    """docs/protocol.md 1 from a task's JSON."""
    f = task["federation"]
    names = ("sites", "dropped", "corrupt", "degree", "threshold", "attempts", "bits", "bound", "keystream")
    roster = tuple(bytes.fromhex(key) for key in f["roster"])
    return Params(**{name: f[name] for name in names}, length=numbers, task=bytes.fromhex(sha256), roster=roster)


class PythonSite(threading.Thread):
    """The oracle's site behind HTTPS. Every request that brought a message it sends a second time, byte for byte, and
    every message again under a new signature; `replays` and `repeats` are what the server said to those."""

    def __init__(self, door, params, seed, vector):
        super().__init__(daemon=True)
        self.door, self.stage, self.error = door, "", None
        self.replays, self.repeats, self.taken = [], [], 0
        self.make = lambda: Site(params, door.site, door.seed, Entropy(seed, 2 + 2 * door.site), vector)

    def run(self):
        try:
            self.attend()
        except Exception as error:  # the test that owns the thread looks at it
            self.error = error
        finally:
            self.door.close()

    def send(self, message):
        headers = self.door.signed("POST", "/v1/messages", message)
        answer = self.door.raw("POST", "/v1/messages", message, headers)
        assert answer.code == 204, (answer.code, answer.body)
        self.taken += 1
        self.replays.append(self.door.raw("POST", "/v1/messages", message, headers))
        self.repeats.append(self.door.ask("POST", "/v1/messages", message))

    def attend(self):
        name, after, site = "-", 0, self.make()
        while self.stage not in ("released", "given-up"):
            answer = self.door.ask("GET", f"/v1/messages?round={name}&after={after}&wait=5")
            assert answer.code in (200, 204, 410), (answer.code, answer.body)
            self.stage = answer.headers["Fedkt-Stage"]
            if answer.code != 200:
                continue
            if answer.headers["Fedkt-Round"] != name:
                site = self.make()
            name, after = answer.headers["Fedkt-Round"], int(answer.headers["Fedkt-Index"])
            message = site.recv(answer.body)
            if message:
                self.send(message)

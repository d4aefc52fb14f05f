#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_openapi.py - docs/openapi.yaml against the real server: every path, method and code that it names is provoked,
and what comes back has the media type, headers and body that it promises; nothing comes back that it does not name.

Usage: test_openapi.py GATE_SERVER [unittest's words]      exit 77: python3-yaml or python3-jsonschema is not installed
"""

import json
import re
import sys
import unittest

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(missing)
    sys.exit(77)

from request_check_client import POLL, ROOT, STRANGER, Line, Server, Site, request

PROGRAM = sys.argv[1]
SPEC = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text(encoding="utf-8"))
# Cannot be provoked from outside without luck: that the mailbox is stuck, or fails just now.
UNSEEN = {
    ("get", path, "503")
    for path in ("/healthz", "/v1/task", "/v1/files/{name}", "/status.json", "/metrics", "/grid.png", "/files/{name}")
}
FILE, DOWNLOAD, ALL = "/v1/files/transparency.jsonl", "/files/release.safetensors", POLL.format(0)


def resolved(node):
    """References within the document, put in place."""
    if isinstance(node, list):
        return [resolved(n) for n in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        at = SPEC
        for word in node["$ref"].removeprefix("#/").split("/"):
            at = at[word]
        return resolved(at)
    return {k: resolved(v) for k, v in node.items()}


def promised():
    """(method, path, code) -> what the document says of the answer."""
    return {
        (method, path, code): resolved(response)
        for path, methods in SPEC["paths"].items()
        for method, operation in methods.items()
        for code, response in operation["responses"].items()
    }


class Document(unittest.TestCase):
    def test_it_is_one(self):
        self.assertEqual(SPEC["openapi"], "3.1.0")
        names = [o["operationId"] for methods in SPEC["paths"].values() for o in methods.values()]
        self.assertEqual(len(names), len(set(names)))
        for path, methods in resolved(SPEC["paths"]).items():
            for operation in methods.values():
                inside = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
                self.assertEqual(set(re.findall(r"{(\w+)}", path)), inside, path)
        for schema in resolved(SPEC["components"]["schemas"]).values():
            jsonschema.Draft202012Validator.check_schema(schema)


class Answers(unittest.TestCase):
    def setUp(self):
        self.promised, self.seen = promised(), set()

    def saw(self, method, path, code, answer):
        """The answer is as it is promised."""
        self.seen.add((method, path, code))
        self.assertEqual(str(answer.code), code, (method, path, answer))
        what = self.promised[method, path, code]
        for name, header in what.get("headers", {}).items():
            value = answer.headers.get(name.lower())
            if value is None:
                self.assertFalse(header.get("required"), f"{method} {path} {code}: no {name}")
            else:
                jsonschema.validate(value, header["schema"])
        kind = answer.headers.get("content-type")
        self.assertEqual(kind is None, "content" not in what, (method, path, code, kind))
        if kind is None:
            self.assertEqual(answer.body, b"")
            return
        self.assertIn(kind, what["content"], (method, path, code))
        schema = what["content"][kind]["schema"]
        if kind.endswith("json"):
            jsonschema.validate(json.loads(answer.body), schema)
        elif "const" in schema:
            self.assertEqual(answer.body.decode(), schema["const"])

    def refusals_of_sites(self, server, method, path, target):
        """400, 401 in its four forms, 403."""
        good, verb = server.site(1), method.upper()
        body = b"Tx" if verb == "POST" else None

        def send(headers):
            with Line(server.address) as line:
                line.send(request(verb, target, headers, body))
                return line.read()

        def bent(code, **change):
            site = Site(server, change.pop("site", 1), change.pop("seed", None))
            site.nonce = good.nonce
            vars(site).update(change)
            self.saw(method, path, code, send(site.headers(verb, target, body or b"")))

        self.saw(method, path, "400", send([]))
        bent("401", site=99)
        bent("401", nonce=bytes(16))
        bent("401", seed=bytes(32))
        bent("403", task=bytes(32))
        used = good.headers(verb, target, body or b"")
        send(used)
        again = send(used)
        self.saw(method, path, "401", again)
        self.assertEqual(again.title, "replayed")
        self.assertIn("fedkt-floor", again.headers)

    def sites(self):
        with Server(PROGRAM, rate=1000) as server:
            a = server.site(0)
            self.saw("get", "/v1/task", "200", a.ask("GET", "/v1/task"))
            self.saw("get", "/v1/task", "405", a.ask("DELETE", "/v1/task"))
            self.saw("get", "/v1/files/{name}", "404", a.ask("GET", FILE))
            self.saw("get", "/v1/messages", "204", a.poll())
            self.saw("get", "/v1/messages", "400", a.ask("GET", "/v1/messages?round=-"))
            self.saw("post", "/v1/messages", "204", a.post(b"T"))
            self.saw("get", "/v1/messages", "200", a.poll())
            self.saw("post", "/v1/messages", "409", a.post(b"S"))
            self.saw("post", "/v1/messages", "405", a.ask("PUT", "/v1/messages", b"x"))
            self.saw("post", "/v1/messages", "413", a.announce(70000))
            with Line(server.address) as line:
                chunked = [*a.headers("POST", "/v1/messages"), ("Transfer-Encoding", "chunked")]
                line.send(request("POST", "/v1/messages", chunked))
                self.saw("post", "/v1/messages", "411", line.read())
            self.saw("post", "/v1/messages", "422", a.post(b"F"))
            for method, path, target in (
                ("post", "/v1/messages", "/v1/messages"), ("get", "/v1/messages", ALL), ("get", "/v1/task", "/v1/task"),
                ("get", "/v1/files/{name}", FILE),
            ):  # fmt: skip
                self.refusals_of_sites(server, method, path, target)
            with open(f"{server.folder.name}/transparency.jsonl", "w", encoding="ascii") as file:
                file.write("{}\n")
            server.site(2).post(b"R")
            self.saw("get", "/v1/files/{name}", "200", a.ask("GET", FILE))
            self.saw("post", "/v1/messages", "410", a.post(b"T"))
            self.saw("get", "/v1/messages", "410", a.poll())

    def people(self):
        paths = {
            "/": "/", "/status.json": "/status.json", "/metrics": "/metrics", "/events": "/events",
            "/grid.png": "/grid.png", "/files/{name}": DOWNLOAD, "/login": "/login?token=sesame",
        }  # fmt: skip
        with Server(PROGRAM, listen="0.0.0.0:0", token="sesame") as server:
            server.address = ("127.0.0.1", server.address[1])
            token = [("Authorization", "Bearer sesame")]
            for path, target in paths.items():
                self.saw("get", path, "401", server.get(target.replace("sesame", "wrong")))
            self.saw("get", "/healthz", "200", server.get("/healthz"))
            self.saw("get", "/", "405", server.get("/", "POST", token))
            self.saw("get", "/grid.png", "404", server.get("/grid.png", headers=token))
            self.saw("get", "/files/{name}", "404", server.get(DOWNLOAD, headers=token))
            self.saw("get", "/login", "303", server.get("/login?token=sesame"))
            for name in ("grid.png", "release.safetensors"):
                with open(f"{server.folder.name}/{name}", "wb") as file:
                    file.write(b"x")
            server.site(0).post(b"R")
            for path, target in paths.items():
                if path not in ("/login", "/events"):
                    self.saw("get", path, "200", server.get(target, headers=token))
            lines = [Line(server.address) for _ in range(33)]
            for line in lines:
                line.send(request("GET", "/events", token))
            for line in lines:  # streams have no end; their heads will do
                answer = line.read()
                self.saw("get", "/events", str(answer.code), answer)
                line.close()

    def often(self):
        """429 in the place of refusals, to an address that was refused too often; and of a site that is too fast."""
        with Server(PROGRAM, refusals=2, rate=1) as server:
            a = server.site(0)
            a.post(b"T")
            self.saw("post", "/v1/messages", "429", a.post(b"T"))
            for _ in range(2):
                server.get("/nothing", source=STRANGER)
            for method, path, code in self.promised:
                if code == "429":
                    target = path.replace("{name}", "grid.png")
                    self.saw(method, path, code, server.get(target, method.upper(), source=STRANGER, host="elsewhere"))

    def busy(self):
        server = Server(PROGRAM)
        with Line(server.address) as line:
            a = server.site(1)
            line.send(a.raw("GET", POLL.format(25)))
            while server.status()["traffic"]["parked"] != 1:
                pass
            self.saw("post", "/v1/messages", "503", server.site(0).post(b"X"))
            self.saw("get", "/v1/messages", "503", line.read())
        server.stop()

    def test_all_of_it(self):
        self.sites()
        self.people()
        self.often()
        self.busy()
        self.assertEqual(set(self.promised) - self.seen, UNSEEN)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[1:], exit=False, verbosity=2).result.wasSuccessful() else 1)

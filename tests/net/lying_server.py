# SPDX-License-Identifier: Apache-2.0
"""lying_server.py - an HTTPS server on loopback that answers a site with whatever a test wants.

`answers` is a list of functions (or ready answers) that are used up in order, the last one again and again. An answer
is (code, headers, body); headers is a list of pairs, so that one can stand there twice.
"""

import http.server

from loopback import Loopback

NONCE = "0123456789abcdef" * 2


def told(code, stage="gathering", body=b"", **more):
    return code, [("Fedkt-Stage", stage), *((f"Fedkt-{name.title()}", value) for name, value in more.items())], body


def closing(answer):
    """The same, and the connection ends with it."""
    code, headers, body = answer
    return code, [*headers, ("Connection", "close")], body


def problem(code, title, *headers):
    return code, [("Fedkt-Nonce", NONCE), *headers], b'{"type": "about:blank", "title": "%s"}' % title.encode()


class Liar(Loopback):
    def __init__(self, certificate, key, newest=None, impostor=None):
        self.answers = [told(204)]
        self.log = []  # (method, path, headers, body)
        self.connections = 0
        liar = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def setup(self):
                liar.connections += 1
                super().setup()

            def do_GET(self):
                liar.answer(self)

            def do_POST(self):
                liar.answer(self)

        super().__init__(Handler, certificate, key, newest, impostor)

    def answer(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.log.append((request.command, request.path, dict(request.headers), body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "stall":
            self.stop.wait(60)
            request.close_connection = True
            return
        code, headers, data = answer
        request.send_response(code)
        for name, value in headers:
            request.send_header(name, value)
        if code != 204:
            request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

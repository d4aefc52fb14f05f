# SPDX-License-Identifier: Apache-2.0
"""hub_server.py - a model hub on loopback, over real TLS, that can misbehave on request.

It answers as the public hub does: HEAD and GET of /owner/name/resolve/REVISION/FILE; a large file's answer carries
X-Linked-ETag and X-Linked-Size and redirects to a store, which knows ETag, Range and If-Range.
"""

import hashlib
import http.server
import pathlib
import socket
import struct
import subprocess
import time

from loopback import Loopback


def openssl(*words, folder):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_certificates(folder):
    """ca.pem signs server.pem (127.0.0.1) and other.pem (another name); self.pem signs itself."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca", folder=folder)
    for name, san in (("server", "IP:127.0.0.1"), ("other", "DNS:other.example")):
        (folder / f"{name}.cnf").write_text(f"subjectAltName={san}\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", folder=folder)
        sign = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.cnf"]
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *sign, folder=folder)
    san = ["-addext", "subjectAltName=IP:127.0.0.1"]
    openssl(
        "req",
        "-x509",
        *key,
        "-keyout",
        "self.key",
        "-out",
        "self.pem",
        "-days",
        "2",
        "-subj",
        "/CN=me",
        *san,
        folder=folder,
    )


class Hub(Loopback):
    """One repository per hub. Tests change the fields between two runs, or while one is going on."""

    def __init__(self, folder, certificate="server"):
        self.files = {}  # name -> bytes; beyond LARGE they live in the store
        self.large = 1000
        self.commit = "c" * 40  # None: does not say
        self.commits = {}  # name -> commit that is named instead
        self.stated = {}  # name -> SHA-256 that the hub claims instead of the true one
        self.stated_size = {}
        self.etags = True
        self.weak = False
        self.if_range = True  # False: continues whatever the condition says
        self.ranges = True
        self.pace = None  # (bytes at once, seconds between)
        self.cut = None  # each answer ends after so many bytes, though it announced more
        self.reset = False  # ... with a reset instead of a close
        self.stall = False  # head of the answer, then nothing
        self.chunked = False
        self.code = None  # every GET of the store answers this
        self.to = None  # where GET of a large file is sent instead of the store
        self.moved = None  # (old repository, new repository)
        self.loop = False  # HEAD is redirected to itself
        self.under_way = set()  # bodies that are being sent
        self.log = []  # (method, path, Range or None, If-Range or None, code, body bytes sent)
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                hub.answer(self, body=False)

            def do_GET(self):
                hub.answer(self, body=True)

        super().__init__(Handler, folder / f"{certificate}.pem", folder / f"{certificate}.key")

    def forget(self):
        """An empty log; what is still being said to somebody who has gone away does not come into it later."""
        while self.under_way:
            time.sleep(0.01)
        self.log.clear()

    def sent(self, part):
        """Body bytes of all answers whose path holds `part`."""
        return sum(entry[5] for entry in self.log if part in entry[1])

    def answer(self, request, body):
        path = request.path
        if self.moved and path.startswith(f"/{self.moved[0]}/"):
            return self.redirect(request, path.replace(*self.moved, 1))
        if path.startswith("/store/"):
            return self.store(request, path.removeprefix("/store/"), body)
        if self.loop or path == "/loop":
            return self.redirect(request, path)
        parts = path.strip("/").split("/")
        name = parts[-1]
        if len(parts) != 5 or parts[2] != "resolve" or name not in self.files:
            return self.plain(request, 404, {}, b"not here", body)
        data = self.files[name]
        commit = self.commits.get(name, self.commit)
        headers = {"X-Repo-Commit": commit} if commit else {}
        if len(data) <= self.large:
            return self.plain(request, 200, {**headers, "ETag": '"small"'}, data, body)
        hashed = self.stated.get(name, hashlib.sha256(data).hexdigest())
        if hashed:
            headers["X-Linked-ETag"] = f'"{hashed}"'
            headers["X-Linked-Size"] = str(self.stated_size.get(name, len(data)))
        return self.redirect(request, (self.to if body and self.to else f"/store/{name}?signature=1"), headers)

    def redirect(self, request, to, headers=None):
        self.plain(request, 302, {**(headers or {}), "Location": to}, b"", False)

    def plain(self, request, code, headers, data, body):
        request.send_response(code)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        self.note(request, code, len(data) if body else 0)
        if body:
            request.wfile.write(data)

    def note(self, request, code, sent):
        headers = request.headers
        self.log.append((request.command, request.path, headers.get("Range"), headers.get("If-Range"), code, sent))

    def store(self, request, name, body):
        data = self.files[name.split("?")[0]]
        if self.code:
            return self.plain(request, self.code, {}, b"no", body)
        tag = '"' + hashlib.sha256(data).hexdigest()[:16] + '"'
        tag = "W/" + tag if self.weak else tag
        start, wanted, condition = 0, request.headers.get("Range"), request.headers.get("If-Range")
        if wanted and self.ranges and (not self.if_range or condition in (None, tag)):
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(data):
                return self.plain(request, 416, {"Content-Range": f"bytes */{len(data)}"}, b"", body)
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if self.etags:
            request.send_header("ETag", tag)
        if self.chunked:
            request.send_header("Transfer-Encoding", "chunked")
        else:
            request.send_header("Content-Length", str(len(data) - start))
        request.end_headers()
        self.send(request, data[start:], 206 if start else 200)

    def send(self, request, data, code):
        self.under_way.add(request)
        at, end = 0, len(data) if self.cut is None else min(len(data), self.cut)
        try:
            while self.stall and not self.stop.wait(0.05):
                pass
            while at < end and not self.stop.is_set():
                piece = data[at : min(end, at + (self.pace[0] if self.pace else 65536))]
                request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if self.chunked else piece)
                at += len(piece)
                if self.pace:
                    time.sleep(self.pace[1])
            if self.chunked and end == len(data):
                request.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        self.note(request, code, at)
        self.under_way.discard(request)
        if end < len(data) or self.stall:
            if self.reset:
                request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close_connection = True


def certificates(folder):
    folder = pathlib.Path(folder)
    make_certificates(folder)
    return folder

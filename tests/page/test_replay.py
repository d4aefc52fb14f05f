# SPDX-License-Identifier: Apache-2.0
"""test_replay.py - the page in Chromium before a server that plays made-up moments (page_text): every scene, a thousand
sites, names that are somebody's HTML, a server that goes away and comes back, a token that is no longer good.

Usage: test_replay.py PAGE_TEXT      exit 0: all well, 1: not, 77: Chromium is not installed
"""

import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

from browser import DESK, PHONE, Browser

GRID = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "images" / "demo-grid.png"
PHASES = "advertise coin share mask confirm reveal".split()


class Stage:
    """What the pretended server plays: a scene, and whether it is well."""

    def __init__(self, tool):
        self.tool, self.words, self.mode, self.seen = tool, ("gathering", "12"), "well", []
        self.page, self.policy = self.ask("html"), self.ask("csp").decode()
        self.line = b""
        self.play("gathering")

    def ask(self, *words):
        return subprocess.run([self.tool, *words], capture_output=True, check=True).stdout

    def play(self, scene, sites=12, mode="well"):
        document = json.loads(self.ask("status", scene, str(sites)))
        late = int(time.time() * 1000) - document["now"]
        for key in ("now", "started", "stage_since", "phase_since", "phase_until"):
            document[key] += late if document[key] else 0
        self.mode = mode
        self.line = json.dumps(document).encode()


def handler_of(stage):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, code, kind, body, **headers):
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            stage.seen.append(self.path)
            if self.path == "/":
                return self.answer(200, "text/html", stage.page, Content_Security_Policy=stage.policy)
            if stage.mode == "out":
                return self.answer(401, "text/plain", b"token")
            if stage.mode == "away":
                self.close_connection = True
                return None
            if self.path == "/status.json":
                return self.answer(200, "application/json", stage.line)
            if self.path == "/grid.png":
                return self.answer(200, "image/png", GRID.read_bytes())
            if self.path == "/events" and stage.mode == "well":
                return self.events()
            return self.answer(503, "text/plain", b"no events")

        def events(self):
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            told = None
            try:
                while stage.mode == "well":
                    if stage.line is not told:
                        told = stage.line
                        self.wfile.write(b"retry: 200\nevent: status\ndata: " + told + b"\n\n")
                        self.wfile.flush()
                    time.sleep(0.02)
            except OSError:
                pass

    return Handler


def step(browser):
    return browser.run("return document.querySelector('#steps [data-at=now]')?.dataset.step || ''")


def check_scenes(stage, browser):
    for scene in ["gathering", *PHASES, "finishing"]:
        stage.play(scene)
        browser.wait(scene, lambda: step(browser) == scene)
        browser.check_layout()
        assert browser.text("now"), scene
    stage.play("unmask")
    browser.wait("unmask", lambda: browser.data("phase") == "unmask" and step(browser) == "finishing")
    stage.play("failed")
    assert "7 sites are left" in browser.wait("the reason", lambda: browser.text("failed"))
    stage.play("given-up")
    assert "7 sites are left" in browser.wait("no release", lambda: browser.text("given-up"))
    browser.check_layout()
    stage.play("seeded")
    assert "NOT PRIVATE" in browser.wait("the banner", lambda: reload_until(browser, "insecure"))
    browser.check_layout()


def reload_until(browser, name):
    browser.driver.refresh()
    browser.wait("live", lambda: browser.text("link") == "live")
    return browser.text(name)


def check_release(stage, browser):
    stage.play("released")
    browser.driver.refresh()
    browser.wait("the grid", lambda: browser.run("return document.getElementById('image').naturalWidth > 100"))
    browser.check_layout()
    assert browser.run("return [...document.querySelectorAll('#files a')].map(a => a.getAttribute('href'))") == [
        "/files/release.safetensors",
        "/files/certificate.json",
        "/files/transparency.jsonl",
        "/files/grid.png",
    ]
    assert "fcde2b2e" in browser.text("release-hash") and "stripes" in browser.text("classes")
    assert browser.run("return document.querySelectorAll('#steps [data-at=done]').length") == 8
    assert "/grid.png" in stage.seen


KEY = r"\([0-9a-f]{4}( [0-9a-f]{4}){4}\)"  # the fingerprint beside a name


def check_sites(stage, browser):
    stage.play("mask", 1000)
    browser.wait("1000 squares", lambda: browser.run("return document.querySelectorAll('#grid .slot').length") == 1000)
    browser.check_layout()
    signs = browser.run("return [...new Set([...document.querySelectorAll('#grid .slot')].map(e => e.textContent))]")
    assert sorted(signs) == sorted("?\u2713\u00d7"), signs
    browser.run("document.querySelectorAll('#grid .slot')[8].click()")
    who = browser.text("who")
    assert re.fullmatch(rf"Site 8, Clinic of Bergen 2 {KEY}: heard, has answered in this phase\.", who), who
    browser.run("document.getElementById('names').open = true")
    browser.wait("the list", lambda: browser.run("return document.querySelectorAll('#list li').length") == 1000)
    first = browser.run("return document.querySelector('#list li').textContent")
    assert re.fullmatch(rf"Site 0, Clinic of Aarhus 1 {KEY}: asked", first), first
    browser.check_layout()
    browser.run("document.getElementById('names').open = false")


def check_hostile(stage, browser):
    stage.play("hostile")
    browser.driver.refresh()
    browser.wait("the name", lambda: browser.text("name").startswith("<img src=x onerror=alert(1)>"))
    browser.run("document.getElementById('names').open = true")
    browser.wait("the list", lambda: browser.run("return document.querySelectorAll('#list li').length") == 12)
    assert browser.run("return document.querySelectorAll('img, script').length") == 2, "names became elements"
    browser.run("document.getElementById('names').open = false")
    browser.run("document.querySelector('#grid .slot').click()")
    who = browser.text("who")
    assert re.match(rf"Site 0, <script>alert\(1\)</script> {KEY}: ", who), who


def check_line(stage, browser):
    """The server's clock runs on in the browser; a line that breaks is told, and mended."""
    stage.play("mask")
    before = browser.wait("a time", lambda: browser.text("elapsed"))
    assert before.startswith("in this phase for 1:0"), before
    browser.wait("time goes on", lambda: browser.text("elapsed") != before)
    asked = len(stage.seen)
    browser.wait("a look after a silence", lambda: "/status.json" in stage.seen[asked:])
    assert browser.text("link") == "live"
    stage.mode = "away"
    browser.wait("reconnecting", lambda: browser.text("link").startswith("reconnecting, last heard"))
    stage.play("share", mode="no events")
    browser.wait("polling", lambda: browser.text("link") == "asking every few seconds" and step(browser) == "share")
    stage.mode = "out"
    browser.wait("signed out", lambda: browser.text("link").startswith("signed out"))
    stage.play("confirm")
    browser.wait("live again", lambda: browser.text("link") == "live" and step(browser) == "confirm")


def main():
    stage = Stage(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(stage))
    server.handle_error = lambda *_: None  # a browser that leaves is no error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Browser(PHONE) as browser:
        browser.go(f"http://127.0.0.1:{server.server_port}/")
        browser.wait("live", lambda: browser.text("link") == "live")
        check_scenes(stage, browser)
        check_release(stage, browser)
        check_hostile(stage, browser)
        check_sites(stage, browser)
        browser.resize(DESK)
        check_scenes(stage, browser)
        check_release(stage, browser)
        browser.check_manners()
        check_line(stage, browser)
        browser.check_manners(expected=("/events", "/status.json"))  # it was away: Chromium says so
    stage.mode = "away"
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())

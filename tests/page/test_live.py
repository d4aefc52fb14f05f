# SPDX-License-Identifier: Apache-2.0
"""test_live.py - the page in Chromium during a real round: `fedkt serve`, eight times `fedkt join`, one of them killed.

Usage: test_live.py FEDKT PLAN [test...]      exit 0: all well, 1: not, 77: Chromium is not installed
FEDKT_PICTURES names a folder for photographs of the page (docs/images/status-*.png are made so).

Phases are held open by a site that stands still (tests/federation/pace.py), so that each can be looked at.
"""

import hashlib
import os
import pathlib
import sys

from browser import DESK, PHONE, Browser
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "federation"), str(ROOT / "tests" / "cli")]
import fed  # noqa: E402
from pace import PHASES, Pace  # noqa: E402

TOWNS = ["Aarhus", "Bergen", "Cork", "Dijon", "Essen", "Faro", "Graz", "Hull"]
CLASSES = ["apple", "beach", "brick", "field", "flag", "mountain", "night", "road", "sunset", "target"]
HISTORY = """
window.steps = [];
new MutationObserver(() => { if (steps.at(-1) !== document.body.dataset.step) steps.push(document.body.dataset.step); })
  .observe(document.body, { attributes: true });
"""
STEP = "return document.querySelector('#steps [data-at=now]')?.dataset.step || ''"


class Clinics(fed.Federation):
    """Sites with names and the demo set, and a task without a seed: what people will see."""

    def keys(self):
        self.run("keygen", "--out", "operator.key", "--name", "the operator")
        for i in range(self.sites):
            self.run("keygen", "--out", f"site{i}.key", "--name", f"Clinic of {TOWNS[i]}")
        self.run("enroll", "--roster", "roster.txt", *(f"site{i}.key.pub" for i in range(self.sites)))

    def task(self, name, dim, phase, gather, rounds, dropped, extra=(), epsilon="5"):
        self.run(
            "task", "new", "--out", name, "--name", "Eight clinics, one set", "--classes", ",".join(CLASSES),
            "--codec", "dct", "--dim", dim, "--epsilon", epsilon, "--delta", "1e-5", "--records", 256,
            "--dropped", dropped, "--roster", "roster.txt", "--server", f"https://{self.address}",
            "--certificate", "state/tls.pem",
            "--key", "operator.key", "--phase-seconds", phase, "--gather-seconds", gather, "--rounds", rounds, *extra
        )  # fmt: skip

    def images(self, i):
        pass

    def serve(self, listen=None):
        """It stays when the task is over, so that there is a page to look at."""
        words = ["serve", "--task", "task.json", "--state", "state", "--listen", listen or self.address]
        self.server = self.start([*words, "--json", "--per-class", 200, "--stay"], "server")
        fed.until("the server listens", lambda: self.server.lines or self.server.ended())
        assert not self.server.ended(), self.server.words()

    def join(self, i):
        words = ["join", "--task", "task.json", "--key", f"site{i}.key", "--data", "demo:train"]
        words += ["--limit", 1500 + 50 * i]
        words += ["--state", f"site{i}.state", "--ledger", f"site{i}.ledger", "--out", f"out{i}"]
        self.site[i] = self.start(words, f"site {i}")


def photograph(browser, name):
    folder = os.environ.get("FEDKT_PICTURES")
    if not folder:
        return
    for kind, size in (("phone", PHONE), ("desktop", DESK)):
        path = pathlib.Path(folder) / f"status-{name}-{kind}.png"
        browser.resize(size)
        browser.photograph(path)
        shot = Image.open(path).convert("RGB")
        for colours in (160, 128, 112, 96, 64):  # for a repository: small
            shot.quantize(colours, kmeans=2, dither=Image.Dither.NONE).save(path, optimize=True)
            if path.stat().st_size < 148_000:
                break
    browser.resize(PHONE)


class Live(fed.Case):
    SITES = 8

    def clinics(self, **more):
        f = Clinics(self.folder / "f", sites=self.SITES, dim=64, gather=120, dropped=1, **more)
        self.addCleanup(f.close)
        return f

    def squares(self, browser):
        return browser.run("return [...document.querySelectorAll('#grid .slot')].map(e => e.dataset.state)")

    def sees_phase(self, browser, phase, heard, expected):
        browser.wait(
            f"{heard} of {expected} in {phase}",
            lambda: browser.run(STEP) == phase and browser.text("heard") == f"{heard} of {expected}",
        )
        self.assertEqual(browser.text("link"), "live")
        self.assertTrue(browser.text("now").startswith("Round 1: "))
        self.assertIn("until the deadline", browser.text("left"))
        self.assertEqual(self.squares(browser).count("heard"), heard)
        browser.check_layout()

    def gathers(self, f, browser):
        browser.go(f"https://{f.address}/")
        browser.wait("gathering", lambda: browser.run(STEP) == "gathering" and browser.text("ready") == "0 of 8")
        browser.run(HISTORY)
        self.assertEqual(self.squares(browser), ["away"] * self.SITES)
        self.assertIn("epsilon 5 and delta 1e\u20115", browser.text("privacy"))
        self.assertEqual(browser.text("insecure"), "")
        self.assertEqual(browser.text("name"), "Eight clinics, one set")
        self.assertEqual(browser.text("task-hash"), "task " + f.plan_json["sha256"])
        f.join_all(range(self.SITES - 1))
        browser.wait("seven are here", lambda: self.squares(browser).count("ready") == self.SITES - 1)
        browser.run("document.querySelectorAll('#grid .slot')[2].click()")
        self.assertRegex(browser.text("who"), r"Clinic of Cork \([0-9a-f]{4}( [0-9a-f]{4}){4}\): ready")

    def round(self, f, browser):
        """Every phase is seen; one site is killed after its first message and so lost in the next phase."""
        pace = Pace(f, first=0, second=1)
        f.join(self.SITES - 1)
        pace.arrive("advertise")
        self.sees_phase(browser, "advertise", 7, 8)
        pace.kill(5)
        pace.gone = 1
        pace.go_on()
        self.sees_phase(browser, "share", 6, 8)
        pace.gone = 0
        for phase in PHASES[2:]:
            pace.go_on()
            self.sees_phase(browser, phase, 6, 7)
            self.assertEqual(self.squares(browser)[5], "lost")
            if phase == "mask":
                photograph(browser, "round")
        pace.let_go()

    def ends(self, f, browser):
        browser.wait("released", lambda: browser.data("step") == "released")
        browser.wait("the grid", lambda: browser.run("return document.getElementById('image').naturalWidth > 100"))
        self.assertEqual(browser.run("return steps"), ["gathering", *PHASES, "finishing", "released"])
        release = f.release_bytes()
        self.assertIn(hashlib.sha256(release).hexdigest(), browser.text("release-hash"))
        self.assertEqual(browser.text("classes").split(), CLASSES)
        self.assertEqual(browser.text("heard"), "7 of 8")
        for name in ("release.safetensors", "certificate.json", "transparency.jsonl", "grid.png"):
            script = (
                "const a = await fetch(arguments[0]); const b = await a.arrayBuffer(); return [a.status, b.byteLength]"
            )
            got = browser.driver.execute_script(script, f"/files/{name}")
            self.assertEqual(got, [200, (f.public / name).stat().st_size], name)
        browser.check_layout()
        photograph(browser, "released")

    def test_a_round(self):
        f = self.clinics(phase=15)
        f.serve()
        with Browser(PHONE) as browser:
            self.gathers(f, browser)
            self.round(f, browser)
            self.ends(f, browser)
            browser.check_manners()

    def test_token(self):
        """Bound to more than loopback, the page is for whoever has the token."""
        f = self.clinics(phase=60)
        f.serve(listen=f.address.replace("127.0.0.1", "0.0.0.0"))
        token = (f.folder / "state" / "operator.token").read_text().strip()
        door = f.door()
        for path in ("/", "/events", "/status.json", "/metrics", "/grid.png", "/files/transparency.jsonl"):
            self.assertEqual(door.raw("GET", path).code, 401, path)
        self.assertEqual(door.raw("GET", "/login?token=wrong").code, 401)
        self.assertEqual(door.raw("GET", "/healthz").code, 200)
        bearer = {"Authorization": f"Bearer {token}"}
        self.assertEqual(door.raw("GET", "/metrics", headers=bearer).code, 200)
        door.close()
        with Browser(PHONE) as browser:
            browser.go(f"https://{f.address}/")
            self.assertEqual(browser.run("return document.getElementById('steps')"), None)
            browser.go(f"https://{f.address}/login?token={token}")
            browser.wait("live", lambda: browser.text("link") == "live")
            self.assertEqual(browser.run("return location.pathname + location.search"), "/")
            self.assertEqual(browser.run("return document.cookie"), "", "a script could read the cookie")
            browser.check_manners(expected=("401",))


if __name__ == "__main__":
    fed.main()

# SPDX-License-Identifier: Apache-2.0
"""browser.py - a real Chromium without a window, and what every look at the page must find.

Exit 77 of a test that imports this: Chromium, its driver or python3-selenium is not installed.
"""

import base64
import json
import os
import shutil
import sys
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common import utils
except ImportError:
    print("python3-selenium is not installed")
    sys.exit(77)

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    print("chromium or chromium-driver is not installed")
    sys.exit(77)

PHONE, DESK = (360, 740), (960, 720)

# Everything with words of its own that can be seen: WCAG 2.1 AA wants 4.5 to 1, and 3 to 1 for large letters.
CONTRAST = r"""
const parse = c => c.match(/[\d.]+/g).map(Number);
const light = c => { const [r, g, b] = c.map(x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
                     return .2126 * r + .7152 * g + .0722 * b; };
const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
                      if (c.length < 4 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
const bad = [];
for (const e of document.body.querySelectorAll("*")) {
  if (!e.checkVisibility() || ["SCRIPT", "NOSCRIPT"].includes(e.tagName)) continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  const style = getComputedStyle(e), a = light(parse(style.color).slice(0, 3)), b = light(behind(e));
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05), size = parseFloat(style.fontSize);
  const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
  if (!(ratio >= (large ? 3 : 4.5))) bad.push([e.id || e.className || e.tagName, e.textContent.slice(0, 30), ratio]);
}
return bad;
"""
WIDE = r"""
const wide = [...document.body.querySelectorAll("*")].filter(e => e.checkVisibility() && !e.closest(".said") &&
  e.getBoundingClientRect().right > document.documentElement.clientWidth + .5);
const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
return [over, wide.map(e => e.id || e.className || e.tagName)];
"""


class Driver(Service):
    """The driver by its address: a bare Debian has no hosts file, and so no localhost."""

    @property
    def service_url(self):
        return f"http://127.0.0.1:{self.port}"

    def is_connectable(self):
        return utils.is_connectable(self.port, "127.0.0.1")


class Browser:
    """One window at one address. What it must not do is looked at in `check_manners`."""

    def __init__(self, size=PHONE, dark=False):
        options = Options()
        options.binary_location = CHROMIUM
        words = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors"]
        words += [
            "--remote-debugging-pipe",  # the driver would look for localhost too
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--force-device-scale-factor=1",
        ]
        if os.geteuid() == 0:
            words.append("--no-sandbox")
        for word in words:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Driver(DRIVER))
        self.origin, self.requests, self.console = None, [], []
        self.resize(size)
        self.paint(dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def resize(self, size):
        self.size = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 500},
        )

    def paint(self, dark):
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def go(self, url):
        self.origin = self.origin or "/".join(url.split("/")[:3])
        self.driver.get(url)

    def run(self, script):
        return self.driver.execute_script(script)

    def data(self, key):
        return self.run(f"return document.body.dataset[{json.dumps(key)}] || ''")

    def text(self, name):
        return self.run(
            f"const e = document.getElementById({json.dumps(name)}); return e.checkVisibility() ? e.innerText : ''"
        )

    def wait(self, what, condition, seconds=120):
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(
                    f"the page never showed: {what}; it shows {self.run('return document.body.innerText')!r}"
                )
            time.sleep(0.1)

    def gather(self):
        """Empties the browser's logs into ours."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        self.console += [(entry["level"], entry["message"]) for entry in self.driver.get_log("browser")]

    def check_manners(self, expected=()):
        """No word on the console (but those that hold one of `expected`), nothing asked of anybody else."""
        self.gather()
        said = [m for level, m in self.console if level != "INFO" and not any(e in m for e in expected)]
        assert not said, f"on the console: {said}"
        strangers = [u for u in self.requests if not u.startswith((self.origin + "/", "data:"))]
        assert self.requests and not strangers, f"asked somebody else: {strangers}"

    def check_layout(self):
        over, wide = self.run(WIDE)
        assert over <= 0 and not wide, f"at {self.size}: {over} pixels too wide: {wide}"
        for dark in (True, False):
            self.paint(dark)
            low = self.run(CONTRAST)
            assert not low, f"hard to read, {'dark' if dark else 'light'}: {low}"

    def photograph(self, path):
        height = self.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": self.size[0], "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))

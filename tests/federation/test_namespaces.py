#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_namespaces.py - a federation in which every machine has a network of its own, over a link that fails.

Usage: test_namespaces.py FEDKT PLAN [test...]

One network namespace for the server and one for each site, joined by a bridge in a namespace between them. In the
middle of the round one site's link goes down for some seconds, and another's loses packets (tc netem, where the kernel
has it). Needs root and network namespaces; says so and is skipped where it cannot.
"""

import contextlib
import ctypes
import functools
import os
import random
import subprocess
import threading
import unittest

import fed
from pace import Pace


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=30)


def inside(space, look):
    """What `look` gives in a network namespace: a thread may live in another one than its process."""
    said = []

    def go():
        with open(f"/run/netns/{space}") as door:
            if ctypes.CDLL(None, use_errno=True).setns(door.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        try:
            said.append(look())
        except Exception as error:  # goes to whoever asked
            said.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    if not said or isinstance(said[0], Exception):
        raise said[0] if said else OSError("no such network namespace")
    return said[0]


class Net:
    """10.77.0.1 is the server, 10.77.0.(10+i) is site i."""

    def __init__(self, sites):
        self.tag = f"fk{os.getpid() % 10000}{random.randrange(100)}"
        self.spaces, self.sites = [], sites

    def space(self, name):
        return f"{self.tag}-{name}"

    def must(self, *words):
        done = ip(*words)
        if done.returncode != 0:
            raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def machine(self, name, address):
        inside = ("-n", self.space(name))
        self.must("netns", "add", self.space(name))
        self.spaces.append(self.space(name))
        self.must("-n", self.space("hub"), "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns",
                  self.space(name))  # fmt: skip
        self.must("-n", self.space("hub"), "link", "set", f"to-{name}", "master", "bridge", "up")
        self.must(*inside, "link", "set", "lo", "up")
        self.must(*inside, "addr", "add", f"{address}/24", "dev", "eth0")
        self.must(*inside, "link", "set", "eth0", "up")

    def build(self):
        self.must("netns", "add", self.space("hub"))
        self.spaces.append(self.space("hub"))
        self.must("-n", self.space("hub"), "link", "add", "bridge", "type", "bridge")
        self.must("-n", self.space("hub"), "link", "set", "bridge", "up")
        self.machine("server", "10.77.0.1")
        for i in range(self.sites):
            self.machine(f"site{i}", f"10.77.0.{10 + i}")

    def tear_down(self):
        for name in reversed(self.spaces):
            ip("netns", "del", name)

    def within(self, name):
        return ("ip", "netns", "exec", self.space(name))

    def link(self, name, state):
        self.must("-n", self.space("hub"), "link", "set", f"to-{name}", state)

    def lossy(self, name, percent):
        """True where the kernel can lose packets on purpose."""
        words = [*self.within(name), "tc", "qdisc", "add", "dev", "eth0", "root", "netem", "loss", f"{percent}%"]
        with contextlib.suppress(OSError):
            return subprocess.run(words, capture_output=True, timeout=30).returncode == 0
        return False


class Apart(fed.Case):
    SITES = 5

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("network namespaces need root")
        self.net = Net(self.SITES)
        self.addCleanup(self.net.tear_down)
        try:
            self.net.build()
        except OSError as error:
            self.skipTest(f"no network namespaces here: {error}")

    def federation(self, **more):
        f = super().federation(**more)
        f.within = functools.partial(inside, self.net.space("server"))
        return f

    def test_links_that_fail(self):
        f = self.federation(sites=self.SITES, phase=60, gather=120, host="10.77.0.1", seed=3)
        lossy = self.net.lossy("site3", 5)
        f.serve(prefix=self.net.within("server"))
        f.monitor = {"Authorization": "Bearer " + (f.folder / "state" / "operator.token").read_text().strip()}
        for i in range(self.SITES - 1):
            f.join(i, prefix=self.net.within(f"site{i}"))
        f.seen("four wait", lambda s: s["ready"] == self.SITES - 1)
        pace = Pace(f, first=0, second=1)
        f.join(self.SITES - 1, prefix=self.net.within(f"site{self.SITES - 1}"))
        pace.arrive("advertise")
        self.net.link("site2", "down")
        up = threading.Timer(4, self.net.link, ("site2", "up"))
        up.start()
        self.addCleanup(up.join)
        pace.gone = 0
        pace.go_on()
        pace.let_go()
        self.assertEqual(self.released(f), list(range(self.SITES)), f"packets lost on purpose: {lossy}")
        self.sites_end(f, range(self.SITES))


if __name__ == "__main__":
    fed.main()

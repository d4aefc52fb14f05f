# SPDX-License-Identifier: Apache-2.0
"""rounds.py - the server's loop: Flower's grid on one side, `fedkt.TaskServer` on the other.

A node is in one of three states:

    asked     a message is on its way to it, and its reply is awaited
    holding   its request is here, and there is nothing to answer yet; it counts as present
    idle      it has failed or not been asked; it is asked (again) when its pause is over

Every message to a node costs Flower a new process there, so a request is held until there is a message for its site,
the task is over, or `hold` seconds have passed. Everything is settled on disk before an answer leaves.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
import threading
import time

from flwr.app import Message

import fedkt

from . import envelope

OVER = ("released", "given-up")
NODES_EVERY = 1.0
PAUSE = 2.0
log = logging.getLogger("flwr")


@dataclasses.dataclass
class Node:
    """A node of Flower as the server knows it. message: the id of the one that awaits a reply. request: the one that
    awaits an answer, taken: what became of its data. done: it has been told how the task ended."""

    id: int
    nonce: bytes = b""
    message: str = ""
    request: envelope.Request | None = None
    taken: tuple[bytes, bool] | None = None
    since: float = 0.0
    pause_until: float = 0.0
    done: bool = False


@dataclasses.dataclass
class Traffic:
    """What was carried: messages each way, and bytes of fedkt's messages in them."""

    asked: int = 0
    heard: int = 0
    failed: int = 0
    refused: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class Rounds:
    """All rounds of a task. hold: see above; answer: how long a node may take for a reply; linger: how long the end
    waits for nodes that have not been told of it."""

    def __init__(self, grid, server, run, *, hold=60.0, answer=600.0, linger=120.0):
        self.grid, self.server, self.run = grid, server, run
        self.hold, self.answer, self.linger = hold, answer, linger
        self.task = bytes.fromhex(server.task.sha256)
        self.roster = fedkt.SecAggParams.of(server.task).roster
        self.nodes: dict[int, Node] = {}
        self.traffic = Traffic()
        self._looked = self._ended = None
        self._worker = None
        self._files: dict[str, bytes] = {}

    def until_over(self, pause=0.1):
        """Gives the view of the finished server."""
        while not self._finished():
            self.step()
            time.sleep(pause)
        self.server.settle()
        return self.server.view()

    def step(self):
        self.server.tick(int(time.time() * 1000))
        now = time.monotonic()
        self._look(now)
        self._hear(now)
        self._work()
        self._answer(now)

    def _finished(self):
        if self.server.view()["stage"] not in OVER or self._worker is not None:
            return False
        self._ended = self._ended or time.monotonic()
        late = time.monotonic() - self._ended > self.linger
        return late or all(node.done for node in self.nodes.values())

    # ---- nodes ----

    def _look(self, now):
        """Who is connected. A node that is gone holds no request: its site is not present."""
        if self._looked is not None and now - self._looked < NODES_EVERY:
            return
        self._looked = now
        online = set(self.grid.get_node_ids())
        for id in online - set(self.nodes):
            self.nodes[id] = Node(id)
        for id in set(self.nodes) - online:
            node = self.nodes.pop(id)
            if node.message:
                log.info("fedkt: a node has gone while it was asked")

    def _fail(self, node, now, why):
        log.warning("fedkt: %s", why)
        node.request, node.pause_until = None, now + PAUSE

    # ---- in ----

    def _hear(self, now):
        asked = {node.message: node for node in self.nodes.values() if node.message}
        for reply in self.grid.pull_messages(list(asked)) if asked else ():
            node = asked.pop(reply.metadata.reply_to_message_id, None)
            if node is None:
                continue
            node.message = ""
            if reply.has_error():
                self.traffic.failed += 1
                self._fail(node, now, f"a node has answered with error {reply.error.code}")
            else:
                self._take(node, reply, now)

    def _take(self, node, reply, now):
        try:
            request = envelope.read_request(reply.content, self.task, self.run, node.nonce, self.roster)
        except envelope.EnvelopeError as error:
            self.traffic.refused += 1
            self._fail(node, now, str(error))
            return
        for other in self.nodes.values():  # a site that has moved to another node is asked there
            if other is not node and other.request is not None and other.request.site == request.site:
                self._fail(other, now, f"two nodes speak for site {request.site}")
        self.traffic.heard += 1
        node.request, node.since, node.taken = request, now, None
        if request.data:
            self.traffic.bytes_in += len(request.data)
            node.taken = (hashlib.sha256(request.data).digest(), self._deliver(request))
        node.done = request.wants == "ended"

    def _deliver(self, request):
        try:
            return self.server.deliver(request.site, request.data)
        except fedkt.PeerError as error:
            log.warning("fedkt: site %d: %s", request.site, error)
            return False

    # ---- work ----

    def _work(self):
        if self._worker is None and self.server.has_work():
            found = []
            thread = threading.Thread(target=lambda: found.append(self.server.work()), name="fedkt-work")
            thread.start()
            self._worker = (thread, found)
        if self._worker is not None and not self._worker[0].is_alive():
            (_, found), self._worker = self._worker, None
            self.server.worked(found[0])

    # ---- out ----

    def _answer(self, now):
        due = []
        for node in self.nodes.values():
            if node.done or node.message or now < node.pause_until:
                continue
            if node.request is None:
                due.append((node, None))
                continue
            message = self.server.collect(node.request.site, *node.request.has)
            held = now - node.since > self.hold
            if message.data or message.lost is not fedkt.Status.OK or message.stage in OVER or held:
                due.append((node, message))
        self.server.settle()
        for node, message in due:
            self._send(node, message)

    def _send(self, node, message):
        node.nonce = os.urandom(envelope.NONCE)
        over = message is not None and message.stage in OVER
        answer = envelope.Answer(
            self.task, node.nonce, message, self.server.head(), node.taken if message is not None else None,
            self._result() if over else {},
        )  # fmt: skip
        sent = Message(envelope.write_answer(answer), node.id, envelope.MESSAGE_TYPE, ttl=self.answer)
        node.message = (list(self.grid.push_messages([sent])) or [None])[0] or ""
        if not node.message:
            self._fail(node, time.monotonic(), "Flower has not taken a message")
            return
        node.request = None
        self.traffic.asked += 1
        self.traffic.bytes_out += (len(message.data) if message is not None else 0) + sum(map(len, answer.files.values()))

    def _result(self):
        """The public files of the finished task, read once."""
        if not self._files:
            paths = {name: self.server.file(name) for name in envelope.FILES}
            self._files = {name: open(path, "rb").read() for name, path in paths.items() if path}
        return self._files

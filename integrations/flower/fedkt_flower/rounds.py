# SPDX-License-Identifier: Apache-2.0
"""rounds.py - the server's loop: Flower's grid on one side, the tasks of the run (served.py) on the other.

A node is in one of three states:

    asked     a message is on its way to it, and its reply is awaited
    holding   its request is here, and there is nothing to answer yet; it counts as present
    idle      it has failed or not been asked; it is asked (again) when its pause is over

Every message to a node costs Flower a new process there, so a request is held until there is a message for its site,
the task is over, or `hold` seconds have passed. Everything is settled on disk before an answer leaves.

A run has one task, or those of all cohorts of a task in cohorts. Flower does not know which site a node is, so the first
message to a node names what all tasks of the run have in common, and the node's signed reply says which one it is in:
only the task whose roster has its key accepts the signature.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
import time

from flwr.app import Message

from . import envelope
from .served import OVER, Served

NODES_EVERY = 1.0
PAUSE = 2.0
log = logging.getLogger("flwr")


@dataclasses.dataclass
class Node:
    """A node of Flower as the server knows it. message: the id of the one that awaits a reply. request: the one that
    awaits an answer, of the task `served`, taken: what became of its data. done: it has been told how the task ended."""

    id: int
    nonce: bytes = b""
    message: str = ""
    request: envelope.Request | None = None
    served: Served | None = None
    taken: tuple[bytes, bool] | None = None
    since: float = 0.0
    pause_until: float = 0.0
    done: bool = False

    def speaks_for(self, served, site):
        return self.request is not None and self.served is served and self.request.site == site


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
    """All rounds of all tasks of a run. servers: a `fedkt.TaskServer` for each; several are cohorts of one division.
    hold: see above; answer: how long a node may take for a reply; linger: how long the end waits for nodes that have not
    been told of it."""

    def __init__(self, grid, servers, run, *, hold=60.0, answer=600.0, linger=120.0):
        self.grid, self.run = grid, run
        self.hold, self.answer, self.linger = hold, answer, linger
        self.tasks = {served.hash: served for served in map(Served, servers)}
        self.rosters = {task: served.roster for task, served in self.tasks.items()}
        first = servers[0].task
        self.common = bytes.fromhex(first.sha256 if len(servers) == 1 else first.sum_sha256)
        self.nodes: dict[int, Node] = {}
        self.speaker: dict[tuple[bytes, int], Node] = {}  # who was heard last for a site of a task
        self.traffic = Traffic()
        self._looked = self._ended = None

    def until_over(self, pause=0.1):
        """Gives the views of the finished servers, in their order."""
        while not self._finished():
            self.step()
            time.sleep(pause)
        for served in self.tasks.values():
            served.server.settle()
        return [served.server.view() for served in self.tasks.values()]

    def step(self):
        for served in self.tasks.values():
            served.server.tick(int(time.time() * 1000))
        now = time.monotonic()
        self._look(now)
        self._hear(now)
        for served in self.tasks.values():
            served.work()
        self._answer(now)

    def _finished(self):
        if not all(served.over() for served in self.tasks.values()):
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
            node.request = None
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
            task, request = envelope.read_request(reply.content, self.run, node.nonce, self.rosters)
        except envelope.EnvelopeError as error:
            self.traffic.refused += 1
            self._fail(node, now, str(error))
            return
        served = self.tasks[task]
        before = self.speaker.get((task, request.site))
        if before is not None and before is not node and before.speaks_for(served, request.site):
            self._fail(before, now, f"two nodes speak for {served.name}site {request.site}")  # it has moved
        self.speaker[task, request.site] = node
        self.traffic.heard += 1
        node.served, node.request, node.since, node.taken = served, request, now, None
        if request.data:
            self.traffic.bytes_in += len(request.data)
            node.taken = (hashlib.sha256(request.data).digest(), served.deliver(request))
        node.done = request.wants == "ended"

    # ---- out ----

    def _answer(self, now):
        due = []
        for node in self.nodes.values():
            if node.done or node.message or now < node.pause_until:
                continue
            if node.request is None:
                due.append((node, None))
                continue
            message = node.served.answer_to(node.request, now - node.since > self.hold)
            if message is not None:
                due.append((node, message))
        for served in self.tasks.values():
            served.server.settle()
        for node, message in due:
            self._send(node, message)

    def _send(self, node, message):
        node.nonce = os.urandom(envelope.NONCE)
        if message is None:
            answer = envelope.Answer(self.common, node.nonce)
        else:
            served, files = node.served, {}
            if message.stage in OVER:
                files = served.files()
            answer = envelope.Answer(served.hash, node.nonce, message, served.server.head(), node.taken, files)
        sent = Message(envelope.write_answer(answer), node.id, envelope.MESSAGE_TYPE, ttl=self.answer)
        node.message = (list(self.grid.push_messages([sent])) or [None])[0] or ""
        if not node.message:
            self._fail(node, time.monotonic(), "Flower has not taken a message")
            return
        node.request = None
        self.traffic.asked += 1
        self.traffic.bytes_out += (len(message.data) if message is not None else 0) + sum(map(len, answer.files.values()))

# SPDX-License-Identifier: Apache-2.0
"""local_grid.py - a grid of Flower in this process: the ClientApp runs for every message, as the engine would run it."""

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fedkt_flower import client

RUN = 99
TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, 1, 1  # Flower sets them when a process starts


class LocalGrid(Grid):
    """Runs the ClientApp for every message, here. change(i, reply): the reply of node i as it arrives; None: never."""

    def __init__(self, nodes, change=lambda i, reply: reply):
        self.contexts = {i: Context(RUN, i, node, RecordDict(), {}) for i, node in enumerate(nodes, 1000)}
        self.change, self.replies, self.online = change, {}, set(self.contexts)
        self.sent = 0

    def set_run(self, run):
        raise NotImplementedError

    run = property(lambda self: None)

    def create_message(self, *words, **more):
        raise NotImplementedError

    def get_node_ids(self):
        return sorted(self.online)

    def push_messages(self, messages):
        return [self._push(message) for message in messages]

    def _push(self, message):
        self.sent += 1
        name, node = f"m{self.sent}", message.metadata.dst_node_id
        for field, value in {"_message_id": name, "_run_id": RUN}.items():
            message.metadata.__dict__[field] = value
        try:
            reply = client.app(message, self.contexts[node])
        except Exception as error:
            reply = Message(Error(0, str(error)), reply_to=message)
        reply = self.change(node - 1000, reply)
        if reply is not None:
            self.replies[name] = reply
        return name

    def pull_messages(self, message_ids):
        return [self.replies.pop(name) for name in message_ids if name in self.replies]

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError

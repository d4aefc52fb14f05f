# SPDX-License-Identifier: Apache-2.0
"""stopping_client.py - the ClientApp for the test of a killed node: in an environment with FEDKT_TEST_STOP, the reply
with the masked vector never leaves; a file of that name says that it was made, and the test then kills the node."""

import os
import pathlib
import time

from flwr.clientapp import ClientApp

from fedkt_flower import envelope
from fedkt_flower.client import exchange


def stop(message, context, call_next):
    reply = call_next(message, context)
    record, mark = reply.content[envelope.RECORD], os.environ.get("FEDKT_TEST_STOP")
    if mark and record["after"] >= 3 and record["data"]:
        pathlib.Path(mark).touch()
        time.sleep(60)
        os._exit(1)
    return reply


app = ClientApp(mods=[stop])
app.query()(exchange)

# SPDX-License-Identifier: Apache-2.0
"""client.py - the ClientApp: hears what the server says, answers with the site's signed request.

Flower sends the text of an exception to the server. Ours may name files, classes and numbers of records, so they end
here, in the node's own log; the server learns that there was one, and asks again later."""

from __future__ import annotations

import logging

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from . import envelope
from .site import Site

log = logging.getLogger("flwr")
app = ClientApp()


class ExchangeError(RuntimeError):
    """What the server may know of a failure."""


@app.query()
def exchange(message: Message, context: Context) -> Message:
    try:
        return Message(_answer(message, context), reply_to=message)
    except Exception:
        log.exception("fedkt: the exchange has failed")
    raise ExchangeError("the site's own log says why")  # outside: it must not carry the other one as its context


def _answer(message, context):
    with Site(context.node_config, context.run_config) as site:
        answer = envelope.read_answer(message.content, site.hash, site.common)
        site.hear(answer)
        request = site.ask()
        log.info("fedkt: site %d, stage %s, %s", request.site, site.client.view()["stage"], request.wants)
        return envelope.write_request(request, site.hash, message.metadata.run_id, answer.nonce, site.key.secret)

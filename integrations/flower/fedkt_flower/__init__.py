# SPDX-License-Identifier: Apache-2.0
"""fedkt's rounds inside Flower: `server.app` is a ServerApp, `client.app` a ClientApp (docs/flower.md).

    envelope    what their messages contain, and how a site signs
    site        what a site has: files, moments, its machine; one exchange
    client      the ClientApp: an exchange for each message
    served      the server's side of one task
    rounds      the server's loop: asks nodes, hears them, answers
    server      the ServerApp: one task, or all cohorts of one and their sum
"""

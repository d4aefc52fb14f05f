# SPDX-License-Identifier: Apache-2.0
"""loopback.py - an HTTPS server on loopback in a thread: what the tests' own servers stand on."""

import http.server
import ssl
import threading


class Loopback:
    """`handler` is a BaseHTTPRequestHandler; `newest` the latest TLS version, None: any. `stop` is set at the end.

    `impostor` is another certificate and its key, shown to the connections whose numbers (from 1) are in `betrayed`.
    """

    def __init__(self, handler, certificate, key, newest=None, impostor=None):
        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, address):
                pass

        class Quiet(handler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

        self.stop = threading.Event()
        self.server = Server(("127.0.0.1", 0), Quiet)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if newest:
            context.maximum_version = newest
        self.handshakes, self.betrayed = 0, set()
        if impostor:
            other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            other.load_cert_chain(*impostor)

            def choose(connection, _name, _context):
                self.handshakes += 1
                if self.handshakes in self.betrayed:
                    connection.context = other

            context.num_tickets = 0  # each connection begins with a certificate, not with an earlier one's secret
            context.sni_callback = choose
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.address = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()

# SPDX-License-Identifier: Apache-2.0
"""planted_packaging.py - check_packaging.py must report each fault, and none in packaging/ as it is.

Usage: planted_packaging.py FEDKT
"""

import pathlib
import sys

from planted import ROOT, PlantedFaults

FILES = ("packages.txt", ".dockerignore", "packaging/Dockerfile", "packaging/systemd/fedkt-serve@.service",
         "packaging/systemd/fedkt-join@.service")  # fmt: skip
DOCKER, SERVE, JOIN = FILES[2:]
CASES = [
    ("root in the image", DOCKER, "USER 10001:10001", "USER root", "runs as root"),
    ("no user in the image", DOCKER, "USER 10001:10001", "", "runs as root"),
    ("another base", DOCKER, "FROM debian:bookworm-slim\n", "FROM debian:latest\n", "built from"),
    ("something fetched", DOCKER, "EXPOSE 8443", "ADD https://example.org/x /x", "fetches something"),
    ("a key in the image", DOCKER, "EXPOSE 8443", "COPY site.key /", "copies a secret"),
    ("no health check", DOCKER, "HEALTHCHECK", "LABEL", "no HEALTHCHECK"),
    ("keys sent to the builder", ".dockerignore", "**/*.key", "", "'**/*.key' is not in it"),
    ("a unit that may gain rights", SERVE, "NoNewPrivileges=yes", "NoNewPrivileges=no", "NoNewPrivileges"),
    ("a unit that may write anywhere", JOIN, "ProtectSystem=strict", "ProtectSystem=full", "ProtectSystem"),
    ("a unit as root", JOIN, "User=fedkt", "User=root", "runs as root"),
    ("a unit that may call anything", SERVE, "SystemCallFilter=@system-service\n", "", "SystemCallFilter"),
    ("a unit with every kind of socket", SERVE, "RestrictAddressFamilies=", "#", "RestrictAddressFamilies"),
    ("a unit that starts a lost task for ever", SERVE, "ExitStatus=2 3", "ExitStatus=2", "RestartPreventExitStatus"),
    ("an option that does not exist", SERVE, "--listen", "--lisstenn", "has no option '--lisstenn'"),
    ("a verb that does not exist", SERVE, "fedkt serve", "fedkt swerve", "no verb 'swerve'"),
]


def main():
    faults = PlantedFaults()
    files = {name: (ROOT / name).read_text() for name in FILES}
    check = ROOT / "tests/conventions/check_packaging.py"
    command = [sys.executable, check, pathlib.Path(sys.argv[1]).resolve(), "{tree}"]
    faults.run("as it is", command, files, 0)
    for title, name, old, new, says in CASES:
        if old not in files[name]:
            sys.exit(f"planted_packaging.py: '{old}' is not in {name}")
        faults.run(title, command, files | {name: files[name].replace(old, new)}, 1, says)
    return faults.done()


if __name__ == "__main__":
    sys.exit(main())

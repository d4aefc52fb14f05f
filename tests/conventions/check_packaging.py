#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_packaging.py - Dockerfile, packages and systemd units, without a container or a running systemd.

Usage: check_packaging.py FEDKT [ROOT]      exit 0: all holds, 1: differences on stdout

  Dockerfile   has one base, does not run as root, copies no secrets, fetches nothing
  packages     [run] of packages.txt is exactly what the binary is linked with, by the package database of this machine,
               and what the Dockerfile needs in addition
  units        hardened as listed below; `systemd-analyze verify` finds no fault and `systemd-analyze security` an
               exposure of at most 2.5 (where systemd is installed)
  command lines of units and Dockerfile use options that `fedkt VERB --help` lists
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

IN_ADDITION = {"ca-certificates", "curl"}  # trust anchors of a fetch; the health check
BASE = "debian:bookworm-slim"
EVERY_UNIT = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectControlGroups": "yes",
    "ProtectProc": "invisible",
    "RestrictNamespaces": "yes",
    "RestrictSUIDSGID": "yes",
    "LockPersonality": "yes",
    "CapabilityBoundingSet": "",
    "SystemCallArchitectures": "native",
    "Restart": "on-failure",
    "RestartPreventExitStatus": "2 3",  # misuse; the task is over: a new start changes nothing
    "UMask": "0077",
    "StateDirectoryMode": "0700",
    "LimitCORE": "0",
}
EXPOSURE = 2.5


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


def sections(path):
    found, name = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line.split("#")[0].strip():
            found.setdefault(name, set()).add(line.split("#")[0].strip())
    return found


def instructions(path):
    """(word, rest) of each instruction of a Dockerfile."""
    text = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", path.read_text()))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def check_dockerfile(root, complain):
    steps = instructions(root / "packaging/Dockerfile")
    bases = [rest.split()[0] for word, rest in steps if word == "FROM"]
    if set(bases) != {BASE} or len(bases) != 2:
        complain(f"Dockerfile: built from {bases}, not twice from {BASE}")
    last = max(i for i, (word, _) in enumerate(steps) if word == "FROM")
    users = [rest for word, rest in steps[last:] if word == "USER"]
    if not users or users[-1].split(":")[0] in ("0", "root"):
        complain("Dockerfile: the last stage runs as root")
    elif steps.index(("USER", users[-1])) > max(i for i, s in enumerate(steps) if s[0] == "ENTRYPOINT"):
        complain("Dockerfile: USER comes after ENTRYPOINT")
    for word, rest in steps:
        if word == "ADD" or re.search(r"https?://(?!127\.0\.0\.1)", rest):
            complain(f"Dockerfile: '{word} {rest}' fetches something")
        if word == "COPY" and re.search(r"\.key\b|\.state\b", rest):
            complain(f"Dockerfile: '{word} {rest}' copies a secret")
    if not any(word == "HEALTHCHECK" for word, _ in steps[last:]):
        complain("Dockerfile: no HEALTHCHECK")
    ignored = (root / ".dockerignore").read_text().split()
    for name in (".git", "build", "**/*.key"):
        if name not in ignored:
            complain(f".dockerignore: '{name}' is not in it")


def owners_of(libraries):
    """Library -> the package that holds it, or None; Debian may know a file with or without /usr."""
    ways = {}
    for library in libraries:
        real = os.path.realpath(library)
        ways |= {path: library for path in (real, real.removeprefix("/usr"), "/usr" + real)}
    owners = dict.fromkeys(libraries)
    for line in run("dpkg-query", "-S", *ways).stdout.splitlines():
        package, _, path = line.partition(": ")
        if path in ways:
            owners[ways[path]] = package.split(":")[0]
    return owners


def check_packages(root, fedkt, complain):
    if not shutil.which("dpkg-query") or not shutil.which("ldd") or not shutil.which("readelf"):
        return "packages not compared: this is not Debian"
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", fedkt).stdout)
    if any(re.match(r"lib(asan|ubsan|tsan)", name) for name in needed):
        return "packages not compared: a build with sanitizers"
    where = dict(re.findall(r"(\S+) => (\S+)", run("ldd", fedkt).stdout))
    owners = owners_of([where[name] for name in needed if name in where])
    lost = sorted(path for path, package in owners.items() if not package)
    if lost or not owners:
        return f"packages not compared: no package has {', '.join(lost) or 'anything'}"
    wanted = set(owners.values()) - {"libc6"} | IN_ADDITION
    listed = sections(root / "packages.txt")["run"]
    if wanted != listed:
        complain(f"packages.txt [run]: lacks {sorted(wanted - listed)}, has too much {sorted(listed - wanted)}")
    return None


def settings(path):
    found = {}
    for line in path.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value)
    return found


def check_options(words, fedkt, where, complain):
    """`fedkt VERB --option ...` uses what the verb's help lists."""
    verb = words[0]
    done = run(fedkt, verb, "--help")
    if done.returncode:
        complain(f"{where}: there is no verb '{verb}'")
        return
    listed = set(re.findall(r"--[a-z][a-z-]*", done.stdout))
    for word in words[1:]:
        if word.startswith("--") and word not in listed:
            complain(f"{where}: 'fedkt {verb}' has no option '{word}'")


def check_units(root, fedkt, complain):
    remarks = []
    for path in sorted((root / "packaging/systemd").glob("*.service")):
        have = settings(path)
        for key, value in EVERY_UNIT.items():
            if have.get(key) != [value]:
                complain(f"{path.name}: {key}={value} is wanted, {have.get(key)} is there")
        if "DynamicUser" not in have and have.get("User", ["root"]) == ["root"]:
            complain(f"{path.name}: it runs as root")
        if "AF_INET AF_INET6" not in have.get("RestrictAddressFamilies", [""])[0]:
            complain(f"{path.name}: RestrictAddressFamilies= is missing")
        if "@system-service" not in have.get("SystemCallFilter", []):
            complain(f"{path.name}: SystemCallFilter=@system-service is missing")
        command = have["ExecStart"][0].split()
        if command[0] != "/usr/bin/fedkt":
            complain(f"{path.name}: ExecStart= runs '{command[0]}'")
        check_options(command[1:], fedkt, path.name, complain)
        remarks.append(check_with_systemd(path, complain))
    return next(filter(None, remarks), None)


def check_with_systemd(path, complain):
    if not shutil.which("systemd-analyze"):
        return "units not checked with systemd-analyze: it is not installed"
    with tempfile.TemporaryDirectory(prefix="fedkt-units-") as name:
        unit = pathlib.Path(name) / path.name
        unit.write_text(path.read_text().replace("/usr/bin/fedkt", "/bin/true").replace("User=fedkt", "User=daemon"))
        unit.write_text(unit.read_text().replace("Group=fedkt", "Group=daemon"))
        done = run("systemd-analyze", "verify", "--man=no", str(unit))
        ours = [line for line in done.stderr.splitlines() if path.stem.split("@")[0] in line]
        if done.returncode or ours:
            complain(f"{path.name}: systemd-analyze verify: {done.stderr.strip()}")
        done = run("systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit))
        level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
        if not level:
            return "exposure not checked: this systemd cannot compute it offline"
        if not float(level[1]) <= EXPOSURE:
            complain(f"{path.name}: exposure {level[1]}, at most {EXPOSURE}")
    return None


def main():
    fedkt = sys.argv[1]
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2])
    wrong = []
    check_dockerfile(root, wrong.append)
    remarks = [check_packages(root, fedkt, wrong.append), check_units(root, fedkt, wrong.append)]
    print("\n".join(wrong + [r for r in remarks if r]) or "image, packages and units are as they must be")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_signatures.py - a stranger's tools agree with ours about hash, signature and proof.

Usage: run_signatures.py FEDKT      exit 0: all well, 1: not, 77: there is no openssl

Everything is computed here from docs/formats.md alone: the canonical text with Python's own JSON and a rule for reals,
the digest with hashlib, Ed25519 with the program `openssl`. What fedkt signs must be right there, what is signed there
must be right for fedkt, and what was changed must be wrong for both.
"""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PUBLIC_HEAD = bytes.fromhex("302a300506032b6570032100")  # SubjectPublicKeyInfo of Ed25519, RFC 8410
SECRET_HEAD = bytes.fromhex("302e020100300506032b657004220420")
ADDRESS = "https://fedkt.example.org:8443"


def real(x):
    """17 significant digits, always a point or an exponent, no plus and no zeros before the exponent's digits."""
    text = f"{x:.17g}"
    if "e" in text:
        digits, exponent = text.split("e")
        text = f"{digits}e{int(exponent)}"
    return text if "." in text or "e" in text else text + ".0"


def canonical(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return real(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def digest(label, *parts):
    """docs/protocol.md 2.1"""
    text = bytes([len(label)]) + label.encode()
    for part in parts:
        text += len(part).to_bytes(8, "little") + part
    return hashlib.blake2b(text, digest_size=32).digest()


class Trial:
    def __init__(self, fedkt, folder):
        self.fedkt, self.folder, self.bad, self.looks = pathlib.Path(fedkt).resolve(), pathlib.Path(folder), 0, 0

    def run(self, *words):
        return subprocess.run([self.fedkt, *words], cwd=self.folder, capture_output=True, text=True, check=False)

    def must(self, *words):
        done = self.run(*words)
        if done.returncode:
            sys.exit(f"fedkt {' '.join(words)}: {done.stderr}")
        return done.stdout

    def json(self, name):
        return json.loads((self.folder / name).read_text())

    def write(self, name, document):
        (self.folder / name).write_text(json.dumps(document, ensure_ascii=False))
        return name

    def want(self, truth, what):
        self.looks += 1
        if not truth:
            print(f"wrong: {what}")
            self.bad = 1

    def openssl(self, *words):
        return subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, check=False)

    def right(self, key, message, signature):
        """What openssl says of a signature."""
        (self.folder / "k.der").write_bytes(PUBLIC_HEAD + bytes.fromhex(key))
        (self.folder / "message").write_bytes(message)
        (self.folder / "signature").write_bytes(bytes.fromhex(signature))
        words = "pkeyutl -verify -pubin -keyform DER -inkey k.der -rawin -in message -sigfile signature"
        return self.openssl(*words.split()).returncode == 0

    def sign(self, seed, message):
        (self.folder / "s.der").write_bytes(SECRET_HEAD + seed)
        (self.folder / "message").write_bytes(message)
        words = "pkeyutl -sign -keyform DER -inkey s.der -rawin -in message -out signature"
        if self.openssl(*words.split()).returncode:
            sys.exit("openssl cannot sign")
        return (self.folder / "signature").read_bytes().hex()


def check_sites(trial):
    for name, called in {"operator": None, "north": "Hôpital Saint-Louis", "south": "South", "east": "東"}.items():
        trial.must("keygen", "--out", f"{name}.key", *(["--name", called] if called else []))
        site = trial.json(f"{name}.key.pub")
        message = digest("fedkt-site-1", site["name"].encode(), bytes.fromhex(site["key"]))
        trial.want(trial.right(site["key"], message, site["proof"]), f"the proof of {name}")
        other = digest("fedkt-site-1", b"another", bytes.fromhex(site["key"]))
        trial.want(not trial.right(site["key"], other, site["proof"]), f"the proof of {name} under another name")
        secret = bytes.fromhex(trial.json(f"{name}.key")["secret"])
        trial.want(trial.sign(secret[:32], message) == site["proof"], "the seed is RFC 8032's")
        trial.want(secret[32:].hex() == site["key"], "the public key after the seed")
    site["name"] = "made elsewhere"
    site["proof"] = trial.sign(secret[:32], digest("fedkt-site-1", b"made elsewhere", secret[32:]))
    trial.must("enroll", "--roster", "other.txt", trial.write("elsewhere.pub", site))
    site["name"] = "changed"
    refused = trial.run("enroll", "--roster", "other.txt", trial.write("elsewhere.pub", site))
    trial.want(refused.returncode == 1 and "proof is invalid" in refused.stderr, "a name that the proof is not for")


def check_task(trial, *extra):
    """A signed task with these options."""
    words = ["--classes", 'a/b,c"d,é', "--epsilon", "1", "--delta", "1e-5", "--codec", "dct", "--dim", "8"]
    words += ["--key", "operator.key"]
    trial.must("task", "new", *words, *extra, "--out", "task.json", "--force")
    task = trial.json("task.json")
    signature = task.pop("signature")
    told = json.loads(trial.must("task", "verify", "--task", "task.json", "--json"))
    value = hashlib.sha256(canonical(task).encode()).digest()
    trial.want(value.hex() == told["sha256"], f"the hash of a task with {extra}")
    trial.want(signature["key"] == trial.json("operator.key.pub")["key"], "the key beside the signature")
    trial.want(trial.right(signature["key"], digest("fedkt-task-1", value), signature["bytes"]), "a task's signature")
    trial.want(not trial.right(signature["key"], value, signature["bytes"]), "a signature over the bare hash")
    seed = bytes.fromhex(trial.json("north.key")["secret"])[:32]
    foreign = {"key": trial.json("north.key.pub")["key"], "bytes": trial.sign(seed, digest("fedkt-task-1", value))}
    trial.write("foreign.json", {**task, "signature": foreign})
    trial.must("task", "verify", "--task", "foreign.json", "--operator", "north.key.pub")
    task["name"] = "changed"
    changed = trial.run("task", "verify", "--task", trial.write("changed.json", {**task, "signature": signature}))
    trial.want(changed.returncode == 1 and "is invalid" in changed.stderr, "a task that was changed")


def main():
    if not shutil.which("openssl"):
        return 77
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(sys.argv[1], folder)
        check_sites(trial)
        trial.must("enroll", "--roster", "roster", "south.key.pub", "east.key.pub", "north.key.pub")
        check_task(trial)
        check_task(trial, "--roster", "roster", "--records", "100")
        check_task(trial, "--roster", "roster", "--records", "100", "--server", ADDRESS, "--insecure-seed", "7")
    print(f"{trial.looks} looks")
    return trial.bad


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""http_auth.py - the signature of docs/http.md 2.1 in another hand: hashlib, and Ed25519 from Python's integers.

`http_auth.py FOLDER` writes FOLDER/http_auth.json: requests, the keys that sign them, and the header that results.
Where the program `openssl` is there, it is asked for its opinion of every signature before anything is written. Tests
that speak HTTP themselves take `header` from here.
"""

import hashlib
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import secagg_primitives as prim


def digest(label, *parts):
    """protocol.md 2.1, with the whole label."""
    data = bytes([len(label)]) + label + b"".join(struct.pack("<Q", len(p)) + p for p in parts)
    return hashlib.blake2b(data, digest_size=32).digest()


def signed(task, nonce, seq, site, method, target, body):
    inner = hashlib.sha256(body).digest()
    parts = (task, nonce, struct.pack("<Q", seq), struct.pack("<I", site), method.encode(), target.encode(), inner)
    return digest(b"fedkt-http-1", *parts)


def header(seed, task, nonce, seq, site, method, target, body=b""):
    sig = prim.ed25519_sign(seed, signed(task, nonce, seq, site, method, target, body))
    return f"Fedkt site={site}, nonce={nonce.hex()}, seq={seq}, sig={sig.hex()}"


def openssl_agrees(seed, message, sig):
    """RFC 8410: an Ed25519 public key as DER is twelve fixed bytes and the key."""
    with tempfile.TemporaryDirectory(prefix="fedkt-auth-") as name:
        folder = pathlib.Path(name)
        (folder / "key").write_bytes(bytes.fromhex("302a300506032b6570032100") + prim.ed25519_public(seed))
        (folder / "message").write_bytes(message)
        (folder / "sig").write_bytes(sig)
        args = "pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in message -sigfile sig".split()
        return subprocess.run(["openssl", *args], cwd=folder, capture_output=True, timeout=60).returncode == 0


def cases():
    task, nonce = hashlib.sha256(b"task").digest(), bytes(range(16))
    poll = "/v1/messages?round=-&after=0&wait=25"
    for seed, seq, site, method, target, body in (
        (1, 0, 0, "GET", "/v1/task", b""),
        (2, 1, 3, "GET", poll, b""),
        (3, 1753900000000000, 17, "POST", "/v1/messages", b"\x0a\x00"),
        (4, 2**63 - 1, 65535, "POST", "/v1/messages", bytes(range(256)) * 5),
        (5, 7, 2**32 - 1, "GET", "/v1/files/transparency.jsonl", b""),
    ):
        seed = hashlib.sha256(bytes([seed])).digest()
        line = header(seed, task, nonce, seq, site, method, target, body)
        yield {
            "seed": seed.hex(), "public": prim.ed25519_public(seed).hex(), "task": task.hex(), "nonce": nonce.hex(),
            "seq": seq, "site": site, "method": method, "target": target, "body": body.hex(),
            "digest": signed(task, nonce, seq, site, method, target, body).hex(), "header": line,
        }  # fmt: skip


def main():
    made = list(cases())
    for c in made:
        message, sig = bytes.fromhex(c["digest"]), bytes.fromhex(c["header"].rpartition("=")[2])
        assert prim.ed25519_verify(bytes.fromhex(c["public"]), message, sig)
        if shutil.which("openssl"):
            assert openssl_agrees(bytes.fromhex(c["seed"]), message, sig), "openssl does not believe it"
            assert not openssl_agrees(bytes.fromhex(c["seed"]), message[::-1], sig), "openssl believes anything"
    text = json.dumps({"cases": made}, indent=1) + "\n"
    (pathlib.Path(sys.argv[1]) / "http_auth.json").write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""corpus_http_client.py - seeds for fuzz_http_client: conversations as a site's courier hears them, a line for each
answer."""

NONCE = "0123456789abcdef" * 2
HASH = NONCE * 2


def title(word):
    return 'b={"title":"%s"}' % word


def files():
    letter = f"s=running r={NONCE}"
    talks = {
        "honest": [
            f"401 n={NONCE} {title('nonce')}",
            f"204 s=gathering a=1:{HASH}",
            f"200 {letter} i=1 b=yes a=4:{HASH}",
            "204 s=running",
            f"200 {letter} i=2 b=yes",
            "409 s=running",
            "204 s=running l=24",
            f"410 s=released a=9:{HASH}",
        ],
        "waits": [
            f"401 n={NONCE} f=5000 {title('nonce')}",
            f"401 n={NONCE} f=5000 {title('replayed')}",
            "503 w=7",
            "429 w=300",
            "500",
            "0 y=refused",
            "204 s=gathering",
        ],
        "refused": [f"200 {letter} i=1 b=yes", "422 s=running l=41", f"200 {letter} i=4 b=no"],
        "site-fails": [f"200 {letter} i=1 b=x"],
        "given-up": ["410 s=running", "410 s=given-up"],
        "bad-task": ["403 b={}"],
        "bad-signature": [f"401 n={NONCE} {title('nonce')}", f"401 n={NONCE} {title('signature')}"],
        "bad-floor": [f"401 f={1 << 62} n={NONCE}", f"401 n={NONCE} f={(1 << 63) - 1}", "401 f=-1", "204 s=gathering"],
        "bad-headers": [
            f"200 {letter} i=0 b=y",
            f"200 s=running r={HASH} i=1 b=y",
            f"200 {letter} i={1 << 32} b=y",
            f"200 {letter} i=1",
            "204 s=Running",
            "204 s=running l=0",
            f"204 s=running a=0:{HASH}",
            f"204 s=running a=1:{NONCE}",
        ],
        "empty": [],
    }
    return {name: "\n".join(lines).encode() for name, lines in talks.items()}

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""secagg.py - the aggregation protocol once more, written from docs/protocol.md alone.

Usage:
  secagg.py selftest                  building blocks against the vectors of their standards, then small rounds
  secagg.py play SPEC.json OUT.json   runs a round from given entropy and writes its transcript
  secagg.py verify TRANSCRIPT.json... checks a transcript: messages, signatures, coin, graph, total, and with the
                                      sites' secrets every byte; one line for each finding, exit status 1 if any
  secagg.py vectors DIR               writes the test vectors
  secagg.py examples                  prints the blocks of docs/protocol.md section 9

Standard library only. secagg_primitives.py holds section 2, secagg_wire.py the messages, secagg_rules.py sections 1, 4
and 5, secagg_parties.py section 3, secagg_transcript.py transcripts and the verifier, secagg_vectors.py and
secagg_refusals.py the vectors, secagg_examples.py section 9.
"""

import json
import pathlib
import sys

import secagg_selftest
import secagg_transcript


def play(spec, out):
    transcript = secagg_transcript.play(json.loads(pathlib.Path(spec).read_text()))
    pathlib.Path(out).write_text(json.dumps(transcript, indent=0) + "\n")
    return 0


def verify(*names):
    bad = 0
    for name in names:
        for finding in secagg_transcript.verify(json.loads(pathlib.Path(name).read_text())):
            print(f"{name}: {finding}")
            bad = 1
    return bad


def selftest():
    print(f"{secagg_selftest.primitives()} building blocks, {secagg_selftest.rounds()} rounds")
    return 0


def vectors(folder):
    import secagg_vectors

    return secagg_vectors.write(pathlib.Path(folder))


def examples():
    import secagg_examples

    for name, text in secagg_examples.blocks().items():
        print(f"<!-- example {name} -->\n```\n{text}```\n")
    return 0


def main():
    verbs = {  # the function, and how few and how many words it takes
        "selftest": (selftest, 0, 0),
        "play": (play, 2, 2),
        "verify": (verify, 1, 1000),
        "vectors": (vectors, 1, 1),
        "examples": (examples, 0, 0),
    }
    verb, *rest = sys.argv[1:] or [""]
    if verb not in verbs or not verbs[verb][1] <= len(rest) <= verbs[verb][2]:
        sys.stderr.write(__doc__)
        return 2
    return verbs[verb][0](*rest)


if __name__ == "__main__":
    sys.exit(main())

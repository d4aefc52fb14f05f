#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The discrete Gaussian N_Z(0, sigma^2), twice over, neither way that of src/privacy.

discrete_gaussian.json       the algorithm of discrete_gaussian.md on a ChaCha20 stream, every probability a Fraction
discrete_gaussian_tails.json the same on a stream that is not uniform, so that draws far out are frequent
privacy_discrete_bins.csv    exact probabilities of intervals of integers, from the definition at 50 digits

"discrete_gaussian.py check FOLDER" draws the committed vectors again and says whether they agree.
"""

import csv
import functools
import hashlib
import json
import math
import platform
import struct
import sys
from fractions import Fraction

import mpmath as mp

mp.mp.dps = 50
DRAWS = 200
TAIL_DRAWS = 300
STREAMS = 3  # of a lopsided source


class Digits:
    """32-bit digits, little-endian, of the ChaCha20 stream that a (seed, stream) pair names in entropy.h."""

    def __init__(self, seed, stream):
        name = b"fedkt seeded v1\0" + struct.pack("<QQ", seed, stream)
        self.key = struct.unpack("<8I", hashlib.blake2b(name, digest_size=32).digest())
        self.block, self.words, self.drawn = 0, [], 0

    def draw(self):
        if not self.words:
            self.words = chacha20_block(self.key, self.block)[::-1]
            self.block += 1
        self.drawn += 1
        return self.words.pop()


class Lopsided:
    """Digits in turn the bitwise AND and the bitwise OR of the same digit of several streams: small, large, small, ...
    An event of exp(-1) is a digit below 1/2 and then one that is not below 1/3, so that it nearly always happens, and
    what takes dozens of them in a row is drawn now and then. A sampler is a function of its digits: it must give the
    same numbers as ours on these as on any."""

    def __init__(self, seed, streams):
        self.streams, self.drawn = [Digits(seed, 100 + j) for j in range(streams)], 0

    def draw(self):
        digits = [stream.draw() for stream in self.streams]
        self.drawn += 1
        return functools.reduce(int.__and__ if self.drawn % 2 else int.__or__, digits)


def chacha20_block(key, counter):
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key, counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    x = list(start)

    def mix(a, b, c, d):
        for first, second, third, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[first] = (x[first] + x[second]) & 0xFFFFFFFF
            y = x[third] ^ x[first]
            x[third] = (y << turn | y >> (32 - turn)) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            mix(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            mix(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(a + b) & 0xFFFFFFFF for a, b in zip(x, start)]


def coin(src, p):
    """True with probability p: a uniform number whose digits are drawn while both answers are possible."""
    low, width = Fraction(0), Fraction(1)
    while True:
        width /= 1 << 32
        low += src.draw() * width
        if low >= p:
            return False
        if low + width <= p:
            return True


def exp_coin(src, gamma):
    """True with probability exp(-gamma), 0 <= gamma <= 1; a coin that is certain is not thrown."""
    k = 1
    while gamma / k == 1 or coin(src, gamma / k):
        k += 1
    return k % 2 == 1


def exp_many(src, gamma):
    """True with probability exp(-gamma): one event of exp(-1) for each whole, then one for the rest."""
    for _ in range(math.floor(gamma)):
        if not exp_coin(src, Fraction(1)):
            return False
    return exp_coin(src, gamma - math.floor(gamma))


def below(src, m):
    while True:
        d = src.draw()
        if d >= (1 << 32) % m:
            return d % m


def laplace(src, t):
    while True:
        u = below(src, t)
        if not exp_coin(src, Fraction(u, t)):
            continue
        v = 0
        while exp_coin(src, Fraction(1)):
            v += 1
        negative = src.draw() >> 31
        if negative and u + t * v == 0:
            continue
        return -(u + t * v) if negative else u + t * v


def draw(src, variance):
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        y = laplace(src, t)
        if exp_many(src, (abs(y) - variance / t) ** 2 / (2 * variance)):
            return y


def variances():
    yield from ((1, 62), (1, 10), (1, 4), (3, 4), (1, 1), (1, 0), (3, 1), (4, 0), (16, 0), (9, 0), (99, 2))
    yield from ((12345678901, 20), ((1 << 40) - 1, 26), (333333333333, 0), (10**17, 0), ((1 << 57) + 12345, 0))
    yield from (((1 << 62) - 1, 0), ((1 << 62) - 1, 62), ((1 << 61) + 1, 31), ((1 << 62) - (1 << 32), 2))


def draw_cases():
    for i, (num, shift) in enumerate(variances()):
        src = Digits(i, 7)
        draws = [draw(src, Fraction(num, 1 << shift)) for _ in range(DRAWS)]
        yield {"seed": i, "stream": 7, "num": num, "shift": shift, "draws": draws, "digits": src.drawn}


def tail_cases():
    some = ((1, 0), (99, 2), (1000001, 3), (12345678901, 20), ((1 << 40) - 1, 26))
    for i, (num, shift) in enumerate((*some, ((1 << 62) - 1, 0))):
        src, variance = Lopsided(i, STREAMS), Fraction(num, 1 << shift)
        draws = [draw(src, variance) for _ in range(TAIL_DRAWS)]
        far = [sum(sign * y > 0 and y * y > 36 * variance for y in draws) for sign in (-1, 1)]
        yield {
            "seed": i,
            "streams": STREAMS,
            "num": num,
            "shift": shift,
            "draws": draws,
            "digits": src.drawn,
            "far": far,
        }


def bin_rows():
    """sigma^2 as num and shift; bins of about sigma/8; the outermost hold at least 4e-6."""
    for num, shift in ((1, 4), (1, 2), (1, 0), (5, 0), (1000001, 3), (1429913989, 0)):
        var = mp.mpf(num) / 2**shift
        weight = lambda x: mp.exp(-mp.mpf(x) ** 2 / (2 * var))
        reach = int(mp.floor(mp.sqrt(var) * 16)) + 4
        width = max(1, int(mp.nint(mp.sqrt(var) / 8)))
        if reach < 200000:
            half = [weight(x) for x in range(reach + 1)]
            total = 2 * mp.fsum(half) - half[0]
            at_least = lambda n: mp.fsum(half[n:]) / total  # P(draw >= n), n > 0
        else:  # the lattice is out of sight: Euler-Maclaurin, whose next term is below 1e-17 of the tail here
            total = mp.sqrt(2 * mp.pi * var)
            slope = lambda n: mp.mpf(n) / var * weight(n) / 12
            at_least = lambda n: mp.ncdf(-mp.mpf(n) / mp.sqrt(var)) + (weight(n) / 2 + slope(n)) / total
        edge = 0
        while at_least(edge + width) >= mp.mpf(4) / 10**6:
            edge += width
        starts = list(range(-edge, edge + 1, width)) + ([edge + 1] if width == 1 else [])
        below_ = lambda n: at_least(1 - n) if n <= 0 else 1 - at_least(n)  # P(draw < n)
        edges = [None] + starts + [None]
        for lo, hi in zip(edges, edges[1:]):
            if hi is None:
                p = at_least(lo)
            elif lo is None:
                p = below_(hi)
            elif lo > 0:
                p = at_least(lo) - at_least(hi)
            else:
                p = below_(hi) - below_(lo)
            yield [num, shift, "-inf" if lo is None else lo, "inf" if hi is None else hi - 1, mp.nstr(p, 25)]


def sidecar(path, name, tool, what):
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    lines = {
        "file": name,
        "what": what,
        "made_by": f"oracle/{tool}",
        "command": f"/usr/bin/python3 oracle/{tool} make tests/vectors",
        "sha256": digest,
        "python": platform.python_version(),
        "mpmath": mp.__version__,
    }
    with open(path.rsplit(".", 1)[0] + ".md", "w") as f:
        f.write("".join(f"- {key}: {value}\n" for key, value in lines.items()))


def write_json(folder, name, what, cases, tool):
    path = f"{folder}/{name}"
    with open(path, "w") as f:
        f.write('{"cases": [\n' + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")
    sidecar(path, name, tool, what)


def write_csv(folder, name, what, header, rows, tool):
    path = f"{folder}/{name}"
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)
    sidecar(path, name, tool, what)


def check(folder):
    for name, drawn in (("discrete_gaussian", draw_cases), ("discrete_gaussian_tails", tail_cases)):
        with open(f"{folder}/{name}.json") as f:
            cases = json.load(f)["cases"]
        assert cases == list(drawn()), f"the vectors of {name}.json are not what the oracle draws"
        print(f"{name}: {len(cases)} cases agree")


def main():
    me, (verb, folder) = "discrete_gaussian.py", sys.argv[1:]
    if verb == "check":
        return check(folder)
    what = f"{DRAWS} draws of N_Z(0, num/2^shift) from the stream of (seed, stream), and the digits they took"
    write_json(folder, "discrete_gaussian.json", what, list(draw_cases()), me)
    what = (
        f"{TAIL_DRAWS} draws of N_Z(0, num/2^shift) from digits in turn the AND and the OR of the streams (seed, 100), "
        f"(seed, 101), ...; far: how many lie beyond six sigma below and above"
    )
    write_json(folder, "discrete_gaussian_tails.json", what, list(tail_cases()), me)
    what = "probability that N_Z(0, num/2^shift) lies in first..last"
    write_csv(
        folder, "privacy_discrete_bins.csv", what, ["num", "shift", "first", "last", "probability"], bin_rows(), me
    )


if __name__ == "__main__":
    main()

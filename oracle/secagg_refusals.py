# SPDX-License-Identifier: Apache-2.0
"""secagg_refusals.py - messages that must be refused: each is an altered one of a round that went well.

An entry says: play the round up to event `at`, deliver these bytes instead of the event's, and the receiver answers
with this status (docs/protocol.md 3.8). Where a liar needs a colluding site's keys, it has them.
"""

import copy

from secagg_primitives import ELL, IDENTITY, ed25519_sign, le, scalar_bytes, seal
from secagg_rules import Params, advert_hash, confirm_hash, seal_key, sides
from secagg_transcript import sites_of
from secagg_parties import Server
from secagg_wire import AUTH, FORMAT, STATE, TOO_FEW, TO_SERVER, TO_SITE, Refused
from secagg_wire import bitmap, bits_of, chunks, decode, encode, field, longest, varint

NOT_CANONICAL = (2**255 + 9).to_bytes(32, "little")
LOW_ORDER = (1).to_bytes(32, "little")
NO_POINT = b"\1" + bytes(31)
TOO_LARGE = ELL.to_bytes(32, "little")


def flip(data, at=0):
    out = bytearray(data)
    out[at] ^= 1
    return bytes(out)


class Scene:
    """A round just before event `at`: everyone's state, and the message that is due."""

    def __init__(self, transcript, at):
        self.params = Params.from_json(transcript["params"])
        self.sites = sites_of(self.params, transcript["secrets"])
        self.server = Server(self.params, bytes.fromhex(transcript["round"]))
        for event in transcript["events"][:at]:
            if "to" in event:
                self.sites[event["to"]].recv(bytes.fromhex(event["bytes"]))
            elif "from" in event:
                self.server.recv(event["from"], bytes.fromhex(event["bytes"]))
            else:
                self.server.close()
        event = transcript["events"][at]
        self.to_server, self.who = "from" in event, event.get("from", event.get("to"))
        self.data = bytes.fromhex(event["bytes"])
        self.kind, self.m = decode(self.to_server, self.data, len(self.data))
        self.view = self.sites[self.who].view

    def with_(self, **changes):
        return encode(self.to_server, self.kind, {**self.m, **changes})

    def sign(self, site, digest):
        return ed25519_sign(self.sites[site].signing_seed, digest)

    def advert(self, site, channel_key, mask_key):
        signature = self.sign(site, advert_hash(self.view.session, site, channel_key, mask_key))
        return channel_key + mask_key + signature

    def advert_with(self, which, channel_key=None, mask_key=None):
        """The adverts of Neighbours, one of them by a colluding neighbour."""
        around = chunks(self.m["adverts"], 128)
        present = bits_of(self.m["present"], self.params.degree, "")
        site = self.around()[present[which]]
        around[which] = self.advert(site, channel_key or around[which][:32], mask_key or around[which][32:64])
        return b"".join(around)

    def around(self):
        return [j for j in range(self.params.sites) if j != self.who]  # on a complete graph


# ---- the wire (2.4, 6): tricks that fit every message --------------------------------------------------------------


def wire_tricks(s):
    head = field(1, s.m["session"]) if s.m["session"] else b""
    site = field(2, s.m["site"]) if s.to_server and s.m["site"] else b""
    body = s.data[len(head + site) :]
    number, _ = (TO_SERVER if s.to_server else TO_SITE)[s.kind]
    inner = body[len(varint(number << 3 | 2)) :]
    inner = inner[next(i for i, b in enumerate(inner) if b < 128) + 1 :]
    yield "nothing", b""
    yield "the last byte is missing", s.data[:-1]
    yield "a byte more", s.data + b"\0"
    yield "an unknown field", s.data + field(15, 1)
    yield "an unknown field in the body", head + site + field(number, inner + field(15, 1))
    yield "the body twice", s.data + body
    yield "another wire type", head + site + varint(number << 3 | 5) + bytes(4)
    yield "a length in more bytes than it needs", head + site + varint(number << 3 | 2) + long_varint(
        len(inner)
    ) + inner
    yield "longer than any message may be", s.data + field(15, bytes(longest(s.to_server, s.params)))
    if head:
        yield "the session twice", head + s.data
        yield "the body first", body + head + site
    if s.to_server:
        yield "the site's number in more bytes than it needs", head + b"\x10" + long_varint(s.m["site"]) + body
        yield "a site's number of 33 bits", head + b"\x10" + varint(2**32 + s.m["site"]) + body
    if s.to_server and not s.m["site"]:
        yield "a zero written out", head + b"\x10\0" + body


def long_varint(x):
    out = bytearray(varint(x))
    out[-1] |= 128
    return bytes(out) + b"\0"


# ---- what fits a message that carries a session --------------------------------------------------------------------


def session_tricks(s):
    yield "another session", s.with_(session=flip(s.m["session"])), STATE if s.to_server else AUTH
    yield "a session of 31 bytes", s.with_(session=s.m["session"][:-1]), FORMAT if s.to_server else AUTH
    yield "no session", s.with_(session=b""), FORMAT if s.to_server else AUTH


# ---- to a site -----------------------------------------------------------------------------------------------------


def begin(s):
    yield "a round of 15 bytes", s.with_(round=s.m["round"][:-1]), FORMAT
    yield "a round of 17 bytes", s.with_(round=s.m["round"] + b"\1"), FORMAT
    yield "a task hash of 31 bytes", s.with_(task=s.m["task"][:-1]), FORMAT
    yield "no task hash", s.with_(task=b""), FORMAT
    yield "another task", s.with_(task=flip(s.m["task"])), AUTH
    yield "a session", s.with_(session=bytes(range(32))), FORMAT


def coin(s):
    n, path = s.params.sites, s.m["path"]
    yield "a throw left out", s.with_(attempt=s.m["attempt"] + 1), FORMAT
    yield "throw 0", s.with_(attempt=0), FORMAT
    yield "more leaves than sites", s.with_(leaves=n + 1), FORMAT
    yield "no leaves", s.with_(leaves=0), FORMAT
    yield "a position beyond the leaves", s.with_(position=s.m["leaves"]), FORMAT
    yield "a path too short", s.with_(path=path[:-64]), FORMAT
    yield "a path too long", s.with_(path=path + path[:64]), FORMAT
    yield "a path of broken length", s.with_(path=path[:-1]), FORMAT
    yield "a sibling that is no point", s.with_(path=path[:32] + NO_POINT + path[64:]), AUTH
    yield "a sibling that is the identity", s.with_(path=path[:32] + IDENTITY + path[64:]), AUTH


def neighbours_sparse(s):
    yield "another V", s.with_(scalar=scalar_bytes(le(s.m["scalar"]) + 1)), AUTH
    yield "V not below l", s.with_(scalar=TOO_LARGE), AUTH
    yield "no V", s.with_(scalar=b""), FORMAT
    yield "V of 31 bytes", s.with_(scalar=s.m["scalar"][:-1]), FORMAT


def neighbours(s):
    adverts, view = s.m["adverts"], s.view
    one = adverts[:128]
    yield "a V on a complete graph", s.with_(scalar=scalar_bytes(1)), FORMAT
    yield "unused bits in the bitmap", s.with_(present=bytes([s.m["present"][0] | 128])), FORMAT
    yield "a bitmap too long", s.with_(present=s.m["present"] + b"\0"), FORMAT
    yield "no bitmap", s.with_(present=b""), FORMAT
    yield "adverts too short", s.with_(adverts=adverts[:-1]), FORMAT
    yield "an advert more than the bitmap says", s.with_(adverts=adverts + one), FORMAT
    yield "fewer neighbours than t", s.with_(present=b"\1", adverts=one), TOO_FEW
    yield "no neighbours", s.with_(present=b"\0", adverts=b""), TOO_FEW
    yield "a wrong signature", s.with_(adverts=flip(adverts, 127)), AUTH
    yield "another channel key", s.with_(adverts=flip(adverts, 0)), AUTH
    yield "another mask key", s.with_(adverts=flip(adverts, 32)), AUTH
    yield "two adverts in each other's place", s.with_(adverts=adverts[128:256] + one + adverts[256:]), AUTH
    yield "a channel key of low order, signed", s.with_(adverts=s.advert_with(0, channel_key=LOW_ORDER)), AUTH
    yield "a mask key of low order, signed", s.with_(adverts=s.advert_with(1, mask_key=LOW_ORDER)), AUTH
    yield "a channel key with its top bit, signed", s.with_(adverts=s.advert_with(1, channel_key=NOT_CANONICAL)), AUTH
    yield "a mask key with its top bit, signed", s.with_(adverts=s.advert_with(0, mask_key=NOT_CANONICAL)), AUTH
    for name in ("channel_key", "mask_key"):
        for own in ("channel_key", "mask_key"):
            changed = s.advert_with(0, **{name: getattr(view, own)})
            yield f"the site's own {own} as a neighbour's {name}", s.with_(adverts=changed), AUTH


def deliver(s):
    sealed, first = s.m["sealed"], s.view.present[0]
    key = seal_key(s.sites[first].c, s.view.channel_key, s.view.session, s.view.seed, first, s.who)
    wrong_way = seal_key(s.sites[first].c, s.view.channel_key, s.view.session, s.view.seed, s.who, first)
    yield "a bit of a sealed share", s.with_(sealed=flip(sealed, 5)), AUTH
    yield "a bit of a tag", s.with_(sealed=flip(sealed, 79)), AUTH
    yield "two shares in each other's place", s.with_(sealed=sealed[80:160] + sealed[:80] + sealed[160:]), AUTH
    yield "a share sealed the other way", s.with_(sealed=seal(wrong_way, bytes(64)) + sealed[80:]), AUTH
    yield "a mask share not below l", s.with_(sealed=seal(key, TOO_LARGE + bytes(32)) + sealed[80:]), FORMAT
    yield "a self share not below l", s.with_(sealed=seal(key, bytes(32) + TOO_LARGE) + sealed[80:]), FORMAT
    yield "sealed shares too short", s.with_(sealed=sealed[:-1]), FORMAT
    yield "a share more than the bitmap says", s.with_(sealed=sealed + sealed[:80]), FORMAT
    n, there = s.params.sites, bits_of(s.m["delivered"], s.params.sites, "")
    yield "unused bits in the bitmap", s.with_(delivered=bytes([s.m["delivered"][0] | 128])), FORMAT
    yield "a bitmap too long", s.with_(delivered=s.m["delivered"] + b"\0"), FORMAT
    yield "no bitmap", s.with_(delivered=b""), FORMAT
    yield "without the site", s.with_(delivered=bitmap(n, [i for i in there if i != s.who])), AUTH
    yield "fewer peers than t", s.with_(delivered=bitmap(n, [s.who, first]), sealed=sealed[:80]), TOO_FEW


def deliver_sparse(s):
    """A site with a neighbour that was lost before Neighbours."""
    n, there = s.params.sites, bits_of(s.m["delivered"], s.params.sites, "")
    gone = next(j for j in s.view.around if j not in s.view.present)
    at = 80 * sum(j < gone for j in s.view.present)
    boxes = s.m["sealed"][:at] + bytes(80) + s.m["sealed"][at:]
    yield "a neighbour that takes no part", s.with_(delivered=bitmap(n, [*there, gone]), sealed=boxes), AUTH


def survivors(s):
    n, map_ = s.params.sites, s.m["survivors"]
    there = bits_of(map_, n, "")
    yield "without the site", s.with_(survivors=bitmap(n, [i for i in there if i != s.who] + missing(n, there))), AUTH
    other = next(i for i in there if i != s.who)
    yield "fewer than must stay", s.with_(survivors=bitmap(n, [i for i in there if i != other])), TOO_FEW
    yield "a bitmap too long", s.with_(survivors=map_ + b"\0"), FORMAT
    yield "no bitmap", s.with_(survivors=b""), FORMAT
    yield "unused bits in the bitmap", s.with_(survivors=map_[:-1] + bytes([map_[-1] | 128])), FORMAT


def survivors_sparse(s):
    """A site with a neighbour that was lost before Deliver."""
    n, there = s.params.sites, bits_of(s.m["survivors"], s.params.sites, "")
    ghost = next(j for j in s.view.around if j not in s.view.peers)
    peer = s.view.peers[0]
    yield "a neighbour that is no peer", s.with_(survivors=bitmap(n, there + [ghost])), AUTH
    yield "fewer surviving peers than t", s.with_(survivors=bitmap(n, [i for i in there if i != peer])), TOO_FEW


def survivors_far(s):
    """A site that does not see the one that was lost before Deliver."""
    n, there = s.params.sites, bits_of(s.m["survivors"], s.params.sites, "")
    ghost = missing(n, s.view.delivered)[0]
    yield "one that was not delivered, far away", s.with_(survivors=bitmap(n, there + [ghost])), AUTH


def survivors_sides(s):
    """A site that has just enough peers on one side: as many survive as must and t peers, but one less there."""
    n, there = s.params.sites, bits_of(s.m["survivors"], s.params.sites, "")
    thin = next(side for side in alive_sides(s) if len(side) == 3 * s.params.threshold // 8 + 1)
    yield "too few on one side", s.with_(survivors=bitmap(n, [i for i in there if i != thin[0]])), TOO_FEW


def alive_sides(s):
    there = bits_of(s.m["survivors"], s.params.sites, "")
    return [[j for j in side if j in there] for side in sides(s.params, s.view.session, s.view.seed, s.who)]


def missing(n, there):
    return [i for i in range(n) if i not in there]


def confirmed(s):
    """The site of a round in which one peer is no survivor."""
    view, signatures = s.view, s.m["signatures"]
    gone = next(j for j in view.peers if j not in view.survivors)
    ghost = s.sign(gone, confirm_hash(view.session, view.seed, view.survivors_map))
    everybody = bitmap(s.params.sites, range(s.params.sites))
    who = [view.peers[i] for i in bits_of(s.m["present"], len(view.peers), "")]
    other = s.sign(who[0], confirm_hash(view.session, view.seed, everybody))
    signed = {**dict(zip(who, chunks(signatures, 64))), gone: ghost}
    with_ghost = dict(
        present=bitmap(len(view.peers), [view.peers.index(j) for j in signed]),
        signatures=b"".join(signed[j] for j in sorted(signed)),
    )
    yield "a wrong signature", s.with_(signatures=flip(signatures, 63)), AUTH
    yield "two signatures in each other's place", s.with_(signatures=signatures[64:128] + signatures[:64]), AUTH
    yield "a signature under other survivors", s.with_(signatures=other + signatures[64:]), AUTH
    yield "a confirmation from one that is no survivor", s.with_(**with_ghost), AUTH
    yield "fewer confirmations than t", s.with_(present=bitmap(8, [view.peers.index(who[0])]),
                                               signatures=signatures[:64]), TOO_FEW  # fmt: skip
    yield "no confirmation", s.with_(present=b"\0", signatures=b""), TOO_FEW
    yield "signatures too short", s.with_(signatures=signatures[:-1]), FORMAT
    yield "a signature more than the bitmap says", s.with_(signatures=signatures + signatures[:64]), FORMAT
    yield "unused bits in the bitmap", s.with_(present=bytes([s.m["present"][0] | 128])), FORMAT
    yield "a bitmap too long", s.with_(present=s.m["present"] + b"\0"), FORMAT


def confirmed_sparse(s):
    """The witnesses are the same for everybody, and one of them is no survivor."""
    view, all_ = s.view, s.view.witnesses()
    here = dict(zip([all_[i] for i in bits_of(s.m["present"], len(all_), "")], chunks(s.m["signatures"], 64)))
    gone = next(j for j in all_ if j not in view.survivors)
    peer = next(j for j in view.peers if j in view.survivors and j not in all_)
    digest = confirm_hash(view.session, view.seed, view.survivors_map)
    ghost = {**here, gone: s.sign(gone, digest)}
    no_witness = [s.sign(peer, digest), *list(here.values())[1:]]
    yield "a confirmation from one that is no survivor", s.with_(
        present=bitmap(len(all_), [all_.index(j) for j in ghost]),
        signatures=b"".join(ghost[j] for j in sorted(ghost))), AUTH  # fmt: skip
    yield "a peer's confirmation for a witness's", s.with_(signatures=b"".join(no_witness)), AUTH
    few = list(here)[: s.params.threshold - 1]
    yield "fewer confirmations than t", s.with_(
        present=bitmap(len(all_), [all_.index(j) for j in few]), signatures=b"".join(here[j] for j in few)
    ), TOO_FEW  # fmt: skip


# ---- to the server -------------------------------------------------------------------------------------------------


def signed_advert(s, **keys):
    keys = {"channel_key": s.m["channel_key"], "mask_key": s.m["mask_key"], **keys}
    return s.with_(**keys, signature=s.sign(s.who, advert_hash(s.view.session, s.who, **keys)))


def advertise(s):
    other = (s.who + 1) % s.params.sites
    yield "another site's number", s.with_(site=other), AUTH
    yield "a number beyond the roster", s.with_(site=s.params.sites), AUTH
    yield "a wrong signature", s.with_(signature=flip(s.m["signature"], 40)), AUTH
    yield "another site's signature", s.with_(signature=s.sign(other, advert_hash(
        s.view.session, s.who, s.m["channel_key"], s.m["mask_key"]))), AUTH  # fmt: skip
    yield "another channel key", s.with_(channel_key=flip(s.m["channel_key"])), AUTH
    yield "another mask key", s.with_(mask_key=flip(s.m["mask_key"])), AUTH
    yield "a channel key of low order, signed", signed_advert(s, channel_key=LOW_ORDER), AUTH
    yield "a mask key with its top bit, signed", signed_advert(s, mask_key=NOT_CANONICAL), AUTH
    yield "a channel key of 31 bytes", s.with_(channel_key=s.m["channel_key"][:-1]), FORMAT
    yield "no mask key", s.with_(mask_key=b""), FORMAT
    yield "a signature of 63 bytes", s.with_(signature=s.m["signature"][:-1]), FORMAT
    yield "a coin on a complete graph", s.with_(coin=bytes(31) + b"\1"), FORMAT


def advertise_sparse(s):
    yield "no coin", s.with_(coin=b""), FORMAT
    yield "a coin that is no point", s.with_(coin=NO_POINT), AUTH
    yield "a coin that is the identity", s.with_(coin=IDENTITY), AUTH
    yield "a coin of 31 bytes", s.with_(coin=s.m["coin"][:-1]), FORMAT


def open_(s):
    yield "a throw to come", s.with_(attempt=s.m["attempt"] + 1), AUTH
    yield "a throw that is over", s.with_(attempt=0), STATE
    yield "a scalar not below l", s.with_(scalar=TOO_LARGE), AUTH
    yield "a scalar of 31 bytes", s.with_(scalar=s.m["scalar"][:-1]), FORMAT
    yield "a scalar that does not open the coin", s.with_(scalar=scalar_bytes(le(s.m["scalar"]) + 1)), AUTH
    yield "a next coin that is no point", s.with_(next_coin=NO_POINT), AUTH
    yield "a next coin that is the identity", s.with_(next_coin=IDENTITY), AUTH
    yield "no next coin", s.with_(next_coin=b""), FORMAT


def shares(s):
    yield "sealed shares too short", s.with_(sealed=s.m["sealed"][:-1]), FORMAT
    yield "a sealed share too few", s.with_(sealed=s.m["sealed"][:-80]), FORMAT
    yield "a self commitment of 31 bytes", s.with_(self_commitment=s.m["self_commitment"][:-1]), FORMAT
    yield "no self commitment", s.with_(self_commitment=b""), FORMAT


def masked(s):
    packed = s.m["packed"]
    yield "a vector too short", s.with_(packed=packed[:-1]), FORMAT
    yield "no vector", s.with_(packed=b""), FORMAT
    if s.params.length * s.params.bits % 8:
        yield "unused bits in the vector", s.with_(packed=packed[:-1] + bytes([packed[-1] | 128])), FORMAT


def confirm(s):
    fewer = bitmap(s.params.sites, s.view.survivors[:-1])
    yield "a wrong signature", s.with_(signature=flip(s.m["signature"], 40)), AUTH
    yield "a signature under other survivors", s.with_(
        signature=s.sign(s.who, confirm_hash(s.view.session, s.view.seed, fewer))), AUTH  # fmt: skip
    yield "a signature of 63 bytes", s.with_(signature=s.m["signature"][:-1]), FORMAT


def reveal(s):
    given = s.m["shares"]
    yield "shares too short", s.with_(shares=given[:-1]), FORMAT
    yield "a share too few", s.with_(shares=given[:-32]), FORMAT
    yield "a share not below l", s.with_(shares=TOO_LARGE + given[32:]), FORMAT


# ---- all of them ---------------------------------------------------------------------------------------------------

# Which message of which round: (round, kind, site or None for the first, tricks, with those of the wire)
PLAN = [
    ("complete_chacha20_32", "begin", 1, begin, True),
    ("complete_chacha20_32", "neighbours", 1, neighbours, True),
    ("complete_chacha20_32", "deliver", 1, deliver, True),
    ("complete_chacha20_32", "survivors", 1, survivors, True),
    ("complete_chacha20_32", "confirmed", 1, confirmed, True),
    ("complete_chacha20_32", "advertise", 0, advertise, True),
    ("complete_chacha20_32", "shares", 0, shares, True),
    ("complete_chacha20_32", "masked", 0, masked, True),
    ("complete_aes_11", "confirm", 0, confirm, True),
    ("complete_chacha20_32", "reveal", 0, reveal, True),
    ("complete_aes_11", "masked", 2, masked, False),
    ("sparse_aes_32", "coin", 6, coin, True),
    ("sparse_aes_32", "neighbours", 6, neighbours_sparse, False),
    ("sparse_aes_32", "advertise", 6, advertise_sparse, False),
    ("sparse_aes_32", "open", 6, open_, True),
    ("sparse_sides", "survivors", None, survivors_sides, False),
    ("sparse_aes_32", "confirmed", None, confirmed_sparse, False),
    ("sparse_chacha20_40", "survivors", None, survivors_sparse, False),
    ("sparse_chacha20_40", "survivors", None, survivors_far, False),
    ("sparse_aes_32", "deliver", None, deliver_sparse, False),
]


def suits(scene, tricks):
    view, t = scene.view, scene.params.threshold
    if tricks is survivors_sides:
        fewest, other = sorted(map(len, alive_sides(scene)))
        return fewest == 3 * t // 8 + 1 and fewest + other > t
    if tricks is survivors_sparse:
        return len(view.peers) < len(view.around) and len(view.peers) == t
    if tricks is survivors_far:
        return view.peers == view.around
    if tricks is deliver_sparse:
        return len(view.present) < len(view.around)
    return any(j in view.survivors and j not in view.witnesses() for j in view.peers)


def find_event(transcript, kind, site, tricks=None):
    """The first event with that message, to or from that site; without a site, one that suits the tricks."""
    for at, event in enumerate(transcript["events"]):
        who = event.get("to", event.get("from"))
        if who is None or (site is not None and who != site):
            continue
        data = bytes.fromhex(event["bytes"])
        if decode("from" in event, data, len(data))[0] != kind:
            continue
        if site is None and not suits(Scene(transcript, at), tricks):
            continue
        return at
    raise LookupError(kind)


def out_of_order(rounds):
    """A site gets a message of a later phase, or one of an earlier phase that it does not expect any more."""
    t = rounds["complete_chacha20_32"]
    kinds = ["begin", "neighbours", "deliver", "survivors", "confirmed"]
    at = {kind: find_event(t, kind, 1) for kind in kinds}
    for due, other in [("begin", "neighbours"), ("neighbours", "deliver"), ("neighbours", "confirmed"),
                       ("deliver", "confirmed"), ("survivors", "neighbours"), ("confirmed", "deliver"),
                       ("confirmed", "begin")]:  # fmt: skip
        answer = FORMAT if due != "begin" else AUTH
        yield entry("complete_chacha20_32", t, at[due], f"'{other}' instead", t["events"][at[other]]["bytes"], answer)


def twice_or_early(rounds):
    """The server gets a message once more, and one of a later phase."""
    name = "complete_aes_11"
    t = rounds[name]
    kinds = ["advertise", "shares", "masked", "confirm", "reveal"]
    at = {kind: find_event(t, kind, 0) for kind in kinds}
    data = {kind: t["events"][at[kind]]["bytes"] for kind in kinds}
    for kind in kinds:
        yield entry(name, t, at[kind] + 1, "it comes twice", data[kind], STATE, 0)
    for due, other in zip(kinds, kinds[1:]):
        yield entry(name, t, at[due], f"'{other}' already", data[other], AUTH)
        yield entry(name, t, at[other], f"'{due}' again", data[due], STATE)


def leaving(rounds):
    """A site says why it leaves, where it may only say that it does."""
    name = "complete_chacha20_32"
    at = find_event(rounds[name], "masked", 0)
    scene = Scene(rounds[name], at)
    for status, what in ((0, "no reason"), (31, "its numbers"), (60, "its budget")):
        data = encode(True, "leave", {"session": scene.view.session, "site": 0, "status": status})
        yield entry(name, rounds[name], at, f"a leave that tells of {what}", data.hex(), FORMAT)


def entry(name, transcript, at, what, data, answer, sender=None):
    """`from` is there where the altered message is not from the event's own site."""
    event = transcript["events"][at]
    kind = decode("from" in event, bytes.fromhex(event["bytes"]), 1 << 20)[0]
    more = {} if sender is None else {"from": sender}
    return {"round": name, "at": at, "instead_of": kind, "what": what, "bytes": data, "answer": answer, **more}


def tried(rounds, refusals):
    """Each with what the site says when it has refused; the reference parties must answer as it stands there."""
    scenes, out = {}, []
    for r in refusals:
        where = r["round"], r["at"]
        if where not in scenes:
            scenes[where] = Scene(rounds[r["round"]], r["at"])
        scene, data, status = copy.deepcopy(scenes[where]), bytes.fromhex(r["bytes"]), 0
        site = scene.sites[scene.who]
        if scene.to_server:
            status = scene.server.recv(r.get("from", scene.who), data)
        else:
            try:
                site.recv(data)
            except Refused as refused:
                status = refused.status
        assert status == r["answer"], (r["instead_of"], r["what"], status, r["answer"])
        out.append(r if scene.to_server else {**r, "leave": site.leave(status).hex()})
    return out


def all_of(rounds):
    out = []
    for name, kind, site, tricks, wire in PLAN:
        transcript = rounds[name]
        at = find_event(transcript, kind, site, tricks)
        scene = Scene(transcript, at)
        found = list(tricks(scene))
        if wire:
            found += [(what, data, FORMAT) for what, data in wire_tricks(scene)]
            found += list(session_tricks(scene)) if kind != "begin" else []
        for what, data, answer in found:
            assert data != scene.data, (kind, what)
            out.append(entry(name, transcript, at, what, data.hex(), answer))
    return tried(rounds, [*out, *out_of_order(rounds), *twice_or_early(rounds), *leaving(rounds)])

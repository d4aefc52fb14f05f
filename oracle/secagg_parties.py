# SPDX-License-Identifier: Apache-2.0
"""secagg_parties.py - site and server of docs/protocol.md, and what a bystander can check of either.

View    one site's course as anybody may follow it: `told` checks what the site is sent as the site must (3.3 to 3.6),
        `said` checks what it sends as the server must. It knows no secret.
Site    a view with secrets: takes messages and gives answers.
Server  a view of every site, the choices of section 3, and the end of it (3.7).
"""

from secagg_primitives import (
    ed25519_public,
    ed25519_sign,
    ed25519_verify,
    le,
    ristretto_base,
    ristretto_ok,
    scalar_bytes,
    scalar_ok,
    seal,
    shamir_join,
    shamir_split,
    unseal,
    x25519_key_ok,
    x25519_public,
)
from secagg_rules import (
    advert_hash,
    coin_climb,
    coin_levels,
    coin_path,
    coin_value,
    confirm_hash,
    delivered_hash,
    leaf_node,
    mask_secret,
    neighbours,
    pair_key,
    path_bytes,
    seal_key,
    seed_of,
    self_commitment,
    self_key,
    session_of,
    sides,
    signed,
    stream,
    stream_key,
    witnesses,
)
from secagg_wire import (
    AUTH,
    FORMAT,
    STATE,
    STOPPED,
    TOO_FEW,
    Refused,
    bitmap,
    bits_of,
    chunks,
    decode,
    encode,
    longest,
    pack,
    sized,
    unpack,
)


def need(good, status, why):
    if not good:
        raise Refused(status, why)


class View:
    """One site's course, without its secrets."""

    ORDER = ("advertise", "open", "shares", "masked", "confirm", "reveal")

    def __init__(self, params, index):
        self.params, self.index = params, index
        self.session = self.root = self.seed = self.last = None
        self.due = ("begin",)  # what may be told next
        self.owes = None  # what it must say next
        self.asked, self.throw = -1, 0
        self.limits = {True: longest(True, params), False: longest(False, params)}

    # -- what it is told --

    def told(self, data):
        """The kind of an accepted message; None for the last one once more, which is ignored."""
        if data == self.last:
            return None
        kind, m = decode(False, data, self.limits[False])
        if kind == "aborted" and self.session is None:
            need(len(m["session"]) == 32, AUTH, "the message is of no session")
        elif kind != "begin":
            need(m["session"] == self.session, AUTH, "the message is of another session")
        if kind == "aborted":
            self.due = ()
            return kind
        need(self.owes is None, FORMAT, f"'{kind}' came before the site answered")
        need(kind in self.due, FORMAT, f"'{kind}' came where '{' or '.join(self.due)}' was due")
        getattr(self, "told_" + kind)(m)
        self.last, self.asked = data, self.ORDER.index(self.owes)
        return kind

    def told_begin(self, m):
        """3.1."""
        sized(m["session"], 0, "the session of Begin")
        sized(m["round"], 16, "the round")
        sized(m["task"], 32, "the task hash")
        need(m["task"] == self.params.task, AUTH, "the task is not this site's copy")
        self.session = session_of(self.params, m["round"])
        self.due, self.owes = (("neighbours",) if self.params.complete else ("coin",)), "advertise"

    def told_coin(self, m):
        """4."""
        leaves, position = m["leaves"], m["position"]
        need(m["attempt"] == self.throw + 1, FORMAT, f"throw {m['attempt']} after throw {self.throw}")
        need(m["attempt"] <= self.params.attempts, FORMAT, "one throw more than the task allows")
        need(1 <= leaves <= self.params.sites, FORMAT, f"{leaves} leaves in the coin's tree")
        need(position < leaves, FORMAT, f"position {position} among {leaves} leaves")
        sized(m["path"], path_bytes(leaves, position), "the path")
        self.throw += 1
        own = leaf_node(self.session, self.throw, self.index, self.channel_key, self.mask_key, self.coin)
        self.root = coin_climb(own, leaves, position, m["path"])
        self.due, self.owes = ("coin", "neighbours"), "open"

    def told_neighbours(self, m):
        """3.3."""
        p = self.params
        sized(m["scalar"], 0 if p.complete else 32, "V")
        self.seed = seed_of(self.session, self.root, m["scalar"])
        self.around = neighbours(p, self.session, self.seed, self.index)
        self.present = [self.around[i] for i in bits_of(m["present"], len(self.around), "the neighbours' bitmap")]
        sized(m["adverts"], 128 * len(self.present), "the adverts")
        need(len(self.present) >= p.threshold, TOO_FEW, f"{len(self.present)} neighbours take part")
        self.keys = {}
        for j, advert in zip(self.present, chunks(m["adverts"], 128)):
            self.keys[j] = advert[:32], advert[32:64]
            self.check_advert(j, *self.keys[j], advert[64:])
            for key in self.keys[j]:
                need(key not in (self.channel_key, self.mask_key), AUTH, f"a key of site {j} is the site's own")
        self.due, self.owes = ("deliver",), "shares"

    def check_advert(self, j, channel_key, mask_key, signature):
        digest = advert_hash(self.session, j, channel_key, mask_key)
        need(ed25519_verify(self.params.roster[j], digest, signature), AUTH, f"the signature of site {j} is wrong")
        for key in (channel_key, mask_key):
            need(x25519_key_ok(key), AUTH, f"a key of site {j} is not canonical or of low order")

    def told_deliver(self, m):
        """3.4."""
        delivered = bits_of(m["delivered"], self.params.sites, "the bitmap of the delivered")
        need(self.index in delivered, AUTH, "the site is not in the delivered set")
        self.peers = [j for j in self.around if j in delivered]
        for j in self.peers:
            need(j in self.present, AUTH, f"neighbour {j} is among the delivered, but takes no part")
        sized(m["sealed"], 80 * len(self.peers), "the sealed shares")
        need(len(self.peers) >= self.params.threshold, TOO_FEW, f"{len(self.peers)} peers are left")
        self.sealed = dict(zip(self.peers, chunks(m["sealed"], 80)))
        self.delivered, self.delivered_map = delivered, m["delivered"]
        self.due, self.owes = ("survivors",), "masked"

    def told_survivors(self, m):
        """3.5."""
        self.survivors = bits_of(m["survivors"], self.params.sites, "the survivors' bitmap")
        self.survivors_map = m["survivors"]
        need(self.index in self.survivors, AUTH, "the site is not among the survivors")
        need(len(self.survivors) >= self.params.stay, TOO_FEW, f"{len(self.survivors)} survivors")
        for j in self.survivors:
            need(j in self.delivered, AUTH, f"survivor {j} was not among the delivered")
        alive = [j for j in self.peers if j in self.survivors]
        need(len(alive) >= self.params.threshold, TOO_FEW, f"{len(alive)} peers survive")
        self.check_sides(alive)
        self.due, self.owes = ("confirmed",), "confirm"

    def check_sides(self, alive):
        """3.5, last check: more than 3t/8 surviving peers on either side, where a ring could be cut in two."""
        p = self.params
        if not p.complete and p.degree <= p.corrupt + p.dropped and 2 * p.threshold <= p.degree + p.corrupt:
            for side in sides(p, self.session, self.seed, self.index):
                good = 8 * len(set(side) & set(alive)) > 3 * p.threshold
                need(good, TOO_FEW, "too few peers survive on one side of the ring")

    def witnesses(self):
        """3.6: whose confirmations this site hears."""
        return self.peers if self.params.complete else witnesses(self.params, self.session, self.seed)

    def told_confirmed(self, m):
        """3.6."""
        all_ = self.witnesses()
        who = [all_[i] for i in bits_of(m["present"], len(all_), "the witnesses' bitmap")]
        sized(m["signatures"], 64 * len(who), "the signatures")
        need(len(who) >= self.params.threshold, TOO_FEW, f"{len(who)} witnesses confirmed")
        for j, signature in zip(who, chunks(m["signatures"], 64)):
            need(j in self.survivors, AUTH, f"site {j} confirms and is no survivor")
            self.check_confirm(j, signature)
        self.due, self.owes = (), "reveal"

    def check_confirm(self, j, signature):
        digest = confirm_hash(self.session, self.seed, self.survivors_map)
        good = ed25519_verify(self.params.roster[j], digest, signature)
        need(good, AUTH, f"site {j} confirms other survivors, or its signature is wrong")

    # -- what it says --

    def said(self, data):
        """The kind of a message that this site may send now."""
        kind, m = decode(True, data, self.limits[True])
        need(m["site"] == self.index, AUTH, f"the message claims to be from site {m['site']}")
        sized(m["session"], 32, "the session")
        need(m["session"] == self.session, STATE, "the message is of another session")
        if kind == "leave":
            need(m["status"] in (STOPPED, FORMAT, AUTH, TOO_FEW), FORMAT, "it says why, and it is nobody's affair")
        else:
            need(self.ORDER.index(kind) <= self.asked, AUTH, f"'{kind}' answers what was not asked yet")
            need(kind == self.owes, STATE, f"'{kind}' comes twice or too late")
            getattr(self, "said_" + kind)(m)
            self.owes = None
        return kind

    def said_advertise(self, m):
        """3.1."""
        sized(m["channel_key"], 32, "the channel key")
        sized(m["mask_key"], 32, "the mask key")
        sized(m["coin"], 0 if self.params.complete else 32, "the coin's commitment")
        sized(m["signature"], 64, "the signature")
        self.check_advert(self.index, m["channel_key"], m["mask_key"], m["signature"])
        need(self.params.complete or ristretto_ok(m["coin"]), AUTH, "the coin's commitment is no point")
        self.channel_key, self.mask_key, self.coin = m["channel_key"], m["mask_key"], m["coin"]
        self.advert = m["channel_key"] + m["mask_key"] + m["signature"]

    def said_open(self, m):
        """4."""
        need(m["attempt"] >= self.throw, STATE, f"throw {m['attempt']} is over")
        need(m["attempt"] == self.throw, AUTH, f"throw {m['attempt']} is opened in throw {self.throw}")
        sized(m["scalar"], 32, "the scalar")
        sized(m["next_coin"], 32, "the next commitment")
        need(scalar_ok(m["scalar"]), AUTH, "the scalar is not below l")
        need(ristretto_ok(m["next_coin"]), AUTH, "the next commitment is no point")
        need(ristretto_base(le(m["scalar"])) == self.coin, AUTH, "the scalar does not open the commitment")
        self.opened, self.coin = le(m["scalar"]), m["next_coin"]

    def said_shares(self, m):
        """3.3."""
        sized(m["sealed"], 80 * len(self.present), "the sealed shares")
        sized(m["self_commitment"], 32, "the self commitment")
        self.sealed_for = dict(zip(self.present, chunks(m["sealed"], 80)))
        self.commitment = m["self_commitment"]

    def said_masked(self, m):
        """3.4."""
        self.masked = unpack(m["packed"], self.params.length, self.params.bits)

    def said_confirm(self, m):
        """3.5."""
        sized(m["signature"], 64, "the signature")
        self.check_confirm(self.index, m["signature"])
        self.confirmation = m["signature"]

    def said_reveal(self, m):
        """3.6."""
        sized(m["shares"], 32 * len(self.peers), "the shares")
        shares = chunks(m["shares"], 32)
        need(all(map(scalar_ok, shares)), FORMAT, "a share is not below l")
        self.revealed = dict(zip(self.peers, map(le, shares)))


class Site:
    """A site with its secrets. `recv` gives the answer, or raises Refused."""

    def __init__(self, params, index, signing_seed, entropy, vector):
        assert ed25519_public(signing_seed) == params.roster[index]
        self.params, self.index, self.signing_seed = params, index, signing_seed
        self.entropy, self.vector = entropy, vector
        self.view = View(params, index)

    def recv(self, data):
        kind = self.view.told(data)
        if kind in (None, "aborted"):
            return None
        answer = getattr(self, "after_" + kind)()
        out = encode(True, self.view.owes, {"session": self.view.session, "site": self.index, **answer})
        self.view.said(out)
        return out

    def leave(self, status):
        """3: what it says when it has refused something; without a session it cannot say anything. Of its own
        faults it says nothing (3.8)."""
        if self.view.session is None:
            return b""
        status = status if status in (FORMAT, AUTH, TOO_FEW) else STOPPED
        return encode(True, "leave", {"session": self.view.session, "site": self.index, "status": status})

    def sign(self, digest):
        return ed25519_sign(self.signing_seed, digest)

    def after_begin(self):
        """3.1: the order of the draws is the page's."""
        self.c = self.entropy.take(32)
        self.s, self.u = self.entropy.scalar(), self.entropy.scalar()
        self.m = mask_secret(self.s, self.view.session, self.index)
        keys = {"channel_key": x25519_public(self.c), "mask_key": x25519_public(self.m)}
        signature = self.sign(advert_hash(self.view.session, self.index, **keys))
        return {**keys, "coin": b"" if self.params.complete else self.commit(), "signature": signature}

    def commit(self):
        self.r = self.entropy.scalar()
        return ristretto_base(self.r)

    def after_coin(self):
        """4."""
        opened = scalar_bytes(self.r)
        return {"attempt": self.view.throw, "scalar": opened, "next_coin": self.commit()}

    def after_neighbours(self):
        """3.3."""
        v, degree = self.view, range(1, self.params.threshold)
        points = [j + 1 for j in v.present]
        of_s = shamir_split(self.s, points, [self.entropy.scalar() for _ in degree])
        of_u = shamir_split(self.u, points, [self.entropy.scalar() for _ in degree])
        sealed = b""
        for j in v.present:
            key = seal_key(self.c, v.keys[j][0], v.session, v.seed, self.index, j)
            sealed += seal(key, scalar_bytes(of_s[j + 1]) + scalar_bytes(of_u[j + 1]))
        return {"sealed": sealed, "self_commitment": self_commitment(self.u, v.session, self.index)}

    def after_deliver(self):
        """3.4."""
        v, p = self.view, self.params
        self.shares = {}
        for j in v.peers:
            plain = unseal(seal_key(self.c, v.keys[j][0], v.session, v.seed, j, self.index), v.sealed[j])
            need(plain is not None, AUTH, f"the shares of site {j} do not open")
            need(scalar_ok(plain[:32]) and scalar_ok(plain[32:]), FORMAT, f"a share of site {j} is not below l")
            self.shares[j] = plain[:32], plain[32:]
        assert all(-p.bound <= x <= p.bound for x in self.vector)
        masks = [(1, self_key(self.u, v.session, self.index))]
        delivered = delivered_hash(v.session, v.seed, v.delivered_map)
        for j in v.peers:
            key = pair_key(self.m, v.keys[j][1], v.session, v.seed, self.index, j)
            masks.append((1 if j > self.index else -1, stream_key(key, delivered)))
        y = list(self.vector)
        for sign, key in masks:
            y = [a + sign * w for a, w in zip(y, stream(p.keystream, key, p.length, p.bits))]
        return {"packed": pack(y, p.bits)}

    def after_survivors(self):
        """3.5."""
        return {"signature": self.sign(confirm_hash(self.view.session, self.view.seed, self.view.survivors_map))}

    def after_confirmed(self):
        """3.6: one share for each peer, never both."""
        return {"shares": b"".join(self.shares[j][j in self.view.survivors] for j in self.view.peers)}


class Server:
    """Takes what sites say, and puts what it says into `outbox` as (to, bytes)."""

    PHASES = {"advertise": "ADVERTISE", "open": "COIN", "shares": "SHARE", "masked": "MASK", "confirm": "CONFIRM",
              "reveal": "REVEAL"}  # fmt: skip

    def __init__(self, params, round_):
        self.params, self.round = params, round_
        self.views = [View(params, i) for i in range(params.sites)]
        self.outbox, self.lost, self.failed, self.total = [], {}, None, None
        self.phase, self.expected, self.heard = "advertise", set(range(params.sites)), set()
        self.throw, self.leaves, self.sharers, self.survivors = 0, [], [], []
        for i in range(params.sites):
            self.say(i, "begin", {"session": b"", "round": round_, "task": params.task})

    def say(self, to, kind, values):
        """A message that the site must refuse for want of t others is sent all the same: the site then leaves."""
        data = encode(False, kind, {"session": self.views[to].session, **values})
        self.outbox.append((to, data))
        try:
            self.views[to].told(data)
        except Refused as refused:
            assert refused.status == TOO_FEW
            self.views[to].owes = None

    def recv(self, sender, data):
        """The status that this message is worth (0: accepted)."""
        if self.failed or self.total is not None or sender in self.lost:
            return STATE
        try:
            kind = self.views[sender].said(data)
        except Refused as refused:
            if refused.status != STATE:
                self.lose(sender, refused.status)
            return refused.status
        if kind == "leave":
            self.lose(sender, decode(True, data, len(data))[1]["status"])
        else:
            self.heard.add(sender)
            self.go_on(False)
        return 0

    def lose(self, sender, status=STOPPED):
        """3: a lost site's contribution to the sum stays."""
        self.lost.setdefault(sender, status)
        self.go_on(False)

    def close(self):
        if not self.failed and self.total is None:
            self.go_on(True)

    def go_on(self, closing):
        """Leaves the phase when all have been heard, or at its deadline; gives up when too few can be heard still, or
        when too few are left for the next phase (from CONFIRM on those that were heard suffice)."""
        waiting = self.expected - self.heard - set(self.lost)
        if closing:
            self.lost |= {i: STOPPED for i in waiting}
            waiting = set()
        enough = {"reveal": 0}.get(self.phase, self.params.stay)
        here = self.heard if waiting or self.phase in ("confirm", "reveal") else self.heard - set(self.lost)
        if len(here | waiting) < enough:
            self.failed = f"{len(here | waiting)} sites are left in {self.PHASES[self.phase]}"
        if self.failed or self.total is not None or waiting:
            return
        getattr(self, "end_of_" + self.phase)(sorted(self.heard))

    def enter(self, phase, expected):
        self.phase, self.expected, self.heard = phase, set(expected), set()

    def end_of_advertise(self, heard):
        self.begin_throw(heard) if not self.params.complete else self.tell_neighbours(heard, b"")

    def begin_throw(self, leaves):
        """4."""
        self.throw, self.leaves = self.throw + 1, [i for i in leaves if i not in self.lost]
        self.enter("open", self.leaves)
        nodes = []
        for i in self.leaves:
            v = self.views[i]
            nodes.append(leaf_node(v.session, self.throw, i, v.channel_key, v.mask_key, v.coin))
        self.levels = coin_levels(nodes)
        for position, i in enumerate(self.leaves):
            path = coin_path(self.levels, position)
            self.say(i, "coin", dict(attempt=self.throw, leaves=len(nodes), position=position, path=path))

    def end_of_open(self, heard):
        if heard == self.leaves:
            v = coin_value(self.levels, [self.views[i].opened for i in heard])
            self.tell_neighbours(heard, scalar_bytes(v))
        elif self.throw == self.params.attempts:
            self.failed = "no throw of the coin was opened by all"
        else:
            self.begin_throw(heard)

    def tell_neighbours(self, heard, v):
        """3.3."""
        here = [i for i in heard if i not in self.lost]
        self.enter("shares", here)
        session, root = self.views[here[0]].session, self.views[here[0]].root
        self.seed = seed_of(session, root, v)
        for i in here:
            around = neighbours(self.params, session, self.seed, i)
            present = [j for j in around if j in self.expected]
            adverts = b"".join(self.views[j].advert for j in present)
            which = bitmap(len(around), [around.index(j) for j in present])
            self.say(i, "neighbours", {"scalar": v, "present": which, "adverts": adverts})

    def end_of_shares(self, heard):
        """3.4."""
        here = set(heard) - set(self.lost)
        while thin := [i for i in here if len(here & set(self.views[i].present)) < self.params.threshold]:
            here -= set(thin)
        self.sharers = sorted(here)
        if len(here) < self.params.stay:
            self.failed = f"{len(here)} sites have enough neighbours"
            return
        self.enter("masked", here)
        self.delivered_map = bitmap(self.params.sites, self.sharers)
        for i in self.sharers:
            sealed = b"".join(self.views[j].sealed_for[i] for j in self.views[i].present if j in here)
            self.say(i, "deliver", {"delivered": self.delivered_map, "sealed": sealed})

    def end_of_masked(self, heard):
        """3.5."""
        self.survivors = heard
        self.enter("confirm", heard)
        for i in heard:
            if i not in self.lost:
                self.say(i, "survivors", {"survivors": bitmap(self.params.sites, heard)})

    def end_of_confirm(self, heard):
        """3.6."""
        self.enter("reveal", heard)
        for i in heard:
            if i not in self.lost:
                all_ = self.views[i].witnesses()
                who = [j for j in all_ if j in self.expected]
                which = bitmap(len(all_), [all_.index(j) for j in who])
                signatures = b"".join(self.views[j].confirmation for j in who)
                self.say(i, "confirmed", {"present": which, "signatures": signatures})

    def end_of_reveal(self, heard):
        """3.7."""
        try:
            self.total = unmask(self, heard)
        except Refused as refused:
            self.failed = refused.why


def secret_of(server, owner, respondents, fits, suspects):
    """A secret from t shares that fit. Whose share does not is asked last from now on, and is asked all the same."""
    t = server.params.threshold
    shares = {j: server.views[j].revealed[owner] for j in respondents if owner in server.views[j].revealed}
    need(len(shares) >= t, TOO_FEW, f"{len(shares)} shares for site {owner}")
    order = sorted(shares, key=lambda j: (j in suspects, j))
    for left_out in [None, *order[:t]]:
        used = [j for j in order if j != left_out][:t]
        if len(used) == t and fits(secret := shamir_join({j + 1: shares[j] for j in used})):
            suspects |= {left_out} - {None}
            return secret
    raise Refused(AUTH, f"no shares of site {owner} fit what it committed to")


def unmask(server, respondents):
    """3.7: the sum over the survivors."""
    p, views, suspects = server.params, server.views, set()
    session = views[server.survivors[0]].session
    total = [sum(column) for column in zip(*(views[i].masked for i in server.survivors))]
    delivered = delivered_hash(session, server.seed, server.delivered_map)

    def take_off(sign, key):
        return [a - sign * w for a, w in zip(total, stream(p.keystream, key, p.length, p.bits))]

    for i in server.survivors:
        fits = lambda u: self_commitment(u, session, i) == views[i].commitment  # noqa: E731
        u = secret_of(server, i, respondents, fits, suspects)
        total = take_off(1, self_key(u, session, i))
    for j in set(server.sharers) - set(server.survivors):
        fits = lambda s: x25519_public(mask_secret(s, session, j)) == views[j].mask_key  # noqa: E731
        m = mask_secret(secret_of(server, j, respondents, fits, suspects), session, j)
        for i in server.survivors:
            if j in views[i].peers:
                pair = pair_key(m, views[i].mask_key, session, server.seed, i, j)
                total = take_off(1 if j > i else -1, stream_key(pair, delivered))
    total = [signed(x, p.bits) for x in total]
    most = len(server.survivors) * p.bound
    need(all(-most <= x <= most for x in total), AUTH, "a number of the sum is out of range")
    return total

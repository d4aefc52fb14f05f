# SPDX-License-Identifier: Apache-2.0
"""secagg_transcript.py - a round as a file: played from given entropy, or checked.

A transcript is JSON:
  params    section 1, by the names of its table; task and roster in hex
  round     16 bytes, hex
  secrets   optional; for each site signing_seed (hex), entropy ([seed, stream] of src/crypto/entropy.c) and vector
  events    in the order in which they reached their receiver: {"to": site, "bytes": hex}, {"from": site, "bytes": hex},
            {"lost": site} where the transport gave a site up, {"close": true} where a phase was ended by its deadline
  survivors, total      what the server claims; `failed` (true) instead when it gave the round up
"""

from secagg_parties import Server, Site, View
from secagg_primitives import Entropy, ed25519_public
from secagg_rules import Params
from secagg_wire import STATE, TOO_FEW, Refused, decode

STREAM_OF_KEYS = 1 << 32  # where played rounds take signing keys from: no site has that number


# ---- playing -------------------------------------------------------------------------------------------------------


def vector_of(params, seed, site):
    """Some vector in range, with both ends of the range in it."""
    draw = Entropy(seed, (2 << 32) + site)
    numbers = [int.from_bytes(draw.take(8), "little") % (2 * params.bound + 1) - params.bound
               for _ in range(params.length)]  # fmt: skip
    numbers[site % params.length] = params.bound if site % 2 else -params.bound
    return numbers


def prepare(spec):
    """(params, secrets) of a played round; spec holds the parameters but for the roster, and `seed`."""
    seed = spec["seed"]
    seeds = [Entropy(seed, STREAM_OF_KEYS + i).take(32) for i in range(spec["sites"])]
    task = Entropy(seed, STREAM_OF_KEYS - 1).take(32)
    names = "sites dropped corrupt degree threshold attempts length bits bound keystream".split()
    params = Params(**{k: spec[k] for k in names}, task=task, roster=tuple(map(ed25519_public, seeds)))
    if params.faults():
        raise ValueError("; ".join(params.faults()))
    return params, [
        {"signing_seed": s.hex(), "entropy": [seed, i], "vector": vector_of(params, seed, i)}
        for i, s in enumerate(seeds)
    ]


def sites_of(params, secrets):
    return [
        Site(params, i, bytes.fromhex(s["signing_seed"]), Entropy(*s["entropy"]), s["vector"])
        for i, s in enumerate(secrets)
    ]


def play(spec):
    """The transcript of a round in which spec["silent"], pairs [message, site], never come: a site falls silent when
    that message is due, `open 2` being the one of the second throw."""
    params, secrets = prepare(spec)
    round_ = Entropy(spec["seed"], STREAM_OF_KEYS - 2).take(16)
    server, sites, events = Server(params, round_), sites_of(params, secrets), []
    silent = {(message, site) for message, site in spec.get("silent", [])}
    while server.total is None and not server.failed:
        letters, server.outbox, quiet = server.outbox, [], False
        answers = []
        for to, data in letters:
            events.append({"to": to, "bytes": data.hex()})
            answers.append((to, sites[to].recv(data)))
        phase = f"open {server.throw}" if server.phase == "open" else server.phase
        for site, data in answers:
            if (phase, site) in silent:
                quiet = True
                continue
            events.append({"from": site, "bytes": data.hex()})
            if server.recv(site, data):
                raise ValueError(f"the server refuses site {site} in {server.phase}")
        if quiet:
            events.append({"close": True})
            server.close()
    end = {"failed": True} if server.failed else {"survivors": server.survivors, "total": server.total}
    return {"params": params.to_json(), "round": round_.hex(), "secrets": secrets, "events": events, **end}


# ---- checking ------------------------------------------------------------------------------------------------------


def difference(to_server, got, want):
    """In what two messages differ, in words."""
    try:
        (kind, a), (other, b) = decode(to_server, got, len(got)), decode(to_server, want, len(want))
    except Refused as refused:
        return refused.why
    if kind != other:
        return f"it is '{kind}', not '{other}'"
    return f"'{kind}' differs in " + ", ".join(name for name in a if a[name] != b[name])


def kind_of(to_server, data):
    try:
        return decode(to_server, data, len(data))[0]
    except Refused:
        return None


class Verifier:
    """Follows a transcript with a reference server, a view of each site and, where secrets are given, the sites."""

    def __init__(self, transcript):
        self.t, self.findings, self.given_up = transcript, [], set()
        self.params = Params.from_json(transcript["params"])
        for why in self.params.faults():
            self.find("parameters", why)
        if self.findings:
            return
        self.server = Server(self.params, bytes.fromhex(transcript["round"]))
        self.views = [View(self.params, i) for i in range(self.params.sites)]
        self.sites = sites_of(self.params, transcript["secrets"]) if "secrets" in transcript else None
        self.answers, self.seen = {}, set()

    def find(self, where, why):
        self.findings.append(f"{where}: {why}")

    def stop_following(self, where, site, why):
        """One finding for each site: whatever follows the first only repeats it."""
        if site not in self.given_up:
            self.given_up.add(site)
            self.find(where, f"site {site}: {why}")

    def run(self):
        if self.findings:
            return self.findings
        for number, event in enumerate(self.t["events"]):
            where = f"event {number}"
            if "to" in event:
                self.told(where, event["to"], bytes.fromhex(event["bytes"]))
            elif "from" in event:
                self.said(where, event["from"], bytes.fromhex(event["bytes"]))
            elif "lost" in event:
                self.server.lose(event["lost"])
            else:
                self.server.close()
        self.one_view()
        self.the_end()
        return self.findings

    def told(self, where, site, data):
        """To a site: what section 3 lets the server say, and what the site must check."""
        view = self.views[site]
        if data == view.last or site in self.given_up:
            return
        if self.server.failed and kind_of(False, data) == "aborted":
            return
        due = next((letter for letter in self.server.outbox if letter[0] == site), None)
        if due is not None:
            self.server.outbox.remove(due)
        if due is None:
            self.stop_following(where, site, "the server has no reason to say anything to it now")
        elif due[1] != data:
            self.stop_following(where, site, "the server says another thing: " + difference(False, data, due[1]))
        try:
            view.told(data)
        except Refused as refused:
            if refused.status != TOO_FEW:  # an honest server may have lost too many around this site: it leaves
                self.stop_following(where, site, f"it must refuse this ({refused.status}): {refused.why}")
            view.owes = None
        if self.sites and site not in self.given_up:
            try:
                self.answers[site] = self.sites[site].recv(data)
            except Refused as refused:
                self.answers[site] = self.sites[site].leave(refused.status)

    def said(self, where, site, data):
        """From a site: what the server must check, and with its secrets every byte."""
        if (site, data) in self.seen:
            return
        self.seen.add((site, data))
        want = self.answers.get(site)
        if want is not None and want != data and kind_of(True, data) != "leave":  # a ledger may refuse at any time
            self.stop_following(where, site, "its secrets say another thing: " + difference(True, data, want))
        if site not in self.given_up:
            try:
                self.views[site].said(data)
            except Refused as refused:
                self.stop_following(where, site, f"the server must refuse this ({refused.status}): {refused.why}")
        if self.server.recv(site, data) == STATE and site not in self.server.lost:
            self.stop_following(where, site, "the message comes too late")

    def one_view(self):
        """All sites that got so far must have the same seed, the same delivered and the same survivors."""
        for name, what in (("seed", "seed"), ("delivered_map", "delivered"), ("survivors_map", "survivors")):
            values = {}
            for view in self.views:
                if getattr(view, name, None) is not None:
                    values.setdefault(getattr(view, name), view.index)
            if len(values) > 1:
                self.find("sites", f"different {what} were shown to sites {sorted(values.values())}")

    def the_end(self):
        """3.7, and with the vectors the plain sum."""
        if self.server.failed or self.server.total is None:
            if not self.t.get("failed"):
                self.find("end", f"the round cannot end well: {self.server.failed or 'it is not over'}")
            return
        if self.t.get("failed"):
            self.find("end", "the server gave up a round that can be finished")
            return
        if self.t["survivors"] != self.server.survivors:
            self.find("end", f"the survivors are {self.server.survivors}")
        if self.t["total"] != self.server.total:
            wrong = [i for i, (a, b) in enumerate(zip(self.t["total"], self.server.total)) if a != b]
            self.find("end", f"the total is wrong, first at {wrong[0] if wrong else 'its length'}")
        if self.sites:
            vectors = [self.sites[i].vector for i in self.server.survivors]
            if self.server.total != [sum(column) for column in zip(*vectors)]:
                self.find("end", "the total is not the plain sum over the survivors")


def verify(transcript):
    """Findings, one line each; none when all is well."""
    return Verifier(transcript).run()

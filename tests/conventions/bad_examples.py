# SPDX-License-Identifier: Apache-2.0
"""bad_examples.py - documents that the schemas must refuse, made from the good examples by one change each.

A row: the good example, the place of the change, the value put there (or REMOVE), words of the complaint. For every
good example `changes` also makes what needs no row: each value with another type, each key that is not OPTIONAL
removed, each object with an unknown key.
"""

import copy
import json
import re

REMOVE = object()
OPEN = {"cell", "evaluate", "train"}  # schemas of printed results that may gain keys: an unknown one is accepted
OPTIONAL = {  # paths whose key may be absent
    "cell": r"points\.\d+\.(at|facts|reference|x|(facts|values)\..*)",
    "certificate": r"accounting|holds_against|moments|noise_shares|rho",
    "evaluate": r"model|through_codec|(through_codec\.)?per_class\..*",
    "experiment-partition": r"test_owner",
    "personalize": r"(mean|pooled|spread|sites\.\d+\.accuracy)\..*",
    "privacy": r"promise|with_records|parts|size",
    "results": r"(arms\.\d+\.)?accuracy(\..*)?|accuracy_without_privacy(\..*)?|codec(_dtype)?"
    r"|aggregation\.cohorts|composed_epsilon|coordinates"
    r"|arms\.\d+\.(accounting|classes|epsilon_spent|rho|sigma_(count|moment|sum)_in_total)"
    r"|not_private|partition|seconds\..*|skipped|test_images",
    "task": r"cohorts|federation|moments|service|service\.(names|pin)|signature",
    "train": r"test\.through_codec|test\.(through_codec\.)?per_class\..*",
}

ROWS = [
    ("certificate.central", "entropy", REMOVE, "is a required property"),
    ("certificate.central", "entropy", "INSECURE SEED", "was expected"),
    ("certificate.central", "unit", "person", "was expected"),
    ("certificate.central", "delta", 0.01, "is a required property"),
    ("certificate.cohorts", "cohorts", REMOVE, "is not of type"),
    ("certificate.cohorts", "cohorts.list", [], "too short"),
    ("certificate.cohorts", "cohorts.colluding_covered.security", 20, "was expected"),
    ("certificate.distributed", "accounting", "zcdp", "was expected"),
    ("certificate.distributed", "noise_shares", REMOVE, "is a required property"),
    (
        "certificate.distributed",
        "holds_against",
        "readers of the release and the server with up to 1 colluding site",
        "was expected",
    ),
    ("certificate.guide", "guide.sigma_sum", REMOVE, "is a required property"),
    ("certificate.guide", "sigma_moment", REMOVE, "is a dependency of"),
    ("certificate.guide-alone", "guide", REMOVE, "is not valid under"),
    ("certificate.insecure-seed", "private", True, "was expected"),
    ("certificate.joined", "codec", REMOVE, "is a required property"),
    ("certificate.weak", "private", True, "was expected"),
    ("evaluate.head", "accuracy", 75, "greater than"),
    ("evaluate.head", "device.index", -1, "less than"),
    ("evaluate.model", "private", REMOVE, "is a dependency of"),
    ("evaluate.model", "epsilon", None, "is not of type"),
    ("images.made", "release_sha256", REMOVE, "is a required property"),
    ("images.made", "private", True, "was unexpected"),
    ("key.rfc8032", "name", "two\nlines", "does not match"),
    ("key.rfc8032", "secret", REMOVE, "is a required property"),
    ("key.rfc8032", "secret", "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "does not match"),
    ("ledger.federation", "accounts.0.entries.0.accounting", "renyi", "is not one of"),
    ("ledger.federation", "accounts.0.budget.delta", None, "is not of type"),
    ("ledger.federation", "accounts.0.entries.2.session", None, "is not of type"),
    ("ledger.one-release", "accounts.0.dataset", "", "too short"),
    ("ledger.one-release", "accounts.0.left.mu2", -1, "less than"),
    ("ledger.one-release", "accounts.0.entries.0.time", "yesterday", "does not match"),
    ("personalize.own-records", "private", True, "was expected"),
    ("personalize.own-records", "sites.0.accuracy.tuned", 87.5, "greater than"),
    ("personalize.test-set", "holdout", 0.25, "should not be valid"),
    ("personalize.test-set", "mean.best", 0.9, "was unexpected"),
    ("cell.osfl-20", "points.0.at", REMOVE, "is not valid under any"),
    ("cell.osfl-20", "points.0.values.lda", "high", "is not of type"),
    ("cell.osfl-20", "points.0.facts.moments_sha256", "aa", "does not match"),
    ("cell.osfl-20", "seed", -1, "less than"),
    ("experiment-partition.toy", "by", "chance", "is not one of"),
    ("experiment-partition.toy", "owner", "00x1222", "does not match"),
    ("experiment-partition.toy", "rule", "pathological", "does not match"),
    ("experiment-set.demo", "set", "../demo", "does not match"),
    ("experiment-set.demo", "sha256", "aa", "does not match"),
    ("privacy-audit.two-cases", "confidence", 1, "greater than"),
    ("privacy-audit.two-cases", "cases.0.layout", "both", "is not one of"),
    ("privacy-audit.two-cases", "cases.0.sites", REMOVE, "is a required property"),
    ("privacy.add-remove", "mu", 0, "less than"),
    ("privacy.add-remove", "mechanism", "paper", "was expected"),
    ("privacy.add-remove", "sigma", 1, "was unexpected"),
    ("privacy.noise-shares", "federation", REMOVE, "is a required property"),
    ("privacy.parts", "parts.1.sigma_sum", REMOVE, "is a required property"),
    ("privacy.parts", "size.bytes_masked", REMOVE, "is a dependency of"),
    ("privacy.parts", "moments", "class", "was expected"),
    ("receipt.one-round", "secret", "x", "was unexpected"),
    ("receipt.one-round", "messages.0.taken", 1, "is not of type"),
    ("results.two-arms", "accuracy.lda", 70, "greater than"),
    ("results.two-arms", "aggregation.lost.coin", REMOVE, "is a required property"),
    ("results.two-arms", "arms", [], "too short"),
    ("results.two-arms", "accuracy_of_the_future", 1, "was unexpected"),
    ("site.rfc8032", "key", "D75A980182B10AB7D54BFED3C964073A0EE172F3DAA62325AF021A68F707511A", "does not match"),
    ("site.rfc8032", "proof", REMOVE, "is a required property"),
    ("site.rfc8032", "secret", "00", "was unexpected"),
    ("status.released", "release_sha256", "", "too short"),
    ("status.running", "grid", True, "was expected"),
    ("status.running", "site_status", "rrxrrrrrrrrr", "does not match"),
    ("status.running", "vector", [1], "was unexpected"),
    ("task.cohort", "federation", REMOVE, "is a required property"),
    ("task.cohort", "cohorts.index", REMOVE, "is a required property"),
    ("task.cohort", "cohorts.number", 1, "less than"),
    ("task.cohort", "federation.noise", "central", "was expected"),
    ("task.federation", "federation.corrupt", 0, "less than"),
    (
        "task.federation",
        "federation.roster.0",
        "A983F8E58D14960FDD8536B761BE4BF50CC920AB682C126D2EA3C1AE3B74902D",
        "does not match",
    ),
    ("task.federation", "federation.security", 20, "less than"),
    ("task.gain-shape", "classes", ["a", "a"], "non-unique"),
    ("task.gain-shape", "privacy.delta", 1, "greater than"),
    ("task.gain-shape", "codec.sha256", "AB", "does not match"),
    ("task.gain-shape", "coordinates.gamma", REMOVE, "is a required property"),
    ("task.gain-shape", "privacy.mechanism", "paper", "was expected"),
    ("task.gain-shape", "privacy.promise", "sound", "was expected"),
    ("task.gain-shape", "extra", 1, "was unexpected"),
    ("task.gain-shape", "privacy.epsilon", 50.0, "is a required property"),
    ("task.guide", "privacy.budget_split", [1, 24, 75], "is too short"),
    ("task.guide", "privacy.mechanism", "paper", "was expected"),
    ("task.guide", "calibration", REMOVE, "is a dependency of"),
    ("task.guide", "guide.coordinates.rq", 63, "less than"),
    ("task.guide", "moments", {"joined": False, "pooled": False}, "is not valid under"),
    ("task.guide-alone", "guide", REMOVE, "is not valid under"),
    ("task.guide-alone", "moments.joined", True, "is a required property"),
    ("task.joined", "privacy.budget_split", [1, 8, 25, 16, 50], "is too long"),
    ("task.service", "service.address", "https://me@fedkt.example.org/x", "does not match"),
    ("task.service", "federation", REMOVE, "is a dependency of"),
    ("task.service", "service.names", ["one", "one", "two", "three", "four"], "non-unique"),
    ("task.service", "service.pin", "sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=", "does not match"),
    ("task.service", "service.rounds", 65, "greater than"),
    ("task.service", "service.insecure_seed", 9007199254740992, "greater than"),
    ("task.service", "signature.bytes", "00", "does not match"),
    ("train.private", "epochs", [], "too short"),
    ("train.private", "device.kind", "gpu", "is not one of"),
    ("train.private", "private", False, "is not of type"),
    ("transparency.message", "vector", [1, 2], "not valid under"),
    ("transparency.release", "certificate_sha256", REMOVE, "not valid under"),
    ("transparency.survivors", "survivors", "0g", "not valid under"),
    ("verify.released", "epsilon", REMOVE, "is a required property"),
    ("weights.pulled", "files.1.checked", "trusted", "is not one of"),
    ("weights.pulled", "files.1.name", "../model.safetensors", "does not match"),
    ("weights.pulled", "hub", "http://hub.example.org", "does not match"),
    ("weights.pulled", "commit", REMOVE, "is a required property"),
]


def changed(document, path, value):
    """A copy of the document with the value at the path replaced, put in or removed."""
    result = copy.deepcopy(document)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at = result
    for part in way:
        at = at[part]
    if value is REMOVE:
        del at[last]
    else:
        at[last] = value
    return result


def places(node, path=()):
    """The path of every value in the document."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*path, str(key)), child
        yield from places(child, (*path, str(key)))


def changes(name, document):
    """Gives (what was done, changed document) for each value and each object of an example of schema `name`."""
    for path, value in [((), document), *places(document)]:
        if path:
            at = ".".join(path)
            yield f"{at}: another type", changed(document, at, {"unexpected": "object"})
            if not path[-1].isdigit() and not re.fullmatch(OPTIONAL.get(name, ""), at):
                yield f"{at}: removed", changed(document, at, REMOVE)
        if isinstance(value, dict) and name not in OPEN:
            unknown = ".".join((*path, "unexpected"))
            yield f"{unknown}: unknown key", changed(document, unknown, 1)


def load(folder, name):
    return json.loads((folder / "examples" / f"{name}.json").read_text())

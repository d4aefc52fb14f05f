#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables from the files that bench/gpu.sh wrote, as Markdown; on request into docs/results.md.

usage: bench/gpu_report.py OUT [OUT ...]                         prints all tables
       bench/gpu_report.py OUT [OUT ...] --fill docs/results.md  puts each between its markers, <!-- gpu:NAME --> and
                                                                 <!-- /gpu:NAME -->, and leaves the rest as it is

Several folders are parts of one visit; of a file that is in several, the one of the last folder counts.
Figures in these places are never typed. A table whose files are absent is left as it is, and named on stderr.
"""

import argparse
import csv
import json
import os
import re
import sys

STAGES = ("encode", "statistics", "decode")


LATE = ("124", "137")  # exit of `timeout`


def read(out, name):
    for folder in reversed(out):
        try:
            with open(os.path.join(folder, name)) as f:
                return json.load(f) if name.endswith(".json") else list(csv.reader(f))
        except OSError:
            pass
    return None


def table(head, rows):
    return "\n".join(["| " + " | ".join(r) + " |" for r in ([*head], ["---"] * len(head), *rows)])


def seconds(x):
    return f"{x:.4f}" if x < 0.1 else f"{x:.3f}"


def known(side):
    return bool(side) and "error" not in side


# -------------------------------------------------------------------------------------------------------------- tables


def versions(out):
    v = read(out, "versions.json")
    if not v:
        return None
    smi, peer, ours = v.get("nvidia_smi") or {}, v.get("peer") or {}, v.get("ours") or {}
    place = [(ours.get("device") or {}).get("name"), ours.get("network_library"), f"isa {ours.get('isa')}"]
    facts = {
        "card": f"{peer.get('gpu', smi.get('name', '?'))}, {peer.get('memory_gib', '?')} GiB",
        "driver": smi.get("driver_version"),
        "clock, now and at most": f"{smi.get('clocks.sm')}, {smi.get('clocks.max.sm')}; memory {smi.get('clocks.mem')}",
        "power limit": smi.get("power.limit"),
        "CUDA toolkit": v.get("nvcc"),
        "PyTorch": f"{peer.get('torch')}, CUDA {peer.get('cuda')}, cuDNN {peer.get('cudnn_of_torch')}",
        "fedkt": ", ".join(str(x) for x in (v.get("fedkt"), *place) if x),
        "host": f"{v['machine'].get('cpu')}, {v['machine'].get('cpus')} threads, load {v.get('load_at_start', 0):.1f}",
    }
    return table(("what", "version or value"), [(k, str(x)) for k, x in facts.items() if x])


def tests(out):
    ran, checked = read(out, "tests.csv"), read(out, "sanitizer.csv")
    if not ran and not checked:
        return None
    rows = []
    skipped = [r[0] for r in ran or [] if r[1] == "77"]
    if ran:
        of = [r for r in ran if r[0] not in skipped]
        bad = [r[0] for r in of if r[1] != "0"]
        rows.append(("tests of label gpu", str(len(of)), str(len(of) - len(bad)), ", ".join(bad) or "none", ""))
    for tool in ("memcheck", "racecheck"):
        of = [r for r in checked or [] if r[0] == tool and r[1] not in skipped]
        late = [r[1] for r in of if r[2] in LATE]
        bad = [f"{r[1]} ({r[3]})" for r in of if r[2:] != ["0", "0"] and r[1] not in late]
        fine = str(len(of) - len(bad) - len(late))
        if of:
            rows.append((f"compute-sanitizer {tool}", str(len(of)), fine, ", ".join(bad) or "none", ", ".join(late)))
    return table(("", "binaries", "without a finding", "with one (errors)", "not finished in time"), rows)


def total(side):
    return sum(side[s]["seconds"] for s in STAGES)


def three(side):
    return " / ".join(seconds(side[s]["seconds"]) for s in STAGES)


def ours_of(row):
    """Where there are two runs, before and after PyTorch's, the slower one."""
    runs = [row[k] for k in ("ours", "ours_again") if known(row.get(k))]
    return max(runs, key=total) if runs else None


def ours_rate(row):
    return min((row[k]["images_per_s"] for k in ("ours", "ours_again") if known(row.get(k))), default=None)


def complete(side):
    return known(side) and all(s in side for s in STAGES)


def cost(out):
    rows = read(out, "cost.json")
    if not rows:
        return None
    lines = []
    for r in rows:
        sides = {k: r.get(k) if complete(r.get(k)) else None for k in ("eager", "compiled")}
        sides = {"ours": ours_of(r), **sides}
        cells = [f"{three(s)} = {seconds(total(s))}" if s else error(r, k) for k, s in sides.items()]
        paper = r.get("paper")
        cells.append(f"{' / '.join(f'{x:.3f}' for x in paper)} = {sum(paper):.3f}" if paper else "")
        lines.append((r["case"], *cells))
    head = ("encode / statistics and sampling / decode = total, s", "ours", "PyTorch, eager", "PyTorch, compiled")
    return table((*head, "the paper, RTX 5090"), lines) + parts_of_statistics(rows)


def parts_of_statistics(rows):
    """What our statistics consist of: from the note of `fedkt bench cost`."""
    found = []
    for r in rows:
        note = ((ours_of(r) or {}).get("statistics") or {}).get("note", "")
        parts = re.search(r"m = \d+; (vectors .*?); median", note)
        if parts:
            found.append(f"{r['case']}: {parts.group(1)}")
    return "\n\nOur statistics and sampling, in milliseconds:\n\n" + "\n".join(f"- {x}" for x in found) if found else ""


def error(row, key):
    return "failed: " + (row.get(key) or {}).get("error", "not run")[:60].replace("|", "/")


def networks(side):
    return side["encode"]["seconds"] + side["decode"]["seconds"]


def ratios(out):
    rows, peak = read(out, "cost.json"), read(out, "peak.json")
    if not rows:
        return None
    top = ((peak or {}).get("bf16") or {}).get("gflops")
    lines = []
    for r in rows:
        mine = ours_of(r)
        if not mine:
            continue
        cells = [f"{sum(r['paper']) / total(mine):.1f}" if r.get("paper") else ""]
        for form in ("eager", "compiled"):
            s = r.get(form)
            cells.append(f"{total(s) / total(mine):.2f}, {networks(s) / networks(mine):.2f}" if complete(s) else "")
        gflop = next((r[k]["gflop_per_image"] for k in ("eager", "compiled") if known(r.get(k))), None)
        share = lambda s: " / ".join(
            f"{100 * r['images'] * g / s[k]['seconds'] / top:.0f}" for g, k in zip(gflop, ("encode", "decode"))
        )
        for s in (mine, r.get("compiled")):
            cells.append(share(s) if top and gflop and s and complete(s) else "")
        lines.append((r["case"], *cells))
    head = ("", "paper's total over ours", "eager over ours: total, networks", "compiled over ours: total, networks")
    text = table((*head, "ours, % of the matmul peak", "compiled, % of the peak"), lines)
    return text + (f"\n\nBest bf16 matrix product of the same run: {top / 1000:.0f} TFLOP/s." if top else "")


def train(out):
    rows, peak = read(out, "train.json"), read(out, "peak.json") or {}
    if not rows:
        return None
    lines = []
    for r in rows:
        mine = ours_rate(r)
        rate = lambda k: r[k]["images_per_s"] if known(r.get(k)) and "images_per_s" in r[k] else None
        eager, best = rate("eager"), max((x for x in (rate("compiled"), rate("default")) if x), default=None)
        top = (peak.get(r["dtype"]) or {}).get("gflops")
        gflop = next((r[k]["gflop_per_image"] for k in ("eager", "default") if "gflop_per_image" in r.get(k, {})), None)
        cells = [f"{x:,.0f}" if x else "" for x in (mine, eager, best)]
        cells[0] = cells[0] or error(r, "ours")
        cells += [f"{mine / x:.2f}" if mine and x else "" for x in (eager, best)]
        cells.append(f"{100 * mine * gflop / top:.0f}" if mine and gflop and top else "")
        lines.append((f"{r['network']}, {r['size']} px, {r['dtype']}, {r['images']:,} images", *cells))
    head = ("images/s", "ours", "PyTorch, eager", "PyTorch, compiled", "times eager", "times compiled")
    return table((*head, "ours, % of the matmul peak"), lines)


def pair(out):
    said = read(out, "pair.json")
    if not said:
        return None
    lines = []
    for name, document in said.items():
        rates = [r for r in document.get("rows", []) if r["unit"] == "images/s"]
        lines += [(r["name"].replace("/", ": "), f"{r['value']:,.0f}", r["note"]) for r in rates]
        lines += [(name, error(said, name), "")] if not known(document) else []
    return table(("the shipped pair", "images/s", "measured"), lines)


def repeat(out):
    r = read(out, "repeat.json")
    if not r:
        return None
    word = {True: "the same bits", False: "DIFFERENT", None: "failed"}
    text = "Twice the same command on the card: " + ", ".join(f"{k}: {word[v]}" for k, v in r["repeats"].items()) + "."
    lines = []
    for name, row in r["beside_processor"].items():
        q, z, m = row["q"], row["latents"], row["moments"]
        cells = [f"{q['different']:,} of {q['numbers']:,} ({100 * q['share']:.3g} %)", f"{q['largest']:.0f}"]
        cells += [f"{q['mean']:.2g}", f"{z['largest_relative']:.1e}"]
        cells.append(f"{m['second']['different']:,} of {m['second']['numbers']:,}, by {m['second']['largest']:.0f}")
        lines.append((name, *cells))
    head = ("card beside processor", "integers of q that differ", "by at most", "on average")
    more = ("largest difference of a latent, relative", "second moments of classes that differ")
    return text + "\n\n" + table((*head, *more), lines)


def any_algorithm(out):
    free, costs, trains = read(out, "any.json"), read(out, "cost.json") or [], read(out, "train.json") or []
    if not free:
        return None
    lines = []
    for f in free:
        if not known(f):
            continue
        if "images_per_s" in f:
            name = lambda t: (f"{t['network']} {t['size']} px", t["dtype"])
            mine = ours_rate(next((t for t in trains if name(t) == (f["case"], f["dtype"])), {}))
            pair = (mine, f["images_per_s"], mine / f["images_per_s"]) if mine else None
            unit = "images/s"
        else:
            mine = ours_of(next((c for c in costs if c["case"] == f["case"]), {}))
            pair = (networks(mine), networks(f), networks(f) / networks(mine)) if mine else None
            unit = "s, both networks"
        if pair:
            lines.append((f"{f['case']}, {f['dtype']}, {unit}", f"{pair[0]:.4g}", f"{pair[1]:.4g}", f"{pair[2]:.2f}"))
    return table(("", "deterministic", "any algorithm", "speed of the first over the second"), lines)


def cpu(out):
    lines, machine = [], ""
    for name, label in (("cpu_codec.json", "codec"), ("cpu_train.json", "model")):
        d = read(out, name)
        for r in (d or {}).get("rows", []):
            pair = [f"{r[k]['best']:.1f} ({r[k]['median']:.1f})" if r.get(k) else "" for k in ("ours", "peer")]
            f = r["peer_form"]
            form = f.get("unavailable") or f"{f['form']}{', batch ' + str(f['batch']) if 'batch' in f else ''}"
            ratio = "{best:.2f} ({median:.2f})".format(**r["ratio_to_peer"]) if "ratio_to_peer" in r else ""
            what = f"{r[label]}, {r['size']} px, {r['dtype']}, {r.get('what', 'training')}"
            lines.append((what, *pair, ratio, str(form)))
        if d:
            machine = f"\n\n{d['threads']} threads of {d['machine']['cpu']}, PyTorch {d['machine'].get('torch')}."
    head = ("images/s, best (median)", "ours", "PyTorch", "ratio", "PyTorch's form")
    return table(head, lines) + machine if lines else None


TABLES = {f.__name__: f for f in (versions, tests, cost, ratios, train, pair, repeat, cpu)} | {"any": any_algorithm}


def fill(path, made):
    with open(path) as f:
        text = f.read()
    for name, body in made.items():
        mark = re.compile(rf"(<!-- gpu:{name} -->\n).*?(<!-- /gpu:{name} -->)", re.S)
        if not mark.search(text):
            sys.exit(f"gpu_report.py: '{path}' has no markers for '{name}'")
        text = mark.sub(lambda m: f"{m.group(1)}\n{body}\n\n{m.group(2)}", text)
    with open(path, "w") as f:
        f.write(text)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out", nargs="+")
    p.add_argument("--fill")
    a = p.parse_args()
    made = {name: body for name, body in ((n, f(a.out)) for n, f in TABLES.items()) if body}
    for name in TABLES.keys() - made.keys():
        print(f"gpu_report.py: nothing for the table '{name}' in {' '.join(a.out)}", file=sys.stderr)
    if a.fill:
        fill(a.fill, made)
    else:
        for name, body in made.items():
            print(f"## {name}\n\n{body}\n")


if __name__ == "__main__":
    main()

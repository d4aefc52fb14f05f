# SPDX-License-Identifier: Apache-2.0
"""Trains everything that fedkt ships, from Tiny ImageNet alone:

    python training/run.py --data tiny-imagenet-200 --out models

In order: wide public classifiers, the guide taught by them (the loss is chosen on the proxy), autoencoder, fast decoder
of guided images, then the students of the proxy. Every step writes its files before the next begins, and is
skipped when they are there. Needs PyTorch, Pillow, safetensors and one large GPU; --quick runs all of it on a few
images on a CPU, to see that it works.
"""
import argparse
import json
import os
import time

import numpy as np
import torch
from PIL import Image

import autoencoder
import guide
import guided
import proxy
from networks import GUIDE_WIDTHS, ResNet, decoder, encoder
from public import load, proxy_classes
from release import Calibration
from save import save
from views import pixels, shrink

TOP = 80  # numbers of the guide
TEACHERS = {"moved": (14, "moved", 1), "mild": (16, "mild", 2), "both": (18, "both", 2)}  # epochs, views, stem
LOSSES = {  # views; weights of the teachers' classes and features
    "classes, mild": ("mild", (1, 0)), "evenly, mild": ("mild", (1, 1)), "evenly, both": ("both", (1, 1))}


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, help="folder with train/ and val/")
    p.add_argument("--out", required=True)
    p.add_argument("--seconds", type=float, default=130, help="for the autoencoder, and a quarter more for the fast decoder")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--epochs", type=int, default=40, help="of the guide")
    p.add_argument("--until", type=float, default=1e9, help="begin no further student after so many seconds")
    p.add_argument("--keep", help="folder for what only a restart needs (default: --out)")
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class Log:
    def __init__(self, path):
        self.began, self.file = time.time(), open(path, "a", buffering=1)

    def __call__(self, text):
        line = f"{time.time() - self.began:7.1f} {text}"
        print(line, flush=True)
        self.file.write(line + "\n")


def small(images, dev, batch=4096):
    """uint8 (n,64,64,3) -> uint8 (n,32,32,3)."""
    out = []
    for i in range(0, len(images), batch):
        x = shrink(pixels(images, slice(i, i + batch)), 32)
        out.append((x * 255 + 0.5).clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1))
    return torch.cat(out).contiguous()


def sheet(path, rows, columns=20):
    """rows: [(b,3,S,S)] in [0,1]."""
    tiles = [torch.cat(list(r[:columns].float().cpu()), 2) for r in rows]
    array = (torch.cat(tiles, 1).permute(1, 2, 0).clamp(0, 1) * 255 + 0.5).to(torch.uint8).numpy()
    Image.fromarray(np.ascontiguousarray(array)).resize((array.shape[1] * 2, array.shape[0] * 2), 0).save(path)


class World:
    """Public images on the device, cut into trained classes and proxy."""

    def __init__(self, a, log):
        self.wide = (8, 16, 32, 64) if a.quick else proxy.STUDENT
        proxy.STUDENT = self.wide
        self.dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        splits, names = load(a.data, 3 if a.quick else 0)
        held = proxy_classes(names)
        trained = [n for n in names if n not in held]
        to = lambda x: torch.from_numpy(x).to(self.dev)
        images, labels = (to(x) for x in splits["train"])
        place = torch.full((len(names),), -1, device=self.dev)
        place[torch.tensor([names.index(n) for n in trained], device=self.dev)] = torch.arange(len(trained),
                                                                                              device=self.dev)
        keep = place[labels] >= 0
        self.images, self.labels, self.classes = images[keep], place[labels[keep]], len(trained)
        self.images32 = small(self.images, self.dev)
        rest = small(images[~keep], self.dev), labels[~keep]
        extra = splits.get("val", (splits["train"][0][:0], splits["train"][1][:0]))
        extra = to(extra[0]), to(extra[1])
        mine = place[extra[1]] < 0
        extra = small(extra[0][mine], self.dev) if mine.any() else rest[0][:0], extra[1][mine]
        ids = [names.index(n) for n in held]
        if a.quick:
            proxy.RECORDS = 2
        self.tasks = [proxy.Task(*rest, *extra, ids[i::2]) for i in range(2)]
        log(f"{len(self.labels)} images of {self.classes} classes, proxy {len(rest[1])} + {len(extra[1])} "
            f"of {len(held)} classes")


def guides(a, w, log):
    """Wide classifiers; short trainings of the guide by the losses above, one loss chosen on the proxy; then a long one.
    Returns the guide, the first wide classifier (it serves perceptual loss and critic), and figures."""
    path = os.path.join(a.keep, "guide.pt")
    net, wide = ResNet(w.classes).to(w.dev).eval(), ResNet(w.classes, w.wide).to(w.dev).eval()
    if os.path.exists(path):
        for m, state in zip((net, wide), torch.load(path, map_location=w.dev)):
            m.load_state_dict(state)
            m.requires_grad_(False)
        return net, wide
    few = {"batch": 16, "most": 2} if a.quick else {}
    rounds = (lambda n: 1) if a.quick else (lambda n: n)

    def make(name, epochs, seed, **more):
        made = guide.train(w.images, w.labels, w.classes, rounds(epochs), seed + a.seed, name=name, log=log, **few, **more)
        if made.stem == 1:
            heads[name] = on_proxy(made, w)
            log(f"heads on the proxy, {name}, by k: no noise, mu x4, mu, mu/3: {heads[name]}")
        return made
    heads, wides = {}, []
    for i, (name, (epochs, view, stem)) in enumerate(TEACHERS.items()):
        wides.append(make("wide " + name, epochs, i, view=view, widths=w.wide, stem=stem))
    teachers = guide.Teachers(wides, w.images[::9])
    for name, (view, by) in LOSSES.items():
        make(name, a.epochs // 5, 10, view=view, teachers=teachers, by=by)
    best = max(LOSSES, key=lambda n: sum(heads[n].get(TOP, [0] * 4)[1:]))
    view, by = LOSSES[best]
    net = make(f"guide by {best}", a.epochs, 20, view=view, teachers=teachers, by=by)
    with open(os.path.join(a.out, "heads.json"), "w") as f:
        json.dump({"chosen": best, "heads": heads}, f, indent=1)
    torch.save([net.state_dict(), wides[0].state_dict()], path)
    return net, wides[0]


def on_proxy(net, w):
    """Accuracy of LDA on the proxy by k, without noise and with three amounts of it."""
    f, out = guide.features(net, w.images32[::9]), {}
    for k in (64, 80, 96):
        if k < len(f):
            cal = Calibration(f, k)
            out[k] = [round(proxy.head_accuracy(w.tasks, net, cal, mu), 1)
                      for mu in (None, proxy.MU * 4, proxy.MU, proxy.MU / 3)]
    return out


def students(a, w, enc, dec, twin, net, cal_z, cal_s, log):
    """ResNet-18 students of both proxy tasks, by way of generation, labels, and public images."""
    out, steps, pool, began = {}, 2 if a.quick else 800, 40 if a.quick else 10000, log.began

    def note(name, value):
        out.setdefault(name, []).append(round(value, 2))
        log(f"proxy {name}: {value:.1f}")
        with open(os.path.join(a.keep, "students.json"), "w") as f:
            json.dump(out, f, indent=1)
    for i, t in enumerate(w.tasks):
        r, pools = proxy.Release(t, enc, net, cal_z, cal_s, seed=i), {}
        ways = {"plain": r.plain(dec), "fast": r.fast(twin), "definition": r.definition(dec)}
        for name, make in ways.items():
            start = time.time()
            pools[name] = r.pool(make, pool)
            score = torch.cat([r.teacher(x) for x in pools[name][1].split(1000)])
            log(f"{name}: {pool} images in {time.time() - start:.1f} s")
            note(f"{name}, images of the class that the head sees", 100 * float((score.argmax(1) == pools[name][2])
                                                                               .float().mean()))
        real = pixels(t.test_x, slice(0, None, max(1, len(t.test_x) // 20)))
        sheet(os.path.join(a.out, f"proxy-{i}.png"),
              [real] + [p[1][torch.argsort(p[2])][::max(1, pool // 20)] for p in pools.values()])
        w_test = cal_s.coordinates(guide.features(net, t.test_x))
        note("head", 100 * float((proxy.score(r.head, w_test).argmax(1) == t.test_y).float().mean()))
        soft, seen = {"teacher": r.teacher}, {"public": w.images32}
        jobs = [("fast", soft), ("fast", {**soft, **seen}), ("definition", soft), ("fast", {**soft, "temperature": 4.0}),
                ("plain", soft), ("fast", {}), ("fast", {**soft, **seen, "steps": 3 * steps}), ("plain", {}),
                ("definition", {}), ("fast", {**soft, "temperature": 1.0}), ("fast", {**soft, "share": 0.5})]
        for name, more in jobs:
            if time.time() - began > a.until:
                return
            kw = {"steps": steps, **more}
            value = proxy.student(pools[name][0], t.test_x, t.test_y, t.classes, dev=w.dev, **kw)
            note(", ".join([name] + [k if k in ("teacher", "public") else f"{k} {v}" for k, v in more.items()]), value)


def main():
    a = parse()
    a.keep = a.keep or a.out
    for folder in (a.out, a.keep):
        os.makedirs(folder, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    log = Log(os.path.join(a.out, "log.txt"))
    w = World(a, log)
    net, wide = guides(a, w, log)
    save(net, os.path.join(a.out, "guide.safetensors"))
    path = os.path.join(a.keep, "autoencoder.pt")
    few = {"most": 3, "batch": 8} if a.quick else {}
    if os.path.exists(path):
        enc, dec = encoder().to(w.dev), decoder().to(w.dev)
        for m, state in zip((enc, dec), torch.load(path, map_location=w.dev)):
            m.load_state_dict(state)
    else:
        enc, dec = autoencoder.train(w.images, wide, w.wide, a.seconds, a.seed, log=log, **few)
        torch.save([enc.state_dict(), dec.state_dict()], path)
    enc, dec = enc.eval().requires_grad_(False), dec.eval().requires_grad_(False)
    save(enc, os.path.join(a.out, "encoder.safetensors"))
    save(dec, os.path.join(a.out, "decoder.safetensors"))
    part = slice(0, None, 9)
    latents = autoencoder.encode(enc, w.images32)
    feats = guide.features(net, w.images32)
    cal_z, cal_s = Calibration(latents[part], latents.shape[1]), Calibration(feats[part], TOP)
    torch.save({"z": vars(cal_z), "s": vars(cal_s)}, os.path.join(a.out, "calibrations.pt"))
    x = pixels(w.images32, slice(0, 20 * 400, 400))
    with torch.no_grad():
        sheet(os.path.join(a.out, "autoencoder.png"), [x, dec(enc(x)).clamp(0, 1)])
    path = os.path.join(a.keep, "guided.pt")
    if os.path.exists(path):
        twin = decoder(latent=4 + TOP).to(w.dev)
        twin.load_state_dict(torch.load(path, map_location=w.dev))
        twin.eval()
    else:
        vectors = cal_z.coordinates(latents), cal_s.coordinates(feats)
        samples = guided.Samples(*vectors, w.labels, w.classes, cal_z, cal_s)
        twin = guided.train(w.images, enc, dec, net, wide, w.wide, samples, cal_z, cal_s, 1.25 * a.seconds, a.seed,
                            log=log, **few)
        torch.save(twin.state_dict(), path)
    save(twin.requires_grad_(False), os.path.join(a.out, "guided.safetensors"))
    students(a, w, enc, dec, twin, net, cal_z, cal_s, log)
    log("done")


if __name__ == "__main__":
    main()

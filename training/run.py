# SPDX-License-Identifier: Apache-2.0
"""Trains everything that fedkt ships, from Tiny ImageNet alone:

    python training/run.py --data tiny-imagenet-200 --out models

In order: public classifiers (several candidates for the guide, one of them chosen on the proxy), autoencoder, fast
decoder of guided images, then the students of the proxy. Every step writes its files before the next begins, and is
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

TOP = 96  # numbers of the guide


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, help="folder with train/ and val/")
    p.add_argument("--out", required=True)
    p.add_argument("--seconds", type=float, default=220, help="for the autoencoder, and as many for the fast decoder")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--guide", help="train this candidate without comparing it with the others")
    p.add_argument("--until", type=float, default=1e9, help="begin no further student after so many seconds")
    p.add_argument("--have", help="a guide.safetensors of an earlier run, in place of training candidates")
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
    """The wide network that serves perceptual loss and critic, and the candidates for the guide."""
    rounds = (lambda n: 1) if a.quick else (lambda n: n)
    kw = dict(log=log, **({"batch": 16, "most": 2} if a.quick else {}))
    path = os.path.join(a.keep, "candidates.pt")
    jobs = {"wide": (rounds(16), 1, w.wide), "14": (rounds(14), 2, GUIDE_WIDTHS)}
    nets = {}
    if os.path.exists(path):
        for name, state in torch.load(path, map_location=w.dev).items():
            nets[name] = ResNet(w.classes, jobs[name][2] if name in jobs else GUIDE_WIDTHS).to(w.dev).eval()
            nets[name].load_state_dict(state)
            nets[name].requires_grad_(False)
        return nets
    if a.have:
        jobs = {"wide": jobs["wide"]}
    for name, (epochs, seed, widths) in jobs.items():
        nets[name] = guide.train(w.images, w.labels, w.classes, epochs, seed + a.seed, widths, name=name, **kw)
    if a.have:
        from safetensors.torch import load_file
        net = nets[a.guide] = ResNet(w.classes).to(w.dev).eval().requires_grad_(False)
        net.load_state_dict({k: v.float() for k, v in load_file(a.have).items()}, strict=False)
    for name, epochs in () if a.have else (("taught-24", 24),):
        nets[name] = guide.train(w.images, w.labels, w.classes, rounds(epochs), epochs + a.seed, teacher=nets["wide"],
                                 name=name, **kw)
    torch.save({n: m.state_dict() for n, m in nets.items()}, path)
    return nets


def choose(nets, w, log):
    """The candidate with the best head on the proxy, over two amounts of noise; k is TOP."""
    results, part = {}, slice(0, None, 9)
    for name, net in nets.items():
        f = guide.features(net, w.images32[part])
        results[name] = {}
        for k in (48, 64, 96, 128):
            if k >= len(f):
                continue
            cal = Calibration(f, k)
            results[name][k] = [round(proxy.head_accuracy(w.tasks, net, cal, mu), 1)
                                for mu in (None, proxy.MU * 4, proxy.MU, proxy.MU / 3)]
        log(f"heads on the proxy, {name}, by k: no noise, mu x4, mu, mu/3: {results[name]}")
    best = max((n for n in nets if n != "wide"), key=lambda n: sum(results[n].get(TOP, [0] * 4)[1:]))
    log(f"chosen: {best}")
    return best, results


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
        jobs = [("fast", soft), ("definition", soft), ("plain", soft), ("fast", {**soft, **seen}), ("fast", {}),
                ("plain", {}), ("definition", {}), ("fast", {**soft, "temperature": 1.0}),
                ("fast", {**soft, "share": 0.5}), ("fast", {**soft, **seen, "steps": 3 * steps})]
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
    nets = guides(a, w, log)
    best = a.guide
    if not best:
        best, heads = choose(nets, w, log)
        with open(os.path.join(a.out, "heads.json"), "w") as f:
            json.dump({"chosen": best, "heads": heads}, f, indent=1)
    net = nets[best]
    save(net, os.path.join(a.out, "guide.safetensors"))
    path = os.path.join(a.keep, "autoencoder.pt")
    few = {"most": 3, "batch": 8} if a.quick else {}
    if os.path.exists(path):
        enc, dec = encoder().to(w.dev), decoder().to(w.dev)
        for m, state in zip((enc, dec), torch.load(path, map_location=w.dev)):
            m.load_state_dict(state)
    else:
        enc, dec = autoencoder.train(w.images, nets["wide"], a.seconds, a.seed, log=log, **few)
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
        twin = guided.train(w.images32, enc, dec, net, nets["wide"], w.wide, samples, cal_z, cal_s, 1.25 * a.seconds,
                            a.seed, log=log, **few)
        torch.save(twin.state_dict(), path)
    save(twin.requires_grad_(False), os.path.join(a.out, "guided.safetensors"))
    if not a.guide or a.until < 1e9:
        students(a, w, enc, dec, twin, net, cal_z, cal_s, log)
    log("done")


if __name__ == "__main__":
    main()

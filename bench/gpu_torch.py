#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/gpu.py: a list of questions, an answer to each as a line of JSON on stdout.

usage: bench/gpu_torch.py versions|peak|weights|codec|train '[QUESTION, ...]' [--device cuda]

  versions  {}                                        of the card, its driver, CUDA, cuDNN and PyTorch, and its clocks
  peak      {"dtype": "bf16"}                         GFLOP/s of the best large matrix product (cuBLAS)
  weights   {"name", "layout", "path", "dtype"}       random weights of the real shape, as safetensors
  codec     {"name", "layout", "size", "weights", "images", "classes", "batches", "form", "passes", "warm"}
  train     {"model", "size", "dtype", "batch", "images", "form", "epochs", "warm"}

What is timed for a codec. Images are uint8 (n, S, S, 3) in pinned host memory before encoding and after decoding,
latents float32 in pinned host memory between: a pass copies a batch to the card, makes bf16 of it, runs the network
(bf16, channels-last; the RMS norm of DC-AE is PyTorch's fused one), and copies the result back, without waiting between
batches; the clock stops when the last copy has arrived. The function from uint8 or latents to the other is what
torch.compile gets. Beside it "network": the same function on data that is on the card and stays there. "statistics":
mean and covariance of each class, noise, eigenvalues, samples, all on the card in float32, from latents in host memory
to latents in host memory.

What is timed for training. The images lie on the card as uint8 with a margin of 4 pixels; a step gathers a batch with a
random shift and flip of each image, normalises it, and runs ResNet-18 (channels-last; bf16 by autocast, float32 without
TF32), cross entropy, backward, SGD with Nesterov's momentum in its fused form. The loss is added up on the card and
read after the epoch; nothing waits within it. cuDNN may try all its algorithms (benchmark mode).

form: eager, compiled (torch.compile with CUDA graphs, mode reduce-overhead) or default (torch.compile without). warm 1:
compile only, to fill the compiler's cache; the answer has no times.
"""

import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))

import torch  # noqa: E402

PAD = 4
MODES = {"compiled": "reduce-overhead", "default": "default"}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def wait():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def best_of(passes, run):
    """Seconds of `run`, which ends in wait(): (best, median) after one run that is not counted."""
    took = []
    for i in range(passes + 1):
        wait()
        start = time.perf_counter()
        run()
        wait()
        took.append(time.perf_counter() - start)
    return min(took[1:]), statistics.median(took[1:])


@torch.no_grad()
def flops_of(f, given):
    """Of convolutions, counted as direct ones, and of matrix products. A network that learns is left as it was."""
    from torch.utils.flop_counter import FlopCounterMode

    learns = getattr(f, "training", False)
    if learns:
        f.eval()
    with FlopCounterMode(display=False) as counter:
        f(given)
    if learns:
        f.train()
    return counter.get_total_flops()


def compiled(f, form):
    if form == "eager":
        return f
    torch._dynamo.reset()
    return torch.compile(f, dynamic=False, mode=MODES[form])


# ----------------------------------------------------------------------------------------------------- versions, peak


def versions(_):
    out = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn_of_torch": torch.backends.cudnn.version()}
    if DEVICE.type == "cuda":
        p = torch.cuda.get_device_properties(DEVICE)
        out.update(gpu=p.name, memory_gib=round(p.total_memory / 2**30, 1), multiprocessors=p.multi_processor_count)
    return out


def peak(q):
    n = 8192 if DEVICE.type == "cuda" else 256
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.randn(n, n, device=DEVICE, dtype=DTYPES[q["dtype"]]) for _ in range(2))
    c = torch.empty_like(a)
    many = 10 if DEVICE.type == "cuda" else 2

    def run():
        for _ in range(many):
            torch.matmul(a, b, out=c)

    best, _ = best_of(5, run)
    return {"dtype": q["dtype"], "gflops": many * 2 * n**3 / best * 1e-9, "side": n}


# ------------------------------------------------------------------------------------------------------------- weights


def parts_of(name, layout):
    import networks

    with torch.device("meta"):
        return networks.files(networks.build(name, layout), layout)


def weights(q):
    """Scaled as in oracle/random_weights.py, with the card's own random numbers: fast, not the same everywhere."""
    from safetensors.torch import save_file

    gen = torch.Generator(DEVICE).manual_seed(1)
    total = 0
    for suffix, part in parts_of(q["name"], q["layout"]).items():
        out = {}
        for key, like in part.items():
            last, shape = key.rsplit(".", 1)[-1], tuple(like.shape)
            if last == "num_batches_tracked":
                out[key] = torch.zeros(shape, dtype=torch.int64)
                continue
            u = 2 * torch.rand(shape, generator=gen, device=DEVICE) - 1
            if last == "running_var":
                x = 1 + 0.5 * u.abs()
            elif last in ("bias", "running_mean"):
                x = 0.1 * u
            elif len(shape) == 1:
                x = 1 + 0.1 * u
            else:
                x = u * (3.0 / like[0].numel()) ** 0.5
            out[key] = x.to(DTYPES[q["dtype"]]).cpu().contiguous()
            total += x.numel()
        base, dot, end = q["path"].rpartition(".")
        save_file(out, base + suffix + dot + end)
    return {"parameters": total}


# --------------------------------------------------------------------------------------------------------------- codec


def fused_norm(self, x):
    """The norm of oracle/networks.py in one kernel, on the last dimension of channels-last data."""
    y = torch.nn.functional.rms_norm(x.permute(0, 2, 3, 1), (x.shape[1],), self.weight, 1e-5) + self.bias
    return y.permute(0, 3, 1, 2)


class Codec:
    def __init__(self, q):
        import networks
        from safetensors.torch import load_file

        networks.RmsNorm.forward = fused_norm
        base, dot, end = q["weights"].rpartition(".")
        suffixes = parts_of(q["name"], q["layout"]).keys()
        parts = {s: load_file(base + s + dot + end, device=str(DEVICE)) for s in suffixes}
        with torch.device("meta"):
            net = networks.build(q["name"], q["layout"])
        self.net = networks.load(net, q["layout"], parts).to(torch.bfloat16).to(memory_format=torch.channels_last)
        member = networks.DCAE.get(q["name"])
        self.tiny = member is None
        channels = networks.TINY_CONFIG[q["name"]]["latent_channels"] if self.tiny else member.latent
        side = q["size"] // (8 if self.tiny else 2 ** (len(member.widths) - 1))
        self.latent = (channels, side, side)
        self.dim = channels * side * side

    def encode(self, rgb):
        x = rgb.permute(0, 3, 1, 2).to(torch.bfloat16) / 255  # a view of NHWC is channels-last
        z = self.net.encoder(x if self.tiny else 2 * x - 1)
        return z.float().reshape(z.shape[0], -1)

    def decode(self, z):
        x = z.to(torch.bfloat16).reshape(-1, *self.latent).contiguous(memory_format=torch.channels_last)
        y = self.net.decoder(x)
        y = y if self.tiny else (y + 1) / 2
        return (y.float().clamp(0, 1) * 255 + 0.5).to(torch.uint8).permute(0, 2, 3, 1).contiguous()

    def flops(self, size):
        x = torch.zeros(1, size, size, 3, dtype=torch.uint8, device=DEVICE)
        return [flops_of(self.encode, x), flops_of(self.decode, torch.zeros(1, self.dim, device=DEVICE))]


def host(shape, dtype, random=False):
    x = torch.randint(0, 256, shape, dtype=dtype) if random else torch.empty(shape, dtype=dtype)
    return x.pin_memory() if DEVICE.type == "cuda" else x


def through(f, given, taken, batch):
    def run():
        for i in range(0, len(given), batch):
            torch.compiler.cudagraph_mark_step_begin()
            out = f(given[i : i + batch].to(DEVICE, non_blocking=True))
            taken[i : i + batch].copy_(out, non_blocking=True)

    return run


def on_card(f, given, batch):
    x = given[:batch].to(DEVICE)

    def run():
        for _ in range(0, len(given), batch):
            torch.compiler.cudagraph_mark_step_begin()
            f(x)

    return run


def sampled(codec, z, drawn, classes):
    """The statistics of latents in the order of their classes, and as many samples."""

    def run():
        x = z.to(DEVICE, non_blocking=True).reshape(classes, -1, codec.dim)
        mean = x.mean(1, keepdim=True)
        cov = (x - mean).transpose(1, 2) @ (x - mean) / x.shape[1]
        mean = mean + 1e-3 * torch.randn_like(mean)
        noise = 1e-3 * torch.randn_like(cov)
        values, vectors = torch.linalg.eigh(cov + (noise + noise.transpose(1, 2)) / 2)
        factor = vectors * values.clamp(min=1e-6).sqrt()[:, None, :]
        out = mean + torch.randn_like(x) @ factor.transpose(1, 2)
        drawn.copy_(out.reshape(z.shape), non_blocking=True)

    return run


@torch.inference_mode()
def codec(q):
    torch.backends.cudnn.benchmark = True
    c = Codec(q)
    n, size = q["images"], q["size"]
    rgb, back = host((n, size, size, 3), torch.uint8, True), host((n, size, size, 3), torch.uint8)
    z, drawn = host((n, c.dim), torch.float32), host((n, c.dim), torch.float32)
    z.normal_()
    drawn.normal_()
    out = {"gflop_per_image": [f * 1e-9 for f in c.flops(size)], "form": q["form"], "tried": {}}
    for what, f, given, taken in (("encode", c.encode, rgb, z), ("decode", c.decode, drawn, back)):
        out["tried"][what] = {}
        for batch in q["batches"]:
            if n % batch:
                continue
            g = compiled(f, q["form"])
            try:
                for _ in range(3):
                    through(g, given[: 2 * batch], taken[: 2 * batch], batch)()
                wait()
                if q.get("warm"):
                    continue
                best, median = best_of(q["passes"], through(g, given, taken, batch))
                network, _ = best_of(q["passes"], on_card(g, given, batch))
            except Exception as e:  # too large for the card, or nothing that can be compiled: the others go on
                out["tried"][what][batch] = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
                continue
            row = {"seconds": best, "median": median, "network": network, "batch": batch}
            out["tried"][what][batch] = row
            if best < out.get(what, {"seconds": float("inf")})["seconds"]:
                out[what] = row
    if not q.get("warm"):
        best, median = best_of(q["passes"], sampled(c, z, drawn, q["classes"]))
        out["statistics"] = {"seconds": best, "median": median}
    if DEVICE.type == "cuda":
        out["peak_memory_mib"] = torch.cuda.max_memory_allocated() / 2**20
    return out


# --------------------------------------------------------------------------------------------------------------- train


def train(q):
    import learn

    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    n, size, batch = q["images"], q["size"], q["batch"]
    images = torch.zeros(n, size + 2 * PAD, size + 2 * PAD, 3, dtype=torch.uint8, device=DEVICE)
    images[:, PAD:-PAD, PAD:-PAD] = torch.randint(0, 256, (n, size, size, 3), dtype=torch.uint8, device=DEVICE)
    labels = torch.randint(0, 10, (n,), device=DEVICE)
    net = learn.build(q["model"], "cifar").train().to(DEVICE).to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True, fused=True)
    across = torch.arange(size, device=DEVICE)

    def loss_of(index):
        top, left = (torch.randint(0, 2 * PAD + 1, (batch, 1), device=DEVICE) for _ in range(2))
        flip = torch.rand(batch, 1, device=DEVICE) < 0.5
        rows, columns = top + across, left + torch.where(flip, size - 1 - across, across)
        x = images[index[:, None, None], rows[:, :, None], columns[:, None, :]]
        x = ((x.float() - 127.5) / 64).permute(0, 3, 1, 2)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=q["dtype"] == "bf16"):
            y = net(x)
        return torch.nn.functional.cross_entropy(y.float(), labels[index])

    gflop = 3e-9 * flops_of(net, torch.zeros(1, 3, size, size, device=DEVICE))
    f = compiled(loss_of, q["form"])
    total = torch.zeros((), device=DEVICE)

    def steps(order, count):
        for i in range(count):
            torch.compiler.cudagraph_mark_step_begin()
            sgd.zero_grad(set_to_none=True)
            loss = f(order[i * batch : (i + 1) * batch])
            loss.backward()
            sgd.step()
            total.add_(loss.detach())

    steps(torch.randperm(n, device=DEVICE), min(5, n // batch))
    wait()
    out = {"form": q["form"], "losses_finite": bool(torch.isfinite(total))}
    if q.get("warm"):
        return out
    count = n // batch
    best, median = best_of(q["epochs"], lambda: steps(torch.randperm(n, device=DEVICE), count))
    out.update(images_per_s=count * batch / best, median=count * batch / median, steps=count, gflop_per_image=gflop)
    out["losses_finite"] = bool(torch.isfinite(total))
    if DEVICE.type == "cuda":
        out["peak_memory_mib"] = torch.cuda.max_memory_allocated() / 2**20
    return out


if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore")
    DEVICE = torch.device(sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else "cuda")
    work = {"versions": versions, "peak": peak, "weights": weights, "codec": codec, "train": train}
    for question in json.loads(sys.argv[2]):
        try:
            answer = work[sys.argv[1]](question)
        except Exception as e:  # the other questions are asked all the same
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)

# SPDX-License-Identifier: Apache-2.0
"""A training step as one CUDA graph, and the two optimisers that it needs.

Our networks are so small that starting their kernels one by one takes longer than running them: the whole step (views,
both directions, the change of the weights) is recorded once and replayed. All that changes from step to step is in
tensors on the device: the rate, the position in the order of the images, the state of the random numbers.
"""
import torch


class Step:
    """run: a function without arguments that makes one training step and returns scalars. Called as it is on a
    processor; on a card a few steps run first, so that libraries have chosen their kernels."""

    def __init__(self, run, dev, warm=3):
        self.run, self.graph = run, None
        if dev.type != "cuda":
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(warm):
                run()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = run()

    def __call__(self):
        if self.graph is None:
            return self.run()
        self.graph.replay()
        return self.out


class Sgd:
    """Nesterov's momentum 0.9, and weight decay on everything but vectors; the rate is a tensor."""

    def __init__(self, params, decay=5e-4, momentum=0.9):
        self.params = list(params)
        self.rate = torch.zeros((), device=self.params[0].device)
        self.buffers = [torch.zeros_like(p) for p in self.params]
        self.decayed = [i for i, p in enumerate(self.params) if p.ndim > 1]
        self.decay, self.momentum = decay, momentum

    @torch.no_grad()
    def step(self, loss):
        grads = list(torch.autograd.grad(loss, self.params))
        heavy = [grads[i] for i in self.decayed]
        torch._foreach_add_(heavy, [self.params[i] for i in self.decayed], alpha=self.decay)
        torch._foreach_mul_(self.buffers, self.momentum)
        torch._foreach_add_(self.buffers, grads)
        torch._foreach_add_(grads, self.buffers, alpha=self.momentum)
        torch._foreach_mul_(grads, self.rate)
        torch._foreach_sub_(self.params, grads)


class Adam:
    """PyTorch's Adam with the rate in a tensor."""

    def __init__(self, params, rate, betas):
        self.params = list(params)
        dev = self.params[0].device
        self.rate = torch.full((), float(rate), device=dev)
        card = dev.type == "cuda"
        self.opt = torch.optim.Adam(self.params, lr=self.rate if card else rate, betas=betas, fused=card,
                                    capturable=card)

    def step(self, loss):
        for p, g in zip(self.params, torch.autograd.grad(loss, self.params)):
            p.grad = g
        if not self.opt.defaults["capturable"]:
            self.opt.param_groups[0]["lr"] = float(self.rate)
        self.opt.step()

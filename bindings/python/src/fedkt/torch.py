# SPDX-License-Identifier: Apache-2.0
"""torch.py - releases and heads for PyTorch: a dataset that samples and decodes on the fly, heads and networks as
modules. Import it by its name, `import fedkt.torch`: the package itself does not need PyTorch.

A DataLoader may use several workers. One that forks (the default on Linux up to Python 3.13) gets a copy of the opened
networks; the dataset opens its own in every worker process, so that no state of the parent is used.
"""

from __future__ import annotations

import os

import numpy as np
import torch

from ._handle import Handle
from .errors import argument_error
from .heads import Head, WholeModel
from .models import Model
from .releases import Release


class SyntheticDataset(torch.utils.data.Dataset):
    """Labelled synthetic images of a release, made when they are asked for: no image is kept.

    Item i is image i // K of class i % K, always the same for one seed: those of `Release.images` with the same number.
    `epoch` moves on to other images: set_epoch(e) gives images e * per_class and following. Blocks of `block` images of
    each class are drawn at once and the last is kept, so that reading in order is fast; a DataLoader that shuffles
    should use `batch_sampler=dataset.batches(...)`, or a larger `block`. path: of a release file, or a Release.

    >>> import fedkt, fedkt.torch
    >>> data = fedkt.Dataset.open("demo:train", limit=200)
    >>> task = fedkt.Task.make(data.classes, epsilon=10, delta=1e-5, codec="dct", size=16, dim=32)
    >>> fedkt.release(task, fedkt.moments(task, data), ledger=None, out="release.safetensors", force=True).close()
    >>> images = fedkt.torch.SyntheticDataset("release.safetensors", per_class=5)
    >>> len(images), images[0][0].shape, images[13][1]
    (50, torch.Size([3, 16, 16]), 3)
    """

    def __init__(self, path, per_class, *, seed=0, transform=None, block=64, **options):
        """transform: of the tensor uint8 (3, S, S); None: floats from 0 to 1. options: those of `Release.images`."""
        if isinstance(path, (Release, Handle)):
            raise argument_error("give the path of a release: every worker process loads its own")
        self.path, self.per_class, self.seed = os.fspath(path), int(per_class), int(seed)
        self.transform, self.block, self.options = transform, max(1, int(block)), dict(options)
        self.epoch = 0
        with Release.load(self.path) as release:
            self.classes = release.task.classes
        if self.per_class < 1:
            raise argument_error("per_class must be at least 1")
        self._pid = self._release = self._drawn = None

    def __getstate__(self):
        return {**self.__dict__, "_pid": None, "_release": None, "_drawn": None}

    def __len__(self):
        return self.per_class * len(self.classes)

    def set_epoch(self, epoch):
        """Other images from here on: those of this epoch."""
        self.epoch = int(epoch)

    def _block(self, number):
        """Images first .. first + block - 1 of every class."""
        if self._pid != os.getpid():
            self._pid, self._release, self._drawn = os.getpid(), Release.load(self.path), None
        first = self.epoch * self.per_class + number * self.block
        if self._drawn is None or self._drawn[0] != first:
            n = min(self.block, self.per_class - number * self.block)
            threads = 1 if torch.utils.data.get_worker_info() is not None else 0
            options = {"threads": threads, **self.options}
            images, _ = self._release.images(n, seed=self.seed, first=first, **options)
            self._drawn = first, images.reshape(len(self.classes), n, *images.shape[1:])
        return self._drawn[1]

    def __getitem__(self, i):
        i = range(len(self))[i]  # IndexError, and negative numbers
        index, label = divmod(i, len(self.classes))
        pixels = self._block(index // self.block)[label, index % self.block]
        image = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
        image = image.to(torch.float32) / 255 if self.transform is None else self.transform(image)
        return image, label

    def batches(self, size, *, shuffle=True, seed=0):
        """A batch sampler that shuffles blocks and inside blocks, so that each block is drawn once in an epoch."""
        return _Blocks(self, int(size), bool(shuffle), int(seed))


class _Blocks(torch.utils.data.Sampler):
    def __init__(self, data, size, shuffle, seed):
        if size < 1:
            raise argument_error("a batch has at least one image")
        self.data, self.size, self.shuffle, self.seed = data, size, shuffle, seed

    def _order(self):
        chance = np.random.default_rng([self.seed, self.data.epoch])
        step = self.data.block * len(self.data.classes)
        starts = np.arange(0, len(self.data), step)
        for start in chance.permutation(starts) if self.shuffle else starts:
            inside = np.arange(start, min(start + step, len(self.data)))
            yield chance.permutation(inside) if self.shuffle else inside

    def __iter__(self):
        for inside in self._order():
            for at in range(0, len(inside), self.size):
                yield inside[at : at + self.size].tolist()

    def __len__(self):
        step = self.data.block * len(self.data.classes)
        blocks = [min(step, len(self.data) - start) for start in range(0, len(self.data), step)]
        return sum(-(-n // self.size) for n in blocks)


class HeadModule(torch.nn.Module):
    """A closed-form head as a module: record vectors (n, length) to scores (n, K), differentiable, in double precision
    as the library computes them. Its parameters are buffers: `module.requires_grad_()` of a copy trains them further.

    scores of a linear head: bias + w weight^T; of QDA: bias_k - |(w - mean_k) map_k|^2 / 2 (docs/formats.md, "Heads").
    """

    def __init__(self, head):
        super().__init__()
        if not isinstance(head, Head):
            raise argument_error(f"head must be a Head, not {type(head).__name__}")
        self.kind, self.classes, self.parts = head.kind, head.classes, head.parts
        for name, value in head.tensors().items():
            self.register_buffer(name.replace(".", "_"), torch.from_numpy(value.copy()))

    def forward(self, vectors):
        length = sum(size for _, size in self.parts)
        if vectors.shape[-1] != length:
            vectors = torch.cat([vectors[..., at : at + size] for at, size in self.parts], dim=-1)
        vectors = vectors.to(self.bias.dtype)
        if hasattr(self, "weight"):
            return torch.nn.functional.linear(vectors, self.weight, self.bias)
        away = vectors.unsqueeze(-2) - self.mean  # (n, K, m)
        scores, at = self.bias, 0
        for i, (_, size) in enumerate(self.parts):
            factor = self.map if hasattr(self, "map") else getattr(self, f"map_{i}")
            turned = torch.einsum("...km,kmj->...kj", away[..., at : at + size], factor)
            scores = scores - (turned**2).sum(-1) / 2
            at += size
        return scores


def state_dict(model):
    """The tensors of a Model for `load_state_dict` of torchvision's network of the same architecture."""
    if not isinstance(model, Model):
        raise argument_error(f"model must be a Model, not {type(model).__name__}")
    return {name: torch.from_numpy(value.copy()) for name, value in model.tensors().items()}


class WholeModule(torch.nn.Module):
    """A whole model as a module: uint8 (n, 3, S, S) or (n, S, S, 3) to scores (n, K). The library computes it; there
    are no gradients."""

    def __init__(self, whole, **options):
        super().__init__()
        if not isinstance(whole, WholeModel):
            raise argument_error(f"whole must be a WholeModel, not {type(whole).__name__}")
        self.whole, self.options, self.classes = whole, options, whole.classes

    def forward(self, images):
        if images.ndim == 4 and images.shape[1] == 3:
            images = images.permute(0, 2, 3, 1)
        return torch.from_numpy(self.whole.scores(images.contiguous(), **self.options)).to(images.device)

# SPDX-License-Identifier: Apache-2.0
"""releases.py - moments with noise: the one result that may leave, and what is made of it."""

from __future__ import annotations

import ctypes
import dataclasses
import json

import numpy as np

from . import _declarations as c
from . import _values
from ._handle import Handle
from ._library import check, lib
from ._work import Work, run
from .codecs import settings
from .errors import argument_error
from .gaussians import Gaussians, estimate_options
from .heads import WholeModel, heads_of
from .pipelines import Pipeline
from .plans import plan_of
from .tasks import Task

GUIDED = {
    "auto": c.FKT_GUIDED_AUTO,
    "none": c.FKT_GUIDED_NONE,
    "on": c.FKT_GUIDED_ON,
    "gradient": c.FKT_GUIDED_GRADIENT,
}
GUIDED_MADE = {c.FKT_GUIDED_NONE: "none", c.FKT_GUIDED_GRADIENT: "gradient", c.FKT_GUIDED_TWIN: "twin"}


def guided_options(guided, steps=0, rho=0.0, rate=0.0):
    """guided: "auto", "none", "on" (True), "gradient", or a number of gradient steps, 0 and False for none."""
    if isinstance(guided, (bool, np.bool_)) or guided is None:
        guided = "on" if guided else "none"
    elif not isinstance(guided, str):
        steps = _values.whole("guided", guided, 0, 10000)
        guided = "gradient" if steps else "none"
    if guided not in GUIDED:
        raise argument_error(f"guided: '{guided}' is none of {', '.join(GUIDED)}, and not a number of steps")
    return c.GuidedOptions(
        GUIDED[guided], _values.whole("steps", steps, 0, 10000), _values.real("rho", rho), _values.real("rate", rate)
    )


class _TrainingSet:
    """struct fkt_training_set; its images are lent to NumPy."""

    def __init__(self):
        self.struct = c.TrainingSet()

    def arrays(self):
        s = self.struct
        images = _values.view(s.rgb, ctypes.c_uint8, (s.n, s.size, s.size, 3), self)
        return images, _values.view(s.label, ctypes.c_uint32, (s.n,), self)

    def __del__(self):
        if lib is not None:
            lib.fkt_training_set_clear(self.struct)


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a certificate says of the round beside the task."""

    sites: int
    survivors: int
    simulated: bool
    composed_epsilon: float


class Release(Handle):
    """Noised moments of a task. Everything that is made of it costs no further privacy.

    >>> import fedkt
    >>> data = fedkt.Dataset.open("demo:train", limit=200)
    >>> task = fedkt.Task.make(data.classes, epsilon=10, delta=1e-5, codec="dct", size=16, dim=32)
    >>> release = fedkt.release(task, [fedkt.moments(task, data)], ledger=None)
    >>> release.is_private, release.certificate["epsilon"]
    (True, 10.0)
    >>> images, labels = release.images(per_class=3)
    >>> images.shape, sorted(set(labels.tolist())) == list(range(10))
    ((30, 16, 16, 3), True)
    >>> sorted(release.heads())
    ['lda', 'nearest_mean', 'qda', 'rda']
    """

    _free = "fkt_release_free"
    _noun = "release"

    def __init__(self, owner=None):
        super().__init__(owner)
        self._pipelines = {}

    @classmethod
    def load(cls, path):
        """A release file; it may be anybody's."""
        self = cls()
        run(lib.fkt_release_load, ctypes.byref(self._pointer), _values.path("path", path, optional=False))
        return self

    def save(self, path, *, force=False):
        with self._change() as p:
            run(lib.fkt_release_save, p, _values.path("path", path, optional=False), bool(force))

    @property
    def task(self):
        task = Task(owner=self)
        with self._use() as p:
            task._pointer = ctypes.c_void_p(lib.fkt_release_task(p))
        return task

    @property
    def sha256(self):
        """Of the bytes that its file has or would have."""
        with self._use() as p:
            return _values.decode(lib.fkt_release_sha256(p))

    @property
    def certificate(self):
        """What it promises, as a dictionary."""
        text = ctypes.c_char_p()
        with self._use() as p:
            check(lib.fkt_release_certificate(p, ctypes.byref(text)))
        try:
            return json.loads(text.value)
        finally:
            lib.fkt_string_free(text)

    @property
    def moments(self):
        """A copy of the noised integers, in the order of the task's layout."""
        n = ctypes.c_size_t()
        with self._use() as p:
            return _values.copied(lib.fkt_release_moments(p, ctypes.byref(n)), ctypes.c_int64, (n.value,))

    @property
    def plan(self):
        with self._use() as p:
            return plan_of(lib.fkt_release_plan(p).contents)

    @property
    def facts(self):
        with self._use() as p:
            f = lib.fkt_release_facts(p).contents
            return Facts(f.sites, f.survivors, bool(f.simulated), f.composed_epsilon)

    @property
    def not_private(self):
        """Why it may not be called private; "" where it may."""
        with self._use() as p:
            return _values.decode(lib.fkt_release_not_private(p)) or ""

    @property
    def is_private(self):
        return not self.not_private

    def gaussians(self, part=0, *, estimator="clamp", tau=0.0, pool=0.0):
        """Class Gaussians of one part of the record vector."""
        out = Gaussians()
        options = estimate_options(estimator, tau, pool)
        with self._use() as p:
            part = _values.whole("part", part, 0, lib.fkt_task_layout(lib.fkt_release_task(p)).contents.parts - 1)
            run(lib.fkt_release_gaussians, p, part, ctypes.byref(options), ctypes.byref(out._struct))
        return out

    def _layout_parts(self):
        with self._use() as p:
            return lib.fkt_task_layout(lib.fkt_release_task(p)).contents.parts

    def sample(self, per_class, *, seed=0, first=0, estimator="clamp", tau=0.0, pool=0.0):
        """Record vectors (K * per_class, length) and labels, class after class. They depend on the seed and their
        number alone: first says with which number of each class to begin."""
        per_class = _values.whole("per_class", per_class, 0, 10**8)
        parts = [self.gaussians(i, estimator=estimator, tau=tau, pool=pool) for i in range(self._layout_parts())]
        classes = parts[0]._struct.classes
        rows = [
            np.concatenate([g.sample(k, per_class, seed=seed, first=first) for g in parts], axis=1)
            for k in range(classes)
        ]
        return np.concatenate(rows), np.repeat(np.arange(classes, dtype=np.uint32), per_class)

    def pipeline(self, *, networks="all", **machine):
        """A Pipeline of this release's task. networks "codec": for decoding alone, without the guide's weights."""
        if networks not in ("all", "codec"):
            raise argument_error("networks must be 'all' or 'codec'")
        out = Pipeline.__new__(Pipeline)
        Handle.__init__(out)
        out.task = self.task
        options = settings(**machine)
        function = lib.fkt_release_pipeline if networks == "all" else lib.fkt_release_pipeline_codec
        with self._use() as p:
            run(function, p, ctypes.byref(options), ctypes.byref(out._pointer))
        return out

    def _kept_pipeline(self, guided, machine):
        """That of the last images with the same options: networks are opened once."""
        networks = "all" if guided.kind in (c.FKT_GUIDED_ON, c.FKT_GUIDED_GRADIENT) else "codec"
        key = (networks, tuple(sorted(machine.items())))
        with self._turn:
            if key not in self._pipelines:
                self._pipelines[key] = self.pipeline(networks=networks, **machine)
            return self._pipelines[key]

    def images(self, per_class, *, seed=0, first=0, guided="auto", steps=0, rho=0.0, rate=0.0, estimator="clamp",
               tau=0.0, pool=0.0, threads=0, progress=None, pipeline=None, **machine):  # fmt: skip
        """Synthetic images, uint8 (K * per_class, S, S, 3), and their labels, class after class: those of
        `fedkt generate` with the same seed. guided: "auto", True, False, "gradient" or a number of gradient steps."""
        way = guided_options(guided, steps, rho, rate)
        pipeline = pipeline or self._kept_pipeline(way, machine)
        work = Work(progress)
        made = c.GuidedFacts()
        drawn = _TrainingSet()
        options = c.TrainingSetOptions(threads=_values.whole("threads", threads, 0, 4096), progress=work.hook)
        draw = c.DrawOptions(
            per_class=_values.whole("per_class", per_class, 1, 10**8),
            seed=_values.whole("seed", seed),
            first=_values.whole("first", first),
            estimate=estimate_options(estimator, tau, pool),
            guided=way,
            made=ctypes.pointer(made),
        )
        with self._use() as p, pipeline._use() as w:
            draw.pipeline = w
            work.run(
                lib.fkt_training_set_draw, ctypes.byref(drawn.struct), p, ctypes.byref(draw), ctypes.byref(options)
            )
        return drawn.arrays()

    def generate(self, folder, per_class, *, seed=0, format="folder", guided="auto", steps=0, rho=0.0, rate=0.0,
                 estimator="clamp", tau=0.0, pool=0.0, columns=0, force=False, push_layout=False, license=None,
                 creator=None, url=None, published=None, threads=0, progress=None, **machine):  # fmt: skip
        """`fedkt generate`: a folder with images, dataset card, certificate and a sheet of samples. Gives how images
        were guided: "none", "gradient" or "twin". push_layout: as a hub for datasets takes it. license (an SPDX
        identifier), creator, url and published ("2026-12-31") are for README.md and croissant.json."""
        way = guided_options(guided, steps, rho, rate)
        work = Work(progress)
        made = c.GuidedFacts()
        options = c.GenerateOptions(
            per_class=_values.whole("per_class", per_class, 1, 10**8),
            seed=_values.whole("seed", seed),
            format=_values.choice("format", format, lib.fkt_export_parse),
            estimate=estimate_options(estimator, tau, pool),
            grid_columns=_values.whole("columns", columns, 0, 1000),
            force=bool(force),
            threads=_values.whole("threads", threads, 0, 4096),
            progress=work.hook,
            guided=way,
            made=ctypes.pointer(made),
            push_layout=bool(push_layout),
            publisher=c.Publisher(
                license=_values.text("license", license),
                creator=_values.text("creator", creator),
                url=_values.text("url", url),
                published=_values.text("published", published),
            ),
        )
        pipeline = self._kept_pipeline(way, machine)
        with self._use() as p, pipeline._use() as w:
            options.pipeline = w
            work.run(lib.fkt_generate, p, _values.path("folder", folder, optional=False), ctypes.byref(options))
        return GUIDED_MADE[made.kind]

    def heads(self, parts="default"):
        """{"nearest_mean": Head, "lda": ..., "qda": ..., "rda": ...}; a kind is absent where the moments do not allow
        it. parts: "all", "guide", or "default": the guide's where there is a guide."""
        on = _values.choice("parts", parts, lib.fkt_heads_on_parse)
        with self._use() as p:
            return heads_of(p, on)

    def whole(self, kind="rda", *, parts="default", **machine):
        """A whole model with this head: pixels in, classes out."""
        found = self.heads(parts)
        if kind not in found:
            raise argument_error(f"the release gives no head '{kind}': {', '.join(found)}")
        return WholeModel.make(self.pipeline(**machine), found[kind], self)

    def __repr__(self):
        if self.closed:
            return "<fedkt.Release, closed>"
        private = "private" if self.is_private else f"NOT private: {self.not_private}"
        return f"<fedkt.Release {self.sha256[:12]} of task '{self.task.name}', {private}>"

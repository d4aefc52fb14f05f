#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_overhead.py - what the Python package costs beside the C calls that it makes: encode and moments of images.

The same work twice in one process: through the package, and as the bare C calls, without its progress hook, its thread
and its checks. Results must be equal. Times are processor seconds of the whole process, the least of several runs, with
one thread of work, so that other programs on the machine count little.

Usage: FEDKT_LIBRARY=... PYTHONPATH=build/release/python python_overhead.py [--images 10000] [--codec dct] [--runs 5]
"""

import argparse
import ctypes
import pathlib
import tempfile
import time

import fedkt
from fedkt import _declarations as c
from fedkt._library import check, lib

import numpy as np


def least(runs, *works):
    """(processor seconds, result) of the fastest run of each; they take turns, so that a busy spell meets all."""
    found = [[] for _ in works]
    for _ in range(runs):
        for work, times in zip(works, found):
            before = time.process_time()
            result = work()
            times.append((time.process_time() - before, result))
    return [min(times, key=lambda pair: pair[0]) for times in found]


def bare(task, images, labels, path):
    """Dataset, moments and latents by C calls alone; gives the hash of the moments."""
    names = (ctypes.c_char_p * len(task.classes))(*[name.encode() for name in task.classes])
    arrays = c.DatasetArrays(rgb=images.ctypes.data, width=images.shape[2], height=images.shape[1],
                             labels=labels.ctypes.data, n=len(images), classes=names, n_classes=len(names),
                             borrow=1)  # fmt: skip
    data, pipeline, moments, records = (ctypes.c_void_p() for _ in range(4))
    text = ctypes.create_string_buffer(c.FKT_SHA256_HEX)
    check(lib.fkt_dataset_from_arrays(ctypes.byref(data), ctypes.byref(arrays), None))
    with task._use() as t:
        check(lib.fkt_pipeline_open(ctypes.byref(pipeline), t, None, None))
    check(lib.fkt_pipeline_moments_new(pipeline, ctypes.byref(moments)))
    check(lib.fkt_records_new(ctypes.byref(records), c.FKT_ADJACENCY_ADD_REMOVE))
    options = c.PipelineOptions(threads=1, records=records)
    check(lib.fkt_pipeline_moments(pipeline, data, None, 0, moments, ctypes.byref(options)))
    check(lib.fkt_moments_sha256(moments, text))
    check(lib.fkt_pipeline_encode(pipeline, data, None, 0, path, 1, ctypes.byref(c.PipelineOptions(threads=1))))
    lib.fkt_records_free(records)
    lib.fkt_moments_free(moments)
    lib.fkt_pipeline_free(pipeline)
    lib.fkt_dataset_free(data)
    return text.value.decode()


def package(task, images, labels, path):
    """The same through the package."""
    data = fedkt.Dataset.from_arrays(images, labels, classes=task.classes)
    digest = fedkt.moments(task, data, threads=1).sha256
    fedkt.encode(task, data, path, threads=1, force=True)
    return digest


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--images", type=int, default=10000)
    asked.add_argument("--codec", default="dct")
    asked.add_argument("--runs", type=int, default=5)
    a = asked.parse_args()
    images = np.random.default_rng(1).integers(0, 256, (a.images, 32, 32, 3), dtype=np.uint8)
    labels = (np.arange(a.images) % 10).astype(np.uint32)
    task = fedkt.Task.make([str(k) for k in range(10)], epsilon=10, delta=1e-5, codec=a.codec)
    with tempfile.TemporaryDirectory() as folder:
        mine, theirs = pathlib.Path(folder) / "mine", pathlib.Path(folder) / "theirs"
        least(1, lambda: bare(task, images[:100], labels[:100], bytes(theirs)))  # warm up
        (seconds_c, digest_c), (seconds, digest) = least(
            a.runs, lambda: bare(task, images, labels, bytes(theirs)), lambda: package(task, images, labels, mine)
        )
        if digest != digest_c or mine.read_bytes() != theirs.read_bytes():
            raise SystemExit("the results differ")
    print(f"{a.images} images, codec {a.codec}: C {seconds_c:.3f} s, Python {seconds:.3f} s, "
          f"overhead {100 * (seconds / seconds_c - 1):+.2f} %")  # fmt: skip


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A little of include/fedkt/learn.h through ctypes: first weights as `fedkt train` draws them, and plain predictions.

libfedkt.so is looked for beside the binary, in ../lib.
"""

import ctypes as c
import os

import numpy as np

ARCHITECTURES, STEMS = {"resnet18": 0, "resnet8": 1}, {"cifar": 0, "imagenet": 1}


class Spec(c.Structure):
    _fields_ = [
        ("architecture", c.c_int),
        ("stem", c.c_int),
        ("size", c.c_uint32),
        ("classes", c.POINTER(c.c_char_p)),
        ("n_classes", c.c_uint32),
        ("mean", c.c_void_p),
        ("std", c.c_void_p),
        ("seed", c.c_uint64),
    ]


class PredictOptions(c.Structure):
    _fields_ = [("threads", c.c_uint), ("dtype", c.c_int), ("progress", c.c_void_p)]


class Door:
    def __init__(self, binary):
        folder = os.path.join(os.path.dirname(os.path.abspath(binary)), "..", "lib")
        self.lib = c.CDLL(os.path.join(folder, "libfedkt.so"))
        self.lib.fkt_error_text.restype = c.c_char_p
        self.lib.fkt_model_free.restype = None

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.fkt_error_text().decode())

    def first_weights(self, path, architecture, stem, size, classes, seed):
        names = (c.c_char_p * classes)(*(str(k).encode() for k in range(classes)))
        spec = Spec(ARCHITECTURES[architecture], STEMS[stem], size, names, classes, None, None, seed)
        m = c.c_void_p()
        self.check(self.lib.fkt_model_new(c.byref(m), c.byref(spec)))
        try:
            self.check(self.lib.fkt_model_save(m, path.encode(), c.c_int(1)))
        finally:
            self.lib.fkt_model_free(m)

    def predict(self, path, images, threads=0):
        """images (n,S,S,3) uint8 -> logits (n,K)"""
        images = np.ascontiguousarray(images, np.uint8)
        m = c.c_void_p()
        self.check(self.lib.fkt_model_load(c.byref(m), path.encode(), c.c_uint32(images.shape[1])))
        try:
            logits = np.empty((len(images), self.lib.fkt_model_classes(m)), np.float32)
            options = PredictOptions(threads, 0, None)
            pointer = lambda a: a.ctypes.data_as(c.c_void_p)
            n = c.c_size_t(len(images))
            self.check(self.lib.fkt_model_predict(m, pointer(images), n, pointer(logits), None, c.byref(options)))
        finally:
            self.lib.fkt_model_free(m)
        return logits

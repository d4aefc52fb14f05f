# SPDX-License-Identifier: Apache-2.0
"""_records.py - pixels of other packages as uint8 RGB arrays: NumPy, PIL, PyTorch, Hugging Face. None of them is
imported: an image is known by what it can do."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _values
from .errors import argument_error

IMAGE_KEYS = ("image", "img", "pixel_values", "images")
LABEL_KEYS = ("label", "labels", "fine_label", "target", "class")


def put_images(arrays, images):
    """Fills the images of struct fkt_dataset_arrays; gives what must stay alive with them."""
    if hasattr(images, "detach") and hasattr(images, "numpy"):
        images = images.detach().cpu().numpy()
    if isinstance(images, np.ndarray) and images.dtype != object:
        return _put_block(arrays, images)
    try:
        rows = [rgb(image, f"image {i}") for i, image in enumerate(images)]
    except TypeError:
        raise argument_error(f"images must be an array or a list of arrays, not {type(images).__name__}") from None
    if not rows:
        raise argument_error("there are no images")
    pointers = (ctypes.c_void_p * len(rows))(*[_values.address(row) for row in rows])
    widths = np.array([row.shape[1] for row in rows], np.uint32)
    heights = np.array([row.shape[0] for row in rows], np.uint32)
    arrays.images, arrays.n = pointers, len(rows)
    arrays.widths, arrays.heights = _values.address(widths), _values.address(heights)
    return rows, pointers, widths, heights


def _put_block(arrays, images):
    if images.dtype != np.uint8:
        raise argument_error(f"images must be of type uint8, not {images.dtype}")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3):
        raise argument_error(f"images must have the shape (n, height, width, 3), not {images.shape}")
    if 0 in images.shape:
        raise argument_error("there are no images")
    if images.shape[3] == 1:
        images = np.repeat(images, 3, axis=3)
    images = np.ascontiguousarray(images)
    arrays.rgb, arrays.n = _values.address(images), len(images)
    arrays.height = _values.whole("height", images.shape[1], 1, _values.U32)
    arrays.width = _values.whole("width", images.shape[2], 1, _values.U32)
    return images


def rgb(image, name):
    """One image as uint8 (h, w, 3) in C order."""
    if hasattr(image, "convert") and hasattr(image, "mode"):
        return _of_pil(image, name)
    if hasattr(image, "detach") and hasattr(image, "numpy"):
        found = image.detach().cpu().numpy()
        if found.ndim == 3 and found.shape[0] in (1, 3):
            found = found.transpose(1, 2, 0)
        if found.dtype.kind == "f":
            found = _of_floats(found, name)
    else:
        found = np.asarray(image)
    if found.dtype != np.uint8:
        raise argument_error(f"{name} must be of type uint8, not {found.dtype}")
    if found.ndim == 2:
        found = found[..., None]
    if found.ndim != 3 or found.shape[2] not in (1, 3) or 0 in found.shape:
        raise argument_error(f"{name} must have the shape (height, width, 3), not {found.shape}")
    if found.shape[2] == 1:
        found = np.repeat(found, 3, axis=2)
    return np.ascontiguousarray(found)


def _of_floats(found, name):
    """Tensors of torchvision's ToTensor: 0 to 1. A byte comes back as it was."""
    if not (found >= 0).all() or not (found <= 1).all():  # NaN fails both
        raise argument_error(f"{name}: a tensor of floats must lie between 0 and 1")
    return np.round(found * 255).astype(np.uint8)


def _of_pil(image, name):
    """As image files are read (docs/formats.md, "Images in"): upright, alpha over white, grey on three channels."""
    if image.mode.startswith("I") or image.mode == "F":
        raise argument_error(f"{name} has samples of more than 8 bits (mode '{image.mode}')")
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return np.ascontiguousarray(np.asarray(image.convert("RGB")))


def _key(record, asked, usual, what):
    if asked is not None:
        if asked not in record:
            raise argument_error(f"a record has no key '{asked}': {', '.join(map(str, record))}")
        return asked
    for key in usual:
        if key in record:
            return key
    raise argument_error(f"a record has no {what}: its keys are {', '.join(map(str, record))}")


def _names(records, label):
    """The names of the classes, as torchvision or Hugging Face state them; None: they do not."""
    features = getattr(records, "features", None)
    if features is not None and label is not None and label in features:
        names = getattr(features[label], "names", None)
        if names:
            return list(names)
    names = getattr(records, "classes", None)
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else None


def read(records, image, label):
    """(images, labels, names or None) of all records."""
    try:
        n = len(records)
    except TypeError:
        raise argument_error("a dataset must have a length: a stream is read into a list first") from None
    if n == 0:
        raise argument_error("there are no images")
    images, labels, key = [], np.empty(n, np.int64), label
    for i in range(n):
        record = records[i]
        if isinstance(record, dict):
            image = _key(record, image, IMAGE_KEYS, "image")
            key = _key(record, label, LABEL_KEYS, "label")
            pixels, number = record[image], record[key]
        else:
            try:
                pixels, number = record[0], record[1]
            except (TypeError, IndexError, KeyError):
                raise argument_error(f"record {i} is neither a pair (image, label) nor a dictionary") from None
        images.append(rgb(pixels, f"image {i}"))
        labels[i] = _values.whole(f"label {i}", number.item() if hasattr(number, "item") else number, 0, _values.U32)
    return images, labels, _names(records, key)

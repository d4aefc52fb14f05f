# SPDX-License-Identifier: Apache-2.0
"""test_datasets.py - datasets from files, arrays and the datasets of other packages; what is wrong with them raises."""

import gc
import sys
import threading

import numpy as np
import pytest

import fedkt


def test_a_set_of_files_is_the_set_of_its_arrays(pixels, tmp_path):
    images, labels = pixels
    np.savez(tmp_path / "set.npz", train_images=images, train_labels=labels.astype(np.uint8)[:, None])
    files = fedkt.Dataset.open(tmp_path / "set.npz")
    memory = fedkt.Dataset.from_arrays(images, labels)
    assert len(files) == len(memory) == 60
    assert files.classes == memory.classes == ["0", "1", "2"]
    for i in (0, 17, -1):
        for data in (files, memory):
            assert (data[i][0] == images[i]).all() and data[i][1] == labels[i]
        assert (files.read(i, 8) == memory.read(i, 8)).all()
    assert (memory.labels == labels).all()


def test_pixels_are_borrowed_not_copied(pixels):
    images, labels = pixels
    before = sys.getrefcount(images)
    data = fedkt.Dataset.from_arrays(images, labels)
    assert sys.getrefcount(images) > before
    images[5] = 9  # seen through the dataset, which holds no copy; its documentation forbids it
    assert (data[5][0] == 9).all()
    data.close()
    gc.collect()
    assert sys.getrefcount(images) == before


def test_other_orders_in_memory_give_the_same_images(pixels):
    images, labels = pixels
    wide = np.zeros((60, 16, 32, 3), np.uint8)
    wide[:, :, ::2] = images
    for same in (np.asfortranarray(images), wide[:, :, ::2], images[::-1][::-1], list(images)):
        data = fedkt.Dataset.from_arrays(same, labels)
        del same
        gc.collect()
        assert all((data[i][0] == images[i]).all() for i in range(60))


def test_grey_images_and_images_of_many_sizes():
    grey = np.arange(2 * 4 * 5, dtype=np.uint8).reshape(2, 4, 5)
    for images in (grey, grey[..., None], list(grey)):
        data = fedkt.Dataset.from_arrays(images, [0, 0])
        assert (data[1][0] == grey[1][..., None]).all() and data[1][0].shape == (4, 5, 3)
    sizes = [np.full((3 + i, 9 - i, 3), i, np.uint8) for i in range(5)]
    data = fedkt.Dataset.from_arrays(sizes, np.zeros(5, np.int16), classes=["only"])
    assert [data[i][0].shape for i in range(5)] == [image.shape for image in sizes]


@pytest.mark.parametrize(
    "images, labels, words",
    [
        (np.zeros((2, 4, 4, 3)), [0, 1], "uint8, not float64"),
        (np.full((2, 4, 4, 3), np.nan), [0, 1], "uint8, not float64"),
        (np.zeros((2, 4, 4, 3), np.int64), [0, 1], "uint8, not int64"),
        (np.zeros((2, 4, 4, 4), np.uint8), [0, 1], r"shape \(n, height, width, 3\)"),
        (np.zeros((4, 4), np.uint8), [0, 1], r"shape \(n, height, width, 3\)"),
        (np.zeros((0, 4, 4, 3), np.uint8), [], "no images"),
        ([], [], "no images"),
        (7, [0], "array or a list"),
        ([np.zeros((4, 4, 3))], [0], "image 0 must be of type uint8"),
        ([np.zeros((4, 4, 3), np.uint8), np.zeros((0, 4, 3), np.uint8)], [0, 0], "image 1 must have the shape"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0], r"labels must have the shape \(2,\)"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0.0, 1.0], "labels must be whole numbers"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0, np.nan], "labels must be whole numbers"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0, -1], "labels must be between"),
        (np.zeros((2, 4, 4, 3), np.uint8), [0, 2**40], "labels must be between"),
        (np.array([None, "x"], object), [0, 1], "image 0"),
    ],
)
def test_bad_arrays_raise(images, labels, words):
    with pytest.raises(fedkt.ArgumentError, match=words):
        fedkt.Dataset.from_arrays(images, labels)


def test_a_label_without_a_class_raises(pixels):
    with pytest.raises(fedkt.ArgumentError):
        fedkt.Dataset.from_arrays(*pixels, classes=["a", "b"])
    with pytest.raises(fedkt.ArgumentError, match="list of text"):
        fedkt.Dataset.from_arrays(*pixels, classes="abc")
    with pytest.raises(fedkt.ArgumentError, match="must be text"):
        fedkt.Dataset.from_arrays(*pixels, classes=["a", "b", 3])
    with pytest.raises(fedkt.FedktError):
        fedkt.Dataset.from_arrays(*pixels, classes=["a", "b", "a"])


def test_records_of_other_packages(pixels):
    images, labels = pixels

    class Tensor:  # what PyTorch's has of interest
        def __init__(self, values):
            self.values = values

        def detach(self):
            return self

        def cpu(self):
            return self

        def numpy(self):
            return self.values

    class Names:
        names = ["r", "g", "b"]

    class Hub(list):  # Hugging Face
        features = {"img": None, "label": Names}

    class Vision(list):  # torchvision
        classes = ["r", "g", "b"]

    floats = [Tensor((image.transpose(2, 0, 1) / 255).astype(np.float32)) for image in images]
    sets = [
        Vision(zip(images, labels)),
        Vision(zip(floats, labels)),
        Vision((Tensor(image.transpose(2, 0, 1)), np.array(label)) for image, label in zip(images, labels)),
        Hub({"img": image, "label": int(label)} for image, label in zip(images, labels)),
    ]
    for records in sets:
        data = fedkt.Dataset.of(records)
        assert data.classes == ["r", "g", "b"] and (data.labels == labels).all()
        assert all((data[i][0] == images[i]).all() for i in range(60))
    nan = Tensor(np.full((3, 4, 4), np.nan, np.float32))
    for bad, words in (([(floats[0], 0.5)], "whole number"), ([{"x": 1}], "no image"), ([3], "neither a pair"),
                       (iter([]), "length"), ([(nan, 0)], "between 0 and 1")):  # fmt: skip
        with pytest.raises(fedkt.ArgumentError, match=words):
            fedkt.Dataset.of(bad)


def test_images_of_pil_are_read_as_files_are(tmp_path):
    image = pytest.importorskip("PIL.Image")
    chance = np.random.default_rng(3)
    modes = {"RGB": 3, "L": None, "RGBA": 4, "LA": 2, "P": None, "1": None}
    for mode, channels in modes.items():
        shape = (9, 7) if channels is None else (9, 7, channels)
        values = chance.integers(0, 256, shape, dtype=np.uint8)
        if mode == "1":
            made = image.fromarray(values > 100)
        elif mode == "P":
            made = image.fromarray(chance.integers(0, 256, (9, 7, 3), dtype=np.uint8)).quantize(16)
        else:
            made = image.fromarray(values, mode) if mode == "LA" else image.fromarray(values)
        (tmp_path / mode / "a").mkdir(parents=True)
        made.save(tmp_path / mode / "a" / "x.png")
        from_file = fedkt.Dataset.open(tmp_path / mode)[0][0]
        with image.open(tmp_path / mode / "a" / "x.png") as opened:
            from_pil = fedkt.Dataset.from_records([(opened, 0)])[0][0]
        assert np.abs(from_file.astype(int) - from_pil).max() <= (1 if channels in (2, 4) else 0), mode
    with pytest.raises(fedkt.ArgumentError, match="more than 8 bits"):
        fedkt.Dataset.from_records([(image.fromarray(np.zeros((4, 4), np.int32)), 0)])


def test_a_closed_dataset_raises(pixels):
    data = fedkt.Dataset.from_arrays(*pixels)
    data.close()
    data.close()
    assert data.closed and repr(data) == "<fedkt.Dataset, closed>"
    for use in (lambda: len(data), lambda: data[0], lambda: data.classes, lambda: data.read(0, 8), lambda: data.labels):
        with pytest.raises(fedkt.ArgumentError, match="the dataset is closed"):
            use()
    with fedkt.Dataset.from_arrays(*pixels) as again:
        assert len(again) == 60
    assert again.closed


def test_indices_outside_raise(pixels):
    data = fedkt.Dataset.from_arrays(*pixels)
    for bad in (60, -61, 10**30, 2**32):
        with pytest.raises((IndexError, fedkt.ArgumentError)):
            data[bad]
    with pytest.raises(fedkt.ArgumentError):
        data[0.0]
    with pytest.raises(fedkt.ArgumentError):
        data.read(0, 0)
    with pytest.raises(fedkt.ArgumentError, match="'nearest' is unknown"):
        data.read(0, 8, filter="nearest")


def test_threads_that_read_and_one_that_closes(pixels):
    """close() during calls of other threads takes effect when they return: no crash, right pixels, then a refusal."""
    images, labels = pixels
    for _ in range(30):
        data = fedkt.Dataset.from_arrays(images, labels)
        wrong, refused = [], []

        def read():
            for i in range(60):
                try:
                    if not (data[i][0] == images[i]).all():
                        wrong.append(i)
                except fedkt.ArgumentError as error:
                    refused.append(error.sentence)
                    return

        threads = [threading.Thread(target=read) for _ in range(4)]
        [thread.start() for thread in threads]
        data.close()
        [thread.join() for thread in threads]
        assert not wrong and set(refused) <= {"the dataset is closed"}


def test_a_dataset_cannot_be_pickled(pixels):
    import pickle

    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(fedkt.Dataset.from_arrays(*pixels))

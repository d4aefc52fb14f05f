# SPDX-License-Identifier: Apache-2.0
"""test_torch.py - PyTorch: datasets in both directions, workers that fork and that do not, heads and networks."""

import pickle

import numpy as np
import pytest

import fedkt

torch = pytest.importorskip("torch")

import fedkt.torch  # noqa: E402


@pytest.fixture(scope="module")
def release_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "release.safetensors"
    data = fedkt.Dataset.open("demo:train", limit=300)
    task = fedkt.Task.make(data.classes, epsilon=10, delta=1e-5, codec="dct", size=16, dim=24)
    fedkt.release(task, fedkt.moments(task, data), ledger=None, insecure_seed=1, out=path)
    return path


def byte_images(images):
    return (images * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


def test_items_are_the_images_of_the_release(release_file):
    wanted, _ = fedkt.Release.load(release_file).images(7, seed=3)
    wanted = wanted.reshape(10, 7, 16, 16, 3)
    for block in (1, 3, 64):
        data = fedkt.torch.SyntheticDataset(release_file, per_class=7, seed=3, block=block)
        assert len(data) == 70 and len(data.classes) == 10
        for i in (0, 69, 34, 11, -1):
            image, label = data[i]
            index = range(70)[i]
            assert label == index % 10 and image.dtype == torch.float32
            assert (byte_images(image[None])[0] == wanted[label, index // 10]).all()
    with pytest.raises(IndexError):
        data[70]
    data.set_epoch(1)
    later, _ = fedkt.Release.load(release_file).images(7, seed=3, first=7)
    assert (byte_images(data[0][0][None])[0] == later[0]).all()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_give_the_same_images(release_file, method):
    """The parent has used the library, networks included, before it forks."""
    fedkt.Release.load(release_file).images(2)
    data = fedkt.torch.SyntheticDataset(release_file, per_class=6, block=3)
    wanted = torch.stack([data[i][0] for i in range(60)])
    loader = torch.utils.data.DataLoader(
        data, batch_size=20, num_workers=2, multiprocessing_context=method, timeout=120
    )
    found = torch.cat([images for images, _ in loader])
    assert (found == wanted).all()
    sampler = data.batches(16, seed=1)
    loader = torch.utils.data.DataLoader(
        data, batch_sampler=sampler, num_workers=2, multiprocessing_context=method, timeout=120
    )
    labels = torch.cat([labels for _, labels in loader])
    assert len(labels) == 60 and torch.bincount(labels).tolist() == [6] * 10
    assert len(sampler) == len(list(sampler))


def test_shuffled_batches_cover_everything_once(release_file):
    data = fedkt.torch.SyntheticDataset(release_file, per_class=10, block=4)
    first, again = ([i for batch in data.batches(7, seed=s) for i in batch] for s in (1, 1))
    assert first == again and sorted(first) == list(range(100)) and first != list(range(100))
    data.set_epoch(1)
    assert [i for batch in data.batches(7, seed=1) for i in batch] != first
    assert [i for batch in data.batches(7, shuffle=False) for i in batch] == list(range(100))


def test_heads_as_modules(release_file):
    release = fedkt.Release.load(release_file)
    w, _ = release.sample(30, seed=9)
    for name, head in release.heads().items():
        module = fedkt.torch.HeadModule(head)
        scores = module(torch.from_numpy(w))
        assert (scores.argmax(1).numpy() == head.predict(w)).mean() > 0.999, name
        posterior = torch.softmax(scores, 1).numpy()
        assert np.allclose(posterior, head.posterior(w), atol=1e-9), name
        vectors = torch.from_numpy(w).requires_grad_()
        module(vectors).sum().backward()
        assert torch.isfinite(vectors.grad).all()
        same = pickle.loads(pickle.dumps(head))
        assert (same.predict(w) == head.predict(w)).all() and same.classes == head.classes
        copied = pickle.loads(pickle.dumps(module))
        assert (copied(torch.from_numpy(w)) == scores).all()
    whole = release.whole("lda")
    module = fedkt.torch.WholeModule(whole)
    images, _ = release.images(2)
    pixels = torch.from_numpy(images.copy())
    assert (module(pixels).numpy() == whole.scores(images)).all()
    assert (module(pixels.permute(0, 3, 1, 2)).numpy() == whole.scores(images)).all()


def test_networks_go_to_torchvision(tmp_path):
    model = fedkt.train(fedkt.Dataset.open("demo:train", limit=60), size=32, epochs=1, batch=20, network="resnet18",
                        stem="imagenet")  # fmt: skip
    weights = fedkt.torch.state_dict(model)
    assert weights["fc.weight"].shape == (10, 512)
    models = pytest.importorskip("torchvision.models")
    net = models.resnet18(num_classes=10)
    missing = net.load_state_dict(weights, strict=False)
    assert not missing.unexpected_keys and all("num_batches_tracked" in key for key in missing.missing_keys)
    images = np.random.default_rng(1).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = ((torch.from_numpy(images) / 255 - mean) / std).permute(0, 3, 1, 2)
    with torch.no_grad():
        assert np.allclose(net.eval()(x).numpy(), model.logits(images), atol=1e-3)


def test_datasets_of_torch_come_in(release_file):
    data = fedkt.torch.SyntheticDataset(release_file, per_class=3)
    back = fedkt.Dataset.of(data)
    wanted, _ = fedkt.Release.load(release_file).images(3)
    wanted = wanted.reshape(10, 3, 16, 16, 3)
    assert back.classes == data.classes
    assert all((back[i][0] == wanted[i % 10, i // 10]).all() for i in range(30))
    tensors = torch.utils.data.TensorDataset(torch.zeros(4, 3, 8, 8), torch.tensor([0, 1, 1, 0]))
    assert fedkt.Dataset.of(tensors).labels.tolist() == [0, 1, 1, 0]
    block = fedkt.Dataset.from_arrays(torch.zeros(4, 8, 8, 3, dtype=torch.uint8), torch.tensor([0, 1, 1, 0]))
    assert block.labels.tolist() == [0, 1, 1, 0]


def test_bad_input(release_file):
    with pytest.raises(fedkt.ArgumentError, match="path"):
        fedkt.torch.SyntheticDataset(fedkt.Release.load(release_file), 3)
    with pytest.raises(fedkt.ArgumentError):
        fedkt.torch.SyntheticDataset(release_file, 0)
    with pytest.raises(fedkt.ArgumentError):
        fedkt.torch.HeadModule(3)
    with pytest.raises(fedkt.ArgumentError):
        fedkt.torch.state_dict(3)
    with pytest.raises(fedkt.MachineError):
        fedkt.torch.SyntheticDataset("no/such/file", 3)

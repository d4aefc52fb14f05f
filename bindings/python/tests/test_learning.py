# SPDX-License-Identifier: Apache-2.0
"""test_learning.py - simulate, train and evaluate: the numbers and the weights of the command line."""

import json

import numpy as np
import pytest

import fedkt

DEMO = "demo:train"
SMALL = ["--codec", "dct", "--size", 16, "--dim", 24]


def tensors(path):
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:end])
    meta = head.pop("__metadata__")
    return meta, {k: raw[end + v["data_offsets"][0] : end + v["data_offsets"][1]] for k, v in head.items()}


@pytest.fixture
def release(cli, tmp_path):
    cli("task", "new", *SMALL, "--data", DEMO, "--epsilon", 10, "--delta", "1e-5", "--out", "task.json")
    cli("moments", "--task", "task.json", "--data", DEMO, "--limit", 400, "--out", "m")
    cli("release", "--task", "task.json", "--moments", "m", "--ledger", "l.db", "--out", "r")
    return fedkt.Release.load(tmp_path / "r")


RECIPE = {"epochs": 2, "batch": 20, "pad": 2, "threads": 2}
WORDS = ["--network", "resnet8", "--epochs", 2, "--batch", 20, "--pad", 2, "--threads", 2]


@pytest.mark.parametrize(
    "words, options",
    [
        ([], {}),
        (["--fresh", "--holdout", 0.2], {"fresh": True, "holdout": 0.2}),
        (["--teacher", "head", "--optimizer", "adam"], {"teacher": "head", "optimizer": "adam"}),
        (["--no-flip", "--schedule", "constant", "--rate", 0.02, "--smoothing", 0.1, "--draw-seed", 4, "--seed", 9],
         {"flip": False, "schedule": "constant", "rate": 0.02, "smoothing": 0.1, "draw_seed": 4, "seed": 9}),
    ],
)  # fmt: skip
def test_a_model_of_a_release_has_the_programs_weights(release, cli, tmp_path, words, options):
    cli("train", "--release", "r", "--per-class", 10, "--out", "theirs", *WORDS, *words)
    epochs = []
    model = fedkt.train(release, per_class=10, network="resnet8", on_epoch=epochs.append, **RECIPE, **options)
    model.save(tmp_path / "mine")
    theirs, their_tensors = tensors(tmp_path / "theirs")
    mine, my_tensors = tensors(tmp_path / "mine")
    assert my_tensors == their_tensors
    different = {k for k in mine if mine[k] != theirs.get(k)}
    assert different == {"recipe"}, different
    assert [(e["epoch"], e["loss"]) for e in model.history] == [(e["epoch"], e["loss"]) for e in epochs]
    assert np.isfinite(epochs[1]["loss"]) and np.isnan(epochs[1]["held_loss"]) == ("holdout" not in options)
    assert model.origin["is_private"] and model.origin["epsilon"] == 10
    assert model.origin["recipe"].startswith("fedkt.train(")


def test_a_model_of_images_and_its_evaluation(cli, tmp_path):
    cli("train", "--data", DEMO, "--limit", 200, "--size", 16, "--out", "theirs", *WORDS)
    model = fedkt.train(fedkt.Dataset.open(DEMO, limit=200), size=16, network="resnet8", **RECIPE)
    model.save(tmp_path / "mine")
    assert tensors(tmp_path / "mine")[1] == tensors(tmp_path / "theirs")[1]
    assert not model.origin["is_private"]
    told = cli("evaluate", "--model", "mine", "--data", "demo:test", "--limit", 100, "--json")
    found = fedkt.evaluate(model, "demo:test", limit=100)
    assert found.accuracy == told["accuracy"] and found.confusion.sum() == 100
    data = model.open_data("demo:test", limit=100)
    images = np.stack([data.read(i, 16) for i in range(100)])
    logits = model.logits(images)
    assert (logits.argmax(1) == data.labels).mean() == found.accuracy
    assert (model.logits(images[7:8]) == logits[7:8]).all()
    weight = model.tensors()["fc.weight"]
    bias = model.tensors()["fc.bias"]
    assert np.allclose(model.features(images) @ weight.T + bias, logits, atol=1e-4)
    again = fedkt.Model.load(tmp_path / "mine")
    assert (again.logits(images) == logits).all() and again.classes == model.classes
    model.save(tmp_path / "model.onnx")
    assert (fedkt.Model.load(tmp_path / "model.onnx").logits(images) == logits).all()


def test_tensors_outlive_a_closed_model():
    model = fedkt.train(fedkt.Dataset.open(DEMO, limit=40), size=8, network="resnet8", epochs=1, batch=20, pad=1)
    weight = model.tensors()["conv1.weight"]
    wanted = weight.copy()
    model.close()
    assert (weight == wanted).all() and not weight.flags.writeable
    with pytest.raises(fedkt.ArgumentError, match="the model is closed"):
        model.size
    with pytest.raises(fedkt.ArgumentError, match="the model is closed"):
        model.tensors()


def test_training_stops_and_resumes_to_the_same_bits(release, tmp_path):
    options = {"per_class": 10, "network": "resnet8", **RECIPE}
    whole = fedkt.train(release, **options).tensors()
    with pytest.raises(fedkt.Stopped):
        fedkt.train(release, **options, checkpoint=tmp_path / "c", on_epoch=lambda e: e["epoch"] == 1)
    resumed = fedkt.train(release, **options, checkpoint=tmp_path / "c", resume=True)
    assert len(resumed.history) == 2
    for name, tensor in resumed.tensors().items():
        assert (tensor == whole[name]).all(), name

    def fail(epoch):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fedkt.train(release, **options, on_epoch=fail)


def test_bad_input_to_training(release, pixels):
    small = {"per_class": 2, "network": "resnet8", "epochs": 1}
    for options in ({"network": "vgg"}, {"epochs": 0}, {"epochs": -1}, {"rate": float("nan")}, {"rate": -1.0},
                    {"schedule": "x"}, {"optimizer": "x"}, {"dtype": "f64"}, {"teacher": "x"}, {"public": DEMO},
                    {"holdout": 2.0}, {"device": "x"}, {"per_class": 0}, {"batch": 2**40}):  # fmt: skip
        with pytest.raises(fedkt.ArgumentError):
            fedkt.train(release, **{**small, **options})
    with pytest.raises(TypeError, match="no option 'speed'"):
        fedkt.train(release, **small, speed=3)
    model = fedkt.train(release, **{**small, "pad": 2})
    with pytest.raises(fedkt.ArgumentError, match="other classes"):
        fedkt.evaluate(model, fedkt.Dataset.from_arrays(*pixels))
    with pytest.raises(fedkt.ArgumentError, match="uint8"):
        model.logits(np.zeros((1, 16, 16, 3)))
    with pytest.raises(fedkt.ArgumentError, match="must be a Model"):
        fedkt.evaluate(release, DEMO)


def timeless(document):
    """Without the seconds that a run took."""
    if isinstance(document, dict):
        return {k: timeless(v) for k, v in document.items() if "seconds" not in k}
    return [timeless(item) for item in document] if isinstance(document, list) else document


def test_a_simulation_is_the_programs(cli, tmp_path):
    words = ["--data", DEMO, "--limit", 600, "--test", "demo:test", "--test-limit", 100, "--epsilon", "10,1", "--delta",
             "1e-5", "--sites", 6, "--partition", "dirichlet:0.3", "--dropout", 0.17, "--runs", 2, "--seed", 3,
             "--insecure-seed", 5, *SMALL]  # fmt: skip
    told = cli("simulate", *words, "--out", "run", "--json")
    seen = []
    found = fedkt.simulate(
        fedkt.Dataset.open(DEMO, limit=600), test=fedkt.Dataset.open("demo:test", limit=100), epsilon=[10, 1],
        delta=1e-5, sites=6, partition="dirichlet:0.3", dropout=0.17, runs=2, seed=3, insecure_seed=5, codec="dct",
        size=16, dim=24, progress=lambda what, done, total: seen.append(what),
    )  # fmt: skip
    assert timeless(found.results) == timeless(told)
    assert found.names == ["epsilon 10", "epsilon 1", "no privacy"] and "encoding" in seen
    mean, deviation = found.accuracy(0, "lda")
    assert 0 <= mean <= 1 and deviation > 0
    first = found.releases[0]
    first.save(tmp_path / "release")
    kept = sorted((tmp_path / "run").rglob("*release.safetensors"))
    assert any(path.read_bytes() == (tmp_path / "release").read_bytes() for path in kept), kept
    tiles = found.tiles(0, 10, 2)
    images, _ = first.images(2, seed=3)
    assert (tiles.reshape(-1, 16, 16, 3) == images).all()
    found.generate(1, tmp_path / "set", 2)
    assert (tmp_path / "set" / "README.md").exists()
    assert len(found.partition["owner"]) == 600


def test_a_simulation_keeps_its_data_open():
    data = fedkt.Dataset.open(DEMO, limit=100)
    found = fedkt.simulate(data, epsilon=10, delta=1e-5, sites=4, codec="dct", size=16, dim=8, holdout=0.2)
    data.close()
    assert found.partition and found.tiles(0, 1, 1).shape == (1, 1, 16, 16, 3)
    of_sweep = found.releases[0]
    found.close()
    with pytest.raises(fedkt.ArgumentError, match="the simulation is closed"):
        of_sweep.sha256
    with pytest.raises(fedkt.ArgumentError, match="the simulation is closed"):
        found.names


def test_a_simulation_trains_networks():
    found = fedkt.simulate(
        fedkt.Dataset.open(DEMO, limit=100), epsilon=10, delta=1e-5, sites=4, codec="dct", size=16, dim=8, holdout=0.2,
        train={"network": "resnet8", "epochs": 1, "pad": 2}, train_per_class=5,
    )  # fmt: skip
    assert "resnet8" in json.dumps(found.results)


def test_bad_input_to_simulations():
    data = fedkt.Dataset.open(DEMO, limit=100)
    small = {"epsilon": 10, "delta": 1e-5, "sites": 4, "codec": "dct", "size": 16, "dim": 8}
    for options in ({"epsilon": []}, {"epsilon": float("nan")}, {"epsilon": [1, 1]}, {"delta": 2}, {"sites": 0},
                    {"partition": "evenly"}, {"dropout": {"lunch": 0.1}}, {"dropout": float("nan")}, {"holdout": 2.0},
                    {"noise": "loud"}, {"codec": None, "guide": None}, {"runs": 0}, {"epsilon": 100},
                    {"participation": -1.0}, {"codec": "fedkt-guide"}):  # fmt: skip
        with pytest.raises(fedkt.FedktError):
            fedkt.simulate(data, **{**small, **options})
    with pytest.raises(fedkt.ArgumentError, match="by name"):
        fedkt.simulate(data, **{**small, "codec": fedkt.Codec("dct", size=16)})

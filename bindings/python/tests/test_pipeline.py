# SPDX-License-Identifier: Apache-2.0
"""test_pipeline.py - the way from images to a release and what is made of it: the files of the command line, bit for
bit, and the same numbers in memory."""

import json
import os

import numpy as np
import pytest

import fedkt

DEMO = "demo:train"
SMALL = {"epsilon": 10, "delta": 1e-5, "codec": "dct", "size": 16, "dim": 24, "name": "walk"}


@pytest.fixture
def task(cli, tmp_path):
    """The task of both: made by the program, and compared with the one made here."""
    cli("task", "new", "--codec", "dct", "--data", DEMO, "--epsilon", 10, "--delta", "1e-5", "--size", 16, "--dim", 24,
        "--name", "walk", "--out", "task.json")  # fmt: skip
    return fedkt.Task.load(tmp_path / "task.json")


def same(a, b):
    assert a.read_bytes() == b.read_bytes()


def test_a_task_is_the_programs(task, tmp_path):
    made = fedkt.Task.make(fedkt.Dataset.open(DEMO, limit=100).classes, **SMALL)
    made.save(tmp_path / "mine.json")
    same(tmp_path / "mine.json", tmp_path / "task.json")
    assert made.sha256 == task.sha256
    assert (task.size, task.length, task.epsilon, task.delta) == (16, 25, 10.0, 1e-5)
    assert (task.adjacency, task.fit, task.filter, task.weak, task.sites) == (
        "add-remove", "crop", "bilinear", "", 0)  # fmt: skip
    assert fedkt.Task.parse((tmp_path / "task.json").read_text()).sha256 == task.sha256


def test_files_are_the_programs_bit_for_bit(task, cli, tmp_path):
    cli("encode", "--task", "task.json", "--data", DEMO, "--limit", 300, "--out", "z")
    cli("moments", "--task", "task.json", "--data", DEMO, "--limit", 300, "--out", "m")
    cli("release", "--task", "task.json", "--moments", "m", "--ledger", "l.db", "--insecure-seed", 3, "--out", "r")
    cli("generate", "--release", "r", "--per-class", 4, "--seed", 5, "--out", "images")
    cli("heads", "--release", "r", "--out", "heads")

    limit = {"data_options": {"limit": 300}}
    assert fedkt.encode(task, DEMO, tmp_path / "z2", **limit) == 300
    same(tmp_path / "z2", tmp_path / "z")
    moments = fedkt.moments(task, DEMO, **limit)
    moments.save(tmp_path / "m2")
    same(tmp_path / "m2", tmp_path / "m")
    fedkt.moments(task, latents=tmp_path / "z").save(tmp_path / "m3")
    same(tmp_path / "m3", tmp_path / "m")
    release = fedkt.release(task, moments, ledger=tmp_path / "l2.db", insecure_seed=3, out=tmp_path / "r2")
    same(tmp_path / "r2", tmp_path / "r")
    assert not release.is_private and "seed" in release.not_private
    release.save(tmp_path / "r3")
    same(tmp_path / "r3", tmp_path / "r")

    assert release.generate(tmp_path / "images2", 4, seed=5) == "none"
    files = sorted(p.relative_to(tmp_path / "images") for p in (tmp_path / "images").rglob("*") if p.is_file())
    assert len(files) > 40
    for name in files:
        same(tmp_path / "images2" / name, tmp_path / "images" / name)
    for name, head in release.heads().items():
        head.save(tmp_path / name)
        same(tmp_path / name, tmp_path / "heads" / f"{name}.safetensors")


def test_images_in_memory_are_those_of_the_files(task, cli, tmp_path):
    cli("moments", "--task", "task.json", "--data", DEMO, "--limit", 300, "--out", "m")
    cli("release", "--task", "task.json", "--moments", "m", "--ledger", "l.db", "--insecure-seed", 3, "--out", "r")
    cli("generate", "--release", "r", "--per-class", 6, "--seed", 5, "--format", "npz", "--out", "images")
    release = fedkt.Release.load(tmp_path / "r")
    archive = np.load(tmp_path / "images" / "dataset.npz")
    images, labels = release.images(6, seed=5)
    assert (images == archive["train_images"]).all()
    assert (labels == archive["train_labels"].reshape(-1)).all()
    later, _ = release.images(2, seed=5, first=4)
    assert (later.reshape(10, 2, 16, 16, 3) == images.reshape(10, 6, 16, 16, 3)[:, 4:]).all()
    w, of_class = release.sample(6, seed=5)
    assert w.shape == (60, 25) and (of_class == labels).all()
    assert (release.pipeline().decode(w) == images).all()
    del release  # the arrays live on
    assert images.sum() == archive["train_images"].sum(dtype=np.uint64)


def test_arrays_files_and_threads_give_the_same_moments(task, tmp_path, cli):
    data = task.open_data(DEMO, limit=200)
    images = np.stack([data[i][0] for i in range(200)])
    memory = task.open_data((images, data.labels))
    wanted = fedkt.moments(task, data, threads=1)
    assert wanted.counts.tolist() == [20] * 10
    kept = {"encodings": tmp_path / "kept"}
    for got in (fedkt.moments(task, memory), fedkt.moments(task, memory, threads=3),
                fedkt.moments(task, data, **kept), fedkt.moments(task, data, **kept)):  # fmt: skip
        assert got.sha256 == wanted.sha256 and (got.packed == wanted.packed).all()
    pipeline = fedkt.Pipeline(task)
    halves = [pipeline.moments(data, indices=range(100)), pipeline.moments(data, indices=np.arange(100, 200))]
    assert ((halves[0].packed + halves[1].packed) == wanted.packed).all()
    one = fedkt.release(task, wanted, ledger=None, insecure_seed=1)
    two = fedkt.release(task, halves, ledger=None, insecure_seed=1)
    assert (one.moments == two.moments).all() and two.facts.sites == 2


def test_record_vectors_add_up_to_the_moments(task):
    data = task.open_data(DEMO, limit=50)
    pipeline = fedkt.Pipeline(task)
    images = np.stack([data.read(i, 16) for i in range(50)])
    w, q = pipeline.vectors(images)
    assert w.shape == q.shape == (50, 25) and q.dtype == np.int32
    packed = pipeline.moments(data).packed.reshape(10, -1)
    for k in range(10):
        mine = q[data.labels == k].astype(np.int64)
        upper = np.triu_indices(25)
        assert (packed[k] == np.concatenate([[len(mine)], mine.sum(0), (mine.T @ mine)[upper]])).all()


def test_codec(task):
    codec = fedkt.Codec("dct", size=16, dim=24)
    assert (codec.name, codec.size, codec.dim, codec.decodes, codec.dtype, codec.device) == (
        "dct", 16, 24, True, "f32", "cpu")  # fmt: skip
    images = np.random.default_rng(1).integers(0, 256, (7, 16, 16, 3), dtype=np.uint8)
    z = codec.encode(images)
    assert (codec.encode(images[3:4]) == z[3:4]).all()
    assert (codec.encode(np.asfortranarray(images)) == z).all() and (codec.encode(images[::-1]) == z[::-1]).all()
    assert codec.decode(z).shape == images.shape
    assert codec.encode(images[:0]).shape == (0, 24)
    calibration = fedkt.Calibration.of(codec)
    product = calibration.map.astype(float) @ calibration.unmap
    assert np.abs(product - np.eye(len(product))).max() < 1e-4


def test_a_calibration_made_here_is_the_programs(cli, tmp_path):
    cli("codec", "calibrate", "--codec", "dct", "--size", 16, "--dim", 24, "--public", DEMO, "--limit", 400,
        "--out", "c")  # fmt: skip
    codec = fedkt.Codec("dct", size=16, dim=24)
    source = json.loads(_header(tmp_path / "c"))["__metadata__"]["source"]
    made = fedkt.Calibration.make(codec, fedkt.Dataset.open(DEMO, limit=400), source=source)
    made.save(tmp_path / "mine")
    same(tmp_path / "mine", tmp_path / "c")
    assert (fedkt.Calibration.load(tmp_path / "c").map == made.map).all()


def _header(path):
    raw = path.read_bytes()
    return raw[8 : 8 + int.from_bytes(raw[:8], "little")]


def test_heads_predict_and_whole_models(task, cli, tmp_path):
    data = task.open_data(DEMO, limit=600)
    release = fedkt.release(task, fedkt.moments(task, data), ledger=None, insecure_seed=1)
    release.save(tmp_path / "r")
    heads = release.heads()
    pipeline = release.pipeline()
    test = task.open_data("demo:test", limit=200)
    w, _ = pipeline.vectors(np.stack([test.read(i, 16) for i in range(200)]))
    told = cli("heads", "--release", "r", "--test", "demo:test", "--test-limit", 200, "--json")
    found = fedkt.evaluate_heads(heads, pipeline, test)
    for name, head in heads.items():
        guess = head.predict(w)
        assert found[name] == told["accuracy"][name] == (guess == test.labels).mean()
        posterior = head.posterior(w)
        assert np.allclose(posterior.sum(1), 1) and (posterior.argmax(1) == guess).mean() > 0.99
        assert head.classes == task.classes and head.length == 25
    assert found["lda"] > 0.3
    whole = release.whole()
    images = np.stack([test.read(i, 16) for i in range(200)])
    assert (whole.predict(images) == heads["rda"].predict(w)).all()
    whole.save(tmp_path / "whole.safetensors")
    whole.save(tmp_path / "whole.onnx")
    cli("heads", "--release", "r", "--export", "theirs.safetensors")
    same(tmp_path / "theirs.safetensors", tmp_path / "whole.safetensors")
    again = fedkt.WholeModel.load(tmp_path / "whole.safetensors")
    assert (again.scores(images) == whole.scores(images)).all()
    assert fedkt.Head.load(_saved(heads["qda"], tmp_path)).kind == "qda"


def _saved(head, folder):
    head.save(folder / "head")
    return folder / "head"


def test_the_ledger_pays_once(task, tmp_path):
    data = task.open_data(DEMO, limit=100)
    moments = fedkt.moments(task, data)
    ledger = tmp_path / "l.db"
    first = fedkt.release(task, moments, ledger=ledger)
    assert first.is_private and first.certificate["ledger"] == "file"
    with pytest.raises(fedkt.BudgetError) as caught:
        fedkt.release(task, moments, ledger=ledger)
    assert caught.value.status is fedkt.Status.BUDGET
    again = fedkt.release(task, moments, ledger=ledger, budget_epsilon=18, budget_delta=1e-5)
    assert again.facts.composed_epsilon > 10
    assert (again.moments != first.moments).any()
    with pytest.raises(fedkt.ArgumentError, match="together"):
        fedkt.release(task, moments, ledger=ledger, budget_epsilon=18)
    assert fedkt.release(task, moments, ledger=None).certificate["ledger"] != "file"


def test_a_record_at_two_sites_is_refused(task):
    moments = fedkt.moments(task, task.open_data(DEMO, limit=100))
    with pytest.raises(fedkt.ArgumentError, match="share 100 images"):
        fedkt.release(task, [moments, moments], ledger=None)


def test_weak_promises_must_be_accepted():
    with pytest.raises(fedkt.ArgumentError, match="epsilon 100 is above 20"):
        fedkt.Task.make(["a", "b"], **{**SMALL, "epsilon": 100})
    task = fedkt.Task.make(["a", "b"], **{**SMALL, "epsilon": 100}, accept_weak=True)
    assert "epsilon 100 is above 20" in task.weak
    moments = fedkt.moments(task, (np.zeros((2, 16, 16, 3), np.uint8), [0, 1]))
    with pytest.raises(fedkt.DataError, match="weak"):
        fedkt.release(task, moments, ledger=None)
    assert not fedkt.release(task, moments, ledger=None, accept_weak=True).is_private


def test_privacy_plan(cli):
    told = cli("privacy", "--epsilon", 3, "--delta", "1e-5", "--dim", 24, "--clip", 1, "--json")
    plan = fedkt.privacy(3, 1e-5)
    assert plan.mu == told["mu"]
    assert plan.weak == "" and "above 20" in fedkt.privacy(30, 1e-5).weak
    for bad in ({"epsilon": 0, "delta": 1e-5}, {"epsilon": float("nan"), "delta": 1e-5}, {"epsilon": 1, "delta": 1}):
        with pytest.raises(fedkt.ArgumentError):
            fedkt.privacy(**bad)


def test_bad_input_to_pipelines(task, tmp_path):
    pipeline = fedkt.Pipeline(task)
    for images, words in ((np.zeros((2, 8, 8, 3), np.uint8), r"shape \(n, 16, 16, 3\)"),
                          (np.zeros((2, 16, 16, 3), np.float32), "type uint8"),
                          ("x", "type uint8"), (None, "uint8")):  # fmt: skip
        with pytest.raises(fedkt.ArgumentError, match=words):
            pipeline.vectors(images)
    release = fedkt.release(task, fedkt.moments(task, task.open_data(DEMO, limit=50)), ledger=None)
    head = release.heads()["lda"]
    bad = np.zeros((3, 25))
    bad[1, 2] = np.nan
    for use in (head.predict, head.posterior, pipeline.decode):
        with pytest.raises(fedkt.DataError, match="not finite"):
            use(bad)
        with pytest.raises(fedkt.ArgumentError):
            use(np.zeros((3, 24)))
        with pytest.raises(fedkt.ArgumentError):
            use(np.zeros((3, 25), complex))
    with pytest.raises(fedkt.ArgumentError):
        head.posterior(np.zeros((1, 25)), temperature=0)
    for options in ({"guided": "strongly"}, {"guided": -1}, {"per_class": 0}, {"per_class": 2**70}, {"seed": -1},
                    {"estimator": "best"}, {"threads": -1}, {"device": "tpu"}, {"dtype": "f8"}):  # fmt: skip
        with pytest.raises(fedkt.ArgumentError):
            release.images(**{"per_class": 1, **options})
    with pytest.raises(fedkt.FedktError):
        release.images(1, guided=True)  # there is no guide
    with pytest.raises(fedkt.ArgumentError):
        release.gaussians(1)
    with pytest.raises(fedkt.ArgumentError, match="other classes"):
        fedkt.moments(task, fedkt.Dataset.from_arrays(np.zeros((1, 4, 4, 3), np.uint8), [0]))
    other = fedkt.Task.make(task.classes, **{**SMALL, "epsilon": 5})
    with pytest.raises(fedkt.DataError, match="another task"):
        fedkt.release(other, fedkt.moments(task, task.open_data(DEMO, limit=50)), ledger=None)
    uses = ((release, lambda: release.sha256), (head, lambda: head.kind), (pipeline, lambda: pipeline.length))
    for handle, use in uses:
        handle.close()
        with pytest.raises(fedkt.ArgumentError, match="is closed"):
            use()
    with pytest.raises(fedkt.MachineError):
        fedkt.Release.load(tmp_path / "nothing")
    (tmp_path / "junk").write_bytes(os.urandom(1000))
    with pytest.raises(fedkt.DataError):
        fedkt.Release.load(tmp_path / "junk")


def test_what_a_release_lends_outlives_the_object(task):
    release = fedkt.release(task, fedkt.moments(task, task.open_data(DEMO, limit=50)), ledger=None)
    of_release, mean = release.task, release.gaussians().mean
    wanted = mean.copy()
    del release
    assert of_release.classes == task.classes and (mean == wanted).all()


def test_ctrl_c_stops_encoding(task):
    import signal
    import threading
    import time

    data = task.open_data(DEMO)
    seen = threading.Event()

    def kill():
        seen.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=kill).start()
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        while time.monotonic() < before + 60:
            fedkt.moments(task, data, progress=lambda what, done, total: seen.set())
    assert time.monotonic() < before + 30


def test_the_shipped_networks_and_guided_images(cli, tmp_path):
    cli("task", "new", "--classes", "a,b", "--epsilon", 10, "--delta", "1e-5", "--out", "task.json")
    task = fedkt.Task.make(["a", "b"], epsilon=10, delta=1e-5)
    task.save(tmp_path / "mine.json")
    same(tmp_path / "mine.json", tmp_path / "task.json")
    images = np.random.default_rng(3).integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", train_images=images, train_labels=(np.arange(24) % 2).astype(np.uint8)[:, None])
    cli("moments", "--task", "task.json", "--data", "set.npz", "--out", "m")
    cli("release", "--task", "task.json", "--moments", "m", "--ledger", "l", "--insecure-seed", 1, "--out", "r")
    moments = fedkt.moments(task, (images, np.arange(24) % 2), data_options={"classes": ["a", "b"]})
    moments.save(tmp_path / "m2")
    same(tmp_path / "m2", tmp_path / "m")
    release = fedkt.release(task, moments, ledger=None, insecure_seed=1)
    for words, guided in ((["--guided", "none"], False), (["--guided", "3"], 3), ([], "auto")):
        folder = f"set-{guided}"
        cli("generate", "--release", "r", "--per-class", 2, "--format", "npz", "--out", folder, *words)
        found, _ = release.images(2, guided=guided)
        assert (found == np.load(tmp_path / folder / "dataset.npz")["train_images"]).all(), guided

# SPDX-License-Identifier: Apache-2.0
"""test_ecosystem.py - what we write as others read it: Hugging Face's datasets and hub, Croissant, torchvision, ONNX
Runtime, DPImageBench. Each test needs the package that it asks and is skipped without it.

check.sh installs them in an environment of their own, FEDKT_PEERS_PYTHON, which runs this file (run.py). Nothing here
uses a network.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"

import fedkt  # noqa: E402

import collections  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

EACH = 4
CLASSES = ["road", "a/b", 'Zoo: "wild" <x>', "null", "\u00e9tang", "7"]  # not in order, and nobody's favourites
LABELS = [k for k in range(len(CLASSES)) for _ in range(EACH)]
PUBLISHER = {
    "license": "CC-BY-4.0",
    "creator": 'Two "hospitals"',
    "url": "https://data.example.org/set?x=1&y=2",
    "published": "2026-11-17",
}


@pytest.fixture(scope="module")
def release():
    chance = np.random.default_rng(1)
    images = chance.integers(0, 256, (10 * len(CLASSES), 16, 16, 3), dtype=np.uint8)
    labels = np.arange(len(images)) % len(CLASSES)
    task = fedkt.Task.make(CLASSES, epsilon=10, delta=1e-5, codec="dct", size=16, dim=8, name="a set")
    data = fedkt.Dataset.from_arrays(images, labels, classes=CLASSES)
    return fedkt.release(task, fedkt.moments(task, data), ledger=None, insecure_seed=1)


@pytest.fixture(scope="module")
def wanted(release):
    return release.images(EACH)[0]


def made(release, folder, **options):
    release.generate(folder, EACH, **options)
    return folder


@pytest.fixture(scope="module")
def pushed(release, tmp_path_factory):
    return made(release, tmp_path_factory.mktemp("push") / "set", push_layout=True, **PUBLISHER)


def same_images(rows, image, label, wanted):
    """Each label has the images that were made for it, in whatever order they come."""
    found, want = collections.defaultdict(set), collections.defaultdict(set)
    for row in rows:
        found[int(row[label])].add(np.asarray(row[image].convert("RGB")).tobytes())
    for k, pixels in zip(LABELS, wanted):
        want[k].add(pixels.tobytes())
    assert found == want


def test_a_hub_takes_the_folder(pushed, wanted, tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.load_dataset(str(pushed), split="train", cache_dir=str(tmp_path))
    assert sorted(data.features) == ["class", "image", "label"] and data.features["label"].names == CLASSES
    assert all(CLASSES[row["label"]] == row["class"] for row in data)
    same_images(data, "image", "label", wanted)


def test_the_card_is_one_of_the_hub(pushed):
    hub = pytest.importorskip("huggingface_hub")
    card = hub.DatasetCard.load(pushed / "README.md")
    assert card.data.license == "cc-by-4.0" and card.data.pretty_name == "a set"
    assert card.data.task_categories == ["image-classification"] and card.data.size_categories == ["n<1K"]
    for path in pushed.rglob("*"):
        if path.is_file():  # raises for a name that a repository of the hub cannot have
            hub.CommitOperationAdd(path_in_repo=path.relative_to(pushed).as_posix(), path_or_fileobj=str(path))


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_binary_files_go_to_the_large_file_store(pushed):
    names = sorted(path.relative_to(pushed).as_posix() for path in pushed.rglob("*") if path.is_file())
    subprocess.run(["git", "init", "--quiet"], cwd=pushed, check=True)
    try:
        words = ["git", "check-attr", "-z", "filter", "--", *names]
        told = subprocess.run(words, cwd=pushed, check=True, capture_output=True, text=True).stdout.split("\0")
    finally:
        shutil.rmtree(pushed / ".git")
    large = {name for name, value in zip(told[0::3], told[2::3]) if value == "lfs"}
    assert large == {name for name in names if name.endswith((".png", "metadata.jsonl"))}
    assert len(large) == len(LABELS) + 2


def croissant(folder):
    mlc = pytest.importorskip("mlcroissant")
    return mlc.Dataset(jsonld=str(folder / "croissant.json"))


@pytest.mark.parametrize("push", [False, True])
def test_croissant_gives_the_records(release, wanted, tmp_path, push):
    folder = made(release, tmp_path / "set", push_layout=push)
    data = croissant(folder)
    assert not data.metadata.issues.errors
    classes = [(row["classes/label"], row["classes/name"]) for row in data.records("classes")]
    assert classes == list(enumerate(CLASSES))
    rows = list(data.records("train"))
    assert len(rows) == len(LABELS)
    same_images(rows, "train/image", "train/label", wanted)
    assert all(row["train/class"].decode() == CLASSES[row["train/label"]] for row in rows)


def test_croissant_has_no_remarks_when_the_publisher_is_named(pushed, caplog):
    data = croissant(pushed)
    assert not data.metadata.issues.errors and not data.metadata.issues.warnings
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    said = data.metadata
    assert (said.name, said.url, said.creators[0].name) == ("a set", PUBLISHER["url"], PUBLISHER["creator"])
    assert said.license == ["https://spdx.org/licenses/CC-BY-4.0"] and said.date_published.year == 2026
    assert "NOT PRIVATE" in said.description  # the seed of this release is known


def test_croissant_notices_another_file(release, tmp_path):
    folder = made(release, tmp_path / "set")
    rows = folder / "train/metadata.jsonl"
    rows.write_text(rows.read_text().replace('"label": 0', '"label": 1'))
    with pytest.raises(Exception) as refused:
        list(croissant(folder).records("train"))
    assert "hash" in str(refused.value.__cause__).lower()


def test_croissant_is_linked_data_of_schema_org(pushed):
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph().parse(pushed / "croissant.json", format="json-ld")
    sdo, cr = rdflib.Namespace("https://schema.org/"), rdflib.Namespace("http://mlcommons.org/croissant/")
    (dataset,) = graph.subjects(rdflib.RDF.type, sdo.Dataset)
    for name in ("name", "description", "license", "url", "creator", "datePublished", "version", "distribution"):
        assert list(graph.objects(dataset, sdo[name])), name
    assert len(list(graph.objects(dataset, sdo.distribution))) == 3
    assert len(list(graph.objects(dataset, cr.recordSet))) == 2
    undefined = {str(p) for p in graph.predicates() if str(p).startswith("file:")}
    assert not undefined  # every key is in a vocabulary


def test_datasets_reads_webdataset(release, wanted, tmp_path):
    datasets = pytest.importorskip("datasets")
    folder = made(release, tmp_path / "set", format="webdataset")
    files = sorted(map(str, folder.glob("train-*.tar")))
    cache = str(tmp_path / "cache")
    data = datasets.load_dataset("webdataset", data_files={"train": files}, split="train", cache_dir=cache)
    same_images(data, "png", "cls", wanted)


def test_datasets_reads_a_plain_folder(release, wanted, tmp_path):
    datasets = pytest.importorskip("datasets")
    folder = made(release, tmp_path / "set")
    data = datasets.load_dataset("imagefolder", data_dir=str(folder), split="train", cache_dir=str(tmp_path / "c"))
    same_images(data, "image", "label", wanted)


def test_torchvision_numbers_the_folders_as_we_do(release, pushed, wanted, tmp_path):
    vision = pytest.importorskip("torchvision.datasets")
    for folder in (made(release, tmp_path / "set") / "train", pushed / "data" / "train"):
        data = vision.ImageFolder(str(folder))
        same_images([{"image": image, "label": label} for image, label in data], "image", "label", wanted)


def test_dpimagebench_reads_its_npz(release, wanted, tmp_path):
    """eval.py of DPImageBench loads gen/gen.npz and takes "x" and "y"; evaluator.py reads the number of channels and
    the side from x.shape[1] and [2], counts classes in y, gives float(x) * 2 - 1 and long(y) to a classifier, and for
    the FID takes (x * 255) as bytes."""
    folder = made(release, tmp_path / "gen", format="dpimagebench")
    with np.load(folder / "gen.npz") as syn:
        assert sorted(syn.files) == ["x", "y"]
        images, labels = syn["x"], syn["y"]
    assert images.shape[1] == 3 and images.shape[2] == images.shape[3] == 16 and images.dtype == np.float32
    assert len(set(labels)) == len(CLASSES) and labels.dtype == np.int64 and labels.tolist() == LABELS
    assert np.isfinite(images).all() and images.min() >= 0 and images.max() <= 1
    inputs = images * np.float32(2) - np.float32(1)
    assert inputs.min() >= -1 and inputs.max() <= 1
    assert ((images * np.float32(255)).astype(np.uint8) == wanted.transpose(0, 3, 1, 2)).all()


def test_dpimagebench_makes_tensors_of_it(release, tmp_path):
    torch = pytest.importorskip("torch")
    with np.load(made(release, tmp_path / "gen", format="dpimagebench") / "gen.npz") as syn:
        pair = torch.from_numpy(syn["x"]).float(), torch.from_numpy(syn["y"]).long()
    batch, labels = next(iter(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*pair), batch_size=5)))
    assert batch.shape == (5, 3, 16, 16) and labels.tolist() == LABELS[:5]


def session(path):
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_onnxruntime_runs_a_whole_model(release, wanted, tmp_path):
    for kind in ("nearest_mean", "lda", "qda"):
        whole = release.whole(kind)
        whole.save(tmp_path / f"{kind}.onnx")
        run = session(tmp_path / f"{kind}.onnx")
        assert [(i.name, i.type, i.shape[1:]) for i in run.get_inputs()] == [("images", "tensor(uint8)", [3, 16, 16])]
        (scores,) = run.run(["logits"], {"images": np.ascontiguousarray(wanted.transpose(0, 3, 1, 2))})
        ours = whole.scores(wanted)
        assert np.abs(scores - ours).max() <= 1e-4 * (1 + np.abs(ours).max()), kind
        assert json.loads(run.get_modelmeta().custom_metadata_map["classes"]) == CLASSES


def test_onnxruntime_runs_a_network(cli, tmp_path):
    cli("train", "--data", "demo:train", "--limit", 40, "--network", "resnet8", "--epochs", 1, "--size", 16,
        "--out", "model.safetensors", "--onnx", "model.onnx", "--quiet")  # fmt: skip
    model = fedkt.Model.load(tmp_path / "model.safetensors")
    images = np.random.default_rng(2).integers(0, 256, (8, 16, 16, 3), dtype=np.uint8)
    run = session(tmp_path / "model.onnx")
    about = run.get_modelmeta().custom_metadata_map
    mean, std = (np.array(json.loads(about[name]), np.float32) for name in ("mean", "std"))
    pixels = ((images / np.float32(255) - mean) / std).transpose(0, 3, 1, 2)
    (found,) = run.run(None, {run.get_inputs()[0].name: np.ascontiguousarray(pixels, np.float32)})
    ours = model.logits(images)
    assert np.abs(found - ours).max() <= 1e-4 * (1 + np.abs(ours).max())


def test_our_own_reader_takes_the_folder_back(pushed, wanted):
    data = fedkt.Dataset.open(pushed)
    found = {(data.classes[label], image.tobytes()) for image, label in (data[i] for i in range(len(data)))}
    assert found == {(CLASSES[k], pixels.tobytes()) for k, pixels in zip(LABELS, wanted)}


@pytest.mark.parametrize(
    "options, words",
    [
        ({"push_layout": True, "format": "npz"}, "the layout for a hub is a folder of images, not 'npz'"),
        ({"license": "CC BY"}, "not an SPDX identifier"),
        ({"creator": "a\nb"}, "creator"),
        ({"url": "data.example.org"}, "not the address of a page"),
        ({"published": "yesterday"}, "is not a date"),
        ({"published": 7}, "published"),
    ],
)
def test_what_a_card_cannot_say_is_refused(release, tmp_path, options, words):
    with pytest.raises(fedkt.ArgumentError, match=words):
        release.generate(tmp_path / "set", EACH, **options)
    assert not list(pathlib.Path(tmp_path).iterdir())


def test_too_many_files_for_a_hub_are_refused(release, tmp_path):
    with pytest.raises(fedkt.ArgumentError, match="10001 images per class: a hub takes at most 10000"):
        release.generate(tmp_path / "set", 10001, push_layout=True)

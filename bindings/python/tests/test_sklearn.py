# SPDX-License-Identifier: Apache-2.0
"""test_sklearn.py - a head as a scikit-learn classifier."""

import pickle

import numpy as np
import pytest

import fedkt

pytest.importorskip("sklearn")

import fedkt.sklearn  # noqa: E402


@pytest.fixture(scope="module")
def release():
    data = fedkt.Dataset.open("demo:train", limit=300)
    task = fedkt.Task.make(data.classes, epsilon=10, delta=1e-5, codec="dct", size=16, dim=24)
    return fedkt.release(task, fedkt.moments(task, data), ledger=None, insecure_seed=1)


def test_it_is_the_head(release):
    from sklearn.base import clone
    from sklearn.metrics import accuracy_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    w, labels = release.sample(30, seed=4)
    for kind, head in release.heads().items():
        found = fedkt.sklearn.HeadClassifier(kind).fit(release)
        assert (found.predict(w) == found.classes_[head.predict(w)]).all()
        assert (found.predict_proba(w) == head.posterior(w)).all()
        assert accuracy_score(found.classes_[labels], found.predict(w)) == found.score(w, found.classes_[labels])
        again = pickle.loads(pickle.dumps(found))
        assert (again.predict(w) == found.predict(w)).all()
        with pytest.raises(Exception, match="not fitted"):
            clone(found).predict(w)
        numbers = fedkt.sklearn.HeadClassifier(kind, labels="numbers").fit(release)
        assert (numbers.predict(w) == head.predict(w)).all()
    images, _ = release.images(3)
    pipeline = release.pipeline()
    whole = make_pipeline(FunctionTransformer(lambda x: pipeline.vectors(x)[0], validate=False), found)
    assert (whole.predict(images) == found.predict(pipeline.vectors(images)[0])).all()


def test_bad_input(release, tmp_path):
    for classifier, source in ((fedkt.sklearn.HeadClassifier("svm"), release),
                               (fedkt.sklearn.HeadClassifier(labels="x"), release),
                               (fedkt.sklearn.HeadClassifier(), tmp_path / "no")):  # fmt: skip
        with pytest.raises(fedkt.FedktError):
            classifier.fit(source)
    with pytest.raises(fedkt.ArgumentError, match="no labels"):
        fedkt.sklearn.HeadClassifier().fit(release, np.zeros(3))
    found = fedkt.sklearn.HeadClassifier().fit(release)
    with pytest.raises(fedkt.DataError):
        found.predict(np.full((1, 25), np.nan))

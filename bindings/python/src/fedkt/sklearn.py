# SPDX-License-Identifier: Apache-2.0
"""sklearn.py - a head of a release as a scikit-learn classifier, for pipelines and metrics of that package. Import it
by its name, `import fedkt.sklearn`."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .errors import argument_error
from .releases import Release


class HeadClassifier(ClassifierMixin, BaseEstimator):
    """A closed-form head on record vectors. It is fitted to a release, not to records: fit() takes a Release or the
    path of one, and no labels. labels: "names" for the names of classes, "numbers" for their numbers.

    >>> import fedkt, fedkt.sklearn
    >>> data = fedkt.Dataset.open("demo:train", limit=300)
    >>> task = fedkt.Task.make(data.classes, epsilon=10, delta=1e-5, codec="dct", size=16, dim=32)
    >>> release = fedkt.release(task, fedkt.moments(task, data), ledger=None, insecure_seed=1)
    >>> classifier = fedkt.sklearn.HeadClassifier("lda").fit(release)
    >>> vectors, labels = release.sample(20)
    >>> bool(classifier.score(vectors, classifier.classes_[labels]) > 0.3)
    True
    """

    def __init__(self, kind="lda", parts="default", temperature=1.0, labels="names"):
        self.kind = kind
        self.parts = parts
        self.temperature = temperature
        self.labels = labels

    def fit(self, release, y=None):
        """Takes the head of this kind of a release."""
        if not isinstance(release, Release):
            release = Release.load(release)
        if y is not None:
            raise argument_error("a head is fitted to a release: there are no labels to give")
        if self.labels not in ("names", "numbers"):
            raise argument_error("labels must be 'names' or 'numbers'")
        heads = release.heads(self.parts)
        if self.kind not in heads:
            raise argument_error(f"the release gives no head '{self.kind}': {', '.join(heads)}")
        self.head_ = heads[self.kind]
        names = np.array(self.head_.classes)
        self.classes_ = names if self.labels == "names" else np.arange(len(names))
        self.n_features_in_ = self.head_.length
        return self

    def predict(self, X):
        """The class of each record vector."""
        check_is_fitted(self, "head_")
        return self.classes_[self.head_.predict(X)]

    def predict_proba(self, X):
        """(n, K) probabilities, with equal priors."""
        check_is_fitted(self, "head_")
        return self.head_.posterior(X, self.temperature)

    def decision_function(self, X):
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

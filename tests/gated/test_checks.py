"""scikit-learn's checks of GatedSVC, through a subclass whose target is the last class in y."""

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import GatedSVC


class LastClass(GatedSVC):
    """A student of the class that sorts last."""

    def __init__(self, target=None, C=1.0, tol=1e-6, max_iter=-1):
        super().__init__(target, C=C, tol=tol, max_iter=max_iter)

    def fit(self, X, y, sample_weight=None, teacher_scores=None):
        labels = [None] if y is None else np.unique(np.asarray(y))
        target, self.target = self.target, labels[-1] if len(labels) else None
        try:
            return super().fit(X, y, sample_weight, teacher_scores)
        finally:
            self.last_, self.target = self.target, target

    def score(self, X, y, sample_weight=None, teacher_scores=None):
        return float(
            np.average(self.predict(X) == (np.asarray(y) == self.last_), weights=sample_weight)
        )


BOOLEAN = "predictions are booleans, not the labels of y"
EXCLUDED = {
    "check_classifiers_classes": BOOLEAN,
    "check_classifiers_train": BOOLEAN,
}


@parametrize_with_checks([LastClass()], expected_failed_checks=lambda estimator: EXCLUDED)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)

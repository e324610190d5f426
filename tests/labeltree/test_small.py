"""Label trees on data small enough to run without compilation."""

import numpy as np
import pytest
from tests.labeltree.cases import documents

from widemargin import LabelTreeClassifier


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log", "crammer_singer"])
def test_training_samples_get_their_labels(loss):
    X, Y = documents(n_samples=30, n_labels=8)
    model = LabelTreeClassifier(loss=loss, branching=2, max_leaf_size=3, n_trees=2, C=10.0)
    labels, scores = model.fit(X, Y).predict_topk(X, 8)
    exact = np.take_along_axis(model.decision_function(X), labels, axis=1)
    np.testing.assert_allclose(scores, exact, rtol=1e-9, atol=1e-12)
    assert Y.toarray()[np.arange(30), labels[:, 0]].mean() > 0.9

"""The generator of documents with very many labels."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from widemargin import LabelTreeClassifier, precision_at_k
from widemargin.datasets import make_extreme_labels


def test_labels_follow_a_power_law_and_share_topics():
    data = make_extreme_labels(20_000, 1000, random_state=0)
    counts = -np.sort(-data.Y.sum(axis=0))
    assert data.Y.shape == (20_000, 1000)
    assert set(data.Y.data) == {1.0}
    assert counts[0] > 20 * np.median(counts)
    pairs = data.Y[data.Y.sum(axis=1) == 2]
    siblings = pairs.indices.reshape(-1, 2) // 16
    assert (siblings[:, 0] == siblings[:, 1]).all()
    np.testing.assert_allclose(np.sqrt(data.X.power(2).sum(axis=1)), 1.0)


def test_label_texts_have_the_words_of_the_label_features():
    data = make_extreme_labels(300, 100, random_state=0)
    words = [f"word{k}" for k in range(2000)]
    found = CountVectorizer(vocabulary=words).fit_transform(data.label_texts)
    np.testing.assert_array_equal((found != 0).toarray(), (data.label_features != 0).toarray())


@pytest.mark.slow
def test_labels_can_be_learned_and_seeds_repeat_them():
    data = make_extreme_labels(3000, 60, random_state=1)
    again = make_extreme_labels(3000, 60, random_state=1)
    np.testing.assert_array_equal(data.X.toarray(), again.X.toarray())
    model = LabelTreeClassifier(max_leaf_size=10).fit(data.X[:2000], data.Y[:2000])
    labels, _ = model.predict_topk(data.X[2000:], 5)
    assert precision_at_k(data.Y[2000:], labels, 1) > 0.7


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="n_labels at least 2"):
        make_extreme_labels(10, 1)
    with pytest.raises(ValueError, match="noise must be from 0 to 1"):
        make_extreme_labels(noise=2.0)

"""What must not matter does not: the order of rows, the names of classes, how rows are counted."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from tests.suites.registry import answers, assert_close, each_case

seeds = st.integers(0, 2**32 - 1)


@each_case(lambda case: case.weighted)
@settings(max_examples=15)
@given(seed=seeds)
def test_weights_equal_repetitions(case, seed):
    X, y = case.data()
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    weights[np.unique(y, return_index=True)[1]] = 1
    weighted = case.precise().fit(X, y, sample_weight=weights)
    repeated = case.precise().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_close(answers(weighted, X), answers(repeated, X), case.precision)


@each_case(lambda case: case.weighted)
def test_equal_weights_equal_none(case):
    X, y = case.data()
    weighted = case.precise().fit(X, y, sample_weight=np.ones(len(y)))
    assert_close(answers(weighted, X), answers(case.precise().fit(X, y), X), case.precision)


@each_case()
@settings(max_examples=15)
@given(seed=seeds)
def test_order_of_rows_does_not_matter(case, seed):
    X, y = case.data()
    order = np.random.default_rng(seed).permutation(len(y))
    shuffled = case.precise().fit(X[order], y[order])
    assert_close(answers(shuffled, X), answers(case.precise().fit(X, y), X), case.precision)


@each_case()
def test_names_of_classes_do_not_matter(case):
    X, y = case.data()
    plain = case.new().fit(X, y)
    expected = answers(plain, X)
    for names in (
        np.array(["alpha", "beta", "gamma"]),
        np.array(["alpha", "beta", "gamma"], dtype=object),
        np.array([-7, 0, 12], dtype=np.int8),
        np.array([0.0, 1.0, 2.0]),
    ):
        named = case.new().fit(X, names[y])
        assert_array_equal(named.classes_, names[: y.max() + 1])
        assert_array_equal(answers(named, X), expected)
        assert_array_equal(named.predict(X), names[plain.predict(X)])
        assert named.score(X, names[y]) == plain.score(X, y)


@each_case()
def test_truth_values_are_class_labels(case):
    X, y = case.data(n_classes=2)
    plain, named = case.new().fit(X, y), case.new().fit(X, y == 1)
    assert_array_equal(answers(named, X), answers(plain, X))
    assert_array_equal(named.predict(X), plain.predict(X) == 1)


@each_case()
def test_rows_are_answered_one_by_one_as_together(case):
    X, y = case.data()
    estimator = case.new().fit(X, y)
    together = answers(estimator, X)
    assert_array_equal(
        np.concatenate([answers(estimator, X[[i]]) for i in range(20)]), together[:20]
    )
    assert_array_equal(answers(estimator, X[7:40]), together[7:40])

"""Bad input is refused with the documented exception, which names the argument."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError
from tests.suites.registry import answers, each_case


def with_entry(X, value):
    X = X.astype(np.result_type(X, type(value)))
    X[3, 1] = value
    return X


BAD_ROWS = {
    "NaN": (lambda X: with_entry(X, np.nan), "X contains NaN"),
    "infinity": (lambda X: with_entry(X, np.inf), "X contains infinity"),
    "complex numbers": (lambda X: X + 1j, "Complex data not supported"),
    "text": (lambda X: with_entry(X.astype(object), "large"), "could not convert|not.*numeric"),
    "one dimension": (lambda X: X[:, 0], "Expected 2D array"),
    "three dimensions": (lambda X: X[:, :, None], "dim 3"),
    "no features": (lambda X: X[:, :0], r"0 feature\(s\)"),
    "no rows": (lambda X: X[:0], r"0 sample\(s\)"),
}

BAD_TARGETS = {
    "None": (lambda y: None, r"\by\b.*None|requires y"),
    "NaN": (lambda y: np.where(y == 0, np.nan, y), "y contains NaN"),
    "one class": (lambda y: np.zeros_like(y), "class"),
    "two columns": (lambda y: np.column_stack([y, y]), r"\by\b.*1d"),
    "too few": (lambda y: y[:-1], "inconsistent numbers of samples"),
    "strings and numbers": (
        lambda y: np.where(y == 0, "none", y.astype(object)),
        "y must contain class labels of one type, got float, str",
    ),
    "no class labels": (lambda y: y + np.linspace(0.1, 0.9, len(y)), "Unknown label type"),
}

BAD_WEIGHTS = {
    "a negative one": (lambda y: np.where(np.arange(len(y)) == 3, -1.0, 1.0), "weight"),
    "all zero": (lambda y: np.zeros(len(y)), "weight"),
    "zero but for one class": (lambda y: (y == 0).astype(float), "weight.*class|class.*weight"),
    "NaN": (lambda y: np.full(len(y), np.nan), "sample_weight contains NaN"),
    "too few": (lambda y: np.ones(len(y) - 1), "sample_weight"),
    "two dimensions": (lambda y: np.ones((len(y), 2)), "[Ss]ample.weight"),
}

BAD_PARAMETERS = {
    "C": [0.0, -1.0, np.nan, "1"],
    "kernel": ["unknown", None],
    "gamma": [-1.0, "unknown"],
    "tol": [-1.0, np.nan],
    "cache_size": [0],
    "max_iter": [-2, 0.5],
    "multi_class": ["unknown"],
    "class_weight": ["unknown"],
}


@each_case()
@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_rows_are_refused_in_fit(case, kind):
    spoil, message = BAD_ROWS[kind]
    X, y = case.data()
    X = spoil(X)
    with pytest.raises(ValueError, match=message):
        case.new().fit(X, y[: len(X)])


@each_case()
@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_rows_are_refused_in_prediction(case, kind):
    spoil, message = BAD_ROWS[kind]
    X, y = case.data()
    estimator = case.new().fit(X, y)
    with pytest.raises(ValueError, match=message):
        answers(estimator, spoil(X))


@each_case(lambda case: case.sparse)
@pytest.mark.parametrize("kind", ["NaN", "infinity", "complex numbers"])
def test_bad_sparse_rows_are_refused(case, kind):
    spoil, message = BAD_ROWS[kind]
    X, y = case.data()
    with pytest.raises(ValueError, match=message):
        case.new().fit(sparse.csr_array(spoil(X)), y)


@each_case(lambda case: True)
@pytest.mark.parametrize("kind", BAD_TARGETS)
def test_bad_targets_are_refused(case, kind):
    spoil, message = BAD_TARGETS[kind]
    X, y = case.data()
    with pytest.raises(ValueError, match=message):
        case.new().fit(X @ X.T if case.pairwise else X, spoil(y.astype(float)))


@each_case(lambda case: case.weighted)
@pytest.mark.parametrize("kind", BAD_WEIGHTS)
def test_bad_weights_are_refused(case, kind):
    spoil, message = BAD_WEIGHTS[kind]
    X, y = case.data()
    with pytest.raises(ValueError, match=message):
        case.new().fit(X, y, sample_weight=spoil(y))


@each_case(lambda case: True)
@pytest.mark.parametrize("parameter", BAD_PARAMETERS)
def test_bad_parameters_are_refused(case, parameter):
    if not case.has(parameter):
        pytest.skip(f"no parameter {parameter}")
    X, y = case.data()
    for value in BAD_PARAMETERS[parameter]:
        with pytest.raises(InvalidParameterError, match=f"'{parameter}' parameter.*{value}"):
            case.new(**{parameter: value}).fit(X @ X.T if case.pairwise else X, y)


@each_case()
def test_other_number_of_features_is_refused_in_prediction(case):
    X, y = case.data()
    estimator = case.new().fit(X, y)
    name = type(case.estimator).__name__
    message = f"X has {X.shape[1] - 1} features, but {name} is expecting {X.shape[1]}"
    with pytest.raises(ValueError, match=re.escape(message)):
        answers(estimator, X[:, 1:])


@each_case(lambda case: True)
def test_prediction_before_fit_is_refused(case):
    X, _ = case.data()
    with pytest.raises(NotFittedError, match=f"{type(case.estimator).__name__}.*not fitted"):
        answers(case.new(), X)


@each_case(lambda case: case.pairwise)
def test_precomputed_kernel_must_be_square(case):
    X, y = case.data()
    with pytest.raises(ValueError, match="square"):
        case.new().fit(X, y)


@each_case(lambda case: case.pairwise)
def test_precomputed_kernel_must_be_dense(case):
    X, y = case.data()
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        case.new().fit(sparse.csr_array(X @ X.T), y)


@each_case(lambda case: case.pairwise)
def test_precomputed_kernel_of_other_rows_is_refused_in_prediction(case):
    X, y = case.data()
    gram = X @ X.T
    estimator = case.new().fit(gram, y)
    with pytest.raises(ValueError, match=rf"{len(X) - 1}\D+{len(X)}"):
        answers(estimator, gram[:, 1:])


REFITS = {
    "rows": lambda X, y: {"X": with_entry(X, np.nan), "y": y},
    "classes": lambda X, y: {"X": X, "y": np.zeros_like(y)},
    "weights": lambda X, y: {"X": X, "y": y, "sample_weight": np.zeros(len(y))},
}


@each_case()
@pytest.mark.parametrize("what", REFITS)
def test_a_refit_that_is_refused_leaves_the_fitted_estimator_as_it_was(case, what):
    if what == "weights" and not case.weighted:
        pytest.skip("takes no weights")
    X, y = case.data()
    estimator = case.new().fit(X, y)
    before = answers(estimator, X)
    with pytest.raises(ValueError, match=r"NaN|class|weight"):
        estimator.fit(**REFITS[what](X, y))
    np.testing.assert_array_equal(answers(estimator, X), before)


@each_case()
def test_a_refit_that_is_refused_on_other_features_leaves_no_half_fitted_estimator(case):
    X, y = case.data()
    estimator = case.new().fit(X, y)
    with pytest.raises(ValueError, match="class"):
        estimator.fit(X[:, 1:], np.zeros_like(y))
    with pytest.raises(ValueError, match=r"feature|dimension|shape"):
        answers(estimator, X[:, 1:])

"""Privileged columns with absurd numbers: named, tamed, and no method stalls on them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from widemargin import PrivilegedSVC, PrivilegedSVCCV, TwoViewSVC
from widemargin.privileged.columns import PrivilegedColumns

METHODS = {
    "SVM2+": lambda **named: PrivilegedSVC(**named),
    "SVM1+": lambda **named: PrivilegedSVC(loss="hinge", **named),
    "SVM-2K": lambda **named: TwoViewSVC(**named),
}


def descriptors(n, seed=0):
    """Fingerprints, and descriptors in all units of which one reaches 1e72."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 20)) < 0.3).astype(float)
    y = (X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(n) > 1.5).astype(int)
    units = np.logspace(-2, 5, 8)
    Z = np.abs(rng.standard_normal((n, 8)) + y[:, np.newaxis]) * units
    Z[:, 6] = 10.0 ** (72.0 * rng.random(n) ** 2)
    Z[0, 6] = 1e72
    names = [f"d{k}" for k in range(6)] + ["paths", "weight"]
    return X, pd.DataFrame(Z, columns=names), y


def learned(Z):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivilegedColumns.learn(Z, None, np.arange(Z.shape[0]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("privileged_kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_column_that_reaches_1e72_is_named_and_stalls_nothing(
    method, kernel, privileged_kernel, C
):
    X, Z, y = descriptors(40)
    model = METHODS[method](kernel=kernel, privileged_kernel=privileged_kernel, C=C)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, privileged=Z)
    assert any("column 'paths'." in str(warning.message) for warning in caught)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.objective_).all()
    if C == 1.0:
        assert model.fit_status_ == 0
        assert model.dual_gap_[0] < 1e-3
    if method == "SVM-2K":
        assert np.isfinite(model.decision_function(X, privileged=Z)).all()
    else:
        assert np.isfinite(model.slack(Z)).all()


@pytest.mark.large
@pytest.mark.parametrize("method", ["SVM1+", "SVM-2K"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_more_rows_than_an_active_set_takes_are_solved_too(method, kernel):
    X, Z, y = descriptors(600)
    model = METHODS[method](kernel=kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y, privileged=Z)
    assert model.fit_status_ == 0
    assert model.dual_gap_[0] < 1e-3


def test_a_search_names_the_column_once():
    X, Z, y = descriptors(40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivilegedSVCCV(Cs=[1.0], privileged_penalties=[1.0], cv=3).fit(X, y, privileged=Z)
    assert sum("column 'paths'." in str(warning.message) for warning in caught) == 1


ABSURD = {
    "one entry": [0.0] * 19 + [1e72],
    "one entry beside others": [0.0] * 10 + [1.0] * 9 + [1e72],
    "all entries": 1e200 * np.linspace(1.0, 2.0, 20),
    "both ends": [-1.7e308] * 5 + [0.0] * 10 + [1.7e308] * 5,
}


@pytest.mark.parametrize("kind", ABSURD)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_absurd_entries_become_ordinary_ones(kind, container):
    Z = np.column_stack([np.linspace(-1.0, 1.0, 20), ABSURD[kind]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        columns, values = learned(container(Z))
    values = values.toarray() if sparse.issparse(values) else values
    assert list(columns.absurd) == [1]
    np.testing.assert_array_equal(values[:, 0], Z[:, 0])
    assert np.abs(values[:, 1]).max() <= 10.0
    assert values[-1, 1] == values[:, 1].max() > 0.0


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e6])
def test_columns_of_any_ordinary_unit_are_left_alone(unit):
    Z = unit * np.random.default_rng(0).standard_cauchy((50, 3))
    columns, values = learned(Z)
    assert not len(columns.absurd)
    np.testing.assert_array_equal(values, Z)


def test_constant_columns_are_left_alone():
    Z = np.ones((10, 2)) * [3.0, 0.0]
    columns, values = learned(Z)
    assert not len(columns.absurd)
    np.testing.assert_array_equal(values, Z)

"""gamma='scale' is one over the number of features times the variance, whatever the units."""

import numpy as np
import pytest
from scipy import sparse

from widemargin.kernels.parameters import effective_gamma

X = np.random.default_rng(0).normal(size=(200, 3))
X[::3, 1] = 0.0


def test_names_and_numbers_are_told_apart():
    assert effective_gamma("auto", X) == pytest.approx(1 / 3)
    assert effective_gamma(0.7, X) == 0.7
    assert effective_gamma("scale", X) == pytest.approx(1 / (3 * X.var()), rel=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_equal_weights_are_no_weights_however_far_the_origin(container, offset, unit):
    rows = container(np.where(X != 0.0, X + offset, 0.0) if offset == 1e4 else X + offset)
    expected = 1 / (3 * rows.toarray().var() if sparse.issparse(rows) else 3 * rows.var())
    weights = np.full(len(X), unit)
    assert effective_gamma("scale", rows) == pytest.approx(expected, rel=1e-12)
    assert effective_gamma("scale", rows, weights) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_row_of_weight_k_counts_as_k_rows(container):
    weights = np.arange(1, len(X) + 1) % 4 + 1
    repeated = container(np.repeat(X + 5.0, weights, axis=0))
    weighted = effective_gamma("scale", container(X + 5.0), weights.astype(float))
    assert weighted == pytest.approx(effective_gamma("scale", repeated), rel=1e-12)


def test_equal_values_have_gamma_one():
    assert effective_gamma("scale", np.ones((4, 2))) == 1.0


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [1e200, 1e307, 1e-160])
def test_a_variance_that_is_no_number_is_refused(container, unit):
    with pytest.raises(ValueError, match="gamma='scale' cannot be computed"):
        effective_gamma("scale", container(unit * X))

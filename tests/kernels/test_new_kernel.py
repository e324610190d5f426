"""A new kernel is one class: registered, it works in every estimator with a kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.utils._param_validation import InvalidParameterError

from widemargin import SVC, SVCCV, CrammerSingerSVC, KernelDiscriminantAnalysis
from widemargin.kernels import KERNEL_NAMES
from widemargin.kernels.functions import KERNELS, KernelFunction, register

X, Y = load_iris(return_X_y=True)


class Cauchy(KernelFunction):
    """1 / (1 + gamma ||x - y||^2)."""

    name = "cauchy"
    uses_norms = translation_invariant = True
    positive_semidefinite = True

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        tile = out[rows, columns]
        tile *= -2.0
        tile += X_norms[rows, np.newaxis]
        tile += Y_norms[columns]
        tile *= self.gamma
        tile += 1.0
        np.reciprocal(tile, out=tile)


@pytest.fixture
def cauchy():
    register(Cauchy)
    yield
    del KERNELS["cauchy"]


def plain_cauchy(A, B, gamma=0.5):
    distances = ((A[:, np.newaxis] - B[np.newaxis]) ** 2).sum(axis=2)
    return 1.0 / (1.0 + gamma * distances)


def test_a_kernel_that_is_not_registered_is_refused():
    assert "cauchy" not in KERNEL_NAMES
    with pytest.raises(InvalidParameterError, match="'kernel' parameter of SVC"):
        SVC(kernel="cauchy").fit(X, Y)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_svc_takes_a_registered_kernel(cauchy, container):
    assert "cauchy" in KERNEL_NAMES
    model = SVC(kernel="cauchy", gamma=0.5, tol=1e-8).fit(container(X), Y)
    reference = SVC(kernel=plain_cauchy, tol=1e-8).fit(X, Y)
    assert_allclose(
        model.decision_function(container(X)), reference.decision_function(X), atol=1e-6
    )
    assert (model.dual_gap_ < 1e-6).all()
    assert np.isnan(SVC(kernel=lambda A, B: -plain_cauchy(A, B)).fit(X, Y).dual_gap_).all()


@pytest.mark.parametrize("kind", [CrammerSingerSVC, KernelDiscriminantAnalysis])
def test_others_take_it_too(cauchy, kind):
    assert kind(kernel="cauchy", gamma=0.5).fit(X, Y).score(X, Y) > 0.95


@pytest.mark.large
def test_a_search_computes_distances_once_for_all_gammas(cauchy):
    model = SVCCV(kernel="cauchy", Cs=[1.0, 10.0], gammas=[0.1, 1.0], cv=3).fit(X, Y)
    plain = SVCCV(kernel="cauchy", Cs=[1.0, 10.0], gammas=[0.1, 1.0], cv=3, cache_size=0.01)
    assert_array_equal(model.scores_, plain.fit(X, Y).scores_)

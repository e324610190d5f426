"""Gram matrices for one gamma after another are those that each gamma has alone."""

import numpy as np
import pytest
from scipy import sparse

from widemargin.kernels import KernelGram, MatrixGram, kernel_function
from widemargin.kernels.gamma_grid import gram_matrices

GAMMAS = [0.3, 0.01, 2.0]
X = np.random.default_rng(0).normal(size=(60, 7))
ROOM = {"none": 0.0, "one": 1.5, "two": 2.0}


def with_long_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


CONTAINERS = {"dense": np.asarray, "sparse": sparse.csr_array, "long": with_long_indices}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("name", ["poly", "rbf", "sigmoid", "laplacian"])
@pytest.mark.parametrize("room", ["one", "two"])
def test_a_sweep_gives_every_gamma_its_matrix(name, container, room):
    def gram_at(gamma):
        return KernelGram(kernel_function(name, gamma, coef0=1.0), container(X))

    cache_bytes = ROOM[room] * 8 * len(X) ** 2
    for gamma, gram in zip(GAMMAS, gram_matrices(gram_at, GAMMAS, cache_bytes), strict=True):
        expected = gram_at(gamma)
        # The exponential of the Laplacian is NumPy's, which may round long stripes otherwise.
        np.testing.assert_allclose(gram.matrix, expected.block(slice(None)), rtol=1e-15, atol=0)
        assert gram.positive_semidefinite == expected.positive_semidefinite


def test_a_sweep_without_room_gives_nothing():
    grams = gram_matrices(
        lambda gamma: KernelGram(kernel_function("rbf", gamma), X), GAMMAS, ROOM["none"]
    )
    assert list(grams) == [None] * 3


def test_a_sweep_passes_matrices_on():
    gram = MatrixGram(X @ X.T)
    assert list(gram_matrices(lambda gamma: gram, [0.0], ROOM["none"])) == [gram]

"""The clusters of samples in which members start."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from tests.structured.cases import MODELS
from tests.structured.ensembles.cases import draw_samples

from widemargin.structured import ChainCRF, MultipleChoiceSSVM
from widemargin.structured.ensembles.assignment import cluster_samples


@pytest.mark.parametrize("name", MODELS)
def test_clusters_are_those_of_the_joint_features_of_the_true_outputs(name):
    model, X, Y = draw_samples(name)
    oracle = model.prepare(X, Y)
    rows = oracle.true_joint_features()
    rows = rows.toarray() if sparse.issparse(rows) else rows
    for x, y, row in zip(X, Y, rows, strict=True):
        assert_allclose(oracle.to_model_order(row), model.joint_feature(x, y), atol=1e-12)
    member = cluster_samples(oracle, 2, np.random.default_rng(0))
    assert set(member) == {0, 1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_clusters_of_samples_with_many_sparse_features_need_little_memory():
    # A dense matrix of joint features has 40 samples times 2 x 10^5 weights, 64 MB.
    rng = np.random.default_rng(0)
    X = [sparse.random_array((3, 10**5), density=1e-5, rng=rng, format="csr") for _ in range(40)]
    for i, x in enumerate(X):
        X[i] = x + sparse.csr_array((np.ones(3), ([0, 1, 2], [i % 2] * 3)), shape=x.shape)
    Y = [np.full(3, i % 2) for i in range(40)]
    model = ChainCRF(n_states=2)
    oracle = model.prepare(X, Y)
    rows = oracle.true_joint_features()
    assert sparse.issparse(rows)
    assert rows.nnz < 1000
    member = cluster_samples(oracle, 2, rng)
    assert (member[::2] == member[0]).all()
    assert (member[1::2] == 1 - member[0]).all()
    ensemble = MultipleChoiceSSVM(model, 2, C=0.1, n_rounds=1, max_iter=1).fit(X[:4], Y[:4])
    assert ensemble.pick_best_score(X[:4], Y[:4]) == 1.0

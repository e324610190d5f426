"""What the adapter of transformers takes for nodes."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.structured.cases import MODELS, samples
from tests.structured.learners.cases import letters

from widemargin.structured import (
    ChainCRF,
    FrankWolfeSSVM,
    MultiClassClf,
    NodeTransformer,
)

ROWS = [[1.0, 2.0], [3.0, 4.0], [8.0, 0.0]]


@pytest.mark.parametrize("kind", [np.array, list, sp.csr_array])
def test_a_sequence_is_one_node_for_each_row_whatever_holds_it(kind):
    found = NodeTransformer(StandardScaler(with_mean=False)).fit_transform([kind(ROWS)])[0]
    expected = StandardScaler(with_mean=False).fit_transform(ROWS)
    assert_allclose(found.toarray() if sp.issparse(found) else found, expected)


def test_a_tuple_is_a_graph_and_keeps_its_edges():
    edges = np.array([[0, 1]])
    features, same = NodeTransformer(StandardScaler()).fit_transform([(ROWS, edges)])[0]
    assert_allclose(features, StandardScaler().fit_transform(ROWS))
    assert same is edges


@pytest.mark.parametrize("kind", [np.array, pandas.DataFrame, sp.csr_array, sp.csr_matrix])
def test_rows_of_a_table_are_samples_of_one_node(kind):
    scaler = NodeTransformer(StandardScaler(with_mean=False))
    found = scaler.fit_transform(kind(ROWS), pandas.Series([1, 1, 0]))
    rows = [own.toarray().ravel() if sp.issparse(own) else own for own in found]
    assert_allclose(rows, StandardScaler(with_mean=False).fit_transform(ROWS))
    learner = make_pipeline(scaler, FrankWolfeSSVM(MultiClassClf(), C=10.0))
    assert learner.fit(kind(ROWS), [1, 1, 0]).score(kind(ROWS), [1, 1, 0]) == 1.0


@pytest.mark.large
def test_nodes_are_transformed_and_edges_kept():
    X, Y = samples(MODELS["edge features"][1])
    scaler = NodeTransformer(StandardScaler()).fit(X, Y)
    new = scaler.transform(X)
    rows = np.concatenate([x[0] for x in new])
    assert_allclose(rows.mean(axis=0), 0.0, atol=1e-12)
    for old, own in zip(X, new, strict=True):
        assert own[1] is old[1]
        assert own[2] is old[2]
    X, Y = samples(MODELS["grid"][1])
    assert NodeTransformer(StandardScaler()).fit_transform(X)[0].shape == X[0].shape
    X, Y = letters(10)
    thin = [sp.csr_array(x) for x in X]
    kernel = NodeTransformer(Nystroem(n_components=7, random_state=0))
    for own, other in zip(kernel.fit_transform(X, Y), kernel.fit_transform(thin, Y), strict=True):
        assert_allclose(own, other, atol=1e-9)


@pytest.mark.large
def test_a_pipeline_transforms_nodes_and_learns():
    X, Y = letters(20)
    kernel = NodeTransformer(Nystroem(gamma=0.02, n_components=60, random_state=0))
    pipeline = make_pipeline(kernel, FrankWolfeSSVM(ChainCRF(), C=10.0, tol=0.2)).fit(X, Y)
    assert pipeline.score(X, Y) > 0.9

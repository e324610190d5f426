"""Graphs with several types of nodes, compared with enumeration and with one type."""

from itertools import product

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tests.structured.cases import edge_sample, samples

from widemargin.structured import (
    EdgeFeatureGraphCRF,
    FrankWolfeSSVM,
    NodeTypeEdgeFeatureGraphCRF,
    NSlackSSVM,
    OneSlackSSVM,
    SubgradientSSVM,
)


def typed_model(**parameters):
    return NodeTypeEdgeFeatureGraphCRF(2, [2, 3], [2, 1], [[1, 2], [2, 0]], **parameters)


def typed_sample(rng):
    """Up to two nodes of each type, all of whose pairs may be joined."""
    n, m = rng.integers(1, 3, size=2)
    nodes = [rng.normal(size=(n, 2)), rng.normal(size=(m, 1))]
    within = [(0, 1)] if n == 2 else []
    across = [(u, v) for u in range(n) for v in range(m) if rng.random() < 0.7]
    back = [(v, u) for u in range(n) for v in range(m) if rng.random() < 0.3]
    edges = [np.array(pairs, dtype=int).reshape(-1, 2) for pairs in (within, across, back)]
    values = [rng.normal(size=(len(own), k)) for own, k in zip(edges, (1, 2, 2), strict=True)]
    y = np.concatenate([rng.integers(2, size=n), 2 + rng.integers(3, size=m)])
    return (nodes, [*edges, None], [*values, None]), y


def typed_outputs(x):
    kinds = [range(2)] * len(x[0][0]) + [range(2, 5)] * len(x[0][1])
    return [np.array(y) for y in product(*kinds)]


@pytest.mark.parametrize("method", [None, "trws", "lp", "branch-and-bound", "ad3+"])
def test_inference_finds_the_best_labels_of_the_types(method):
    model = typed_model(inference_method=method)
    X, Y = samples(typed_sample, n=10)
    w = np.random.default_rng(1).normal(size=model.size_joint_feature)
    for x, y in zip(X, Y, strict=True):
        values = {tuple(o): w @ model.joint_feature(x, o) for o in typed_outputs(x)}
        found = model.inference(x, w)
        assert tuple(found) in values
        if model.last_inference_.exact:
            assert_allclose(values[tuple(found)], max(values.values()))
        losses = {o: value + model.loss(y, np.array(o)) for o, value in values.items()}
        found = model.loss_augmented_inference(x, y, w)
        if model.last_inference_.exact:
            assert_allclose(losses[tuple(found)], max(losses.values()))


def test_the_joint_feature_is_ordered_by_types():
    model = typed_model()
    assert model.size_joint_feature == 2 * 2 + 3 * 1 + 1 * 4 + 2 * 6 + 2 * 6
    nodes = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0]])]
    edges = [np.array([[0, 1]]), np.array([[1, 0]]), None, None]
    x = nodes, edges, [np.array([[7.0]]), np.array([[8.0, 9.0]]), None, None]
    feature = model.joint_feature(x, [0, 1, 4])
    assert_array_equal(feature[:7], [1, 2, 3, 4, 0, 0, 5])
    assert_array_equal(feature[7:11].reshape(2, 2), [[0, 7], [0, 0]])
    assert_array_equal(feature[11:23].reshape(2, 2, 3)[0], [[0, 0, 0], [0, 0, 8]])
    assert_array_equal(feature[11:23].reshape(2, 2, 3)[1], [[0, 0, 0], [0, 0, 9]])
    assert_array_equal(feature[23:], 0)


@pytest.mark.parametrize("kind", [NSlackSSVM, OneSlackSSVM])
def test_one_type_is_a_graph_with_edge_features(kind):
    X, Y = samples(edge_sample)
    plain = kind(EdgeFeatureGraphCRF(), C=0.3, tol=1e-5).fit(X, Y)
    model = NodeTypeEdgeFeatureGraphCRF(1, [3], [4], [[3]])
    typed = kind(model, C=0.3, tol=1e-5).fit([tuple([part] for part in x) for x in X], Y)
    assert_allclose(typed.objective_, plain.objective_, rtol=2e-5)
    assert len(typed.w) == len(plain.w)
    assert_allclose(typed.w, plain.w, atol=0.01)


def exact_typed_objective(model, X, Y, C):
    """The optimum as a program with a constraint for each output with labels of the types."""
    d, n = model.size_joint_feature, len(Y)
    rows, bounds = [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for other in typed_outputs(x):
            change = model.joint_feature(x, other) - model.joint_feature(x, y)
            rows.append(np.r_[change, -1.0 * (np.arange(n) == i)])
            bounds.append(-model.loss(y, other))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic = sp.diags_array(np.r_[np.ones(d), np.zeros(n)]).tocsc()
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    problem = quadratic, np.r_[np.zeros(d), np.full(n, C)], sp.csc_array(np.array(rows))
    return clarabel.DefaultSolver(*problem, np.array(bounds), cones, settings).solve().obj_val


@pytest.mark.parametrize("kind", [FrankWolfeSSVM, NSlackSSVM, OneSlackSSVM, SubgradientSSVM])
def test_learners_reach_the_exact_optimum(kind):
    X, Y = samples(typed_sample, n=6)
    learner = kind(typed_model(), C=0.5, tol=0.01, max_iter=20_000).fit(X, Y)
    best = exact_typed_objective(learner.model_, X, Y, 0.5)
    assert learner.dual_gap_ <= 0.01
    assert best - 1e-6 <= learner.objective_ <= best / (1.0 - learner.dual_gap_) + 1e-6


def test_signs_are_constrained_at_positions_of_the_model():
    X, Y = samples(typed_sample, n=6)
    free = NSlackSSVM(typed_model(), C=0.5).fit(X, Y)
    positive = np.flatnonzero(free.w > 0.01)[::2]
    bounded = NSlackSSVM(typed_model(), C=0.5, negativity_constraint=positive).fit(X, Y)
    assert bounded.w[positive].max() <= 0.0
    assert bounded.dual_gap_ <= bounded.tol
    assert bounded.objective_ > free.objective_


def test_sparse_and_dense_nodes_are_the_same():
    x, y = typed_sample(np.random.default_rng(4))
    model = typed_model()
    sparse = [sp.csr_array(own) for own in x[0]], *x[1:]
    assert_array_equal(model.joint_feature(sparse, y), model.joint_feature(x, y))


def test_labels_by_type_and_back():
    model, x = typed_model(), typed_sample(np.random.default_rng(0))[0]
    n, m = len(x[0][0]), len(x[0][1])
    by_type = [np.arange(n) % 2, np.arange(m)]
    flat = model.flattenY(by_type)
    assert_array_equal(flat, np.concatenate([by_type[0], 2 + by_type[1]]))
    for own, other in zip(model.unflattenY(x, flat), by_type, strict=True):
        assert_array_equal(own, other)
    with pytest.raises(ValueError, match="flatY must have one label for each of"):
        model.unflattenY(x, flat[1:])


def test_class_weights_are_losses_of_labels():
    model = typed_model(l_class_weight=[[1.0, 2.0], [0.5, 1.0, 4.0]])
    assert model.loss([0, 1, 2, 4], [1, 0, 3, 3]) == 1.0 + 2.0 + 0.5 + 4.0


NODES = [np.zeros((1, 2)), np.zeros((2, 1))]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ((NODES, [None] * 4), "x must be a tuple"),
        ((NODES[:1], [None] * 4, [None] * 4), "x must have 2 arrays of node features and 4"),
        (([NODES[0], NODES[0]], [None] * 4, [None] * 4), r"node features of type 1 must have"),
        ((NODES, [None, [[0, 2]], None, None], [None] * 4), "from type 0 to type 1 must join"),
        (
            (NODES, [None, [[0, 1]], None, None], [None] * 4),
            r"types 0 and 1 must have shape \(1, 2",
        ),
        ((NODES, [None, [[0.5, 1]], None, None], [None] * 4), "edges must be integers of shape"),
    ],
)
def test_invalid_inputs_are_refused(x, message):
    model = typed_model()
    with pytest.raises(ValueError, match=message):
        model.inference(x, np.zeros(model.size_joint_feature))


def test_invalid_sizes_and_labels_are_refused():
    with pytest.raises(ValueError, match="an integer for each of 3 types"):
        _ = NodeTypeEdgeFeatureGraphCRF(3, [2, 3], [4, 5], [[1]]).size_joint_feature
    with pytest.raises(ValueError, match="a_n_edge_features must be a symmetric matrix"):
        _ = NodeTypeEdgeFeatureGraphCRF(2, [2, 3], [4, 5], [[1, 2], [3, 4]]).size_joint_feature
    for n_states in ([2, 0], [2, 3.5], [2, -1]):
        with pytest.raises(ValueError, match="an integer for each of 2 types, at least 1 and 0"):
            _ = NodeTypeEdgeFeatureGraphCRF(
                2, n_states, [4, 5], [[1, 2], [2, 4]]
            ).size_joint_feature
    for weights in ([[1.0, 2.0]], [None, [1.0, 2.0, 3.0]]):
        model = NodeTypeEdgeFeatureGraphCRF(
            2, [2, 3], [4, 5], [[1, 2], [2, 4]], l_class_weight=weights
        )
        with pytest.raises(ValueError, match="l_class_weight must have for each type an array"):
            _ = model.size_joint_feature
    x, y = typed_sample(np.random.default_rng(0))
    with pytest.raises(ValueError, match="lY_by_typ must have labels of"):
        typed_model().flattenY([[0]])
    with pytest.raises(ValueError, match=r"x must have .* got .*None"):
        typed_model().parse_input((*x[:2], None))
    with pytest.raises(ValueError, match=r"Y\[0\] must contain labels of the types of the nodes"):
        NSlackSSVM(typed_model()).fit([x], [np.full_like(y, 1)])

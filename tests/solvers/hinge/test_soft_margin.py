"""The interior-point method for finite costs, and the hand-over to it."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from tests.oracles.hinge import Hinge, solve_exactly

from widemargin import SVC, LinearSVC
from widemargin._base.options import smo_options
from widemargin.kernels import MatrixGram
from widemargin.kernels.functions import kernel_function
from widemargin.kernels.gram import KernelGram
from widemargin.solvers import HingeProblem, solve_hinge
from widemargin.solvers.hinge import dual_coordinate_descent, soft_margin
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import LOSSES


def unscaled(n=300, d=5, scale=1.0, offset=0.0, noise=0.1, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    y = np.where(X @ random.standard_normal(d) > 0.0, 1.0, -1.0)
    y[random.random(n) < noise] *= -1.0
    return X * scale + offset, y


def interior_point(problem):
    state = soft_margin.start(problem)
    while not soft_margin.advance(state):
        pass
    return soft_margin.finish(state)


def gap_in_extended_precision(model, X, y):
    """Relative gap of a binary SVC with a linear kernel, from its fitted attributes."""
    dual = model.dual_coef_[0].astype(np.longdouble)
    weights = dual @ X[model.support_].astype(np.longdouble)
    slack = np.maximum(0, 1 - y * (X @ weights + model.intercept_[0]))
    objective = weights @ weights / 2 + model.C * slack.sum()
    return float((objective - (np.abs(dual).sum() - weights @ weights / 2)) / objective)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", [3, 80])
def test_the_optimum_is_that_of_the_oracle(intercept, features):
    X, y = unscaled(60, features)
    random = np.random.default_rng(1)
    margin, cost = random.uniform(0.5, 2.0, 60), random.uniform(0.1, 10.0, 60)
    gram = KernelGram(kernel_function("linear"), X)
    found, residual = interior_point(HingeProblem(gram, y, margin, cost, intercept))
    exact = solve_exactly(Hinge(X @ X.T, y, margin, cost, intercept))
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    assert found.dual_objective == pytest.approx(exact.dual_objective, rel=1e-6)
    np.testing.assert_allclose(residual, y * margin - X @ (X.T @ found.dual), atol=1e-6)


def test_a_mean_of_the_features_changes_the_intercept_only():
    X, y = unscaled()
    plain, shifted = (
        interior_point(HingeProblem(KernelGram(kernel_function("linear"), Z), y))[0]
        for Z in (X, X + 100.0)
    )
    weights = plain.dual @ X
    assert shifted.objective == pytest.approx(plain.objective, rel=1e-9)
    expected = plain.intercept - 100.0 * weights.sum()
    assert shifted.intercept == pytest.approx(expected, rel=1e-6)


def test_pivoted_cholesky_stops_at_the_rank():
    X, _ = unscaled(50, 4)
    K = (X @ X.T + 1.0) ** 2
    factor = soft_margin.pivoted_cholesky(MatrixGram(K), 25)
    assert factor.shape == (50, 15)
    np.testing.assert_allclose(factor @ factor.T, K, atol=1e-10 * K.max())
    assert soft_margin.pivoted_cholesky(MatrixGram(K), 10) is None


@pytest.mark.large
def test_pivoted_cholesky_gives_up_early_where_the_rank_is_too_large():
    X, _ = unscaled(1200, 5)
    rows = []

    class Counted(KernelGram):
        def block(self, *index):
            rows.append(index)
            return super().block(*index)

    local = Counted(kernel_function("rbf", gamma=1.0), X)
    assert soft_margin.pivoted_cholesky(local, 600) is None
    assert len(rows) == 150
    smooth = KernelGram(kernel_function("rbf", gamma=1e-3), X)
    factor = soft_margin.pivoted_cholesky(smooth, 600)
    np.testing.assert_allclose(factor @ factor.T, smooth.block(slice(None), slice(None)), atol=1e-9)


@pytest.mark.parametrize("tol", [1.0, 0.1])
def test_a_start_next_to_a_solution_saves_steps(tol):
    X, y = unscaled(200, 5, noise=0.3)
    problem = HingeProblem(KernelGram(kernel_function("rbf", gamma=1.0), X), y, cost=1e4)
    near = solve_hinge(problem, tol=tol, exact=False)
    steps, found = [], []
    for start in (None, near):
        state = soft_margin.start(problem, start)
        while not soft_margin.advance(state):
            pass
        steps.append(state.iterations)
        found.append(soft_margin.finish(state)[0])
    assert steps[1] < 0.7 * steps[0]
    assert found[1].gap < 1e-6
    assert found[1].objective == pytest.approx(found[0].objective, rel=1e-6)


@pytest.mark.large
def test_pair_updates_hand_over_to_the_same_optimum(monkeypatch):
    X, y = unscaled(200)
    problem = HingeProblem(np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2)), y, cost=100.0)
    expected = solve_hinge(problem, gap_tol=1e-9)
    monkeypatch.setattr(smo_options, "handover_updates", 0)
    monkeypatch.setattr(smo_options, "handover_work", 0)
    found = solve_hinge(problem)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.large
@pytest.mark.parametrize("parameters", [{}, {"C": 10.0}, {"C": 1e-8}, {"gap_tol": 1e-3}])
def test_unscaled_features_end_with_an_honest_certificate(parameters):
    X, y = unscaled(300, scale=1e4)
    model = SVC(kernel="linear", **parameters).fit(X, y)
    assert gap_in_extended_precision(model, X, y) <= model.dual_gap_[0] + 1e-9
    assert model.dual_gap_[0] <= 1e-3
    assert model.fit_status_ == 0


@pytest.mark.large
def test_a_gap_that_floating_point_does_not_allow_is_reported():
    X, y = unscaled(300, scale=1e8)
    with pytest.warns(UserWarning, match="floating-point precision"):
        model = SVC(kernel="linear", gap_tol=1e-6).fit(X, y)
    assert model.fit_status_ == 1
    assert gap_in_extended_precision(model, X, y) <= model.dual_gap_[0]


@pytest.mark.large
def test_large_offset_gap_is_not_optimistic():
    X, y = unscaled(300, offset=1e7)
    model = SVC(kernel="linear").fit(X, y)
    centred = model.dual_coef_[0] @ (X[model.support_] - 1e7)
    scores = (X - 1e7) @ centred
    slacks = [np.maximum(0.0, 1.0 - y * (scores + b)).sum() for b in y - scores]
    least = 0.5 * centred @ centred + min(slacks)
    assert model.objective_[0] * (1.0 - model.dual_gap_[0]) <= least * (1 + 1e-9)
    assert model.dual_gap_[0] < 1e-6


@pytest.mark.large
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e6])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_linear_hinge_converges_on_unscaled_data(load, C):
    X, y = load(return_X_y=True)
    model = LinearSVC(loss="hinge", C=C).fit(X, y == 0)
    assert model.dual_gap_[0] <= 1e-3


@pytest.mark.large
def test_squared_hinge_with_a_large_offset_has_a_small_gap():
    X, y = unscaled(300, offset=1e7)
    assert LinearSVC().fit(X, y).dual_gap_[0] <= 1e-3


def test_a_linear_classifier_is_ended_step_by_step():
    X, y = unscaled(scale=np.logspace(0, 4, 5))
    state = dual_coordinate_descent.State(LinearProblem(X, y, np.ones(300), LOSSES["hinge"], 1.0))
    start, calls = dual_coordinate_descent.solution_at(state), []
    stopped = soft_margin.end_linear(state, start, lambda s: calls.append(s) or len(calls) == 2)
    assert calls == [state, state]
    assert not stopped.converged
    found = soft_margin.end_linear(state, start)
    assert found.converged
    assert found.gap < 1e-6


@pytest.mark.large
def test_samples_of_cost_zero_do_not_keep_slow_fits_from_the_interior_point_method(monkeypatch):
    monkeypatch.setattr(smo_options, "handover_work", 1.0)
    monkeypatch.setattr(smo_options, "handover_updates", 1e-9)
    X, y = unscaled(scale=np.logspace(0, 3, 5))
    cost = np.where(np.arange(300) < 250, 100.0, 0.0)
    found = solve_hinge(HingeProblem(X @ X.T, y, 1.0, cost), gap_tol=1e-6)
    expected = interior_point(HingeProblem(X[:250] @ X[:250].T, y[:250], 1.0, 100.0))[0]
    assert found.converged
    assert not found.dual[250:].any()
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)

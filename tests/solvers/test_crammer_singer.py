"""The multi-class solvers find the exact optimum, over rows and over a Gram matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.oracles.crammer_singer import solve_exactly, value_of

from widemargin.kernels import MatrixGram
from widemargin.solvers.multiclass import gram as crammer_singer_gram
from widemargin.solvers.multiclass import rows as crammer_singer_rows
from widemargin.solvers.multiclass.gram import solve_gram
from widemargin.solvers.multiclass.newton import free_rows, leap
from widemargin.solvers.multiclass.rows import solve_rows


def problem(seed, n=30, d=4, n_classes=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    label = np.argmax(X[:, :n_classes] + rng.standard_normal((n, min(d, n_classes))), axis=1)
    return X, label, rng.uniform(0.1, 3.0, n), n_classes


problems = st.builds(
    problem,
    st.integers(0, 2**32 - 1),
    n=st.integers(3, 30),
    d=st.integers(2, 5),
    n_classes=st.integers(2, 5),
)


@settings(max_examples=40)
@given(problems, st.sampled_from([0.0, 1.0, 3.0]), st.booleans())
def test_linear_functions_reach_the_exact_optimum(numbers, bias, rising):
    X, label, cost, n_classes = numbers
    margin = 0.5 + label if rising else None
    solution = solve_rows(X, label, cost, n_classes, margin=margin, bias=bias, max_iter=-1)
    height = 1.0 if margin is None else margin
    exact = solve_exactly(X @ X.T + bias**2, label, cost, n_classes, height)
    scale = cost.sum()
    assert_allclose(solution.objective, exact.objective, atol=1e-7 * scale)
    assert_allclose(solution.dual_objective, exact.objective, atol=1e-7 * scale)
    assert solution.converged


@settings(max_examples=40)
@given(problems, st.sampled_from([0.0, 1.0]), st.sampled_from([0.1, 1.0]), st.booleans())
def test_functions_with_a_kernel_reach_the_exact_optimum(numbers, bias, gamma, rising):
    X, label, cost, n_classes = numbers
    margin = 0.5 + label if rising else None
    gram = np.exp(-gamma * np.square(X[:, None] - X).sum(axis=2))
    solution = solve_gram(MatrixGram(gram), label, cost, n_classes, margin=margin, bias=bias)
    height = 1.0 if margin is None else margin
    exact = solve_exactly(gram + bias**2, label, cost, n_classes, height)
    assert_allclose(solution.objective, exact.objective, atol=1e-7 * cost.sum())
    assert_allclose(solution.dual_objective, exact.objective, atol=1e-7 * cost.sum())


def test_the_oracle_knows_a_closed_form():
    # Two rows at +-1, one of each class: w = +-c up to c = 1/4, where the margin of 1 is reached.
    gram = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for cost, height in [(0.1, 0.2), (1.0, 0.5)]:
        exact = solve_exactly(gram, np.array([0, 1]), np.full(2, cost), 2)
        assert_allclose(exact.scores, [[height, -height], [-height, height]], atol=1e-6)
        assert_allclose(exact.objective, height**2 + 2 * cost * (1 - 2 * height), atol=1e-8)


def test_dense_sparse_and_gram_give_the_same():
    X, label, cost, n_classes = problem(0, n=60)
    dense = solve_rows(X, label, cost, n_classes, bias=1.0, tol=1e-8, max_iter=-1)
    other = solve_rows(sparse.csr_array(X), label, cost, n_classes, bias=1.0, tol=1e-8, max_iter=-1)
    gram = solve_gram(MatrixGram(X @ X.T), label, cost, n_classes, bias=1.0, tol=1e-8)
    assert_allclose(other.weights, dense.weights, atol=1e-7)
    assert_allclose(gram.dual.T @ X, dense.weights[:-1].T, atol=1e-7)


def test_dual_variables_are_feasible():
    X, label, cost, n_classes = problem(1, n=100)
    rows = np.arange(len(label))
    for solution in (
        solve_rows(X, label, cost, n_classes, max_iter=3),
        solve_gram(MatrixGram(X @ X.T), label, cost, n_classes, max_iter=1),
    ):
        own = solution.dual[rows, label]
        assert_allclose(solution.dual.sum(axis=1), 0.0, atol=1e-12)
        assert (own <= cost).all()
        rivals = solution.dual.copy()
        rivals[rows, label] = 0.0
        assert (rivals <= 0.0).all()


def test_the_gap_bounds_the_distance_to_the_optimum():
    X, label, cost, n_classes = problem(2, n=60)
    exact = solve_exactly(X @ X.T, label, cost, n_classes)
    for passes in (1, 4, 16):
        solution = solve_rows(X, label, cost, n_classes, max_iter=passes)
        assert not solution.converged
        norm = np.sum(solution.weights**2)
        value = value_of(X @ solution.weights[:-1], norm, label, cost)
        assert_allclose(solution.objective, value, rtol=1e-9)
        distance = (solution.objective - exact.objective) / solution.objective
        assert -1e-9 <= distance <= solution.gap + 1e-9


def test_the_gap_may_be_what_the_solvers_stop_on(monkeypatch):
    monkeypatch.setattr(crammer_singer_gram, "BATCH_ROWS", 16)
    X, label, cost, n_classes = problem(3, n=60, d=6, n_classes=5)
    for solve, data in ((solve_rows, X), (solve_gram, MatrixGram(X @ X.T))):
        loose, tight = (
            solve(data, label, cost, n_classes, gap_tol=gap, max_iter=-1) for gap in (0.1, 1e-5)
        )
        assert tight.converged
        assert tight.gap <= 1e-5 < loose.gap <= 0.1


def test_a_warm_start_at_the_optimum_ends_at_once():
    X, label, cost, n_classes = problem(4, n=80)
    for solve, data in ((solve_rows, X), (solve_gram, MatrixGram(X @ X.T))):
        solution = solve(data, label, cost, n_classes, max_iter=-1)
        again = solve(data, label, cost, n_classes, dual=solution.dual)
        assert again.iterations <= min(5, solution.iterations - 1)
        assert_allclose(again.objective, solution.objective, rtol=1e-9)


def test_a_start_for_other_costs_and_labels_is_made_feasible():
    X, label, cost, n_classes = problem(5)
    for solve, data in ((solve_rows, X), (solve_gram, MatrixGram(X @ X.T))):
        dual = solve(data, label, cost, n_classes, max_iter=-1).dual
        for other, costs in ((label, 0.1 * cost), ((label + 1) % n_classes, cost)):
            warm = solve(data, other, costs, n_classes, dual=dual, max_iter=-1)
            cold = solve(data, other, costs, n_classes, max_iter=-1)
            assert_allclose(warm.objective, cold.objective, rtol=1e-7)
        start = solve(data, label, 0.1 * cost, n_classes, dual=dual, max_iter=0).dual
        assert_allclose(start.sum(axis=1), 0.0, atol=1e-12)
        assert (start[np.arange(len(label)), label] <= 0.1 * cost).all()


def test_a_start_of_another_shape_is_refused():
    X, label, cost, n_classes = problem(5)
    with pytest.raises(ValueError, match="dual must have shape"):
        solve_rows(X, label, cost, n_classes, dual=np.zeros((3, 2)))


@pytest.mark.parametrize("scales", [(1.0, 1e3, 1.0, 1e-1), (1e4,) * 4, (1e-3,) * 4], ids=str)
def test_features_of_any_scale_are_solved_in_few_passes(scales):
    X, label, cost, n_classes = problem(7, n=25)
    X = X * scales + 3.0
    gram = X @ X.T
    exact = solve_exactly(gram + 1.0, label, cost, n_classes)
    for solve, data in ((solve_rows, X), (solve_gram, MatrixGram(gram))):
        solution = solve(data, label, cost, n_classes, bias=1.0, tol=1e-3, max_iter=1000)
        assert solution.converged
        assert_allclose(solution.objective, exact.objective, rtol=1e-5)


def test_a_leap_goes_to_a_better_point_or_nowhere():
    X, label, cost, n_classes = problem(8, n=40)
    square, margin = X @ X.T, np.ones(40)
    dual = solve_rows(X, label, cost, n_classes, max_iter=3).dual
    rows = free_rows(dual, label, cost)
    part, scores = dual[rows], (dual.T @ square)[:, rows]

    def value(part):
        whole = dual.copy()
        whole[rows] = part
        return whole[np.arange(40), label].sum() - 0.5 * np.sum(whole * (square @ whole))

    before, moved = value(part), part.copy()
    fixed = square[np.ix_(rows, rows)], label[rows], margin[rows], cost[rows]
    assert leap(*fixed, moved, scores)
    assert value(moved) > before
    assert_allclose(moved.sum(axis=1), 0.0, atol=1e-12)
    whole = dual.copy()
    whole[rows] = moved
    assert_allclose(scores, (whole.T @ square)[:, rows], atol=1e-10)
    # Every row has a free class to give from: with one each there is nothing to exchange.
    nothing = np.zeros((5, n_classes))
    assert len(free_rows(nothing, label[:5], cost[:5])) == 0


def test_solvers_go_on_elsewhere_to_the_same_bits(monkeypatch):
    monkeypatch.setattr(crammer_singer_rows, "_LEAP_PASSES", 2)
    monkeypatch.setattr(crammer_singer_gram, "BATCH_ROWS", 16)
    X, label, cost, n_classes = problem(6, n=60)
    for solver, data in ((crammer_singer_rows, X), (crammer_singer_gram, MatrixGram(X @ X.T))):
        straight, stopped = (solver.start(data, label, cost, n_classes) for _ in range(2))
        for _ in range(3):
            solver.advance(straight)
            solver.advance(stopped)
        elsewhere = solver.start(data, label, cost, n_classes).resume(stopped.numbers())
        assert not elsewhere.finished
        for state in (straight, elsewhere):
            while not solver.advance(state):
                pass
        assert straight.iterations == elsewhere.iterations
        assert_array_equal(elsewhere.dual, straight.dual)

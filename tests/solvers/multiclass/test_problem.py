"""What both solvers of the multi-class problem have in common."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.oracles.crammer_singer import solve_exactly
from tests.solvers.multiclass.cases import kernel, linear, problem

from widemargin._base.options import crammer_singer_options
from widemargin.kernels import MatrixGram
from widemargin.solvers.multiclass import kernel as kernel_solver
from widemargin.solvers.multiclass import linear as linear_solver
from widemargin.solvers.multiclass.problem import CrammerSingerProblem


def set_options(monkeypatch, **changes):
    for name, value in changes.items():
        monkeypatch.setattr(crammer_singer_options, name, value)


def test_the_oracle_knows_a_closed_form():
    # Two rows at +-1, one of each class: w = +-c up to c = 1/4, where the margin of 1 is reached.
    gram = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for cost, height in [(0.1, 0.2), (1.0, 0.5)]:
        exact = solve_exactly(gram, np.array([0, 1]), np.full(2, cost), 2)
        assert_allclose(exact.scores, [[height, -height], [-height, height]], atol=1e-6)
        assert_allclose(exact.objective, height**2 + 2 * cost * (1 - 2 * height), atol=1e-8)


def test_dense_sparse_and_gram_give_the_same():
    X, label, cost, n_classes = problem(0, n=60)
    dense = linear(X, label, cost, n_classes, bias=1.0, tol=1e-8, max_iter=-1)
    other = linear(sparse.csr_array(X), label, cost, n_classes, bias=1.0, tol=1e-8, max_iter=-1)
    gram = kernel(MatrixGram(X @ X.T), label, cost, n_classes, bias=1.0, tol=1e-8)
    assert_allclose(other.weights, dense.weights, atol=1e-7)
    assert_allclose(gram.dual.T @ X, dense.weights[:-1].T, atol=1e-7)


def test_dual_variables_are_feasible():
    X, label, cost, n_classes = problem(1, n=100)
    rows = np.arange(len(label))
    for solution in (
        linear(X, label, cost, n_classes, max_iter=3),
        kernel(MatrixGram(X @ X.T), label, cost, n_classes, max_iter=1),
    ):
        own = solution.dual[rows, label]
        assert_allclose(solution.dual.sum(axis=1), 0.0, atol=1e-12)
        assert (own <= cost).all()
        rivals = solution.dual.copy()
        rivals[rows, label] = 0.0
        assert (rivals <= 0.0).all()


@pytest.mark.large
def test_the_gap_may_be_what_the_solvers_stop_on(monkeypatch):
    set_options(monkeypatch, batch_samples=16)
    X, label, cost, n_classes = problem(3, n=60, d=6, n_classes=5)
    for solve, data in ((linear, X), (kernel, MatrixGram(X @ X.T))):
        loose, tight = (
            solve(data, label, cost, n_classes, gap_tol=gap, max_iter=-1) for gap in (0.1, 1e-5)
        )
        assert tight.converged
        assert tight.gap <= 1e-5 < loose.gap <= 0.1


def test_a_warm_start_at_the_optimum_ends_at_once():
    X, label, cost, n_classes = problem(4, n=80)
    for solve, data in ((linear, X), (kernel, MatrixGram(X @ X.T))):
        solution = solve(data, label, cost, n_classes, max_iter=-1)
        again = solve(data, label, cost, n_classes, dual=solution.dual)
        assert again.iterations <= min(5, solution.iterations - 1)
        assert_allclose(again.objective, solution.objective, rtol=1e-9)


def test_a_start_for_other_costs_and_labels_is_made_feasible():
    X, label, cost, n_classes = problem(5)
    for solve, data in ((linear, X), (kernel, MatrixGram(X @ X.T))):
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
        linear(X, label, cost, n_classes, dual=np.zeros((3, 2)))


@pytest.mark.large
@pytest.mark.parametrize("scales", [(1.0, 1e3, 1.0, 1e-1), (1e4,) * 4, (1e-3,) * 4], ids=str)
def test_features_of_any_scale_are_solved_in_few_passes(scales):
    X, label, cost, n_classes = problem(7, n=25)
    X = X * scales + 3.0
    gram = X @ X.T
    exact = solve_exactly(gram + 1.0, label, cost, n_classes)
    for solve, data in ((linear, X), (kernel, MatrixGram(gram))):
        solution = solve(data, label, cost, n_classes, bias=1.0, tol=1e-3, max_iter=1000)
        assert solution.converged
        assert_allclose(solution.objective, exact.objective, rtol=1e-5)


@pytest.mark.large
def test_solvers_resume_to_the_same_bits(monkeypatch):
    set_options(monkeypatch, batch_samples=16, newton_passes=2)
    X, label, cost, n_classes = problem(6, n=60)
    whole = CrammerSingerProblem(label, cost, n_classes)
    for solver, data in ((linear_solver, X), (kernel_solver, MatrixGram(X @ X.T))):
        straight, stopped = (solver.State(whole, data) for _ in range(2))
        for _ in range(3):
            solver.advance(straight)
            solver.advance(stopped)
        resumed = solver.State(whole, data).resume(stopped.numbers())
        assert not resumed.finished
        for state in (straight, resumed):
            while not solver.advance(state):
                pass
        assert straight.iterations == resumed.iterations
        assert_array_equal(resumed.dual, straight.dual)

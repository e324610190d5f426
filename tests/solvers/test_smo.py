"""The hinge solver against the exact QP, and against itself where only the way differs."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.oracles.hinge import solve_exactly
from tests.oracles.strategies import hinge_problems, inseparable_hinge_problems

from widemargin.kernels import KernelFunction, KernelGram, MatrixGram
from widemargin.solvers import HingeProblem, NotSeparableError, smo, solve_hinge


@settings(max_examples=150)
@given(hinge_problems())
def test_objective_is_that_of_the_exact_qp(hinge):
    exact = solve_exactly(hinge)
    solution = solve_hinge(HingeProblem(*hinge), tol=1e-9)
    assert solution.converged
    assert abs(solution.dual_objective - exact.dual_objective) <= 1e-6 * exact.scale


@settings(max_examples=50)
@given(hinge_problems())
def test_dual_is_feasible_and_below_the_primal(hinge):
    solution = solve_hinge(HingeProblem(*hinge))
    alpha = hinge.sign * solution.dual
    assert (alpha >= 0).all()
    assert (alpha <= hinge.cost).all()
    if hinge.intercept:
        assert abs(solution.dual.sum()) <= 1e-9 * max(1.0, np.abs(solution.dual).max())
    scale = solve_exactly(hinge).scale
    assert solution.dual_objective <= solution.objective + 1e-9 * scale


@settings(max_examples=50)
@given(inseparable_hinge_problems())
def test_rows_that_cannot_be_separated_are_an_error(hinge):
    assume(hinge.gram.diagonal().max() > 0)
    with pytest.raises(NotSeparableError, match="finite cost"):
        solve_hinge(HingeProblem(*hinge))

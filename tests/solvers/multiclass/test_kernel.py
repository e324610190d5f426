"""Functions of several classes with a kernel reach the exact optimum."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.oracles.crammer_singer import solve_exactly
from tests.solvers.multiclass.cases import kernel, problems

from widemargin.kernels import MatrixGram


@settings(max_examples=40)
@given(problems, st.sampled_from([0.0, 1.0]), st.sampled_from([0.1, 1.0]), st.booleans())
def test_functions_with_a_kernel_reach_the_exact_optimum(numbers, bias, gamma, rising):
    X, label, cost, n_classes = numbers
    margin = 0.5 + label if rising else None
    gram = np.exp(-gamma * np.square(X[:, None] - X).sum(axis=2))
    solution = kernel(MatrixGram(gram), label, cost, n_classes, margin=margin, bias=bias)
    height = 1.0 if margin is None else margin
    exact = solve_exactly(gram + bias**2, label, cost, n_classes, height)
    assert_allclose(solution.objective, exact.objective, atol=1e-7 * cost.sum())
    assert_allclose(solution.dual_objective, exact.objective, atol=1e-7 * cost.sum())

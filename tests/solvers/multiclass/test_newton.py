"""Newton steps on the free variables of several classes."""

import numpy as np
from numpy.testing import assert_allclose
from tests.solvers.multiclass.cases import linear, problem

from widemargin.solvers.multiclass.newton import free_samples, newton_step
from widemargin.solvers.multiclass.problem import CrammerSingerProblem


def test_a_step_improves_the_dual_or_changes_nothing():
    X, label, cost, n_classes = problem(8, n=40)
    square, whole_problem = X @ X.T, CrammerSingerProblem(label, cost, n_classes)
    dual = linear(X, label, cost, n_classes, max_iter=3).dual
    rows = free_samples(whole_problem, dual)
    part, scores = dual[rows], (dual.T @ square)[:, rows]

    def value(part):
        whole = dual.copy()
        whole[rows] = part
        return whole[np.arange(40), label].sum() - 0.5 * np.sum(whole * (square @ whole))

    before, moved = value(part), part.copy()
    assert newton_step(whole_problem.subset(rows), square[np.ix_(rows, rows)], moved, scores)
    assert value(moved) > before
    assert_allclose(moved.sum(axis=1), 0.0, atol=1e-12)
    whole = dual.copy()
    whole[rows] = moved
    assert_allclose(scores, (whole.T @ square)[:, rows], atol=1e-10)
    # At zero every sample has one free class, the reference: there is nothing to exchange.
    assert len(free_samples(whole_problem, np.zeros((40, n_classes)))) == 0

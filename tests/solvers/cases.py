"""Paths through the hinge solver on small problems, and conditions of a solution."""

import contextlib

import numpy as np
import pytest

from widemargin._base.options import smo_options
from widemargin.solvers import solve_hinge

# The sizes from which the solver uses working sets and shrinks, lowered for small problems.
PATHS = {
    "whole": {},
    "whole and shrinking": {"shrink_size": 4},
    "batched": {"dense_size": 0, "working_set_size": 8, "slice_work": 100_000},
    "batched and shrinking": {
        "dense_size": 3,
        "working_set_size": 8,
        "shrink_size": 4,
        "slice_work": 100_000,
    },
}
MOST_SLICES = 5_000

each_path = pytest.mark.parametrize("path", PATHS)


@contextlib.contextmanager
def on_path(path, **sizes):
    """Make the solver take ``path``, with other ``sizes`` among its options."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (PATHS[path] | sizes).items():
            patch.setattr(smo_options, name, value)
        yield


def solve(problem, path="whole", **options):
    """Solve on a path; an error if that takes for ever."""
    slices = iter(range(MOST_SLICES))

    def report(state):
        if next(slices, None) is None:
            pytest.fail(f"no end after {MOST_SLICES} slices and {state.iterations} iterations")
        return False

    with on_path(path):
        return solve_hinge(problem, report=report, **options)


def exact_violation(problem, dual):
    """By how much a point violates the optimality conditions, in float64 from scratch."""
    residual = problem.linear() - problem.gram.block(slice(None), slice(None)) @ dual
    lower, upper = problem.bounds()
    highest = residual.max(initial=-np.inf, where=dual < upper)
    lowest = residual.min(initial=np.inf, where=dual > lower)
    return highest - lowest if problem.intercept else max(highest, -lowest, 0.0)


def exact_dual_objective(problem, dual):
    f = problem.gram.block(slice(None), slice(None)) @ dual
    return float(problem.linear() @ dual - 0.5 * dual @ f)


def assert_feasible(problem, dual):
    alpha = problem.sign * dual
    assert (alpha >= 0).all()
    assert (alpha <= problem.cost).all()
    if problem.intercept:
        assert abs(dual.sum()) <= 1e-9 * max(1.0, np.abs(dual).max())


def random_feasible(problem, seed):
    """A point anywhere in the box whose sum is 0 where it has to be."""
    generator = np.random.default_rng(seed)
    alpha = np.minimum(problem.cost, 10.0) * generator.random(problem.size)
    alpha[generator.random(problem.size) < 0.3] = 0.0
    if problem.intercept:
        positive = problem.sign > 0
        sums = alpha[positive].sum(), alpha[~positive].sum()
        for rows, total in zip((positive, ~positive), sums, strict=True):
            if total > 0.0:
                alpha[rows] *= min(sums) / total
    return problem.sign * alpha


def two_blobs(size, seed=0, columns=3):
    """Rows of two overlapping classes, and their signs."""
    generator = np.random.default_rng(seed)
    sign = np.where(np.arange(size) % 2, 1.0, -1.0)
    return generator.standard_normal((size, columns)) + 0.5 * sign[:, None], sign

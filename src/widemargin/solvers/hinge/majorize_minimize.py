"""Majorize-minimize: the hinge problem (see `problem`) by weighted least squares.

With r_i = margin_i - sign_i f(x_i) the hinge is (r_i + |r_i|) / 2, and |r| is below the parabola
(r^2 / omega + omega) / 2 that touches it at |r| = omega. So the objective is below

    1/2 ||f||^2  +  sum_i cost_i * (r_i / 2 + r_i^2 / (4 omega_i) + omega_i / 4)

whose minimum solves linear equations: with W = diag(cost / (2 omega)) and
t_i = sign_i (margin_i + omega_i),

    (I + Z' W Z) w = Z' W t        over features Z,     or
    (W^-1 + K) beta = t            over a Gram matrix,  f = K beta.

Setting omega = sqrt(r^2 + eta^2) at each solution decreases the objective monotonically. There is
no intercept. Stops on the duality gap at beta = W (t - f), clipped to its bounds.

Samples that end on the margin get weights without bound, so that rounding limits the precision of
beta; and they are known long before their beta is. So from time to time the samples near the margin
are assumed to be on it and the others at a bound, and K_FF beta_F = p_F - K_FB beta_B is solved.
This is the primal-dual active set method: beta may leave its bounds, and then all samples on the
wrong side change sets at once. `free_set_newton` stays feasible and cannot start from such a guess.

References
----------
M. Hintermueller, K. Ito, K. Kunisch: The primal-dual active set strategy as a semismooth Newton
method. SIAM Journal on Optimization 2002.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from widemargin._base.callbacks import run_in_slices
from widemargin._base.options import majorize_minimize_options as options
from widemargin._base.options import newton_options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.hinge.problem import HingeProblem, certify
from widemargin.solvers.solution import Report, Solution
from widemargin.solvers.stopping import rounding_floor


def majorize_minimize(problem: HingeProblem, report: Report = None, **parameters: Any) -> Solution:
    """Solve a hinge problem by majorize-minimize.

    Parameters
    ----------
    problem : HingeProblem
        Without intercept, with finite costs.
    report : callable, optional
        Called with the state after every linear system; True stops the solver.
    **parameters
        Those of `State`.

    Returns
    -------
    Solution
    """
    with single_threaded_blas():
        state = State(problem, **parameters)
        run_in_slices(advance, state, report)
        return state.solution


@dataclass
class State:
    """State of the solver, at zero.

    Parameters
    ----------
    problem : HingeProblem
        Without intercept, with finite costs.
    features : ndarray or CSR matrix of shape (n, d), optional
        Features of a linear kernel. With at most as many features as samples the equations are
        solved over the features, and the Gram matrix is not used.
    bias : float, default=0.0
        Value of the constant feature.
    gap_tol : float, default=1e-6
        Tolerance on the relative duality gap.
    max_iter : int, default=-1
        Largest number of linear systems; -1 for no limit.
    """

    problem: HingeProblem
    features: Any = None
    bias: float = 0.0
    gap_tol: float = 1e-6
    max_iter: int = -1
    next_active_set: int = options.first_active_set
    """Iteration at which the active set is tried next."""

    def __post_init__(self) -> None:
        problem, features = self.problem, self.features
        self.equations: FeatureEquations | GramEquations
        if features is None or features.shape[1] > features.shape[0]:
            self.equations = GramEquations(problem.gram.block(slice(None), slice(None)))
        else:
            self.equations = FeatureEquations(features, self.bias)
        self.scores = np.zeros(problem.size)
        # Typical margin, to which distances are relative.
        self.unit = float(np.abs(problem.margin).mean()) or 1.0
        self.smoothing = options.smoothing * self.unit
        # The solution with the smallest gap so far.
        self.solution = self.evaluate(np.zeros(problem.size), 0)

    @property
    def iterations(self) -> int:
        return self.solution.iterations

    @property
    def finished(self) -> bool:
        exhausted = 0 <= self.max_iter <= self.iterations
        smooth = self.smoothing >= options.smallest_smoothing * self.unit
        return self.solution.converged or exhausted or not smooth

    def evaluate(self, dual: np.ndarray, iterations: int) -> Solution:
        """Return the solution at a dual point."""
        problem = self.problem
        residual = problem.linear() - self.equations.values(dual)
        solution = certify(problem, dual, residual, iterations, False)
        # The gap may contain the rounding errors of the slacks.
        noise = rounding_floor(float(problem.cost @ np.abs(problem.margin)))
        converged = solution.gap <= self.gap_tol or solution.gap * solution.objective <= noise
        return replace(solution, converged=bool(converged))


def advance(state: State) -> bool:
    """Solve one linear system; return whether the solver has finished."""
    if state.finished:
        return True
    problem, before = state.problem, state.scores
    slack = problem.margin - problem.sign * before
    omega = np.sqrt(slack * slack + state.smoothing * state.smoothing)
    weight = 0.5 * problem.cost / omega
    target = problem.sign * (problem.margin + omega)
    state.scores = scores = state.equations.solve(weight, target)
    iterations = state.iterations + 1
    dual = np.clip(weight * (target - scores), *problem.bounds())
    # Weights near the margin are so large that rounding may make the newest point worse.
    best = min(state.solution, state.evaluate(dual, iterations), key=_gap)
    state.solution = replace(best, iterations=iterations)
    size = max(state.unit, np.abs(scores).max())
    stalled = np.abs(scores - before).max() <= options.stalled * size
    if not best.converged and (stalled or iterations == state.next_active_set):
        state.next_active_set = 2 * iterations
        state.solution = _try_active_sets(state)
    if stalled:
        state.smoothing *= 0.1
    return state.finished


def _try_active_sets(state: State) -> Solution:
    """Return the best of the solution and those with the samples near the margin on it.

    Samples whose beta leaves its bounds leave the margin and stay at that bound; samples at a bound
    that are on the wrong side of the margin are put on it.
    """
    problem, solution = state.problem, state.solution
    slack = problem.margin - problem.sign * state.scores
    cost, bounds = problem.cost, problem.bounds()
    for distance in options.distances:
        free, short = np.abs(slack) <= distance * state.unit, slack > 0.0
        for _ in range(options.margin_corrections):
            if np.count_nonzero(free) > newton_options.most_free:
                break
            alpha = np.where(short & ~free, cost, 0.0)
            dual, index = problem.sign * alpha, np.flatnonzero(free)
            rest = (problem.linear() - state.equations.values(dual))[index]
            dual[index] = np.linalg.lstsq(state.equations.block(index), rest, rcond=None)[0]
            candidate = state.evaluate(np.clip(dual, *bounds), solution.iterations)
            solution = min(solution, candidate, key=_gap)
            if solution.converged:
                return solution
            left = problem.sign * (problem.linear() - state.equations.values(dual))
            alpha = problem.sign * dual
            wrong = ~free & np.where(short, left < 0.0, left > 0.0)
            short = np.where(free, alpha >= cost, short)
            free = wrong | (free & (alpha > 0.0) & (alpha < cost))
    return solution


def _gap(solution: Solution) -> float:
    return solution.gap


class GramEquations:
    """The least-squares problem over a Gram matrix."""

    def __init__(self, gram: np.ndarray):
        self.gram = gram

    def solve(self, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the scores of the weighted least-squares solution."""
        root = np.sqrt(weight)
        system = root[:, np.newaxis] * self.gram * root
        system[np.diag_indices_from(system)] += 1.0
        return self.gram @ (root * cho_solve(cho_factor(system), root * target))

    def values(self, dual: np.ndarray) -> np.ndarray:
        """Return K dual."""
        return self.gram @ dual

    def block(self, index: np.ndarray) -> np.ndarray:
        """Return K between some samples."""
        return self.gram[np.ix_(index, index)]


class FeatureEquations:
    """The least-squares problem over features."""

    def __init__(self, features: Any, bias: float):
        if bias:
            column = np.full((features.shape[0], 1), bias)
            stack = sp.hstack if sp.issparse(features) else np.hstack
            constant = sp.csr_array(column) if sp.issparse(features) else column
            features = stack([features, constant])
        self.features = features.tocsr() if sp.issparse(features) else features

    def solve(self, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the scores of the weighted least-squares solution."""
        Z, column = self.features, weight[:, np.newaxis]
        system = _dense(Z.T @ (Z.multiply(column) if sp.issparse(Z) else column * Z))
        system[np.diag_indices_from(system)] += 1.0
        return Z @ cho_solve(cho_factor(system), Z.T @ (weight * target))

    def values(self, dual: np.ndarray) -> np.ndarray:
        """Return K dual."""
        return self.features @ (self.features.T @ dual)

    def block(self, index: np.ndarray) -> np.ndarray:
        """Return K between some samples."""
        return _dense(self.features[index] @ self.features[index].T)


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix

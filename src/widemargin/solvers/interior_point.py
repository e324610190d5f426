"""Mehrotra's predictor-corrector method: the parts that interior-point solvers share.

A quadratic program with inequalities has at its optimum pairs of a value v >= 0 (a slack, or the
distance to a bound) and a multiplier m >= 0 with v m = 0. Newton's method on the optimality
conditions follows the central path, where v m is the same small number for all pairs, as that
number goes to 0. With the current point strictly inside, every iteration

1. computes the *predictor*, the Newton direction to v m = 0, and its longest step inside;
2. derives from it how much the products can be reduced, which gives the target of the products
   (Mehrotra's rule: the share that the predictor leaves, to the third power);
3. computes the *corrector*, the direction to that target with the second-order term of the
   predictor, and moves almost to the boundary.

Both directions use one factorization. Some 10 to 50 iterations lead close to the optimum whatever
the conditioning. A solver provides the equations of its directions; see `hinge.hard_margin` and
`coupled.interior_point`.

References
----------
S. Mehrotra: On the implementation of a primal-dual interior point method. SIAM Journal on
Optimization 1992.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from widemargin._base.numeric import TINY
from widemargin._base.options import interior_point_options as options
from widemargin._base.threads import for_each

quiet = np.errstate(over="ignore", divide="ignore", invalid="ignore")
"""Decorator of functions that check their results: extreme samples may overflow in a step."""


def predictor_corrector(
    direction: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]],
    values: np.ndarray,
    multipliers: np.ndarray,
    count: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Compute one step of the method.

    Parameters
    ----------
    direction : callable
        ``direction(change)`` returns the Newton step of the unknowns, and steps dv and dm of values
        and multipliers with v dm + m dv = change.
    values, multipliers : ndarray
        Pairs v and m, arrays of the same shape; several kinds of pairs along the first axis.
    count : int
        Number of products v m that are not 0 by definition.

    Returns
    -------
    step, value_step, multiplier_step : ndarray
    length : float
        How much of the steps to take.
    """
    product = _total_product(values, multipliers)
    _, dv, dm = direction(-(multipliers * values))
    length = min(step_to_boundary(values, dv), step_to_boundary(multipliers, dm))
    ahead = _total_product(values + length * dv, multipliers + length * dm)
    target = (ahead / product) ** 3 * product / count
    step, dv, dm = direction(-(multipliers * values + dm * dv - target))
    length = min(step_to_boundary(values, dv), step_to_boundary(multipliers, dm))
    return step, dv, dm, options.step_share * length


@dataclass
class Progress:
    """The best point so far, and whether there is progress.

    Parameters
    ----------
    precision : float
        Distance from the optimum at which the solver stops.
    near : float
        Distance from which on a lack of progress means rounding errors.
    """

    precision: float
    near: float
    best: float = np.inf
    point: Any = None
    since_best: int = 0

    def update(self, distance: float, point: Any) -> bool:
        """Keep ``point`` if it is the best so far; return whether to stop."""
        if distance < self.best:
            self.best, self.point, self.since_best = distance, point, 0
        self.since_best += 1
        patience = options.stalled_near if self.best < self.near else options.stalled_far
        return distance < self.precision or self.since_best > patience


def step_to_boundary(values: np.ndarray, step: np.ndarray) -> float:
    """Return how much of the step, at most 1, keeps all values nonnegative."""
    falling = step < 0.0
    return min(1.0, float(np.min(-values[falling] / step[falling], initial=np.inf)))


def cholesky(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the Cholesky factor of a matrix, with a larger diagonal if it is singular to rounding.

    A larger diagonal shortens steps in the null space; it does not change where they lead. Raises
    LinAlgError if no addition to the diagonal suffices.
    """
    diagonal = matrix.diagonal().copy()
    for regularization in options.regularization:
        matrix[np.diag_indices(len(matrix))] = diagonal * (1.0 + regularization)
        try:
            return linalg.cho_factor(matrix, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
    raise linalg.LinAlgError


def scaled_least_squares(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the least-squares solution of minimum norm, in units in which the diagonal is 1."""
    root = np.sqrt(np.maximum(matrix.diagonal(), TINY))
    scaled = matrix / root[:, np.newaxis] / root
    return np.linalg.lstsq(scaled, right / root, rcond=options.rank_tol)[0] / root


def sum_over_chunks(term: Callable[[slice], np.ndarray], n: int) -> np.ndarray:
    """Return the sum of ``term(rows)`` over slices of n rows.

    The slices have a fixed size, so that the result is the same for any number of threads.
    """
    chunk = options.chunk
    terms = for_each(lambda first: term(slice(first, first + chunk)), range(0, max(n, 1), chunk))
    return sum(terms[1:], start=terms[0])


def _total_product(values: np.ndarray, multipliers: np.ndarray) -> float:
    pairs = zip(np.atleast_2d(multipliers), np.atleast_2d(values), strict=True)
    return sum(float(np.vdot(m, v)) for m, v in pairs)

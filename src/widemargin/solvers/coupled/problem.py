"""Two kernel expansions that are coupled sample by sample: SVM1+ and SVM-2K.

    min over s   1/2 g' K g + 1/2 h' M h - p' s
    subject to   lower <= s <= upper,   sum(g) = 0,   sum(h) = 0

Every variable s_v belongs to a sample and is of one of three kinds. A kind is a direction (u, w) of
the plane: the variable adds u s_v to the g of its sample and w s_v to its h, which starts from
``offset``. Any two of the directions span the plane, and ``relation`` expresses the third one by
them:

    sum_k relation_k (u_k, w_k) = 0

With f = K g and e = M h, the optimality conditions are those of a primal problem over the functions
F = f + c_1 and E = e + c_2, whose constants are the multipliers of the two sums.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from widemargin.kernels import Gram
from widemargin.solvers.solution import Solution


class Optimum(NamedTuple):
    """Point to which a method converged, and its functions.

    ``first`` and ``second`` are f and e at the samples, ``constants`` the multipliers of the two
    sums, ``weights`` the t of e = R t where the problem has a factor. ``optimal`` is whether the
    optimality conditions are satisfied to the precision of the method.
    """

    point: np.ndarray
    first: np.ndarray
    second: np.ndarray
    constants: np.ndarray
    weights: np.ndarray | None
    optimal: bool


@dataclass(frozen=True)
class CoupledProblem:
    """Data of the problem; variables are arrays of shape (groups, n).

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        Gram matrices K and M, positive semidefinite.
    kind : ndarray of shape (groups, n), int
        Kind of each variable.
    lower, upper, linear : ndarray of shape (groups, n)
        Bounds and p.
    directions : ndarray of shape (3, 2)
        (u, w) of the kinds.
    relation : ndarray of shape (3,)
    offset : ndarray of shape (n,)
        h at s = 0.
    start : ndarray of shape (groups, n)
        Point within the bounds, with both sums 0.
    primal : callable
        Returns the intercepts of both functions and the loss, given an `Optimum`.
    exchange : bool, default=False
        Whether the first two variables of a sample differ by (1, 0) or (-1, 0) and have lower bound
        0, so that they can be exchanged for each other at the same h.
    factor : ndarray of shape (n, r), optional
        R where M = R R' / penalty. With a small penalty, the weights t of e = R t are more accurate
        than h.
    penalty : float, default=1.0
    low_rank : bool, default=False
        Whether M is the matrix of a linear kernel of fewer features than samples. It selects the
        method.
    grams : tuple of two Gram, optional
        What K and M (times the penalty) are the matrices of, for objectives with more digits.
    """

    first: np.ndarray
    second: np.ndarray
    kind: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    linear: np.ndarray
    directions: np.ndarray
    relation: np.ndarray
    offset: np.ndarray
    start: np.ndarray
    primal: Callable[[Optimum], tuple[float, float, float]]
    exchange: bool = False
    factor: np.ndarray | None = None
    penalty: float = 1.0
    low_rank: bool = False
    grams: tuple[Gram, Gram] | None = None

    def expansions(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return g and h of a point."""
        u, w = np.moveaxis(self.directions[self.kind], -1, 0)
        return (u * point).sum(axis=0), self.offset + (w * point).sum(axis=0)


@dataclass(frozen=True, kw_only=True)
class CoupledSolution(Solution):
    """Solution with a second function, e(z) = sum_i second_dual_i m(z_i, z) + second_intercept.

    In SVM1+ it is the slack, and its intercept is large enough to make the slack feasible.

    Attributes
    ----------
    second_dual : ndarray of shape (n,)
    second_intercept : float
    second_values : ndarray of shape (n,)
        e at the samples.
    second_weights : ndarray of shape (r,) or None
        Weights of e in the columns of the factor of M, if the solution is exact.
    point : ndarray of shape (groups, n)
        Variables of the dual problem.
    """

    second_dual: np.ndarray
    second_intercept: float = 0.0
    second_values: np.ndarray
    second_weights: np.ndarray | None = None
    point: np.ndarray


def svm1plus_problem(
    first: np.ndarray,
    second: np.ndarray,
    sign: np.ndarray,
    cost: np.ndarray,
    penalty: float,
    *,
    factor: np.ndarray | None = None,
    low_rank: bool = False,
    start: np.ndarray | None = None,
    grams: tuple[Gram, Gram] | None = None,
) -> CoupledProblem:
    """Return SVM1+: the hinge loss with slack that is a function of the privileged features.

        min over f, b, e, rho   1/2 ||f||^2 + penalty/2 ||e||^2 + sum_i cost_i xi_i
        subject to              xi_i = e(z_i) + rho >= 0,   y_i (f(x_i) + b) >= 1 - xi_i

    Its dual, with g = y * alpha and h = alpha + beta - cost, over the matrices K and M / penalty:

        max over alpha, beta   sum(alpha) - 1/2 g' K g - 1/(2 penalty) h' M h
        subject to             alpha, beta >= 0,   sum(g) = 0,   sum(h) = 0

    alpha has the direction (y, 1) and beta (0, 1), related by (1, 1) + (-1, 1) = 2 (0, 1). An
    exchange of alpha for beta in one sample keeps its h. Then f = sum_i g_i k(x_i, .) and
    e = sum_i h_i m(z_i, .) / penalty.

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        K and M.
    sign : ndarray of shape (n,)
        y.
    cost : ndarray of shape (n,)
        Positive.
    penalty : float
        Positive.
    factor : ndarray of shape (n, r), optional
        R where M = R R'.
    low_rank : bool, default=False
        As in `CoupledProblem`.
    start : ndarray of shape (2, n), optional
        Feasible alpha and beta to start from.
    grams : tuple of two Gram, optional
        As in `CoupledProblem`.

    Returns
    -------
    CoupledProblem
    """

    def primal(optimum: Optimum) -> tuple[float, float, float]:
        """Return the intercept that permits the smallest rho, that rho, and the cost of slack.

        Every sample requires rho >= -e_i and rho >= 1 - y_i (f_i + b) - e_i.
        """
        missing = 1.0 - sign * optimum.first - optimum.second
        positive, negative = float(missing[sign > 0].max()), float(missing[sign < 0].max())
        rho = max(float(-optimum.second.min()), 0.5 * (positive + negative))
        return 0.5 * (positive - negative), rho, float(cost @ (optimum.second + rho))

    zeros, ones = np.zeros_like(cost), np.ones_like(cost)
    return CoupledProblem(
        first,
        second / penalty,
        kind=np.vstack([np.where(sign > 0, 0, 1), np.full(len(sign), 2)]),
        lower=np.vstack([zeros, zeros]),
        upper=np.full((2, len(sign)), np.inf),
        linear=np.vstack([ones, zeros]),
        directions=np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 1.0]]),
        relation=np.array([1.0, 1.0, -2.0]),
        offset=-cost,
        start=np.vstack([zeros, cost]) if start is None else start,
        primal=primal,
        exchange=True,
        factor=factor,
        penalty=penalty,
        low_rank=low_rank,
        grams=grams,
    )


def svm2k_problem(
    first: np.ndarray,
    second: np.ndarray,
    sign: np.ndarray,
    costs: np.ndarray,
    agreement: np.ndarray,
    epsilon: float,
    *,
    low_rank: bool = False,
    grams: tuple[Gram, Gram] | None = None,
) -> CoupledProblem:
    """Return SVM-2K: classifiers on two views of the samples, with a penalty on disagreement.

        min over f, b, e, c   1/2 ||f||^2 + 1/2 ||e||^2
                              + sum_i  first_cost_i max(0, 1 - y_i F_i)
                              + sum_i  second_cost_i max(0, 1 - y_i E_i)
                              + sum_i  agreement_i max(0, |F_i - E_i| - epsilon)

    where F_i = f(x_i) + b and E_i = e(z_i) + c. In the dual every sample has a variable for its
    margin in the first view with the direction (1, 0), one for its margin in the second with
    (0, 1), and two for the two sides of the disagreement with (-1, 1), related by
    (1, 0) - (0, 1) + (-1, 1) = 0. With epsilon 0 one variable serves both sides.

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        Gram matrices of the views.
    sign : ndarray of shape (n,)
        y.
    costs : ndarray of shape (2, n)
        Costs of the slack in each view.
    agreement : ndarray of shape (n,)
        Costs of disagreement, non-negative.
    epsilon : float
        Disagreement without cost.
    low_rank : bool, default=False
    grams : tuple of two Gram, optional
        As in `CoupledProblem`.

    Returns
    -------
    CoupledProblem
    """

    def primal(optimum: Optimum) -> tuple[float, float, float]:
        b, c = optimum.constants
        F, E = optimum.first + b, optimum.second + c
        slack = np.maximum(0.0, 1.0 - sign * np.vstack([F, E]))
        disagreement = np.maximum(0.0, np.abs(F - optimum.second - c) - epsilon)
        return float(b), float(c), float((costs * slack).sum() + agreement @ disagreement)

    ends, zeros = sign * costs, np.zeros(len(sign))
    kind, linear = [0, 1, 2], [sign, sign, zeros]
    lower, upper = [np.minimum(ends, 0.0), -agreement], [np.maximum(ends, 0.0), agreement]
    if epsilon > 0.0:
        kind, linear = [0, 1, 2, 2], [sign, sign, zeros - epsilon, zeros + epsilon]
        lower, upper = [lower[0], zeros, -agreement], [upper[0], agreement, zeros]
    return CoupledProblem(
        first,
        second,
        kind=np.tile(np.array(kind)[:, np.newaxis], len(sign)),
        lower=np.vstack(lower),
        upper=np.vstack(upper),
        linear=np.vstack(linear),
        directions=np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]),
        relation=np.array([1.0, -1.0, 1.0]),
        offset=zeros,
        start=np.zeros((len(kind), len(sign))),
        primal=primal,
        low_rank=low_rank,
        grams=grams,
    )

"""Two kernel expansions that are coupled sample by sample.

    min over s   1/2 g' K g + 1/2 h' M h - p' s
    subject to   lower <= s <= upper,   sum(g) = 0,   sum(h) = 0

Every variable s_v belongs to a sample and is of one of three kinds. A kind is a direction (u, w) of
the plane: the variable adds u s_v to the g of its sample and w s_v to its h, which starts from
``offset``. Any two of the directions span the plane, and ``relation`` expresses the third one by
them:

    sum_k relation_k (u_k, w_k) = 0

SVM1+ (`svm1plus`) and SVM-2K (`svm2k`) are this problem. With f = K g and e = M h, its optimality
conditions are those of a primal problem over the functions F = f + c_1 and E = e + c_2, whose
constants are the multipliers of the two sums.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class CoupledProblem:
    """Data of the problem; variables are arrays of shape (groups, n).

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        Gram matrices K and M.
    kind : ndarray of shape (groups, n), int
        Kind of each variable.
    lower, upper, linear : ndarray of shape (groups, n)
        Bounds and p.
    directions : ndarray of shape (3, 2)
        (u, w) of the kinds.
    relation : ndarray of shape (3,)
    offset : ndarray of shape (n,)
        h at s = 0.
    exchange : bool, default=False
        Whether the first two variables of a sample differ by (1, 0) or (-1, 0) and have lower bound
        0, so that they can be exchanged for each other at the same h.
    factor : ndarray of shape (n, r), optional
        R where M = R R' / penalty. With a small penalty, the weights t of e = R t are more accurate
        than h.
    penalty : float, default=1.0
    low_rank : bool, default=False
        Whether M is the matrix of a linear kernel of fewer features than samples.
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
    exchange: bool = False
    factor: np.ndarray | None = None
    penalty: float = 1.0
    low_rank: bool = False

    def expansions(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return g and h of a point."""
        u, w = np.moveaxis(self.directions[self.kind], -1, 0)
        return (u * point).sum(axis=0), self.offset + (w * point).sum(axis=0)


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
class CoupledSolution:
    """Result of the solver.

    Attributes
    ----------
    point : ndarray of shape (groups, n)
    g, h : ndarray of shape (n,)
    first, second : ndarray of shape (n,)
        f and e at the samples, without their constants.
    constants : ndarray of shape (2,)
        Multipliers of the two sums.
    weights : ndarray of shape (r,) or None
        Weights of e in the columns of the factor, if the solution is exact.
    iterations : int
    converged : bool
    """

    point: np.ndarray
    g: np.ndarray
    h: np.ndarray
    first: np.ndarray
    second: np.ndarray
    constants: np.ndarray
    weights: np.ndarray | None
    iterations: int
    converged: bool

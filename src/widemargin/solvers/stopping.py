"""When a solver stops, and when it passes on to another method.

**Tolerance.** A solver stops when the optimality conditions are violated by less than ``tol``, but
never tries to reach less than the rounding error of the quantities it compares (`rounding_floor`).

**Duality gap.** Where ``gap_tol`` is given the solver stops on the relative duality gap instead.
Computing the gap is expensive, so that it is computed only when a tolerance on the violation is
met: the solver starts at a loose one (`initial_tol`) and tightens it step by step until the gap is
small enough (`next_tol`).

**Change of method.** Updates of single variables or pairs are the fastest method on most problems,
and converge slowly on ill-conditioned ones, where a method whose work is known in advance is
better. The cheap method runs until it has done as much work as the other one will take
(`equivalent_updates`): together they take at most about twice the time of the better one.
"""

from widemargin._base.numeric import EPSILON
from widemargin._base.options import stopping_options as options


def rounding_floor(magnitude: float, factor: float = options.rounding) -> float:
    """Return the size below which a computed difference is rounding error.

    Parameters
    ----------
    magnitude : float
        Size of the sums that are compared.
    factor : float, optional
        Multiple of machine epsilon that errors of such sums reach.
    """
    return factor * EPSILON * float(magnitude)


def initial_tol(tol: float, gap_tol: float | None) -> float:
    """Return the tolerance to start with: a loose one where the gap decides."""
    return tol if gap_tol is None else max(tol, options.first_gap_tol)


def next_tol(tol: float, *, closed: bool, rounded: bool = False) -> float | None:
    """Return the tolerance to continue with after ``tol`` is met, or None to stop.

    Parameters
    ----------
    tol : float
        Tolerance that is met.
    closed : bool
        Whether the duality gap is small enough.
    rounded : bool, default=False
        Whether the violation is as small as rounding permits.
    """
    if closed or rounded or not tol > options.smallest_tol:
        return None
    return options.tightening * tol


def equivalent_updates(work: float, size: int) -> int:
    """Return how many pair updates take as long as another method.

    Parameters
    ----------
    work : float
        Multiplications of the other method, which works on whole matrices.
    size : int
        Number of variables.
    """
    return int(work / (options.update_work * size))

"""The one non-convergence warning, and the verbose line of every solver."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning


def report_convergence(
    estimator: Any, solutions: Sequence[Any], stopped: bool, stacklevel: int = 4
) -> None:
    """Print the solutions if the estimator is verbose; warn if some did not converge.

    ``stopped`` is whether a callback requested the end of the fit. The default ``stacklevel``
    points at the caller of a ``fit`` decorated with ``fit_context``.
    """
    for number, solution in enumerate(solutions if estimator.verbose else [], start=1):
        print(
            f"[{type(estimator).__name__}] subproblem {number} of {len(solutions)}: "
            f"{solution.iterations} iterations, objective {solution.objective:.6g}, relative gap "
            f"{solution.gap:.1e}"
        )
    warn_if_not_converged(solutions, estimator.max_iter, stopped, stacklevel + 1)


def warn_if_not_converged(
    solutions: Sequence[Any], max_iter: int, stopped: bool, stacklevel: int
) -> None:
    """Warn with the cause and the largest duality gap unless every solution has converged."""
    if not all(solution.converged for solution in solutions):
        warnings.warn(
            f"{early_stop_message(solutions, max_iter, stopped)} Largest relative duality gap: "
            f"{np.max([solution.gap for solution in solutions]):.1e}.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def early_stop_message(solutions: Sequence[Any], max_iter: int, stopped: bool) -> str:
    """Return why solvers stopped before they converged, and what to do about it."""
    if stopped:
        return "Solver terminated early (requested by a callback)."
    unfinished = [solution for solution in solutions if not solution.converged]
    more = ""
    if any(0 <= max_iter <= solution.iterations for solution in unfinished):
        cause, more = f"max_iter={max_iter}", ", or increasing max_iter"
    elif any(np.isnan(solution.gap) for solution in unfinished):
        cause = "limited by floating-point precision or an indefinite kernel"
    else:
        cause = "limited by floating-point precision"
    return (
        f"Solver terminated early ({cause}).  Consider pre-processing your data with "
        f"StandardScaler or MinMaxScaler{more}."
    )

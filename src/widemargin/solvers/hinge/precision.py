"""Float32 kernel values in the hinge solver: how wrong they are, and float64 where it matters.

Rows of the Gram matrix from a cache are float32, which halves memory and time. The residual
p - K beta computed from them has errors. Before a point is accepted, the residual of a sample of
the support vectors is compared with float64 values (`check_residual`). The certificate, that is
the intercept, the objective and the duality gap, is always computed from float64 values
(`recompute_residual`).
"""

from typing import Any

import numpy as np

from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import smo_options as options
from widemargin.solvers.hinge.problem import certify
from widemargin.solvers.hinge.shrinking import ActiveSet, subtract_rows


def check_residual(state: Any) -> bool:
    """Return whether the residual is accurate, after improving it where it is not.

    Errors that may affect the objective are corrected for all support vectors; where they reach
    the tolerance the solver continues in float64.

    Parameters
    ----------
    state : State
        State of the solver (see `smo`).
    """
    state.rechecks += 1
    active, linear = state.active, state.problem.linear()
    support = np.flatnonzero(active.dual)
    sample = support[:: max(1, len(support) // options.recheck_rows)]
    errors = np.abs(exact_residual(active, linear, sample) - active.residual[sample])
    error, size = float(errors.max(initial=0.0)), float(np.abs(active.dual).sum())
    value = float(np.sum(active.dual * (linear + active.residual)))
    # Whether errors of this size change the dual objective by next to nothing.
    allowed = options.objective_error * abs(value) * len(sample)
    if error <= options.float32_share * state.tol and float(errors.sum()) * size <= allowed:
        return True
    if error <= state.tol:
        active.residual[support] = exact_residual(active, linear, support)
        return state.violation < state.tol
    state.float64 = True
    active.gram.use_float64()
    active.residual[:] = linear
    active.update_residual(active.dual)
    return False


def recompute_residual(state: Any) -> None:
    """Recompute in float64 the entries of the residual that the certificate depends on.

    These are the support vectors and other samples that may violate the margin. Samples well beyond
    the margin and samples of cost 0 do not contribute.
    """
    if not state.uses_float32:
        return
    active, problem = state.active, state.problem
    support = np.flatnonzero(active.dual)
    exact = _support_residual(active, problem.linear(), support)
    error = float(np.abs(exact - active.residual[support]).max(initial=0.0))
    active.residual[support] = exact
    intercept = certify(problem, active.dual, active.residual, 0, False).intercept
    slack = problem.sign * (active.residual - intercept)
    matters = (active.dual == 0.0) & (problem.cost > 0.0)
    doubtful = np.flatnonzero(matters & (slack > -options.slack_error_factor * error))
    active.residual[doubtful] = exact_residual(active, problem.linear(), doubtful)


def exact_residual(active: ActiveSet, linear: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Return linear - K dual at some samples in float64."""
    support = np.flatnonzero(active.dual)
    dual, out = active.dual[support][:, np.newaxis], linear[samples]
    size = _block_size(support)
    for i in range(0, len(samples), size):
        block = active.gram.block(samples[i : i + size], support)
        out[i : i + size] -= tiled_multiply(block, dual)[:, 0]
    return out


def _support_residual(active: ActiveSet, linear: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Return the residual of the support vectors in float64, with each kernel value once."""
    dual, out = active.dual[support], linear[support]
    size = _block_size(support)
    for i in range(0, len(support), size):
        chunk, later = support[i : i + size], support[i + size :]
        for first, columns in ((i, chunk), (i + size, later)):
            block = active.gram.block(chunk, columns)
            weights = dual[first : first + len(columns), np.newaxis]
            out[i : i + size] -= tiled_multiply(block, weights)[:, 0]
        subtract_rows(block, np.arange(len(chunk)), dual[i : i + size], out[i + size :])
    return out


def _block_size(support: np.ndarray) -> int:
    return max(1, options.recheck_entries // max(1, len(support)))

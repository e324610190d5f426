"""Float32 kernel values in the hinge solver: how wrong they are, and float64 where it matters.

Rows of the Gram matrix from a cache are float32, which halves memory and time. The residual
p - K beta computed from them has errors. Before a point is accepted, the residual of a sample of
the support vectors is compared with float64 values (`residual_error`). The certificate, that is
the intercept, the objective and the duality gap, is always computed from float64 values
(`recompute_residual`).
"""

import numpy as np

from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import smo_options as options
from widemargin.solvers.hinge.problem import HingeProblem
from widemargin.solvers.hinge.shrinking import ActiveSet, subtract_rows
from widemargin.solvers.solution import certify


def residual_error(active: ActiveSet, linear: np.ndarray) -> tuple[float, bool]:
    """Compare the residual of a sample of the support vectors with float64 values.

    Returns
    -------
    error : float
        Largest absolute error.
    negligible : bool
        Whether errors of this size change the dual objective by next to nothing.
    """
    support = np.flatnonzero(active.dual)
    sample = support[:: max(1, len(support) // options.recheck_rows)]
    error = np.abs(exact_residual(active, linear, sample, support) - active.residual[sample])
    size = float(np.abs(active.dual).sum())
    value = float(np.sum(active.dual * (linear + active.residual)))
    allowed = options.objective_error * abs(value) * len(sample)
    return float(error.max(initial=0.0)), float(error.sum()) * size <= allowed


def recompute_residual(active: ActiveSet, problem: HingeProblem) -> None:
    """Recompute in float64 the entries of the residual that the certificate depends on.

    These are the support vectors and other samples that may violate the margin. Samples well beyond
    the margin and samples of cost 0 do not contribute.
    """
    support = np.flatnonzero(active.dual)
    exact = _support_residual(active, problem.linear(), support)
    error = float(np.abs(exact - active.residual[support]).max(initial=0.0))
    active.residual[support] = exact
    intercept = certify(problem, active.dual, active.residual, 0, False).intercept
    slack = problem.sign * (active.residual - intercept)
    matters = (active.dual == 0.0) & (problem.cost > 0.0)
    doubtful = np.flatnonzero(matters & (slack > -options.slack_error_factor * error))
    active.residual[doubtful] = exact_residual(active, problem.linear(), doubtful, support)


def exact_residual(
    active: ActiveSet, linear: np.ndarray, samples: np.ndarray, support: np.ndarray
) -> np.ndarray:
    """Return linear - K dual at some samples in float64."""
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
        part, later = support[i : i + size], support[i + size :]
        for first, columns in ((i, part), (i + size, later)):
            block = active.gram.block(part, columns)
            weights = dual[first : first + len(columns), np.newaxis]
            out[i : i + size] -= tiled_multiply(block, weights)[:, 0]
        subtract_rows(block, np.arange(len(part)), dual[i : i + size], out[i + size :])
    return out


def _block_size(support: np.ndarray) -> int:
    return max(1, options.recheck_entries // max(1, len(support)))

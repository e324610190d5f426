"""The gated student by its definition: degrees row by row, theta by an interior-point solver.

    min over theta, t   1/2 ||theta||^2  +  sum_i cost_i t_i
    subject to          t_i >= margin + z_i (<theta, phi_i> - S_i),  t_i >= 0

Nothing here knows the library's hinge problem.
"""

from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse


class Exact(NamedTuple):
    theta: np.ndarray
    objective: float


def degrees(scores, y, target, decay, classes):
    """The source's table of cases, one row at a time."""
    found = []
    column = list(classes).index(target)
    for row, label in zip(scores, y, strict=True):
        truth = 1 if label == target else -1
        best, second = np.sort(row)[::-1][:2]
        says_target = row[column] == best
        rival = second if says_target else best
        numerator = truth * (row[column] - rival)
        if numerator == 0:
            delta = 0.0
        elif row[column] == 0:
            delta = np.sign(numerator) * np.inf
        else:
            delta = numerator / abs(row[column])
        delta = min(1.0, max(-1.0, delta))
        found.append((1 + decay) / 2 - (1 - decay) / 2 * delta)
    return np.array(found)


def solve_exactly(phi, score, truth, margin, cost):
    """Theta and the objective, to about 1e-9 of it."""
    n, d = phi.shape
    above = np.hstack([truth[:, None] * phi, -np.eye(n)])
    constraints = sparse.csc_array(np.vstack([above, np.hstack([np.zeros((n, d)), -np.eye(n)])]))
    bounds = np.concatenate([truth * score - margin, np.zeros(n)])
    quadratic = sparse.diags_array(np.repeat([1.0, 0.0], [d, n])).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-13
    cones = [clarabel.NonnegativeConeT(2 * n)]
    linear = np.concatenate([np.zeros(d), cost])
    solution = clarabel.DefaultSolver(
        quadratic, linear, constraints, bounds, cones, settings
    ).solve()
    theta = np.array(solution.x)[:d]
    return Exact(theta, value_of(theta, phi, score, truth, margin, cost))


def value_of(theta, phi, score, truth, margin, cost):
    """The objective at theta."""
    slack = np.maximum(0.0, margin + truth * (phi @ theta - score))
    return 0.5 * theta @ theta + cost @ slack

"""Dual coordinate descent for logistic regression.

    min over w   1/2 ||w||^2  +  sum_i cost_i * log(1 + exp(-sign_i <w, z_i>))

over z_i = (x_i, bias), as in `linear_problem`. The dual, with w = sum_i sign_i alpha_i z_i:

    min over alpha   1/2 ||w||^2 + sum_i entropy(alpha_i) + entropy(cost_i - alpha_i)
    subject to       0 < alpha_i < cost_i

where entropy(a) = a log a. One dual variable at a time is set to its optimal value by Newton's
method, started on the side where it converges. All are strictly inside their bounds, so that none
are left out. The violation of a sample is the derivative of the dual with respect to its variable.

References
----------
H.-F. Yu, F.-L. Huang, C.-J. Lin: Dual coordinate descent methods for logistic regression and
maximum entropy models. Machine Learning 2011.
"""

import math

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import logistic_options as options
from widemargin.solvers.jit import add_row, dot_row, shuffle
from widemargin.solvers.states import CONVERGED, FINISHED, PASSES

_START, _STEPS, _SHARE = options.start_share, options.newton_steps, options.newton_share


@compiled
def logistic_steps(
    data, indices, indptr, bias, constants, dual, weights, order, counts, random, tol, max_iter
):
    """Pass over the samples until no violation exceeds ``tol``, or ``max_iter`` times.

    The columns of ``constants`` that are read are those of the hinge loss in
    `dual_coordinate_descent.State`: the squared norm of z_i, and sign_i * cost_i. ``dual`` and
    ``weights`` are overwritten.
    """
    n, constant = dual.shape[0], weights.shape[0] - 1
    lanes = np.empty(16)
    weights[:] = 0.0
    for i in range(n):
        dual[i] = _START * abs(constants[i, 3])
        change = math.copysign(dual[i], constants[i, 3])
        add_row(data, indices, indptr, i, change, weights)
        weights[constant] += change * bias
    while counts[PASSES] < max_iter:
        counts[PASSES] += 1
        shuffle(order, n, random)
        worst = 0.0
        for position in range(n):
            i = order[position]
            sign, cost = math.copysign(1.0, constants[i, 3]), abs(constants[i, 3])
            score = bias * weights[constant] + dot_row(data, indices, indptr, i, weights, lanes)
            alpha = dual[i]
            violation = abs(sign * score + math.log(alpha / (cost - alpha)))
            worst = max(worst, violation)
            if violation > _SHARE * tol:
                dual[i] = _optimum(alpha, sign * score, constants[i, 1], cost, _SHARE * tol)
                change = sign * (dual[i] - alpha)
                add_row(data, indices, indptr, i, change, weights)
                weights[constant] += change * bias
        if worst <= tol:
            counts[FINISHED] = counts[CONVERGED] = 1
            return


@compiled
def _optimum(alpha, margin, norm, cost, tol):
    """Return the z that minimizes z log z + (c - z) log(c - z) + norm/2 (z - alpha)^2 + margin z.

    The function is the same in c - z with the opposite margin; Newton's method converges in that
    variable whose optimum is below c / 2.
    """
    mirrored = 0.5 * norm * (cost - 2.0 * alpha) + margin < 0.0
    start = cost - alpha if mirrored else alpha
    slope = -margin if mirrored else margin
    z = 0.1 * start if start > 0.5 * cost else start
    for _ in range(_STEPS):
        gradient = norm * (z - start) + slope + math.log(z / (cost - z))
        if abs(gradient) <= tol:
            break
        step = z - gradient / (norm + cost / (cost - z) / z)
        z = 0.1 * z if step <= 0.0 else min(step, 0.5 * (z + cost))
    # Both sides stay positive: their logarithms are taken in the next pass.
    z = max(z, _START * cost * 1e-6)
    return cost - z if mirrored else z

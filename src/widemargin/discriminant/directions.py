"""Fisher's directions, by closed form, singular vectors and the fixed point of the trace ratio."""

import numpy as np
from scipy.linalg import eigh, qr, svd

from widemargin.discriminant.base import log_of
from widemargin.discriminant.covariance import whitening
from widemargin.discriminant.namespaces import to_numpy
from widemargin.discriminant.statistics import ClassStatistics, dense_rows, rounding_of

_TRACE_RATIO_STEPS = 100

# Means whose distances differ by less than this part of them are equally far out.
_TIE = 1e-6

# Sum of inverse eigenvalues of the correlations from which on they are computed twice.
_ROUGH = 1e6


def fisher(factor, priors, means, tol, components):
    """Directions and Bayes' rule in the coordinates in which the covariance is the identity.

    There Bayes' rule is the nearest mean but for the priors, and only the differences between the
    means matter, which span the directions.
    """
    origin = priors @ means
    centred = (means - origin) @ factor
    if len(means) == 2:
        # The scatter between two classes has rank one: Fisher's closed form.
        gap = centred[1] - centred[0]
        length = np.linalg.norm(gap)
        singular = np.sqrt(priors[:1] * priors[1:]) * length
        axes = gap[np.newaxis] / (length or 1.0)
    else:
        spread = np.sqrt(priors)[:, np.newaxis] * centred
        _, singular, axes = svd(spread, full_matrices=False, check_finite=False)
    rank = int((singular > tol * singular[:1].sum()).sum())
    scalings = facing(factor @ axes[:rank].T, centred @ axes[:rank].T)
    inner = (means - origin) @ scalings
    coef = inner @ scalings.T
    power = singular**2
    return {
        "coef_": coef,
        "intercept_": log_of(priors) - 0.5 * (inner**2).sum(axis=1) - coef @ origin,
        "scalings_": scalings,
        "xbar_": origin,
        "explained_variance_ratio_": (power / (power.sum() or 1.0))[:components],
        "within_rank_": factor.shape[1],
        "between_rank_": rank,
        "objective_": float(power[:components].sum()),
        "n_iter_": 1,
    }


def trace_ratio(covariance, factor, priors, means, learned, components):
    """Orthonormal directions of the largest ratio of the traces between and within classes.

    They are the fixed point of

        W = the leading eigenvectors of Sb - ratio Sw,    ratio = tr(W'Sb W) / tr(W'Sw W)

    which starts at the directions of the eigenproblem and never goes down (Wang, Yan, Xu, Tang and
    Huang, 2007). They stay in the directions in which rows vary, and come in the order of the
    scatter between classes along them.
    """
    if not learned["between_rank_"]:
        return {}
    basis, _ = qr(factor, mode="economic")
    spread = np.sqrt(priors)[:, np.newaxis] * (means - priors @ means) @ basis
    between, within = spread.T @ spread, basis.T @ covariance @ basis
    count = min(components, len(within))
    leading = (len(within) - count, len(within) - 1)
    axes, _ = qr(basis.T @ learned["scalings_"][:, :count], mode="economic")
    ratio, steps = _ratio(axes, between, within), 0
    while steps < _TRACE_RATIO_STEPS:
        steps += 1
        _, proposed = eigh(between - ratio * within, subset_by_index=leading)
        reached = _ratio(proposed, between, within)
        if reached <= ratio:
            break
        axes, ratio = proposed, reached
    power, turn = eigh(axes.T @ between @ axes)
    directions = basis @ (axes @ turn[:, ::-1])
    return {
        "scalings_": facing(directions, means @ directions),
        "explained_variance_ratio_": power[::-1] / (power.sum() or 1.0),
        "objective_": float(ratio),
        "n_iter_": steps,
    }


def _ratio(axes, between, within):
    return (axes * (between @ axes)).sum() / (axes * (within @ axes)).sum()


def whitening_of_rows(X, codes, weight, statistics, tol):
    """What `whitening` gives for the covariance of rows, from the rows: without squaring them."""
    centred = X - statistics.origin
    centred -= statistics.shift[codes]
    total = len(codes) if weight is None else weight.sum()
    if weight is not None:
        centred *= np.sqrt(weight)[:, np.newaxis]
    scale = np.sqrt(np.einsum("ij,ij->j", centred, centred) / total)
    flat = scale <= rounding_of(statistics.mean, len(codes))
    centred[:, flat], scale[flat] = 0.0, 1.0
    centred /= scale * np.sqrt(total)
    _, singular, axes = svd(centred, full_matrices=False, overwrite_a=True, check_finite=False)
    kept = singular > tol
    return (axes[kept] / scale).T / singular[kept]


def loses_digits(covariance, factor):
    """Whether the whitening of a covariance is too rough, because squares lose half of the digits.

    The errors of the inverse are about the sum of the inverse eigenvalues, in standard units, times
    the rounding error.
    """
    return covariance.diagonal() @ (factor**2).sum(axis=1) > _ROUGH


def sharpened(factor, X, codes, weight, statistics):
    """The whitening, made precise by a second look at the rows through the first one.

    There the covariance is nearly the identity, and what it is short of it can be told to all
    digits (as in the twice repeated Cholesky factorisation of Yamamoto, Nakatsukasa, Yanagisawa and
    Fukaya, 2015).
    """
    seen = ClassStatistics(len(statistics.count), factor.shape[1])
    seen.update(_Seen(to_numpy(X), statistics.origin, factor), codes, weight)
    return factor @ whitening(seen.pooled_scatter() / seen.weight.sum(), 0.0)


class _Seen:
    """Rows that are projected chunk by chunk, when they are asked for."""

    def __init__(self, X, origin, factor):
        self.X, self.origin, self.factor = X, origin, factor
        self.shape = (X.shape[0], factor.shape[1])

    def __getitem__(self, index):
        return (dense_rows(self.X[index]) - self.origin) @ self.factor


def facing(directions, means):
    """The directions turned to the class whose mean is farthest out: no sign is an accident.

    Of classes equally far out the last one counts: of two classes always the second.

    Parameters
    ----------
    directions : ndarray of shape (n, n_directions)
    means : ndarray of shape (n_classes, n_directions)
        Class means along them.
    """
    spread = means - means.mean(axis=0)
    distance = np.abs(spread)
    farthest = distance >= (1.0 - _TIE) * distance.max(axis=0)
    last = len(means) - 1 - farthest[::-1].argmax(axis=0)
    return directions * np.where(spread[last, np.arange(spread.shape[1])] < 0, -1.0, 1.0)

"""Fisher's directions: closed form, singular vectors, and the fixed point of the trace ratio."""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, qr, svd

from widemargin._base.options import discriminant_options as options
from widemargin.discriminant.covariance import whitening
from widemargin.discriminant.namespaces import to_numpy
from widemargin.discriminant.statistics import ClassStatistics, as_dense, rounding_error


class DirectionProblem(NamedTuple):
    """Class means and all else that determines the directions, relative to an origin.

    Attributes
    ----------
    statistics : ClassStatistics
    priors : ndarray of shape (n_classes,)
    means : ndarray of shape (n_classes, n_features)
    components : int
        Number of directions.
    tol : float
        Directions that separate the classes by at most this share of the best one have no rank.
    samples : tuple or None
        Samples, class indices and weights, where the statistics are not sufficient.
    """

    statistics: ClassStatistics
    priors: np.ndarray
    means: np.ndarray
    components: int
    tol: float
    samples: Any

    @property
    def centered(self) -> np.ndarray:
        """Class means minus their mean."""
        return self.means - self.priors @ self.means

    def attributes(self, factor: np.ndarray, scalings: np.ndarray, power: np.ndarray) -> dict:
        """Return the fitted attributes of directions with eigenvalues ``power``."""
        return {
            "scalings_": scalings,
            "explained_variance_ratio_": (power / (power.sum() or 1.0))[: self.components],
            "within_rank_": factor.shape[1],
            "between_rank_": self.rank(power),
            "objective_": float(power[: self.components].sum()),
        }

    def rank(self, power: np.ndarray) -> int:
        """Return the number of directions that separate classes."""
        return int((power > self.tol**2 * power[:1].sum()).sum())


def fisher_directions(problem: DirectionProblem, factor: np.ndarray) -> dict[str, Any]:
    """Return directions as fitted attributes, from a whitening ``factor``.

    In whitened coordinates Bayes' rule is the nearest mean, up to the priors, and depends only on
    the differences between the means, which span the directions.
    """
    priors, centered = problem.priors, problem.centered @ factor
    if len(priors) == 2:
        # The scatter between two classes has rank one: Fisher's closed form.
        gap = centered[1] - centered[0]
        length = np.linalg.norm(gap)
        singular = np.sqrt(priors[:1] * priors[1:]) * length
        axes = gap[np.newaxis] / (length or 1.0)
    else:
        spread = np.sqrt(priors)[:, np.newaxis] * centered
        _, singular, axes = svd(spread, full_matrices=False, check_finite=False)
    power = singular**2
    axes = axes[: problem.rank(power)].T
    scalings = orient(factor @ axes, centered @ axes)
    return problem.attributes(factor, scalings, power) | {"xbar_": problem.priors @ problem.means}


def trace_ratio_directions(
    problem: DirectionProblem, covariance: np.ndarray, factor: np.ndarray, fitted: dict[str, Any]
) -> dict[str, Any]:
    """Return orthonormal directions with the largest ratio of the traces between and within.

    They are the fixed point of

        W = the leading eigenvectors of Sb - ratio Sw,    ratio = tr(W'Sb W) / tr(W'Sw W)

    which starts from the directions of the eigenproblem and never decreases (Wang, Yan, Xu, Tang
    and Huang, 2007). They lie in the space in which samples vary, and are sorted by the scatter
    between classes along them.
    """
    if not fitted["between_rank_"]:
        return {}
    basis, _ = qr(factor, mode="economic")
    spread = np.sqrt(problem.priors)[:, np.newaxis] * problem.centered @ basis
    between, within = spread.T @ spread, basis.T @ covariance @ basis
    count = min(problem.components, len(within))
    leading = (len(within) - count, len(within) - 1)
    axes, _ = qr(basis.T @ fitted["scalings_"][:, :count], mode="economic")
    ratio, steps = _ratio(axes, between, within), 0
    while steps < options.trace_ratio_steps:
        steps += 1
        _, proposed = eigh(between - ratio * within, subset_by_index=leading)
        reached = _ratio(proposed, between, within)
        if reached <= ratio:
            break
        axes, ratio = proposed, reached
    power, rotation = eigh(axes.T @ between @ axes)
    directions = basis @ (axes @ rotation[:, ::-1])
    return {
        "scalings_": orient(directions, problem.means @ directions),
        "explained_variance_ratio_": power[::-1] / (power.sum() or 1.0),
        "objective_": float(ratio),
        "n_iter_": steps,
    }


def _ratio(axes: np.ndarray, between: np.ndarray, within: np.ndarray) -> float:
    return float((axes * (between @ axes)).sum() / (axes * (within @ axes)).sum())


def whitening_of_samples(problem: DirectionProblem) -> np.ndarray:
    """Return the `whitening` of the covariance of samples by their SVD, without squaring them."""
    statistics, (X, codes, weight) = problem.statistics, problem.samples
    centered = X - statistics.origin
    centered -= statistics.shift[codes]
    total = len(codes) if weight is None else weight.sum()
    if weight is not None:
        centered *= np.sqrt(weight)[:, np.newaxis]
    scale = np.sqrt(np.einsum("ij,ij->j", centered, centered) / total)
    flat = scale <= rounding_error(statistics.mean, len(codes))
    centered[:, flat], scale[flat] = 0.0, 1.0
    centered /= scale * np.sqrt(total)
    _, singular, axes = svd(centered, full_matrices=False, overwrite_a=True, check_finite=False)
    retained = singular > problem.tol
    return (axes[retained] / scale).T / singular[retained]


def is_ill_conditioned(covariance: np.ndarray, factor: np.ndarray) -> bool:
    """Return whether the whitening of a covariance has too few digits, because squares lose half.

    The error of the inverse is about the sum of the inverse eigenvalues, for standardized features,
    times the rounding error.
    """
    return bool(covariance.diagonal() @ (factor**2).sum(axis=1) > options.ill_conditioned)


def refine_whitening(problem: DirectionProblem, factor: np.ndarray) -> np.ndarray:
    """Refine a whitening by a second pass over the samples, in whitened coordinates.

    There the covariance is nearly the identity, and its difference from it is accurate to all
    digits (as in the repeated Cholesky factorization of Yamamoto, Nakatsukasa, Yanagisawa and
    Fukaya, 2015).
    """
    statistics, (X, codes, weight) = problem.statistics, problem.samples
    projected = ClassStatistics(len(statistics.count), factor.shape[1])
    projected.update(_ProjectedSamples(to_numpy(X), statistics.origin, factor), codes, weight)
    return factor @ whitening(projected.pooled_scatter() / projected.weight.sum(), 0.0)


class _ProjectedSamples:
    """Samples that are projected chunk by chunk when they are indexed."""

    def __init__(self, X: Any, origin: np.ndarray, factor: np.ndarray) -> None:
        self.X, self.origin, self.factor = X, origin, factor
        self.shape = (X.shape[0], factor.shape[1])

    def __getitem__(self, index: Any) -> np.ndarray:
        return (as_dense(self.X[index]) - self.origin) @ self.factor


def orient(directions: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the directions with reproducible signs.

    The class whose mean is farthest from the center is on the positive side; of classes equally
    far, the last one, so that of two classes it is always the second.

    Parameters
    ----------
    directions : ndarray of shape (n, n_directions)
        Directions.
    means : ndarray of shape (n_classes, n_directions)
        Class means along the directions.
    """
    spread = means - means.mean(axis=0)
    distance = np.abs(spread)
    farthest = distance >= (1.0 - options.tied_distances) * distance.max(axis=0)
    last = len(means) - 1 - farthest[::-1].argmax(axis=0)
    return directions * np.where(spread[last, np.arange(spread.shape[1])] < 0, -1.0, 1.0)

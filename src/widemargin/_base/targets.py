"""Targets: encoded class labels, and the weight, margin and cost of every sample.

The cost of a sample is C times the weight of its class times its own weight. A rare class can be
favored by a larger weight, so that its errors cost more, or by a larger margin, so that the
decision boundary stays further away from it. Both are functions of the class counts n_j, in which
a sample of weight k counts as k samples.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import column_or_1d

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import check_sample_weight, naming
from widemargin._base.validation import (
    LARGEST_VALUE,
    check_class_labels,
    check_several_classes,
    validate_weights,
)


@dataclass(frozen=True)
class Targets:
    """Encoded class labels with the weights and margins of samples and classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n_samples,)
        Index of the class of each sample.
    weight : ndarray of shape (n_samples,) or None
        Positive sample weights, if there are any.
    class_weight : ndarray of shape (n_classes,)
    class_margin : ndarray of shape (n_classes,)
    """

    classes: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None
    class_weight: np.ndarray
    class_margin: np.ndarray

    def costs(self, C: float) -> np.ndarray:
        """Return C times the weight of the class of each sample times its own weight."""
        if np.isinf(C) and not self.class_weight.all():
            raise ValueError(
                "class_weight must be greater than 0 for every class if C is infinite. Use a "
                "finite C, or leave samples out by a sample_weight of 0."
            )
        with np.errstate(over="ignore"):
            costs = C * self.class_weight[self.codes]
            costs = costs if self.weight is None else costs * self.weight
        check_costs(costs, C)
        return costs

    def margins(self) -> np.ndarray:
        """Return the margin required of each sample."""
        return self.class_margin[self.codes]

    def reordered(self, order: Any) -> Self:
        """Return the targets of the samples ``order``."""
        weight = None if self.weight is None else self.weight[order]
        return replace(self, codes=self.codes[order], weight=weight)


def check_costs(costs: np.ndarray, C: float) -> None:
    """Raise a ValueError if the costs of samples are so large that their squares overflow."""
    if np.isfinite(C) and costs.max(initial=0.0) > LARGEST_VALUE:
        raise ValueError(
            f"C * class_weight * sample_weight must be at most {LARGEST_VALUE:g}, got "
            f"{costs.max():.3g} with C={C:g}. Use smaller weights or a smaller C, or C=np.inf for "
            "a hard margin where it is supported."
        )


def encode_targets(
    y: np.ndarray, sample_weight: Any, class_weight: Any, class_margin: Any = None
) -> tuple[np.ndarray | slice, Targets]:
    """Return the samples of positive weight and their targets."""
    positive, weight = validate_weights(sample_weight, y)
    classes, codes = np.unique(y[positive], return_inverse=True)
    check_several_classes(len(classes))
    weights = class_weights(class_weight, classes, y[positive], weight)
    margins = class_margins(class_margin, classes, y[positive], weight)
    return positive, Targets(classes, codes, weight, weights, margins)


@shared_docs
def effective_class_weight(
    y: ArrayLike, *, beta: float = 0.999, sample_weight: ArrayLike | None = None
) -> dict[Any, float]:
    r"""Compute class weights from effective numbers of samples, for `class_weight`.

    Samples of a class overlap: n of them are worth :math:`(1 - \beta^n) / (1 - \beta)` distinct
    ones, their effective number. A class is weighted inversely to it,

    .. math::

        w_j \propto \frac{1 - \beta}{1 - \beta^{n_j}}, \qquad \text{with mean } 1

    which lies between equal weights (beta = 0) and "balanced" ones (beta near 1).
    ``class_weight="effective"`` uses the default beta.

    Parameters
    ----------
    <<y>>
    beta : float, default=0.999
        Overlap of samples. At least 0 and less than 1.
    <<counting_weight>>

    Returns
    -------
    class_weight : dict
        Weight of each class.

    References
    ----------
    Y. Cui, M. Jia, T.-Y. Lin, Y. Song and S. Belongie, Class-Balanced Loss Based on Effective
    Number of Samples, CVPR 2019.

    Examples
    --------
    >>> from widemargin import effective_class_weight
    >>> weights = effective_class_weight(["no"] * 900 + ["yes"] * 100)
    >>> {name: round(weight, 2) for name, weight in weights.items()}
    {'no': 0.28, 'yes': 1.72}
    """
    if not 0.0 <= beta < 1.0:
        raise ValueError(f"beta must be at least 0 and less than 1, got {beta!r}.")
    classes, counts = _class_counts(y, sample_weight)
    return dict(zip(classes.tolist(), _effective(counts, beta).tolist(), strict=True))


@shared_docs
def ldam_class_margin(
    y: ArrayLike, *, largest: float = 1.0, sample_weight: ArrayLike | None = None
) -> dict[Any, float]:
    r"""Compute label-distribution-aware margins, for `class_margin`.

    The rarer a class, the larger its margin:

    .. math::

        m_j = m_{\max} \left( \frac{n_{\min}}{n_j} \right)^{1/4}

    ``class_margin="ldam"`` uses the default largest margin.

    Parameters
    ----------
    <<y>>
    largest : float, default=1.0
        Margin of the rarest class.
    <<counting_weight>>

    Returns
    -------
    class_margin : dict
        Margin of each class.

    References
    ----------
    K. Cao, C. Wei, A. Gaidon, N. Arechiga and T. Ma, Learning Imbalanced Datasets with
    Label-Distribution-Aware Margin Loss, NeurIPS 2019.

    Examples
    --------
    >>> from widemargin import ldam_class_margin
    >>> ldam_class_margin(["no"] * 1600 + ["yes"] * 100)
    {'no': 0.5, 'yes': 1.0}
    """
    if not 0.0 < largest < np.inf:
        raise ValueError(f"largest must be a number greater than 0, got {largest!r}.")
    classes, counts = _class_counts(y, sample_weight)
    return dict(zip(classes.tolist(), (largest * _ldam(counts)).tolist(), strict=True))


def class_weights(
    class_weight: Any, classes: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the weight of each class, in the order of ``classes``.

    Parameters
    ----------
    class_weight : dict, "balanced", "effective" or None
    classes : ndarray of shape (n_classes,)
    y : ndarray of shape (n_samples,)
        Labels.
    sample_weight : ndarray of shape (n_samples,), optional
        A sample of weight k counts as k samples.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "effective":
        present, counts = _class_counts(y, sample_weight)
        return _effective(counts)[np.searchsorted(present, classes)]
    with naming("class_weight"):
        weights = compute_class_weight(
            class_weight, classes=classes, y=y, sample_weight=sample_weight
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"class_weight must contain finite, non-negative numbers, got {class_weight}."
        )
    return weights


def class_margins(
    class_margin: Any, classes: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the margin of each class, in the order of ``classes``.

    ``class_margin`` is a dict, in which classes that are missing have margin 1, "ldam" or None. The
    other parameters are those of `class_weights`.
    """
    if class_margin is None:
        return np.ones(len(classes))
    if isinstance(class_margin, str):
        present, counts = _class_counts(y, sample_weight)
        return _ldam(counts)[np.searchsorted(present, classes)]
    names = classes.tolist()
    unknown = [name for name in class_margin if name not in names]
    if unknown:
        raise ValueError(f"The keys of class_margin must be classes of y ({names}), got {unknown}.")
    with naming("class_margin"):
        margins = np.array([class_margin.get(name, 1.0) for name in names], dtype=np.float64)
    if not (np.isfinite(margins) & (margins > 0)).all():
        raise ValueError(
            f"class_margin must contain finite numbers greater than 0, got {class_margin}."
        )
    return margins


def _class_counts(y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """The classes of samples of positive weight, and the sums of their weights."""
    labels: np.ndarray = column_or_1d(y)
    check_class_labels(labels)
    if not len(labels):
        raise ValueError("y must contain class labels, got none.")
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, labels, ensure_non_negative=True)
        labels, weight = labels[weight > 0], weight[weight > 0]
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, np.bincount(codes, weights=weight).astype(np.float64)


def _effective(counts: np.ndarray, beta: float = 0.999) -> np.ndarray:
    weights = 1.0 / (1.0 - beta**counts)
    return weights / weights.mean()


def _ldam(counts: np.ndarray) -> np.ndarray:
    return (counts.min() / counts) ** 0.25

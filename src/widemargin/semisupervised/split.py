"""Split of the labeled samples into parts for training, validation and calibration."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from widemargin._base.options import preference_options
from widemargin.semisupervised.targets import is_missing

NO_SAMPLES = np.empty(0, dtype=np.intp)  # an empty index, not a tuning constant


class LabelSplit(NamedTuple):
    """Indices of the labeled samples for each purpose.

    Attributes
    ----------
    train : ndarray
        Samples to train on.
    validation : ndarray
        Samples that the thresholds and the best round are chosen on.
    calibration : ndarray
        Samples for the guarantee; empty without one.
    folds : tuple of ndarray
        If not empty, the training samples are the validation samples too, and the samples of each
        fold are scored by a model that is trained on the others.
    """

    train: np.ndarray
    validation: np.ndarray
    calibration: np.ndarray
    folds: tuple[np.ndarray, ...] = ()


def validate_groups(groups: Any, n_samples: int, used: np.ndarray) -> np.ndarray:
    """Return the number of the group of each sample that is used, by index."""
    if np.shape(groups) != (n_samples,):
        raise ValueError(
            f"groups must contain the group of each of the {n_samples} samples in X, got shape "
            f"{np.shape(groups)}."
        )
    labels = np.asarray(groups)[used]
    missing = sum(is_missing(label) for label in labels)
    if missing:
        raise ValueError(
            f"groups must not contain missing values for labeled samples, got {missing} of them. "
            "Give samples that belong to no group a group of their own each."
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        types = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise ValueError(
            f"groups must be of one type, got {types}. Use strings or numbers only."
        ) from error


NO_SPLIT = LabelSplit(NO_SAMPLES, NO_SAMPLES, NO_SAMPLES)


def split_labels(
    y: np.ndarray, method: str, calibrate: bool, groups: np.ndarray | None, rng: Any
) -> LabelSplit:
    """Split labeled samples at random.

    Half of them are calibration samples if there is to be a guarantee. They are drawn without
    regard to the classes: a stratified part would not be a sample of independent draws. Of each
    group only one sample is used for calibration, and no group is in two parts.

    Parameters
    ----------
    y : ndarray of shape (n_labeled,)
    method : {'cross', 'holdout', 'resubstitution'}
    calibrate : bool
        Whether there are calibration samples.
    groups : ndarray of shape (n_labeled,) or None
        Samples of the same group are not independent.
    rng : RandomState
    """
    units = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    rest, calibration = np.arange(len(y)), NO_SAMPLES
    if calibrate:
        n_units = int(units.max()) + 1
        chosen = np.isin(units, rng.permutation(n_units)[: n_units // 2])
        rest, calibration = np.flatnonzero(~chosen), rng.permutation(np.flatnonzero(chosen))
        calibration = np.sort(calibration[np.unique(units[calibration], return_index=True)[1]])
        present = np.unique(y[calibration])
        if groups is not None and len(present) < 2:
            raise ValueError(
                "groups must leave calibration samples of both classes, one for each of "
                f"{n_units // 2} groups, got the classes {present.tolist()}. Label more groups."
            )
        _check_count(y, calibration, 1, method, "calibration")
    if method == "resubstitution":
        return LabelSplit(rest, rest, calibration)
    fewest = _check_count(y, rest, 2, method, "training and validation")
    n_units = len(np.unique(units[rest]))
    if n_units < 2:
        raise ValueError(
            f"groups must leave two groups for training and validation, got {n_units}. Label more "
            "groups."
        )
    n_folds = min(preference_options.folds, fewest, n_units) if method == "cross" else 2
    options = {"shuffle": True, "random_state": rng.randint(np.iinfo(np.int32).max)}
    if groups is None:
        folds = StratifiedKFold(n_folds, **options).split(rest, y[rest])
    else:
        folds = StratifiedGroupKFold(n_folds, **options).split(rest, y[rest], units[rest])
    subsets = [rest[fold] for _, fold in folds]
    for subset in subsets:
        others = np.setdiff1d(rest, subset)
        _check_count(y, others, 1, method, "training")
    if method == "cross":
        return LabelSplit(rest, rest, calibration, tuple(subsets))
    _check_count(y, subsets[1], 1, method, "validation")
    return LabelSplit(subsets[0], subsets[1], calibration)


def _check_count(y: np.ndarray, subset: np.ndarray, fewest: int, method: str, purpose: str) -> int:
    """Return the smallest number of samples of a class, and raise an error if it is too small."""
    classes = np.unique(y)
    counts = [int((y[subset] == label).sum()) for label in classes]
    smallest = int(np.argmin(counts))
    if counts[smallest] < fewest:
        raise ValueError(
            f"y must contain at least {fewest} labeled samples of each class for {purpose} with "
            f"split={method!r}, got {counts[smallest]} of class {classes[smallest]} there. Label "
            "more samples, or use split='resubstitution' without a confidence."
        )
    return counts[smallest]

"""The types of widemargin that a model file may contain.

skops trusts arrays and the estimators of scikit-learn. Here are the types that these need beside,
and those of this package: all public estimators, and the objects that fitted ones consist of.
Creating an object of any of them reads and writes no file and starts no code of a file's choice.
"""

from functools import cache
from pkgutil import resolve_name
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer, get_scorer_names

import widemargin
from widemargin._base.sklearn_compat import metric_of

# Classes and functions that are attributes of fitted estimators. `tests/export` fits all estimators
# and finds those that are missing here.
_ATTRIBUTE_TYPES = frozenset(
    f"widemargin.{name}"
    for name in (
        "discriminant.statistics.ClassStatistics",
        "gated.landmarks.LandmarkFeatures",
        "gated.problem.NoFeatures",
        "gated.score_functions.ScoreFunction",
        "gated.teacher.Coefficients",
        "gated.teacher.FunctionGate",
        "gated.teacher.PartsGate",
        "gated.teacher.RemovedTeacher",
        "gated.teacher.TeacherGate",
        "kernels.expansion.KernelExpansion",
        "kernels.expansion.weighted_sums",
        "kernels.parameters.KernelParameters",
        "labeltree.beam.TreeWeights",
        "labeltree.partition.LabelTree",
        "privileged.features.PrivilegedFeatures",
        "privileged.slack_functions.PrivilegedFunctions",
        "semisupervised.constraints.Constraints",
        "semisupervised.constraints.ScoredSamples",
        "semisupervised.guarantee.Guarantee",
        "semisupervised.selection.PartiallyLabeledKFold",
        "semisupervised.selection._best_other",
        "svm.code_matrix.binary_classifiers.JointClassifiers",
        "svm.code_matrix.binary_classifiers.SeparateClassifiers",
        "svm.reduction.PairSums",
    )
)

_OF_OTHERS = frozenset(
    (
        "numpy.dtype",
        "scipy.sparse._csc.csc_array",
        "scipy.sparse._csc.csc_matrix",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        "scipy.sparse._dia.dia_matrix",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
    )
)


def trusted_types() -> list[str]:
    """Return the names of the types that are safe to load beside those that skops trusts.

    Pass them to tools that use skops and have a parameter for trusted types:
    ``skops.io.load(path, trusted=trusted_types())`` or
    ``mlflow.sklearn.save_model(model, path, skops_trusted_types=trusted_types())``.

    Returns
    -------
    names : list of str
        Full names of classes and functions, sorted.

    Examples
    --------
    >>> from widemargin.export import trusted_types
    >>> "widemargin.svm.svc.SVC" in trusted_types()
    True
    """
    classes = [getattr(home, name) for home in _homes() for name in home.__all__]
    estimators = {_full_name(c) for c in classes if _is_estimator(c)}
    return sorted(estimators | _ATTRIBUTE_TYPES | _OF_OTHERS | _metrics())


def is_trusted(name: str) -> bool:
    """Return whether a type is safe to load; imports no module but that of a public estimator.

    Parameters
    ----------
    name : str
        Full name of a class or function, as a model file contains it.

    Returns
    -------
    trusted : bool
    """
    if name in _ATTRIBUTE_TYPES | _OF_OTHERS | _metrics():
        return True
    if not name.startswith("widemargin."):
        return False
    last = name.rpartition(".")[2]
    home = next((home for home in _homes() if last in home.__all__), None)
    public = getattr(home, last, None)
    return _is_estimator(public) and _full_name(public) == name


@cache
def _metrics() -> frozenset[str]:
    """Return the names of the metrics of scikit-learn's scorers, which searches contain."""
    return frozenset(_full_name(metric_of(get_scorer(name))) for name in get_scorer_names())


def _homes() -> list:
    return [widemargin, resolve_name("widemargin.structured")]


def _is_estimator(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseEstimator)


def _full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__name__}"

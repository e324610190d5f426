"""Teachers: scores of all classes, the score of one class alone, and linear coefficients.

Scores are aligned with ``classes_``. They are the ``decision_function`` of a teacher or, if it has
none, the log-odds of its ``predict_proba``. The single column of a binary teacher becomes two.

Functions take samples twice: ``X`` as the user passed them, and ``values``, the same samples as a
validated array (None if they have not been validated). Estimators of the library are given the
values, which they do not validate again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from widemargin._base.numeric import log_odds
from widemargin._base.options import gated_options
from widemargin._base.routing import select_metadata
from widemargin._base.sklearn_compat import check_feature_names, num_samples, safe_indexing
from widemargin._base.validation import ValidatedSamples, canonical_csr, validate_predict
from widemargin.gated.labels import check_labels, check_scores, class_index
from widemargin.gated.score_functions import as_teacher
from widemargin.kernels import KERNEL_NAMES
from widemargin.kernels.expansion import KernelExpansion
from widemargin.svm.crammer_singer import CrammerSingerSVC, joint_expansion
from widemargin.svm.linear_svc import LinearSVC
from widemargin.svm.scores import linear_scores
from widemargin.svm.svc import SVC, class_expansion

# Their decision functions are their coefficients, which need not be verified.
_LINEAR = (CrammerSingerSVC, LinearSVC)
_LIBRARY = (*_LINEAR, SVC)


class Samples(NamedTuple):
    """Training samples as passed to fit, as an array (None with a feature map), and targets.

    ``metadata`` are further arguments of the teacher's fit.
    """

    X: Any
    values: Any
    y: np.ndarray
    weight: np.ndarray | None = None
    metadata: dict[str, Any] | None = None

    def subset(self, index: np.ndarray) -> "Samples":
        """Return the samples with given indices."""
        values = None if self.values is None else self.values[index]
        weight = None if self.weight is None else self.weight[index]
        metadata = select_metadata(self.metadata or {}, index, len(self.y))
        return Samples(safe_indexing(self.X, index), values, self.y[index], weight, metadata)


def class_scores(teacher: Any, X: Any, values: Any = None) -> np.ndarray:
    """Return the scores of all classes, in the order of ``teacher.classes_``."""
    n_classes = len(teacher_classes(teacher))
    if hasattr(teacher, "decision_function"):
        inner = unwrap(teacher)
        samples = _pass_on(inner, X, values)
        scorer = inner if isinstance(samples, ValidatedSamples) else teacher
        scores = np.asarray(scorer.decision_function(samples), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        pairwise = getattr(final_estimator(teacher), "decision_function_shape", None) == "ovo"
        if pairwise and n_classes > 2:
            raise ValueError(
                "teacher must return scores of its classes, got those of pairs of classes. Use "
                "decision_function_shape='ovr'."
            )
        if scores.shape[1] != n_classes:
            raise ValueError(
                f"teacher must return one score for each of its {n_classes} classes, got "
                f"{scores.shape[1]} columns."
            )
    elif hasattr(teacher, "predict_proba"):
        scores = log_odds(teacher.predict_proba(X))
    else:
        raise TypeError(
            "teacher must have a decision_function or predict_proba method, got "
            f"{type(teacher).__name__}. Pass its scores as teacher_scores instead."
        )
    return check_scores(scores, "the teacher's scores")


def teacher_classes(teacher: Any) -> np.ndarray:
    """Return the class labels of a fitted teacher."""
    if not hasattr(teacher, "classes_"):
        raise TypeError(
            "teacher must be a classifier, with the attribute classes_ when fitted, got "
            f"{type(final_estimator(teacher)).__name__}."
        )
    return np.asarray(teacher.classes_)


def final_estimator(teacher: Any) -> Any:
    """Return the estimator that computes the scores of a frozen, searched or pipelined teacher."""
    *_, last = _wrapped_estimators(teacher)
    return last


def unwrap(estimator: Any) -> Any:
    """Return an estimator without its FrozenEstimator or search; pipelines stay as they are."""
    inner = None
    for inner in _wrapped_estimators(estimator):
        if isinstance(inner, Pipeline):
            break
    return inner


def _wrapped_estimators(estimator: Any) -> Iterator[Any]:
    """Yield an estimator, the one that it delegates to, and so on until the last one.

    A frozen estimator delegates to what it froze, a search to the best, a pipeline to its last
    step.
    """
    while estimator is not None:
        yield estimator
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        else:
            estimator = getattr(estimator, "best_estimator_", None)


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted; one that is not scikit-learn's has classes then."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return hasattr(estimator, "classes_")
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def is_fitted_teacher(teacher: Any) -> bool:
    """Return whether a teacher is used as it is; functions and sessions are."""
    return teacher is not None and (not hasattr(teacher, "fit") or is_fitted(teacher))


def fitted_teacher(student: Any, samples: Samples, labels: Any, needed: bool) -> tuple:
    """Return the fitted teacher of a student, None without one, and the classes of its scores."""
    score_classes = labels if student.classes is None else student.classes
    teacher = as_teacher(student.teacher, score_classes, samples.X)
    if needed or teacher is not None:
        teacher = fit_teacher(teacher, samples)
    known = None if teacher is None else teacher_classes(teacher)
    if student.classes is None:
        classes = labels if known is None else known
    else:
        classes = column_or_1d(student.classes)
        if len(np.unique(classes)) < len(classes):
            raise ValueError(f"classes must be distinct labels, got {classes.tolist()}.")
    if known is not None and not np.array_equal(classes, known):
        raise ValueError(
            f"classes must be those of the teacher, {known.tolist()}, got {classes.tolist()}. "
            "Use classes=None."
        )
    check_labels(samples.y, classes)
    return teacher, classes


def fit_teacher(teacher: Any, samples: Samples) -> Any:
    """Return a fitted teacher as it is, any other as a clone fitted to the samples."""
    if teacher is None:
        teacher = CrammerSingerSVC()
    if not is_fitted(teacher):
        return _fit_clone(teacher, samples)
    if samples.metadata:
        raise ValueError(
            f"teacher is fitted already, so that {', '.join(samples.metadata)} cannot be passed to "
            "its fit. Leave them out, or pass an unfitted teacher."
        )
    return teacher


def restrict_folds(retained: np.ndarray, cv: Any, samples: Samples) -> list[list[np.ndarray]]:
    """Split all samples, and return the folds as indices into the samples that are kept."""
    X, _, y, *_ = samples
    position = np.full(len(y), -1)
    position[retained] = np.arange(len(retained))
    folds = check_cv(cv, y, classifier=True).split(X, y)
    return [
        [indices[indices >= 0] for indices in (position[train], position[test])]
        for train, test in folds
    ]


def out_of_fold_scores(teacher: Any, samples: Samples, folds: Any, classes: Any) -> np.ndarray:
    """Return the scores of every sample by a clone of the teacher fitted without its fold.

    A class that is missing in a fold gets the smallest score of each sample.
    """
    teacher = CrammerSingerSVC() if teacher is None else teacher
    if not hasattr(teacher, "fit"):
        raise ValueError(
            "cv must be None for a teacher without a fit method, got "
            f"{type(teacher).__name__}. Pass its out-of-fold scores as teacher_scores."
        )
    if any(isinstance(inner, FrozenEstimator) for inner in _wrapped_estimators(teacher)):
        raise ValueError(
            "cv must be None for a teacher in a FrozenEstimator, which cannot be fitted to folds. "
            "Pass its out-of-fold scores as teacher_scores, or the estimator itself as teacher."
        )

    scores = np.full((len(samples.y), len(classes)), np.nan)
    for train, test in folds:
        if not len(test):
            continue
        fitted, held_out = _fit_clone(teacher, samples.subset(train)), samples.subset(test)
        fold_scores = class_scores(fitted, held_out.X, held_out.values)
        scores[test] = fold_scores.min(axis=1, keepdims=True)
        for label, column in zip(fitted.classes_, fold_scores.T, strict=True):
            scores[test, class_index(label, classes)] = column
    if np.isnan(scores).any():
        raise ValueError("cv must assign every sample to the test set of a fold.")
    return scores


def _fit_clone(teacher: Any, samples: Samples) -> Any:
    X, values, y, weight, metadata = samples
    teacher = clone(teacher)
    X, metadata = _pass_on(teacher, X, values), metadata or {}
    if weight is None:
        return teacher.fit(X, y, **metadata)
    name = _weight_parameter(teacher)
    if name is None:
        raise ValueError(
            f"teacher {type(final_estimator(teacher)).__name__} does not support sample_weight. "
            "Pass a fitted teacher, or its scores as teacher_scores."
        )
    return teacher.fit(X, y, **{name: weight}, **metadata)


def _pass_on(estimator: Any, X: Any, values: Any) -> Any:
    """Return X for any estimator; for one of the library, so that it is not validated again."""
    library = type(estimator) in _LIBRARY
    if values is None or not library or getattr(estimator, "kernel", "linear") not in KERNEL_NAMES:
        return X
    return ValidatedSamples(values, X)


def _weight_parameter(teacher: Any) -> str | None:
    """Return the name of the sample weights in an estimator's fit, None if it has none."""
    if not isinstance(teacher, Pipeline):
        return "sample_weight" if has_fit_parameter(teacher, "sample_weight") else None
    if get_config()["enable_metadata_routing"]:
        # The steps request them, or scikit-learn raises an error that explains how.
        return "sample_weight"
    step, last = teacher.steps[-1]
    name = _weight_parameter(last)
    return None if name is None else f"{step}__{name}"


def validated_array(X: Any) -> Any:
    """Return samples as a float64 array, dense or canonical CSR."""
    return canonical_csr(check_array(X, dtype=np.float64, order="C", accept_sparse="csr"))


class Coefficients(NamedTuple):
    """Linear decision functions.

    Attributes
    ----------
    coef : ndarray of shape (n_functions, n_features)
    intercept : ndarray of shape (n_functions,)
    """

    coef: np.ndarray
    intercept: np.ndarray

    def evaluate(self, X: Any) -> np.ndarray:
        """Compute the values of all functions."""
        return linear_scores(X, self.coef) + self.intercept


@dataclass(frozen=True)
class FunctionGate:
    """Scores of the targets by their own functions, `Coefficients` or a `KernelExpansion`.

    ``steps`` are the steps before the last one of a pipeline, or None.
    """

    steps: Pipeline | None
    functions: Coefficients | KernelExpansion

    def __call__(self, X: Any, values: Any = None) -> np.ndarray:
        if self.steps is not None:
            X, values = self.steps.transform(X), None
        return self.functions.evaluate(validated_array(X) if values is None else values)


@dataclass(frozen=True)
class PartsGate:
    """Scores of the targets by their binary classifiers of a one-vs-rest teacher.

    ``steps`` are the steps before the last one of a pipeline, or None.
    """

    steps: Pipeline | None
    parts: Sequence[Any]

    def __call__(self, X: Any, values: Any = None) -> np.ndarray:
        X = X if self.steps is None else self.steps.transform(X)
        return np.column_stack([np.ravel(member.decision_function(X)) for member in self.parts])


@dataclass(frozen=True)
class TeacherGate:
    """Scores of the targets as columns of the scores of all classes."""

    teacher: Any
    columns: np.ndarray

    def __call__(self, X: Any, values: Any = None) -> np.ndarray:
        return class_scores(self.teacher, X, values)[:, self.columns]


@dataclass(frozen=True)
class RemovedTeacher:
    """Stand-in for the fitted teacher of a student that was pickled without it."""

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> Any:
        """Raise an error, as all methods do."""
        raise ValueError(
            "The teacher was not pickled with its fitted student, which predicts without it. Set "
            "teacher before fit."
        )

    def decision_function(self, X: Any) -> Any:
        """Raise an error."""
        return self.fit(X, None)


def make_gate(teacher: Any, functions: Coefficients | None, columns: ArrayLike) -> Any:
    """Return what computes the scores of the targets, without those of other classes if possible.

    Parameters
    ----------
    teacher : fitted estimator
    functions : Coefficients or None
        Of all classes, if the teacher is linear.
    columns : array-like of int
        Columns of the targets.

    Returns
    -------
    gate : callable
        ``gate(X, values)`` returns the scores, of shape (n_samples, n_targets).
    """
    columns = np.asarray(columns)
    if functions is not None:
        return FunctionGate(None, Coefficients(*[values[columns] for values in functions]))
    if len(columns) < len(teacher_classes(teacher)):
        gate = _separate_gate(unwrap(teacher), columns, None)
        if gate is not None:
            return gate
    return TeacherGate(teacher, columns)


def _separate_gate(teacher: Any, columns: np.ndarray, steps: Pipeline | None) -> Any:
    """Return the functions of some classes of a teacher that computes them separately."""
    if isinstance(teacher, Pipeline):
        before = [*([] if steps is None else steps.steps), *teacher.steps[:-1]]
        return _separate_gate(unwrap(teacher[-1]), columns, Pipeline(before) if before else None)
    if len(teacher.classes_) == 2:
        return None
    if isinstance(teacher, OneVsRestClassifier):
        members = [teacher.estimators_[column] for column in columns]
        separate = not teacher.multilabel_ and all(hasattr(p, "decision_function") for p in members)
        return PartsGate(steps, members) if separate else None
    expansion = None
    if isinstance(teacher, SVC):
        expansion = class_expansion(teacher)
    elif isinstance(teacher, CrammerSingerSVC):
        expansion = joint_expansion(teacher)
    if expansion is None or not expansion.coefficients.shape[1]:
        return None
    return FunctionGate(steps, expansion.select(columns))


def separate_values(teacher: Any, functions: Coefficients | None, X: Any) -> Any:
    """Return validated samples for the gates of a teacher, None if its steps validate them."""
    inner = unwrap(teacher)
    if isinstance(inner, _LIBRARY):
        return canonical_csr(validate_predict(inner, X))
    return None if functions is None else validated_array(X)


def linear_coefficients(teacher: Any, X: Any, values: Any = None) -> Coefficients | None:
    """Return the decision functions of a linear teacher over the features of X, else None.

    The first samples of ``X`` verify the coefficients of an estimator that is not of this library.
    Scaling steps of a pipeline are folded into the coefficients.
    """
    teacher = unwrap(teacher)
    functions = _stated_coefficients(teacher)
    if functions is None or getattr(X, "shape", ())[1:] != functions.coef.shape[1:]:
        return None
    if type(teacher) in _LINEAR:
        check_feature_names(teacher, X, reset=False)
        return functions
    X = _first_samples(X)
    scores = class_scores(teacher, X, None if values is None else _first_samples(values))
    if functions.coef.shape[0] != scores.shape[1]:
        return None
    values = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    error = np.abs(values @ functions.coef.T + functions.intercept - scores).max()
    bound = gated_options.equal_scores * max(1.0, np.abs(scores).max())
    return functions if error <= bound else None


def last_step_coefficients(teacher: Any, features: Any, X: Any) -> Coefficients | None:
    """Return the functions of a pipeline's last step, if ``features`` are the steps before it."""
    teacher, features = unwrap(teacher), unwrap(features)
    if not isinstance(teacher, Pipeline):
        return None
    feature_steps = (
        [step for _, step in features.steps] if isinstance(features, Pipeline) else [features]
    )
    steps = [step for _, step in teacher.steps[:-1]]
    if [id(step) for step in feature_steps] != [id(step) for step in steps]:
        return None
    return linear_coefficients(teacher[-1], teacher[:-1].transform(_first_samples(X)))


def _first_samples(X: Any) -> Any:
    n = gated_options.verified_samples
    return safe_indexing(X, np.arange(n)) if num_samples(X) > n else X


def _stated_coefficients(estimator: Any) -> Coefficients | None:
    """Return the coefficients that an estimator, or a pipeline of scaling steps and one, has."""
    estimator = unwrap(estimator)
    if not isinstance(estimator, Pipeline):
        return _public_coefficients(estimator)
    functions = _stated_coefficients(estimator[-1])
    for _, step in reversed(estimator.steps[:-1]):
        if functions is not None and step not in (None, "passthrough"):
            functions = _fold_scaling(functions, unwrap(step))
    return functions


def _public_coefficients(estimator: Any) -> Coefficients | None:
    """Return the coefficients of all classes by the public attributes of an estimator."""
    if isinstance(estimator, OneVsRestClassifier):
        if not hasattr(estimator, "estimators_") or estimator.multilabel_:
            return None
        functions = [_public_coefficients(member) for member in estimator.estimators_]
        if not all(functions):
            return None
        coef, intercept = (np.array([p[k][-1] for p in functions if p]) for k in (0, 1))
    else:
        if not hasattr(estimator, "coef_") or not hasattr(estimator, "intercept_"):
            return None
        coef = estimator.coef_
        coef = np.atleast_2d(coef.toarray() if sp.issparse(coef) else np.asarray(coef))
        intercept = np.broadcast_to(np.ravel(estimator.intercept_), len(coef))
    if len(estimator.classes_) == 2:
        # A single function, or the difference of two.
        second = [
            values[-1] if len(values) == 1 else values[1] - values[0]
            for values in (coef, intercept)
        ]
        coef, intercept = (np.array([-values, values]) for values in second)
    return Coefficients(coef, intercept)


def _fold_scaling(functions: Coefficients, step: Any) -> Coefficients | None:
    """Return the functions over the input of a scaling step, given those over its output."""
    n_features = functions.coef.shape[1]
    scale, shift = np.ones(n_features), np.zeros(n_features)
    if isinstance(step, StandardScaler):
        scale = scale if step.scale_ is None else 1.0 / step.scale_
        shift = shift if step.mean_ is None or not step.with_mean else -step.mean_ * scale
    elif isinstance(step, MinMaxScaler) and not step.clip:
        scale, shift = step.scale_, step.min_
    elif isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        scale = 1.0 / step.scale_
    else:
        return None
    return Coefficients(functions.coef * scale, functions.intercept + functions.coef @ shift)

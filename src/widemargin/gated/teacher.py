"""What students ask of a teacher: all scores, one class's score alone, and whether it is linear.

Scores are aligned with ``classes_``. A teacher with ``decision_function`` is asked for that, one
with ``predict_proba`` for the log-odds; the one column of a binary teacher becomes two.
"""

import copy
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from widemargin._base.numeric import log_odds
from widemargin._base.sklearn_compat import num_samples, safe_indexing
from widemargin.gated.difficulty import check_scores, place_of
from widemargin.svm.crammer_singer import CrammerSingerSVC
from widemargin.svm.linear_svc import LinearSVC, linear_scores
from widemargin.svm.svc import SVC

_PROBED_ROWS = 16
_SAME_SCORE = 1e-6
# Those that score by their coefficients whenever they have any need not be tried.
_LINEAR = (CrammerSingerSVC, LinearSVC)


def class_scores(teacher, X):
    """Scores of all classes, in the order of ``teacher.classes_``."""
    n_classes = len(known_classes(teacher))
    if hasattr(teacher, "decision_function"):
        scores = np.asarray(teacher.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        pairwise = getattr(bare(teacher), "decision_function_shape", None) == "ovo"
        if scores.shape[1] != n_classes or (pairwise and n_classes > 2):
            raise ValueError(
                f"teacher must give one score for each of its {n_classes} classes, got "
                f"{scores.shape[1]} columns: use decision_function_shape='ovr'."
            )
    elif hasattr(teacher, "predict_proba"):
        scores = log_odds(teacher.predict_proba(X))
    else:
        raise TypeError(
            "teacher must have decision_function or predict_proba, got "
            f"{type(teacher).__name__}: give its scores as teacher_scores instead."
        )
    return check_scores(scores, "the teacher's scores")


def known_classes(teacher):
    """The labels that a fitted teacher knows."""
    if not hasattr(teacher, "classes_"):
        raise TypeError(
            f"teacher must be a classifier, which has classes_ when it is fitted, got "
            f"{type(bare(teacher)).__name__}."
        )
    return np.asarray(teacher.classes_)


def layers(estimator):
    """An estimator, the one that scores for it in the end, and all between.

    A frozen one hands rows to what it froze, a search to the best, a pipeline to its last step.
    """
    while estimator is not None:
        yield estimator
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        else:
            estimator = getattr(estimator, "best_estimator_", None)


def bare(teacher):
    """The estimator that scores."""
    *_, last = layers(teacher)
    return last


def unwrapped(estimator):
    """An estimator out of its ice or search; the steps of a pipeline stay together."""
    inner = None
    for inner in layers(estimator):
        if isinstance(inner, Pipeline):
            break
    return inner


def is_fitted(teacher):
    """Whether an estimator has learned what it needs."""
    try:
        check_is_fitted(teacher)
    except NotFittedError:
        return False
    return True


def fitted(teacher, X, y, weight):
    """A fitted teacher as it is; any other as a clone trained on the rows."""
    if teacher is None:
        teacher = CrammerSingerSVC()
    return teacher if is_fitted(teacher) else _train(teacher, X, y, weight)


def folds_among(kept, cv, X, y):
    """The folds of all rows, as places among those that are kept."""
    place = np.full(len(y), -1)
    place[kept] = np.arange(len(kept))
    folds = check_cv(cv, y, classifier=True).split(X, y)
    return [[part[part >= 0] for part in (place[train], place[test])] for train, test in folds]


def out_of_fold_scores(teacher, X, y, weight, folds, classes):
    """Scores of every row by a clone of the teacher trained without its fold.

    A class that a fold's teacher has not seen gets the least of the row's scores.
    """
    teacher = CrammerSingerSVC() if teacher is None else teacher
    if any(isinstance(layer, FrozenEstimator) for layer in layers(teacher)):
        raise ValueError(
            "cv must be None for a teacher in a FrozenEstimator, which cannot be trained on folds: "
            "give its out-of-fold scores as teacher_scores, or thaw it."
        )
    scores = np.full((len(y), len(classes)), np.nan)
    for train, test in folds:
        if not len(test):
            continue
        fold_weight = None if weight is None else weight[train]
        clever = _train(teacher, safe_indexing(X, train), y[train], fold_weight)
        found = class_scores(clever, safe_indexing(X, test))
        part = np.repeat(found.min(axis=1, keepdims=True), len(classes), axis=1)
        part[:, [place_of(label, classes) for label in clever.classes_]] = found
        scores[test] = part
    if np.isnan(scores).any():
        raise ValueError("cv must put every row into the test part of a fold.")
    return scores


def _train(teacher, X, y, weight):
    teacher = clone(teacher)
    if weight is None:
        return teacher.fit(X, y)
    name = _weight_name(teacher)
    if name is None:
        raise ValueError(
            f"teacher {type(bare(teacher)).__name__} takes no sample_weight: train it yourself "
            "and give it fitted, or give its scores as teacher_scores."
        )
    return teacher.fit(X, y, **{name: weight})


def _weight_name(teacher):
    """What an estimator's fit calls weights; None where it takes none."""
    if not isinstance(teacher, Pipeline):
        return "sample_weight" if has_fit_parameter(teacher, "sample_weight") else None
    if get_config()["enable_metadata_routing"]:
        # Its steps ask for them, or scikit-learn says how they can.
        return "sample_weight"
    step, last = teacher.steps[-1]
    name = _weight_name(last)
    return None if name is None else f"{step}__{name}"


@dataclass(frozen=True)
class LinearGate:
    """The target's score as <coef, x> + intercept; of several targets with a row of each."""

    coef: np.ndarray
    intercept: float | np.ndarray

    def __call__(self, X):
        scores = linear_scores(X, np.atleast_2d(self.coef)) + self.intercept
        return scores[:, 0] if self.coef.ndim == 1 else scores


@dataclass(frozen=True)
class FunctionGate:
    """The target's score as the only one of an estimator: a part of the teacher."""

    function: object

    def __call__(self, X):
        return np.ravel(self.function.decision_function(X))


@dataclass(frozen=True)
class ColumnGate:
    """The target's score as one of all those of a teacher that cannot give it alone."""

    teacher: object
    column: int

    def __call__(self, X):
        return class_scores(self.teacher, X)[:, self.column]


def linear_forms(teacher, X):
    """Coefficients (n_classes, n_features) and intercepts of a linear teacher, else None.

    ``X`` are rows to try it on: what claims to be linear is taken at its word only if it also
    scores so, or is of this library. Scaling steps are folded into the coefficients.
    """
    teacher, X = unwrapped(teacher), _few(X)
    forms = _said_forms(teacher)
    return None if forms is None else _verified(forms, teacher, X)


def mapped_forms(teacher, X):
    """The forms of a pipeline's last step over the features that the steps before it make."""
    teacher = unwrapped(teacher)
    return linear_forms(teacher[-1], teacher[:-1].transform(_few(X)))


def _few(X):
    """As many rows as it takes to try a teacher."""
    return safe_indexing(X, np.arange(_PROBED_ROWS)) if num_samples(X) > _PROBED_ROWS else X


def _said_forms(estimator):
    """The forms that an estimator, or a pipeline of scaling steps and one, says it has."""
    estimator = unwrapped(estimator)
    if not isinstance(estimator, Pipeline):
        return _own_forms(estimator)
    forms = _said_forms(estimator[-1])
    for _, step in reversed(estimator.steps[:-1]):
        if step not in (None, "passthrough"):
            forms = _folded(forms, unwrapped(step))
    return forms


def _own_forms(estimator):
    """What an estimator says of itself: a coefficient for every class and feature."""
    if isinstance(estimator, OneVsRestClassifier):
        if not hasattr(estimator, "estimators_") or estimator.multilabel_:
            return None
        parts = [_own_forms(part) for part in estimator.estimators_]
        if any(part is None for part in parts):
            return None
        coef = np.array([part[0][-1] for part in parts])
        intercept = np.array([part[1][-1] for part in parts])
    else:
        if not hasattr(estimator, "coef_") or not hasattr(estimator, "intercept_"):
            return None
        coef = estimator.coef_
        coef = np.atleast_2d(coef.toarray() if sp.issparse(coef) else np.asarray(coef))
        intercept = np.broadcast_to(np.ravel(estimator.intercept_), len(coef))
    if len(estimator.classes_) == 2:
        # One function, or the difference of two, says both.
        coef = coef[-1] if len(coef) == 1 else coef[1] - coef[0]
        intercept = intercept[-1] if len(intercept) == 1 else intercept[1] - intercept[0]
        coef, intercept = np.array([-coef, coef]), np.array([-intercept, intercept])
    return coef, intercept


def _folded(forms, step):
    """Forms over what comes into a scaling step, from forms over what comes out of it."""
    if forms is None:
        return None
    n_features = forms[0].shape[1]
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
    return forms[0] * scale, forms[1] + forms[0] @ shift


def _verified(forms, teacher, X):
    """The forms, if the teacher scores rows as they say."""
    if getattr(X, "shape", ())[1:] != forms[0].shape[1:]:
        return None
    if type(teacher) in _LINEAR:
        validate_data(teacher, X, reset=False, skip_check_array=True)
        return forms
    said = class_scores(teacher, X)
    if forms[0].shape[0] != said.shape[1]:
        return None
    rows = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    difference = np.abs(rows @ forms[0].T + forms[1] - said).max()
    return forms if difference <= _SAME_SCORE * max(1.0, np.abs(said).max()) else None


def gate(teacher, column):
    """What gives the target's score without the other classes', where the teacher allows it."""
    alone = _alone(teacher, column)
    return ColumnGate(teacher, column) if alone is None else FunctionGate(alone)


def _alone(teacher, column):
    """The part of a teacher whose decision function is one class's score, or None."""
    teacher = unwrapped(teacher)
    if isinstance(teacher, Pipeline):
        last = _alone(teacher[-1], column)
        return None if last is None else Pipeline([*teacher.steps[:-1], ("target", last)])
    if len(teacher.classes_) == 2:
        return None
    if isinstance(teacher, OneVsRestClassifier):
        part = teacher.estimators_[column]
        separate = hasattr(part, "decision_function") and not teacher.multilabel_
        return part if separate else None
    joint = isinstance(teacher, CrammerSingerSVC) and teacher.kernel != "linear"
    separate = isinstance(teacher, SVC) and teacher.multi_class == "ovr"
    if (joint or separate) and teacher.support_vectors_.shape[0]:
        return _one_function(teacher, column)
    return None


def _one_function(machine, column):
    """A copy of a kernel machine with one function and the support vectors that it needs."""
    dual = machine.dual_coef_[[column]]
    kept = np.unique(dual.nonzero()[1])
    kept = kept if len(kept) else np.array([0])
    part = copy.copy(machine)
    part.dual_coef_ = dual[:, kept]
    part.support_ = machine.support_[kept]
    part.support_vectors_ = machine.support_vectors_[kept]
    part.intercept_ = machine.intercept_[[column]]
    part._n_support = np.array([len(kept)])
    if hasattr(machine, "_expansion"):
        part._expansion = machine._expansion.select([column])
    return part

"""What one student and many have in common: parameters, rows that come in, warnings."""

import warnings
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from widemargin._base.sklearn_compat import HasMethods, Interval, StrOptions
from widemargin._base.validation import canonical_csr
from widemargin.gated.difficulty import CODINGS, column_names
from widemargin.gated.landmarks import landmarks
from widemargin.gated.problem import as_given, feature_rows, kernel_sums
from widemargin.gated.teacher import LinearGate
from widemargin.kernels import KERNEL_NAMES

_NOTHING = 1e-6
_OF_ONE_KIND = (
    "coef_", "intercept_", "theta_", "theta_intercept_", "support_", "support_vectors_",
    "dual_coef_",
)  # fmt: skip


class Gated(ClassifierMixin, BaseEstimator):
    """What one student and many have in common: parameters, and how rows come in."""

    _parameter_constraints: dict = {
        "teacher": [
            HasMethods(["fit", "decision_function"]),
            HasMethods(["fit", "predict_proba"]),
            None,
        ],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "margin": [Interval(Real, 0.0, None, closed="left")],
        "decay": [Interval(Real, 0.0, 1.0, closed="neither")],
        "difficulty": [StrOptions(set(CODINGS)), callable, None],
        "features": [StrOptions({"teacher", "constant"}), HasMethods("transform"), None],
        "kernel": [StrOptions(set(KERNEL_NAMES))],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "solver": [StrOptions({"dual", "mm"})],
        "fit_intercept": ["boolean"],
        "cv": ["cv_object"],
        "classes": ["array-like", None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _incoming(self, X):
        """Rows as the teacher gets them, as an array (None where only a map sees them), and phi.

        phi is for `products`: an array or `Landmarks`.
        """
        check_is_fitted(self)
        if self._features is not None:
            X = validate_data(self, X, reset=False, skip_check_array=True)
            rows = landmarks(self._features, X)
            return X, None, feature_rows(self._features, X) if rows is None else rows
        checked = validate_data(
            self, X, reset=False, dtype=np.float64, order="C", accept_sparse="csr"
        )
        checked = canonical_csr(checked)
        return as_given(X, checked), checked, checked

    def _forget(self):
        """Leave nothing of an earlier fit that was of another kind."""
        for name in _OF_ONE_KIND:
            self.__dict__.pop(name, None)


def ask_gate(gate, given, checked):
    """The target's scores of rows: as an array for a linear gate, as given for any other."""
    if gate is None:
        raise ValueError(
            "teacher_scores must be given: there was no teacher in fit, only its scores."
        )
    if isinstance(gate, LinearGate):
        if checked is None:
            checked = check_array(given, dtype=np.float64, order="C", accept_sparse="csr")
        return gate(checked)
    return gate(given)


def as_columns(teacher_scores, X):
    """Checked scores of rows, one column where only the target's are given, and their names."""
    names = column_names(teacher_scores)
    scores = np.asarray(teacher_scores, dtype=np.float64)
    scores = scores[:, np.newaxis] if scores.ndim == 1 else scores
    scores = check_array(scores, input_name="teacher_scores")
    check_consistent_length(X, scores)
    return scores, names


def kernel_part(student, rows, dual):
    """The functions of students with a kernel."""
    support = student.support_vectors_
    if sp.issparse(support) and not sp.issparse(rows):
        rows = type(support)(rows)
    return kernel_sums(student._function, support, dual, rows)


def troubles(student, scores, column, truth, own, solution):
    """What there is to warn of, by name."""
    gate = scores[:, column]
    answers = gate - own >= 0.0
    nothing = np.abs(own).max() <= _NOTHING * np.abs(gate).max()
    met = (truth * gate).min() >= student.margin * (1.0 - _NOTHING)
    found = {
        "not converged": not solution.converged,
        "scores about 0": np.abs(scores).max() <= _NOTHING,
        "margin met": nothing and met,
        "theta about 0": nothing and not met,
        "constant": answers.all() or not answers.any(),
    }
    return [name for name, so in found.items() if so]


_WARNINGS = {
    "not converged": (
        "did not converge (max_iter={max_iter}): raise max_iter or tol, or scale the features"
    ),
    "scores about 0": (
        "got teacher scores that are all about 0{noise}: use {plainly}a teacher that tells classes "
        "apart"
    ),
    "margin met": (
        "learned nothing (theta is about 0) because the teacher meets the margin on all training "
        "rows: {folds}use a larger margin"
    ),
    "theta about 0": "learned nothing (theta is about 0): use a larger C",
    "constant": "say the same of every training row: use a larger C or {plainly}another margin",
}


def tell(troubles, student, who="Gated students", stacklevel=4):
    """One warning for every kind of trouble, naming the students that have it."""
    codes, folds = student.difficulty is not None, student.cv is None
    advice = {
        "max_iter": student.max_iter,
        "noise": ", so that difficulty is noise" if codes else "",
        "plainly": "difficulty=None or " if codes else "",
        "folds": "give out-of-fold scores by cv=, or " if folds else "",
    }
    for name, text in _WARNINGS.items():
        labels = [label for label, found in troubles.items() if name in found]
        if labels:
            category = ConvergenceWarning if name == "not converged" else UserWarning
            named = ", ".join(repr(label) for label in labels)
            message = f"{who} of {named} {text.format(**advice)}."
            warnings.warn(message, category, stacklevel=stacklevel)

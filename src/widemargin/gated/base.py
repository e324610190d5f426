"""Base of `GatedSVC` and `GatedStudents`: parameters, prediction, attributes, warnings."""

import warnings
from collections.abc import Sequence
from copy import copy, deepcopy
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from widemargin._base.convergence import early_stop_message
from widemargin._base.routing import RoutesFitMetadata
from widemargin._base.sklearn_compat import (
    BaseEstimator,
    HasMethods,
    Interval,
    StrOptions,
    clone_parametrized,
)
from widemargin._base.validation import canonical_csr, validate_predict
from widemargin.gated.labels import align_columns
from widemargin.gated.landmarks import inner_products, landmark_features
from widemargin.gated.problem import StudentFit, TrainingData, map_features, teacher_samples
from widemargin.gated.teacher import RemovedTeacher, TeacherGate, is_fitted_teacher, make_gate
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import kernel_constraints
from widemargin.svm.scores import finite_scores


class GatedBase(RoutesFitMetadata, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base class of estimators that consist of one or more students."""

    _routes_to = "teacher"

    _parameter_constraints: dict = {
        "teacher": [
            HasMethods(["fit", "decision_function"]),
            HasMethods("predict_proba"),
            HasMethods(["run", "get_inputs"]),
            callable,
            None,
        ],
        "C": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither"), None],
        "margin": [Interval(Real, 0.0, None, closed="left")],
        "decay": [Interval(Real, 0.0, 1.0, closed="neither")],
        "difficulty": [StrOptions({"relative-margin"}), callable, None],
        "features": [
            StrOptions({"teacher", "constant"}),
            HasMethods("transform"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "budget": [Interval(Real, 0.0, None, closed="neither"), None],
        "gate": [StrOptions({"teacher", "distilled"})],
        "gate_strength": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="left")],
        **kernel_constraints(pairwise=False),
        "solver": [StrOptions({"dual", "majorize-minimize"})],
        "fit_intercept": ["boolean"],
        "cv": ["cv_object"],
        "classes": ["array-like", None],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "checkpoint": [None, str, PathLike],
    }

    # Attributes with an entry or a row for each student, as far as students of a kind have them.
    _per_student = (
        "objective_", "dual_gap_", "n_iter_", "theta_", "theta_intercept_", "coef_", "intercept_",
        "dual_coef_",
    )  # fmt: skip

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict:
        """Return the state for pickling, without a fitted teacher that predictions do not need.

        Functions and sessions are fitted teachers too.
        """
        state = super().__getstate__()
        if hasattr(self, "_gate") and not isinstance(self._gate, TeacherGate):
            for name in ("teacher", "teacher_"):
                if is_fitted_teacher(state.get(name)):
                    state[name] = RemovedTeacher(self._labels)
        return state

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; functions and sessions, which need no fit, are shared."""
        if not self._teacher_is_shared():
            return clone_parametrized(self)
        other = copy(self)
        other.teacher = None
        other = clone_parametrized(other)
        other.teacher = self.teacher
        return other

    def __deepcopy__(self, memo: dict) -> Self:
        """Return a copy with the teacher, so that it can be fitted again."""
        if self._teacher_is_shared():
            memo[id(self.teacher)] = self.teacher
        copied = memo[id(self)] = type(self).__new__(type(self))
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def _teacher_is_shared(self) -> bool:
        """Return whether the teacher is no estimator; a session, for one, cannot be copied."""
        return self.teacher is not None and not hasattr(self.teacher, "fit")

    def _scores(self, X: Any, teacher_scores: Any) -> np.ndarray:
        """Return S^y - <theta, phi> of all samples and students."""
        check_is_fitted(self)
        if self.merged_ and teacher_scores is None and self._features is None:
            return finite_scores(self, X, np.atleast_2d(self.coef_), self.intercept_)
        X, values, phi = validate_samples(self, X)
        if self.merged_ and teacher_scores is None:
            return inner_products(phi, np.atleast_2d(self.coef_)) + self.intercept_
        gate = self._gate_scores(X, values, teacher_scores)
        if self._expansion is not None:
            return gate - self._expansion.evaluate(phi)
        return gate - (inner_products(phi, np.atleast_2d(self.theta_)) + self.theta_intercept_)

    def _gate_scores(self, X: Any, values: Any, teacher_scores: Any) -> np.ndarray:
        """Return S^y of samples for all students."""
        if teacher_scores is None:
            if self._gate is None:
                raise ValueError(
                    "teacher_scores must be passed, because fit was given the teacher's scores and "
                    "no teacher."
                )
            return self._gate(X, values)
        scores = np.asarray(teacher_scores, dtype=np.float64)
        scores = scores[:, np.newaxis] if scores.ndim == 1 else scores
        scores = check_array(scores, input_name="teacher_scores")
        check_consistent_length(X, scores)
        single, n_classes = len(self._columns) == 1, len(self._labels)
        if single and scores.shape[1] == 1:
            return align_columns(scores, teacher_scores, self._labels[self._columns])
        if scores.shape[1] != n_classes:
            raise ValueError(
                f"teacher_scores must have {n_classes} columns, as in fit"
                f"{', or one for the target class' if single else ''}, got {scores.shape[1]}."
            )
        return align_columns(scores, teacher_scores, self._labels)[:, self._columns]

    def _set_fitted(
        self, data: TrainingData, fits: Sequence[StudentFit], **attributes: Any
    ) -> None:
        """Replace the fitted attributes, with an entry or row for each student."""
        for name in (*self._per_student, "support_", "support_vectors_"):
            self.__dict__.pop(name, None)
        columns = np.array([fit.column for fit in fits])
        solutions = [fit.solution for fit in fits]
        merged = data.phi_functions is not None
        has_gate = data.functions is not None or (data.teacher is not None and not merged)
        duals = np.array([solution.dual for solution in solutions])
        self.__dict__.update(
            objective_=np.array([solution.objective for solution in solutions]),
            dual_gap_=np.array([solution.gap for solution in solutions]),
            n_iter_=np.array([solution.iterations for solution in solutions]),
            fit_status_=int(not all(solution.converged for solution in solutions)),
            merged_=merged,
            C_=float(data.C),
            gate_strength_=float(data.strength),
            features_=data.features,
            _labels=data.classes,
            _columns=columns,
            _features=data.features,
            _gate=make_gate(data.teacher, data.functions, columns) if has_gate else None,
            _expansion=None,
            **attributes,
        )
        if self.kernel != "linear":
            support = np.flatnonzero(duals.any(axis=0))
            support = support if len(support) else np.array([0])
            self.support_, self.support_vectors_ = data.index[support], data.phi[support]
            self.dual_coef_ = np.ascontiguousarray(duals[:, support])
            self._expansion = KernelExpansion(data.kernel, self.support_vectors_, self.dual_coef_)
            return
        self.theta_ = np.array([fit.theta for fit in fits])
        sums = [dual.sum() if self.fit_intercept else 0.0 for dual in duals]
        self.theta_intercept_ = np.array(sums)
        if merged:
            coef, intercept = data.phi_functions
            self.coef_ = coef[columns] - self.theta_
            self.intercept_ = intercept[columns] - self.theta_intercept_


def validate_samples(estimator: Any, X: Any) -> tuple[Any, Any, Any]:
    """Return samples for the gate, the same as an array (None with a feature map), and phi."""
    features = estimator._features
    if features is None:
        values = canonical_csr(validate_predict(estimator, X))
        return teacher_samples(X, values), values, values
    X = validate_data(estimator, X, reset=False, skip_check_array=True)
    phi = landmark_features(features, X)
    return X, None, map_features(features, X) if phi is None else phi


_WARNINGS = {
    "not converged": "{cause} This concerns {who}.",
    "zero scores": (
        "The teacher's scores are all close to zero for {who}{noise}. Use {unweighted}a teacher "
        "that separates the classes."
    ),
    "margin met": (
        "theta is close to zero for {who}, because the teacher meets the margin on all training "
        "samples. {folds}ncrease margin."
    ),
    "zero theta": "theta is close to zero for {who}. Increase C.",
    "margin not met": (
        "No training sample meets the margin for {who}, so that another margin gives the same "
        "{name}{plural}. Decrease margin or increase C."
    ),
    "constant": (
        "Predictions are the same for all training samples for {who}. Increase C, or use "
        "{unweighted}another margin."
    ),
}


def warn_about(
    student: Any, labels: Any, fits: Any, name="student", stacklevel=4, stopped=False
) -> None:
    """Issue one warning for every kind of issue, naming the classes that it applies to."""
    weighted = student.difficulty is not None
    for issue, text in _WARNINGS.items():
        affected = [k for k, fit in enumerate(fits) if issue in fit.issues]
        if not affected:
            continue
        classes = ", ".join(repr(labels[k]) for k in affected)
        many = len(affected) > 1
        solutions = [fits[k].solution for k in affected]
        message = text.format(
            who=f"the {name}{'s' * many} for class{'es' * many} {classes}",
            cause=early_stop_message(solutions, student.max_iter, stopped),
            name=name,
            plural="s" * many,
            noise=", so that degrees of difficulty are not meaningful" if weighted else "",
            unweighted="difficulty=None or " if weighted else "",
            folds="Set cv to use out-of-fold scores, or i" if student.cv is None else "I",
        )
        category = ConvergenceWarning if issue == "not converged" else UserWarning
        warnings.warn(message, category, stacklevel=stacklevel)


def warn_about_gate(student: Any, data: TrainingData, stacklevel: int = 4) -> None:
    """Warn if the gate or C were chosen by scores that are too good, or if the gate is not used."""
    if data.in_sample and data.chosen:
        warnings.warn(
            "C or gate_strength was chosen in folds, with the scores of a teacher of its own "
            "training samples, which are better than those of other samples. Set cv=3 to use "
            "out-of-fold scores.",
            UserWarning,
            stacklevel=stacklevel,
        )
    if student.gate_strength == "auto" and student.gate_strength_ == 0.0:
        warnings.warn(
            "The gate is not used: in folds of the labeled samples, students trained on labels "
            "alone are better (gate_strength_ is 0). Use features that can express the teacher, "
            "such as more landmarks, or set gate_strength.",
            UserWarning,
            stacklevel=stacklevel,
        )

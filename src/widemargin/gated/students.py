"""GatedStudents: binary detectors for all classes of a multi-class model."""

from collections.abc import Callable
from numbers import Integral
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context
from widemargin.gated.base import GatedBase, warn_about, warn_about_gate
from widemargin.gated.labels import class_index, is_boolean_target, python_label
from widemargin.gated.problem import StudentFit, TrainingData, fit_students
from widemargin.gated.scoring import score_answers
from widemargin.gated.student import GatedSVC


@shared_docs
class GatedStudents(GatedBase):
    r"""Gated SVMs: a binary detector for every class, distilled from a multi-class teacher.

    Each student answers "does the sample belong to my class?" by itself, at the cost of one or two
    dot products. In training, all students share the teacher's scores, the features and their
    kernel values. Together they are a classifier, which predicts the class of the student with the
    largest decision value. The student of class y minimizes

    .. math::

        \min_{\theta_y} \tfrac12 \|\theta_y\|^2 + \sum_i \frac{C w_i}{d_i}
        \max\bigl(0,\; m + z_i (\langle \theta_y, \phi(x_i) \rangle - S^y(x_i))\bigr)

    as described in `GatedSVC`.

    Parameters
    ----------
    teacher : estimator, default=None
        Fitted or unfitted classifier as in `GatedSVC`. If None, a linear `CrammerSingerSVC`.

    targets : array-like of labels, default=None
        Classes that get a student. If None, all classes in y. A single one needs `other`.

    other : label, default=None
        Label that `predict` returns for samples that no student accepts ("none of these"). If None,
        it returns the class with the largest decision value in any case.

    <<gated_C>>

    <<gated_margin>>

    <<gated_decay>>

    difficulty : {'relative-margin'}, callable or None, default=None
        Degrees of difficulty, as in `GatedSVC`. If None, all samples have degree 1.

    features : transformer, int, {'teacher', 'constant'} or None, default=None
        Feature map phi of linear students, as in `GatedSVC`.

    <<gated_budget>>

    <<gated_gate>>

    <<gated_strength>>

    <<gated_kernel>>

    <<degree>>

    <<gated_gamma>>

    <<coef0>>

    solver : {'dual', 'majorize-minimize'}, default='dual'
        Algorithm, as in `GatedSVC`.

    <<gated_fit_intercept>>

    cv : int, cross-validation generator or iterable, default=None
        Cross-validation splitting strategy for the teacher's scores of the training samples, as in
        `GatedSVC`.

    <<gated_classes>>

    scoring : str or callable, default=None
        Metric of `score`. If None, the accuracy of `predict`. Else a metric of two classes, as in
        `GatedSVC`: its mean over the students.

    <<gated_tol>>

    max_iter : int, default=-1
        Maximum number of solver iterations for each student, -1 for no limit.

    cache_size : float, default=200
        Size of the kernel cache in MB, shared by all students.

    n_jobs : int, default=None
        Number of students trained in parallel, in threads. It does not change the result.

    <<gated_checkpoint>>

    Attributes
    ----------
    classes_ : ndarray of shape (n_targets,)
        Classes that have a student, sorted.

    students_ : dict
        Fitted `GatedSVC` of each class.

    teacher_ : estimator or None
        Fitted teacher. None if only its scores were passed to `fit`.

    merged_ : bool
        Whether teacher and students are merged into a single weight vector for each class.

    features_ : transformer or None
        Fitted feature map, None for the features of X.

    C_ : float
        Regularization parameter, the one that was chosen with ``C="auto"``.

    gate_strength_ : float
        Strength of a distilled gate; 0 if it is not used, 1 for other gates.

    coef_ : ndarray of shape (n_targets, n_phi)
        Weights of merged students.

    intercept_ : ndarray of shape (n_targets,)
        Intercepts of merged students.

    theta_ : ndarray of shape (n_targets, n_phi)
        Weights of linear students without their gates.

    theta_intercept_ : ndarray of shape (n_targets,)
        Weights of the constant feature.

    support_ : ndarray of shape (n_support,)
        Indices of the support vectors of students with a nonlinear kernel.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Support vectors.

    dual_coef_ : ndarray of shape (n_targets, n_support)
        Dual coefficients of the support vectors.

    objective_ : ndarray of shape (n_targets,)
        Values of the objectives.

    dual_gap_ : ndarray of shape (n_targets,)
        Relative duality gaps, upper bounds on the distances of `objective_` from the optima.

    n_iter_ : ndarray of shape (n_targets,)
        Numbers of solver iterations.

    fit_status_ : int
        0 if the solver converged for every student, else 1.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    GatedSVC : A single student.
    CrammerSingerSVC : The default teacher.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import GatedStudents
    >>> X, y = load_iris(return_X_y=True)
    >>> students = GatedStudents().fit(X, y)
    >>> students.is_class(X[[0, 100]], label=0)
    array([ True, False])
    >>> students.predict(X[[0, 100]])
    array([0, 2])

    A search clones its estimator; a frozen teacher stays fitted:

    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.model_selection import GridSearchCV
    >>> from widemargin import CrammerSingerSVC
    >>> teacher = FrozenEstimator(CrammerSingerSVC().fit(X, y))
    >>> search = GridSearchCV(GatedStudents(teacher), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    >>> search.best_estimator_.teacher_ is teacher
    True
    """

    _parameter_constraints: dict = {
        **GatedBase._parameter_constraints,
        "targets": ["array-like", None],
        "other": "no_validation",
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        teacher: Any = None,
        targets: ArrayLike | None = None,
        *,
        other: Any = None,
        C: float | str | None = None,
        margin: float = 1.0,
        decay: float = 0.3,
        difficulty: str | Callable | None = None,
        features: Any = None,
        budget: float | None = None,
        gate: str = "teacher",
        gate_strength: float | str = "auto",
        kernel: str = "linear",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        solver: str = "dual",
        fit_intercept: bool = True,
        cv: Any = None,
        classes: ArrayLike | None = None,
        scoring: str | Callable | None = None,
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: float = 200,
        n_jobs: int | None = None,
        checkpoint: str | PathLike | None = None,
    ):
        self.teacher = teacher
        self.targets = targets
        self.other = other
        self.C = C
        self.margin = margin
        self.decay = decay
        self.difficulty = difficulty
        self.features = features
        self.budget = budget
        self.gate = gate
        self.gate_strength = gate_strength
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.classes = classes
        self.scoring = scoring
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: Any = None,
        teacher_scores: Any = None,
        unlabeled: Any = None,
        **metadata: Any,
    ) -> Self:
        """Fit a student for every target class.

        Parameters
        ----------
        <<X_train>>

        y : array-like of shape (n_samples,)
            Class labels, of classes that the teacher knows.

        <<gated_sample_weight>>

        <<gated_fit_scores>>

        <<gated_unlabeled>>

        <<gated_metadata>>

        Returns
        -------
        <<returns_self>>
        """
        targets = None if self.targets is None else np.asarray(self.targets)
        if targets is not None and len(targets) < 2 and (self.other is None or not len(targets)):
            raise ValueError(
                f"targets must contain at least two classes, got {len(targets)}. For a single "
                "class set other, the label of samples that its student rejects, or use GatedSVC."
            )
        if targets is not None and len(np.unique(targets)) < len(targets):
            raise ValueError(f"targets must be distinct classes, got {targets.tolist()}.")
        routed = self._routed(metadata)
        data = TrainingData(self, X, y, sample_weight, teacher_scores, targets, unlabeled, routed)
        _check_other(self.other, np.unique(data.y) if targets is None else targets)
        passed = {"sample_weight": sample_weight, "teacher_scores": teacher_scores}
        passed["unlabeled"] = unlabeled
        n_students = len(np.unique(data.y if targets is None else targets))
        progress = FitProgress(self, n_students, X, y, passed, self.checkpoint, data.scores)
        data.prepare(progress.checkpoint)
        fits = fit_validated(self, data, progress)
        progress.close()
        warn_about(self, self.classes_.tolist(), fits, stopped=progress.stop_requested)
        warn_about_gate(self, data)
        return self

    def decision_function(self, X: Any, teacher_scores: Any = None) -> np.ndarray:
        """Compute the decision function: the teacher's scores minus the students' functions.

        Parameters
        ----------
        <<X>>

        <<gated_scores>>

        Returns
        -------
        scores : ndarray of shape (n_samples, n_targets) or (n_samples,)
            Non-negative where the student of a class accepts a sample. With two targets, as for all
            classifiers, the difference of the second and the first; use `students_` for both. With
            one target, its decision values.
        """
        scores = self._scores(X, teacher_scores)
        if len(self.classes_) == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any, teacher_scores: Any = None) -> np.ndarray:
        """Predict class labels: the class of the student with the largest decision value.

        Samples that no student accepts have the label `other`, if it is not None.

        Parameters
        ----------
        <<X>>

        <<gated_scores>>

        Returns
        -------
        <<returns_labels>>
        """
        scores = self._scores(X, teacher_scores)
        labels = self.classes_[scores.argmax(axis=1)]
        if self._other is None:
            return labels
        other = np.asarray(self._other)
        if labels.dtype.kind != other.dtype.kind:  # such as numbers and a string
            labels = labels.astype(object)
        return np.where(scores.max(axis=1) < 0.0, other, labels)

    def answers(self, X: Any, teacher_scores: Any = None) -> np.ndarray:
        """Predict whether samples belong to each of the classes, by all students.

        Parameters
        ----------
        <<X>>

        <<gated_scores>>

        Returns
        -------
        answers : ndarray of bool of shape (n_samples, n_targets)
            True where the student of a class accepts a sample, with the columns in the order of
            `classes_`. A sample may be accepted by several students or by none.
        """
        return self._scores(X, teacher_scores) >= 0.0

    def is_class(self, X: Any, label: Any, teacher_scores: Any = None) -> np.ndarray:
        """Predict whether samples belong to one class, by its student alone.

        Parameters
        ----------
        <<X>>

        label : label
            One of `classes_`.

        <<gated_target_scores>>

        Returns
        -------
        y : ndarray of bool of shape (n_samples,)
            True for the class.
        """
        check_is_fitted(self)
        index = class_index(label, self.classes_)
        if index is None:
            raise ValueError(
                f"label {python_label(label)!r} has no student. The classes with a student are "
                f"{self.classes_.tolist()}."
            )
        return self._students[self.classes_.tolist()[index]].predict(X, teacher_scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None, teacher_scores: Any = None) -> float:
        """Compute the accuracy of the predictions, or the mean metric of the students.

        Parameters
        ----------
        <<X>>

        <<y>>

        <<gated_score_weight>>

        <<gated_scores>>

        Returns
        -------
        score : float
            Accuracy of `predict`, or the mean over all targets of the metric `scoring` of
            `answers`.
        """
        if self.scoring is None:
            predicted = self.predict(X, teacher_scores)
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        scores, y = self._scores(X, teacher_scores), column_or_1d(y)
        values = [
            score_answers(self.scoring, scores[:, k], X, y == label, sample_weight)
            for k, label in enumerate(self.classes_)
        ]
        return float(np.mean(values))


def _check_other(other: Any, targets: np.ndarray) -> None:
    """Raise a ValueError if the label of rejected samples is not a label, or that of a target."""
    if other is not None and (np.ndim(other) != 0 or other in targets.tolist()):
        raise ValueError(
            "other must be a single label that no target has, such as 'none of these' or -1, got "
            f"{other!r}; the targets are {targets.tolist()}."
        )


def fit_validated(
    students: GatedStudents, data: TrainingData, progress: FitProgress | None = None
) -> list[StudentFit]:
    """Fit students to validated data, and set their fitted attributes."""
    if is_boolean_target(data.y, data.classes):
        raise ValueError(
            "y must contain class labels, got booleans. Pass the labels, of "
            f"{data.classes.tolist()}, or use GatedSVC for a single class."
        )
    targets = np.unique(data.y if students.targets is None else students.targets)
    fits = fit_students(students, data, targets, progress)
    parameters = students.get_params(deep=False)
    for name in ("targets", "n_jobs", "other", "checkpoint"):
        del parameters[name]
    seen = {n: v for n, v in vars(students).items() if n in ("n_features_in_", "feature_names_in_")}
    members = {}
    for label, fit in zip(targets, fits, strict=True):
        member = GatedSVC(python_label(label), **parameters)
        member._set_fitted(data, [fit], **seen)
        members[member.target] = member
    attributes = {"students_": members, "_students": members.copy(), "teacher_": data.teacher}
    attributes["_other"] = students.other
    students._set_fitted(data, fits, classes_=targets, **attributes)
    return fits

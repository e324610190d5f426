"""Comparison of gated students with their teacher, plain SVMs and controls, on the same samples.

Two controls show how much of a student's gain is due to its own function: a threshold on the gate
alone, and an SVM that has the gate as an additional feature.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from widemargin._base.options import gated_options
from widemargin._base.sklearn_compat import validate_parameters
from widemargin._base.threads import for_each
from widemargin.gated.base import validate_samples, warn_about
from widemargin.gated.difficulty import largest_other_score
from widemargin.gated.landmarks import feature_array
from widemargin.gated.problem import StudentFit, TrainingData, student_problem
from widemargin.gated.strength import choose_cost, solve_linear
from widemargin.gated.students import GatedStudents, fit_validated
from widemargin.gated.teacher import class_scores
from widemargin.solvers import HingeProblem
from widemargin.svm.scores import linear_scores


def compare_students(
    students: GatedStudents,
    X: Any,
    y: Any,
    X_test: Any,
    *,
    sample_weight: Any = None,
    svm_costs: Any = None,
) -> "StudentScores":
    """Compare linear students with their teacher, plain SVMs and controls.

    Students and the threshold are trained with the parameters and the teacher of `students`. In
    each of the results, a sample is predicted to belong to a class if its score is non-negative.

    Parameters
    ----------
    students : GatedStudents
        Students with a linear kernel. They need not be fitted, and are not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training samples.
    y : array-like of shape (n_samples,)
        Class labels.
    X_test : {array-like, sparse matrix} of shape (n_test, n_features)
        Test samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the training samples.
    svm_costs : float or array-like of float, default=None
        Values of C for the SVMs, whose best C is larger than that of students. For each class the
        best is chosen by F + AUC in three folds. If None, 1e-3 to 1e3 by decades.

    Returns
    -------
    scores : dict of ndarray of shape (n_test, n_targets)
        Scores of the test samples by the name of the method, with the attribute ``classes``, the
        sorted labels of the columns. The methods are 'teacher' (its margin over the best other
        class), 'SVM' (the same features trained on labels alone), 'gSVM-0' (students without
        degrees of difficulty), 'gSVM' (with the `difficulty` of `students`, or 'relative-margin' if
        that is None), and the
        controls 'gate + bias' (a threshold on the teacher's score) and 'SVM + score' (an SVM with
        that score as an additional feature).

    See Also
    --------
    widemargin.plotting.StudentsDisplay : Visualization of the comparison.

    Examples
    --------
    >>> from widemargin import CrammerSingerSVC, GatedStudents, compare_students
    >>> from widemargin.datasets import load_vowel
    >>> X, y = load_vowel(subset="train", return_X_y=True)
    >>> X_test, y_test = load_vowel(subset="test", return_X_y=True)
    >>> teacher = CrammerSingerSVC(kernel="rbf").fit(X, y)
    >>> scores = compare_students(GatedStudents(teacher, cv=3), X, y, X_test)
    >>> list(scores)
    ['teacher', 'SVM', 'gSVM-0', 'gSVM', 'gate + bias', 'SVM + score']
    >>> scores.classes
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10])
    """
    if not isinstance(students, GatedStudents):
        raise TypeError(f"students must be a GatedStudents, got {type(students).__name__}.")
    validate_parameters(students)
    parameters = students.get_params(deep=False) | {"checkpoint": None}
    if parameters["kernel"] != "linear":
        raise ValueError(
            f"students must have a linear kernel to be compared, got {parameters['kernel']!r}."
        )
    costs = list(np.atleast_1d(gated_options.baseline_costs if svm_costs is None else svm_costs))
    if not costs or not all(isinstance(C, Real) and 0.0 < float(C) < np.inf for C in costs):
        raise ValueError(f"svm_costs must contain positive numbers, got {svm_costs!r}.")
    coding = parameters["difficulty"] or "relative-margin"
    weighted = GatedStudents(**{**parameters, "difficulty": coding})
    plain = GatedStudents(**{**parameters, "difficulty": None})
    data = TrainingData(weighted, X, y, sample_weight, None, weighted.targets).prepare()
    for each in (weighted, plain):
        fits = fit_validated(each, data)
        warn_about(each, each.classes_.tolist(), fits, stacklevel=3)
    X_test, values, phi = validate_samples(weighted, X_test)
    phi, scores = feature_array(phi), class_scores(data.teacher, X_test, values)
    columns = [fit.column for fit in fits]
    distilled = data.phi_functions if weighted.gate == "distilled" else None
    gates = scores if distilled is None else distilled.evaluate(phi)

    def fit_controls(column):
        return _fit_controls(weighted, data, column, phi, gates[:, column], costs)

    controls = for_each(fit_controls, columns, effective_n_jobs(weighted.n_jobs))
    svm, threshold, extended, control_fits = zip(*controls, strict=True)
    warn_about(weighted, weighted.classes_.tolist(), control_fits, "control", stacklevel=3)
    gates = gates[:, columns]
    leads = [scores[:, k] - largest_other_score(scores, k) for k in columns]
    compared = {
        "teacher": np.column_stack(leads),
        "SVM": np.column_stack(svm),
        "gSVM-0": gates - linear_scores(phi, plain.theta_) - plain.theta_intercept_,
        "gSVM": gates - linear_scores(phi, weighted.theta_) - weighted.theta_intercept_,
        "gate + bias": np.column_stack(threshold),
        "SVM + score": np.column_stack(extended),
    }
    return StudentScores(compared, weighted.classes_)


class StudentScores(dict):
    """Scores by the name of the method, and the labels of their columns."""

    def __init__(self, scores: Mapping[str, np.ndarray], classes: np.ndarray):
        super().__init__(scores)
        self.classes = classes


def _fit_controls(
    students: Any, data: TrainingData, column: int, phi: Any, gate: Any, costs: list[float]
) -> tuple:
    """Return the test scores of the SVM, the threshold on the gate and the SVM with the gate.

    And the solution of one that did not converge, if any.
    """
    gated, nothing = student_problem(students, data, column), np.zeros((len(data.y), 1))
    extended = _append_feature(data.phi, data.scores[:, column])

    def plain(features):
        C = choose_cost(students, data, column, features, costs)
        cost = C * (1.0 if data.weight is None else data.weight)
        return HingeProblem(data.cache.of(), -gated.sign, students.margin, cost, intercept=False)

    problems = (plain(data.phi), data.phi), (gated, nothing), (plain(extended), extended)
    solutions = [solve_linear(students, problem, features) for problem, features in problems]
    svm, bias, wide = (solution.weights for solution in solutions)
    worst = min(solutions, key=lambda solution: solution.converged)
    return (
        linear_scores(phi, svm[np.newaxis, :-1])[:, 0] + svm[-1],
        gate - bias[-1],
        linear_scores(_append_feature(phi, gate), wide[np.newaxis, :-1])[:, 0] + wide[-1],
        StudentFit(column, worst, None, [] if worst.converged else ["not converged"]),
    )


def _append_feature(phi: Any, feature: np.ndarray) -> Any:
    if sp.issparse(phi):
        return sp.csr_array(sp.hstack([phi, sp.csr_array(feature[:, np.newaxis])]))
    return np.ascontiguousarray(np.column_stack([phi, feature]))

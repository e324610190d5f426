"""What gated students are to be compared with, trained on the same rows at the same price.

Two controls say how much of a student's gain is due to its function: a threshold on the gate alone,
and a plain machine that sees the gate as one more feature.
"""

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from widemargin._base.threads import for_each
from widemargin.gated.base import tell
from widemargin.gated.difficulty import best_rival, truth_of
from widemargin.gated.landmarks import multiplied
from widemargin.gated.problem import linear_problem, prepare, problem_of
from widemargin.gated.students import GatedStudents
from widemargin.gated.teacher import class_scores
from widemargin.solvers import HingeProblem
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.svm.linear_svc import linear_scores


def compare_students(students, X, y, X_test, *, sample_weight=None):
    """Scores of linear students, their teacher, plain machines and controls, side by side.

    All are trained here, with the parameters and the teacher of `students`. In all scores a row is
    taken for a class where the score of that class is at least 0.

    Parameters
    ----------
    students : GatedStudents
        With a linear kernel; it need not be fitted, and stays as it is.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Their labels.
    X_test : {array-like, sparse matrix} of shape (n_test, n_features)
        Rows to score.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the training rows.

    Returns
    -------
    scores : dict of ndarray of shape (n_test, n_targets)
        With the attribute ``classes``: the labels of the columns, sorted whatever the order of
        `targets`. By name: 'teacher' (its lead over the best other class), 'SVM' (trained from
        labels alone), 'gSVM-0' (students without difficulty), 'gSVM' (the students), and the
        controls 'gate + bias' (a threshold on the teacher's score) and 'SVM + score' (an SVM with
        that score as an extra feature).

    See Also
    --------
    widemargin.plotting.StudentsDisplay : Their picture.

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
    students._validate_params()
    parameters = students.get_params(deep=False)
    if parameters["kernel"] != "linear":
        raise ValueError(f"students must be linear to be compared, got {parameters['kernel']!r}.")
    ours = GatedStudents(**parameters)
    plain = GatedStudents(**{**parameters, "difficulty": None})
    lesson = prepare(ours, X, y, sample_weight, None, ours.targets)
    tell(ours._learn(lesson), ours, stacklevel=3)
    given, _, rows = ours._incoming(X_test)
    rows = multiplied(rows)
    tell(plain._learn(lesson), plain, stacklevel=3)
    asked = class_scores(lesson.teacher, given)
    columns = ours._columns
    gates = asked[:, columns]

    def controls(column):
        return _controls(ours, lesson, column, rows, asked[:, column])

    found = for_each(controls, columns, effective_n_jobs(ours.n_jobs))
    *columns_found, converged = zip(*found, strict=True)
    svm, biased, extra = map(np.column_stack, columns_found)
    troubles = {
        label: [] if well else ["not converged"]
        for label, well in zip(ours.classes_.tolist(), converged, strict=True)
    }
    tell(troubles, ours, who="Controls", stacklevel=3)
    scores = {
        "teacher": np.column_stack([asked[:, k] - best_rival(asked, k) for k in columns]),
        "SVM": svm,
        "gSVM-0": gates - linear_scores(rows, plain.theta_) - plain.theta_intercept_,
        "gSVM": gates - linear_scores(rows, ours.theta_) - ours.theta_intercept_,
        "gate + bias": biased,
        "SVM + score": extra,
    }
    return StudentScores(scores, ours.classes_)


class StudentScores(dict):
    """Scores by the name of the rival, and the labels of their columns."""

    def __init__(self, scores, classes):
        super().__init__(scores)
        self.classes = classes


def _controls(students, lesson, column, rows, gate):
    """Test scores of the SVM, the gate with a threshold and the SVM that sees the gate.

    And whether all three converged.
    """
    truth = np.where(truth_of(lesson.y, lesson.classes, column), 1.0, -1.0)
    weight = 1.0 if lesson.weight is None else lesson.weight
    own = HingeProblem(
        lesson.cache.of(), truth, students.margin, students.C * weight, intercept=False
    )
    gated = problem_of(students, lesson, column, truth)
    nothing = np.zeros((len(truth), 1))
    wider = _beside(lesson.rows, lesson.scores[:, column])
    solved = [
        _weights(problem, features, students)
        for problem, features in ((own, lesson.rows), (gated, nothing), (own, wider))
    ]
    (svm, threshold, extra), converged = zip(*solved, strict=True)
    return (
        linear_scores(rows, svm[np.newaxis, :-1])[:, 0] + svm[-1],
        gate - threshold[-1],
        linear_scores(_beside(rows, gate), extra[np.newaxis, :-1])[:, 0] + extra[-1],
        all(converged),
    )


def _beside(rows, column):
    """Rows with one more feature."""
    if sp.issparse(rows):
        return sp.csr_array(sp.hstack([rows, sp.csr_array(column[:, np.newaxis])]))
    return np.ascontiguousarray(np.column_stack([rows, column]))


def _weights(problem, rows, students):
    """Weights of the features and of the constant, and whether the solver converged."""
    explicit = linear_problem(problem, rows, float(students.fit_intercept))
    solution = solve_dual(explicit, gap_tol=students.tol, max_iter=students.max_iter)
    return solution.weights, solution.converged

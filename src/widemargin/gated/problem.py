"""What students learn from, and the problem that each of them solves.

A student with weights theta says yes where S^y(x) >= <theta, phi(x)>. With the truth z = +1 or -1,
weights w and degrees of difficulty d it is trained on

    min over theta   1/2 ||theta||^2  +  sum_i cost_i max(0, margin + z_i (<theta, phi_i> - S_i^y))
    cost_i = C w_i / d_i

which is the library's hinge problem with sign -z, margin - z S^y and cost C w / d. There is no free
intercept: it would be the weight of a constant feature, regularised with the others.
"""

from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import smo_options
from widemargin._base.sklearn_compat import safe_indexing
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import canonical_csr, validate_weights
from widemargin.gated import teacher as teaching
from widemargin.gated.difficulty import (
    are_truth_values,
    check_labels,
    check_scores,
    column_names,
    degrees_of,
    in_order,
    without_missing,
)
from widemargin.kernels import GramCache, KernelFunction, KernelGram
from widemargin.kernels.parameters import effective_gamma
from widemargin.solvers import HingeProblem, solve_hinge
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import Hinge
from widemargin.solvers.hinge.majorize_minimize import majorize_minimize

_BLOCK_BYTES = 1 << 25
_ROUNDING = 1e-10


@dataclass(frozen=True)
class Lesson:
    """Checked training data, and all that the students of one fit share."""

    rows: np.ndarray
    """phi of the training rows."""
    index: np.ndarray
    """Which of the rows given they are: those of positive weight."""
    y: np.ndarray
    weight: np.ndarray | None
    teacher: object
    """Fitted, or None where there are scores only."""
    scores: np.ndarray
    """The teacher's, of shape (n, n_classes)."""
    classes: np.ndarray
    """Labels of their columns."""
    forms: tuple | None
    """Coefficients and intercepts of a linear teacher over the rows given."""
    joint_forms: tuple | None
    """The same over phi, where students can be merged with it."""
    features: object
    """Fitted map from rows to phi, or None where phi is the row."""
    function: KernelFunction
    cache: GramCache


def prepare(student, X, y, sample_weight, teacher_scores, targets):
    """Check the data, train what has to be trained, and ask the teacher.

    ``targets`` are the classes that get a student; None for all in y.
    """
    if student.features is not None and student.kernel != "linear":
        raise ValueError(
            f"features and kernel={student.kernel!r} exclude each other: features are the map of a "
            "linear student, a kernel has its own. Leave out one of them."
        )
    if student.solver == "mm" and student.kernel == "sigmoid":
        raise ValueError("solver='mm' needs a positive semidefinite kernel, got 'sigmoid'.")
    given, checked, y = _checked(student, X, y)
    labels, names = np.unique(y), column_names(teacher_scores)
    if teacher_scores is not None:
        teacher_scores = check_scores(teacher_scores)
        check_consistent_length(y, teacher_scores)
    kept, weight = validate_weights(sample_weight, y)
    index = np.arange(len(y))[kept]
    asks_folds = student.cv is not None and teacher_scores is None
    folds = teaching.folds_among(index, student.cv, given, y) if asks_folds else None
    if len(index) < len(y):
        given, y = safe_indexing(given, index), y[index]
        checked = None if checked is None else checked[index]
        teacher_scores = None if teacher_scores is None else teacher_scores[index]
    if len(np.unique(y)) < 2:
        raise ValueError(
            "y must hold at least two classes; the number of classes has to be greater than one; "
            "got 1 class."
        )
    teacher, classes = _teacher(student, given, y, weight, teacher_scores, labels)
    if teacher_scores is None:
        scores = _ask(student, teacher, classes, given, y, weight, folds)
    else:
        scores = in_order(teacher_scores, names, classes)
    features, rows = _features(student, teacher, given, checked, y, weight)
    forms, joint_forms = _linear_forms(student, teacher, features, given)
    function = kernel_function(student, rows, weight)
    gram = KernelGram(function, rows)
    if not gram.is_finite():
        raise ValueError(
            "X holds values that are too large for the kernel and need to be preprocessed, for "
            "example by StandardScaler."
        )
    n_students = len(np.unique(y) if targets is None else targets)
    jobs = min(effective_n_jobs(student.n_jobs), n_students)
    cache = GramCache(gram, student.cache_size * 2**20, shared=n_students > 1, jobs=jobs)
    return Lesson(
        rows, index, y, weight, teacher, scores, classes, forms, joint_forms, features, function,
        cache,
    )  # fmt: skip


def problem_of(student, lesson, column, truth):
    """The student's problem as the library's hinge problem."""
    degrees = degrees_of(student.difficulty, lesson.scores, truth, column, student.decay)
    weight = 1.0 if lesson.weight is None else lesson.weight
    scores = truth * lesson.scores[:, column]
    left = student.margin - scores
    # A support vector of the teacher is on the margin but for rounding: it asks for nothing.
    left[np.abs(left) <= _ROUNDING * (student.margin + np.abs(scores))] = 0.0
    return HingeProblem(
        lesson.cache.of(),
        sign=-truth,
        margin=left,
        cost=student.C * weight / degrees,
        intercept=False,
    )


def solve(student, lesson, problem):
    """The problem's Solution, by the student's solver."""
    linear, bias = student.kernel == "linear", float(student.fit_intercept)
    options = {"gap_tol": student.tol, "max_iter": student.max_iter}
    if student.solver == "mm":
        return majorize_minimize(problem, lesson.rows if linear else None, bias, **options)
    if linear and problem.size > smo_options.dense_size:
        return solve_dual(linear_problem(problem, lesson.rows, bias), **options)
    if not lesson.function.positive_semidefinite:
        return solve_hinge(problem, tol=student.tol, max_iter=student.max_iter)
    return solve_hinge(problem, **options)


def linear_problem(problem, rows, bias):
    """Return a hinge problem over a linear kernel as a problem over the features."""
    return LinearProblem(rows, problem.sign, problem.cost, Hinge(), bias, problem.margin)


def feature_rows(features, X):
    """phi of rows that are given to a student's map."""
    rows = check_array(features.transform(X), accept_sparse="csr", dtype=np.float64, order="C")
    return canonical_csr(rows)


def combine(rows, dual):
    """theta = sum_i dual_i phi_i of linear students."""
    with single_threaded_blas():
        return np.asarray(rows.T @ dual)


def kernel_sums(function, support, dual, X):
    """sum_j dual_jk k(x_i, support_j) of all rows i and students k."""
    gram = KernelGram(function, support)
    step = max(1, _BLOCK_BYTES // (8 * max(1, support.shape[0])))
    parts = for_each(
        lambda first: tiled_multiply(gram.against(X[first : first + step]), dual),
        range(0, X.shape[0], step),
    )
    return np.concatenate(parts)


class _WithConstant(KernelFunction):
    """A kernel plus one: that of its features and a constant one."""

    def diagonal(self, X):
        return super().diagonal(X) + 1.0

    def matrix(self, X, Y, X_norms=None, Y_norms=None, out=None):
        out = super().matrix(X, Y, X_norms, Y_norms, out)
        out += 1.0
        return out


def kernel_function(student, rows, weight):
    """The student's kernel, that of a constant feature included."""
    gamma = 1.0
    if student.kernel != "linear":
        gamma = effective_gamma(student.gamma, rows, weight)
    kind = _WithConstant if student.fit_intercept else KernelFunction
    return kind(student.kernel, gamma, student.degree, student.coef0)


def _checked(student, X, y):
    """Rows as the teacher and a map get them, the same as an array (where there is no map), y."""
    y = without_missing(y)
    if student.features is None:
        checked, y = validate_data(student, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        checked = canonical_csr(checked)
    else:
        (X,) = indexable(X)
        X, y = validate_data(student, X, y, skip_check_array=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        checked = None
    check_classification_targets(y)
    return as_given(X, checked), checked, y


def as_given(X, checked):
    """Rows for teachers and maps: they get the names of columns where there are any."""
    return X if checked is None or hasattr(X, "columns") else checked


def _teacher(student, given, y, weight, teacher_scores, labels):
    """The fitted teacher (None without one) and the classes that it knows."""
    teacher, named = student.teacher, student.classes
    if teacher_scores is None or teacher is not None:
        teacher = teaching.fitted(teacher, given, y, weight)
    if named is not None:
        classes = column_or_1d(named)
        if len(np.unique(classes)) < len(classes):
            raise ValueError(f"classes must be different labels, got {classes.tolist()}.")
    else:
        classes = labels if teacher is None else teaching.known_classes(teacher)
    if teacher is not None and not np.array_equal(classes, teaching.known_classes(teacher)):
        raise ValueError(
            f"classes must be those of the teacher, {list(teacher.classes_)}, got {list(classes)}: "
            "leave them out."
        )
    check_labels(y, classes)
    return teacher, classes


def _ask(student, teacher, classes, given, y, weight, folds):
    """The teacher's scores of the rows."""
    if folds is None:
        return teaching.class_scores(teacher, given)
    if are_truth_values(y, classes):
        raise ValueError(
            "y must hold labels for cv, by which the teacher is trained on folds, got truth values."
        )
    return teaching.out_of_fold_scores(student.teacher, given, y, weight, folds, classes)


def _features(student, teacher, given, checked, y, weight):
    """The fitted map (None without one) and phi of the rows."""
    features = student.features
    if features is None:
        return None, checked
    if isinstance(features, str):
        features = Nothing() if features == "constant" else _teachers_map(teacher)
    elif not teaching.is_fitted(features):
        weighted = weight is not None and has_fit_parameter(features, "sample_weight")
        weights = {"sample_weight": weight} if weighted else {}
        features = clone(features).fit(given, y, **weights)
    return features, feature_rows(features, given)


def _teachers_map(teacher):
    """What the last step of a teacher pipeline sees."""
    pipeline = teaching.unwrapped(teacher)
    if not isinstance(pipeline, Pipeline) or len(pipeline) < 2:
        got = type(teacher).__name__ if pipeline is not None else "teacher_scores only"
        raise ValueError(
            "features='teacher' needs a teacher that is a Pipeline of at least two steps, whose "
            f"last step sees the features that the others make; got {got}."
        )
    return pipeline[:-1]


def _linear_forms(student, teacher, features, given):
    """A linear teacher's forms over the rows given and over phi, each None if it has none."""
    if teacher is None:
        return None, None
    forms = teaching.linear_forms(teacher, given)
    if student.kernel != "linear":
        return forms, None
    if features is None:
        return forms, forms
    if _same_map(features, teacher):
        return forms, teaching.mapped_forms(teacher, given)
    return forms, None


def _same_map(features, teacher):
    """Whether a map consists of the very steps before a teacher's last one."""
    teacher, features = teaching.unwrapped(teacher), teaching.unwrapped(features)
    if not isinstance(teacher, Pipeline):
        return False
    own = [s for _, s in features.steps] if isinstance(features, Pipeline) else [features]
    steps = [step for _, step in teacher.steps[:-1]]
    return len(own) == len(steps) and all(a is b for a, b in zip(own, steps, strict=True))


class Nothing:
    """The map to no features at all: what is left of a student is a threshold on the gate."""

    def transform(self, X):
        return np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), 1))

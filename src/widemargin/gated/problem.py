"""Training of students: the data that all students of a fit share, and the problem of each.

A student with weights theta predicts its class where S^y(x) >= <theta, phi(x)>. With z = +1 for
samples of the target class and -1 for all others, sample weights w and degrees of difficulty d it
solves

    min over theta   1/2 ||theta||^2  +  sum_i cost_i max(0, margin + z_i (<theta, phi_i> - S_i^y))
    cost_i = C w_i / d_i

which is the library's hinge problem with sign -z, margin - z S^y and cost C w / d. There is no
unregularized intercept: an intercept is the weight of a constant feature.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from widemargin._base.options import gated_options, smo_options
from widemargin._base.sklearn_compat import num_samples
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import check_class_labels, validate_training, validate_weights
from widemargin.gated.difficulty import sample_degrees
from widemargin.gated.labels import (
    align_columns,
    check_labels,
    check_scores,
    column_names,
    is_boolean_target,
    numpy_booleans,
    python_label,
    target_column,
    target_mask,
)
from widemargin.gated.landmarks import inner_products
from widemargin.gated.teacher import (
    Coefficients,
    Samples,
    class_scores,
    fit_teacher,
    is_fitted,
    last_step_coefficients,
    linear_coefficients,
    out_of_fold_scores,
    restrict_folds,
    teacher_classes,
    unwrap,
    validated_array,
)
from widemargin.kernels import GramCache
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers import HingeProblem, Solution, solve_hinge
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import Hinge
from widemargin.solvers.hinge.majorize_minimize import majorize_minimize


@dataclass(frozen=True)
class TrainingData:
    """Validated training data, and all that the students of one fit share.

    Attributes
    ----------
    phi : ndarray or CSR matrix of shape (n_samples, n_phi)
        Features of the training samples.
    index : ndarray of shape (n_samples,)
        Their indices among the samples passed to fit: those of positive weight.
    y : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,) or None
    teacher : fitted estimator, or None if only its scores are known
    scores : ndarray of shape (n_samples, n_classes)
        Scores of the teacher.
    classes : ndarray of shape (n_classes,)
        Labels of their columns.
    functions : Coefficients or None
        Decision functions of a linear teacher over the samples passed to fit.
    phi_functions : Coefficients or None
        The same over phi, if students can be merged with the teacher.
    features : fitted transformer or None
        Map from samples to phi, None for the identity.
    kernel : KernelParameters
    cache : GramCache
    """

    phi: Any
    index: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    teacher: Any
    scores: np.ndarray
    classes: np.ndarray
    functions: Coefficients | None
    phi_functions: Coefficients | None
    features: Any
    kernel: KernelParameters
    cache: GramCache


class StudentFit(NamedTuple):
    """The solution of one student.

    Attributes
    ----------
    column : int
        Column of the target class in the teacher's scores.
    solution : Solution
    theta : ndarray of shape (n_phi,) or None
        Weights of a linear student.
    issues : list of str
        Names of the warnings that apply, see `widemargin.gated.base`.
    """

    column: int
    solution: Solution
    theta: np.ndarray | None
    issues: list[str]


def prepare_training(
    student: Any, X: Any, y: Any, sample_weight: Any, teacher_scores: Any, targets: Any
) -> TrainingData:
    """Validate the data, fit the teacher and the feature map, and compute the teacher's scores.

    ``targets`` are the classes of the students, None for all classes in y.
    """
    _check_parameters(student)
    samples = _validate(student, X, y)
    X, y = samples.X, samples.y
    labels, names = np.unique(y), column_names(teacher_scores)
    if teacher_scores is not None:
        teacher_scores = check_scores(teacher_scores)
        check_consistent_length(y, teacher_scores)
    kept, weight = validate_weights(sample_weight, y)
    index = np.arange(len(y))[kept]
    uses_folds = student.cv is not None and teacher_scores is None
    folds = restrict_folds(index, student.cv, X, y) if uses_folds else None
    if len(index) < len(y):
        samples = samples.subset(index)
        teacher_scores = None if teacher_scores is None else teacher_scores[index]
    samples = samples._replace(weight=weight)
    n_labels = len(np.unique(samples.y))
    if n_labels < 2:
        raise ValueError(
            "y must contain at least two classes: the number of classes has to be greater than "
            "one; got 1 class."
        )
    teacher, classes = _fitted_teacher(student, samples, labels, teacher_scores is None)
    if teacher_scores is None:
        scores = _training_scores(student, teacher, classes, samples, folds)
    else:
        scores = align_columns(teacher_scores, names, classes)
    features, phi = _fit_features(student, teacher, samples)
    functions, phi_functions = _teacher_functions(student, teacher, features, samples)
    kernel = KernelParameters.of(student, add_constant=student.fit_intercept)
    kernel = kernel.resolve(phi, weight=weight)
    n_students = n_labels if targets is None else len(targets)
    jobs, memory = min(_jobs(student), n_students), student.cache_size * 2**20
    cache = GramCache(kernel.gram(phi), memory, shared=n_students > 1, jobs=jobs)
    return TrainingData(
        phi, index, samples.y, weight, teacher, scores, classes, functions, phi_functions, features,
        kernel, cache,
    )  # fmt: skip


def fit_students(student: Any, data: TrainingData, targets: Any) -> list[StudentFit]:
    """Solve the problems of the students for all targets."""
    columns = [target_column(t, data.classes, data.scores.shape[1]) for t in targets]
    return for_each(lambda column: _fit_student(student, data, column), columns, _jobs(student))


def _jobs(student: Any) -> int:
    return effective_n_jobs(getattr(student, "n_jobs", None))


def _fit_student(student: Any, data: TrainingData, column: int) -> StudentFit:
    sign = target_sign(data, column)
    solution = _solve(student, data, student_problem(student, data, column, sign))
    theta, own = None, np.zeros(len(sign))
    support = np.flatnonzero(solution.dual)
    if student.kernel == "linear":
        theta, intercept = _linear_weights(data.phi, solution.dual), solution.dual.sum()
        own = inner_products(data.phi, theta[np.newaxis])[:, 0] + intercept * student.fit_intercept
    elif len(support):
        dual_coef = solution.dual[np.newaxis, support]
        own = KernelExpansion(data.kernel, data.phi[support], dual_coef).evaluate(data.phi)[:, 0]
    issues = _find_issues(student, data.scores, column, sign, own)
    issues += [] if solution.converged else ["not converged"]
    return StudentFit(column, solution, theta, issues)


def target_sign(data: TrainingData, column: int) -> np.ndarray:
    """Return z: +1 for samples of the class of a column, -1 for all others."""
    sign = np.where(target_mask(data.y, data.classes, column), 1.0, -1.0)
    if abs(sign.sum()) == len(sign):
        raise ValueError(
            f"y must contain samples of the target class {python_label(data.classes[column])!r} "
            f"and of other classes, got {'only' if sign[0] > 0 else 'no'} samples of it."
        )
    return sign


def student_problem(
    student: Any, data: TrainingData, column: int, sign: np.ndarray
) -> HingeProblem:
    """Return the problem of a student as a hinge problem."""
    degrees = sample_degrees(student.difficulty, data.scores, sign, column, student.decay)
    weight = 1.0 if data.weight is None else data.weight
    scores = sign * data.scores[:, column]
    missing = student.margin - scores
    # Support vectors of the teacher are on the margin up to rounding: they need nothing.
    rounding = gated_options.margin_rounding * (student.margin + np.abs(scores))
    missing[np.abs(missing) <= rounding] = 0.0
    cost = student.C * weight / degrees
    return HingeProblem(data.cache.of(), -sign, missing, cost, intercept=False)


def _solve(student: Any, data: TrainingData, problem: HingeProblem) -> Solution:
    linear, bias = student.kernel == "linear", float(student.fit_intercept)
    options = {"gap_tol": student.tol, "max_iter": student.max_iter}
    if student.solver == "majorize-minimize":
        return majorize_minimize(
            problem, features=data.phi if linear else None, bias=bias, **options
        )
    if linear and problem.size > smo_options.dense_size:
        return solve_dual(linear_problem(problem, data.phi, bias), **options)
    if not data.kernel.positive_semidefinite:
        return solve_hinge(problem, tol=student.tol, max_iter=student.max_iter)
    return solve_hinge(problem, **options)


def linear_problem(problem: HingeProblem, phi: Any, bias: float) -> LinearProblem:
    """Return a hinge problem as one over the weights of the features phi and a constant one."""
    return LinearProblem(phi, problem.sign, problem.cost, Hinge(), bias, problem.margin)


def _linear_weights(phi: Any, dual: np.ndarray) -> np.ndarray:
    """Return theta = sum_i dual_i phi_i of a linear student."""
    with single_threaded_blas():
        return np.asarray(phi.T @ dual)


def _find_issues(
    student: Any, scores: np.ndarray, column: int, sign: np.ndarray, own: np.ndarray
) -> list[str]:
    """Return the names of the warnings that apply to a student with the values <theta, phi_i>."""
    gate, zero = scores[:, column], gated_options.zero_scores
    predicted = gate - own >= 0.0
    no_theta = np.abs(own).max() <= zero * np.abs(gate).max()
    margin_met = (sign * gate).min() >= student.margin * (1.0 - zero)
    found = {
        "zero scores": np.abs(scores).max() <= zero,
        "margin met": no_theta and margin_met,
        "zero theta": no_theta and not margin_met,
        "constant": predicted.all() or not predicted.any(),
    }
    return [name for name, applies in found.items() if applies]


def _check_parameters(student: Any) -> None:
    if student.features is not None and student.kernel != "linear":
        raise ValueError(
            f"features cannot be combined with kernel={student.kernel!r}: they are the feature map "
            "of a linear student. Use kernel='linear' or features=None."
        )
    if student.solver == "majorize-minimize" and student.kernel == "sigmoid":
        raise ValueError(
            "solver='majorize-minimize' needs a positive semidefinite kernel, got 'sigmoid'. Use "
            "solver='dual'."
        )


def _validate(student: Any, X: Any, y: Any) -> Samples:
    y = numpy_booleans(y)
    if student.features is None:
        values, y = validate_training(student, X, y)
        return Samples(given_samples(X, values), values, y)
    (X,) = indexable(X)
    X, y = validate_data(student, X, y, skip_check_array=True)
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    check_class_labels(y)
    return Samples(X, None, y)


def given_samples(X: Any, values: Any) -> Any:
    """Return samples for teachers and feature maps: a DataFrame as it is, else the array."""
    return X if hasattr(X, "columns") else values


def _fitted_teacher(
    student: Any, samples: Samples, labels: np.ndarray, needed: bool
) -> tuple[Any, np.ndarray]:
    """Return the fitted teacher (None without one) and the classes of its scores."""
    teacher = student.teacher
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


def _training_scores(
    student: Any, teacher: Any, classes: np.ndarray, samples: Samples, folds: list | None
) -> np.ndarray:
    """Return the teacher's scores of the training samples, out of fold if there are folds."""
    if folds is None:
        return class_scores(teacher, samples.X, samples.values)
    if is_boolean_target(samples.y, classes):
        raise ValueError(
            "y must contain class labels if cv is set, because the teacher is fitted to folds; got "
            "booleans."
        )
    return out_of_fold_scores(student.teacher, samples, folds, classes)


def _fit_features(student: Any, teacher: Any, samples: Samples) -> tuple[Any, Any]:
    """Return the fitted feature map (None for the identity) and phi of the samples."""
    X, values, y, weight = samples
    features = student.features
    if features is None:
        return None, values
    if isinstance(features, str):
        features = NoFeatures() if features == "constant" else _teacher_features(teacher)
    elif not is_fitted(features):
        weighted = weight is not None and has_fit_parameter(features, "sample_weight")
        weights = {"sample_weight": weight} if weighted else {}
        features = clone(features).fit(X, y, **weights)
    return features, map_features(features, X)


def map_features(features: Any, X: Any) -> Any:
    """Return phi of samples as a validated array."""
    return validated_array(features.transform(X))


def _teacher_features(teacher: Any) -> Pipeline:
    """Return the steps before the last one of a teacher pipeline."""
    pipeline = unwrap(teacher)
    if not isinstance(pipeline, Pipeline) or len(pipeline) < 2:
        got = type(teacher).__name__ if pipeline is not None else "teacher_scores only"
        raise ValueError(
            "features='teacher' needs a teacher that is a Pipeline of at least two steps, the "
            f"input of whose last step are the features; got {got}."
        )
    return pipeline[:-1]


def _teacher_functions(
    student: Any, teacher: Any, features: Any, samples: Samples
) -> tuple[Coefficients | None, Coefficients | None]:
    """Return a linear teacher's functions over the samples and over phi, None where not linear."""
    if teacher is None:
        return None, None
    functions = linear_coefficients(teacher, samples.X, samples.values)
    if student.kernel == "linear" and features is None:
        return functions, functions
    if student.kernel == "linear" and _are_teacher_steps(features, teacher):
        return functions, last_step_coefficients(teacher, samples.X)
    return functions, None


def _are_teacher_steps(features: Any, teacher: Any) -> bool:
    """Return whether a map consists of the very steps before the last one of a teacher."""
    teacher, features = unwrap(teacher), unwrap(features)
    if not isinstance(teacher, Pipeline):
        return False
    own = [s for _, s in features.steps] if isinstance(features, Pipeline) else [features]
    steps = [step for _, step in teacher.steps[:-1]]
    return len(own) == len(steps) and all(a is b for a, b in zip(own, steps, strict=True))


class NoFeatures:
    """Feature map to a single zero, which leaves a student with a threshold on the gate."""

    def transform(self, X: Any) -> np.ndarray:
        """Return a column of zeros."""
        return np.zeros((num_samples(X), 1))

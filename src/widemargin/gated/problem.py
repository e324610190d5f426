"""Training of students: the data that all students of a fit share, and the problem of each.

A student with weights theta predicts its class where S^y(x) >= <theta, phi(x)>. With z = +1 for
samples of the target class and -1 for all others, sample weights w and degrees of difficulty d it
solves

    min over theta   1/2 ||theta||^2  +  sum_i cost_i max(0, margin + z_i (<theta, phi_i> - S_i^y))
    cost_i = C w_i / d_i

which is the library's hinge problem with sign -z, margin - z S^y and cost C w / d. There is no
unregularized intercept: an intercept is the weight of a constant feature.
"""

from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.validation import check_consistent_length, has_fit_parameter, validate_data

from widemargin._base.callbacks import FitProgress
from widemargin._base.checkpoint import FitCheckpoint
from widemargin._base.options import gated_options as options
from widemargin._base.options import smo_options
from widemargin._base.sklearn_compat import num_samples
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import (
    canonical_csr,
    check_class_labels,
    check_index,
    check_several_classes,
    validate_predict,
    validate_training,
    validate_weights,
)
from widemargin.gated.budget import maps_within
from widemargin.gated.distillation import distill_scores, landmark_map
from widemargin.gated.labels import (
    align_columns,
    check_scores,
    is_boolean_target,
    numpy_booleans,
    target_column,
)
from widemargin.gated.landmarks import inner_products
from widemargin.gated.strength import (
    Choice,
    FoldQuality,
    choose_strength,
    solve_linear,
    student_costs,
)
from widemargin.gated.teacher import (
    Coefficients,
    Samples,
    class_scores,
    fitted_teacher,
    is_fitted,
    is_fitted_teacher,
    last_step_coefficients,
    linear_coefficients,
    out_of_fold_scores,
    restrict_folds,
    unwrap,
    validated_array,
)
from widemargin.kernels import GramCache
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers import HingeProblem, Solution, solve_hinge
from widemargin.solvers.hinge.majorize_minimize import majorize_minimize


class TrainingData:
    """Validated training data, and all that the students of one fit share.

    The constructor validates the data, fits the teacher and computes its scores; `prepare` does the
    rest. ``targets`` are the classes of the students, None for all classes in y.

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
    strength : float
        Factor of a distilled gate, 1 for others.
    C : float
        Regularization parameter.
    in_sample : bool
        Whether the scores are those of a teacher of its own training samples.
    chosen : bool
        Whether the gate or C were chosen in folds.
    features : fitted transformer or None
        Map from samples to phi, None for the identity.
    kernel : KernelParameters
    cache : GramCache
    """

    def __init__(
        self, student, X, y, sample_weight, teacher_scores, targets, unlabeled=None, metadata=None
    ) -> None:
        _check_parameters(student, unlabeled)
        samples = _validate(student, X, y)._replace(metadata=metadata)
        labels, raw_scores = np.unique(samples.y), teacher_scores
        if teacher_scores is not None:
            teacher_scores = check_scores(teacher_scores)
            check_consistent_length(samples.y, teacher_scores)
            check_index(X, raw_scores, "teacher_scores")
        retained, self.weight = validate_weights(sample_weight, samples.y)
        self.index = np.arange(len(samples.y))[retained]
        computed = teacher_scores is None
        uses_folds = student.cv is not None and computed
        self.in_sample = computed and not uses_folds and not is_fitted_teacher(student.teacher)
        self.chosen = False
        folds = restrict_folds(self.index, student.cv, samples) if uses_folds else None
        if len(self.index) < len(samples.y):
            samples = samples.subset(self.index)
        samples = samples._replace(weight=self.weight)
        self.y = samples.y
        check_several_classes(len(np.unique(self.y)))
        self.teacher, self.classes = fitted_teacher(student, samples, labels, computed)
        if computed:
            self.scores = self._teacher_scores(student, samples, folds)
        else:
            self.scores = align_columns(teacher_scores[self.index], raw_scores, self.classes)
        self._arguments = student, samples, unlabeled, targets

    def prepare(self, checkpoint: FitCheckpoint | None = None) -> "TrainingData":
        """Fit the feature map, choose the gate and C, and resolve the kernel.

        The folds in which gate and C are chosen are tasks of the checkpoint.
        """
        student, samples, unlabeled, targets = self._arguments
        del self._arguments
        self._checkpoint = FitCheckpoint(None, "") if checkpoint is None else checkpoint
        self.strength, self.C = 1.0, requested_cost(student)
        if student.gate == "distilled":
            self._choose_gate(student, samples, unlabeled, targets)
        else:
            self.features, self.phi = _fit_features(student, self.teacher, samples)
            self.functions, self.phi_functions = self._teacher_functions(student, samples)
            if self.C == "auto":
                self.C = self._choose(student, targets, (1.0,)).C
        kernel = KernelParameters.of(student, add_constant=student.fit_intercept)
        self.kernel = kernel.resolve(self.phi, weight=self.weight)
        n_students = len(np.unique(self.y) if targets is None else targets)
        jobs, memory = min(_jobs(student), n_students), student.cache_size * 2**20
        gram = self.kernel.gram(self.phi)
        self.cache = GramCache(gram, memory, shared=n_students > 1, jobs=jobs)
        return self

    def _teacher_scores(self, student: Any, samples: Samples, folds: list | None) -> np.ndarray:
        """Return the teacher's scores of the training samples, out of fold if there are folds."""
        if folds is None:
            return class_scores(self.teacher, samples.X, samples.values)
        if is_boolean_target(self.y, self.classes):
            raise ValueError(
                "y must contain class labels if cv is set, because the teacher is fitted to folds; "
                "got booleans."
            )
        return out_of_fold_scores(student.teacher, samples, folds, self.classes)

    def _choose_gate(self, student: Any, samples: Samples, unlabeled: Any, targets: Any) -> None:
        """Replace the teacher's scores by linear functions of phi, fitted to them.

        With a budget, phi is the best of the feature maps within it.
        """
        teacher_scores, self.functions = self.scores, None
        fitted = [_fit_features(student, self.teacher, samples)]
        if student.budget is not None:
            X, values = samples.X, samples.values
            maps = maps_within(student.budget, X, values)
            fitted = [(f, values if f is None else map_features(f, X)) for f in maps]
        more = self._score_unlabeled(student, unlabeled)
        strengths: tuple[float, ...] = (student.gate_strength,)
        if student.gate_strength == "auto":
            strengths = options.strengths
        chosen: Any = None
        for number, (features, phi) in enumerate(fitted):
            self.features, self.phi = features, phi
            functions = self._distill(teacher_scores, more)
            self.scores = functions.evaluate(phi)
            choice = self._choose(student, targets, strengths, len(fitted) > 1, number)
            if chosen is None or choice.quality > chosen[0].quality:
                chosen = choice, features, phi, functions
        choice, self.features, self.phi, functions = chosen
        self.strength, self.C, _ = choice
        self.phi_functions = Coefficients(*[self.strength * array for array in functions])
        self.scores = self.phi_functions.evaluate(self.phi)

    def _choose(
        self,
        student: Any,
        targets: Any,
        strengths: tuple[float, ...],
        compared: bool = False,
        number: int = 0,
    ) -> Choice:
        """Return the best strength of the gate and C, in folds if there are several.

        With ``compared``, the quality of a single candidate is evaluated as well. ``number`` is
        that of the feature map.
        """
        cost = requested_cost(student)
        costs = options.auto_costs if cost == "auto" else (cost,)
        targets = np.unique(self.y) if targets is None else targets
        # Booleans for several targets are an error that is raised later.
        missing_labels = is_boolean_target(self.y, self.classes) and len(targets) > 1
        if missing_labels or not (compared or len(strengths) * len(costs) > 1):
            return Choice(strengths[0], costs[0], 0.0)
        self.chosen = True
        columns = [target_column(t, self.classes, self.scores.shape[1]) for t in targets]
        run = partial(self._checkpoint.run, kind=FoldQuality)

        def evaluate(column, compute):
            return run(f"folds.{number}.{column}", lambda task: compute())

        return choose_strength(student, self, columns, (strengths, costs), evaluate, _jobs(student))

    def _score_unlabeled(self, student: Any, unlabeled: Any) -> tuple | None:
        """Return unlabeled samples and the teacher's scores of them."""
        if unlabeled is None:
            return None
        if self.teacher is None:
            raise ValueError(
                "unlabeled needs a teacher to score the samples, got teacher_scores only. Pass "
                "teacher too."
            )
        try:
            X, values = prediction_samples(student, unlabeled)
        except ValueError as error:
            raise ValueError(f"unlabeled must be samples like those of X: {error}") from error
        return X, values, class_scores(self.teacher, X, values)

    def _distill(self, scores: np.ndarray, unlabeled: tuple | None) -> Coefficients:
        """Return linear functions of phi, fitted to the scores of all samples."""
        phi, weight = self.phi, self.weight
        if unlabeled is not None:
            X, values, more_scores = unlabeled
            more = values if self.features is None else map_features(self.features, X)
            if sp.issparse(more) and not sp.issparse(phi):
                more = more.toarray()
            both = [phi, more]
            phi = sp.csr_array(sp.vstack(both)) if sp.issparse(phi) else np.vstack(both)
            scores = np.vstack([scores, more_scores])
            if weight is not None:
                weight = np.concatenate([weight, np.ones(len(scores) - len(weight))])
        return distill_scores(phi, scores, weight)

    def _teacher_functions(self, student: Any, samples: Samples) -> tuple:
        """Return a linear teacher's functions over the samples and over phi, None if not linear."""
        if self.teacher is None:
            return None, None
        functions = linear_coefficients(self.teacher, samples.X, samples.values)
        if student.kernel != "linear":
            return functions, None
        if self.features is None:
            return functions, functions
        return functions, last_step_coefficients(self.teacher, self.features, samples.X)


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


def fit_students(
    student: Any, data: TrainingData, targets: Any, progress: FitProgress | None = None
) -> list[StudentFit]:
    """Solve the problems of the students for all targets, each as a task of the callbacks."""
    columns = [target_column(t, data.classes, data.scores.shape[1]) for t in targets]
    checkpoint = FitCheckpoint(None, "") if progress is None else progress.checkpoint

    def fit(number: int) -> StudentFit:
        def solved(report=None) -> StudentFit:
            problem = student_problem(student, data, columns[number])

            def solve(task):
                return _solve(student, data, problem, report, task)

            solution = checkpoint.run(f"student.{number}", solve, Solution)
            return _student_fit(student, data, columns[number], problem, solution)

        if progress is None or not progress.active:
            return solved()
        with progress.task(number) as stop:
            return solved(lambda _: stop())

    return for_each(fit, range(len(columns)), _jobs(student))


def _jobs(student: Any) -> int:
    return effective_n_jobs(getattr(student, "n_jobs", None))


def _student_fit(
    student: Any, data: TrainingData, column: int, problem: HingeProblem, solution: Solution
) -> StudentFit:
    sign = -problem.sign
    theta, products = None, np.zeros(len(sign))
    support = np.flatnonzero(solution.dual)
    if student.kernel == "linear":
        with single_threaded_blas():
            theta = np.asarray(data.phi.T @ solution.dual)
        intercept = solution.dual.sum() * student.fit_intercept
        products = inner_products(data.phi, theta[np.newaxis])[:, 0] + intercept
    elif len(support):
        dual_coef = solution.dual[np.newaxis, support]
        products = KernelExpansion(data.kernel, data.phi[support], dual_coef).evaluate(data.phi)[
            :, 0
        ]
    issues = _find_issues(student, data.scores, column, sign, products)
    issues += [] if solution.converged else ["not converged"]
    return StudentFit(column, solution, theta, issues)


def student_problem(student: Any, data: TrainingData, column: int) -> HingeProblem:
    """Return the problem of a student as a hinge problem."""
    sign, missing, cost = student_costs(student, data, column, data.C, data.scores)
    return HingeProblem(data.cache.of(), -sign, missing, cost, intercept=False)


def _solve(
    student: Any, data: TrainingData, problem: HingeProblem, report: Any, task: Any
) -> Solution:
    linear = student.kernel == "linear"
    limits = {"gap_tol": student.tol, "max_iter": student.max_iter, "report": report}
    if student.solver == "majorize-minimize":
        phi, bias = data.phi if linear else None, float(student.fit_intercept)
        return majorize_minimize(problem, features=phi, bias=bias, **limits)
    if linear and problem.size > smo_options.dense_size:
        return solve_linear(student, problem, data.phi, report, task)
    if not data.kernel.positive_semidefinite:
        limits["tol"] = limits.pop("gap_tol")
    return solve_hinge(problem, **limits, checkpoint=task)


def _find_issues(student: Any, scores: Any, column: int, sign: Any, products: Any) -> list[str]:
    """Return the names of the warnings that apply to a student with the values <theta, phi_i>."""
    gate, zero = scores[:, column], options.zero_scores
    predicted = gate - products >= 0.0
    no_theta = np.abs(products).max() <= zero * np.abs(gate).max()
    margin_met = (sign * gate).min() >= student.margin * (1.0 - zero)
    missed = (sign * (gate - products)).max() < student.margin * (1.0 - zero)
    checks = {
        "zero scores": np.abs(scores).max() <= zero and student.gate == "teacher",
        "margin met": no_theta and margin_met,
        "zero theta": no_theta and not margin_met,
        "constant": predicted.all() or not predicted.any(),
        # A small C has the same effect at any margin, so that only a large margin is suspicious.
        "margin not met": missed and not no_theta and student.margin > 1.0,
    }
    return [name for name, applies in checks.items() if applies]


def requested_cost(student: Any) -> Any:
    """Return C of a student, a number or "auto", with its default resolved."""
    if student.C is not None:
        return student.C
    return "auto" if student.gate == "distilled" else 1.0


def _check_parameters(student: Any, unlabeled: Any) -> None:
    if isinstance(student.features, bool):
        raise ValueError(
            f"features must be a transformer or a number of landmarks, got {student.features}."
        )
    if student.gate != "distilled" and student.gate_strength != "auto":
        raise ValueError(
            "gate_strength is that of a distilled gate, got "
            f"gate_strength={student.gate_strength!r} and gate={student.gate!r}. Use "
            "gate='distilled' or gate_strength='auto'."
        )
    if student.gate == "distilled" and student.kernel != "linear":
        raise ValueError(
            f"gate='distilled' needs kernel='linear', got {student.kernel!r}. Use features=Nystroem"
            "(...) or a number of landmarks for a nonlinear student."
        )
    if (
        student.gate == "distilled"
        and isinstance(student.features, str)
        and student.features == "constant"
    ):
        raise ValueError(
            "gate='distilled' needs features to distill the teacher into, got "
            "features='constant'. Use features=None or a number of landmarks."
        )
    if student.C == "auto" and student.kernel != "linear":
        raise ValueError(
            f"C='auto' needs kernel='linear', got {student.kernel!r}. Set C, or use GridSearchCV."
        )
    if student.budget is not None and (student.gate != "distilled" or student.features is not None):
        raise ValueError(
            "budget chooses the features of students with gate='distilled' and features=None, got "
            f"gate={student.gate!r} and features={student.features!r}."
        )
    if student.budget is not None and student.checkpoint is not None:
        raise ValueError(
            "checkpoint cannot be used with budget: the features that are fast enough are measured "
            "again by the fit that resumes, and may be others. Set features."
        )
    if unlabeled is not None and student.gate != "distilled":
        raise ValueError(
            f"unlabeled samples are used by gate='distilled' only, got gate={student.gate!r}."
        )
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
        try:
            values, y = validate_training(student, X, y)
        except ValueError as error:
            raise _explain_texts(error) from error
        return Samples(teacher_samples(X, values), values, y)
    (X,) = indexable(X)
    X, y = validate_data(student, X, y, skip_check_array=True)
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    check_class_labels(y)
    return Samples(X, None, y)


def _explain_texts(error: ValueError) -> ValueError:
    """Return the error about X, with a remedy if X contains texts or categories."""
    if "could not convert" not in str(error):
        return error
    return ValueError(
        f"{error} The features of a student are numbers. If teacher is a pipeline that converts X, "
        "set features='teacher', or features to a transformer such as TfidfVectorizer() or "
        "make_pipeline(TfidfVectorizer(), Nystroem())."
    )


def teacher_samples(X: Any, values: Any) -> Any:
    """Return samples for teachers and feature maps: a DataFrame as it is, else the array."""
    return X if hasattr(X, "columns") else values


def _fit_features(student: Any, teacher: Any, samples: Samples) -> tuple[Any, Any]:
    """Return the fitted feature map (None for the identity) and phi of the samples."""
    X, values, y, weight, _ = samples
    features = student.features
    if features is None:
        return None, values
    if isinstance(features, str):
        features = NoFeatures() if features == "constant" else _teacher_features(teacher)
    elif isinstance(features, Integral):
        try:
            features = landmark_map(int(features), X)
        except ValueError as error:
            raise _explain_texts(error) from error
    elif not is_fitted(features):
        weighted = weight is not None and has_fit_parameter(features, "sample_weight")
        weights = {"sample_weight": weight} if weighted else {}
        features = clone(features).fit(X, y, **weights)
    return features, map_features(features, X)


def prediction_samples(student: Any, X: Any) -> tuple[Any, Any]:
    """Return validated samples for the teacher, and as an array (None with a feature map)."""
    if student.features is None:
        values = canonical_csr(validate_predict(student, X))
        return teacher_samples(X, values), values
    return validate_data(student, X, reset=False, skip_check_array=True), None


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


class NoFeatures:
    """Feature map to a single zero, which leaves a student with a threshold on the gate."""

    def transform(self, X: Any) -> np.ndarray:
        """Return a column of zeros."""
        return np.zeros((num_samples(X), 1))

"""Strength of a distilled gate, and C: what is chosen in folds of the labeled samples.

A distilled gate g is as good as the features are able to express the teacher, and may be worse than
none. A student with the gate s g, for s between 0 (trained on labels alone) and 1, solves the same
problem. The strength s, and C with ``C="auto"``, are those with the best F + AUC out of fold, on
average over the targets, of those whose F is not below the one that labels alone have at their
best C.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from widemargin._base.options import gated_options as options
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.gated.difficulty import sample_degrees
from widemargin.gated.labels import python_label, target_mask
from widemargin.solvers import HingeProblem
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import Hinge
from widemargin.svm.scores import linear_scores


class Choice(NamedTuple):
    """The best candidate.

    Attributes
    ----------
    strength : float
        Factor of the gate.
    C : float
        Regularization parameter.
    quality : float
        F + AUC out of fold, the mean over the targets.
    """

    strength: float
    C: float
    quality: float


@dataclass(frozen=True)
class FoldQuality:
    """Quality of all candidates for one target.

    Attributes
    ----------
    values : ndarray of shape (n_candidates, 2)
        F and AUC out of fold.
    """

    values: np.ndarray


def choose_strength(
    student: Any,
    data: Any,
    columns: list[int],
    grid: tuple[tuple[float, ...], tuple[float, ...]],
    run: Callable[[int, Callable[[], FoldQuality]], FoldQuality],
    jobs: int,
) -> Choice:
    """Return the strength of the gate and C for all students, of equal ones the first.

    Parameters
    ----------
    student : GatedSVC or GatedStudents
    data : TrainingData
        Features, labels, weights, and as scores the gate.
    columns : list of int
        Columns of the targets.
    grid : tuple of two tuples of float
        Strengths and values of C to compare.
    run : callable
        ``run(column, compute)`` returns what ``compute`` returns for the target of a column, or
        what a checkpoint has of it.
    jobs : int
        Number of targets that are evaluated at once, in threads.
    """
    candidates = list(product(*grid))
    folds = Folds(data)

    def evaluated(column):
        return run(column, lambda: compared(column)).values

    def compared(column):
        results = []
        for strength, C in candidates:

            def problem(samples, gate=strength * data.scores, C=C):
                return student_costs(student, data, column, C, gate, samples)

            values = folds.held_out(student, data.phi, problem)
            values += strength * data.scores[folds.tested, column]
            results.append(folds.f_and_auc(values, column))
        return FoldQuality(np.array(results))

    with single_threaded_blas():  # once, and not for every fit
        f, auc = np.mean(for_each(evaluated, columns, jobs), axis=0).T
    labels_alone = np.array([strength == 0.0 for strength, _ in candidates])
    least = f[np.argmax(np.where(labels_alone, f + auc, -1.0))] if labels_alone.any() else 0.0
    best = int(np.argmax(np.where(f >= least, f + auc, -1.0)))
    return Choice(*candidates[best], float(f[best] + auc[best]))


def choose_cost(student: Any, data: Any, column: int, phi: Any, costs: list[float]) -> float:
    """Return the C of an SVM trained on labels alone with the best F + AUC out of fold."""
    if len(costs) == 1:
        return costs[0]
    folds, quality = Folds(data), []
    sign = np.where(target_mask(data.y, data.classes, column), 1.0, -1.0)
    weight = np.ones(len(sign)) if data.weight is None else data.weight
    for C in costs:

        def problem(samples, C=C):
            missing = np.full(len(samples), student.margin)
            return sign[samples], missing, C * weight[samples]

        quality.append(sum(folds.f_and_auc(folds.held_out(student, phi, problem), column)))
    return costs[int(np.argmax(quality))]


class Folds:
    """Folds of the labeled samples in which students are compared."""

    def __init__(self, data: Any):
        self._data = data
        subset = np.unique(np.linspace(0, len(data.y) - 1, options.strength_samples).astype(int))
        fold = _stratified_folds(data.y[subset])
        pairs = [(subset[fold != k], subset[fold == k]) for k in range(options.strength_folds)]
        self.splits = [(train, test) for train, test in pairs if len(train) and len(test)]
        self.tested = np.concatenate([test for _, test in self.splits])

    def held_out(self, student: Any, phi: Any, problem: Callable) -> np.ndarray:
        """Return -<theta, phi> of the tested samples, by students fitted without their folds.

        ``problem`` returns z, the margins and the costs of samples.
        """
        values, bias = [], float(student.fit_intercept)
        for train, test in self.splits:
            sign, missing, cost = problem(train)
            linear = LinearProblem(phi[train], -sign, cost, Hinge(), bias, missing)
            solution: Any = solve_dual(
                linear, gap_tol=options.strength_tol, max_iter=options.strength_passes
            )
            weights = solution.weights
            products = linear_scores(phi[test], weights[np.newaxis, : phi.shape[1]])[:, 0]
            values.append(-products - bias * weights[-1])
        return np.concatenate(values)

    def f_and_auc(self, values: np.ndarray, column: int) -> tuple[float, float]:
        """Return F and AUC of decision values of the tested samples."""
        data = self._data
        positive = target_mask(data.y, data.classes, column)[self.tested]
        weight = np.ones(len(positive)) if data.weight is None else data.weight[self.tested]
        # Constant students have values that differ by rounding errors only.
        return f_and_auc(positive, np.round(values, options.strength_digits), weight)


def f_and_auc(positive: np.ndarray, values: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return F and AUC of decision values, both 0 if all samples are of one kind.

    scikit-learn's metrics take longer than the fits that are compared.
    """
    positive_weight, negative_weight = weight * positive, weight * ~positive
    total = positive_weight.sum()
    if not total or not negative_weight.sum():
        return 0.0, 0.0
    accepted = values >= 0.0
    f = 2.0 * positive_weight[accepted].sum() / (total + weight[accepted].sum())
    _, rank = np.unique(values, return_inverse=True)
    positives, negatives = np.bincount(rank, positive_weight), np.bincount(rank, negative_weight)
    # Of the negative samples with the same value one half counts as lower.
    below = np.cumsum(negatives) - 0.5 * negatives
    return float(f), float(positives @ below / (total * negative_weight.sum()))


def _stratified_folds(y: np.ndarray) -> np.ndarray:
    """Return the fold of each sample: those of a class are dealt in turn."""
    order = np.argsort(y, kind="stable")
    fold = np.empty(len(y), dtype=int)
    fold[order] = np.arange(len(y)) % options.strength_folds
    return fold


def student_costs(
    student: Any, data: Any, column: int, C: float, scores: Any, samples: Any = slice(None)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return z, margin - z S^y and the costs of a student, for some of the samples."""
    # z: +1 for samples of the target class, -1 for all others.
    sign = np.where(target_mask(data.y, data.classes, column), 1.0, -1.0)
    if abs(sign.sum()) == len(sign):
        raise ValueError(
            f"y must contain samples of the target class {python_label(data.classes[column])!r} "
            f"and of other classes, got {'only' if sign[0] > 0 else 'no'} samples of it."
        )
    scores, sign = scores[samples], sign[samples]
    degrees = sample_degrees(student, scores, sign, column)
    weight = 1.0 if data.weight is None else data.weight[samples]
    signed = sign * scores[:, column]
    missing = student.margin - signed
    # Support vectors of the teacher are on the margin up to rounding: they need nothing.
    rounding = options.margin_rounding * (student.margin + np.abs(signed))
    missing[np.abs(missing) <= rounding] = 0.0
    return sign, missing, C * weight / degrees


def solve_linear(
    student: Any, problem: HingeProblem, phi: Any, report: Any = None, checkpoint: Any = None
) -> Any:
    """Solve a hinge problem over the weights of the features phi and a constant one."""
    sign, cost, bias = problem.sign, problem.cost, float(student.fit_intercept)
    linear = LinearProblem(phi, sign, cost, Hinge(), bias, problem.margin)
    limits = {"gap_tol": student.tol, "max_iter": student.max_iter}
    return solve_dual(linear, **limits, report=report, checkpoint=checkpoint)

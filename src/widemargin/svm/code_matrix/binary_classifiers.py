"""Binary classifiers of a code matrix: all in one kernel expansion, or a clone for each column."""

import os
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from widemargin._base.callbacks import FitProgress
from widemargin._base.routing import select_metadata
from widemargin._base.sklearn_compat import safe_split
from widemargin._base.targets import Targets, class_margins, class_weights
from widemargin._base.threads import for_each
from widemargin.kernels import MatrixGram
from widemargin.kernels.dense import SubsetGram
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers import HingeProblem, Solution
from widemargin.svm.code_matrix.codes import one_vs_one
from widemargin.svm.reduction import reduce_to_columns, reduce_to_pairs
from widemargin.svm.svc import SVC
from widemargin.svm.training import Training, fit_binary_problems


class JointClassifiers:
    """The binary `SVC` of all columns, with one kernel cache and one set of support vectors.

    Parameters
    ----------
    estimator : SVC
        The binary classifier.
    matrix : ndarray of shape (n_classes, n_columns)
        Code matrix.
    n_jobs : int or None
        Number of columns trained at once.
    """

    def __init__(self, estimator: SVC, matrix: np.ndarray, n_jobs: int | None):
        self.estimator = clone(estimator)
        self.matrix = matrix
        self.n_jobs = n_jobs
        pairs = one_vs_one(len(matrix)) if len(matrix) > 2 else None
        self.in_pairs = pairs is not None and np.array_equal(matrix, pairs)
        # The subproblems of `reduce_to_pairs` are positive for the first of two classes.
        self.sign = -1.0 if self.in_pairs else 1.0

    def fit(
        self, X: Any, samples: np.ndarray, targets: Targets, progress: FitProgress
    ) -> list[Solution]:
        """Fit all columns to validated samples of positive weight; return the solutions."""
        svc, shape = self.estimator, (self.matrix.shape[1], 2)
        self.class_weight, self.class_margin = np.ones(shape), np.ones(shape)
        if self.in_pairs:
            reduction = reduce_to_pairs(targets.codes, len(self.matrix))
        else:
            reduction = reduce_to_columns(targets.codes, self.matrix)
        training = ColumnTraining(
            **vars(targets.reordered(reduction.order)),
            reduction=reduction,
            order=samples[reduction.order],
            parameters=KernelParameters.of(svc).resolve(X, samples, targets.weight),
            classifiers=self,
        )
        data = {"y": vars(targets), "samples": samples, "matrix": self.matrix}
        # Callbacks are those of the meta-estimator, the file is that of the SVC.
        saved = FitProgress(
            svc, training.n_problems, checkpoint=svc.checkpoint, depends_on=(X, data)
        )
        progress.checkpoint = saved.checkpoint
        progress.checkpoint.is_stopped = lambda: progress.stop_requested
        jobs = effective_n_jobs(self.n_jobs)
        solutions, self.attributes = fit_binary_problems(svc, X, training, jobs, progress)
        return solutions

    def fitted_attributes(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes of the meta-estimator, from those of `support_attributes`.

        Callbacks may evaluate it during the fit.
        """
        classifiers = copy(self)
        classifiers.attributes = attributes
        names = ("objective_", "dual_gap_", "n_iter_")
        return {"_classifiers": classifiers, **{name: attributes[name] for name in names}}

    @property
    def takes_sparse(self) -> bool:
        """Whether the classifiers were fitted to sparse samples."""
        return sp.issparse(self.attributes["support_vectors_"])

    def scores(self, X: Any) -> np.ndarray:
        """Compute the decision functions of all columns at validated samples."""
        return self.sign * self.attributes["_expansion"].evaluate(X)

    def separate(self, **features: Any) -> list[SVC]:
        """Return the fitted `SVC` of each column; ``features`` are further attributes of each."""
        # The file of the checkpoint belongs to all columns.
        parameters = self.estimator.get_params(deep=False) | {"checkpoint": None}
        classifiers = [SVC(**parameters) for _ in self.matrix.T]
        for number, classifier in enumerate(classifiers):
            classifier.__dict__.update(self._attributes(number), **features)
        return classifiers

    def _attributes(self, number: int) -> dict[str, Any]:
        """Return the fitted attributes of the binary `SVC` of a column."""
        joint = self.attributes
        expansion: KernelExpansion = joint["_expansion"]
        dual = self.sign * self._dual(number)
        nonzero = np.flatnonzero(dual)
        nonzero = nonzero[np.argsort(dual[nonzero] > 0, kind="stable")]
        support, vectors = joint["support_"][nonzero], joint["support_vectors_"]
        vectors = vectors[nonzero] if vectors.shape[0] else vectors
        dual_coef, intercept = dual[nonzero][np.newaxis], self.sign * joint["intercept_"][[number]]
        column_expansion = KernelExpansion(
            expansion.parameters,
            expansion.vectors if expansion.parameters.is_pairwise else vectors,
            dual_coef,
            intercept,
            columns=support,
        )
        column_expansion.float32 = expansion.float32
        return {
            **joint,
            **{name: joint[name][[number]] for name in ("objective_", "dual_gap_", "n_iter_")},
            "classes_": np.arange(2),
            "class_weight_": self.class_weight[number],
            "class_margin_": self.class_margin[number],
            "support_": support,
            "support_vectors_": vectors,
            "dual_coef_": type(vectors)(dual_coef) if self.takes_sparse else dual_coef,
            "intercept_": intercept,
            "_n_support": np.bincount(dual[nonzero] > 0, minlength=2).astype(np.int32),
            "_one_vs_one": False,
            "_expansion": column_expansion,
        }

    def _dual(self, number: int) -> np.ndarray:
        """Return the signed dual variables of a column at all support vectors."""
        dual_coef = self.attributes["_expansion"].coefficients
        if not self.in_pairs:
            return dual_coef[number]
        i, j = np.flatnonzero(self.matrix[:, number])
        of_class = np.repeat(np.arange(len(self.matrix)), self.attributes["_n_support"])
        return np.where(of_class == i, dual_coef[j - 1], (of_class == j) * dual_coef[i])


@dataclass(frozen=True)
class ColumnTraining(Training):
    """Training of all columns, each of which has two sides, the classes of the estimator."""

    classifiers: JointClassifiers

    def cache(self, X: Any, cache_size: float, jobs: int) -> Any:
        """Return the whole Gram matrix if it fits, as all columns need it, else a kernel cache."""
        if 8 * len(self.codes) ** 2 > cache_size * 2**20:
            return super().cache(X, cache_size, jobs)
        gram = self.parameters.gram(X, self.order)
        return MatrixGram(gram.block(slice(None)), gram.positive_semidefinite)

    def problem(self, number: int, cache: Any, margins: Any, costs: Any) -> HingeProblem:
        """Return the problem of a column, with the weights and margins of its two sides."""
        problem, joint = self.reduction.problems[number], self.classifiers
        svc, samples = joint.estimator, problem.samples
        gram = cache
        if not isinstance(cache, MatrixGram):
            gram = cache.of(*problem.groups)
        elif len(samples) < cache.size:
            gram = SubsetGram(cache, samples)
        side = (joint.sign * problem.sign > 0).astype(np.intp)
        sides = np.arange(2), side, None if self.weight is None else self.weight[samples]
        weight = joint.class_weight[number] = class_weights(svc.class_weight, *sides)
        margin = joint.class_margin[number] = class_margins(svc.class_margin, *sides)
        return HingeProblem(gram, problem.sign, margin[side], costs[samples] * weight[side])


class SeparateClassifiers:
    """A fitted clone of the estimator for each column; the parameters of `JointClassifiers`."""

    def __init__(self, estimator: Any, matrix: np.ndarray, n_jobs: int | None):
        self.estimator = clone(estimator)
        self.matrix = matrix
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        codes: np.ndarray,
        samples: np.ndarray,
        sample_weight: Any,
        metadata: dict[str, Any],
        progress: FitProgress,
    ) -> None:
        """Fit a clone for each column to its samples among those given, with their metadata.

        Callbacks see each fit as a task, which they cannot stop: every column needs its classifier.
        """
        of_column = [samples[column[codes[samples]] != 0] for column in self.matrix.T]
        columns = zip(self.matrix.T, of_column, strict=True)
        work = [
            (
                _with_column_checkpoint(self.estimator, number),
                X,
                column[codes] > 0,
                members,
                sample_weight,
                metadata,
            )
            for number, (column, members) in enumerate(columns)
        ]
        if progress.active:  # callbacks are called in this process

            def fit(number: int) -> Any:
                with progress.task(number):
                    return _fit_binary(*work[number])

            self.estimators = for_each(fit, range(len(work)), effective_n_jobs(self.n_jobs))
        else:
            self.estimators = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_binary)(*arguments) for arguments in work
            )
        # A classifier with a precomputed kernel takes values against its own samples only.
        self.columns = of_column if get_tags(self.estimator).input_tags.pairwise else None

    def scores(self, X: Any) -> np.ndarray:
        """Compute the decision functions of all columns."""
        return self._stack(_score, X)

    def probabilities(self, X: Any) -> np.ndarray:
        """Compute the probability of +1 in each column."""
        return self._stack(lambda classifier, X: classifier.predict_proba(X)[:, 1], X)

    def separate(self, **features: Any) -> list[Any]:
        """Return the fitted classifiers."""
        return list(self.estimators)

    def _stack(self, output: Any, X: Any) -> np.ndarray:
        inputs = [X] * len(self.estimators)
        if self.columns is not None:
            inputs = [X[:, samples] for samples in self.columns]
        pairs = zip(self.estimators, inputs, strict=True)
        return np.column_stack([output(classifier, values) for classifier, values in pairs])


def _with_column_checkpoint(estimator: Any, number: int) -> Any:
    """Return the estimator of a column, whose checkpoint has a file of its own."""
    path = getattr(estimator, "checkpoint", None)
    if path is None:
        return estimator
    return clone(estimator).set_params(checkpoint=f"{os.fspath(path)}.{number}")


def _fit_binary(
    estimator: Any, X: Any, positive: Any, samples: Any, sample_weight: Any, metadata: dict
) -> Any:
    weights = {}
    if sample_weight is not None:  # a number or an array
        every = np.broadcast_to(np.asarray(sample_weight), positive.shape)
        weights["sample_weight"] = every[samples]
    if len(samples) < len(positive):
        metadata = select_metadata(metadata, samples, len(positive))
        X, positive = safe_split(estimator, X, positive, samples)
    return clone(estimator).fit(X, positive.astype(np.intp), **weights, **metadata)


def _score(classifier: Any, X: Any) -> np.ndarray:
    if hasattr(classifier, "decision_function"):
        return np.ravel(classifier.decision_function(X))
    return 2.0 * classifier.predict_proba(X)[:, 1] - 1.0

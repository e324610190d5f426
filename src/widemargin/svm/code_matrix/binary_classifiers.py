"""Binary classifiers of a code matrix: all in one kernel expansion, or a clone for each column."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from widemargin._base.callbacks import FitProgress
from widemargin._base.sklearn_compat import safe_split
from widemargin._base.targets import class_margins, class_weights
from widemargin.kernels import MatrixGram
from widemargin.kernels.dense import SubsetGram
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers import Solution
from widemargin.svm.code_matrix.codes import one_vs_one
from widemargin.svm.reduction import CodeColumns, OneVsOne, TwoClasses
from widemargin.svm.svc import SVC, fitted_svc, solver_options
from widemargin.svm.training import Training, fit_binary_problems, gram_cache, prepare_training


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
        # The subproblems of `OneVsOne` are positive for the first of two classes.
        self.sign = -1.0 if self.in_pairs else 1.0

    def fit(self, X: Any, codes: np.ndarray, sample_weight: Any) -> list[Solution]:
        """Fit all columns to validated samples; return the solutions."""
        svc = self.estimator
        training = prepare_training(
            X, codes, sample_weight, KernelParameters.of(svc), multi_class=self._reduction
        )
        shape = len(training.reduction.problems), 2
        self.class_weight, self.class_margin = np.ones(shape), np.ones(shape)

        def margins_and_costs(number, margins, costs):
            return self._margins_and_costs(training, number, margins, costs)

        solutions, self.attributes = fit_binary_problems(
            X,
            training,
            svc.C,
            solver_options=solver_options(svc),
            cache_size=svc.cache_size,
            n_jobs=self.n_jobs,
            progress=FitProgress.open(svc, len(training.reduction.problems)),
            make_cache=lambda jobs: self._cache(X, training, jobs),
            margins_and_costs=margins_and_costs,
        )
        return solutions

    @property
    def takes_sparse(self) -> bool:
        """Whether the classifiers were fitted to sparse samples."""
        return sp.issparse(self.attributes["support_vectors_"])

    def scores(self, X: Any) -> np.ndarray:
        """Compute the decision functions of all columns at validated samples."""
        return self.sign * self.attributes["_expansion"].evaluate(X)

    def separate(self, **features: Any) -> list[SVC]:
        """Return the fitted `SVC` of each column; ``features`` are further attributes of each."""
        columns = range(self.matrix.shape[1])
        parameters = self.estimator.get_params(deep=False)
        return [
            fitted_svc(parameters, {**self._attributes(number), **features}) for number in columns
        ]

    def _reduction(self, codes: np.ndarray, n_classes: int) -> Any:
        if n_classes == 2 and self.matrix.shape[1] == 1 and self.matrix[1, 0] == 1:
            return TwoClasses(codes)
        return OneVsOne(codes, n_classes) if self.in_pairs else CodeColumns(codes, self.matrix)

    def _cache(self, X: Any, training: Training, jobs: int) -> Any:
        """Return the whole Gram matrix if it fits, as all columns need it, else a kernel cache."""
        gram = training.parameters.gram(X, training.order)
        cache_size, sizes = self.estimator.cache_size, training.reduction.group_sizes
        if 8 * gram.size**2 > cache_size * 2**20:
            return gram_cache(gram, training.reduction, cache_size, jobs)
        whole = MatrixGram(gram.block(slice(None)), gram.positive_semidefinite)
        return WholeGram(whole, sizes)

    def _margins_and_costs(
        self, training: Training, number: int, margins: np.ndarray, costs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return those of a column, whose two sides are the classes of the estimator."""
        problem = training.reduction.problems[number]
        margins, costs = margins[problem.samples], costs[problem.samples]
        side = (self.sign * problem.sign > 0).astype(np.intp)
        weight = None if training.weight is None else training.weight[problem.samples]
        sides = np.arange(2), side, weight
        if self.estimator.class_weight is not None:
            self.class_weight[number] = class_weights(self.estimator.class_weight, *sides)
            costs = costs * self.class_weight[number][side]
        if self.estimator.class_margin is not None:
            self.class_margin[number] = class_margins(self.estimator.class_margin, *sides)
            margins = self.class_margin[number][side]
        return margins, costs

    def _attributes(self, number: int) -> dict[str, Any]:
        """Return the fitted attributes of the binary `SVC` of a column."""
        joint = self.attributes
        expansion: KernelExpansion = joint["_expansion"]
        dual = self.sign * self._dual(number)
        kept = np.flatnonzero(dual)
        kept = kept[np.argsort(dual[kept] > 0, kind="stable")]
        support, vectors = joint["support_"][kept], joint["support_vectors_"]
        vectors = vectors[kept] if vectors.shape[0] else vectors
        dual_coef, intercept = dual[kept][np.newaxis], self.sign * joint["intercept_"][[number]]
        own = KernelExpansion(
            expansion.parameters,
            expansion.vectors if expansion.parameters.is_pairwise else vectors,
            dual_coef,
            intercept,
            columns=support,
        )
        own.float32 = expansion.float32
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
            "_n_support": np.bincount(dual[kept] > 0, minlength=2).astype(np.int32),
            "_one_vs_one": False,
            "_expansion": own,
        }

    def _dual(self, number: int) -> np.ndarray:
        """Return the signed dual variables of a column at all support vectors."""
        dual_coef = self.attributes["_expansion"].coefficients
        if not self.in_pairs:
            return dual_coef[number]
        i, j = np.flatnonzero(self.matrix[:, number])
        of_class = np.repeat(np.arange(len(self.matrix)), self.attributes["_n_support"])
        return np.where(of_class == i, dual_coef[j - 1], (of_class == j) * dual_coef[i])


class WholeGram:
    """Gram matrices of groups of samples, where the matrix of all samples fits in memory."""

    def __init__(self, gram: MatrixGram, group_sizes: list[int]):
        self.gram = gram
        self.ends = np.cumsum([0, *group_sizes])

    def of(self, *groups: int) -> MatrixGram | SubsetGram:
        """Return the Gram matrix of the samples of ``groups``."""
        if len(groups) == len(self.ends) - 1:
            return self.gram
        parts = [np.arange(self.ends[g], self.ends[g + 1]) for g in groups]
        return SubsetGram(self.gram, np.concatenate(parts))


class SeparateClassifiers:
    """A fitted clone of the estimator for each column; the parameters of `JointClassifiers`."""

    def __init__(self, estimator: Any, matrix: np.ndarray, n_jobs: int | None):
        self.estimator = clone(estimator)
        self.matrix = matrix
        self.n_jobs = n_jobs

    def fit(self, X: Any, codes: np.ndarray, samples: np.ndarray, sample_weight: Any) -> None:
        """Fit a clone for each column to its samples among those given."""
        of_column = [samples[column[codes[samples]] != 0] for column in self.matrix.T]
        self.estimators = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_binary)(self.estimator, X, column[codes] > 0, own, sample_weight)
            for column, own in zip(self.matrix.T, of_column, strict=True)
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
        return np.column_stack(
            [
                output(classifier, X if self.columns is None else X[:, self.columns[number]])
                for number, classifier in enumerate(self.estimators)
            ]
        )


def _fit_binary(
    estimator: Any, X: Any, positive: np.ndarray, samples: np.ndarray, sample_weight: Any
) -> Any:
    weights = {}
    if sample_weight is not None:  # a number or an array
        weights["sample_weight"] = np.broadcast_to(np.asarray(sample_weight), positive.shape)[
            samples
        ]
    if len(samples) < len(positive):
        X, positive = safe_split(estimator, X, positive, samples)
    return clone(estimator).fit(X, positive.astype(np.intp), **weights)


def _score(classifier: Any, X: Any) -> np.ndarray:
    if hasattr(classifier, "decision_function"):
        return np.ravel(classifier.decision_function(X))
    return 2.0 * classifier.predict_proba(X)[:, 1] - 1.0

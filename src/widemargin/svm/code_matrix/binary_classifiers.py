"""The machines behind a code matrix: all in one `SVC`, or a copy of any estimator for each."""

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from widemargin._base.sklearn_compat import safe_split
from widemargin._base.targets import class_margins, class_weights
from widemargin.kernels import MatrixGram
from widemargin.kernels.dense import PartGram
from widemargin.svm.code_matrix.codes import one_vs_one
from widemargin.svm.reduction import CodeColumns, OneVsOne, TwoClasses
from widemargin.svm.svc import SVC


class ColumnMachines(SVC):
    """The machines of all columns as one `SVC`: one kernel cache, one set of support vectors.

    Get one from `of`.
    """

    @classmethod
    def of(cls, estimator, matrix, n_jobs):
        own = {"class_weight": None, "class_margin": None, "multi_class": "ovo", "n_jobs": n_jobs}
        machines = cls(**{**estimator.get_params(deep=False), **own})
        machines.estimator, machines.matrix = clone(estimator), matrix
        pairs = one_vs_one(len(matrix)) if len(matrix) > 2 else None
        machines.in_pairs = pairs is not None and np.array_equal(matrix, pairs)
        return machines

    def scores(self, X):
        return self._sense() * self._scores(X)

    def separate(self):
        return [self._machine(number) for number in range(self.matrix.shape[1])]

    def _reduction(self, n_classes, way=None):
        if n_classes == 2 and self.matrix.shape[1] == 1 and self.matrix[1, 0] == 1:
            return TwoClasses
        return OneVsOne if self.in_pairs else CodeColumns(self.matrix)

    def _sense(self):
        """-1 where the reduction has its machines positive for the first of two classes."""
        return -1.0 if self.in_pairs else 1.0

    def _cache(self, X, training, jobs):
        """The memory of all machines: the whole Gram matrix where it fits, since all need it."""
        if 8 * len(training.order) ** 2 > self.cache_size * 2**20:
            return super()._cache(X, training, jobs)
        gram = self._gram(X, training.order, training.gamma)
        whole = MatrixGram(gram.block(slice(None)), gram.positive_semidefinite)
        return WholeCache(whole, training.reduction.group_sizes)

    def _margins_and_costs(self, training, machine, margins, costs):
        margins, costs = super()._margins_and_costs(training, machine, margins, costs)
        side = (self._sense() * machine.sign > 0).astype(np.intp)
        weight = None if training.weight is None else training.weight[machine.rows]
        sides = np.arange(2), side, weight
        if self.estimator.class_weight is not None:
            costs = costs * class_weights(self.estimator.class_weight, *sides)[side]
        if self.estimator.class_margin is not None:
            margins = class_margins(self.estimator.class_margin, *sides)[side]
        return margins, costs

    def _machine(self, number):
        """The binary `SVC` of a column."""
        dual = self._sense() * self._dual_of(number)
        own = np.flatnonzero(dual)
        own = own[np.argsort(dual[own] > 0, kind="stable")]
        machine = clone(self.estimator)
        learned = {name: vars(self)[name] for name in vars(self).keys() - self.get_params()}
        vars(machine).update(learned)
        del machine.estimator, machine.matrix, machine.in_pairs
        machine.classes_ = np.arange(2)
        machine._support_grams = {}
        machine.support_ = self.support_[own]
        machine._n_support = np.bincount(dual[own] > 0, minlength=2).astype(np.int32)
        machine.dual_coef_ = dual[own][np.newaxis]
        if self._sparse:
            machine.dual_coef_ = type(self.dual_coef_)(machine.dual_coef_)
        if self.support_vectors_.shape[0]:
            machine.support_vectors_ = self.support_vectors_[own]
        machine.intercept_ = self._sense() * self.intercept_[[number]]
        for name in ("objective_", "dual_gap_", "n_iter_"):
            setattr(machine, name, getattr(self, name)[[number]])
        return machine

    def _dual_of(self, number):
        """Signed dual variables of a machine, over all support vectors."""
        dual_coef = self.dual_coef_.toarray() if self._sparse else self.dual_coef_
        if not self.in_pairs:
            return dual_coef[number]
        i, j = np.flatnonzero(self.matrix[:, number])
        of_class = np.repeat(np.arange(len(self.matrix)), self.n_support_)
        return np.where(of_class == i, dual_coef[j - 1], (of_class == j) * dual_coef[i])


class WholeCache:
    """What a `GramCache` is to its problems, where the whole matrix is at hand."""

    def __init__(self, gram: MatrixGram, group_sizes):
        self.gram = gram
        self.ends = np.cumsum([0, *group_sizes])

    def of(self, *groups: int) -> MatrixGram | PartGram:
        """The Gram matrix of the rows of ``groups``."""
        if len(groups) == len(self.ends) - 1:
            return self.gram
        parts = [np.arange(self.ends[g], self.ends[g + 1]) for g in groups]
        return PartGram(self.gram, np.concatenate(parts))


class SeparateMachines:
    """A fitted copy of the estimator for every column."""

    def __init__(self, estimator, matrix, n_jobs):
        self.estimator = estimator
        self.matrix = matrix
        self.n_jobs = n_jobs

    def fit(self, X, codes, rows, sample_weight):
        seen = [rows[column[codes[rows]] != 0] for column in self.matrix.T]
        self.estimators = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_machine)(self.estimator, X, column[codes] > 0, own, sample_weight)
            for column, own in zip(self.matrix.T, seen, strict=True)
        )
        # Kernel values against the rows that a machine has seen are all it can take.
        self.columns = seen if get_tags(self.estimator).input_tags.pairwise else None

    def scores(self, X):
        return self._stacked(_score, X)

    def probabilities(self, X):
        return self._stacked(lambda machine, X: machine.predict_proba(X)[:, 1], X)

    def separate(self):
        return list(self.estimators)

    def _stacked(self, answer, X):
        return np.column_stack(
            [
                answer(machine, X if self.columns is None else X[:, self.columns[number]])
                for number, machine in enumerate(self.estimators)
            ]
        )


def _fit_machine(estimator, X, positive, rows, sample_weight):
    weights = {}
    if len(rows) < len(positive):
        X, positive = safe_split(estimator, X, positive, rows)
    if sample_weight is not None:
        weights["sample_weight"] = np.asarray(sample_weight)[rows]
    return clone(estimator).fit(X, positive.astype(np.intp), **weights)


def _score(machine, X):
    if hasattr(machine, "decision_function"):
        return np.ravel(machine.decision_function(X))
    return 2.0 * machine.predict_proba(X)[:, 1] - 1.0

"""Reductions of multi-class classification to binary subproblems.

A reduction defines the binary subproblems (the samples of each and their signs), the layout of the
dual variables of all subproblems in one matrix with a row for each training sample, and how the
decision values follow from kernel values against the support vectors. The layout of one-vs-one is
that of scikit-learn: the columns of a sample of class c hold its dual variables in the subproblems
of c against the other classes, in order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.matmul import tiled_multiply
from widemargin.kernels.expansion import weighted_sums


@dataclass(frozen=True)
class BinaryProblem:
    """A binary subproblem: its groups of samples, these samples, and their signs."""

    groups: tuple[int, ...]
    samples: np.ndarray
    sign: np.ndarray


class OneVsRest:
    """A subproblem for each class, positive for it."""

    def __init__(self, codes: np.ndarray, n_classes: int):
        signs = [np.where(codes == c, 1.0, -1.0) for c in range(n_classes)]
        self._set_problems(len(codes), signs)

    def _set_problems(self, n_samples: int, signs: list[np.ndarray]) -> None:
        """Subproblems over all samples."""
        self.order: slice | np.ndarray = slice(None)
        self.group_sizes = [n_samples]
        self.width = len(signs)
        samples = np.arange(n_samples)
        self.problems = [BinaryProblem((0,), samples, sign) for sign in signs]

    def columns(self, number: int) -> Any:
        """Return the columns of the dual variables of a subproblem."""
        return number

    @staticmethod
    def combine(n_support: np.ndarray) -> Callable:
        """Return the function that combines kernel values and dual variables."""
        return weighted_sums

    @staticmethod
    def primal(dual_coef: Any, support_vectors: Any, n_support: np.ndarray) -> Any:
        """Return the weights of the features in each subproblem."""
        return dual_coef @ support_vectors


class TwoClasses(OneVsRest):
    """A single problem, positive for the second class."""

    def __init__(self, codes: np.ndarray, n_classes: int = 2):
        self._set_problems(len(codes), [np.where(codes == 1, 1.0, -1.0)])


class CodeColumns(OneVsRest):
    """A subproblem for each column of a code matrix, positive for classes with +1 in it.

    Classes with 0 are no part of it. The dual variables are laid out as in one-vs-rest.
    """

    def __init__(self, codes: np.ndarray, matrix: np.ndarray):
        if matrix.all():
            self._set_problems(len(codes), [column[codes].astype(float) for column in matrix.T])
            return
        self.width = matrix.shape[1]
        self.order = np.argsort(codes, kind="stable")
        self.group_sizes = np.bincount(codes, minlength=len(matrix)).tolist()
        codes = codes[self.order]
        self.problems = []
        for column in matrix.T:
            samples = np.flatnonzero(column[codes])
            groups = tuple(np.flatnonzero(column).tolist())
            sign = column[codes[samples]].astype(float)
            self.problems.append(BinaryProblem(groups, samples, sign))


class OneVsOne:
    """A subproblem for each pair of classes, positive for the first of the two."""

    def __init__(self, codes: np.ndarray, n_classes: int):
        self.order = np.argsort(codes, kind="stable")
        self.group_sizes = np.bincount(codes, minlength=n_classes).tolist()
        ends = accumulate(self.group_sizes, initial=0)
        members = [np.arange(a, b) for a, b in pairwise(ends)]
        self.pairs = list(combinations(range(n_classes), 2))
        self.problems = []
        for i, j in self.pairs:
            sign = np.ones(len(members[i]) + len(members[j]))
            sign[len(members[i]) :] = -1.0
            samples = np.concatenate([members[i], members[j]])
            self.problems.append(BinaryProblem((i, j), samples, sign))
        self.width = n_classes - 1

    def columns(self, number: int) -> np.ndarray:
        """Return the columns of the dual variables of a subproblem."""
        i, j = self.pairs[number]
        return np.repeat([j - 1, i], [self.group_sizes[i], self.group_sizes[j]])

    @staticmethod
    def combine(n_support: np.ndarray) -> Callable:
        """Return the function that combines kernel values and dual variables."""
        return PairSums(n_support)

    @staticmethod
    def votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
        """Return the number of subproblems that decide for each class."""
        votes = np.zeros((len(scores), n_classes), dtype=np.intp)
        for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
            first = scores[:, k] > 0
            votes[:, i] += first
            votes[:, j] += ~first
        return votes

    @staticmethod
    def primal(dual_coef: Any, support_vectors: Any, n_support: np.ndarray) -> Any:
        """Return the weights of the features in each subproblem."""
        ends = np.cumsum([0, *n_support])
        own = [slice(a, b) for a, b in pairwise(ends)]
        rows = [
            dual_coef[[j - 1]][:, own[i]] @ support_vectors[own[i]]
            + dual_coef[[i]][:, own[j]] @ support_vectors[own[j]]
            for i, j in combinations(range(len(n_support)), 2)
        ]
        return sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.vstack(rows)


@dataclass(frozen=True)
class PairSums:
    """Decision values of pairs of classes, from dual variables in the layout of `OneVsOne`.

    ``n_support`` holds the number of support vectors of each class.
    """

    n_support: np.ndarray

    def __call__(self, values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        n_classes = len(self.n_support)
        ends = np.cumsum([0, *self.n_support])
        number = np.zeros((n_classes, n_classes), dtype=np.intp)
        above = np.triu_indices(n_classes, 1)
        number[above] = np.arange(len(above[0]))
        number += number.T
        out = np.zeros((len(values), len(above[0])))
        for c in range(n_classes):
            own = slice(ends[c], ends[c + 1])
            sums = tiled_multiply(np.ascontiguousarray(values[:, own]), coefficients[:, own].T)
            out[:, np.delete(number[c], c)] += sums
        return out

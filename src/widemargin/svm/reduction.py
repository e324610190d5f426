"""Reductions of multi-class classification to binary subproblems.

A reduction defines the binary subproblems (the samples of each and their signs) and the layout of
the dual variables of all subproblems in one matrix with a row for each training sample. The layout
of one-vs-one is that of scikit-learn: the columns of a sample of class c hold its dual variables in
the subproblems of c against the other classes, in order. Those of other reductions have a column
for each subproblem.
"""

from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import ovr_decision_function


@dataclass(frozen=True)
class BinaryProblem:
    """A binary subproblem: its groups of samples, these samples, and their signs.

    ``columns`` are the columns of their dual variables.
    """

    groups: tuple[int, ...]
    samples: np.ndarray
    sign: np.ndarray
    columns: int | np.ndarray


@dataclass(frozen=True)
class Reduction:
    """Binary subproblems over samples that were put in ``order``, in consecutive groups."""

    order: slice | np.ndarray
    group_sizes: list[int]
    problems: list[BinaryProblem]
    width: int
    one_vs_one: bool = False


def one_vs_rest(n_classes: int) -> np.ndarray:
    """Return a code matrix with a column for each class; one column for the second of two."""
    return np.array([[-1], [1]]) if n_classes == 2 else 2 * np.eye(n_classes, dtype=np.intp) - 1


def reduce_classes(codes: np.ndarray, n_classes: int, multi_class: str) -> Reduction:
    """Return the reduction "ovo" or "ovr"; two classes are a single subproblem."""
    if multi_class == "ovo" and n_classes > 2:
        return reduce_to_pairs(codes, n_classes)
    return reduce_to_columns(codes, one_vs_rest(n_classes))


def reduce_to_columns(codes: np.ndarray, matrix: np.ndarray) -> Reduction:
    """Return a subproblem for each column of a code matrix, positive for classes with +1 in it.

    Classes with 0 are no part of it.
    """
    order, sizes = slice(None), [len(codes)]
    if not matrix.all():
        order, sizes = _group_by_class(codes, len(matrix))
    codes = codes[order]
    problems = []
    for number, column in enumerate(matrix.T):
        groups = (0,) if matrix.all() else tuple(np.flatnonzero(column).tolist())
        samples = np.flatnonzero(column[codes])
        sign = column[codes[samples]].astype(float)
        problems.append(BinaryProblem(groups, samples, sign, number))
    return Reduction(order, sizes, problems, width=len(problems))


def reduce_to_pairs(codes: np.ndarray, n_classes: int) -> Reduction:
    """Return a subproblem for each pair of classes, positive for the first of the two."""
    order, sizes = _group_by_class(codes, n_classes)
    everything = np.arange(len(codes))
    members = [everything[a:b] for a, b in pairwise(accumulate(sizes, initial=0))]
    problems = []
    for i, j in combinations(range(n_classes), 2):
        samples = np.concatenate((members[i], members[j]))
        sign, columns = np.ones(len(samples)), np.full(len(samples), j - 1)
        sign[sizes[i] :] = -1.0
        columns[sizes[i] :] = i
        problems.append(BinaryProblem((i, j), samples, sign, columns))
    return Reduction(order, sizes, problems, width=n_classes - 1, one_vs_one=True)


def count_votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the number of pairs of classes that decide for each class."""
    votes = np.zeros((len(scores), n_classes), dtype=np.intp)
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first = scores[:, k] > 0
        votes[:, i] += first
        votes[:, j] += ~first
    return votes


def class_scores(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the scores of classes from those of pairs: votes, with ties broken by the sums."""
    return ovr_decision_function(scores < 0, -scores, n_classes)


def pairs_of_classes(n_classes: int) -> np.ndarray:
    """Return the numbers of the pairs of each class with the other classes, in order."""
    number = np.zeros((n_classes, n_classes), dtype=np.intp)
    above = np.triu_indices(n_classes, 1)
    number[above] = np.arange(len(above[0]))
    others = ~np.eye(n_classes, dtype=bool)
    return (number + number.T)[others].reshape(n_classes, -1)


def pair_weights(dual_coef: Any, support_vectors: Any, n_support: np.ndarray) -> Any:
    """Return the weights of the features for each pair of classes."""
    slices = [slice(a, b) for a, b in pairwise(np.cumsum([0, *n_support]))]
    rows = [
        dual_coef[[j - 1]][:, slices[i]] @ support_vectors[slices[i]]
        + dual_coef[[i]][:, slices[j]] @ support_vectors[slices[j]]
        for i, j in combinations(range(len(n_support)), 2)
    ]
    return sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.vstack(rows)


@dataclass(frozen=True)
class PairSums:
    """Decision values of pairs of classes, from dual variables in the layout of one-vs-one.

    ``n_support`` holds the number of support vectors of each class.
    """

    n_support: np.ndarray

    def __call__(self, values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        pairs = pairs_of_classes(len(self.n_support))
        ends = np.cumsum([0, *self.n_support])
        out = np.zeros((len(values), pairs.size // 2))
        for c, indices in enumerate(pairs):
            members = slice(ends[c], ends[c + 1])
            block = np.ascontiguousarray(values[:, members])
            out[:, indices] += tiled_multiply(block, coefficients[:, members].T)
        return out


def _group_by_class(codes: np.ndarray, n_classes: int) -> tuple[Any, list[int]]:
    """Return the order that groups samples by their classes, and the sizes of the groups."""
    return np.argsort(codes, kind="stable"), np.bincount(codes, minlength=n_classes).tolist()

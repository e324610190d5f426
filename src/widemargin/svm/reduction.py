"""From several classes to binary machines and back.

A reduction says which machines there are (which rows each sees, and with which signs), how the dual
variables of all machines are laid out in one matrix with a row for every training row, and how
the machines' scores come from float64 kernel values against the support vectors. The layout of
one-vs-one is scikit-learn's: in the columns of a row of class c stand its dual variables in the
machines of c against the other classes, in order.
"""

from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise

import numpy as np
import scipy.sparse as sp

from widemargin._base.matmul import tiled_multiply


@dataclass(frozen=True)
class Machine:
    """One binary problem: the groups of rows it sees, those rows, and their signs."""

    groups: tuple[int, ...]
    rows: np.ndarray
    sign: np.ndarray


class OneVsRest:
    """A machine for every class, positive for it."""

    def __init__(self, codes: np.ndarray, n_classes: int):
        self.order: slice | np.ndarray = slice(None)
        self.group_sizes = [len(codes)]
        everything = np.arange(len(codes))
        self.machines = [
            Machine((0,), everything, np.where(codes == c, 1.0, -1.0)) for c in range(n_classes)
        ]
        self.width = n_classes

    def columns(self, machine: int) -> int:
        return machine

    @staticmethod
    def scores(kernel, dual_coef, n_support) -> np.ndarray:
        return tiled_multiply(kernel, dual_coef.T)

    @staticmethod
    def primal(dual_coef, support_vectors, n_support):
        return dual_coef @ support_vectors


class TwoClasses(OneVsRest):
    """A single machine, positive for the second class."""

    def __init__(self, codes: np.ndarray, n_classes: int = 2):
        self.order = slice(None)
        self.group_sizes = [len(codes)]
        self.machines = [Machine((0,), np.arange(len(codes)), np.where(codes == 1, 1.0, -1.0))]
        self.width = 1


class OneVsOne:
    """A machine for every pair of classes, positive for the first of the two."""

    def __init__(self, codes: np.ndarray, n_classes: int):
        self.order = np.argsort(codes, kind="stable")
        self.group_sizes = np.bincount(codes, minlength=n_classes).tolist()
        ends = accumulate(self.group_sizes, initial=0)
        members = [np.arange(a, b) for a, b in pairwise(ends)]
        self.pairs = list(combinations(range(n_classes), 2))
        self.machines = []
        for i, j in self.pairs:
            sign = np.ones(len(members[i]) + len(members[j]))
            sign[len(members[i]) :] = -1.0
            self.machines.append(Machine((i, j), np.concatenate([members[i], members[j]]), sign))
        self.width = n_classes - 1

    def columns(self, machine: int) -> np.ndarray:
        i, j = self.pairs[machine]
        return np.repeat([j - 1, i], [self.group_sizes[i], self.group_sizes[j]])

    @staticmethod
    def scores(kernel, dual_coef, n_support) -> np.ndarray:
        n_classes = len(n_support)
        ends = np.cumsum([0, *n_support])
        number = np.zeros((n_classes, n_classes), dtype=np.intp)
        above = np.triu_indices(n_classes, 1)
        number[above] = np.arange(len(above[0]))
        number += number.T
        out = np.zeros((len(kernel), len(above[0])))
        for c in range(n_classes):
            own = slice(ends[c], ends[c + 1])
            part = tiled_multiply(np.ascontiguousarray(kernel[:, own]), dual_coef[:, own].T)
            out[:, np.delete(number[c], c)] += part
        return out

    @staticmethod
    def votes(scores, n_classes) -> np.ndarray:
        """How many machines decide for each class."""
        votes = np.zeros((len(scores), n_classes), dtype=np.intp)
        for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
            first = scores[:, k] > 0
            votes[:, i] += first
            votes[:, j] += ~first
        return votes

    @staticmethod
    def primal(dual_coef, support_vectors, n_support):
        ends = np.cumsum([0, *n_support])
        own = [slice(a, b) for a, b in pairwise(ends)]
        rows = [
            dual_coef[[j - 1]][:, own[i]] @ support_vectors[own[i]]
            + dual_coef[[i]][:, own[j]] @ support_vectors[own[j]]
            for i, j in combinations(range(len(n_support)), 2)
        ]
        return sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.vstack(rows)


@dataclass(frozen=True)
class CodeColumns:
    """A machine for every column of a code matrix, positive for classes with +1 in it.

    A machine does not see the classes with 0. Called with the codes of rows, it gives the reduction
    of those rows, whose dual variables are laid out as in one-vs-rest.
    """

    matrix: np.ndarray

    def __call__(self, codes: np.ndarray, n_classes: int) -> "CodedRows":
        return CodedRows(codes, self.matrix)

    scores = staticmethod(OneVsRest.scores)
    primal = staticmethod(OneVsRest.primal)


class CodedRows(OneVsRest):
    """The machines of a code matrix over given rows."""

    def __init__(self, codes: np.ndarray, matrix: np.ndarray):
        self.width = matrix.shape[1]
        if matrix.all():
            self.order = slice(None)
            self.group_sizes = [len(codes)]
            everything = np.arange(len(codes))
            self.machines = [Machine((0,), everything, c[codes].astype(float)) for c in matrix.T]
            return
        self.order = np.argsort(codes, kind="stable")
        self.group_sizes = np.bincount(codes, minlength=len(matrix)).tolist()
        codes = codes[self.order]
        self.machines = []
        for column in matrix.T:
            rows = np.flatnonzero(column[codes])
            seen = tuple(np.flatnonzero(column).tolist())
            self.machines.append(Machine(seen, rows, column[codes[rows]].astype(float)))

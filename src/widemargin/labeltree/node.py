"""Training of nodes: a linear classifier for each child of a node.

The binary problem of a child is that of `widemargin.solvers.hinge.linear_problem` over the samples
that reach the node, which are those with a label below it. Samples with a label below the child are
positive:

    min over w   1/2 ||w||^2  +  sum_i cost_i * loss(1 - sign_i <w, (x_i, bias)>)

With ``crammer_singer``, a node has one problem over all its children instead (see
`widemargin.solvers.multiclass.problem`).

A node is trained on a copy of its samples that has only the features which occur in them. Weights
are pruned as they are made, and stored in float32.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from widemargin._base.jit import compiled, loops_of, uncompiled
from widemargin._base.lists import run_on_lists
from widemargin._base.numeric import TINY
from widemargin._base.options import label_tree_options as options
from widemargin._base.threads import effective_threads, for_each
from widemargin.labeltree.partition import LabelTree
from widemargin.labeltree.rows import gather_rows
from widemargin.solvers.hinge.dual_coordinate_descent import coordinate_steps, solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.logistic import logistic_steps
from widemargin.solvers.hinge.losses import LOSSES
from widemargin.solvers.hinge.newton import solve_primal
from widemargin.solvers.jit import copy_entries, random_state, row_arrays
from widemargin.solvers.multiclass.linear import solve_linear
from widemargin.solvers.multiclass.problem import CrammerSingerProblem
from widemargin.solvers.states import ACTIVE, CONVERGED, PASSES

# Weights of tiny samples with a huge C would overflow float32.
_LARGEST_WEIGHT = float(np.finfo(np.float32).max)


class NodeWeights(NamedTuple):
    """Pruned weights of the children of a node, by feature.

    Attributes
    ----------
    features : ndarray of uint32
        Features with a weight, in increasing order; the last one may be the constant feature.
    counts : ndarray of int64
        Number of weights of each feature.
    child : ndarray of uint8, or uint16 for more than 256 children
        Number of the child of each weight.
    value : ndarray of float32
        Weights.
    passes : ndarray of int64
        Passes of the solver over the samples, for each problem.
    converged : ndarray of bool
        Whether the solver converged, for each problem.
    """

    features: np.ndarray
    counts: np.ndarray
    child: np.ndarray
    value: np.ndarray
    passes: np.ndarray
    converged: np.ndarray


@dataclass(frozen=True)
class NodeSolver:
    """Solver of the problems of all nodes of a tree.

    Parameters
    ----------
    X : CSR matrix of shape (n_samples, n_features)
        Float64, canonical.
    cost : ndarray of shape (n_samples,)
    loss : {'squared_hinge', 'hinge', 'log', 'crammer_singer'}
        The last one solves one problem over all children of a node.
    bias : float
        Value of the constant feature; 0 for no intercept.
    tol : float
        Tolerance on the difference of projected gradients.
    max_iter : int
        Maximum number of passes over the samples.
    prune : float
        Weights are dropped if their product with the root mean square of the nonzero values of
        their feature, times the square root of the mean number of nonzero values of a sample, is
        not larger.
    seed : int
        Seed of the order of the samples.
    """

    X: Any
    cost: np.ndarray
    loss: str
    bias: float
    tol: float
    max_iter: int
    prune: float
    seed: int

    @cached_property
    def constants(self) -> np.ndarray:
        """What a step reads for a negative sample, as in `dual_coordinate_descent.State`."""
        loss = LOSSES.get(self.loss, LOSSES["hinge"])
        softness, ceiling = loss.softness(self.cost), loss.ceiling(self.cost)
        diagonal = np.maximum(row_norms(self.X, squared=True) + self.bias**2 + softness, TINY)
        return np.column_stack([np.full(len(self.cost), -1.0), diagonal, softness, -ceiling])

    @property
    def _most_passes(self) -> int:
        """Passes after which another method takes over; there is none for the logistic loss."""
        return self.max_iter if self.loss == "log" else min(self.max_iter, options.most_node_passes)

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Largest weights that are dropped."""
        return thresholds_of(self.prune, self.X.shape[0], self.X.nnz, *squares_of(self.X))

    def shares_children(self, n_samples: int) -> bool:
        """Return whether threads share the children of a node with this many samples.

        Other nodes are trained side by side, each with a copy of its samples.
        """
        share = options.large_share * self.X.shape[0]
        return n_samples >= min(options.large_node, share)

    def train(self, tree: LabelTree, reach: Any, node: int) -> NodeWeights:
        """Train the classifiers of the children of a node.

        Parameters
        ----------
        tree : LabelTree
        reach : CSC matrix of shape (n_samples, n_nodes)
            Nonzero where a sample has a label below a node.
        node : int
        """
        n_samples, n_features = self.X.shape
        rows = _rows(reach, node, node + 1)
        first, last = tree.first_child[node], tree.first_child[node + 1]
        arrays: Any
        if node == 0:  # all samples, also those that have no label: they need not be copied
            rows = np.arange(n_samples, dtype=rows.dtype)
            arrays, features = row_arrays(self.X), np.arange(n_features, dtype=np.uint32)
        else:
            *arrays, features = gather_rows(*row_arrays(self.X), rows, n_features)
        positives = np.searchsorted(rows, _rows(reach, first, last))
        ends = (reach.indptr[first : last + 1] - reach.indptr[first]).astype(np.int64)
        thresholds = np.append(self.thresholds[features], 0.0)
        data = NodeData(arrays, rows, positives, ends, thresholds)
        solve = self._solve_jointly if self.loss == "crammer_singer" else self._solve
        pruned, passes, converged = solve(data)
        names = np.append(features, np.uint32(n_features))
        return _stored(pruned, names, passes, converged)

    def stored(self, weights: np.ndarray, passes: Any, converged: Any) -> NodeWeights:
        """Return the weights of the children of a node, which were trained elsewhere."""
        thresholds = np.append(self.thresholds, 0.0)
        pruned = _listed([self._prune(each, thresholds) for each in weights])
        return _stored(pruned, np.arange(len(thresholds), dtype=np.uint32), passes, converged)

    def _solve(self, data: "NodeData") -> tuple:
        """Return pruned weights of all children, passes, and whether they were enough."""
        n_children = len(data.ends) - 1

        def solve(block: np.ndarray) -> tuple:
            # A copy: the signs of positive samples are changed in place.
            constants, limits = self.constants[data.rows], data.ends[block[0] : block[-1] + 2]
            return _train_children(
                *data.arrays, constants, data.positives, limits, data.thresholds, self.bias,
                self.loss == "log" or None, self.tol, self._most_passes, random_state(self.seed)[0],
            )  # fmt: skip

        n_blocks = 1
        if self.shares_children(len(data.rows)):
            n_blocks = min(n_children, options.blocks_per_thread * effective_threads())
        solved = for_each(solve, np.array_split(np.arange(n_children), n_blocks))
        *pruned, counts = map(np.concatenate, zip(*solved, strict=True))
        passes, converged = counts[:, PASSES], counts[:, CONVERGED] > 0
        if not converged.all() and self.max_iter > self._most_passes:
            pruned = [*self._solve_again(data, pruned, passes, converged)]
        return pruned, passes, converged

    def _solve_again(self, data: "NodeData", pruned: Any, passes: Any, converged: Any) -> tuple:
        """Solve problems on which coordinate descent is slow by the methods of `LinearSVC`."""
        sizes, columns, values = pruned
        ends = np.cumsum(sizes)[:-1]
        vectors = list(zip(np.split(columns, ends), np.split(values, ends), strict=True))
        X, loss = data.matrix(), LOSSES[self.loss]
        for child in np.flatnonzero(~converged):
            sign = np.full(len(data.rows), -1.0)
            sign[data.positives[data.ends[child] : data.ends[child + 1]]] = 1.0
            problem = LinearProblem(X, sign, self.cost[data.rows], loss, self.bias)
            limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
            if loss.differentiable and X.shape[0] >= X.shape[1]:
                solution = solve_primal(problem, **limits)
            else:
                solution = solve_dual(problem, seed=self.seed, **limits)
            passes[child] += solution.iterations
            converged[child] = solution.converged
            vectors[child] = self._prune(solution.weights, data.thresholds)
        return _listed(vectors)

    def _solve_jointly(self, data: "NodeData") -> tuple:
        """Return pruned weights of one problem over all children, passes, and if it converged.

        A sample with labels below several children counts as several samples of its cost together.
        """
        n_children = len(data.ends) - 1
        child = np.repeat(np.arange(n_children), np.diff(data.ends))
        copies = np.bincount(data.positives, minlength=len(data.rows))[data.positives]
        cost = self.cost[data.rows[data.positives]] / copies
        problem = CrammerSingerProblem(child, cost, n_children, bias=self.bias)
        X = data.matrix()[data.positives]
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "seed": self.seed}
        solution = solve_linear(X, problem, **limits)
        assert solution.weights is not None
        vectors = [self._prune(weights, data.thresholds) for weights in solution.weights.T]
        status = np.array([solution.iterations]), np.array([solution.converged])
        return _listed(vectors), *status

    def _prune(self, weights: Any, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features and values of the weights above their thresholds.

        The weight of the constant feature is multiplied by its value.
        """
        columns = np.flatnonzero(np.abs(weights) > thresholds)
        scale = np.where(columns == len(weights) - 1, self.bias, 1.0)
        values = np.clip(scale * weights[columns], -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
        return columns.astype(np.uint32), values.astype(np.float32)


@dataclass(frozen=True)
class NodeData:
    """Samples of a node, with the features that occur in them.

    Attributes
    ----------
    arrays : list of ndarray
        Values, features and row starts of the samples.
    rows : ndarray
        Their numbers among all samples.
    positives : ndarray
        Positions of the positive samples of each child, child by child.
    ends : ndarray of shape (n_children + 1,)
        Those of child k are from ``ends[k]`` to ``ends[k + 1] - 1``.
    thresholds : ndarray
        Largest weights that are dropped, and 0 for the constant feature.
    """

    arrays: list[np.ndarray]
    rows: np.ndarray
    positives: np.ndarray
    ends: np.ndarray
    thresholds: np.ndarray

    def matrix(self) -> Any:
        """Return the samples as a CSR matrix."""
        values, columns, starts = self.arrays
        arrays = values, columns.view(np.int32), starts.view(np.int32)
        return sp.csr_array(arrays, shape=(len(self.rows), len(self.thresholds) - 1))


def reaching_samples(tree: LabelTree, labels: Any) -> Any:
    """Return which samples reach which nodes, as a CSC matrix of shape (n_samples, n_nodes)."""
    parents, nodes = tree.parents(), np.flatnonzero(tree.label >= 0)
    leaf_labels, below = tree.label[nodes], []
    while len(nodes):
        below.append((leaf_labels, nodes))
        inner = parents[nodes] >= 0
        leaf_labels, nodes = leaf_labels[inner], parents[nodes[inner]]
    label, node = (np.concatenate(arrays) for arrays in zip(*below, strict=True))
    shape = (labels.shape[1], tree.n_nodes)
    matrix = sp.csr_array((np.ones(len(label), np.float32), (label, node)), shape=shape)
    reach = (labels @ matrix).tocsc()
    reach.sort_indices()
    return reach


def _rows(matrix: Any, first: int, last: int) -> np.ndarray:
    """Return the row numbers of the entries in some columns of a CSC matrix."""
    return matrix.indices[matrix.indptr[first] : matrix.indptr[last]]


def _listed(vectors: list) -> tuple:
    """Return how many weights each child has, their features, and the values."""
    columns, values = map(np.concatenate, zip(*vectors, strict=True))
    return np.array([len(vector[0]) for vector in vectors]), columns, values


def _stored(pruned: Any, names: np.ndarray, passes: Any, converged: Any) -> NodeWeights:
    """Return weights listed child by child as those of a node; ``names`` are the features."""
    number, child, value, present = _by_feature(*pruned, len(names))
    if len(pruned[0]) <= 256:
        child = child.astype(np.uint8)
    return NodeWeights(names[present], number, child, value, passes, converged)


def thresholds_of(
    prune: float, n_samples: int, n_entries: int, squares: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Return the largest weights that are dropped, from the sums of `squares_of`.

    They depend on the root mean square of the nonzero values of a feature, 1 if there are none.
    """
    typical = np.sqrt(squares / np.maximum(counts, 1.0))
    per_sample = max(1.0, n_entries / n_samples)
    return prune / (np.sqrt(per_sample) * np.where(typical > 0.0, typical, 1.0))


def squares_of(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of squares and the number of nonzero values of each feature."""
    squares, counts = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    step = max(options.summed_entries, X.shape[1])
    for first in range(0, X.nnz, step):  # in parts, since bincount copies what it gets
        columns, values = X.indices[first : first + step], X.data[first : first + step]
        squares += np.bincount(columns, values * values, minlength=X.shape[1])
        counts += np.bincount(columns, values != 0.0, minlength=X.shape[1])
    return squares, counts


@compiled(work=lambda *arguments: 100.0 * arguments[0].size, cost=4.0)
def _train_children(
    data, indices, indptr, constants, positives, ends, thresholds, bias, logistic, tol, max_iter,
    seed,
):  # fmt: skip
    """Return the pruned weights of children: how many of each, their features, and the values.

    ``positives[ends[k] : ends[k + 1]]`` are the positive samples of child k, and ``constants`` are
    those of `coordinate_steps` for negative samples only. The last feature is the constant one,
    whose weight is multiplied by its value.
    """
    n, n_children, length = len(constants), len(ends) - 1, len(thresholds)
    sizes, counts = np.zeros(n_children, np.int64), np.zeros((n_children, 7), np.int64)
    features, values = np.empty(length, np.uint32), np.empty(length, np.float32)
    dual, weights, order = np.empty(n), np.empty(length), np.empty(n, np.uint32)
    extremes, random, total = np.empty(4), np.empty(1, np.uint64), 0
    for child in range(n_children):
        dual[:], weights[:], random[0] = 0.0, 0.0, seed
        for i in range(n):
            order[i] = i
        counts[child, ACTIVE] = n
        extremes[0], extremes[1], extremes[2], extremes[3] = -np.inf, np.inf, np.inf, -np.inf
        members = positives[ends[child] : ends[child + 1]]
        for i in members:
            constants[i, 0], constants[i, 3] = -constants[i, 0], -constants[i, 3]
        _train_child(
            data, indices, indptr, bias, constants, dual, weights, order, counts[child], extremes,
            random, logistic, tol, max_iter,
        )  # fmt: skip
        for i in members:
            constants[i, 0], constants[i, 3] = -constants[i, 0], -constants[i, 3]
        if total + length > len(features):
            features, values = (
                _longer(features, 2 * total + length),
                _longer(values, 2 * total + length),
            )
        before = total
        for k in range(length):
            if abs(weights[k]) > thresholds[k]:
                weight = weights[k] * (bias if k == length - 1 else 1.0)
                features[total] = k
                values[total] = min(max(weight, -_LARGEST_WEIGHT), _LARGEST_WEIGHT)
                total += 1
        sizes[child] = total - before
    return sizes, features[:total].copy(), values[:total].copy(), counts


@compiled
def _train_child(
    data, indices, indptr, bias, constants, dual, weights, order, counts, extremes, random,
    logistic, tol, max_iter,
):  # fmt: skip
    """Train the classifier of one child; ``logistic`` is None for losses that are not.

    Code is compiled for one of the two only: the other is left out where the type is known.
    """
    if logistic is None:
        coordinate_steps(
            data, indices, indptr, bias, constants, dual, weights, order, counts, extremes, random,
            tol, True, max_iter, len(dual) * (max_iter + 1),
        )  # fmt: skip
    else:
        logistic_steps(
            data, indices, indptr, bias, constants, dual, weights, order, counts, random, tol,
            max_iter,
        )  # fmt: skip


@uncompiled(_train_child)
def _train_child_on_lists(*arguments):
    loops, logistic = loops_of(_train_child), arguments[-3]
    return loops(*arguments) if logistic else run_on_lists(loops, arguments)


@compiled
def _longer(array, length):
    longer = np.empty(length, array.dtype)
    copy_entries(array, longer[: len(array)])
    return longer


@compiled
def _by_feature(sizes, features, values, n_features):
    """Return weights that are listed child by child in the order of their features."""
    starts, n_present = np.zeros(n_features + 1, np.int64), 0
    for feature in features:
        n_present += starts[feature + 1] == 0
        starts[feature + 1] += 1
    present, counts = np.empty(n_present, np.int64), np.empty(n_present, np.int64)
    slot = 0
    for feature in range(n_features):
        if starts[feature + 1] > 0:
            present[slot], counts[slot] = feature, starts[feature + 1]
            slot += 1
        starts[feature + 1] += starts[feature]
    child, value = np.empty(len(features), np.uint16), np.empty(len(features), np.float32)
    position = 0
    for k in range(len(sizes)):
        for _ in range(sizes[k]):
            slot = starts[features[position]]
            starts[features[position]] = slot + 1
            child[slot], value[slot] = k, values[position]
            position += 1
    return counts, child, value, present

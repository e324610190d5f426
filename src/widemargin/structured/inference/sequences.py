"""Marginals of forests and the best labelings of chains, in compiled code.

With scores s(y) = sum_v unary[v, y_v] + sum_e pairwise[e, y_u, y_v] and a temperature T, the
distribution is p(y) = exp(s(y) / T) / Z. Messages from the leaves to the roots and back give the
marginals p(y_v = s), which for chains is the forward-backward algorithm. The n best labelings of a
chain follow from a list of the n best for each state of each node, by merging sorted lists.
"""

import numpy as np

from widemargin._base.jit import compiled
from widemargin.structured.inference.graphs import Graphs, buffers, mix, unaries


# Not uncompiled: NumPy has exponentials of its own, with other last bits.
@compiled(work=lambda *arguments: np.inf)
def node_marginals(
    graphs: Graphs, weights: np.ndarray, temperature: float, beliefs: np.ndarray
) -> None:
    """Write the marginals of all nodes of samples that are forests, one row for each node."""
    n_samples = len(graphs.nodes) - 1
    matrices, unary, mixed, _ = buffers(graphs, weights, np.arange(n_samples))
    sent, message = np.empty_like(unary), np.empty(unary.shape[1])
    for i in range(n_samples):
        first, n = graphs.nodes[i], graphs.nodes[i + 1] - graphs.nodes[i]
        unaries(graphs, i, weights, unary)
        if n > 0 and len(graphs.layout.barrier):
            unary[0] += graphs.layout.barrier[-1]
        unary[:n] /= temperature
        for k in range(n):
            v = graphs.order[first + k]
            up = graphs.parent[first + v]
            if up >= 0:
                e = graphs.links[i] + graphs.via[first + v]
                matrix = mix(graphs, e, matrices, mixed)
                _sum_product(unary[v], matrix, graphs.edges[e, 0] == v, temperature, sent[v])
                unary[up] += sent[v]
        for k in range(n - 1, -1, -1):
            v = graphs.order[first + k]
            up = graphs.parent[first + v]
            if up >= 0:
                e = graphs.links[i] + graphs.via[first + v]
                matrix = mix(graphs, e, matrices, mixed)
                rest = unary[up].copy()
                for t in range(len(rest)):
                    # A state that the subtree of v excludes has no part in its marginals.
                    rest[t] = rest[t] - sent[v, t] if sent[v, t] > -np.inf else -np.inf
                _sum_product(rest, matrix, graphs.edges[e, 0] != v, temperature, message)
                unary[v] += message
            total = _log_sum(unary[v])
            beliefs[first + v] = np.exp(unary[v] - total)


@compiled
def best_sequences(
    unary: np.ndarray, matrix: np.ndarray, n_best: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``n_best`` best labelings of a chain, best first, and their scores.

    ``matrix`` is the pairwise matrix of all edges. There are fewer if there are not as many.
    """
    length, n_states = unary.shape
    scores = np.full((length, n_states, n_best), -np.inf)
    state = np.zeros((length, n_states, n_best), dtype=np.int64)
    rank = np.zeros((length, n_states, n_best), dtype=np.int64)
    scores[0, :, 0] = unary[0]
    next_rank = np.empty(n_states, dtype=np.int64)
    for v in range(1, length):
        for t in range(n_states):
            next_rank[:] = 0
            for k in range(n_best):
                best, at = -np.inf, -1
                for s in range(n_states):
                    if next_rank[s] < n_best:
                        candidate = scores[v - 1, s, next_rank[s]] + matrix[s, t]
                        if candidate > best:
                            best, at = candidate, s
                if at < 0:
                    break
                scores[v, t, k] = best + unary[v, t]
                state[v, t, k], rank[v, t, k] = at, next_rank[at]
                next_rank[at] += 1
    last = scores[length - 1].ravel()
    order = np.argsort(-last, kind="mergesort")[:n_best]
    n_sequences = int((last[order] > -np.inf).sum())
    labels = np.empty((n_sequences, length), dtype=np.int64)
    for number in range(n_sequences):
        s, k = order[number] // n_best, order[number] % n_best
        for v in range(length - 1, -1, -1):
            labels[number, v] = s
            s, k = state[v, s, k], rank[v, s, k]
    return labels, last[order[:n_sequences]]


@compiled
def _sum_product(scores, matrix, down_rows, temperature, message):
    """message[t] = log sum_s exp(scores[s] + matrix[s, t] / T), the matrix transposed or not."""
    values = np.empty(len(scores))
    for t in range(len(message)):
        for s in range(len(scores)):
            entry = matrix[s, t] if down_rows else matrix[t, s]
            values[s] = scores[s] + entry / temperature
        message[t] = _log_sum(values)


@compiled
def _log_sum(values):
    top = values.max()
    if top == -np.inf:
        return top
    return top + np.log(np.exp(values - top).sum())

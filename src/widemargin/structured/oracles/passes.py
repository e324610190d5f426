"""Passes over samples that are forests, whose steps cost what the features of one sample cost.

The joint feature of a sample is not zero only at the features of its nodes, and the difference of
two outputs only where their labels differ. No step reads or writes all weights:

- The dual block of sample i is cost_i sum_y alpha_i(y) d_i(y), where d_i(y) is the joint feature of
  the true output minus that of y. It is a linear function of the weighted labels, so that the
  shares of the states at each node, n_nodes x n_states numbers, and the sums over the edges are all
  that is stored, whatever the number of features.
- The decay of subgradient descent multiplies a number, the scale of the weights.
- An average A = sum_s c_s w_s of iterates w_s = w_0 + D_1 + .. + D_s with factors c_s is
  A = S_t w_t - sum_j S_{j-1} D_j with S_j = c_1 + .. + c_j: the lag sum_j S_{j-1} D_j changes only
  where the weights do.
"""

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin.solvers.jit import add_multiple, copy_entries
from widemargin.solvers.structured.problem import sum_in_order
from widemargin.structured.inference.graphs import (
    Graphs,
    add_difference,
    add_edges,
    buffers,
    max_product,
    most_violating,
    node_losses,
    pass_work,
    unaries,
    write_matrices,
)


@compiled(work=lambda graphs, *rest: pass_work(graphs, rest[3]), cost=12.0)
def frank_wolfe_pass(
    graphs: Graphs, extra: np.ndarray, first: np.ndarray, samples: np.ndarray, order: np.ndarray,
    cost: np.ndarray, line_search: bool, averaging: bool, steps: int, weights: np.ndarray,
    blocks: np.ndarray, pairs: np.ndarray, losses: np.ndarray, average: np.ndarray,
    average_loss: float,
) -> float:  # fmt: skip
    """Take steps of block-coordinate Frank-Wolfe.

    Block k, with ``cost``, ``pairs`` and ``losses``, is that of ``samples[k]``; its rows of
    ``blocks`` and, unless it is empty, of ``extra`` begin at ``first[k]``. ``order`` is the order
    of the blocks, and ``steps`` is the number of earlier steps. Returns the new ``average_loss``.
    """
    work, labels = buffers(graphs, weights, samples), np.empty_like(graphs.truth)
    change, lag = np.zeros_like(weights), np.zeros_like(weights)
    towards, n_unary = np.empty_like(work[1]), graphs.layout.n_unary
    total, sum_of_factors = sum_in_order(losses), 0.0
    earlier = 0.5 * steps * (steps + 1.0)
    for k in order:
        i, block = samples[k], blocks[first[k] : first[k] + _n_nodes(graphs, samples[k])]
        write_matrices(graphs.layout, weights, work[0])
        unaries(graphs, i, weights, work[1])
        along = _product(block, work[1]) + _inner(pairs[k], weights[n_unary:])
        loss, slack = most_violating(graphs, i, extra, first[k], work, labels)
        if len(extra):  # the added terms count as loss
            loss += _added(graphs, i, labels, extra, first[k])
        _towards_labels(graphs, i, labels, block, towards)
        add_edges(graphs, i, graphs.truth, 1.0, change)
        add_edges(graphs, i, labels, -1.0, change)
        pair_change = change[n_unary:]
        add_multiple(-1.0, pairs[k], pair_change, 0)
        gamma = 2.0 * len(losses) / (steps + 2.0 * len(losses))
        if line_search:
            gap = cost[k] * (along + slack) - losses[k]
            gamma = 0.0
            if gap > 0.0:
                _add_nodes(graphs, i, towards, 1.0, change)
                distance = _inner(pair_change, pair_change) + _clear(graphs, i, towards, change)
                distance *= cost[k] ** 2
                # Where the features of all outputs are equal, only the loss moves, by the whole
                # step.
                gamma = 1.0 if gap >= distance else gap / distance
        if gamma > 0.0:
            _add_nodes(graphs, i, towards, gamma * cost[k], weights)
            add_multiple(gamma * cost[k], pair_change, weights, n_unary)
            if averaging:
                _add_nodes(graphs, i, towards, sum_of_factors * gamma * cost[k], lag)
                add_multiple(sum_of_factors * gamma * cost[k], pair_change, lag, n_unary)
            for v in range(len(block)):
                add_multiple(gamma, towards[v], block[v], 0)
            add_multiple(gamma, pair_change, pairs[k], 0)
        pair_change[:] = 0.0
        moved = gamma * (cost[k] * loss - losses[k])
        losses[k] += moved
        total += moved
        steps += 1
        sum_of_factors += steps
        average_loss += (2.0 / (steps + 1.0) if averaging else 1.0) * (total - average_loss)
    if averaging:
        _average(earlier, sum_of_factors, earlier + sum_of_factors, weights, lag, average)
    else:
        copy_entries(weights, average)
    return average_loss


@compiled(work=lambda graphs, first, samples, *rest: pass_work(graphs, samples), cost=4.0)
def sum_blocks(
    graphs: Graphs, first: np.ndarray, samples: np.ndarray, cost: np.ndarray, blocks: np.ndarray,
    pairs: np.ndarray, row: np.ndarray,
) -> None:  # fmt: skip
    """Add the dual blocks of samples to ``row``."""
    for k in range(len(samples)):
        block = blocks[first[k] : first[k] + _n_nodes(graphs, samples[k])]
        _add_nodes(graphs, samples[k], block, cost[k], row)
        add_multiple(cost[k], pairs[k], row, graphs.layout.n_unary)


@compiled(work=lambda graphs, order, *rest: pass_work(graphs, order), cost=2.0)
def perceptron_pass(
    graphs: Graphs, order: np.ndarray, cost: np.ndarray, rate: float, steps: int,
    weights: np.ndarray, average: np.ndarray,
) -> float:  # fmt: skip
    """Take perceptron steps on samples in an order; return the sum of their losses.

    ``average`` is the mean of the weights after each of ``steps`` earlier steps, and is updated.
    """
    matrices, unary, mixed, back = buffers(graphs, weights, order)
    labels, lag, total = np.empty_like(graphs.truth), np.zeros_like(weights), 0.0
    for k in range(len(order)):
        i = order[k]
        write_matrices(graphs.layout, weights, matrices)
        unaries(graphs, i, weights, unary)
        max_product(graphs, i, unary, matrices, mixed, back, labels)
        loss = node_losses(graphs, i, labels)
        total += loss
        if loss > 0.0:
            add_difference(graphs, labels, i, rate * cost[i], weights)
            add_difference(graphs, labels, i, k * rate * cost[i], lag)
    _average(float(steps), float(len(order)), float(steps + len(order)), weights, lag, average)
    return total


@compiled(work=lambda graphs, order, *rest: pass_work(graphs, order), cost=6.0)
def subgradient_pass(
    graphs: Graphs, order: np.ndarray, batch_size: int, n_samples: int, cost: np.ndarray,
    schedule: tuple[float, float, float], power: int, steps: int, smallest_scale: float,
    weights: np.ndarray, average: np.ndarray, average_weight: float, plane: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Take subgradient steps on batches of samples in an order.

    The length of step t is rate / (1 + t / offset) ** decay with ``schedule`` (rate, offset,
    decay), and t ** ``power`` its weight in the average; a power of -1 averages nothing. The
    differences of the samples are added to ``plane``. Returns the sum of the losses times costs,
    and the weight of the average.
    """
    rate, offset, decay = schedule
    work, labels = buffers(graphs, weights, order), np.empty_like(graphs.truth)
    lag, loss, scale, factors = np.zeros_like(weights), 0.0, 1.0, 0.0
    add_multiple(-average_weight, average, lag, 0)
    for begin in range(0, len(order), batch_size):
        batch = order[begin : begin + batch_size]
        write_matrices(graphs.layout, weights, work[0])
        for matrix in work[0]:
            _multiply_rows(scale, matrix, len(matrix))
        for i in batch:
            unaries(graphs, i, weights, work[1])
            _multiply_rows(scale, work[1], _n_nodes(graphs, i))
            task_loss, _ = most_violating(graphs, i, work[1][:0], 0, work, labels)
            loss += cost[i] * task_loss
            add_difference(graphs, labels, i, cost[i], plane)
        steps += 1
        eta = rate / (1.0 + steps / offset) ** decay
        shrunk = scale * (1.0 - eta)
        if abs(shrunk) < smallest_scale:  # the weights are written with a scale of 1
            add_multiple(-factors, weights, lag, 0)
            _multiply(shrunk, weights)
            scale, factors = 1.0, 0.0
        else:
            scale = shrunk
        pull = eta * n_samples / len(batch) / scale
        for i in batch:
            add_difference(graphs, labels, i, pull * cost[i], weights)
            if power >= 0:
                add_difference(graphs, labels, i, factors * pull * cost[i], lag)
        if power >= 0:
            factors += scale * float(steps) ** power
            average_weight += float(steps) ** power
    if power >= 0:
        _average(0.0, factors, average_weight, weights, lag, average)
    _multiply(scale, weights)
    return loss, average_weight


@compiled
def _average(earlier, factors, total, weights, lag, average):
    """Update an average of which ``earlier`` of the ``total`` weight is there."""
    for j in range(len(average)):
        average[j] = (average[j] * earlier + (factors * weights[j] - lag[j])) / total


@compiled
def _multiply(factor, row):
    for j in range(len(row)):
        row[j] *= factor


@compiled
def _multiply_rows(factor, rows, count):
    """Multiply the first ``count`` rows by a factor."""
    for v in range(count):
        _multiply(factor, rows[v])


@compiled
def _n_nodes(graphs, i):
    return graphs.nodes[i + 1] - graphs.nodes[i]


@compiled
def _product(shares, unary):
    total = 0.0
    for v in range(len(shares)):
        for s in range(shares.shape[1]):
            total += shares[v, s] * unary[v, s]
    return total


@compiled
def _inner(a, b):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled
def _added(graphs, i, labels, extra, first):
    """Return the added terms of labels minus those of the true labels."""
    total, begin = 0.0, graphs.nodes[i]
    for v in range(_n_nodes(graphs, i)):
        total += extra[first + v, labels[begin + v]] - extra[first + v, graphs.truth[begin + v]]
    return total


@compiled
def _towards_labels(graphs, i, labels, block, towards):
    """Write the shares of the corner of ``labels`` minus those of a block."""
    begin = graphs.nodes[i]
    for v in range(len(block)):
        for s in range(block.shape[1]):
            towards[v, s] = -block[v, s]
        towards[v, graphs.truth[begin + v]] += 1.0
        towards[v, labels[begin + v]] -= 1.0


@compiled
def _add_nodes(graphs, i, shares, weight, row):
    """Add weight times the joint feature of the nodes of a sample with shares of states."""
    layout, begin, n_states = graphs.layout, graphs.nodes[i], shares.shape[1]
    states = np.empty(n_states, dtype=np.int64)
    for v in range(_n_nodes(graphs, i)):
        n_active = _active_states(layout, shares[v], states)
        if n_active == 0:
            continue
        signed = _inner(layout.signs, shares[v])
        for k in range(graphs.first[begin + v], graphs.last[begin + v]):
            f, x = graphs.column[k] + graphs.shift[begin + v], weight * graphs.value[k]
            if layout.shared:
                row[f] += signed * x
            else:
                for a in range(n_active):
                    row[f * n_states + states[a]] += shares[v, states[a]] * x


@compiled
def _clear(graphs, i, shares, row):
    """Return the squared norm of what `_add_nodes` has written to zeros, and write zeros."""
    layout, begin, n_states = graphs.layout, graphs.nodes[i], shares.shape[1]
    states, total = np.empty(n_states, dtype=np.int64), 0.0
    for v in range(_n_nodes(graphs, i)):
        n_active = _active_states(layout, shares[v], states)
        for k in range(graphs.first[begin + v], graphs.last[begin + v] if n_active else 0):
            f = graphs.column[k] + graphs.shift[begin + v]
            for a in range(n_active):
                at = f if layout.shared else f * n_states + states[a]
                total += row[at] ** 2
                row[at] = 0.0  # nodes may have features in common
    return total


@compiled
def _active_states(layout, share, states):
    """Write the states with a share; return their number."""
    count = 0
    for s in range(len(share)):
        if share[s] != 0.0:
            states[count] = s
            count += 1
    return min(count, 1) if layout.shared else count


# The same in vector operations, which run until the functions above are compiled.


@uncompiled(_average)
def _average_by_vectors(earlier, factors, total, weights, lag, average):
    average[:] = (average * earlier + (factors * weights - lag)) / total


@uncompiled(_multiply)
def _multiply_by_vectors(factor, row):
    row *= factor


@uncompiled(_multiply_rows)
def _multiply_rows_by_vectors(factor, rows, count):
    rows[:count] *= factor

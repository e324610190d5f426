"""Max-product on graphs with cycles: messages along all edges, damped, until they are stable.

Message m_{u -> v}(t) = max_s unary[u, s] + pairwise[s, t] + sum of m_{-> u}(s) of other neighbors.
The labels maximize the sum of unary potential and messages of each node. There is no bound, and the
messages need not converge: use "trws" for a bound, "max-product" to reproduce results of others.

References
----------
Y. Weiss, W. Freeman: On the optimality of solutions of the max-product belief-propagation algorithm
in arbitrary graphs. IEEE Transactions on Information Theory 2001.
"""

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import inference_options as options
from widemargin.structured.inference.potentials import Labeling, Potentials


def loopy_max_product(
    potentials: Potentials, max_iter: int | None = None, damping: float | None = None,
    tol: float | None = None,
) -> Labeling:  # fmt: skip
    """Return the labels of the highest beliefs after at most ``max_iter`` rounds of messages."""
    unary, edges, pairwise = potentials
    sides = np.stack([pairwise, pairwise.transpose(0, 2, 1)], axis=1)
    beliefs = _exchange(
        unary, edges, sides,
        options.loopy_rounds if max_iter is None else int(max_iter),
        options.loopy_damping if damping is None else float(damping),
        options.loopy_tol if tol is None else float(tol),
    )  # fmt: skip
    return potentials.labeling("max-product", beliefs.argmax(axis=1))


@compiled(work=lambda unary, edges, sides, *rest: 20.0 * (unary.size + sides.size))
def _exchange(unary, edges, sides, max_iter, damping, tol):
    """Return the beliefs of the nodes; rows of sides[e, k] are the states of end k of edge e."""
    beliefs, (n_edges, _, n_states, _) = unary.copy(), sides.shape
    messages = np.zeros((n_edges, 2, n_states))  # to the k-th end of edge e
    change, message = np.empty(n_states), np.empty(n_states)
    for _ in range(max_iter):
        largest = 0.0
        for e in range(n_edges):
            for end in range(2):
                source, target = edges[e, 1 - end], edges[e, end]
                message[:] = -np.inf
                for s in range(n_states):
                    cavity = beliefs[source, s] - messages[e, 1 - end, s]
                    for t in range(n_states):
                        message[t] = max(message[t], cavity + sides[e, 1 - end, s, t])
                top = message.max()
                for t in range(n_states):
                    change[t] = (1.0 - damping) * (message[t] - top - messages[e, end, t])
                    messages[e, end, t] += change[t]
                    beliefs[target, t] += change[t]
                    largest = max(largest, abs(change[t]))
        if largest < tol:
            break
    return beliefs

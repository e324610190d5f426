"""Block-coordinate Frank-Wolfe for the structured problem.

    min over w   1/2 ||w - anchor||^2  +  sum_i cost_i * H_i(w)

(`structured.problem` says what H_i is). In the dual every sample i owns a point of a
simplex over its outputs; its share of w is w_i = cost_i * sum_y alpha_i(y) d_i(y), and
w = anchor + sum_i w_i. A step asks the oracle for one sample, whose answer is the corner

    s = cost_i d_i(y),   l = cost_i loss_i(y)

and moves w_i towards s as far as is best: by gamma = gap_i / ||w_i - s||^2, cut to [0, 1], where
gap_i = w . (w_i - s) + l - l_i is what the block misses of the optimum. The mean of the iterates,
weighted by their number, converges faster in the primal; it is what is tested and returned
(Lacoste-Julien et al., 2013).

References
----------
S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher: Block-coordinate Frank-Wolfe optimization for
structural SVMs. ICML 2013.
"""

from dataclasses import dataclass

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin.solvers.structured.problem import (
    Oracle,
    Record,
    StructuredSolution,
    dot,
    lower_bound,
    upper_bounds,
)

SAMPLE_METHODS = ("perm", "rnd", "seq")


def solve_blocks(
    oracle: Oracle,
    cost: np.ndarray,
    *,
    anchor: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    check_every: int = 10,
    seed: int = 0,
    report=None,
    **options,
) -> StructuredSolution:
    """Solve the problem.

    Parameters
    ----------
    oracle : Oracle
        The samples.
    cost : ndarray of shape (n_samples,)
        At least 0.
    anchor : ndarray of shape (size,), optional
        What the weights are drawn to; 0 by default.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=1000
        Most passes over the samples.
    check_every : int, default=10
        Passes between two looks at the gap, each of which costs about one pass.
    seed : int, default=0
        Of the order of samples.
    report : callable, optional
        Called with the state after every pass; True stops the solver.
    **options
        ``averaging``, ``line_search`` and ``sampling`` of `start_blocks`.

    Returns
    -------
    StructuredSolution
    """
    state = start_blocks(
        oracle, cost, anchor=anchor, tol=tol, max_iter=max_iter, check_every=check_every, seed=seed,
        **options,
    )  # fmt: skip
    run_in_slices(advance_blocks, state, report)
    return finish_blocks(state)


@dataclass
class BlocksState:
    """Where `solve_blocks` stands: `numbers` is all that is needed to go on elsewhere."""

    oracle: Oracle
    cost: np.ndarray
    anchor: np.ndarray | None
    tol: float
    max_iter: int
    check_every: int
    averaging: bool
    line_search: bool
    sampling: str
    random: np.random.Generator
    w: np.ndarray
    blocks: np.ndarray
    losses: np.ndarray
    average: np.ndarray
    average_loss: float
    record: Record
    steps: int = 0
    iterations: int = 0
    finished: bool = False

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        names = ("w", "blocks", "losses", "average", "average_loss", "steps", "iterations")
        plain = {name: getattr(self, name) for name in names}
        random = self.random.bit_generator.state
        return {**plain, "record": self.record.numbers(), "random": random}

    def resume(self, numbers: dict) -> "BlocksState":
        """Go on from the `numbers` of another state of the same problem."""
        numbers = dict(numbers)
        self.random.bit_generator.state = numbers.pop("random")
        self.record = Record.of(numbers.pop("record"))
        for name, value in numbers.items():
            setattr(self, name, value)
        self.finished = self.record.settled(self.tol)
        return self


def start_blocks(
    oracle: Oracle,
    cost: np.ndarray,
    *,
    anchor: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    check_every: int = 10,
    averaging: bool = True,
    line_search: bool = True,
    sampling: str = "perm",
    seed: int = 0,
    blocks: np.ndarray | None = None,
    losses: np.ndarray | None = None,
) -> BlocksState:
    """A state at w = anchor, or at the shares ``blocks`` of the samples and their ``losses``."""
    cost = np.asarray(cost, dtype=np.float64)
    if blocks is None or losses is None:
        blocks, losses = np.zeros((oracle.n_samples, oracle.size)), np.zeros(oracle.n_samples)
    w = blocks.sum(axis=0)
    if anchor is not None:
        w += anchor
    return BlocksState(
        oracle, cost, anchor, tol, max_iter, check_every, averaging, line_search, sampling,
        np.random.default_rng(seed), w, blocks, losses, w.copy(), float(losses.sum()),
        Record(w.copy()),
    )  # fmt: skip


def advance_blocks(state: BlocksState) -> bool:
    """Make a pass over the samples; True when there is nothing more to do."""
    if state.finished or state.iterations >= state.max_iter:
        return True
    order = _order(state)
    sweep = getattr(state.oracle, "sweep", None)
    if sweep is None or not sweep(order, state):
        _sweep(order, state)
    state.iterations += 1
    last = state.iterations >= state.max_iter
    if last or state.iterations % state.check_every == 0:
        _check(state)
        state.finished = last or state.record.settled(state.tol)
    return state.finished


def finish_blocks(state: BlocksState) -> StructuredSolution:
    """The solution at the state."""
    if not state.record.curves["iteration"] or (
        not state.finished and state.record.curves["iteration"][-1] != state.iterations
    ):
        _check(state)
    return state.record.solution(state.iterations, state.tol)


def _order(state):
    n = state.oracle.n_samples
    if state.sampling == "perm":
        return state.random.permutation(n)
    return state.random.integers(n, size=n) if state.sampling == "rnd" else np.arange(n)


def _check(state):
    """Take note of the gap between the mean of the iterates and the better of two dual points."""
    # Sums of many steps are off by rounding: here they are made anew from what they stand for.
    state.w = state.blocks.sum(axis=0)
    loss = float(state.losses.sum())
    dual = lower_bound(state.w, loss, state.anchor)
    if state.anchor is not None:
        state.w += state.anchor
    w = state.w
    if state.averaging:
        w = state.average
        shift = w if state.anchor is None else w - state.anchor
        dual = max(dual, lower_bound(shift, state.average_loss, state.anchor))
    objective, bound, _ = upper_bounds(state.oracle, w, state.cost, state.anchor)
    state.record.enter(state.iterations, w, objective, bound, dual)


def _sweep(order, state):
    """A pass over the samples, one call of the oracle for each.

    The same steps on forests are compiled in `widemargin.structured.inference.graphs.sweep`.
    """
    difference = np.empty(state.oracle.size)
    total = float(state.losses.sum())
    n = state.oracle.n_samples
    for i in order:
        loss, slack = state.oracle.violation(i, state.w, difference)
        cost, block, before = state.cost[i], state.blocks[i], state.losses[i]
        way = cost * difference - block
        gamma = 2.0 * n / (state.steps + 2.0 * n)
        if state.line_search:
            # w . s = cost * (loss - slack), known from inference.
            missing = dot(state.w, block) + cost * slack - before
            apart = dot(way, way)
            # Where features do not tell outputs apart the loss alone moves, all the way.
            gamma = 0.0
            if missing > 0.0:
                gamma = 1.0 if missing >= apart else missing / apart
        way *= gamma
        block += way
        state.w += way
        share = 2.0 / (state.steps + 2.0) if state.averaging else 1.0
        state.average += share * (state.w - state.average)
        state.losses[i] += gamma * (cost * loss - before)
        total += state.losses[i] - before
        state.average_loss += share * (total - state.average_loss)
        state.steps += 1

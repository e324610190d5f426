"""Block-coordinate Frank-Wolfe for the structured problem.

    min over w   1/2 ||w - anchor||^2  +  sum_i cost_i * H_i(w)

(H_i is defined in `structured.problem`). In the dual, every sample i has a point alpha_i of a
simplex over its outputs. Its block is w_i = cost_i * sum_y alpha_i(y) d_i(y), with the loss
l_i = cost_i * sum_y alpha_i(y) loss_i(y), and w = anchor + sum_i w_i. A step calls the oracle for
one sample, whose maximizer is the corner

    s = cost_i d_i(y),   l = cost_i loss_i(y)

and moves w_i towards s by gamma = gap_i / ||w_i - s||^2, clipped to [0, 1], the exact line search,
where gap_i = w . (w_i - s) + l - l_i is the duality gap of the block. An oracle with compiled
passes stores the block as weighted labels, in memory that does not depend on the number of weights
(`widemargin.structured.oracles.passes`). The average of the iterates,
weighted by their number, converges faster in the primal; it is checked and returned
(Lacoste-Julien et al., 2013).

The gap falls with the number of passes, no faster. A small problem that needs many passes is
handed over to the cutting-plane method, which starts from the plane of the current blocks.

References
----------
S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher: Block-coordinate Frank-Wolfe optimization for
structural SVMs. ICML 2013.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.jit import compiled
from widemargin._base.options import structured_solver_options as options
from widemargin.solvers.structured.cutting_planes import CuttingPlanesState
from widemargin.solvers.structured.problem import PassState, StructuredSolution

SAMPLE_METHODS = ("perm", "rnd", "seq")


def solve_frank_wolfe(
    oracle: Any,
    cost: np.ndarray,
    *,
    report: Callable | None = None,
    checkpoint: TaskCheckpoint | None = None,
    **parameters: Any,
) -> StructuredSolution:
    """Solve the problem.

    Parameters
    ----------
    oracle : PlainOracle, GraphOracle or OracleSubset
        Loss-augmented inference on the samples.
    cost : ndarray of shape (n_samples,)
        Non-negative factors of the H_i.
    report : callable, optional
        Called with the state after every pass; returns whether to stop.
    checkpoint : TaskCheckpoint, optional
        Saves and resumes the state.
    **parameters
        Further parameters of `FrankWolfeState`.

    Returns
    -------
    StructuredSolution
    """
    state = FrankWolfeState(oracle, cost, **parameters)
    run_in_slices(FrankWolfeState.advance, state, report, checkpoint)
    return state.finish()


@dataclass(kw_only=True)
class FrankWolfeState(PassState):
    """State of block-coordinate Frank-Wolfe.

    Parameters
    ----------
    averaging : bool, default=True
        Whether to check and return the weighted average of the iterates.
    line_search : bool, default=True
        Whether to use the exact line search. If not, steps follow a fixed schedule.
    sampling : {'perm', 'rnd', 'seq'}, default='perm'
        Order of the samples in a pass: permuted, drawn with replacement, or sequential.
    blocks, pairs : ndarray, optional
        Blocks to start from, then the current ones; 0 by default. They are those of
        ``oracle.empty_blocks``, if it has compiled passes, and do not include the cost. Otherwise
        ``blocks`` has the shape (n_samples, size) and includes the cost, and ``pairs`` is empty.
    losses : ndarray of shape (n_samples,), optional
        The losses of the blocks, with the cost.
    planes : dict, optional
        ``planes`` and ``offsets`` of a `CuttingPlanesState` that solves the problem from there.
        Small problems that take many passes get one, whose rounds count as passes.
    """

    averaging: bool = True
    line_search: bool = True
    sampling: str = "perm"
    blocks: Any = None
    pairs: Any = None
    losses: Any = None
    planes: Any = None
    implicit: bool = field(init=False)
    average: np.ndarray = field(init=False)
    average_loss: float = field(init=False)
    steps: int = 0

    saved = ("w", "blocks", "pairs", "losses", "average", "average_loss", "steps", "iterations")

    def __post_init__(self) -> None:
        self.cost = np.asarray(self.cost, dtype=float)
        empty_blocks = getattr(self.oracle, "empty_blocks", None)
        empty = None if empty_blocks is None else empty_blocks()
        self.implicit = empty is not None and not self.is_bounded
        if self.blocks is None:
            n, size = self.oracle.n_samples, self.oracle.size
            if empty is None or not self.implicit:  # else these need more memory than there may be
                empty = np.zeros((n, size)), np.zeros((n, 0))
            self.blocks, self.pairs = empty
            self.losses = np.zeros(n)
        self.w = self._sum_blocks() + (0.0 if self.anchor is None else self.anchor)
        super().__post_init__()
        self.average, self.average_loss = self.w.copy(), float(self.losses.sum())
        if self.planes is not None:
            self.planes = self._cutting_planes(**self.planes)

    def warm_start(self) -> dict[str, Any]:
        arrays = {"blocks": self.blocks, "pairs": self.pairs, "losses": self.losses}
        planes = {} if self.planes is None else self.planes.warm_start()
        return {**arrays, "implicit": self.implicit, **planes}

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "planes": {} if self.planes is None else self.planes.to_dict()}

    def expected(self, saved: dict[str, Any]) -> dict[str, Any]:
        planes = saved["planes"] and self._cutting_planes().expected(saved["planes"])
        return {**super().expected(saved), "planes": planes}

    def resume(self, saved: dict[str, Any]) -> Self:
        planes = saved["planes"]
        super().resume({**saved, "planes": None})
        if planes:
            self.planes = self._cutting_planes().resume(planes)
        return self

    def iterate(self) -> None:
        if self.planes is None:
            super().iterate()
            return
        self.planes.advance()
        self.iterations += 1
        record = self.planes.record
        self.record.add(self.iterations, record.w, record.objective, record.bound, record.dual)
        self.finished = self.planes.finished

    def run_pass(self) -> None:
        order = self._order()
        if self.implicit:
            self.oracle.frank_wolfe_pass(order, self)
        else:
            self._step_samples(order)

    def check_gap(self) -> None:
        # Sums of many steps have rounding errors: recompute them from the blocks.
        shift = self._sum_blocks()
        self.w = self.project(shift + self.anchor)
        w, dual = self.w, self.lower_bound(shift, float(self.losses.sum()))
        if self.averaging:
            w = self.average
            if not self.is_bounded:  # the average of projections is that of no block
                dual = max(dual, self.lower_bound(w - self.anchor, self.average_loss))
        self.record_at(w, dual)
        if self._is_slow():
            start = {"planes": [shift], "offsets": [float(self.losses.sum())]}
            self.planes = self._cutting_planes(**start)

    def _is_slow(self) -> bool:
        """Return whether to hand over to cutting planes; it depends on nothing but the passes."""
        due = self.iterations - self.check_every < options.slow_passes <= self.iterations
        small = self.oracle.n_samples * self.oracle.size <= options.plane_numbers
        most = self.tol * min(self.max_iter, options.most_passes)
        # A gap of nan, where inference is not exact, is never too large.
        return due and small and self.record.gap * self.iterations > most

    def _cutting_planes(self, **start: Any) -> CuttingPlanesState:
        """Return a state whose rounds count as passes."""
        return CuttingPlanesState(
            self.oracle, self.cost, anchor=self.anchor, tol=self.tol, max_iter=self.max_iter,
            floor=self.floor, ceiling=self.ceiling, **start,
        )  # fmt: skip

    def _sum_blocks(self) -> np.ndarray:
        if self.implicit:
            return self.oracle.sum_blocks(self.blocks, self.pairs, self.cost)
        return self.blocks.sum(axis=0)

    def _order(self) -> np.ndarray:
        n, random = self.oracle.n_samples, self.random
        if self.sampling == "perm":
            return random.permutation(n)
        return random.integers(n, size=n) if self.sampling == "rnd" else np.arange(n)

    def _step_samples(self, order: np.ndarray) -> None:
        """Take a step for each sample, with one call of the oracle for each."""
        corner = np.empty(self.oracle.size)
        total = float(self.losses.sum())
        sums = self._sum_blocks() + self.anchor if self.is_bounded else self.w
        floor, ceiling = (self.floor, self.ceiling) if self.is_bounded else np.empty((2, 0))
        for i in order:
            loss, slack = self.oracle.violation(i, self.w, corner)
            cost = self.cost[i]
            corner *= cost
            total, self.average_loss = step_block(
                i, corner, cost * loss, cost * slack, self.steps, self.line_search, self.averaging,
                floor, ceiling, self.w, sums, self.blocks, self.losses, self.average, total,
                self.average_loss,
            )  # fmt: skip
            self.steps += 1


@compiled
def step_block(
    k: int, corner: np.ndarray, corner_loss: float, slack: float, steps: int, line_search: bool,
    averaging: bool, floor: np.ndarray, ceiling: np.ndarray, weights: np.ndarray, sums: np.ndarray,
    blocks: np.ndarray, losses: np.ndarray, average: np.ndarray, total: float, average_loss: float,
) -> tuple[float, float]:  # fmt: skip
    """Move block ``k`` towards a corner, after ``steps`` earlier steps.

    ``slack`` is cost_k H_k, so that the gap of the block is w . w_k + slack - l_k. Updates the
    weights, the block, its loss and the average of the weights in place. Returns ``total``, the sum
    of the losses, and ``average_loss``, its average. The weights are the projections of ``sums``
    onto the bounds, or, if these are empty, the sums, which are then the same array. The curvature
    along the step is at most that without bounds, so that its line search is a step that ascends.
    """
    block, n_blocks = blocks[k], len(losses)
    gamma = 2.0 * n_blocks / (steps + 2.0 * n_blocks)
    if line_search:
        along, squared_distance = block_products(weights, block, corner)
        gap = along + slack - losses[k]
        # Where the features of all outputs are equal, only the loss moves, by the whole step.
        gamma = 0.0
        if gap > 0.0:
            gamma = 1.0 if gap >= squared_distance else gap / squared_distance
    share = 2.0 / (steps + 2.0) if averaging else 1.0
    for j in range(len(weights)):
        step = gamma * (corner[j] - block[j])
        block[j] += step
        sums[j] += step
        if len(floor):
            weights[j] = min(max(sums[j], floor[j]), ceiling[j])
        average[j] += share * (weights[j] - average[j])
    moved = gamma * (corner_loss - losses[k])
    losses[k] += moved
    total += moved
    return total, average_loss + share * (total - average_loss)


@compiled
def block_products(
    weights: np.ndarray, block: np.ndarray, corner: np.ndarray
) -> tuple[float, float]:
    """Return weights . block and ||corner - block||^2, each in four interleaved sums."""
    whole = len(weights) - len(weights) % 4
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    for j in range(0, whole, 4):
        a0 += weights[j] * block[j]
        a1 += weights[j + 1] * block[j + 1]
        a2 += weights[j + 2] * block[j + 2]
        a3 += weights[j + 3] * block[j + 3]
        b0 += (corner[j] - block[j]) ** 2
        b1 += (corner[j + 1] - block[j + 1]) ** 2
        b2 += (corner[j + 2] - block[j + 2]) ** 2
        b3 += (corner[j + 3] - block[j + 3]) ** 2
    for j in range(whole, len(weights)):
        a0 += weights[j] * block[j]
        b0 += (corner[j] - block[j]) ** 2
    return (a0 + a1) + (a2 + a3), (b0 + b1) + (b2 + b3)

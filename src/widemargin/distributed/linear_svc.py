"""LinearSVC on partitions: rounds of CoCoA+, then Newton's method (see `cocoa` and `newton`)."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from widemargin._base.options import distributed_options as options
from widemargin._base.sklearn_compat import validate_parameters
from widemargin._base.targets import class_margins, class_weights
from widemargin.distributed import cocoa, newton
from widemargin.distributed.partitions import (
    Block,
    Outline,
    combine,
    each,
    fetch,
    set_features,
    stay,
    task,
    validated,
    workers_of,
)
from widemargin.distributed.samples import LinearSamples
from widemargin.solvers.hinge import dual_coordinate_descent
from widemargin.solvers.hinge.losses import LOSSES
from widemargin.solvers.solution import Solution
from widemargin.svm.linear_svc import LinearTraining, constant_feature


def fit_blocks(
    estimator: Any, blocks: list[tuple], gap_tol: float, max_rounds: int
) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a fitted clone, and the history of the rounds, for blocks of samples and labels."""
    _check(estimator)
    blocks, total = validated(estimator, blocks)
    targets = _targets(estimator, total)
    n_functions = 1 if len(total.classes) == 2 else len(total.classes)
    prepare = partial(
        _samples, classes=total.classes, n_functions=n_functions,
        cost=float(estimator.C) * targets.class_weight, margin=targets.class_margin,
        loss=estimator.loss, bias=constant_feature(estimator),
    )  # fmt: skip
    samples = stay(each(prepare, workers_of(blocks), blocks))
    del blocks
    run = Run(samples, gap_tol, max_rounds, estimator.verbose)
    run.descend(n_functions, total.n_features)
    run.finish(total.n_features)
    joint = run.result()
    solutions = [
        Solution(
            np.empty(0), targets.bias * float(weights[-1]), float(objective), float(bound),
            float(gap), joint.rounds, bool(gap <= gap_tol), weights,
        )
        for weights, objective, bound, gap in zip(
            joint.best, joint.objective, joint.bound, joint.gap, strict=True
        )
    ]  # fmt: skip
    fitted = clone(estimator)
    set_features(fitted, total)
    fitted.__dict__.update(targets.attributes(solutions), _solutions=())
    _warn(solutions, joint.rounds, max_rounds)
    return fitted, {name: np.array(values) for name, values in run.history.items()}


def _warn(solutions: list[Solution], rounds: int, max_rounds: int) -> None:
    """Warn if the gap of some function is above the tolerance."""
    missed = [solution.gap for solution in solutions if not solution.converged]
    if missed:
        advice = "Increase max_rounds" if rounds >= max_rounds else "Increase gap_tol"
        warnings.warn(
            f"{len(missed)} of {len(solutions)} binary subproblems did not reach gap_tol within "
            f"{rounds} rounds (max_rounds={max_rounds}). Largest relative duality gap: "
            f"{max(missed):.1e}. {advice}, or scale the features.",
            ConvergenceWarning,
            stacklevel=5,
        )


def _check(estimator: Any) -> None:
    """Raise an error for parameters that fits on Dask collections do not support."""
    validate_parameters(estimator)
    if estimator.penalty != "l2" or estimator.multi_class != "ovr":
        raise ValueError(
            "LinearSVC must have penalty='l2' and multi_class='ovr' on Dask collections, got "
            f"penalty={estimator.penalty!r} and multi_class={estimator.multi_class!r}."
        )
    check_no_checkpoint(estimator)


def check_no_checkpoint(estimator: Any) -> None:
    """Raise an error if the estimator has a checkpoint."""
    if estimator.checkpoint is not None:
        raise ValueError(
            "checkpoint is not supported on Dask collections: the scheduler computes again what a "
            "lost worker held. Set checkpoint=None."
        )


def _targets(estimator: Any, total: Outline) -> LinearTraining:
    """Return the targets of no samples, with the classes, their weights and margins."""
    labels = total.classes, total.classes, total.counts
    return LinearTraining(
        classes=total.classes, codes=np.empty(0, np.intp), weight=None,
        class_weight=class_weights(estimator.class_weight, *labels),
        class_margin=class_margins(estimator.class_margin, *labels),
        X=np.empty((0, total.n_features)), seeds=np.empty(0), loss=LOSSES[estimator.loss],
        bias=constant_feature(estimator), solver=dual_coordinate_descent, solver_options={},
    )  # fmt: skip


def _samples(
    block: Block, classes: Any, n_functions: int, cost: Any, margin: Any, loss: str, bias: float
) -> LinearSamples:
    """Return the samples of a block with their costs and margins."""
    codes = np.searchsorted(classes, block.y)
    costs = cost[codes] if block.weight is None else cost[codes] * block.weight
    if not np.isfinite(costs).all():
        raise ValueError("C * class_weight * sample_weight must be finite. Use smaller weights.")
    # With two classes, the second is the positive one.
    positive = (
        codes == (np.arange(n_functions) if n_functions > 1 else np.array([1]))[:, np.newaxis]
    )
    return LinearSamples.of(block.X, positive, costs, margin[codes], LOSSES[loss], bias)


@dataclass
class Run:
    """Rounds over the samples of all partitions, which stay where they are."""

    samples: list
    gap_tol: float
    max_rounds: int
    verbose: int = 0

    def __post_init__(self) -> None:
        self.history: dict[str, list] = {"phase": [], "round": [], "objective": [], "gap": []}
        self.duals: list = []
        self.workers = workers_of(self.samples)
        self.state: Any = None

    def descend(self, n_functions: int, n_features: int) -> None:
        """Take rounds of CoCoA+ while few of them gain much."""
        numbers = range(len(self.samples))
        (joint,) = stay([task(cocoa.Joint.start, n_functions, n_features, len(numbers))])
        points = self._each(cocoa.start_point)
        for _ in range(min(options.cocoa_rounds, self.max_rounds)):
            shared = joint, options.round_passes
            pairs = self._each(cocoa.propose, points, numbers, shared=shared, n_results=2)
            following = task(_join, joint, self.gap_tol, *(report for _, report in pairs))
            *points, joint = stay([*(point for point, _ in pairs), following])
            if self._record("cocoa", joint):
                break
        self.duals = self._each(cocoa.taken, points, numbers, shared=[joint])
        self.state = joint

    def _each(self, function: Callable, *columns: Sequence, **options: Any) -> list:
        """Return calls with the samples of each partition, on the worker that holds them."""
        return each(function, self.workers, self.samples, *columns, **options)

    def finish(self, n_features: int) -> None:
        """Take Newton steps until all gaps are within the tolerance."""
        anchors = self.duals
        (iterate,) = stay([task(newton.Iterate.start, self.state)])
        self.state = task(newton.joint_of, iterate)
        direct = n_features <= options.direct_features
        while not self.done:
            anchors = self._each(newton.move_anchor, anchors, shared=[iterate])
            terms = self._each(newton.derivatives, anchors, shared=[iterate, direct])
            sums = combine(newton.Derivatives.plus, terms)
            follow = newton.direct_step if direct else newton.Equations.start
            *anchors, state = stay([*anchors, task(follow, iterate, sums, self.gap_tol)])
            iterate = state if direct else self._solve(anchors, state)
            self.state = task(newton.joint_of, iterate)
            if self._record("newton", self.state):
                break
            slopes = combine(np.add, self._each(newton.slopes, anchors, shared=[iterate]))
            (iterate,) = stay([task(newton.take_step, iterate, slopes)])

    def _solve(self, anchors: list, equations: Any) -> Any:
        """Solve the Newton equations by conjugate gradients; return the iterate."""
        for _ in range(options.product_rounds):
            iterate, direction = (
                task(getattr, equations, name) for name in ("iterate", "direction")
            )
            images = self._each(newton.product, anchors, shared=[iterate, direction])
            following = task(newton.Equations.advance, equations, combine(np.add, images))
            (equations,) = stay([following])
            if fetch(task(getattr, equations, "finished"))[0]:
                break
        (iterate,) = stay([task(newton.Equations.finish, equations)])
        return iterate

    @property
    def done(self) -> bool:
        rounds = self.history["round"]
        return bool(rounds) and (self.finished or rounds[-1] >= self.max_rounds)

    def _record(self, phase: str, joint: Any) -> bool:
        """Add the round to the history; return whether this was the last one."""
        (status,) = fetch(task(_status, joint))
        objective, gap, rounds, active = status
        values = phase, rounds, objective, gap
        for name, value in zip(self.history, values, strict=True):
            self.history[name].append(value)
        self.finished = not active
        if self.verbose:
            print(f"[LinearSVC] round {rounds} ({phase}): largest duality gap {gap.max():.2e}")
        return self.done

    def result(self) -> cocoa.Joint:
        return fetch(self.state)[0]


def _join(joint: cocoa.Joint, gap_tol: float, *proposals: cocoa.Proposal) -> cocoa.Joint:
    return cocoa.join(joint, list(proposals), gap_tol)


def _status(joint: cocoa.Joint) -> tuple:
    return joint.objective, joint.gap, joint.rounds, bool(joint.active.any())

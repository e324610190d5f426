"""MultipleChoiceSSVM and DiverseMultipleChoiceSSVM: each sample is assigned to one member."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from numbers import Integral, Real
from typing import Any

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval
from widemargin._base.threads import for_each
from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe
from widemargin.solvers.structured.problem import OracleSubset
from widemargin.structured.ensembles.assignment import cluster_samples, samples_of_members
from widemargin.structured.ensembles.base import EnsembleProblem, StructuredEnsemble

_SAVED = ("member", "slacks", "W", "converged")


@dataclass(frozen=True)
class ChoiceSolution:
    """Weights, the member of each sample, whether members converged, and the objectives."""

    W: np.ndarray
    member: np.ndarray
    converged: np.ndarray
    curve: np.ndarray


@dataclass
class ChoiceRounds:
    """State between two rounds of multiple choice learning.

    Attributes
    ----------
    random : numpy.random.Generator
        Source of random numbers.
    member : ndarray of shape (n_samples,)
        Member that each sample is assigned to.
    slacks : ndarray of shape (n_members, n_samples), or None before the first round
        Slacks of all samples for the weights.
    W : ndarray of shape (n_members, size), or None before the first round
        Weights.
    converged : ndarray of shape (n_members,)
        Whether the members reached their tolerance in the last round.
    curve : list of float
        Objective after each round.
    """

    random: np.random.Generator
    member: np.ndarray
    slacks: Any = None
    W: Any = None
    converged: Any = None
    curve: list[float] = field(default_factory=list)

    can_be_saved = True

    def numbers(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers, for a checkpoint."""
        plain = {name: getattr(self, name) for name in _SAVED}
        random = self.random.bit_generator.state
        return {**plain, "curve": np.array(self.curve), "random": random}

    def resume(self, saved: dict[str, Any]) -> None:
        """Continue from the `numbers` of another state of the same problem."""
        for name in _SAVED:
            setattr(self, name, saved[name])
        self.curve = saved["curve"].tolist()
        self.random.bit_generator.state = saved["random"]


@shared_docs
class MultipleChoiceSSVM(StructuredEnsemble):
    r"""Multiple choice learning with structured SVMs (MCL).

    Each sample counts only for the member with the least slack:

    .. math::

        \min_W \sum_m \tfrac12 \|w_m\|^2 + C \sum_i \min_m H_i(w_m)

    with the slacks :math:`H_i` of `FrankWolfeSSVM`. Training of the members and assignment of the
    samples alternate, from a k-means clustering of the joint features, until no assignment changes.
    A member without samples is assigned one with a large slack for all members.

    Parameters
    ----------
    <<structured_model>>
    <<ensemble_size>>
    <<structured_C>>
    <<choice_fit>>
    <<ensemble_control>>
    <<sign_constraints>>

    Attributes
    ----------
    <<ensemble_weights>>
    objective_ : float
        Value of the objective.
    <<choice_results>>
    <<reranker_>>

    See Also
    --------
    CoulombSSVM : Members that differ even if there is a single sample.
    DiverseMultipleChoiceSSVM : The training loss rewards diversity.

    References
    ----------
    A. Guzman-Rivera, D. Batra, P. Kohli: Multiple choice learning: learning to produce multiple
    structured outputs. NIPS 2012.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, MultipleChoiceSSVM
    >>> X, Y = load_letters(return_X_y=True)
    >>> ensemble = MultipleChoiceSSVM(ChainCRF(), 3, C=0.1, n_rounds=3, tol=0.1).fit(X[::4], Y[::4])
    >>> bool(ensemble.pick_best_score(X[1::4], Y[1::4]) > ensemble.score(X[1::4], Y[1::4]))
    True
    """

    _parameter_constraints: dict = {
        **StructuredEnsemble._parameter_constraints,
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        model,
        n_estimators=6,
        C=1.0,
        *,
        n_rounds=10,
        max_iter=100,
        tol=0.01,
        n_jobs=None,
        random_state=None,
        verbose=False,
        checkpoint=None,
        negativity_constraint=None,
        zero_constraint=None,
    ):
        super().__init__(model, C, max_iter, tol, n_jobs, random_state, verbose)
        self.checkpoint = checkpoint
        self.negativity_constraint = negativity_constraint
        self.zero_constraint = zero_constraint
        self.n_estimators = n_estimators
        self.n_rounds = n_rounds

    def _train(self, problem: EnsembleProblem) -> dict[str, Any]:
        member = cluster_samples(problem.oracle, self.n_estimators, problem.random)
        rounds = ChoiceRounds(problem.random, member)

        def report(rounds: ChoiceRounds) -> bool:
            return problem.report(round=len(rounds.curve), objective=rounds.curve[-1])

        def run(task: TaskCheckpoint | None) -> ChoiceSolution:
            run_in_slices(partial(self._advance, problem), rounds, report, task)
            report(rounds)
            return ChoiceSolution(rounds.W, rounds.member, rounds.converged, np.array(rounds.curve))

        solution = problem.checkpoint.run("rounds", run, ChoiceSolution)
        advice = "Consider increasing max_iter or tol."
        self._warn_not_converged(solution.converged, self.max_iter, advice)
        iteration = np.arange(1, len(solution.curve) + 1)
        return {
            "W": solution.W,
            "assignment_": solution.member,
            "objective_": float(solution.curve[-1]),
            "n_iter_": len(solution.curve),
            "history_": {"iteration": iteration, "objective": solution.curve},
        }

    def _advance(self, problem: EnsembleProblem, rounds: "ChoiceRounds") -> bool:
        """Train all members on their samples; return whether it was the last round."""
        oracle, cost, random = problem.oracle, problem.cost, problem.random
        groups = _groups(rounds.member, rounds.slacks, self.n_estimators, random)
        seeds = random.integers(2**31, size=self.n_estimators)
        solutions = self._solve_members(
            oracle, rounds.W, partial(self._solve, problem, groups, seeds)
        )
        rounds.W = W = np.array([solution.w for solution in solutions])
        slacks = np.array(for_each(lambda w: oracle.violations(w).slacks, W, oracle.threads))
        losses = float(np.sum(cost * slacks.min(axis=0)))
        rounds.slacks = slacks
        rounds.curve.append(0.5 * float(np.sum(W**2)) + losses)
        rounds.converged = np.array([solution.converged for solution in solutions])
        before, rounds.member = rounds.member, slacks.argmin(axis=0)
        unchanged = len(rounds.curve) > 1 and bool((rounds.member == before).all())
        last = len(rounds.curve) >= self.n_rounds
        return last or (unchanged and not self._rewards_diversity())

    def _solve(self, problem: EnsembleProblem, groups, seeds, m: int, rewards=None):
        """Train member ``m`` on its samples, with ``rewards`` added to the scores of states."""
        samples = groups[m]
        extra = None if rewards is None else [rewards[i] for i in samples]
        return solve_frank_wolfe(
            OracleSubset(problem.oracle, samples, extra), problem.cost[samples], tol=self.tol,
            max_iter=self.max_iter, seed=int(seeds[m]), **problem.bounds,
        )  # fmt: skip

    def _solve_members(self, oracle: Any, W: np.ndarray | None, solve: Callable) -> list:
        """Return the solutions of all members; ``W`` are the weights of the last round."""
        if W is None or not self._rewards_diversity():
            return for_each(solve, range(self.n_estimators), oracle.threads)
        # One after the other: trained simultaneously, equal members would remain equal.
        rewards, solutions = [self._rewards(oracle, w) for w in W], []
        factor = self._diversity() / (len(W) - 1)
        for m in range(len(W)):
            others = zip(*(of_member for k, of_member in enumerate(rewards) if k != m), strict=True)
            solutions.append(solve(m, [factor * sum(of_sample) for of_sample in others]))
            rewards[m] = self._rewards(oracle, solutions[m].w)
        return solutions

    def _rewards_diversity(self) -> bool:
        """Return whether the training loss of a member depends on the outputs of the others."""
        return self._diversity() > 0.0 and self.n_estimators > 1

    def _diversity(self) -> float:
        """Return the reward for outputs that differ: a parameter of the subclass."""
        return getattr(self, "diversity", 0.0)

    def _rewards(self, oracle: Any, w: np.ndarray) -> list[np.ndarray]:
        """Return minus the loss of each state of each part, relative to the outputs of ``w``."""
        model: Any = self.model_
        return [
            model.state_costs(states)[:, np.newaxis] * (np.eye(model.n_states)[states] - 1.0)
            for states in oracle.best_states(w)
        ]


@shared_docs
class DiverseMultipleChoiceSSVM(MultipleChoiceSSVM):
    r"""Multiple choice learning whose training loss rewards diversity (DivMCL).

    Member m trains with the task loss

    .. math::

        \mathrm{loss}(y_i, y) - \lambda \, \mathrm{mean}_{m' \ne m} \mathrm{loss}(\hat y_{m'}, y)

    of the current outputs :math:`\hat y_{m'}` of the other members: an output that differs from
    them has a smaller loss. For losses that count parts this changes only the scores of states. The
    term of the paper by Guzman-Rivera et al. has another form.

    Parameters
    ----------
    <<structured_model>>
    <<ensemble_size>>
    diversity : float, default=0.5
        The factor lambda. If 0, this is `MultipleChoiceSSVM`.
    <<structured_C>>
    <<choice_fit>>
    <<ensemble_control>>
    <<sign_constraints>>

    Attributes
    ----------
    <<ensemble_weights>>
    objective_ : float
        Value of the objective of `MultipleChoiceSSVM`, which does not depend on `diversity`.
    <<choice_results>>
    <<reranker_>>

    See Also
    --------
    MultipleChoiceSSVM : The same without the reward.

    References
    ----------
    A. Guzman-Rivera, P. Kohli, D. Batra, R. Rutenbar: Efficiently enforcing diversity in
    multi-output structured prediction. AISTATS 2014.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, DiverseMultipleChoiceSSVM
    >>> X, Y = load_letters(return_X_y=True)
    >>> ensemble = DiverseMultipleChoiceSSVM(ChainCRF(), 3, C=0.1, n_rounds=3, tol=0.1)
    >>> ensemble = ensemble.fit(X[::4], Y[::4])
    >>> bool(ensemble.pick_best_score(X[1::4], Y[1::4]) > ensemble.score(X[1::4], Y[1::4]))
    True
    """

    _parameter_constraints: dict = {
        **MultipleChoiceSSVM._parameter_constraints,
        "diversity": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        model,
        n_estimators=6,
        diversity=0.5,
        C=1.0,
        *,
        n_rounds=10,
        max_iter=100,
        tol=0.01,
        n_jobs=None,
        random_state=None,
        verbose=False,
        checkpoint=None,
        negativity_constraint=None,
        zero_constraint=None,
    ):
        super().__init__(
            model, n_estimators, C, n_rounds=n_rounds, max_iter=max_iter, tol=tol, n_jobs=n_jobs,
            random_state=random_state, verbose=verbose, checkpoint=checkpoint,
            negativity_constraint=negativity_constraint, zero_constraint=zero_constraint,
        )  # fmt: skip
        self.diversity = diversity


def _groups(member: np.ndarray, slacks: Any, n_members: int, random: Any) -> list[np.ndarray]:
    """Return the samples of each member; one without samples gets one with a large slack."""
    groups = samples_of_members(member, n_members)
    order = random.permutation(len(member))
    if slacks is not None:
        order = order[np.argsort(-slacks.min(axis=0)[order], kind="stable")]
    reserve = cycle(order)
    return [samples if len(samples) else np.array([next(reserve)]) for samples in groups]

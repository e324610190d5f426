"""CoulombSSVM: an ensemble of structured SVMs whose weight vectors repel each other."""

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.docs import shared_docs
from widemargin._base.numeric import TINY
from widemargin._base.options import coulomb_options
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.solvers.structured.coulomb import (
    CoulombSolution,
    CoulombState,
    advance_anchored,
    advance_subgradient,
    coulomb_energy,
)
from widemargin.structured.ensembles.assignment import (
    assign_by_loss,
    cluster_samples,
    samples_of_members,
)
from widemargin.structured.ensembles.base import EnsembleProblem, StructuredEnsemble
from widemargin.structured.ensembles.perturbed import output_directions, perturb


@shared_docs
class CoulombSSVM(StructuredEnsemble):
    r"""Ensemble of structured SVMs whose weight vectors repel each other (CSSVM).

    The members repel each other like charges on a sphere, so that they differ even if there is a
    single training sample that all of them fit:

    .. math::

        \min_W \alpha \sum_{i < j} \|u_i - u_j\|^{-s} + \sum_m \Bigl( \tfrac12 \|w_m\|^2
        + C \sum_k H_k(w_m) \Bigr), \qquad u_m = w_m / \|w_m\|

    with the slacks :math:`H_k` of `FrankWolfeSSVM`. The members start as small perturbations of the
    single structured SVM, the optimum for ``alpha=0``. The perturbations are combinations of
    differences of joint features of the training data, so that the members differ only in
    directions that change outputs.

    Parameters
    ----------
    <<structured_model>>
    <<ensemble_size>>
    alpha : float or 'auto', default='auto'
        Strength of the repulsion. If 0, all members equal the single structured SVM. 'auto' uses
        the objective of the single structured SVM, multiplied by 10 / size_joint_feature if there
        are more than ten weights, and by 0.1 if `assignment` is 'best' or 'sampled', where samples
        drive the members apart as well.
    exponent : float, default=1
        Exponent s of the distance; 1 is that of Coulomb's law.
    assignment : {'all', 'best', 'sampled', 'stochastic'}, default='all'
        Samples that the members are trained on:

        - 'all': every member is trained on all samples.
        - 'best': each sample is assigned to the member with the least loss, ties at random.
        - 'sampled': each sample is assigned to a random member, with a probability that decreases
          with its loss.
        - 'stochastic': each member takes its step on one random sample.
    solver : {'subgradient', 'anchored'}, default='subgradient'
        'subgradient' takes steps of given sizes along the subgradient and the force. 'anchored'
        solves convex problems with the forces held fixed, in rounds that end close to a stationary
        point.
    <<structured_C>>
    n_steps : int, default=None
        Number of subgradient steps, by default 200, or of rounds of 'anchored', by default 10. With
        `assignment` 'best', some tens of steps may be better for new samples: members overfit.
    offset : float, default=None
        Step t has the size 1 / (offset + t). By default it grows with `C` and the data, so that no
        step changes the weights by more than a tenth.
    start : {'single', 'random'}, default='single'
        Initial members: perturbations of the single structured SVM, or random weights of its norm.
    noise : float, default=0.1
        Norm of the initial perturbations, relative to the weights.
    cluster_steps : int, default=0
        Number of first steps or rounds in which, unless `assignment` is 'all' or 'stochastic', the
        samples are assigned to members by k-means on the joint features of their true outputs.
    keep_single : bool, default=False
        Whether the first member remains the single structured SVM. The best proposal is then never
        worse than that of the single structured SVM.
    max_iter : int, default=1000
        Maximum number of passes over the samples for the single structured SVM, and for a member in
        a round of the solver 'anchored', there at most 50.
    tol : float, default=0.01
        Relative duality gap at which the single structured SVM stops, and a member in a round of
        the solver 'anchored'.
    <<ensemble_control>>
    <<sign_constraints>>

    Attributes
    ----------
    <<ensemble_weights>>
    <<single_weights>>
    alpha_ : float
        Strength of the repulsion.
    objective_ : float
        Value of the objective, by which the iterate is selected. With `assignment` 'best' and
        'sampled' a member counts only the samples assigned to it, each of them `n_estimators`
        times.
    energy_ : float
        Value of the sum over pairs in the objective.
    dual_gap_ : float
        Relative duality gap of the single structured SVM. The objective of the ensemble is not
        convex and has none.
    n_iter_ : int
        Number of steps or rounds.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``energy`` and ``risk`` at each evaluation of the objective.
    <<reranker_>>

    See Also
    --------
    PerturbedSSVM : Random directions instead of repulsion.
    MultipleChoiceSSVM : Each sample is assigned to one member.
    diverse_predictions : Several outputs from a single structured SVM.

    Notes
    -----
    The subgradient step is a heuristic: it rotates a member by the force independently of the norm
    of its weights, whereas the gradient of the objective has a factor of one over the squared norm.
    The iterate with the least objective is returned.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, CoulombSSVM
    >>> X, Y = load_letters(return_X_y=True)
    >>> ensemble = CoulombSSVM(ChainCRF(), 3, C=0.1, n_steps=30, tol=0.1).fit(X[::4], Y[::4])
    >>> bool(ensemble.pick_best_score(X[1::4], Y[1::4]) > ensemble.score(X[1::4], Y[1::4]))
    True
    """

    _parameter_constraints: dict = {
        **StructuredEnsemble._parameter_constraints,
        "alpha": [Interval(Real, 0.0, None, closed="left"), StrOptions({"auto"})],
        "exponent": [Interval(Real, 0.0, None, closed="neither")],
        "assignment": [StrOptions({"all", "best", "sampled", "stochastic"})],
        "solver": [StrOptions({"subgradient", "anchored"})],
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
        "offset": [Interval(Real, 1.0, None, closed="left"), None],
        "start": [StrOptions({"single", "random"})],
        "noise": [Interval(Real, 0.0, None, closed="neither")],
        "cluster_steps": [Interval(Integral, 0, None, closed="left")],
        "keep_single": ["boolean"],
    }

    def __init__(
        self,
        model,
        n_estimators=6,
        alpha="auto",
        exponent=1,
        assignment="all",
        solver="subgradient",
        C=1.0,
        *,
        n_steps=None,
        offset=None,
        start="single",
        noise=0.1,
        cluster_steps=0,
        keep_single=False,
        max_iter=1000,
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
        self.alpha = alpha
        self.exponent = exponent
        self.assignment = assignment
        self.solver = solver
        self.n_steps = n_steps
        self.offset = offset
        self.start = start
        self.noise = noise
        self.cluster_steps = cluster_steps
        self.keep_single = keep_single

    def _train(self, problem: EnsembleProblem) -> dict[str, Any]:
        single = self._fit_single(problem)
        alpha = default_repulsion(single.objective, problem.oracle.size, self.assignment)
        alpha = alpha if self.alpha == "auto" else float(self.alpha)
        curves: dict[str, Any]
        if alpha == 0.0 or self.n_estimators == 1:
            W, iterations = np.tile(single.w, (self.n_estimators, 1)), 0
            risk, energy = [self.n_estimators * single.objective], coulomb_energy(W, self.exponent)
            curves = {"iteration": [0], "objective": risk, "energy": [energy], "risk": risk}
        else:
            solution = self._optimize(problem, alpha, single.w)
            self._warn_not_converged(solution.converged, self._passes(), "Consider increasing tol.")
            W, curves, iterations = solution.W, solution.curves, solution.iterations
        best = int(np.argmin(curves["objective"]))
        return {
            "alpha_": alpha,
            "W": W,
            "w": single.w,
            "objective_": curves["objective"][best],
            "energy_": curves["energy"][best],
            "dual_gap_": single.gap,
            "n_iter_": iterations,
            "history_": {name: np.array(values) for name, values in curves.items()},
        }

    def _passes(self) -> int:
        """Return the largest number of passes for the problem of a member in a round."""
        return min(coulomb_options.anchored_passes, self.max_iter)

    def _optimize(self, problem: EnsembleProblem, alpha: float, w: np.ndarray) -> CoulombSolution:
        """Return the result of the optimization, from perturbations of ``w``."""
        oracle, cost = problem.oracle, problem.cost
        options, anchored = coulomb_options, self.solver == "anchored"
        steps = options.anchored_rounds if anchored else options.subgradient_steps
        assign, clusters = self._assignment(oracle), self._clusters(problem)
        start = self._start(problem, w)
        state = CoulombState(
            oracle, cost, alpha, self.exponent, assign, problem.random, start,
            max_iter=self.n_steps or steps, check_every=options.check_every,
            offset=self.offset or _default_offset(oracle, cost, w), fix_first=self.keep_single,
            tol=self.tol, passes=self._passes(), bounds=problem.bounds,
            clusters=clusters, cluster_steps=self.cluster_steps if clusters else 0,
            score_all=self.assignment == "stochastic",
        )  # fmt: skip

        def report_last(state: CoulombState) -> bool:
            return problem.report(**{name: values[-1] for name, values in state.curves.items()})

        def solve(task: TaskCheckpoint | None) -> CoulombSolution:
            advance = advance_anchored if anchored else advance_subgradient
            run_in_slices(advance, state, report_last, task)
            return CoulombSolution.of(state)

        return problem.checkpoint.run("steps", solve, CoulombSolution)

    def _start(self, problem: EnsembleProblem, w: np.ndarray) -> np.ndarray:
        """Return the members before the first step."""
        if self.start == "random":
            noise = problem.random.normal(size=(self.n_estimators, len(w)))
            noise /= np.sqrt(np.sum(noise**2, axis=1, keepdims=True))
            W = noise * np.sqrt(np.sum(w**2)) if w.any() else noise
        else:
            noise = output_directions(problem.oracle, w, problem.random, self.n_estimators)
            W = perturb(w, self.noise * noise) if w.any() else noise
        if self.keep_single:
            W[0] = w
        return problem.project(W)

    def _assignment(self, oracle: Any) -> Callable | None:
        """Return the function that assigns samples to members; None for all samples."""
        if self.assignment == "all":
            return None
        if self.assignment == "stochastic":
            return lambda W, random: list(random.integers(oracle.n_samples, size=(len(W), 1)))
        return partial(assign_by_loss, oracle, best_only=self.assignment == "best")

    def _clusters(self, problem: EnsembleProblem) -> list[np.ndarray]:
        """Return the samples of each member in the first steps; none if they are not clustered."""
        if self.cluster_steps == 0 or self.assignment not in ("best", "sampled"):
            return []
        member = cluster_samples(problem.oracle, self.n_estimators, problem.random)
        return samples_of_members(member, self.n_estimators)


def default_repulsion(objective: float, size: int, assignment: str = "all") -> float:
    """Return the default strength of the repulsion for the objective of a single SSVM."""
    few, specialized = coulomb_options.few_weights, assignment in ("best", "sampled")
    share = coulomb_options.assigned_share if specialized else 1.0
    return share * objective * few / max(few, size)


def _default_offset(oracle: Any, cost: np.ndarray, w: np.ndarray) -> float:
    """Return the offset with which steps are shorter than a tenth of the weights."""
    options, last = coulomb_options, oracle.n_samples - 1
    samples = np.linspace(0, last, min(options.offset_samples, last + 1)).astype(int)
    differences = oracle.violations(w, samples=samples, rows=True).difference
    length = np.sum(cost) * np.mean(np.sqrt(np.sum(differences**2, axis=1)))
    norm = max(np.sqrt(np.sum(w**2)), TINY**0.5)
    return max(options.smallest_offset, options.norm_per_step * length / norm)

"""CoulombSSVM: members whose weights repel each other."""

from functools import partial
from numbers import Integral, Real

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin._base.threads import for_each
from widemargin.solvers.structured.coulomb import (
    RepelledState,
    advance_anchored,
    advance_repelled,
    coulomb_energy,
    finish_repelled,
)
from widemargin.structured.ensembles.base import StructuredEnsemble, directions_of_outputs
from widemargin.structured.ensembles.perturbed import perturbed


class CoulombSSVM(StructuredEnsemble):
    r"""Structured support vector machines that fit the data and differ in direction.

    The members repel each other like charges on a sphere, so that they differ even if there is a
    single training example that all of them fit:

    .. math::

        \min_W \alpha \sum_{i < j} \|u_i - u_j\|^{-s} + \sum_m \Bigl( \tfrac12 \|w_m\|^2
        + C \sum_k H_k(w_m) \Bigr), \qquad u_m = w_m / \|w_m\|

    with the slacks :math:`H_k` of `FrankWolfeSSVM`. Members start as small perturbations of the
    optimum of the single machine, which is also what they all are if `alpha` is 0. The
    perturbations are mixtures of differences of joint features of the training data: members then
    differ in directions that change outputs, and in no others.

    Parameters
    ----------
    model : StructuredModel
        What the score is made of. It is initialised by `fit`.
    n_estimators : int, default=6
        Number of members.
    alpha : float or 'auto', default='auto'
        Strength of the repulsion. 'auto' takes the objective of the single machine, which is the
        unit it is weighed against, times 10 / size where there are more than ten weights: of many
        dimensions members need less of a push to differ.
    exponent : float, default=1
        Exponent s of the distance; 1 is Coulomb's.
    assignment : {'all', 'best', 'sampled', 'stochastic'}, default='all'
        The samples that members learn from: all; those on which a member has the least loss; each
        sample drawn for one member, with a probability that falls with the loss; one random sample
        for each step.
    solver : {'subgradient', 'anchored'}, default='subgradient'
        Steps of fixed lengths along subgradient and force, or rounds of convex problems with the
        forces held fixed, which end near a stationary point.
    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.
    n_steps : int, default=None
        Steps of the descent, 200 by default, or rounds of the anchored solver, 10 by default.
    offset : float, default=None
        Steps have lengths 1 / (offset + t). By default it grows with `C` and the data, so that no
        step is longer than a tenth of the weights.
    noise : float, default=0.1
        Length of the perturbations in the beginning, relative to the weights.
    keep_single : bool, default=False
        Let the first member stay the single machine, from which the others keep away: the best
        proposal is then never worse than that of the single machine.
    max_iter : int, default=1000
        Most passes over the samples for the single machine; a member makes as many in a round of
        the anchored solver, but no more than 50.
    tol : float, default=0.01
        Relative duality gap at which the single machine stops, and members in a round of the
        anchored solver.
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed; None is a fixed one too.
    verbose : bool, default=False
        Print how the fit gets on.

    Attributes
    ----------
    W : ndarray of shape (n_estimators, size_joint_feature)
        Weights of the members.
    w : ndarray of shape (size_joint_feature,)
        Weights of the single machine.
    alpha_ : float
        Strength of the repulsion.
    objective_ : float
        Value of the objective above.
    energy_ : float
        The sum over pairs in it.
    dual_gap_ : float
        The relative duality gap of the single machine; the objective of the ensemble is not convex.
    n_iter_ : int
        Steps or rounds.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``energy`` and ``risk`` at each look.
    reranker_ : object or None
        What `fit_reranker` has learnt.

    See Also
    --------
    PerturbedSSVM : Random directions in place of repulsion.
    MultipleChoiceSSVM : Members that share out the samples.
    diverse_predictions : Several outputs from one machine.

    Notes
    -----
    The step of the descent is a heuristic: it turns a member by the force whatever the norm of its
    weights, where the gradient of the objective has a factor of one over the squared norm. The
    iterate with the least objective is kept.

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
        "noise": [Interval(Real, 0.0, None, closed="neither")],
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
        noise=0.1,
        keep_single=False,
        max_iter=1000,
        tol=0.01,
        n_jobs=None,
        random_state=None,
        verbose=False,
    ):
        self.model = model
        self.n_estimators = n_estimators
        self.alpha = alpha
        self.exponent = exponent
        self.assignment = assignment
        self.solver = solver
        self.C = C
        self.n_steps = n_steps
        self.offset = offset
        self.noise = noise
        self.keep_single = keep_single
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _train(self, oracle, cost, random, report):
        single = self._single(oracle, cost, int(random.integers(2**31)), report)
        start = np.tile(single.w, (self.n_estimators, 1))
        alpha = unit_of_strength(single.objective, oracle.size)
        alpha = alpha if self.alpha == "auto" else float(self.alpha)
        if alpha == 0.0 or self.n_estimators == 1:
            risk = self.n_estimators * single.objective
            energy = coulomb_energy(start, self.exponent)
            curves = {"iteration": [0], "objective": [risk], "energy": [energy], "risk": [risk]}
            return self._attributes(single, start, curves, 0, 0, alpha)
        noise = directions_of_outputs(oracle, single.w, random, self.n_estimators)
        start = perturbed(single.w, self.noise * noise) if single.w.any() else noise
        if self.keep_single:
            start[0] = single.w
        anchored = self.solver == "anchored"
        state = RepelledState(
            oracle, cost, alpha, self.exponent, self._assign(oracle), random, start,
            max_iter=self.n_steps or (10 if anchored else 200), check_every=10,
            offset=self.offset or _offset(oracle, cost, single.w), keep_first=self.keep_single,
            tol=self.tol, passes=min(50, self.max_iter),
        )  # fmt: skip
        advance = advance_anchored if anchored else advance_repelled

        def look(state):
            last = {name: values[-1] for name, values in state.curves.items()}
            return report(**last)

        run_in_slices(advance, state, look)
        self._tell(state.converged, state.passes, "Raise tol if such members will do.")
        W = finish_repelled(state)
        best = int(np.argmin(state.curves["objective"]))
        return self._attributes(single, W, state.curves, best, state.iterations, alpha)

    def _attributes(self, single, W, curves, best, iterations, alpha):
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

    def _assign(self, oracle):
        if self.assignment == "all":
            return None
        if self.assignment == "stochastic":
            return lambda W, random: list(random.integers(oracle.n_samples, size=(len(W), 1)))
        return partial(_by_loss, oracle, best_alone=self.assignment == "best")


def unit_of_strength(objective, size):
    """The strength of repulsion to begin with, for a single machine of so many weights."""
    return objective * _FEW_WEIGHTS / max(_FEW_WEIGHTS, size)


_FEW_WEIGHTS = 10


def _by_loss(oracle, W, random, best_alone):
    """Hand each sample to one member, the best or any by chance."""
    losses = np.array(for_each(oracle.task_losses, W, oracle.threads))
    if best_alone:
        share = (losses == losses.min(axis=0)).astype(float)
    else:
        total = losses.sum(axis=0)
        share = 1.0 - np.divide(losses, total, where=total > 0.0, out=np.zeros_like(losses))
        share = share if len(W) > 1 else np.ones_like(losses)
    ends = np.cumsum(share / share.sum(axis=0), axis=0)
    member = np.minimum((ends < random.random(losses.shape[1])).sum(axis=0), len(W) - 1)
    return [np.flatnonzero(member == m) for m in range(len(W))]


def _offset(oracle, cost, w):
    """Return what keeps steps shorter than a tenth of the weights."""
    samples = np.linspace(0, oracle.n_samples - 1, min(100, oracle.n_samples)).astype(int)
    found = oracle.violations(w, samples=samples, rows=True).difference
    pull = np.sum(cost) * np.mean(np.sqrt(np.sum(found**2, axis=1)))
    return max(20.0, 10.0 * pull / max(np.sqrt(np.sum(w**2)), np.finfo(float).tiny ** 0.5))

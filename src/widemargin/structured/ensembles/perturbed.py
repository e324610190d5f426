"""PerturbedSSVM: one machine, disturbed at random; what every other ensemble must beat."""

from numbers import Real

import numpy as np

from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.structured.ensembles.base import (
    StructuredEnsemble,
    directions_of_outputs,
    random_directions,
)


class PerturbedSSVM(StructuredEnsemble):
    r"""Structured support vector machine and random perturbations of it, at the same norm.

    .. math:: w_m = \|w^*\| \, P\bigl( w^* + \sigma \|w^*\| \, g_m \bigr)

    where :math:`w^*` is the optimum of `FrankWolfeSSVM`, :math:`g_m` are random unit vectors and P
    normalises. The first member is :math:`w^*` itself. With more weights than members random
    directions are nearly orthogonal: this is the control that ensembles which take more trouble
    have to beat, and sometimes do not.

    Parameters
    ----------
    model : StructuredModel
        What the score is made of. It is initialised by `fit`.
    n_estimators : int, default=6
        Number of members.
    spread : float, default=0.5
        Length of the perturbation, relative to the weights.
    directions : {'weights', 'outputs'}, default='weights'
        Where perturbations point: anywhere, or in directions in which scores of outputs of the
        training data differ, as those do with which `CoulombSSVM` begins.
    C : float, default=1.0
        Cost of a unit of slack.
    max_iter : int, default=1000
        Most passes over the samples for the single machine.
    tol : float, default=0.01
        Relative duality gap at which the single machine stops.
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
    dual_gap_ : float
        Its relative duality gap.
    objective_ : float
        Its objective.
    n_iter_ : int
        Its passes over the samples.
    reranker_ : object or None
        What `fit_reranker` has learnt.

    See Also
    --------
    CoulombSSVM : Members that repel each other.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, PerturbedSSVM
    >>> X, Y = load_letters(return_X_y=True)
    >>> ensemble = PerturbedSSVM(ChainCRF(), C=0.1, tol=0.1).fit(X[::4], Y[::4])
    >>> bool(ensemble.pick_best_score(X[1::4], Y[1::4]) > ensemble.score(X[1::4], Y[1::4]))
    True
    """

    _parameter_constraints: dict = {
        **StructuredEnsemble._parameter_constraints,
        "spread": [Interval(Real, 0.0, None, closed="left")],
        "directions": [StrOptions({"weights", "outputs"})],
    }

    def __init__(
        self,
        model,
        n_estimators=6,
        spread=0.5,
        *,
        directions="weights",
        C=1.0,
        max_iter=1000,
        tol=0.01,
        n_jobs=None,
        random_state=None,
        verbose=False,
    ):
        self.model = model
        self.n_estimators = n_estimators
        self.spread = spread
        self.directions = directions
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _train(self, oracle, cost, random, report):
        single = self._single(oracle, cost, int(random.integers(2**31)), report)
        if self.directions == "weights":
            noise = random_directions(random, self.n_estimators, oracle.size)
        else:
            noise = directions_of_outputs(oracle, single.w, random, self.n_estimators)
        noise[0] = 0.0
        return {
            "W": perturbed(single.w, self.spread * noise),
            "w": single.w,
            "objective_": single.objective,
            "dual_gap_": single.gap,
            "n_iter_": single.iterations,
        }


def perturbed(w, noise):
    """Return ``w`` with noise of its own norm times ``noise``, at its own norm."""
    norm = np.sqrt(np.sum(w**2))
    moved = w + norm * noise
    lengths = np.sqrt(np.sum(moved**2, axis=1, keepdims=True))
    return moved * (norm / np.maximum(lengths, np.finfo(float).tiny))

"""PerturbedSSVM: a structured SVM and random perturbations of it, the control for ensembles."""

from numbers import Real
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.numeric import TINY
from widemargin._base.options import coulomb_options
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.structured.ensembles.base import EnsembleProblem, StructuredEnsemble


@shared_docs
class PerturbedSSVM(StructuredEnsemble):
    r"""Ensemble of a structured SVM and random perturbations of it, with equal norms.

    .. math:: w_m = \|w^*\| \, P\bigl( w^* + \sigma \|w^*\| \, g_m \bigr)

    where :math:`w^*` is the optimum of `FrankWolfeSSVM`, :math:`g_m` are random unit vectors and P
    normalizes. The first member is :math:`w^*`. If there are many more weights than members, random
    directions are nearly orthogonal. This is the random control that other ensembles should be
    compared with; they are not always better.

    Parameters
    ----------
    <<structured_model>>
    <<ensemble_size>>
    spread : float, default=0.5
        Norm of the perturbations, relative to the weights.
    directions : {'weights', 'outputs'}, default='weights'
        Distribution of the perturbations: 'weights' for uniformly distributed directions, 'outputs'
        for directions that change the scores of outputs of the training data, as those in which
        `CoulombSSVM` starts.
    <<structured_C>>
    <<single_max_iter>>
    <<single_tol>>
    <<ensemble_control>>
    <<sign_constraints>>

    Attributes
    ----------
    <<ensemble_weights>>
    <<single_weights>>
    dual_gap_ : float
        Relative duality gap of the single structured SVM.
    objective_ : float
        Objective of the single structured SVM.
    n_iter_ : int
        Number of passes over the samples for the single structured SVM.
    <<reranker_>>

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
        checkpoint=None,
        negativity_constraint=None,
        zero_constraint=None,
    ):
        super().__init__(model, C, max_iter, tol, n_jobs, random_state, verbose)
        self.checkpoint = checkpoint
        self.negativity_constraint = negativity_constraint
        self.zero_constraint = zero_constraint
        self.n_estimators = n_estimators
        self.spread = spread
        self.directions = directions

    def _train(self, problem: EnsembleProblem) -> dict[str, Any]:
        single, oracle, random = self._fit_single(problem), problem.oracle, problem.random
        if self.directions == "weights":
            noise = _normalize(random.normal(size=(self.n_estimators, oracle.size)))
        else:
            noise = output_directions(oracle, single.w, random, self.n_estimators)
        noise[0] = 0.0
        return {
            "W": problem.project(perturb(single.w, self.spread * noise)),
            "w": single.w,
            "objective_": single.objective,
            "dual_gap_": single.gap,
            "n_iter_": single.iterations,
        }


def perturb(w: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return ``w`` plus its norm times each row of ``noise``, rescaled to the norm of ``w``."""
    norm = np.sqrt(np.sum(w**2))
    moved = w + norm * noise
    lengths = np.sqrt(np.sum(moved**2, axis=1, keepdims=True))
    return moved * (norm / np.maximum(lengths, TINY))


def output_directions(oracle: Any, w: np.ndarray, random: Any, n: int) -> np.ndarray:
    """Return ``n`` random unit vectors that change the scores of outputs of the samples.

    They are random combinations of differences between the joint features of the true outputs and
    of outputs that random weights prefer: directions along which training changes the weights. A
    uniformly distributed direction mostly changes the scores of all outputs equally, or not at all.
    """
    scale = np.sqrt(np.sum(w**2) / len(w))
    directions = np.zeros((n, oracle.size))
    for direction in directions:
        for _ in range(coulomb_options.mixed_outputs):
            weight = random.normal(size=oracle.n_samples)
            w = scale * random.normal(size=oracle.size)
            direction += oracle.violations(w, weight=weight).difference
    return _normalize(directions)


def _normalize(directions: np.ndarray) -> np.ndarray:
    norms = np.sqrt(np.sum(directions**2, axis=1, keepdims=True))
    return directions / np.maximum(norms, TINY**0.5)

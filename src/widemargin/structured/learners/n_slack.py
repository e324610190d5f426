"""NSlackSSVM: cutting planes with one slack for each sample."""

from numbers import Integral
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval
from widemargin.solvers.structured.working_sets import WorkingSetsState
from widemargin.structured.learners.base import ALL, StructuredLearner
from widemargin.structured.models.base import StructuredModel


@shared_docs
class NSlackSSVM(StructuredLearner):
    r"""Structured support vector machine by cutting planes with one slack for each sample.

    Every round finds the most violating output of every sample, adds it to the working set of the
    sample and solves the quadratic program over all working sets. It usually needs fewer
    rounds than `OneSlackSSVM`, and memory for a vector of all weights for each output in a working
    set: use it for few weights and expensive inference.

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \max_y \bigl( \mathrm{loss}(y_i, y)
        + w \cdot \phi(x_i, y) - w \cdot \phi(x_i, y_i) \bigr)

    Parameters
    ----------
    <<structured_model>>
    max_iter : int, default=1000
        Maximum number of rounds.
    <<structured_C>>
    <<structured_verbose>>
    <<structured_n_jobs>>
    batch_size : int, default=None
        Number of samples after which the quadratic program is solved. None, or -1, is all of them.
        With smaller batches a round needs a second call of inference for each sample, which
        computes the gap.
    <<structured_tol>>
    inactive_window : int, default=50
        Rounds without weight after which an output is dropped from a working set; 0 for never.
    random_state : int, RandomState instance or None, default=None
        Ignored; present for compatibility with other learners.
    warm_start : bool, default=False
        Whether to start from the working sets of the previous fit, if data and model are the same.
        `C` and ``sample_weight`` may differ.
    <<structured_checkpoint>>
    <<sign_constraints>>

    Attributes
    ----------
    <<structured_fitted>>
    n_iter_ : int
        Number of rounds.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``dual_objective``, ``gap`` and ``seconds`` of each round.

    See Also
    --------
    OneSlackSSVM : One slack for all samples: less memory, more rounds.
    FrankWolfeSSVM : One sample at a time; the default choice.

    References
    ----------
    I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun: Large margin methods for structured and
    interdependent output variables. JMLR 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.structured import MultiClassClf, NSlackSSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = NSlackSSVM(MultiClassClf(), C=1.0).fit(X, y)
    >>> bool(learner.dual_gap_ < 0.001)
    True
    """

    _parameter_constraints: dict = {
        **StructuredLearner._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left"), ALL, None],
        "inactive_window": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        model: StructuredModel,
        max_iter: int = 1000,
        C: float = 1.0,
        *,
        verbose: Any = False,
        n_jobs: int | None = None,
        batch_size: int | None = None,
        tol: float = 0.001,
        inactive_window: int = 50,
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        negativity_constraint: Any = None,
        zero_constraint: Any = None,
    ) -> None:
        super().__init__(model, C, max_iter, tol, n_jobs, random_state, verbose)
        self.batch_size = batch_size
        self.inactive_window = inactive_window
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.negativity_constraint = negativity_constraint
        self.zero_constraint = zero_constraint

    def _start(self, oracle: Any, cost: np.ndarray, seed: int, previous: Any) -> WorkingSetsState:
        names = "planes", "offsets", "weights", "first"
        start = {} if previous is None else {name: previous[name].copy() for name in names}
        return WorkingSetsState(
            oracle, cost, tol=self.tol, max_iter=self.max_iter, **start,
            batch_size=None if self.batch_size == -1 else self.batch_size,
            inactive_window=self.inactive_window, **self._bounds(oracle),
        )  # fmt: skip

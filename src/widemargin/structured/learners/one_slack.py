"""OneSlackSSVM: cutting planes over all samples at once."""

from numbers import Integral, Real

from widemargin._base.sklearn_compat import Interval
from widemargin.solvers.structured.cutting_planes import advance_planes, finish_planes, start_planes
from widemargin.structured.learners.base import StructuredLearner


class OneSlackSSVM(StructuredLearner):
    r"""Structured support vector machine by cutting planes with one slack.

    Every round asks for the most violating output of every sample, in parallel, and solves a small
    problem over the rounds so far. It needs few rounds and little memory; with a cache, inference
    is asked only when earlier answers are used up.

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \max_y \bigl( \mathrm{loss}(y_i, y)
        + w \cdot \phi(x_i, y) - w \cdot \phi(x_i, y_i) \bigr)

    Parameters
    ----------
    model : StructuredModel
        What the score is made of. It is initialised by `fit`.
    max_iter : int, default=10000
        Most rounds.
    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.
    verbose : bool, default=False
        Print a line at each look at the gap.
    n_jobs : int, default=None
        Threads for inference; None takes as many as there are. The result does not depend on it.
    tol : float, default=0.001
        Relative duality gap at which to stop; where inference knows no bound, the same of the
        objective that it finds, without a certificate.
    inference_cache : int, default=0
        Answers of inference that are kept for each sample. They are not part of a checkpoint: a
        resumed fit asks anew, so that its steps differ from those of one that was not interrupted.
    cache_tol : float, default=0.1
        Kept answers count if they are violated by so much of what the latest fresh ones were.
    inactive_window : int, default=50
        Rounds without weight after which a plane is dropped.
    random_state : int, RandomState instance or None, default=None
        Not used; learners are called alike.
    warm_start : bool, default=False
        Go on from the planes of the last fit if data and model are the same; `C` may have changed.
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
        Rounds, those that the cache answered included.
    history_ : dict of ndarray
        ``iteration``, ``objective``, ``dual_objective``, ``gap`` and ``seconds`` of each round that
        asked for inference.

    See Also
    --------
    FrankWolfeSSVM : One sample at a time; the learner to begin with.

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
        "cache_tol": [Interval(Real, 0.0, None, closed="neither")],
        "inactive_window": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        model,
        max_iter=10000,
        C=1.0,
        *,
        verbose=False,
        n_jobs=None,
        tol=0.001,
        inference_cache=0,
        cache_tol=0.1,
        inactive_window=50,
        random_state=None,
        warm_start=False,
        checkpoint=None,
    ):
        self.model = model
        self.max_iter = max_iter
        self.C = C
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.tol = tol
        self.inference_cache = inference_cache
        self.cache_tol = cache_tol
        self.inactive_window = inactive_window
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    def _start(self, oracle, cost, seed, before):
        planes = {}
        if before is not None and cost.any() and before["cost"].any():
            # A plane below the sum of losses stays one only if all costs grow alike.
            scale = cost.sum() / before["cost"].sum()
            if (abs(cost - scale * before["cost"]) <= 1e-12 * cost).all():
                planes = {
                    "planes": scale * before["planes"][1:],
                    "offsets": scale * before["offsets"][1:],
                }
        return start_planes(
            oracle,
            cost,
            tol=self.tol,
            max_iter=self.max_iter,
            cache=self.inference_cache,
            cache_tol=self.cache_tol,
            patience=self.inactive_window,
            **planes,
        )

    def _advance(self, state):
        return advance_planes(state)

    def _finish(self, state):
        return finish_planes(state)

    def _remains(self, state):
        return {"planes": state.planes, "offsets": state.offsets}

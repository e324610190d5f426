"""FrankWolfeSSVM: the learner to begin with."""

from numbers import Integral

import numpy as np

from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.solvers.structured.frank_wolfe import (
    SAMPLE_METHODS,
    advance_blocks,
    finish_blocks,
    start_blocks,
)
from widemargin.structured.learners.base import StructuredLearner


class FrankWolfeSSVM(StructuredLearner):
    r"""Structured support vector machine by block-coordinate Frank-Wolfe.

    One sample at a time, with steps whose lengths are exact, and a duality gap that says how far
    the weights are from the best ones:

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \max_y \bigl( \mathrm{loss}(y_i, y)
        + w \cdot \phi(x_i, y) - w \cdot \phi(x_i, y_i) \bigr)

    with sample weights :math:`s_i`. It keeps one vector of weights for each sample; where that is
    too much memory take `OneSlackSSVM` or `SubgradientSSVM`.

    Parameters
    ----------
    model : StructuredModel
        What the score is made of. It is initialised by `fit`.
    max_iter : int, default=1000
        Most passes over the samples.
    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.
    verbose : bool, default=False
        Print a line at each look at the gap.
    n_jobs : int, default=None
        Threads for the inference of many samples at once; None takes as many as there are. The
        result does not depend on it.
    line_search : bool, default=True
        Make each step as long as is best. If not, steps shorten on a fixed schedule.
    check_dual_every : int, default=10
        Passes between two looks at the gap, each of which takes about as long as a pass.
    tol : float, default=0.001
        Relative duality gap at which to stop; where inference knows no bound, the same of the
        objective that it finds, without a certificate.
    do_averaging : bool, default=True
        Return the weighted mean of the iterates in place of the last one.
    sample_method : {'perm', 'rnd', 'seq'}, default='perm'
        Order of the samples: all in random order, drawn with replacement, or as they come.
    random_state : int, RandomState instance or None, default=None
        Seed of the order. None is a fixed seed too: a fit can be repeated.
    warm_start : bool, default=False
        Go on from the last fit if data and model are the same; `C` may have changed.
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
        model,
        max_iter=1000,
        C=1.0,
        *,
        verbose=False,
        n_jobs=None,
        line_search=True,
        check_dual_every=10,
        tol=0.001,
        do_averaging=True,
        sample_method="perm",
        random_state=None,
        warm_start=False,
        checkpoint=None,
    ):
        self.model = model
        self.max_iter = max_iter
        self.C = C
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.line_search = line_search
        self.check_dual_every = check_dual_every
        self.tol = tol
        self.do_averaging = do_averaging
        self.sample_method = sample_method
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    def _start(self, oracle, cost, seed, before):
        shares = {}
        if before is not None:
            # Shares grow with the cost of their sample; one that had none starts at zero.
            scale = np.divide(
                cost, before["cost"], where=before["cost"] > 0, out=np.zeros(len(cost))
            )
            shares = {
                "blocks": scale[:, np.newaxis] * before["blocks"],
                "losses": scale * before["losses"],
            }
        return start_blocks(
            oracle,
            cost,
            tol=self.tol,
            max_iter=self.max_iter,
            check_every=self.check_dual_every,
            averaging=self.do_averaging,
            line_search=self.line_search,
            sampling=self.sample_method,
            seed=seed,
            **shares,
        )

    def _advance(self, state):
        return advance_blocks(state)

    def _finish(self, state):
        return finish_blocks(state)

    def _remains(self, state):
        return {"blocks": state.blocks, "losses": state.losses}

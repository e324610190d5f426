"""TransductiveSVC: labels for unlabelled rows that leave the widest margin (Joachims, 1999)."""

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin._base.sklearn_compat import Interval, StrOptions, fit_context
from widemargin._base.validation import validate_predict
from widemargin.kernels import KERNEL_NAMES
from widemargin.semisupervised.kernel_self_training import KernelRounds, kernel_over, machine_of
from widemargin.semisupervised.targets import SomeLabels
from widemargin.svm.svc import SVC

_OF_SVC = ("C", "kernel", "degree", "gamma", "coef0", "tol", "cache_size", "max_iter")
_FIRST_COST = 1e-5


class TransductiveSVC(SomeLabels, ClassifierMixin, BaseEstimator):
    r"""A kernel machine that labels unlabelled rows so that its margin is wide.

    .. math::

        \min_{f, b, y^*} \tfrac12 \|f\|^2
        + C \sum_{i \in L} \max(0, 1 - y_i (f(x_i) + b))
        + C^* \sum_{j \in U} \max(0, 1 - y^*_j (f(x_j) + b))

    with a given share of positive rows among :math:`y^*`. That is no convex problem; Joachims'
    algorithm begins with the labels of a machine of the labelled rows and a tiny :math:`C^*`,
    exchanges labels while that lowers the objective, and doubles :math:`C^*` until it is there.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a unit of slack of labelled rows.

    C_unlabeled : float, default=None
        Cost of a unit of slack of unlabelled rows in the end; `C` when None.

    positive_share : float, default=None
        Which share of the unlabelled rows becomes positive; that of the labelled rows when None.

    switch : {'multi', 'single'}, default='multi'
        Whether all pairs of rows that gain by exchanging labels do so before the machine is
        trained again, or one pair at a time.

    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, default='rbf'
        As in `SVC`.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the kernel; 'scale' is computed from all rows, unlabelled ones too.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops.

    cache_size : float, default=1000
        Memory for kernel values in MB.

    max_iter : int, default=-1
        Most iterations of the solver each time, -1 for no limit.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels.

    transduction_ : ndarray of shape (n_samples,) or (n_unlabeled,)
        The labels of all rows, given or found; of `X_unlabeled` where that was given.

    machine_ : SVC
        The machine; positive for its class 1.

    objective_ : float
        The minimised value.

    n_solves_ : int
        How often the machine was trained.

    n_iter_ : int
        Iterations of the solver in all.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X has names.

    See Also
    --------
    PreferenceSVC : Unlabelled rows for a demand on precision or recall.

    References
    ----------
    T. Joachims, Transductive Inference for Text Classification using Support Vector Machines,
    ICML 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from widemargin import TransductiveSVC
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> y = np.full(200, -1)
    >>> for side in (0, 1):
    ...     y[np.flatnonzero(truth == side)[:5]] = side
    >>> model = TransductiveSVC(C=10.0, gamma=2.0).fit(X, y)
    >>> bool(np.mean(model.transduction_ == truth) > 0.9)
    True
    """

    _parameter_constraints: dict = {
        **{name: SVC._parameter_constraints[name] for name in _OF_SVC},
        "C": [Interval(Real, 0.0, np.inf, closed="neither")],
        "C_unlabeled": [Interval(Real, 0.0, np.inf, closed="neither"), None],
        "positive_share": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "switch": [StrOptions({"multi", "single"})],
        "kernel": [StrOptions(set(KERNEL_NAMES))],
    }

    def __init__(
        self,
        *,
        C=1.0,
        C_unlabeled=None,
        positive_share=None,
        switch="multi",
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        cache_size=1000,
        max_iter=-1,
    ):
        self.C = C
        self.C_unlabeled = C_unlabeled
        self.positive_share = positive_share
        self.switch = switch
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        X_unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,)
            Labels of two classes; -1 for rows that have none, unless `X_unlabeled` is given.

        X_unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, n_features), default=None
            Rows without labels. -1 is a label like any other then.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by row; of rows without a label only whether it is 0 counts.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        given = self._check_training(X, y, X_unlabeled, sample_weight)
        rows, gamma, gram = kernel_over(self, given)
        rounds = KernelRounds(
            gram, int(self.cache_size * 2**20), {"tol": self.tol, "max_iter": self.max_iter}
        )
        sign = np.where(given.truth, 1.0, -1.0)
        cost = self.C * (np.ones(len(sign)) if given.weight is None else given.weight)
        search = _Search(self, rounds, sign, cost, given.unlabeled.shape[0])
        machine = search.run()
        parameters = {name: getattr(self, name) for name in _OF_SVC}
        self.machine_ = machine_of(SVC(**parameters), rows, gamma, machine.solution)
        self.classes_ = given.classes
        self.transduction_ = given.classes[(search.soft > 0.0).astype(np.intp)]
        if X_unlabeled is None:
            found, self.transduction_ = self.transduction_, np.array(column_or_1d(y))
            self.transduction_[given.marked] = found
        self.objective_ = machine.solution.objective
        self.n_solves_, self.n_iter_ = search.solves, max(1, rounds.iterations)
        rounds.tell(self.max_iter)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        return self.machine_.decision_function(validate_predict(self, X))

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(np.intp)]


class _Search:
    """Joachims' algorithm over signs; labelled rows come first."""

    def __init__(self, model, rounds, sign, cost, n_unlabeled):
        self.model, self.rounds = model, rounds
        self.sign, self.cost, self.soft = sign, cost, np.ones(n_unlabeled)
        self.solves = 0

    def run(self):
        machine, k = self._solve(0.0, 0.0), len(self.soft)
        if k == 0:
            return machine
        final = self.model.C if self.model.C_unlabeled is None else self.model.C_unlabeled
        scores = machine.scores[len(self.sign) :]
        plus = self._positive_count()
        self.soft[:] = -1.0
        self.soft[np.argsort(-scores, kind="stable")[:plus]] = 1.0
        minus_cost = min(_FIRST_COST, final)
        plus_cost = min(minus_cost * max(1, plus) / max(1, k - plus), final)
        while True:
            machine = self._settled(plus_cost, minus_cost)
            if minus_cost >= final and plus_cost >= final:
                return machine
            plus_cost, minus_cost = (min(2.0 * c, final) for c in (plus_cost, minus_cost))

    def _positive_count(self):
        share, k = self.model.positive_share, len(self.soft)
        share = np.average(self.sign > 0.0, weights=self.cost) if share is None else share
        return int(np.clip(round(k * share), min(1, k - 1), max(1, k - 1)))

    def _settled(self, plus_cost, minus_cost):
        """The machine once no pair of unlabelled rows gains by an exchange of labels."""
        seen: set[bytes] = set()
        while True:
            machine = self._solve(plus_cost, minus_cost)
            first, second = self._exchanges(machine)
            # The objective falls with every exchange; a solver's tolerance may hide that it did.
            if not len(first) or self.soft.tobytes() in seen:
                return machine
            seen.add(self.soft.tobytes())
            n = len(self.sign)
            self.soft[first], self.soft[second] = -1.0, 1.0
            self.rounds.exchange(n + first, n + second)

    def _exchanges(self, machine):
        """Positive and negative rows that both fall short, by more than 2 together."""
        slack = np.maximum(0.0, 1.0 - self.soft * machine.scores[len(self.sign) :])
        sides = []
        for side in (1.0, -1.0):
            rows = np.flatnonzero((self.soft == side) & (slack > 0.0))
            sides.append(rows[np.argsort(-slack[rows], kind="stable")])
        m = min(len(rows) for rows in sides)
        first, second = (rows[:m] for rows in sides)
        # Rounding must not exchange the same pair for ever.
        gains = slack[first] + slack[second] > 2.0 + 2.0 * self.model.tol
        count = int(gains.sum()) if self.model.switch == "multi" else int(gains[:1].sum())
        return first[:count], second[:count]

    def _solve(self, plus_cost, minus_cost):
        self.solves += 1
        soft_cost = np.where(self.soft > 0.0, plus_cost, minus_cost)
        return self.rounds.train(
            np.concatenate([self.sign, self.soft]), np.concatenate([self.cost, soft_cost])
        )

"""PrivilegedSVC: SVM2+ and SVM1+."""

import warnings
from numbers import Real

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.matmul import tiled_product
from widemargin._base.sklearn_compat import Interval, StrOptions, fit_context
from widemargin._base.threads import for_each
from widemargin.privileged.base import PrivilegedBase
from widemargin.privileged.problems import Hinge, SquaredHinge, collapsed, small_enough
from widemargin.privileged.slack_space import SlackSpace, distinct_rows


class PrivilegedSVC(PrivilegedBase):
    r"""Support vector classification with columns that only the training rows have.

    A radiologist's report, tags, a later measurement, an expensive sensor: what is known of the
    training rows, and not of those to come, tells which of them are hard. Their slack is a function
    of these privileged columns; prediction needs X alone. For two classes it solves, with
    ``loss='squared_hinge'`` (SVM2+),

    .. math::

        \min_{f, b, e} \tfrac12 \|f\|^2 + \tfrac{C}{2} \sum_i w_i\, e(z_i)^2
        + \tfrac{\lambda}{2} \|e\|^2
        \quad\text{with}\quad y_i (f(x_i) + b) \ge 1 - e(z_i)

    and with ``loss='hinge'`` (SVM1+)

    .. math::

        \min_{f, b, e, \rho} \tfrac12 \|f\|^2 + C \sum_i w_i\, (e(z_i) + \rho)
        + \tfrac{\lambda}{2} \|e\|^2
        \quad\text{with}\quad y_i (f(x_i) + b) \ge 1 - e(z_i) - \rho, \quad e(z_i) + \rho \ge 0

    where :math:`\lambda` is `privileged_penalty`. In the first the privileged kernel has a constant
    1 added and the slack may be negative. It is a hard-margin machine over a changed kernel, solved
    about as fast as `SVC`; the second costs a good deal more. Several classes are told apart by one
    machine for each against the rest, and all share one decomposition of the privileged columns.

    Parameters
    ----------
    loss : {'squared_hinge', 'hinge'}, default='squared_hinge'
        SVM2+ or SVM1+.

    C : float, default=1.0
        Cost of slack; multiplies the sum over rows.

    privileged_penalty : float, default=1.0
        Cost of a slack function that varies much with the privileged columns. The larger, the
        more alike is the slack of all rows.

    kernel : str or callable, default='rbf'
        One of 'linear', 'poly', 'rbf', 'sigmoid', 'laplacian' and 'precomputed', or a callable, as
        in `SVC`.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian', as in `SVC`.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    privileged_kernel : str or callable, default='linear'
        The kernel of the privileged columns, likewise. It must be positive semidefinite.

    privileged_degree : int, default=3
        Degree of a privileged 'poly'.

    privileged_gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the privileged kernel.

    privileged_coef0 : float, default=0.0
        Constant of a privileged 'poly' or 'sigmoid'.

    privileged_transformer : transformer, default=None
        Fitted on the privileged columns and applied to them, such as
        :class:`~sklearn.preprocessing.StandardScaler`: the steps of a pipeline see X only. It may
        make numbers of what is none: categories, texts, missing values.

    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops.

    cache_size : float, default=200
        Memory for kernel values in MB, for more than 2,000 rows.

    class_weight : dict or 'balanced', default=None
        Multiplies `C` by class.

    verbose : bool, default=False
        Print a line for every machine.

    max_iter : int, default=-1
        Most solver iterations for each machine, -1 for no limit.

    n_jobs : int, default=None
        How many machines are trained at once, in threads. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of `C` for each class.

    support_ : ndarray of shape (n_support,)
        Indices of the support vectors, grouped by class.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel.

    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.

    dual_coef_ : ndarray or sparse matrix of shape (n_machines, n_support)
        Dual variables times signs.

    intercept_ : ndarray of shape (n_machines,)
        Constant of each decision function.

    coef_ : ndarray or sparse matrix of shape (n_machines, n_features)
        Weights of the features, for ``kernel='linear'``.

    slack_ : ndarray of shape (n_samples,) or (n_samples, n_machines)
        Slack of the training rows; nan for rows of weight 0.

    privileged_coef_ : ndarray of shape (n_machines, n_privileged)
        Weights of the privileged columns (after `privileged_transformer`) in the slack, for
        ``privileged_kernel='linear'``.

    privileged_dual_coef_ : ndarray of shape (n_machines, n_rows)
        Weights of the kernel values against the training rows in the slack, for other kernels, or
        where there are more privileged columns than rows.

    privileged_intercept_ : ndarray of shape (n_machines,)
        Constant of the slack.

    privileged_transformer_ : transformer
        The fitted `privileged_transformer`.

    objective_ : ndarray of shape (n_machines,)
        Value of the minimised objective.

    dual_gap_ : ndarray of shape (n_machines,)
        Bound on how far `objective_` is from the optimum, relative to it; nan where a kernel is not
        known to be positive semidefinite. In SVM1+ slack is raised until it is feasible: where
        `tol` is met the objective may still be too large by about `tol` times the sum of all
        :math:`C w_i`, which is much for a large `C`. A smaller `tol` mends it.

    n_iter_ : ndarray of shape (n_machines,)
        Solver iterations.

    fit_status_ : int
        0 if every machine converged, else 1 (and a warning was given).

    shape_fit_ : tuple of int
        Shape of the training data.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    PrivilegedSVCCV : Chooses `C` and `privileged_penalty`.
    TwoViewSVC : Trains a machine on the privileged columns too, and has both agree.

    Notes
    -----
    SVM2+ with linear kernels on both sides, and at least twice as many rows as columns, is solved
    over its columns by an interior-point method. With other kernels it is solved by pairs of rows
    (to machine precision up to 500 rows, to `tol` beyond), and by the interior-point method where
    pairs crawl; a kernel matrix over all rows is held in memory up to 2,000 rows. SVM1+ always
    holds two of them and one more for every machine in training (8 bytes each for every pair of
    rows), and several more where pairs crawl. Where that is too much, or with a privileged kernel
    on very many rows, replace kernels by features: `Nystroem` before a linear kernel, and as
    `privileged_transformer`.

    Where the privileged columns say little and rows are many, the best function may be 0: a
    warning tells.

    References
    ----------
    V. Vapnik and A. Vashist, A new learning paradigm: learning using privileged information, Neural
    Networks 22 (2009). X. Xu, J. T. Zhou, I. W. Tsang, Z. Qin, R. S. M. Goh and Y. Liu, Simple and
    efficient learning using privileged information (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import PrivilegedSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> noise = rng.normal(size=60)
    >>> y = X[:, 0] + noise > 0
    >>> off = np.maximum(0, 1 - np.where(y, 1, -1) * X[:, [0]].T).T  # how far a label is put off
    >>> model = PrivilegedSVC(kernel="linear", privileged_penalty=0.01).fit(X, y, privileged=off)
    >>> model.predict([[1.0, 0.0], [-1.0, 0.0]])
    array([ True, False])
    >>> easy, hard = model.slack([[0.0], [2.0]])
    >>> bool(easy < hard)
    True
    """

    _parameter_constraints: dict = {
        **PrivilegedBase._parameter_constraints,
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "privileged_penalty": [Interval(Real, 0.0, np.inf, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss="squared_hinge",
        C=1.0,
        privileged_penalty=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        privileged_kernel="linear",
        privileged_degree=3,
        privileged_gamma="scale",
        privileged_coef0=0.0,
        privileged_transformer=None,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        n_jobs=None,
    ):
        self.loss = loss
        self.C = C
        self.privileged_penalty = privileged_penalty
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.privileged_kernel = privileged_kernel
        self.privileged_degree = privileged_degree
        self.privileged_gamma = privileged_gamma
        self.privileged_coef0 = privileged_coef0
        self.privileged_transformer = privileged_transformer
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, privileged=None, sample_weight=None):
        """Train the machines.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows, or the kernel matrix between them for ``kernel='precomputed'``.

        y : array-like of shape (n_samples,)
            Labels.

        privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged), default=None
            What is known of the training rows only, or the kernel matrix between them for
            ``privileged_kernel='precomputed'``. Without it the slack is free, as in a plain SVM of
            the same loss, and a warning says so.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by row; at least 0. A row of weight k counts as k rows, one of weight 0
            as none.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = self._check_training_data(X, y)
        training = self._prepare(X, y, sample_weight, self.gamma)
        side = self._side(privileged, training, len(y))
        given = {"sample_weight": sample_weight, "privileged": privileged}
        machines = training.reduction.problems
        progress = FitProgress.open(self, len(machines), X=X, y=y, metadata=given)
        gram = self._gram(X, training.order, training.parameters.gamma)
        shared = self._shared(gram, side, training)
        solutions = self._solve(shared, X, training, self.C, self.privileged_penalty, progress)
        self._settle(X, training, side, shared, solutions)
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

    def slack(self, privileged):
        """What the privileged columns say about how hard rows are.

        Parameters
        ----------
        privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged) or \
                (n_samples, n_samples_fit)
            Privileged columns, or their kernel values against the training rows for
            ``privileged_kernel='precomputed'``.

        Returns
        -------
        slack : ndarray of shape (n_samples,) or (n_samples, n_classes)
            By how much the margin of rows like these may be missed: 0 for easy ones, above 1 for
            those that may be on the wrong side. One column for each class where there are more than
            two.
        """
        check_is_fitted(self)
        if not hasattr(self, "privileged_intercept_"):
            raise ValueError("slack needs a fit with privileged columns: pass privileged to fit.")
        by_columns = hasattr(self, "_privileged_coef")
        weights = self._privileged_coef if by_columns else self.privileged_dual_coef_
        slack = self._privileged_scores(privileged, weights, self.privileged_intercept_)
        return slack[:, 0] if len(self.classes_) == 2 else slack

    @property
    def privileged_coef_(self):
        """Weights of the privileged columns in the slack, for ``privileged_kernel='linear'``."""
        check_is_fitted(self)
        if self.privileged_kernel != "linear" or not hasattr(self, "privileged_intercept_"):
            raise AttributeError(
                "privileged_coef_ needs a linear privileged kernel and privileged columns in fit."
            )
        if hasattr(self, "_privileged_coef"):
            return self._privileged_coef
        rows = self._privileged_rows
        if sp.issparse(rows):
            return np.asarray(self.privileged_dual_coef_ @ rows)
        return tiled_product(self.privileged_dual_coef_, np.ascontiguousarray(rows.T))

    def _solver_options(self):
        return {"tol": self.tol, "max_iter": self.max_iter}

    def _shared(self, gram, side, training):
        """What all machines, all C and all penalties have in common."""
        cache_bytes, jobs = self.cache_size * 2**20, effective_n_jobs(self.n_jobs)
        if side is None:
            weight = training.costs(1.0)
            if self.loss == "hinge":
                return Hinge(gram, None, None, weight, cache_bytes, jobs)
            return SquaredHinge(gram, None, weight, cache_bytes)
        if self.loss == "squared_hinge":
            space = self._space(side, side.weight, constant=True)
            return SquaredHinge(gram, space, side.weight, cache_bytes)
        space = None
        if small_enough(side.gram.size, self._fewest_columns(side)):
            space = self._space(side, np.ones(side.gram.size), constant=False)
        return Hinge(gram, side.gram, space, side.weight, cache_bytes, jobs)

    def _space(self, side, weight, constant):
        """The decomposition of the privileged columns, by their smaller side."""
        if self._fewest_columns(side) < side.gram.size:
            return SlackSpace.of_columns(side.Z, weight, constant)
        pairwise = self._privileged_is_pairwise()
        same = np.arange(side.gram.size) if pairwise else distinct_rows(side.Z)
        return SlackSpace.of_gram(side.gram, weight, constant, same)

    def _fewest_columns(self, side):
        return side.Z.shape[1] if self.privileged_kernel == "linear" else side.gram.size

    def _solve(self, shared, X, training, C, penalty, progress):
        """Solutions of all machines."""
        machines = training.reduction.problems
        solve = shared.at(C, penalty, self._solver_options())
        solutions: list = [None] * len(machines)

        def work(number):
            attributes = lambda: self._attributes(X, training, solutions)  # noqa: E731
            with progress.task(number, attributes) as stop:
                report = (lambda _: stop()) if progress.active else None
                solutions[number] = solve(machines[number].sign, report=report)

        for_each(work, range(len(machines)), effective_n_jobs(self.n_jobs))
        return shared.complete(solutions, C, penalty)

    def _settle(self, X, training, side, shared, solutions):
        """Set the fitted attributes and warn of machines that say nothing."""
        self._forget_privileged()
        for name, value in self._attributes(X, training, solutions).items():
            setattr(self, name, value)
        self._single = self._single_is_enough()
        slack = np.full((self.shape_fit_[0], len(solutions)), np.nan)
        slack[training.order] = np.column_stack([s.slack for s in solutions])
        if side is not None:
            self.slack_ = slack[:, 0] if len(solutions) == 1 else slack
            self._settle_slack(side, shared.space, solutions)
        nothing = collapsed(shared, solutions)
        if len(nothing):
            which = "" if len(solutions) == 1 else f" of the classes {self.classes_[nothing]}"
            warnings.warn(
                f"The function{which} is 0: it costs less to give all rows slack 1, so X has no "
                "say in predictions. The privileged columns say too little for so many rows: use a "
                "richer kernel on X or on them, or do without them.",
                UserWarning,
                stacklevel=4,
            )

    def _settle_slack(self, side, space, solutions):
        """Set what the slack of other rows is made of."""
        self._remember(side)
        constant = self.loss == "squared_hinge"
        if space is not None and space.loadings is not None and _all_exact(solutions):
            coef = np.vstack([space.loadings @ s.slack_weights for s in solutions])
            self._privileged_coef = coef[:, :-1] if constant else coef
            self._privileged_rows = None
            intercepts = coef[:, -1] if constant else [s.slack_intercept for s in solutions]
        else:
            duals = [s.slack_dual for s in solutions]
            if _all_exact(solutions):
                duals = space.dual(np.column_stack([s.slack_weights for s in solutions])).T
            self.privileged_dual_coef_ = self._dual_coef(side, duals)
            intercepts = [
                dual.sum() if constant else s.slack_intercept
                for dual, s in zip(duals, solutions, strict=True)
            ]
        self.privileged_intercept_ = np.array(intercepts)


def _all_exact(solutions):
    return all(s.slack_weights is not None for s in solutions)

"""TwoViewSVC: two machines on two descriptions of the same rows that are to agree (SVM-2K)."""

from numbers import Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics import accuracy_score

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.sklearn_compat import Interval, fit_context
from widemargin._base.threads import for_each
from widemargin.kernels import GramCache
from widemargin.privileged.base import PrivilegedBase
from widemargin.privileged.problems import has_low_rank
from widemargin.solvers import HingeProblem, Solution, solve_hinge
from widemargin.solvers.coupled.svm2k import solve_svm2k


class TwoViewSVC(PrivilegedBase):
    r"""Two support vector machines on two descriptions of the same rows, trained to agree (SVM-2K).

    Where the second description exists for the training rows only, it teaches the machine on the
    first; where it is at hand for new rows too, their mean decides. For two classes it solves

    .. math::

        \min \tfrac12 \|f\|^2 + \tfrac12 \|e\|^2
        + \sum_i w_i \bigl[ C \max(0, 1 - y_i F_i) + C' \max(0, 1 - y_i E_i)
        + D \max(0, |F_i - E_i| - \varepsilon) \bigr]

    with :math:`F_i = f(x_i) + b` and :math:`E_i = e(z_i) + c`. ``D=0`` makes two separate SVMs.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack in the first view; multiplies the sum over rows.

    C_privileged : float, default=None
        Cost of slack in the second view; `C` when None.

    D : float, default=1.0
        Cost of disagreement.

    epsilon : float, default=0.1
        Disagreement that costs nothing.

    kernel : str or callable, default='rbf'
        The kernel of the first view, as in `SVC`.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the first kernel, as in `SVC`.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    privileged_kernel : str or callable, default='linear'
        The kernel of the second view, likewise.

    privileged_degree : int, default=3
        Degree of a privileged 'poly'.

    privileged_gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the privileged kernel.

    privileged_coef0 : float, default=0.0
        Constant of a privileged 'poly' or 'sigmoid'.

    privileged_transformer : transformer, default=None
        Fitted on the privileged columns and applied to them: the steps of a pipeline see X only.
        It may make numbers of what is none, such as categories.

    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops.

    cache_size : float, default=200
        Memory for kernel values in MB, where there are no privileged columns.

    class_weight : dict or 'balanced', default=None
        Multiplies all costs by class.

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
        Multiplier of costs for each class.

    support_ : ndarray of shape (n_support,)
        Indices of the support vectors of the first view, grouped by class.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel.

    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.

    dual_coef_ : ndarray or sparse matrix of shape (n_machines, n_support)
        Weights of the support vectors in the first view's functions.

    intercept_ : ndarray of shape (n_machines,)
        Constants of the first view's functions.

    coef_ : ndarray or sparse matrix of shape (n_machines, n_features)
        Weights of the features, for ``kernel='linear'``.

    privileged_dual_coef_ : ndarray of shape (n_machines, n_rows)
        Weights of the training rows in the second view's functions.

    privileged_intercept_ : ndarray of shape (n_machines,)
        Constants of the second view's functions.

    objective_ : ndarray of shape (n_machines,)
        Value of the minimised objective.

    dual_gap_ : ndarray of shape (n_machines,)
        Bound on how far `objective_` is from the optimum, relative to it; nan where a kernel is not
        known to be positive semidefinite.

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
    PrivilegedSVC : The privileged columns steer the slack instead.

    Notes
    -----
    Two kernel matrices over all rows are held in memory (16 bytes for every pair of rows); where
    pairs crawl, the interior-point method makes several more for every machine in training.

    References
    ----------
    J. D. R. Farquhar, D. R. Hardoon, H. Meng, J. Shawe-Taylor and S. Szedmak, Two view learning:
    SVM-2K, theory and practice, NIPS (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import TwoViewSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> X, Z = rng.normal(size=(60, 2)) + y[:, None], rng.normal(size=(60, 3)) + y[:, None]
    >>> model = TwoViewSVC(kernel="linear").fit(X, y, privileged=Z)
    >>> model.predict([[2.0, 2.0]])
    array([1])
    >>> model.predict([[2.0, 2.0]], privileged=[[-9.0, -9.0, -9.0]])
    array([0])
    """

    _parameter_constraints: dict = {
        **PrivilegedBase._parameter_constraints,
        "C_privileged": [Interval(Real, 0.0, np.inf, closed="neither"), None],
        "D": [Interval(Real, 0.0, np.inf, closed="left")],
        "epsilon": [Interval(Real, 0.0, np.inf, closed="left")],
    }

    # A search scores the first view alone, as the machine will be used, unless asked otherwise.
    __metadata_request__score = {"privileged": False}

    def __init__(
        self,
        *,
        C=1.0,
        C_privileged=None,
        D=1.0,
        epsilon=0.1,
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
        self.C = C
        self.C_privileged = C_privileged
        self.D = D
        self.epsilon = epsilon
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
            The second view, or its kernel matrix for ``privileged_kernel='precomputed'``. Without
            it this is a plain `SVC` of one class against the rest, and a warning says so.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies all costs by row; at least 0. A row of weight k counts as k rows, one of
            weight 0 as none.

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
        solve = self._plainly(gram, training) if side is None else self._jointly(gram, side)
        solutions: list = [None] * len(machines)
        others: list = [None] * len(machines)

        def work(number):
            attributes = lambda: self._attributes(X, training, solutions)  # noqa: E731
            with progress.task(number, attributes) as stop:
                report = (lambda _: stop()) if progress.active else None
                solutions[number], others[number] = solve(machines[number].sign, report)

        for_each(work, range(len(machines)), effective_n_jobs(self.n_jobs))
        self._forget_privileged()
        for name, value in self._attributes(X, training, solutions).items():
            setattr(self, name, value)
        self._single = self._single_is_enough()
        if side is not None:
            self._remember(side)
            self.privileged_dual_coef_ = self._dual_coef(side, [dual for dual, _ in others])
            self.privileged_intercept_ = np.array([intercept for _, intercept in others])
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

    def decision_function(self, X, privileged=None):
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged), default=None
            The second view of the rows, if it is known.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of the first view, or the mean of both. With two classes, positive for ``classes_[1]``.
        """
        scores = super().decision_function(X)
        if privileged is None:
            return scores
        if not hasattr(self, "privileged_intercept_"):
            raise ValueError(
                "privileged needs a fit with privileged columns: pass privileged to fit."
            )
        second = self._privileged_scores(
            privileged, self.privileged_dual_coef_, self.privileged_intercept_
        )
        if len(second) != len(scores):
            raise ValueError(f"privileged has {len(second)} rows, but X has {len(scores)}.")
        return 0.5 * (scores + (second[:, 0] if scores.ndim == 1 else second))

    def predict(self, X, privileged=None):
        """The class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged), default=None
            The second view of the rows, if it is known.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        scores = self.decision_function(X, privileged)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def score(self, X, y, sample_weight=None, privileged=None):
        """Accuracy of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        y : array-like of shape (n_samples,)
            Their labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged), default=None
            The second view of the rows, if it is known.

        Returns
        -------
        score : float
            The part of the rows whose class is predicted.
        """
        return accuracy_score(y, self.predict(X, privileged), sample_weight=sample_weight)

    def _jointly(self, gram, side):
        """A function from signs to the solution of the first view and what the second one is."""
        first, second = (g.block(slice(None), slice(None)) for g in (gram, side.gram))
        C_privileged = self.C if self.C_privileged is None else self.C_privileged
        costs = np.vstack([self.C * side.weight, C_privileged * side.weight])
        options = {"tol": self.tol, "max_iter": self.max_iter}
        options["low_rank"] = has_low_rank(side.gram)

        def solve(sign, report):
            s = solve_svm2k(
                first, second, sign, costs, self.D * side.weight, self.epsilon, **options,
                report=report,
            )  # fmt: skip
            known = gram.positive_semidefinite and side.gram.positive_semidefinite
            own = Solution(
                s.duals[0], float(s.intercepts[0]), s.objective, s.dual_objective,
                s.gap if known else np.nan, s.iterations, s.converged,
            )  # fmt: skip
            return own, (s.duals[1], s.intercepts[1])

        return solve

    def _plainly(self, gram, training):
        """The same without a second view."""
        jobs = effective_n_jobs(self.n_jobs)
        cache = GramCache(gram, self.cache_size * 2**20, shared=True, jobs=jobs)
        cost = training.costs(self.C)

        def solve(sign, report):
            problem = HingeProblem(cache.of(), sign, 1.0, cost)
            return solve_hinge(problem, **self._solver_options(), report=report), None

        return solve

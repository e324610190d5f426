"""LinearSVC: linear support vector classification."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval, SparseCoefMixin, StrOptions, fit_context
from widemargin._base.validation import validate_predict
from widemargin.svm.linear_training import (
    LOSS_CONSTRAINTS,
    LinearTraining,
    prepare_linear_training,
    validate_linear_training,
)
from widemargin.svm.scores import linear_scores, linear_tie_tolerance, merge_ties
from widemargin.svm.training import solve_problems


@shared_docs
class LinearClassifierMixin(SparseCoefMixin):
    """Mixin class for estimators with the fitted attributes of `LinearTraining`."""

    coef_: Any
    intercept_: np.ndarray
    classes_: np.ndarray
    _joint: bool

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores of the classes. With two classes, positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_predict(self, X)
        scores = linear_scores(X, self._dense_coef()) + self.intercept_
        if len(self.classes_) == 2:
            return scores[:, 0]
        return merge_ties(scores, self._tie_tolerance(X)) if self._joint else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        <<returns_labels>>
        """
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def _tie_tolerance(self, X: Any) -> float | np.ndarray:
        """Difference of scores up to which classes are tied, for validated samples."""
        if not self._joint or len(self.classes_) == 2:
            return 0.0
        return linear_tie_tolerance(X, self._dense_coef(), self.intercept_)

    def _dense_coef(self) -> np.ndarray:
        return self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_


@shared_docs
class LinearSVC(CallbackSupportMixin, LinearClassifierMixin, ClassifierMixin, BaseEstimator):
    r"""Linear support vector classification.

    A replacement for :class:`sklearn.svm.LinearSVC` (with the l2 penalty) that reports how far
    from the optimum it stopped, treats a sample of weight k as k samples, and gives the same bits
    for any number of threads and jobs. For every class against the rest it solves

    .. math::

        \min_{w, b} \tfrac12 (\|w\|^2 + (b / s)^2)
        + \sum_i C_i \, \ell(m_i - y_i (\langle w, x_i \rangle + b)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    where :math:`\ell(t)` is :math:`\max(0, t)` or its square and s is `intercept_scaling`: as in
    liblinear, the intercept is the weight of a constant feature and is regularized with the others.
    The margin :math:`m_i` is 1 unless `class_margin` is given.

    Parameters
    ----------
    penalty : {'l2'}, default='l2'
        Norm of the weights in the penalty. For sparse weights, use ``penalty='l1'`` of
        :class:`sklearn.svm.LinearSVC`.

    <<loss>>

    <<dual>>

    <<linear_tol>>

    <<finite_C>>

    <<joint_multi_class>>

    <<fit_intercept>>

    <<intercept_scaling>>

    <<class_weight>>

    <<class_margin>>

    verbose : int, default=0
        Whether to print a line for each binary subproblem.

    <<solver_random_state>>

    <<passes_max_iter>>

    <<n_jobs>>

    warm_start : bool, default=False
        Whether to start from the solution of the previous fit, if that had the same classes and
        the same numbers of samples and features. A fit that was stopped by a callback or by
        `max_iter` is continued in this way.

    Attributes
    ----------
    <<linear_attributes>>

    See Also
    --------
    LinearSVCCV : Linear support vector classification with C chosen by cross-validation.
    CrammerSingerSVC : One problem over all classes, with kernels.
    SVC : Support vector classification with kernels, whose intercept is not regularized.
    sklearn.svm.LinearSVC : The class that this one replaces.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> bool((model.dual_gap_ < 1e-9).all())
    True
    """

    _parameter_constraints: dict = {
        **LOSS_CONSTRAINTS,
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced", "effective"}), dict, None],
        "class_margin": [StrOptions({"ldam"}), dict, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        class_margin=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        n_jobs=None,
        warm_start=False,
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.class_margin = class_margin
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_train>>

        <<y>>

        <<sample_weight>>

        Returns
        -------
        <<returns_self>>
        """
        X, y = validate_linear_training(self, X, y)
        training = prepare_linear_training(self, X, y, sample_weight)
        starts = self._starts(training)
        progress = FitProgress.open(
            self, training.n_problems, X, y, {"sample_weight": sample_weight}
        )
        solutions = solve_problems(
            lambda number, report: training.solve(self.C, number, starts[number], report),
            training.n_problems,
            effective_n_jobs(self.n_jobs),
            progress,
            training.attributes,
            training.solution_at,
        )
        self.__dict__.update(training.attributes(solutions))
        self._solutions = solutions if self.warm_start else ()
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

    def _starts(self, training: LinearTraining) -> list:
        """Return the points to start from: the last solutions, if they are wanted and fit."""
        fresh: list = [None] * training.n_problems
        same = np.array_equal(getattr(self, "classes_", ()), training.classes)
        if not self.warm_start or not same:
            return fresh
        starts = [training.start(solution) for solution in getattr(self, "_solutions", ())]
        return starts if training.can_start_from(starts) else fresh


def fitted_linear_svc(parameters: dict[str, Any], attributes: dict[str, Any]) -> LinearSVC:
    """Return a `LinearSVC` with these parameters and fitted attributes."""
    model = LinearSVC(**parameters)
    model.__dict__.update(attributes)
    return model

"""SVC: kernel support vector classification, one-vs-one and one-vs-rest."""

import os
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence, warn_if_not_converged
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import BaseEstimator, Interval, StrOptions, fit_context
from widemargin._base.threads import single_threaded_blas
from widemargin._base.validation import (
    validate_all_weights,
    validate_kernel_training,
    validate_predict,
)
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import kernel_constraints
from widemargin.svm.folds import make_folds, solve_folds
from widemargin.svm.probabilities import ProbabilityMixin, calibration_splits, fit_sigmoids
from widemargin.svm.reduction import class_scores, count_votes, pair_weights
from widemargin.svm.training import TRAINING_CONSTRAINTS, fit_binary_problems, prepare_training


@shared_docs
class KernelClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base class of estimators whose fitted attributes `support_attributes` has returned.

    Predictions depend on fitted attributes only, and on the parameters
    ``decision_function_shape`` and ``break_ties`` of those that have binary subproblems for pairs
    of classes, which may be changed after fit.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Scores of the classes or of the pairs of classes. With two classes, positive for
            ``classes_[1]``.
        """
        scores = self._decision_values(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self._one_vs_one and self.decision_function_shape == "ovr":
            return class_scores(scores, len(self.classes_))
        return scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        <<returns_labels>>
        """
        break_ties = "break_ties" in self._parameter_constraints and self.break_ties
        if break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        values = self._decision_values(X)
        return self.classes_[self._best_positions(values)]

    def _best_positions(self, values: np.ndarray) -> np.ndarray:
        """Return the positions of the predicted classes, given the decision values."""
        n_classes = len(self.classes_)
        if n_classes == 2:
            return (values[:, 0] > 0).astype(np.intp)
        if self._one_vs_one:
            break_ties = "break_ties" in self._parameter_constraints and self.break_ties
            values = (class_scores if break_ties else count_votes)(values, n_classes)
        return values.argmax(axis=1)

    @property
    def _gamma(self) -> float:
        """The number behind gamma, under the name that scikit-learn's own tests read."""
        return float(self._expansion.parameters.gamma)

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors of each class."""
        check_is_fitted(self)
        return self._n_support

    @property
    def coef_(self) -> Any:
        """Weights of the features for each binary subproblem, for ``kernel='linear'``."""
        check_is_fitted(self)
        if self._expansion.parameters.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel.")
        dual_coef, vectors, n = self.dual_coef_, self.support_vectors_, self._n_support
        with single_threaded_blas():
            coef = pair_weights(dual_coef, vectors, n) if self._one_vs_one else dual_coef @ vectors
        if self._expansion.weights is not None:
            coef = self._expansion.weights.T.copy()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    def _decision_values(self, X: Any) -> NDArray[np.float64]:
        """Values of the decision functions of all binary subproblems."""
        check_is_fitted(self)
        if len(self.support_) != self._n_support.sum():
            raise ValueError(f"The internal representation of {type(self).__name__} was altered.")
        if not callable(self._expansion.parameters.kernel):
            X = validate_samples(self, X, sparse=sp.issparse(self.support_vectors_))
        return self._expansion.evaluate(X)


@shared_docs
class SVC(ProbabilityMixin, KernelClassifier):
    r"""C-support vector classification with a certificate of optimality.

    A drop-in replacement for :class:`sklearn.svm.SVC` that reports the
    duality gap of each solution, treats a sample of weight k as k samples, and gives the same bits
    for any number of threads. For each pair of classes (or each class against the rest) it solves

    .. math::

        \min_{f, b} \tfrac12 \|f\|^2
        + \sum_i C_i \max(0, m_i - y_i (f(x_i) + b)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    where the margin :math:`m_i` is 1 unless `class_margin` is given.

    Parameters
    ----------
    <<C>>

    <<kernel>>

    <<degree>>

    <<gamma>>

    <<coef0>>

    <<multi_class>>

    <<shrinking>>

    <<probability>>

    <<tol>>

    <<gap_tol>>

    cache_size : float, default=200
        Size of the kernel cache in MB, shared by all binary subproblems.

    <<class_weight>>

    <<class_margin>>

    <<verbose>>

    <<max_iter>>

    <<decision_function_shape>>

    <<break_ties>>

    <<n_jobs>>

    <<unused_random_state>>

    <<checkpoint>>

    Attributes
    ----------
    <<classes_>>

    <<class_weight_>>

    <<class_margin_>>

    <<dual_coef_>>

    <<support_attributes>>

    <<probability_sigmoids_>>

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    sklearn.svm.SVC : The class that this one replaces.
    SVCCV : Selects C and gamma by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> bool((model.dual_gap_ < 1e-9).all())
    True
    """

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0.0, None, closed="right")],
        **kernel_constraints(),
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "shrinking": ["boolean"],
        "probability": ["boolean"],
        **TRAINING_CONSTRAINTS,
        "decision_function_shape": [StrOptions({"ovo", "ovr"})],
        "break_ties": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "checkpoint": [None, str, os.PathLike],
    }

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        multi_class="ovo",
        shrinking=True,
        probability=False,
        tol=1e-3,
        gap_tol=None,
        cache_size=200,
        class_weight=None,
        class_margin=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        n_jobs=None,
        random_state=None,
        checkpoint=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multi_class = multi_class
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.gap_tol = gap_tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.class_margin = class_margin
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_kernel_train>>

        <<y>>

        <<sample_weight>>

        Returns
        -------
        <<returns_self>>
        """
        X, y = validate_kernel_training(self, X, y, self.kernel)
        training = prepare_training(self, X, y, sample_weight)
        folds, weight = [], None
        if self.probability:
            weight = validate_all_weights(sample_weight, y)
            splits = calibration_splits(y, weight)
            folds = make_folds([self], X, y, weight, splits, [self.C], training.n_problems)
        n_tasks = training.n_problems + sum(fold.n_tasks for fold in folds)
        metadata = {"sample_weight": sample_weight}
        progress = FitProgress(self, n_tasks, X, y, metadata, self.checkpoint)
        jobs = effective_n_jobs(self.n_jobs)
        solutions, attributes = fit_binary_problems(self, X, training, jobs, progress)
        sigmoids = None
        if self.probability:
            solve_folds(folds, X, y, self.cache_size, jobs, progress)
            sigmoids = fit_sigmoids(folds, self.C, X, y, weight, training)
        self.__dict__.update(attributes, probability_sigmoids_=sigmoids)
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        if all(solution.converged for solution in solutions):
            held_out = [s for fold in folds for path in fold.solutions for s in path]
            warn_if_not_converged(held_out, self.max_iter, progress.stop_requested, 4)
        return self


def validate_samples(estimator: Any, X: Any, sparse: bool) -> Any:
    """Return validated samples; raise a ValueError for sparse ones unless trained on ``sparse``."""
    X = validate_predict(estimator, X)
    if sp.issparse(X) and not sparse:
        raise ValueError(
            f"X must be dense: cannot use sparse input in {type(estimator).__name__!r} trained on "
            "dense data. Use X.toarray()."
        )
    return X


def class_expansion(estimator: KernelClassifier) -> KernelExpansion | None:
    """Return the functions of all classes of a one-vs-rest estimator, None for other estimators."""
    separate = not estimator._one_vs_one and not estimator._expansion.parameters.is_pairwise
    return estimator._expansion if separate and len(estimator.classes_) > 2 else None

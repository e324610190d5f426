"""Prediction of kernel classifiers that consist of binary subproblems."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import ovr_decision_function
from widemargin._base.threads import single_threaded_blas
from widemargin._base.validation import validate_predict
from widemargin.kernels.expansion import KernelExpansion
from widemargin.svm.reduction import OneVsOne, OneVsRest


@shared_docs
class KernelClassifierMixin:
    """Mixin class for estimators whose fitted attributes `support_attributes` has returned.

    Predictions depend on fitted attributes only, and on the parameters
    ``decision_function_shape`` and ``break_ties``, which may be changed after fit.
    """

    _expansion: KernelExpansion
    _one_vs_one: bool
    _n_support: np.ndarray
    kernel: Any
    classes_: np.ndarray
    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: Any

    decision_function_shape = "ovr"
    break_ties = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
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
            return ovr_decision_function(scores < 0, -scores, len(self.classes_))
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
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        n_classes = len(self.classes_)
        if n_classes == 2:
            codes = (self._decision_values(X)[:, 0] > 0).astype(np.intp)
        elif not self._one_vs_one or self.break_ties:
            codes = self.decision_function(X).argmax(axis=1)
        else:
            codes = OneVsOne.votes(self._decision_values(X), n_classes).argmax(axis=1)
        return self.classes_[codes]

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
        reduction = OneVsOne if self._one_vs_one else OneVsRest
        with single_threaded_blas():
            coef = reduction.primal(self.dual_coef_, self.support_vectors_, self.n_support_)
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


def validate_samples(estimator: Any, X: Any, sparse: bool) -> Any:
    """Return validated samples; raise a ValueError for sparse ones unless trained on ``sparse``."""
    X = validate_predict(estimator, X)
    if sp.issparse(X) and not sparse:
        raise ValueError(
            f"X must be dense: cannot use sparse input in {type(estimator).__name__!r} trained on "
            "dense data. Use X.toarray()."
        )
    return X


def class_expansion(estimator: KernelClassifierMixin) -> KernelExpansion | None:
    """Return the functions of all classes of a one-vs-rest estimator, None for other estimators."""
    separate = not estimator._one_vs_one and not estimator._expansion.parameters.is_pairwise
    return estimator._expansion if separate and len(estimator.classes_) > 2 else None

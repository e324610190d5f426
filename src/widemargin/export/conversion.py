"""Convert fitted estimators to those of scikit-learn, which other tools know."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.discriminant_analysis
import sklearn.svm
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin.discriminant.linear import LinearDiscriminantAnalysis
from widemargin.discriminant.quadratic import QuadraticDiscriminantAnalysis
from widemargin.svm.linear_svc import LinearSVC
from widemargin.svm.svc import SVC


def to_sklearn(model: Any) -> Any:
    """Convert a fitted model to scikit-learn's class of the same name.

    The result predicts the same and does not need widemargin, so that tools for scikit-learn's
    classes accept it: converters to ONNX and PMML, compilers, explainers.

    Parameters
    ----------
    model : SVC, LinearSVC, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis or Pipeline
        Fitted model, or a pipeline whose last step is one. An SVC must have a kernel of
        scikit-learn and, for more than two classes, ``multi_class='ovo'``.

    Returns
    -------
    converted : estimator
        For prediction: parameters that scikit-learn does not have are left out, so that another
        fit may give another model.

    Raises
    ------
    TypeError
        If scikit-learn has no such class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin.export import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> converted = to_sklearn(model)
    >>> type(converted)
    <class 'sklearn.svm._classes.SVC'>
    >>> bool((converted.predict(X) == model.predict(X)).all())
    True
    """
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        steps = [*model.steps[:-1], (model.steps[-1][0], to_sklearn(model.steps[-1][1]))]
        return Pipeline(steps, transform_input=model.transform_input)
    if type(model) is SVC:
        return _convert_svc(model)
    for ours, theirs in _SAME_ATTRIBUTES.items():
        if type(model) is ours:
            return _copy_fitted(model, _unfitted(model, theirs))
    raise TypeError(
        f"scikit-learn has no class for {type(model).__name__}. model must be an SVC, a LinearSVC, "
        "a LinearDiscriminantAnalysis, a QuadraticDiscriminantAnalysis or a Pipeline that ends in "
        "one. Use save for other models."
    )


_SAME_ATTRIBUTES = {
    LinearSVC: sklearn.svm.LinearSVC,
    LinearDiscriminantAnalysis: sklearn.discriminant_analysis.LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis: sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis,
}


def _unfitted(model: Any, theirs: type) -> Any:
    """Return an unfitted estimator with the parameters that both classes have."""
    converted = theirs()
    parameters = {k: v for k, v in model.get_params().items() if k in converted.get_params()}
    if isinstance(parameters.get("class_weight"), str):
        parameters["class_weight"] = None if model.class_weight == "effective" else "balanced"
    return clone(converted.set_params(**parameters))


def _copy_fitted(model: Any, converted: Any) -> Any:
    fitted = {name for name in dir(model) if name.endswith("_") and not name.startswith("_")}
    for name in sorted(fitted - {"n_support_"}):
        value = getattr(model, name, None)
        if value is not None and not callable(value):
            setattr(converted, name, value)
    return converted


def _convert_svc(model: SVC) -> Any:
    kernel = model._expansion.parameters.kernel
    n_classes = len(model.classes_)
    if kernel not in ("linear", "poly", "rbf", "sigmoid", "precomputed"):
        raise TypeError(f"scikit-learn's SVC has no kernel {kernel!r} that could be converted.")
    if n_classes > 2 and not model._one_vs_one:
        raise TypeError("scikit-learn's SVC has no multi_class='ovr'. Fit with multi_class='ovo'.")
    # Its probabilities are computed in another way and would not agree with predictions.
    converted = _unfitted(model, sklearn.svm.SVC)
    converted.set_params(kernel=kernel, probability=sklearn.svm.SVC().probability)
    if kernel not in ("linear", "precomputed"):
        converted.set_params(gamma=model._gamma)
    # A fit to one sample of each class sets what scikit-learn keeps for itself.
    n_features = n_classes if kernel == "precomputed" else model.n_features_in_
    converted.fit(np.zeros((n_classes, n_features)), model.classes_)
    for name in ("support_", "support_vectors_", "n_features_in_", "shape_fit_", "class_weight_"):
        setattr(converted, name, getattr(model, name))
    if hasattr(model, "feature_names_in_"):
        converted.feature_names_in_ = model.feature_names_in_
    converted._sparse = hasattr(model.support_vectors_, "tocsr")
    converted._n_support = model.n_support_.astype(np.int32)
    converted.dual_coef_, converted.intercept_ = model.dual_coef_, model.intercept_
    # libsvm's sign of a single decision function is that of the first class.
    sign = -1.0 if n_classes == 2 else 1.0
    converted._dual_coef_ = sign * model.dual_coef_
    converted._intercept_ = sign * model.intercept_
    if converted._sparse:  # libsvm reads the values of a full matrix
        converted._dual_coef_ = _with_all_entries(converted._dual_coef_.toarray())
    return converted


def _with_all_entries(matrix: np.ndarray) -> sp.csr_matrix:
    """Return a dense matrix as CSR with its zeros."""
    height, width = matrix.shape
    starts = np.arange(0, height * width + 1, width)
    return sp.csr_matrix((matrix.ravel(), np.tile(np.arange(width), height), starts))

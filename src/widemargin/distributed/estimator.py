"""DaskEstimator: an estimator that fits and predicts on Dask collections."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

from sklearn.base import MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import BaseEstimator, HasMethods, Interval, fit_context
from widemargin.discriminant.base import IncrementalClassifier
from widemargin.distributed import discriminant, label_tree, linear_svc, nystroem
from widemargin.distributed.nystroem import is_nystroem_svc
from widemargin.distributed.partitions import is_collection, split
from widemargin.distributed.predictions import apply
from widemargin.labeltree.tree import LabelTreeClassifier
from widemargin.svm.linear_svc import LinearSVC


def _wrapped_has(method: str) -> Callable[[Any], bool]:
    """Return a check whether the wrapped estimator has a method."""

    def check(self: Any) -> bool:
        getattr(self._model(), method)
        return True

    return check


@shared_docs
class DaskEstimator(MetaEstimatorMixin, BaseEstimator):
    r"""Fit and predict on Dask arrays and DataFrames, on one computer or on a cluster.

    `fit` sends the computation to the partitions of the data: workers reduce them and exchange
    sums, and no samples go to the client, except those of a Nystroem basis. The result
    `estimator_` is an ordinary fitted estimator, which needs no cluster. `predict` and the other
    methods apply it, or an estimator that was fitted elsewhere, to every block of a collection;
    like Dask's own operations they are lazy.

    Which estimators can be fitted, and how:

    - :class:`~widemargin.LinearDiscriminantAnalysis` and
      :class:`~widemargin.QuadraticDiscriminantAnalysis`: weights, means and scatter matrices of the
      classes are computed for every partition and merged, which is exact. The data are read once.
    - :class:`~widemargin.LinearSVC`, both losses, one-vs-rest: rounds of CoCoA+, in which each
      partition takes passes of dual coordinate descent, then Newton's method with second
      derivatives that are summed up over the partitions. Every round yields the duality gap.
    - a pipeline of :class:`sklearn.kernel_approximation.Nystroem` and `LinearSVC`: an SVM with a
      kernel, approximated by its values at `n_components` samples that are drawn from all
      partitions. `approximation_error_` is the share of the kernel matrix that this leaves out; the
      duality gap is that of the approximated problem.
    - :class:`~widemargin.LabelTreeClassifier`, 'hinge' and 'squared_hinge', for class labels or an
      indicator matrix: the features of the labels are summed up over the partitions, the root is
      trained in rounds as `LinearSVC` is, and each of its children, with all nodes below, on a
      worker that receives the samples with labels below this child. `history_` is that of the
      roots.

    Any fitted estimator can predict.

    Parameters
    ----------
    estimator : estimator
        The estimator to fit; or a fitted one, for predictions.

    gap_tol : float, default=1e-5
        Relative duality gap at which iterative fits stop.

    max_rounds : int, default=1000
        Maximum number of rounds of iterative fits. In each one, the partitions exchange sums once.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator. Its attributes are also attributes of this one, such as
        ``dual_gap_``.

    history_ : dict of ndarray
        For iterative fits: the method (``phase``), the number of rounds so far (``round``), and for
        each binary subproblem the smallest ``objective`` and the relative duality ``gap``.

    approximation_error_ : float
        For Nystroem features: share of the trace of the kernel matrix that they leave out, from 0
        to 1, estimated on 500 samples outside of their basis. 0 means an exact kernel.

    approximation_error_std_ : float
        Standard deviation of this estimate.

    See Also
    --------
    LinearSVC : The same problem on one computer.

    References
    ----------
    C. Ma, V. Smith, M. Jaggi, M. I. Jordan, P. Richtarik, M. Takac: Adding vs. averaging in
    distributed primal-dual optimization. ICML 2015.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC
    >>> from widemargin.distributed import DaskEstimator
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    >>> model = DaskEstimator(LinearSVC()).fit(X, y)
    >>> bool((model.dual_gap_ <= 1e-5).all())
    True
    >>> model.predict(X)[:2].compute()
    array([0, 0])
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods("fit")],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, estimator, *, gap_tol=1e-5, max_rounds=1000):
        self.estimator = estimator
        self.gap_tol = gap_tol
        self.max_rounds = max_rounds

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n_samples, n_features)
            Training samples, in blocks of rows. Blocks of arrays may be sparse.
        y : dask array or Series of shape (n_samples,)
            Labels, in the blocks of X. For label trees, also an indicator matrix.
        sample_weight : dask array or Series of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        for name, values in (("X", X), ("y", y)):
            if not is_collection(values):
                raise TypeError(
                    f"{name} must be a Dask collection, got {type(values).__name__}. Use "
                    "dask.array.from_array, or fit the estimator itself."
                )
        for name in ("history_", "approximation_error_", "approximation_error_std_"):
            self.__dict__.pop(name, None)
        model, limits = self.estimator, (self.gap_tol, self.max_rounds)
        if isinstance(model, IncrementalClassifier):
            self.estimator_ = discriminant.fit(model, X, y, sample_weight)
        elif isinstance(model, LinearSVC):
            blocks = split(X, y, sample_weight)
            self.estimator_, self.history_ = linear_svc.fit_blocks(model, blocks, *limits)
        elif isinstance(model, LabelTreeClassifier):
            self.estimator_, self.history_ = label_tree.fit(model, X, y, sample_weight, *limits)
        elif is_nystroem_svc(model):
            blocks = split(X, y, sample_weight)
            self.estimator_, self.history_, error = nystroem.fit(model, blocks, *limits)
            self.approximation_error_, self.approximation_error_std_ = error
        else:
            raise TypeError(_not_supported(model))
        return self

    @available_if(_wrapped_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict class labels or values, lazily.

        Parameters
        ----------
        X : dask array, DataFrame or Bag
            Samples. Other data are passed to the estimator as they are.

        Returns
        -------
        y : dask array, or Bag for a Bag
            Predicted class labels or values.
        """
        return self._apply("predict", X)

    @available_if(_wrapped_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Compute the decision function, lazily.

        Parameters
        ----------
        X : dask array, DataFrame or Bag
            Samples.

        Returns
        -------
        scores : dask array, or Bag for a Bag
            Values of the decision function.
        """
        return self._apply("decision_function", X)

    @available_if(_wrapped_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Compute the probabilities of the classes, lazily.

        Parameters
        ----------
        X : dask array, DataFrame or Bag
            Samples.

        Returns
        -------
        probabilities : dask array, or Bag for a Bag
            Probabilities of the classes, in the order of `classes_`.
        """
        return self._apply("predict_proba", X)

    @available_if(_wrapped_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Compute the logarithms of the probabilities of the classes, lazily.

        Parameters
        ----------
        X : dask array, DataFrame or Bag
            Samples.

        Returns
        -------
        logarithms : dask array, or Bag for a Bag
            Logarithms of the probabilities of the classes, in the order of `classes_`.
        """
        return self._apply("predict_log_proba", X)

    @available_if(_wrapped_has("transform"))
    def transform(self, X: Any) -> Any:
        """Transform samples, lazily.

        Parameters
        ----------
        X : dask array, DataFrame or Bag
            Samples.

        Returns
        -------
        X_new : dask array, or Bag for a Bag
            Transformed samples.
        """
        return self._apply("transform", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of samples whose labels are predicted correctly.

        Parameters
        ----------
        X : dask array or DataFrame
            Samples.
        y : dask array or Series
            Labels, in the blocks of X.
        sample_weight : dask array or Series, default=None
            Weights of the samples.

        Returns
        -------
        score : float
            Accuracy.
        """
        import dask.array as da

        right = self.predict(X) == da.asarray(y)
        if sample_weight is None:
            return float(right.mean().compute())
        weight = da.asarray(sample_weight)
        return float(((right * weight).sum() / weight.sum()).compute())

    def _apply(self, method: str, X: Any) -> Any:
        model = self._model()
        check_is_fitted(model)
        return apply(model, method, X) if is_collection(X) else getattr(model, method)(X)

    def _model(self) -> Any:
        return vars(self).get("estimator_", self.estimator)

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self._model())
        except NotFittedError:
            return False
        return True

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and "estimator_" in vars(self):
            return getattr(vars(self)["estimator_"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _not_supported(model: Any) -> str:
    return (
        "estimator must be a LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, LinearSVC "
        "or LabelTreeClassifier to be fitted on Dask collections, got "
        f"{type(model).__name__}. For a kernel, use make_pipeline(Nystroem(), LinearSVC()). Any "
        "fitted estimator can predict on them."
    )

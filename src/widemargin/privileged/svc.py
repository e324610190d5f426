"""PrivilegedSVC: SVM2+ and SVM1+."""

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin._base.docs import shared_docs
from widemargin._base.options import privileged_options as options
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin.privileged.base import PrivilegedBase
from widemargin.privileged.problems import Subproblems, SVM1Plus, SVM2Plus
from widemargin.privileged.slack_functions import FitData


@shared_docs
class SlackClassifier(PrivilegedBase):
    """Base class of classifiers whose slack is a function of the privileged features."""

    _parameter_constraints: dict = {
        **PrivilegedBase._parameter_constraints,
        "loss": [StrOptions({"squared_hinge", "hinge"})],
    }

    def slack(self, privileged: Any) -> NDArray[np.float64]:
        """Compute the slack of samples from their privileged features.

        Parameters
        ----------
        privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged) or \
                (n_samples, n_samples_fit)
            Privileged features, or their kernel values against the training samples for
            ``privileged_kernel='precomputed'``.

        Returns
        -------
        slack : ndarray of shape (n_samples,) or (n_samples, n_classes)
            By how much the margin of such samples may be missed: 0 for easy samples, above 1 for
            samples that may be misclassified. One column for each class if there are more than
            two.
        """
        check_is_fitted(self)
        slack = self._evaluate_privileged(privileged, "slack")
        return slack[:, 0] if len(self.classes_) == 2 else slack

    @property
    def privileged_coef_(self) -> NDArray[np.float64]:
        """Weights of the privileged features in the slack, for ``privileged_kernel='linear'``."""
        check_is_fitted(self)
        functions = self._privileged_functions
        if functions is None or functions.kernel != "linear":
            raise AttributeError(
                "privileged_coef_ is only available after a fit with privileged features and a "
                "linear privileged_kernel."
            )
        return functions.coef

    @property
    def privileged_feature_names_(self) -> NDArray[np.object_]:
        """Names of the features that `privileged_coef_` weights, if they are known."""
        check_is_fitted(self)
        functions = self._privileged_functions
        if functions is None or functions.features is None or functions.features.names is None:
            raise AttributeError(
                "privileged_feature_names_ is only available if privileged was a DataFrame with "
                "names, or if privileged_transformer names its output."
            )
        return np.array(functions.features.names, dtype=object)

    def _subproblems(self, data: FitData) -> Subproblems:
        return (SVM2Plus if self.loss == "squared_hinge" else SVM1Plus)(self, data)

    def _set_fitted(self, data: FitData, subproblems: Subproblems, solutions: list) -> None:
        super()._set_fitted(data, subproblems, solutions)
        if data.kernel is not None:
            slack = np.full((len(data.y), len(solutions)), np.nan)
            slack[data.training.order] = np.column_stack([s.second_values for s in solutions])
            self.slack_ = slack[:, 0] if len(solutions) == 1 else slack
        zero = subproblems.zero_functions(solutions)
        if len(zero):
            which = "" if len(solutions) == 1 else f" of the classes {self.classes_[zero]}"
            warnings.warn(
                f"The decision function{which} is identically zero, so predictions do not depend "
                "on X: slack 1 for all samples costs less. The privileged features are not "
                "informative enough for so many samples. Use a richer kernel for X or for the "
                "privileged features, or fit without them.",
                UserWarning,
                stacklevel=5,
            )
        elif data.kernel is not None and len(solutions) == 1:
            self._warn_if_constant(subproblems, solutions[0])

    def _warn_if_constant(self, subproblems: Subproblems, solution: Any) -> None:
        """Warn if all training samples are predicted to be of one of the two classes."""
        signs = subproblems.predicted_signs(solution)
        if len(signs) > 1 or not solution.converged:
            return
        label = self.classes_.tolist()[int(signs[0])]
        warnings.warn(
            f"All training samples are predicted to be of class {label!r}. Leave out privileged "
            "features that the label follows from, increase C or slack_ridge, set "
            "class_weight='balanced' for rare classes, or use PrivilegedSVCCV.",
            UserWarning,
            stacklevel=6,
        )


def check_ridge(ridge: float, loss: str, name: str) -> None:
    """Raise a ValueError for mixed slack with the hinge loss, which has none."""
    if loss == "hinge" and ridge not in (0.0, np.inf):
        raise ValueError(
            f"{name} must be 0 or np.inf with loss='hinge', got {ridge!r}. Use "
            "loss='squared_hinge' for mixed slack."
        )


@shared_docs
class PrivilegedSVC(SlackClassifier):
    r"""Support vector classification with privileged information (SVM2+ and SVM1+).

    Privileged features are known for the training samples and not for those to predict: a
    radiologist's report, tags, a later measurement, an expensive sensor (learning using privileged
    information, LUPI). The slack of each training sample is a function of its privileged features;
    prediction needs X alone. For two classes it solves, with ``loss='squared_hinge'`` (SVM2+, to
    which `slack_ridge` adds slack of each sample's own),

    .. math::

        \min_{f, b, e} \tfrac12 \|f\|^2 + \tfrac{C}{2} \sum_i w_i\, e(z_i)^2
        + \tfrac{\lambda}{2} \|e\|^2
        \quad\text{with}\quad y_i (f(x_i) + b) \ge 1 - e(z_i)

    and with ``loss='hinge'`` (SVM1+)

    .. math::

        \min_{f, b, e, \rho} \tfrac12 \|f\|^2 + C \sum_i w_i\, (e(z_i) + \rho)
        + \tfrac{\lambda}{2} \|e\|^2
        \quad\text{with}\quad y_i (f(x_i) + b) \ge 1 - e(z_i) - \rho, \quad e(z_i) + \rho \ge 0

    where :math:`\lambda` is `privileged_penalty`. In SVM2+ the privileged kernel has a constant 1
    added and the slack may be negative. It is a hard-margin problem over a changed kernel, and
    takes about as long as `SVC`; SVM1+ takes considerably longer. Several classes are handled
    one-vs-rest, with one decomposition of the privileged features for all of them.

    SVM2+ as published is ``slack_ridge=0``. With privileged features that do not help it is often
    much less accurate than an `SVC`, with the mixed slack of the default rarely. `PrivilegedSVCCV`
    compares all three in folds.

    Parameters
    ----------
    loss : {'squared_hinge', 'hinge'}, default='squared_hinge'
        Loss function: 'squared_hinge' is SVM2+, 'hinge' is SVM1+.

    <<finite_C>>

    privileged_penalty : float, default=1.0
        Regularization parameter :math:`\lambda` of the slack function. The larger it is, the less
        the slack varies between samples.

    slack_ridge : float, default=None
        Amount of slack that does not depend on the privileged features (mixed slack): with
        :math:`\rho > 0` the slack of a sample is :math:`e(z_i) + s_i`, where the free part costs
        :math:`\frac{\lambda}{2 \rho} w_i s_i^2`. 0 is SVM2+ or SVM1+; np.inf is the SVM with the
        same loss, without privileged features. If None, 1, with ``loss='hinge'`` 0, which has no
        mixed slack.

    <<kernel>>

    <<degree>>

    <<gamma>>

    <<coef0>>

    <<privileged_parameters>>

    <<tol>>

    cache_size : float, default=200
        Size of the kernel cache in MB, for more than 2,000 samples.

    <<class_weight>>

    <<verbose>>

    <<max_iter>>

    <<n_jobs>>

    <<checkpoint>>

    Attributes
    ----------
    <<slack_attributes>>

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    PrivilegedSVCCV : Selects `C` and `privileged_penalty` by cross-validation.
    TwoViewSVC : Fits a classifier on the privileged features as well, and penalizes disagreement.

    Notes
    -----
    SVM2+ with linear kernels on both sides, and at least twice as many samples as features, is
    solved over the features by an interior-point method. With other kernels it is solved by SMO
    (to machine precision up to 500 samples, to `tol` beyond), and by the interior-point method if
    SMO converges slowly; a kernel matrix of all samples is held in memory up to 2,000 samples.
    SVM1+ always holds two kernel matrices and one more for each subproblem that is being solved
    (8 bytes for each pair of samples), and several more in the interior-point method. If that is
    too much, or with a privileged kernel on very many samples, replace kernels by features:
    :class:`~sklearn.kernel_approximation.Nystroem` before a linear kernel, and as
    `privileged_transformer`.

    In SVM1+ the slack is raised until it is feasible. The solver therefore continues when `tol` is
    reached, until the relative duality gap `dual_gap_` is below 1e-6 or rounding errors prevent
    that.

    If the privileged features are not informative and there are many samples, the optimal decision
    function may be identically zero. A warning is raised then.

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
    >>> missed = np.maximum(0, 1 - np.where(y, 1, -1) * X[:, [0]].T).T  # by how much X misses
    >>> model = PrivilegedSVC(kernel="linear", privileged_penalty=0.01).fit(X, y, privileged=missed)
    >>> model.predict([[1.0, 0.0], [-1.0, 0.0]])
    array([ True, False])
    >>> easy, hard = model.slack([[0.0], [2.0]])
    >>> bool(easy < hard)
    True
    """

    _parameter_constraints: dict = {
        **SlackClassifier._parameter_constraints,
        "privileged_penalty": [Interval(Real, 0.0, np.inf, closed="neither")],
        "slack_ridge": [Interval(Real, 0.0, np.inf, closed="both"), None],
    }

    def __init__(
        self,
        *,
        loss="squared_hinge",
        C=1.0,
        privileged_penalty=1.0,
        slack_ridge=None,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        privileged_kernel="linear",
        privileged_degree=3,
        privileged_gamma="scale",
        privileged_coef0=0.0,
        privileged_transformer=None,
        privileged_columns=None,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        n_jobs=None,
        checkpoint=None,
    ):
        self.loss = loss
        self.C = C
        self.privileged_penalty = privileged_penalty
        self.slack_ridge = slack_ridge
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.privileged_kernel = privileged_kernel
        self.privileged_degree = privileged_degree
        self.privileged_gamma = privileged_gamma
        self.privileged_coef0 = privileged_coef0
        self.privileged_transformer = privileged_transformer
        self.privileged_columns = privileged_columns
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint

    def _costs(self) -> tuple[float, ...]:
        ridge = self.slack_ridge
        if ridge is None:
            ridge = options.mixed_slack if self.loss == "squared_hinge" else 0.0
        check_ridge(ridge, self.loss, "slack_ridge")
        return self.C, self.privileged_penalty, float(ridge)

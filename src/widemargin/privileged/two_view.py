"""TwoViewSVC: two classifiers on two views of the same samples (SVM-2K)."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval
from widemargin._base.validation import check_index
from widemargin.privileged.base import PrivilegedBase
from widemargin.privileged.problems import SVM2K, Subproblems
from widemargin.privileged.slack_functions import FitData
from widemargin.svm.scores import best_classes


@shared_docs
class TwoViewSVC(PrivilegedBase):
    r"""Two support vector classifiers on two views of the same samples (SVM-2K).

    The two classifiers are trained together, with a penalty on their disagreement. If the second
    view is known for the training samples only, it improves the classifier of the first; if it is
    known for new samples too, the mean of both decision functions is used. For two classes it
    solves

    .. math::

        \min \tfrac12 \|f\|^2 + \tfrac12 \|e\|^2
        + \sum_i w_i \bigl[ C \max(0, 1 - y_i F_i) + C' \max(0, 1 - y_i E_i)
        + D \max(0, |F_i - E_i| - \varepsilon) \bigr]

    with :math:`F_i = f(x_i) + b` and :math:`E_i = e(z_i) + c`. ``D=0`` gives two separate SVMs.

    Parameters
    ----------
    <<finite_C>>

    C_privileged : float, default=None
        Regularization parameter of the second view; `C` if None.

    D : float, default=1.0
        Cost of disagreement.

    epsilon : float, default=0.1
        Disagreement without cost.

    <<kernel>>

    <<degree>>

    <<gamma>>

    <<coef0>>

    <<privileged_parameters>>

    <<tol>>

    cache_size : float, default=200
        Size of the kernel cache in MB, for a fit without privileged features.

    <<class_weight>>

    <<verbose>>

    <<coupled_max_iter>>

    <<n_jobs>>

    <<checkpoint>>

    Attributes
    ----------
    <<privileged_attributes>>

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    PrivilegedSVC : The slack is a function of the privileged features instead.

    Notes
    -----
    Two kernel matrices of all samples are held in memory (16 bytes for each pair of samples). The
    interior-point method, which is used if the second kernel is linear with fewer features than
    samples and where pair updates converge slowly, holds several more for each subproblem.

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

    # A search scores the first view alone, as the model will be used, unless requested otherwise.
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
        privileged_columns=None,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        n_jobs=None,
        checkpoint=None,
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
        self.privileged_columns = privileged_columns
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint

    def decision_function(self, X: Any, privileged: Any = None) -> NDArray[np.float64]:
        """Compute the decision function.

        Parameters
        ----------
        <<X_kernel>>

        <<second_view>>

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores of the first view, or the mean of both. With two classes, positive for
            ``classes_[1]``.
        """
        scores = super().decision_function(X)
        if privileged is None:
            return scores
        check_index(X, privileged, "privileged")
        second = self._evaluate_privileged(privileged, "privileged")
        if len(second) != len(scores):
            raise ValueError(
                f"privileged must have one row for each sample, got {len(second)} rows, but X has "
                f"{len(scores)} samples."
            )
        return 0.5 * (scores + (second[:, 0] if scores.ndim == 1 else second))

    def predict(self, X: Any, privileged: Any = None) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        <<X_kernel>>

        <<second_view>>

        Returns
        -------
        <<returns_labels>>
        """
        return best_classes(self.decision_function(X, privileged), self.classes_)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, privileged: Any = None
    ) -> float:
        """Compute the accuracy of the predictions.

        Parameters
        ----------
        <<X_kernel>>

        <<y>>

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        <<second_view>>

        Returns
        -------
        score : float
            Accuracy.
        """
        return accuracy_score(y, self.predict(X, privileged), sample_weight=sample_weight)

    def _subproblems(self, data: FitData) -> Subproblems:
        return SVM2K(self, data)

    def _costs(self) -> tuple[float, ...]:
        return self.C, 1.0

"""TwoViewSVC: two classifiers on two views of the same samples (SVM-2K)."""

from collections.abc import Callable
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score

from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval, fit_context
from widemargin.kernels import KernelGram, MatrixGram
from widemargin.privileged.base import FitData, PrivilegedBase
from widemargin.privileged.problems import hinge_solver
from widemargin.privileged.slack_functions import PrivilegedKernel, positive_weights
from widemargin.solvers import Solution
from widemargin.solvers.coupled.svm2k import TwoViewSolution, solve_svm2k
from widemargin.svm.training import gram_cache, solve_problems, support_attributes


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
    <<C_finite>>

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
    def fit(
        self, X: Any, y: ArrayLike, privileged: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_kernel_train>>

        <<y>>

        <<privileged>>

        <<sample_weight>>

        Returns
        -------
        <<returns_self>>
        """
        data = FitData.prepare(self, X, y, privileged, sample_weight)
        X, training, kernel = data.X, data.training, data.kernel
        problems, jobs = training.reduction.problems, effective_n_jobs(self.n_jobs)
        weight, gram = positive_weights(training), training.parameters.gram(X, training.order)
        progress = data.open_progress(self, len(problems))
        seconds: list[Any] = [None] * len(problems)
        if kernel is None:
            cache = gram_cache(gram, training.reduction, self.cache_size, jobs)
            solve_plain = hinge_solver(cache, self.C * weight, self._solver_options())
        else:
            solve_views = self._view_solver(gram, kernel, weight)

        def solve(number: int, report: Callable | None) -> Solution:
            sign = problems[number].sign
            if kernel is None:
                return solve_plain(sign, report)
            found = solve_views(sign, report)
            seconds[number] = found.duals[1], found.intercepts[1]
            known = gram.positive_semidefinite and kernel.gram.positive_semidefinite
            return _first_view(found, known)

        solutions = solve_problems(
            solve,
            len(problems),
            jobs,
            progress,
            lambda found: support_attributes(X, training, found),
        )
        functions = None
        if kernel is not None:
            duals, intercepts = zip(*seconds, strict=True)
            functions = kernel.from_duals(duals, np.array(intercepts))
        self._set_fitted(support_attributes(X, training, solutions), functions)
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

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
        if not hasattr(self, "_privileged_functions"):
            raise ValueError(
                "privileged needs a model that was fitted with privileged features. Pass "
                "privileged to fit."
            )
        second = self._privileged_functions.evaluate(privileged)
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
        scores = self.decision_function(X, privileged)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        privileged: Any = None,
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

    def _solver_options(self) -> dict[str, Any]:
        return {"tol": self.tol, "max_iter": self.max_iter}

    def _view_solver(
        self, gram: KernelGram | MatrixGram, kernel: PrivilegedKernel, weight: np.ndarray
    ) -> Callable[[np.ndarray, Callable | None], TwoViewSolution]:
        """Return a function of signs and a report that solves for both views."""
        first, second = (g.block(slice(None), slice(None)) for g in (gram, kernel.gram))
        C_privileged = self.C if self.C_privileged is None else self.C_privileged
        costs = np.vstack([self.C * weight, C_privileged * weight])

        def solve(sign: np.ndarray, report: Callable | None) -> TwoViewSolution:
            return solve_svm2k(
                first,
                second,
                sign,
                costs,
                self.D * weight,
                self.epsilon,
                low_rank=kernel.low_rank,
                **self._solver_options(),
                report=report,
            )

        return solve


def _first_view(found: TwoViewSolution, positive_semidefinite: bool) -> Solution:
    return Solution(
        found.duals[0], float(found.intercepts[0]), found.objective, found.dual_objective,
        found.gap if positive_semidefinite else np.nan, found.iterations, found.converged,
    )  # fmt: skip

"""SVC: kernel support vector classification, one-vs-one and one-vs-rest."""

from numbers import Integral, Real
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval, StrOptions, fit_context
from widemargin._base.validation import validate_kernel_training
from widemargin.kernels.parameters import KernelParameters, kernel_constraints
from widemargin.svm.kernel_classifier import KernelClassifierMixin
from widemargin.svm.training import TRAINING_CONSTRAINTS, fit_binary_problems, prepare_training


@shared_docs
class SVC(KernelClassifierMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""C-support vector classification with a certificate of optimality.

    A drop-in replacement for :class:`sklearn.svm.SVC` (without ``probability``) that reports the
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

    Attributes
    ----------
    <<classes_>>

    <<class_weight_>>

    <<class_margin_>>

    <<dual_coef_>>

    <<support_attributes>>

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
        **TRAINING_CONSTRAINTS,
        "decision_function_shape": [StrOptions({"ovo", "ovr"})],
        "break_ties": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
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
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multi_class = multi_class
        self.shrinking = shrinking
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
        check_decision_function_shape(self.multi_class, self.decision_function_shape)
        X, y = validate_kernel_training(self, X, y, self.kernel)
        training = prepare_training(
            X,
            y,
            sample_weight,
            KernelParameters.of(self),
            multi_class=self.multi_class,
            class_weight=self.class_weight,
            class_margin=self.class_margin,
        )
        n_problems = len(training.reduction.problems)
        progress = FitProgress.open(self, n_problems, X, y, {"sample_weight": sample_weight})
        solutions, attributes = fit_binary_problems(
            X,
            training,
            self.C,
            solver_options=solver_options(self),
            cache_size=self.cache_size,
            n_jobs=self.n_jobs,
            progress=progress,
        )
        self.__dict__.update(attributes)
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self


def fitted_svc(parameters: dict[str, Any], attributes: dict[str, Any]) -> SVC:
    """Return an `SVC` with constructor parameters and fitted attributes that are known."""
    model = SVC(**parameters)
    model.__dict__.update(attributes)
    return model


def solver_options(estimator: Any) -> dict[str, Any]:
    """Return the arguments of the solver of binary subproblems, as set in an estimator."""
    names = ("tol", "gap_tol", "max_iter", "shrinking")
    return {name: getattr(estimator, name) for name in names}


def check_decision_function_shape(multi_class: str, shape: str) -> None:
    """Raise a ValueError if scores of pairs of classes are requested from one-vs-rest."""
    if multi_class == "ovr" and shape == "ovo":
        raise ValueError(
            "decision_function_shape='ovo' needs a binary subproblem for each pair of classes. "
            "Set multi_class='ovo'."
        )

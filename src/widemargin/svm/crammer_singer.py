"""CrammerSingerSVC: multi-class support vector classification by one problem over all classes."""

import os
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.options import crammer_singer_options as options
from widemargin._base.sklearn_compat import BaseEstimator, Interval, fit_context
from widemargin._base.targets import Targets, encode_targets
from widemargin._base.threads import single_threaded_blas
from widemargin._base.validation import check_magnitude, validate_kernel_training, validate_predict
from widemargin.kernels import Gram, GramCache
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters, kernel_constraints
from widemargin.solvers.multiclass import kernel as kernel_solver
from widemargin.solvers.multiclass import linear as linear_solver
from widemargin.solvers.multiclass.problem import CrammerSingerProblem
from widemargin.solvers.solution import Solution
from widemargin.svm.linear_svc import constant_feature, random_seeds
from widemargin.svm.scores import linear_scores, linear_tie_tolerance, merge_ties
from widemargin.svm.training import (
    TRAINING_CONSTRAINTS,
    common_attributes,
    expansion_attributes,
    set_attributes,
    solve_problems,
)


@dataclass(frozen=True)
class Training(Targets):
    """Validated training data of the joint problem."""

    X: Any
    """All samples as given; of those with index ``samples`` the weight is positive."""
    samples: np.ndarray
    parameters: KernelParameters
    gram: Gram | None
    """Gram matrix of these samples; None with linear functions."""


@shared_docs
class CrammerSingerSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Multi-class support vector classification by one problem over all classes.

    The loss of Crammer and Singer compares the score of the true class with the largest score of
    the other classes, instead of comparing it with each of them: it is the structured SVM with the
    zero-one loss. The scores of all classes are comparable, and the fit reports how far from the
    optimum it stopped:

    .. math::

        \min_{f_1, \ldots, f_K} \tfrac12 \sum_k \|f_k\|^2
        + \sum_i C_i \max_k (m_i 1[k \neq y_i] + f_k(x_i) - f_{y_i}(x_i)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    As in liblinear, an intercept is the weight of a constant feature and is regularized with the
    others. The margin :math:`m_i` is 1 unless `class_margin` is given.

    Parameters
    ----------
    <<finite_C>>

    kernel : str or callable, default='linear'
        Kernel function, as in `SVC`. With 'linear' the solver keeps the weights of the features,
        otherwise kernel values between samples.

    <<degree>>

    <<gamma>>

    <<coef0>>

    <<fit_intercept>>

    <<intercept_scaling>>

    tol : float, default=1e-3
        Tolerance on the violation of a sample's optimality conditions at which the solver stops.

    gap_tol : float, default=None
        If given, stop at this relative duality gap instead of at `tol`. Ignored if the kernel is
        not positive semidefinite.

    cache_size : float, default=200
        Size of the kernel cache in MB.

    <<class_weight>>

    class_margin : dict or 'ldam', default=None
        Margin by which the score of the true class should exceed those of the others, 1 for classes
        that are not named. 'ldam' gives rare classes larger margins (see `ldam_class_margin`).

    verbose : bool, default=False
        Whether to print a line at the end of the fit.

    max_iter : int, default=10000
        Maximum number of passes over the samples, or of batches of samples with a kernel; -1 for no
        limit.

    warm_start : bool, default=False
        Whether to start from the solution of the previous fit, if that had the same classes and
        number of samples. A fit that was stopped by a callback or by `max_iter` is continued in
        this way.

    <<solver_random_state>>

    <<checkpoint>>

    Attributes
    ----------
    <<classes_>>

    <<class_weight_>>

    <<class_margin_>>

    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the features, for ``kernel='linear'``.

    intercept_ : ndarray of shape (n_classes,)
        Intercepts of the classes.

    support_ : ndarray of shape (n_support,)
        Indices of the support vectors, for other kernels.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Support vectors, for other kernels; empty for a precomputed or callable kernel.

    dual_coef_ : ndarray of shape (n_classes, n_support)
        Dual variables of the support vectors, for other kernels.

    objective_ : float
        Objective value.

    dual_gap_ : float
        Relative duality gap: a bound on how far `objective_` is from the optimum, relative to it.
        nan if the kernel is not known to be positive semidefinite ('sigmoid', and matrices that
        are not).

    n_iter_ : int
        Number of passes over the samples, or of batches.

    fit_status_ : int
        0 if the solver converged, 1 otherwise (with a warning).

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    LinearSVC : Linear support vector classification, each class against the rest.
    SVC : Support vector classification with kernels, by pairs of classes.

    References
    ----------
    K. Crammer, Y. Singer: On the algorithmic implementation of multiclass kernel-based vector
    machines. JMLR 2001.

    S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin: A sequential dual method
    for large scale multi-class linear SVMs. KDD 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CrammerSingerSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrammerSingerSVC(kernel="rbf").fit(X, y)
    >>> labels, scores = model.top_two(X[[70]])
    >>> labels
    array([[1, 2]])
    >>> bool(model.dual_gap_ < 1e-6)
    True
    """

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        **kernel_constraints(),
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        **TRAINING_CONSTRAINTS,
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "checkpoint": [None, str, os.PathLike],
    }

    def __init__(
        self,
        *,
        C=1.0,
        kernel="linear",
        degree=3,
        gamma="scale",
        coef0=0.0,
        fit_intercept=True,
        intercept_scaling=1.0,
        tol=1e-3,
        gap_tol=None,
        cache_size=200,
        class_weight=None,
        class_margin=None,
        verbose=False,
        max_iter=10_000,
        warm_start=False,
        random_state=None,
        checkpoint=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.gap_tol = gap_tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.class_margin = class_margin
        self.verbose = verbose
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags, precomputed = super().__sklearn_tags__(), self.kernel == "precomputed"
        tags.input_tags.pairwise, tags.input_tags.sparse = precomputed, not precomputed
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        training = self._prepare(X, y, sample_weight)
        metadata = {"sample_weight": sample_weight}
        progress = FitProgress(self, 1, training.X, y, metadata, self.checkpoint)
        solver = linear_solver if training.gram is None else kernel_solver
        solve, attributes = partial(self._solve, training), partial(self._attributes, training)
        solutions = solve_problems(solve, range(1), 1, progress, attributes, solver.solution_at)
        set_attributes(self, attributes(solutions))
        self._dual = solutions[0].dual if self.warm_start else None
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores of the classes. With two classes, the score of the second one minus that of the
            first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        At the optimum, the classes that a training sample on the margin is compared with have equal
        scores. Of classes whose scores agree up to rounding the first one is
        predicted; `decision_function` returns the same score for them.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        <<returns_labels>>
        """
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def top_two(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict the two best classes of every sample, with their scores.

        The difference of the scores measures the confidence of the prediction: it is at least the
        margin for training samples without loss. Ties are broken as in `predict`.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        labels : ndarray of shape (n_samples, 2)
            The best class and the second best.

        scores : ndarray of shape (n_samples, 2)
            Their scores.
        """
        scores = self._scores(X)
        samples = np.arange(len(scores))
        best = scores.argmax(axis=1)
        first = scores[samples, best]
        scores[samples, best] = -np.inf
        second = scores.argmax(axis=1)
        labels = self.classes_[np.column_stack([best, second])]
        return labels, np.column_stack([first, scores[samples, second]])

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Training:
        X, y = validate_kernel_training(self, X, y, self.kernel)
        retained, targets = encode_targets(y, sample_weight, self.class_weight, self.class_margin)
        samples, gram = np.arange(len(y))[retained], None
        parameters = KernelParameters.of(self).resolve(X, retained, targets.weight)
        if self.kernel == "linear":
            check_magnitude(X)
        else:
            gram = GramCache(parameters.gram(X, samples), int(self.cache_size * 2**20)).of()
            gram.use_float64()
        return Training(**vars(targets), X=X, samples=samples, parameters=parameters, gram=gram)

    @np.errstate(over="ignore", invalid="ignore")  # an overflow shows in the duality gap
    def _solve(self, training: Training, _: int, **control: Any) -> Solution:
        costs, margins = training.costs(self.C), training.margins()
        n_classes, bias = len(training.classes), constant_feature(self)
        problem = CrammerSingerProblem(training.codes, costs, n_classes, margins, bias)
        dual = getattr(self, "_dual", None)
        same = np.array_equal(getattr(self, "classes_", ()), training.classes)
        fits = self.warm_start and dual is not None and same and len(dual) == len(training.samples)
        arguments = {
            "tol": self.tol,
            "gap_tol": self.gap_tol,
            "max_iter": self.max_iter,
            "seed": int(random_seeds(self.random_state)),
            "dual": dual if fits else None,
            **control,
        }
        if training.gram is not None:
            return kernel_solver.solve_kernel(training.gram, problem, **arguments)
        X, samples = training.X, training.samples
        X = X if len(samples) == X.shape[0] else X[samples]
        with single_threaded_blas():  # once for all products
            return linear_solver.solve_linear(X, problem, **arguments)

    def _attributes(self, training: Training, solutions: list) -> dict[str, Any]:
        """Return fitted attributes by name; without a solution yet, all functions are 0."""
        (solution,) = solutions
        linear, n_classes = training.gram is None, len(training.classes)
        if solution is None:
            dual = np.zeros((len(training.samples), n_classes))
            weights = np.zeros((training.X.shape[1] + 1, n_classes)) if linear else None
            solution = Solution(dual, 0.0, np.nan, np.nan, np.nan, 0, False, weights)
        attributes = {
            **common_attributes(training, [solution]),
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "n_iter_": solution.iterations,
            "fit_status_": int(not solution.converged),
        }
        bias = constant_feature(self)
        if solution.weights is not None:
            coef, intercept = np.ascontiguousarray(solution.weights[:-1].T), solution.weights[-1]
            # No kernel: callbacks evaluate copies that may still have one from an earlier fit.
            return {**attributes, "coef_": coef, "intercept_": bias * intercept, "_expansion": None}
        # The variables of a sample sum to zero: a single one that is not zero is a rounding error.
        positions = np.flatnonzero(np.count_nonzero(solution.dual, axis=1) > 1)
        functions = expansion_attributes(
            training.X,
            training.parameters,
            training.samples[positions].astype(np.int32),
            np.ascontiguousarray(solution.dual[positions].T),
            bias**2 * solution.dual.sum(axis=0),
        )
        return {**attributes, **functions, "_tolerance": _kernel_tie_tolerance(training, solution)}

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of all classes, with ties merged."""
        check_is_fitted(self)
        expansion = self._expansion
        if expansion is None or not callable(expansion.parameters.kernel):
            X = validate_predict(self, X)
        if expansion is None:
            scores = linear_scores(X, self.coef_) + self.intercept_
        else:
            scores = expansion.evaluate(X)
        return merge_ties(scores, self._tie_tolerance(X))

    def _tie_tolerance(self, X: Any) -> float | np.ndarray:
        """Difference of scores up to which classes are tied, for validated samples."""
        if self._expansion is not None:
            return self._tolerance
        return linear_tie_tolerance(X, self.coef_, self.intercept_)


def joint_expansion(estimator: CrammerSingerSVC) -> KernelExpansion | None:
    """Return the functions of a fitted estimator; None for linear or pairwise kernels."""
    expansion = estimator._expansion
    return None if expansion is None or expansion.parameters.is_pairwise else expansion


def _kernel_tie_tolerance(training: Training, solution: Solution) -> float:
    """Return the difference of scores up to which classes are tied."""
    label_dual = solution.dual[np.arange(len(training.codes)), training.codes]
    gain = float(np.sum(training.margins() * label_dual))
    # Of all functions together: the dual objective is gain - norm^2 / 2.
    norm = np.sqrt(max(0.0, 2.0 * (gain - np.nan_to_num(solution.dual_objective))))
    radius = np.sqrt(np.abs(training.gram.diagonal()).max(initial=0.0))  # type: ignore[union-attr]
    return options.tie_tolerance * (float(radius) * norm)

"""TransductiveSVC: transductive support vector machine (Joachims, 1999)."""

import os
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin._base.checkpoint import CheckpointKeeper
from widemargin._base.docs import shared_docs
from widemargin._base.options import checkpoint_options, transductive_options
from widemargin._base.sklearn_compat import BaseEstimator, Interval, StrOptions
from widemargin.semisupervised.kernel_self_training import BinaryKernelModelMixin, WarmStartedSVM
from widemargin.semisupervised.self_training import RoundModel
from widemargin.semisupervised.targets import (
    PartialLabels,
    PartialLabelsMixin,
    fill_missing_labels,
)
from widemargin.solvers import Solution


@shared_docs
class TransductiveSVC(BinaryKernelModelMixin, PartialLabelsMixin, ClassifierMixin, BaseEstimator):
    r"""Transductive support vector machine (TSVM, a semi-supervised SVM).

    It chooses labels :math:`y^*` for the unlabeled samples U such that the margin is wide:

    .. math::

        \min_{f, b, y^*} \tfrac12 \|f\|^2
        + C \sum_{i \in L} \max(0, 1 - y_i (f(x_i) + b))
        + C^* \sum_{j \in U} \max(0, 1 - y^*_j (f(x_j) + b))

    with a given fraction of positive labels in :math:`y^*`. The problem is not convex. Joachims'
    algorithm starts with the labels predicted by an SVM of the labeled samples and a small
    :math:`C^*`, switches the labels of pairs of samples while that decreases the objective, and
    doubles :math:`C^*` until it has its final value.

    Parameters
    ----------
    C : float, default=1.0
        Regularization parameter of the labeled samples. The strength of the regularization is
        inversely proportional to C. Must be strictly positive.

    C_unlabeled : float, default=None
        Regularization parameter of the unlabeled samples. If None, it is `C`.

    positive_share : float, default=None
        Fraction of the unlabeled samples that get the label ``classes_[1]``. If None, it is the
        fraction among the labeled samples.

    switch : {'multi', 'single'}, default='multi'
        Whether to switch all pairs of labels that decrease the objective before training again, or
        one pair at a time.

    <<semisupervised_kernel>>

    <<semisupervised_solver>>

    checkpoint : str or path-like, default=None
        File to which the labels and the solution are saved between two trainings, at most every ten
        seconds. A fit with the same data, parameters and version resumes from it, with the same
        result as one that was not interrupted; `cache_size` may differ.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Class labels.

    transduction_ : ndarray of shape (n_samples,) or (n_unlabeled,)
        Labels of all samples in `X`, the given ones and those chosen for unlabeled samples. If
        `X_unlabeled` was passed, the labels of its samples only.

    <<binary_kernel_attributes>>

    n_solves_ : int
        Number of optimization problems that were solved.

    n_iter_ : int
        Number of iterations of the solver in total.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    PreferenceSVC : Semi-supervised kernel SVM with precision and recall constraints.

    References
    ----------
    T. Joachims, Transductive Inference for Text Classification using Support Vector Machines,
    ICML 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from widemargin import TransductiveSVC
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> y = np.full(200, -1)
    >>> for label in (0, 1):
    ...     y[np.flatnonzero(truth == label)[:5]] = label
    >>> model = TransductiveSVC(C=10.0, gamma=2.0).fit(X, y)
    >>> bool(np.mean(model.transduction_ == truth) > 0.9)
    True
    """

    _parameter_constraints: dict = {
        **BinaryKernelModelMixin._parameter_constraints,
        "C_unlabeled": [Interval(Real, 0.0, np.inf, closed="neither"), None],
        "positive_share": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "switch": [StrOptions({"multi", "single"})],
        "checkpoint": [str, os.PathLike, None],
    }

    def __init__(
        self,
        *,
        C=1.0,
        C_unlabeled=None,
        positive_share=None,
        switch="multi",
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        cache_size=1000,
        max_iter=-1,
        checkpoint=None,
    ):
        self.C = C
        self.C_unlabeled = C_unlabeled
        self.positive_share = positive_share
        self.switch = switch
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.checkpoint = checkpoint

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        return self._score(self._validate_samples(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        <<returns_labels>>
        """
        positive = self.decision_function(X) > 0.0
        return self.classes_[positive.astype(np.intp)]

    def _fit(self, X: Any, y: ArrayLike, X_unlabeled: Any, sample_weight: ArrayLike | None) -> None:
        data = self._validate_fit(X, y, X_unlabeled, sample_weight)
        search = _LabelSwitching(self, data)
        self._set_solution(search.svm, search.run().model)
        self.classes_ = data.labels
        chosen = self.classes_[(search.labels > 0.0).astype(np.intp)]
        if X_unlabeled is None:
            self.transduction_ = np.array(column_or_1d(fill_missing_labels(y)[0]))
            self.transduction_[data.is_unlabeled] = chosen
        else:
            self.transduction_ = chosen
        self.n_solves_, self.n_iter_ = search.n_solves, max(1, search.svm.iterations)
        search.svm.warn_if_not_converged(stacklevel=5)


# Parameters that a checkpoint does not depend on.
_NOT_COMPARED = ("checkpoint", "cache_size")


class _LabelSwitching:
    """Joachims' algorithm, with labels 1 and -1; labeled samples come first."""

    def __init__(self, estimator: TransductiveSVC, data: PartialLabels) -> None:
        self.estimator, self.n_labeled, self.n_solves = estimator, len(data.y), 0
        self.svm = WarmStartedSVM(estimator, data)
        self.sign = np.ones(self.n_labeled + data.n_unlabeled)
        self.sign[: self.n_labeled][~data.positive] = -1.0
        self.labels = self.sign[self.n_labeled :]
        self.cost = estimator.C * (np.ones(len(self.sign)) if data.weight is None else data.weight)
        self.final = estimator.C_unlabeled or estimator.C
        self.costs = np.zeros(2)
        self.seen: list[np.ndarray] = []
        parameters = {k: v for k, v in estimator.get_params().items() if k not in _NOT_COMPARED}
        self.keeper = CheckpointKeeper(
            estimator.checkpoint, "TransductiveSVC", parameters, vars(data),
            seconds_between=checkpoint_options.seconds_between_checkpoints,
        )  # fmt: skip

    def run(self) -> RoundModel:
        """Choose the labels of the unlabeled samples; return the final solution."""
        saved = self.keeper.load(self._expected)
        if saved is not None:
            self._resume(saved)
        else:
            solved = self._solve(self.costs)
            if len(self.labels) == 0:
                return solved
            self._start(solved.scores[self.n_labeled :])
        while True:
            solved = self._switch_until_optimal()
            if not (self.costs < self.final).any():
                return solved
            self.costs, self.seen = np.minimum(2.0 * self.costs, self.final), []

    def _start(self, scores: np.ndarray) -> None:
        """Set the first labels, those of the highest scores, and the first costs."""
        n_positive, k = self._positive_count(), len(self.labels)
        self.labels[:] = -1.0
        self.labels[np.argsort(-scores, kind="stable")[:n_positive]] = 1.0
        negative_cost = min(transductive_options.first_cost, self.final)
        positive_cost = min(negative_cost * max(1, n_positive) / max(1, k - n_positive), self.final)
        self.costs = np.array([negative_cost, positive_cost])

    def _state(self) -> dict[str, Any]:
        """Return what the next training depends on, for a checkpoint."""
        svm = self.svm
        seen = np.array(self.seen, np.int8).reshape(-1, len(self.labels))
        failed = {str(k): vars(solution) for k, solution in enumerate(svm.not_converged)}
        labeling = {
            "labels": self.labels,
            "costs": self.costs,
            "seen": seen,
            "n_solves": self.n_solves,
        }
        solver = {"dual": svm.dual, "values": svm.values, "iterations": svm.iterations}
        return {**labeling, **solver, "not_converged": failed}

    def _expected(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return a state to check a saved one with, see `checkpoint.check_state`."""
        vector = np.zeros(len(self.sign))
        seen = np.full(saved["seen"].shape, -1, np.int8)
        solution = vars(Solution(vector, 0.0, np.inf, np.inf, np.nan, 0, False))
        return {
            "labels": self.labels, "costs": self.costs, "seen": seen, "n_solves": 0,
            "dual": vector, "values": vector, "iterations": 0,
            "not_converged": dict.fromkeys(saved["not_converged"], solution),
        }  # fmt: skip

    def _resume(self, saved: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.labels[:], self.costs = saved["labels"], saved["costs"]
        self.seen, self.n_solves = list(saved["seen"].astype(float)), saved["n_solves"]
        self.svm.dual, self.svm.values = saved["dual"], saved["values"]
        self.svm.iterations = saved["iterations"]
        self.svm.not_converged = [
            Solution(**solution) for solution in saved["not_converged"].values()
        ]

    def _positive_count(self) -> int:
        n, k, share = self.n_labeled, len(self.labels), self.estimator.positive_share
        share = np.average(self.sign[:n] > 0.0, weights=self.cost[:n]) if share is None else share
        return int(np.clip(round(k * share), min(1, k - 1), max(1, k - 1)))

    def _switch_until_optimal(self) -> RoundModel:
        """Solve and switch labels until no pair of labels decreases the objective."""
        while True:
            self.keeper.save_if_due(self._state)
            solved = self._solve(self.costs)
            first, second = self._pairs_to_switch(solved)
            # The objective decreases with every switch, unless the solver's tolerance hides it.
            if not len(first) or any(np.array_equal(self.labels, labels) for labels in self.seen):
                return solved
            self.seen.append(self.labels.copy())
            self.labels[first], self.labels[second] = -1.0, 1.0
            self.svm.swap_labels(self.n_labeled + first, self.n_labeled + second)

    def _pairs_to_switch(self, solved: RoundModel) -> tuple[np.ndarray, np.ndarray]:
        """Return positive and negative samples with slacks that sum to more than 2."""
        slack = np.maximum(0.0, 1.0 - self.labels * solved.scores[self.n_labeled :])
        sides = []
        for label in (1.0, -1.0):
            samples = np.flatnonzero((self.labels == label) & (slack > 0.0))
            sides.append(samples[np.argsort(-slack[samples], kind="stable")])
        m = min(len(samples) for samples in sides)
        first, second = (samples[:m] for samples in sides)
        # Rounding must not switch the same pair forever.
        gains = slack[first] + slack[second] > 2.0 + 2.0 * self.estimator.tol
        count = int(gains.sum() if self.estimator.switch == "multi" else gains[:1].sum())
        return first[:count], second[:count]

    def _solve(self, costs: np.ndarray) -> RoundModel:
        """Solve with these costs of unlabeled samples with negative and with positive labels."""
        self.n_solves += 1
        self.cost[self.n_labeled :] = costs[(self.labels > 0.0).astype(np.intp)]
        return self.svm.train(self.sign, self.cost)

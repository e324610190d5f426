"""PreferenceSVC: a semi-supervised kernel SVM with precision and recall constraints."""

from copy import copy
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.targets import class_weights
from widemargin.semisupervised.base import PreferenceBase
from widemargin.semisupervised.kernel_self_training import BinaryKernelModelMixin, WarmStartedSVM
from widemargin.semisupervised.self_training import Learner, RoundModel
from widemargin.semisupervised.split import NO_SAMPLES, LabelSplit
from widemargin.semisupervised.targets import PartialLabels
from widemargin.solvers import Solution
from widemargin.svm.svc import SVC


@shared_docs
class PreferenceSVC(BinaryKernelModelMixin, PreferenceBase):
    r"""Semi-supervised kernel SVM with precision and recall constraints.

    In every round, the support vector machine

    .. math::

        \min_{f, b} \tfrac12 \|f\|^2 + C \sum_{i \in L \cup S} \max(0, 1 - y_i (f(x_i) + b))

    is trained on labeled samples L and on the unlabeled samples S that have a pseudo-label,
    starting from the solution of the round before. It is evaluated on the validation samples, which
    are the other labeled ones. Unlabeled samples with scores above a threshold that meets the
    constraints there get a positive pseudo-label, those below the mean score of the negative
    validation samples a negative one, until the pseudo-labels do not change. The best model of all
    rounds is used with the threshold :math:`\delta` that solves

    .. math::

        \max_\delta \; F_1(\delta) \quad \text{subject to} \quad
        \mathrm{precision}(\delta) \ge p, \; \mathrm{recall}(\delta) \ge r

    on the validation samples. Without constraints it maximizes F1.

    Read more in :doc:`/preference`.

    Parameters
    ----------
    <<preference_parameters>>

    C : float, default=1.0
        Regularization parameter. The strength of the regularization is inversely proportional to
        C. It is the same for labeled and pseudo-labeled samples. Must be strictly positive.

    <<semisupervised_kernel>>

    class_weight : dict, 'balanced' or 'effective', default=None
        Factors that multiply `C` for the samples of each class, as in `SVC`. The weights 'balanced'
        and 'effective' are computed from the labeled training samples.

    <<semisupervised_solver>>

    random_state : int, RandomState instance or None, default=None
        Determines the split of the labeled samples.

    Attributes
    ----------
    <<preference_attributes>>

    <<binary_kernel_attributes>>

    n_solver_iterations_ : int
        Number of iterations of the solver in all rounds.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    PreferenceClassifier : The same for any classifier.
    TransductiveSVC : Labels unlabeled samples such that the margin is wide.

    Notes
    -----
    The score of a sample is ``sum_j dual_coef_[0, j] * k(support_vectors_[j], x) + intercept_[0]``.
    It is large for the positive class, whichever of `classes_` that is.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import PreferenceSVC
    >>> X, y = make_classification(600, weights=[0.8], flip_y=0.1, random_state=0)
    >>> y[200:400] = -1
    >>> model = PreferenceSVC(precision=0.7, random_state=0).fit(X[:400], y[:400])
    >>> bool(y[400:][model.predict(X[400:]) == 1].mean() > 0.7)
    True
    """

    _parameter_constraints: dict = {
        **PreferenceBase._parameter_constraints,
        **BinaryKernelModelMixin._parameter_constraints,
        "class_weight": SVC._parameter_constraints["class_weight"],
    }

    def __init__(
        self,
        *,
        precision=None,
        recall=None,
        false_positive_rate=None,
        beta=1.0,
        cost_ratio=None,
        margin=0.9,
        confidence=None,
        positive_share=None,
        split="cross",
        update="incremental",
        threshold="tuned",
        max_rounds=None,
        min_new=1,
        patience=10,
        time_limit=None,
        pos_label=None,
        checkpoint=None,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        class_weight=None,
        tol=1e-3,
        cache_size=1000,
        max_iter=-1,
        random_state=None,
    ):
        self.precision = precision
        self.recall = recall
        self.false_positive_rate = false_positive_rate
        self.beta = beta
        self.cost_ratio = cost_ratio
        self.margin = margin
        self.confidence = confidence
        self.positive_share = positive_share
        self.split = split
        self.update = update
        self.threshold = threshold
        self.max_rounds = max_rounds
        self.min_new = min_new
        self.patience = patience
        self.time_limit = time_limit
        self.pos_label = pos_label
        self.checkpoint = checkpoint
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.random_state = random_state

    def _learner(self, data: PartialLabels, split: LabelSplit) -> Learner:
        return _KernelLearner(self, data, split)

    def _set_model(self, learner: Any, model: Any) -> None:
        self._set_solution(learner.svm, model)
        self.n_solver_iterations_ = learner.iterations
        learner.svm.warn_if_not_converged(stacklevel=6)


class _KernelLearner(Learner):
    """Trains the SVM of each round; labeled samples come first, then unlabeled ones."""

    def __init__(self, estimator: PreferenceSVC, data: PartialLabels, split: LabelSplit) -> None:
        super().__init__(estimator, data, split)
        self.svm = WarmStartedSVM(estimator, data, split)
        train = split.train
        weight = None if data.weight is None else data.weight[train]
        weights = class_weights(estimator.class_weight, data.labels, data.y[train], weight)
        self.class_costs = estimator.C * weights
        self.weight = np.zeros(len(data.y))
        self.weight[train] = 1.0 if weight is None else weight
        # They share the kernel cache and the list of solutions that did not converge.
        self.fold_svms = [copy(self.svm) for _ in split.folds]

    @property
    def svms(self) -> dict[str, WarmStartedSVM]:
        """The SVM of all training samples, and those that leave out a fold, by name."""
        names = ("svm", *(f"fold {k}" for k in range(len(self.fold_svms))))
        return dict(zip(names, (self.svm, *self.fold_svms), strict=True))

    @property
    def iterations(self) -> int:
        """Number of iterations of the solver so far."""
        return sum(svm.iterations for svm in self.svms.values())

    def train(self, pseudo_labels: np.ndarray, fold_labels: np.ndarray) -> RoundModel:
        trained = self._solve(self.svm, pseudo_labels, NO_SAMPLES)
        scores, fold_scores = trained.scores.copy(), np.empty(fold_labels.shape)
        for k, (svm, fold) in enumerate(zip(self.fold_svms, self.split.folds, strict=True)):
            without = self._solve(svm, fold_labels[k], fold)
            scores[fold], fold_scores[k] = without.scores[fold], without.scores[len(self.weight) :]
        return RoundModel(trained.model, scores, fold_scores)

    def _solve(
        self, svm: WarmStartedSVM, pseudo_labels: np.ndarray, left_out: np.ndarray
    ) -> RoundModel:
        positive = np.append(self.data.positive, pseudo_labels >= 0)
        weight = np.append(self.weight, pseudo_labels != 0)
        cost = weight * self.class_costs[positive.astype(np.intp)]
        cost[left_out] = 0.0
        return svm.train(np.where(positive, 1.0, -1.0), cost)

    def state(self, best: RoundModel) -> dict[str, Any]:
        names = ("dual", "values", "iterations")
        svms = {key: {name: getattr(svm, name) for name in names} for key, svm in self.svms.items()}
        return {"svms": svms, "solution": vars(best.model), "scores": best.scores}

    def expected(self) -> dict[str, Any]:
        vector = np.zeros(self.svm.X.shape[0])
        solution = Solution(vector, 0.0, np.inf, np.inf, np.nan, 0, False)
        svm = {"dual": vector, "values": vector, "iterations": 0}
        svms = dict.fromkeys(self.svms, svm)
        return {"svms": svms, "solution": vars(solution), "scores": vector}

    def resume(
        self, state: dict[str, Any], pseudo_labels: np.ndarray, fold_labels: np.ndarray
    ) -> RoundModel:
        for name, svm in self.svms.items():
            vars(svm).update(state["svms"][name])
        return RoundModel(Solution(**state["solution"]), state["scores"])

"""PreferenceSVC: a demand met by a kernel machine with few labels and many rows without."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin._base.targets import class_weights
from widemargin._base.validation import validate_predict
from widemargin.kernels import KERNEL_NAMES
from widemargin.semisupervised.base import PreferenceBase
from widemargin.semisupervised.kernel_self_training import (
    KernelRounds,
    Machine,
    kernel_over,
    machine_of,
)
from widemargin.solvers import Solution
from widemargin.svm.svc import SVC

_OF_SVC = ("C", "kernel", "degree", "gamma", "coef0", "tol", "cache_size", "max_iter")


class PreferenceSVC(PreferenceBase):
    r"""A demand such as "precision at least 0.9", met by a kernel machine.

    Rows that have no labels help. In every round the machine

    .. math::

        \min_{f, b} \tfrac12 \|f\|^2 + C \sum_{i \in L \cup S} \max(0, 1 - y_i (f(x_i) + b))

    is trained on labelled rows L and on the rows S that have a soft label by now, from where it
    stood in the round before, and judged on labelled rows kept for that. Unlabelled rows that score
    above a threshold which meets the demand there become positive, those below the mean of the
    negative rows negative, until no row is added. The best of these machines is kept, with the
    threshold that solves

    .. math::

        \max_\delta \; F_1(\delta) \quad \text{subject to} \quad
        \mathrm{precision}(\delta) \ge p, \; \mathrm{recall}(\delta) \ge r

    on the rows that judged it. Without a demand it is the one with the greatest F1.

    Parameters
    ----------
    precision : float, default=None
        Least share of accepted rows that are positive.

    recall : float, default=None
        Least share of positive rows that are accepted.

    false_positive_rate : float, default=None
        Greatest share of negative rows that are accepted.

    beta : float, default=1.0
        F-beta is maximised within the demands.

    cost_ratio : float, default=None
        What accepting a negative row costs in units of leaving out a positive one: that cost is
        minimised in place of F-beta.

    confidence : float, default=None
        The probability with which demands shall hold on new rows. Takes a third of the labels to
        make sure of, or half where there is one round only: without unlabelled rows or with
        ``max_rounds=1``. `promise_` says whether it can be given.

    split : {'part', 'full'}, default='part'
        Whether half of the labelled rows train and the others judge, or all do both.

    update : {'inc', 'rec'}, default='inc'
        Whether labels of unlabelled rows stay once given, or are given anew in every round.

    threshold : {'refined', 'adjusted', 'zero'}, default='refined'
        The final threshold: the best by the demand, the upper one of the kept round, or 0. With
        'zero' nothing is adjusted in the rounds either: unlabelled rows that score above 0 become
        positive. With a `confidence` it is the one that `promise_` is about.

    max_rounds : int, default=None
        Most rounds.

    min_new : int, default=1
        Stop when fewer rows than this get a label in a round.

    pos_label : label, default=None
        The positive class; the second of `classes_` when None.

    checkpoint : str or path-like, default=None
        File to which the rounds so far are written after each of them. A fit that finds it, for the
        same data and parameters, goes on from there.

    C : float, default=1.0
        Cost of a unit of slack; rows with soft labels cost the same.

    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, default='rbf'
        As in `SVC`.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the kernel; 'scale' is computed from all rows, unlabelled ones too.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    class_weight : dict, 'balanced' or 'effective', default=None
        Multiplies `C` by class, as in `SVC`; computed from the labelled rows that train.

    tol : float, default=1e-3
        Largest violation of the optimality conditions at which a round's training stops.

    cache_size : float, default=1000
        Memory for kernel values in MB.

    max_iter : int, default=-1
        Most solver iterations of a round, -1 for no limit.

    random_state : int, RandomState instance or None, default=None
        Splits the labelled rows.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels.

    pos_label_ : label
        The positive one.

    machine_ : SVC
        The machine that was kept; positive for its class 1.

    threshold_ : float
        Rows whose score is greater are positive.

    promise_ : Promise or None
        With a `confidence`: whether the demand is ``kept`` on new rows with that probability, and
        what would have been ``possible``.

    history_ : dict of ndarray
        By round: rows that got another label then (``added``), soft labels trained on
        (``positive``, ``negative``), thresholds (``upper``, ``lower``), ``precision``, ``recall``
        and ``f1`` at 0 on the judging rows, what is maximised (``value``) where the machine would
        be used (``used_at``), and whether it was the best so far (``kept``).

    n_iter_ : int
        Rounds.

    soft_labels_ : ndarray of shape (n_unlabeled,)
        The last labels of the unlabelled rows: 1, -1, or 0 for none.

    n_solver_iterations_ : int
        Iterations of the solver over all rounds.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X has names.

    See Also
    --------
    PreferenceClassifier : The same over any classifier.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import PreferenceSVC
    >>> X, y = make_classification(600, weights=[0.8], flip_y=0.1, random_state=0)
    >>> y[200:400] = -1
    >>> model = PreferenceSVC(precision=0.9, random_state=0)
    >>> model.fit(X[:400], y[:400]).predict(X[400:405])
    array([0, 0, 1, 0, 0])
    """

    _parameter_constraints: dict = {
        **PreferenceBase._parameter_constraints,
        **{name: SVC._parameter_constraints[name] for name in (*_OF_SVC, "class_weight")},
        "C": [Interval(Real, 0.0, np.inf, closed="neither")],
        "kernel": [StrOptions(set(KERNEL_NAMES))],
    }

    def __init__(
        self,
        *,
        precision=None,
        recall=None,
        false_positive_rate=None,
        beta=1.0,
        cost_ratio=None,
        confidence=None,
        split="part",
        update="inc",
        threshold="refined",
        max_rounds=None,
        min_new=1,
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
        self.confidence = confidence
        self.split = split
        self.update = update
        self.threshold = threshold
        self.max_rounds = max_rounds
        self.min_new = min_new
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

    def _learner(self, given, parts):
        return _Learner(self, given, parts)

    def _keep(self, learner, best):
        parameters = {name: getattr(self, name) for name in _OF_SVC}
        svc = SVC(**parameters)
        self.machine_ = machine_of(svc, learner.X, learner.gamma, best.machine.solution)
        self.n_solver_iterations_ = learner.rounds.iterations
        learner.rounds.tell(self.max_iter, stacklevel=5)

    def _raw_scores(self, X):
        return self.machine_.decision_function(validate_predict(self, X))


@dataclass(frozen=True)
class _Trained:
    machine: Machine
    steering: np.ndarray
    certifying: np.ndarray | None
    unlabeled: np.ndarray


class _Learner:
    """Trains the machine of a round; labelled rows come first, then unlabelled ones."""

    def __init__(self, model, given, parts):
        self.X, self.gamma, gram = kernel_over(model, given, *parts[2:])
        options = {"tol": model.tol, "max_iter": model.max_iter}
        judges = np.unique(np.concatenate(parts[1:]))
        self.rounds = KernelRounds(gram, int(model.cache_size * 2**20), options, judges)
        self.n_labeled, self.parts, own = len(given.y), parts, parts[0]
        weight = np.ones(len(given.y)) if given.weight is None else given.weight
        sides = np.array([given.negative, given.positive])
        by_side = class_weights(
            model.class_weight,
            sides,
            given.y[own],
            None if given.weight is None else weight[own],
        )
        self.cost_of_side = model.C * by_side
        self.sign = np.ones(self.X.shape[0])
        self.sign[: self.n_labeled] = np.where(given.truth, 1.0, -1.0)
        self.weight = np.zeros(self.X.shape[0])
        self.weight[own] = weight[own]

    def train(self, soft):
        n = self.n_labeled
        sign, weight = self.sign.copy(), self.weight.copy()
        sign[n:], weight[n:] = np.where(soft >= 0, 1.0, -1.0), soft != 0
        cost = weight * self.cost_of_side[(sign > 0.0).astype(np.intp)]
        return self._trained(self.rounds.train(sign, cost))

    def numbers(self, best):
        """Where the solver stands, and the best machine."""
        found = best.machine.solution
        return {
            "dual": self.rounds.dual,
            "values": self.rounds.values,
            "iterations": self.rounds.iterations,
            "best": {**vars(found), "scores": best.machine.scores},
        }

    def resume(self, numbers, best_soft):
        for name in ("dual", "values", "iterations"):
            setattr(self.rounds, name, numbers[name])
        found = dict(numbers["best"])
        scores = found.pop("scores")
        return self._trained(Machine(Solution(**found), scores))

    def _trained(self, machine):
        scores = machine.scores
        certifying = scores[self.parts[2]] if len(self.parts) > 2 else None
        return _Trained(machine, scores[self.parts[1]], certifying, scores[self.n_labeled :])

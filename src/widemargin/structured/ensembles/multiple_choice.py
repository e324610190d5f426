"""MultipleChoiceSSVM and DiverseMultipleChoiceSSVM: members that share out the samples."""

from itertools import cycle
from numbers import Integral, Real

import numpy as np
from sklearn.cluster import KMeans

from widemargin._base.sklearn_compat import Interval
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe
from widemargin.solvers.structured.problem import OracleSubset
from widemargin.structured.ensembles.base import StructuredEnsemble


class MultipleChoiceSSVM(StructuredEnsemble):
    r"""Structured support vector machines each of which answers for some of the samples (MCL).

    A sample counts only for the member that does best on it:

    .. math::

        \min_W \sum_m \tfrac12 \|w_m\|^2 + C \sum_i \min_m H_i(w_m)

    with the slacks :math:`H_i` of `FrankWolfeSSVM`. Training and sharing out alternate, from a
    k-means clustering of the samples' joint features, until no sample changes hands. A member that
    is left without samples gets one that all members do badly on.

    Parameters
    ----------
    model : StructuredModel
        What the score is made of. It is initialised by `fit`.
    n_estimators : int, default=6
        Number of members.
    C : float, default=1.0
        Cost of a unit of slack.
    n_rounds : int, default=10
        Most rounds of training and sharing out.
    max_iter : int, default=100
        Most passes over its samples for a member in a round.
    tol : float, default=0.01
        Relative duality gap at which the training of a member stops.
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed; None is a fixed one too.
    verbose : bool, default=False
        Print how the fit gets on.

    Attributes
    ----------
    W : ndarray of shape (n_estimators, size_joint_feature)
        Weights of the members.
    assignment_ : ndarray of shape (n_samples,)
        The member that each training sample counts for.
    objective_ : float
        Value of the objective.
    n_iter_ : int
        Rounds.
    history_ : dict of ndarray
        ``iteration`` and ``objective``.
    reranker_ : object or None
        What `fit_reranker` has learnt.

    See Also
    --------
    CoulombSSVM : Members that differ even if there is a single sample.
    DiverseMultipleChoiceSSVM : Members are also paid for differing.

    References
    ----------
    A. Guzman-Rivera, D. Batra, P. Kohli: Multiple choice learning: learning to produce multiple
    structured outputs. NIPS 2012.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, MultipleChoiceSSVM
    >>> X, Y = load_letters(return_X_y=True)
    >>> ensemble = MultipleChoiceSSVM(ChainCRF(), 3, C=0.1, n_rounds=3, tol=0.1).fit(X[::4], Y[::4])
    >>> bool(ensemble.pick_best_score(X[1::4], Y[1::4]) > ensemble.score(X[1::4], Y[1::4]))
    True
    """

    _parameter_constraints: dict = {
        **StructuredEnsemble._parameter_constraints,
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        model,
        n_estimators=6,
        C=1.0,
        *,
        n_rounds=10,
        max_iter=100,
        tol=0.01,
        n_jobs=None,
        random_state=None,
        verbose=False,
    ):
        self.model = model
        self.n_estimators = n_estimators
        self.C = C
        self.n_rounds = n_rounds
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _train(self, oracle, cost, random, report):
        member, slacks, W, curve = self._clusters(oracle, random), None, None, []
        converged = np.ones(self.n_estimators, dtype=bool)
        for _ in range(self.n_rounds):
            groups = _groups(member, slacks, self.n_estimators, random)
            seeds = random.integers(2**31, size=self.n_estimators)

            def trained(m, gains=None, groups=groups, seeds=seeds):
                samples = groups[m]
                extra = None if gains is None else [gains[i] for i in samples]
                found = solve_frank_wolfe(
                    OracleSubset(oracle, samples, extra), cost[samples], tol=self.tol,
                    max_iter=self.max_iter, seed=int(seeds[m]),
                )  # fmt: skip
                converged[m] = found.converged
                return found.w

            W = self._retrained(oracle, W, trained)
            slacks = np.array(for_each(lambda w: oracle.violations(w).slacks, W, oracle.threads))
            curve.append(0.5 * float(np.sum(W**2)) + float(np.sum(cost * slacks.min(axis=0))))
            before, member = member, slacks.argmin(axis=0)
            stop = report(round=len(curve), objective=curve[-1])
            if stop or (not self._paid() and len(curve) > 1 and (member == before).all()):
                break
        self._tell(converged, self.max_iter, "Raise max_iter, or tol if such members will do.")
        return {
            "W": W,
            "assignment_": member,
            "objective_": curve[-1],
            "n_iter_": len(curve),
            "history_": {"iteration": np.arange(1, len(curve) + 1), "objective": np.array(curve)},
        }

    def _clusters(self, oracle, random):
        """Members by k-means on what the true outputs look like."""
        whole = np.arange(oracle.n_samples)
        if oracle.n_samples <= self.n_estimators:
            return whole
        rows = oracle.true_joint_features()
        norms = np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
        seed = int(random.integers(2**31))
        means = KMeans(self.n_estimators, n_init=4, random_state=seed)
        with single_threaded_blas():
            return means.fit_predict(rows / np.maximum(norms, np.finfo(float).tiny))

    def _retrained(self, oracle, W, trained):
        """Weights of all members, each trained on its samples."""
        del W
        return np.array(for_each(trained, range(self.n_estimators), oracle.threads))

    def _paid(self):
        """Whether members are paid for differing, so that more than the samples' hands changes."""
        return False


class DiverseMultipleChoiceSSVM(MultipleChoiceSSVM):
    r"""`MultipleChoiceSSVM` whose members are paid for differing from each other (DivMCL).

    Member m trains with the task loss

    .. math::

        \mathrm{loss}(y_i, y) - \lambda \, \mathrm{mean}_{m' \ne m} \mathrm{loss}(\hat y_{m'}, y)

    of the other members' current outputs :math:`\hat y_{m'}`: an output that differs from theirs is
    less of a mistake. For losses that count parts this only changes the scores of states. The exact
    term of the paper is another one; this one is ours.

    Parameters
    ----------
    model : StructuredModel
        What the score is made of. It is initialised by `fit`.
    n_estimators : int, default=6
        Number of members.
    diversity : float, default=0.5
        The factor lambda; 0 is `MultipleChoiceSSVM`.
    C : float, default=1.0
        Cost of a unit of slack.
    n_rounds : int, default=10
        Most rounds of training and sharing out.
    max_iter : int, default=100
        Most passes over its samples for a member in a round.
    tol : float, default=0.01
        Relative duality gap at which the training of a member stops.
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed; None is a fixed one too.
    verbose : bool, default=False
        Print how the fit gets on.

    Attributes
    ----------
    W : ndarray of shape (n_estimators, size_joint_feature)
        Weights of the members.
    assignment_ : ndarray of shape (n_samples,)
        The member that each training sample counts for.
    objective_ : float
        Value of the objective of `MultipleChoiceSSVM`, which knows nothing of diversity.
    n_iter_ : int
        Rounds.
    history_ : dict of ndarray
        ``iteration`` and ``objective``.
    reranker_ : object or None
        What `fit_reranker` has learnt.

    See Also
    --------
    MultipleChoiceSSVM : The same without the payment.

    References
    ----------
    A. Guzman-Rivera, P. Kohli, D. Batra, R. Rutenbar: Efficiently enforcing diversity in
    multi-output structured prediction. AISTATS 2014.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, DiverseMultipleChoiceSSVM
    >>> X, Y = load_letters(return_X_y=True)
    >>> ensemble = DiverseMultipleChoiceSSVM(ChainCRF(), 3, C=0.1, n_rounds=3, tol=0.1)
    >>> ensemble = ensemble.fit(X[::4], Y[::4])
    >>> bool(ensemble.pick_best_score(X[1::4], Y[1::4]) > ensemble.score(X[1::4], Y[1::4]))
    True
    """

    _parameter_constraints: dict = {
        **MultipleChoiceSSVM._parameter_constraints,
        "diversity": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        model,
        n_estimators=6,
        diversity=0.5,
        C=1.0,
        *,
        n_rounds=10,
        max_iter=100,
        tol=0.01,
        n_jobs=None,
        random_state=None,
        verbose=False,
    ):
        super().__init__(
            model,
            n_estimators,
            C,
            n_rounds=n_rounds,
            max_iter=max_iter,
            tol=tol,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.diversity = diversity

    def _paid(self):
        return self.diversity > 0.0 and self.n_estimators > 1

    def _retrained(self, oracle, W, trained):
        if W is None or not self._paid():
            return super()._retrained(oracle, W, trained)
        # One after the other: trained at once, equal members would stay equal.
        W = W.copy()
        saved = [self._savings(oracle, w) for w in W]
        for m in range(len(W)):
            others = zip(*(own for k, own in enumerate(saved) if k != m), strict=True)
            W[m] = trained(m, [self.diversity / (len(W) - 1) * sum(own) for own in others])
            saved[m] = self._savings(oracle, W[m])
        return W

    def _savings(self, oracle, w):
        return [self._saved(states) for states in oracle.best_states(w)]

    def _saved(self, states):
        """Minus the loss of each state of each part, where ``states`` are taken for the truth."""
        cost = self.model_.state_costs(states)
        return cost[:, np.newaxis] * (np.eye(self.model_.n_states)[states] - 1.0)


def _groups(member, slacks, n_members, random):
    """Return the samples of each member; who has none gets one that all do badly on."""
    groups = [np.flatnonzero(member == m) for m in range(n_members)]
    order = random.permutation(len(member))
    if slacks is not None:
        order = order[np.argsort(-slacks.min(axis=0)[order], kind="stable")]
    reserve = cycle(order)
    return [samples if len(samples) else np.array([next(reserve)]) for samples in groups]

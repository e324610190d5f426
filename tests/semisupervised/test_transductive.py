"""Joachims' algorithm against all labelings of few samples, and warm starts against cold ones."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from tests.oracles.hinge import Hinge, solve_exactly

from widemargin import SVC, TransductiveSVC
from widemargin.kernels import KernelFunction
from widemargin.semisupervised.kernel_self_training import WarmStartedSVM
from widemargin.semisupervised.split import NO_SAMPLES
from widemargin.semisupervised.targets import PartialLabels


def moons(n=200, labels=5):
    X, truth = make_moons(n, noise=0.1, random_state=0)
    y = np.full(n, -1)
    for side in (0, 1):
        y[np.flatnonzero(truth == side)[:labels]] = side
    return X, y, truth


def unlabeled(X):
    return PartialLabels(
        X, np.empty(0), None, np.array([-1, 1]), np.ones(len(X), dtype=bool), NO_SAMPLES
    )


def few_samples(seed):
    rng = np.random.default_rng(seed)
    truth = np.arange(12) % 2
    X = rng.normal(size=(12, 2)) + 1.5 * np.where(truth, 1.0, -1.0)[:, np.newaxis]
    y = truth.copy()
    y[4:] = -1
    return X, y


@pytest.mark.parametrize("seed", range(5))
def test_chosen_labels_are_among_the_best_of_all_labelings(seed):
    X, y = few_samples(seed)
    model = TransductiveSVC(kernel="linear", C=1.0, tol=1e-6).fit(X, y)
    assert (model.transduction_[4:] == 1).sum() == 4
    values = {}
    for chosen in combinations(range(8), 4):
        sign = np.where(y == 1, 1.0, -1.0)
        sign[4:] = -1.0
        sign[4 + np.array(chosen)] = 1.0
        best = solve_exactly(Hinge(X @ X.T, sign, np.ones(12), np.ones(12), True))
        values[tuple(sign)] = best.objective
    found = tuple(np.where(model.transduction_ == 1, 1.0, -1.0))
    assert_allclose(model.objective_, values[found], rtol=1e-6)
    # A local minimum: no labeling that is one switch away is clearly better.
    near = [
        value
        for sign, value in values.items()
        if np.count_nonzero(np.array(sign) != np.array(found)) == 2
    ]
    assert model.objective_ <= min(near) * (1 + 1e-6)


def test_unlabeled_samples_show_the_shape_of_the_classes():
    X, y, truth = moons()
    model = TransductiveSVC(C=10.0, gamma=2.0).fit(X, y)
    labeled = y != -1
    alone = SVC(C=10.0, gamma=2.0).fit(X[labeled], y[labeled])
    assert np.mean(model.predict(X) == truth) > np.mean(alone.predict(X) == truth)
    assert_array_equal(model.transduction_[labeled], y[labeled])


def test_switching_one_pair_at_a_time_ends_at_a_similar_objective():
    X, y, _ = moons(labels=2)
    options = {"C": 1.0, "gamma": 0.5}
    many, one = (TransductiveSVC(switch=s, **options).fit(X, y) for s in ("multi", "single"))
    assert many.n_solves_ <= one.n_solves_
    assert_allclose(many.objective_, one.objective_, rtol=0.05)


def test_the_fraction_of_positive_labels_is_kept():
    X, y, _ = moons()
    model = TransductiveSVC(positive_share=0.25, C=1.0, gamma=1.0).fit(X, y)
    assert (model.transduction_[y == -1] == 1).sum() == round(0.25 * 190)


def test_unlabeled_samples_may_be_passed_separately_and_cost_less():
    X, y, _ = moons()
    labeled = y != -1
    model = TransductiveSVC(C=10.0, gamma=2.0).fit(X, y)
    apart = TransductiveSVC(C=10.0, gamma=2.0).fit(X[labeled], y[labeled], X_unlabeled=X[~labeled])
    assert_array_equal(apart.transduction_, model.transduction_[~labeled])
    nothing = TransductiveSVC(C=10.0, C_unlabeled=1e-9, gamma=2.0, tol=1e-8).fit(X, y)
    alone = SVC(C=10.0, gamma=2.0, tol=1e-8).fit(X[labeled], y[labeled])
    assert_allclose(nothing.decision_function(X), alone.decision_function(X), atol=1e-5)


def test_without_unlabeled_samples_it_is_an_svc():
    X, _, truth = moons()
    model = TransductiveSVC(gamma=1.0, tol=1e-8).fit(X, truth)
    plain = SVC(gamma=1.0, tol=1e-8).fit(X, truth)
    assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-8)
    assert_array_equal(model.transduction_, truth)


@pytest.mark.parametrize("n", [300, pytest.param(2500, marks=pytest.mark.large)])
def test_warm_starts_end_where_cold_ones_do_whatever_changes_between_them(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    sign = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    cost = np.where(np.arange(n) < n // 5, 2.0, 0.0)
    estimator = TransductiveSVC(gamma=0.3, tol=1e-6, cache_size=64)
    svm = WarmStartedSVM(estimator, unlabeled(X))
    for change in range(4):
        found = svm.train(sign, cost)
        fresh = WarmStartedSVM(estimator, unlabeled(X)).train(sign, cost)
        assert_allclose(found.scores, fresh.scores, atol=1e-4)
        assert found.model.gap < 1e-5
        if change == 0:
            cost = np.where(np.arange(n) < n // 2, 2.0, 0.0)  # samples are added
        elif change == 1:
            sign = sign * np.where(rng.random(n) < 0.1, -1.0, 1.0)  # labels change
        else:
            support = np.flatnonzero(found.model.dual)
            first = support[found.model.dual[support] > 0.0][:5]
            second = support[found.model.dual[support] < 0.0][:5]
            sign[first], sign[second] = -1.0, 1.0  # pairs swap labels
            svm.swap_labels(first, second)


@pytest.mark.large
def test_a_round_reuses_the_kernel_rows_of_earlier_rounds(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    sign = np.where(X[:, 0] + 0.5 * rng.normal(size=4000) > 0.0, 1.0, -1.0)
    values, matrix = [0], KernelFunction.matrix

    def counted(self, A, B, *rest, **options):
        values[0] += A.shape[0] * B.shape[0]
        return matrix(self, A, B, *rest, **options)

    monkeypatch.setattr(KernelFunction, "matrix", counted)

    def computed(svm, labeled):
        values[0] = 0
        svm.train(sign, np.where(np.arange(4000) < labeled, 1.0, 0.0))
        return values[0]

    estimator = TransductiveSVC(gamma=0.3, cache_size=256)
    svm = WarmStartedSVM(estimator, unlabeled(X))
    computed(svm, 2200)
    fresh = computed(WarmStartedSVM(estimator, unlabeled(X)), 2300)
    assert computed(svm, 2300) < 0.7 * fresh


@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 1], [0, 1, 1]])
def test_a_single_unlabeled_sample_gets_a_label(labels):
    X = np.array([*([float(label)] for label in labels), [0.9]])
    model = TransductiveSVC(kernel="linear").fit(X, [*labels, -1])
    assert model.transduction_[-1] in (0, 1)
    assert model.n_solves_ < 100

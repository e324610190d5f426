"""Probabilities of SVC and SVCCV: calibrated on held-out samples, in agreement with predict."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from tests.suites.callbacks import Recorder
from tests.suites.registry import FoldsByContent, classification, two_classes

from widemargin import SVC, SVCCV
from widemargin.export import load, save, to_sklearn
from widemargin.svm.probabilities import (
    class_probabilities,
    couple_pairs,
    fit_sigmoid,
    make_most_probable,
)

MODELS = [
    SVC(),
    SVC(break_ties=True),
    SVC(decision_function_shape="ovo"),
    SVC(multi_class="ovr"),
    SVC(kernel="linear", class_weight="balanced"),
    SVC(C=np.inf, kernel="laplacian"),
    SVC(C=0.01),
    SVCCV(Cs=[0.1, 1.0], gammas=["scale", 0.5], cv=3),
]


def platt_loss(parameters, values, positive, weight):
    n_positive, n_negative = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    odds = parameters[0] * values + parameters[1]
    return np.sum(weight * (np.logaddexp(0.0, odds) - target * odds))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_most_probable_class_is_the_predicted_one(model, n_classes):
    X, y = classification(150, n_classes)
    model = clone(model).set_params(probability=True).fit(X, np.array(list("dbca"))[y])
    X = np.vstack((X, np.random.default_rng(0).normal(size=(500, 5)), np.full((1, 5), 1e3)))
    probabilities = model.predict_proba(X)
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert (probabilities > 0.0).all()
    assert_array_equal(model.predict_log_proba(X), np.log(probabilities))
    assert model.probability_sigmoids_.shape == (len(model.objective_), 2)


def test_predictions_are_those_without_probabilities():
    X, y = classification()
    plain = SVC().fit(X, y)
    model = SVC(probability=True).fit(X, y)
    assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert plain.probability_sigmoids_ is None


def test_break_ties_set_after_fit_changes_prediction_and_probabilities_together():
    X, y = classification(120, 4)
    model = SVC(C=100.0, probability=True).fit(X, y)
    near = np.random.default_rng(0).normal(size=(2000, 5))
    predictions = []
    for break_ties in (False, True):
        model.set_params(break_ties=break_ties)
        predictions.append(model.predict(near))
        assert_array_equal(model.predict_proba(near).argmax(axis=1), predictions[-1])
    assert (predictions[0] != predictions[1]).any()


def test_binary_probabilities_are_those_of_a_sigmoid_over_held_out_decision_values():
    X, y = two_classes(200)
    model = SVC(probability=True, tol=1e-9, gamma=0.2).fit(X, y)
    folds = StratifiedKFold(5)
    values = cross_val_predict(
        sklearn.svm.SVC(gamma=0.2, tol=1e-9), X, y, cv=folds, method="decision_function"
    )
    found = minimize(
        platt_loss, [1.0, 0.0], (values, y == 1, np.ones(len(y))), "Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 10_000},
    )  # fmt: skip
    assert_allclose(model.probability_sigmoids_[0], found.x, rtol=1e-5, atol=1e-5)
    score = model.decision_function(X)
    odds = model.probability_sigmoids_[0] @ [score, np.ones(len(y))]
    agree = (odds > 0) == (score > 0)
    assert 0.5 < agree.mean() <= 1.0
    assert_allclose(model.predict_proba(X)[agree, 1], expit(odds[agree]))
    assert (np.diff(model.predict_proba(X)[np.argsort(score), 1]) >= 0.0).all()


def test_probabilities_increase_with_the_decision_value_where_the_sigmoid_disagrees():
    values = np.linspace(-3.0, 3.0, 601)[:, np.newaxis]
    for intercept in (-2.0, 0.0, 2.0):
        p = class_probabilities(values, np.array([[1.0, intercept]]), 2, False)[:, 1]
        assert (np.diff(p) > 0.0).all()
        assert_array_equal(p > 0.5, values[:, 0] > 0.0)


@given(st.integers(0, 10_000), st.integers(2, 40), st.sampled_from([1e-3, 1.0, 1e3]))
def test_a_sigmoid_has_the_least_loss_and_weights_are_copies(seed, n_samples, scale):
    rng = np.random.default_rng(seed)
    values = scale * rng.normal(size=n_samples)
    positive = rng.normal(size=n_samples) + values / scale > 0.5
    weight = rng.integers(1, 4, n_samples)
    slope, intercept = fit_sigmoid(values, positive, weight.astype(float))
    assert slope >= 0.0
    loss = platt_loss((slope, intercept), values, positive, weight)
    for factor, shift in ((1.01, 0.0), (0.99, 0.0), (1.0, 0.01), (1.0, -0.01)):
        other = slope * factor + (factor - 1) * (slope == 0) / scale, intercept + shift
        if other[0] >= 0.0:
            assert loss <= platt_loss(other, values, positive, weight) + 1e-9
    copies = fit_sigmoid(
        values.repeat(weight), positive.repeat(weight), np.ones(weight.sum())
    )  # fmt: skip
    assert_allclose(copies, (slope, intercept), rtol=1e-4, atol=1e-5 / scale)


def test_values_that_are_all_wrong_or_equal_give_the_share_of_the_classes():
    values, positive = np.linspace(-1.0, 1.0, 8), np.arange(8) < 6
    assert fit_sigmoid(values, positive, np.ones(8))[0] == 0.0
    slope, intercept = fit_sigmoid(np.zeros(8), positive, np.ones(8))
    assert slope == 0.0
    assert_allclose(expit(intercept), (6 * 7 / 8 + 2 / 4) / 8)


def test_coupled_pairs_are_the_least_squares_of_wu_lin_and_weng():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=5)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    consistent = np.column_stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in pairs])
    assert_allclose(couple_pairs(consistent, 4), p, rtol=1e-9)

    r = rng.uniform(0.05, 0.95, size=(1, 6))

    def loss(z):
        q = np.exp(z) / np.exp(z).sum()
        return sum(((1 - r[0, k]) * q[i] - r[0, k] * q[j]) ** 2 for k, (i, j) in enumerate(pairs))

    found = minimize(loss, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 0})
    expected = np.exp(found.x) / np.exp(found.x).sum()
    assert_allclose(couple_pairs(r, 4)[0], expected, atol=1e-4)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(0, 5))
def test_the_nearest_probabilities_with_another_largest_one(parts, position):
    p = np.array([parts]) / sum(parts)
    position %= p.shape[1]
    found = make_most_probable(p, np.array([position]))
    assert found.argmax() == position
    assert_allclose(found.sum(), 1.0)
    # The projection onto p_position >= p_j and sum 1: others are lowered to the common level.
    level = found[0, position]
    others = np.delete(p[0], position)
    lowered = np.delete(found[0], position)
    assert_allclose(lowered, np.minimum(others, level), atol=1e-12)
    if p[0, position] >= others.max():
        assert_allclose(found, p, atol=1e-12)


def test_more_samples_than_one_block_of_equations(monkeypatch):
    X, y = classification()
    model = SVC(probability=True).fit(X, y)
    whole = model.predict_proba(X)
    monkeypatch.setattr("widemargin.svm.probabilities.options.entries", 100)
    assert_array_equal(model.predict_proba(X), whole)
    assert model.predict_proba(X[:1]).shape == (1, 3)


def test_samples_of_weight_0_are_left_out():
    X, y = classification(120, 4)
    weight = (y != 3).astype(float)
    y = y[np.r_[0:120]]
    for model in (SVC(probability=True), SVCCV(Cs=[1.0], probability=True, cv=FoldsByContent())):
        all_samples = clone(model).fit(X, y, weight)
        others = clone(model).fit(X[y != 3], y[y != 3])
        assert_array_equal(all_samples.classes_, [0, 1, 2])
        assert_allclose(all_samples.predict_proba(X), others.predict_proba(X), atol=1e-3)
        # The class may come first, too.
        first = clone(model).fit(X, -y, weight)
        assert_allclose(first.predict_proba(X)[:, ::-1], others.predict_proba(X), atol=1e-3)


def test_weight_k_is_k_copies_in_the_same_folds():
    X, y = classification()
    weight = np.arange(len(y)) % 3 + 1
    model = SVCCV(Cs=[0.3, 3.0], cv=FoldsByContent(), probability=True, tol=1e-9)
    weighted = clone(model).fit(X, y, weight).predict_proba(X)
    copies = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight)).predict_proba(X)
    assert_allclose(weighted, copies, atol=1e-5)


def test_class_weights_count_as_sample_weights():
    X, y = two_classes()
    weight = {0: 1.0, 1: 5.0}
    by_class = SVC(probability=True, class_weight=weight, gamma=0.2, tol=1e-8).fit(X, y)
    by_sample = SVC(probability=True, gamma=0.2, tol=1e-8).fit(X, y, np.where(y == 1, 5.0, 1.0))
    assert_allclose(by_class.predict_proba(X), by_sample.predict_proba(X), atol=1e-6)


def test_kernels_and_containers_agree():
    X, y = classification()
    expected = SVC(kernel="linear", probability=True, tol=1e-8).fit(X, y).predict_proba(X)
    same = SVC(kernel="linear", probability=True, tol=1e-8).fit(sparse.csr_array(X), y)
    assert_allclose(same.predict_proba(sparse.csr_array(X)), expected, atol=1e-6)
    matrix = SVC(kernel="precomputed", probability=True, tol=1e-8).fit(X @ X.T, y)
    assert_allclose(matrix.predict_proba(X @ X.T), expected, atol=1e-6)
    function = SVC(kernel=lambda A, B: A @ B.T, probability=True, tol=1e-8).fit(X, y)
    assert_allclose(function.predict_proba(X), expected, atol=1e-6)
    cached = SVC(kernel="linear", probability=True, tol=1e-8, cache_size=0.01).fit(X, y)
    assert_allclose(cached.predict_proba(X), expected, atol=1e-6)


def test_the_same_bits_for_any_number_of_jobs():
    X, y = classification(200, 4)
    models = [SVC(probability=True, n_jobs=jobs).fit(X, y) for jobs in (None, 2, 3)]
    for model in models[1:]:
        assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))


def test_a_class_of_one_sample_is_refused():
    X, y = classification(30)
    y[y == 2] = 1
    y[0] = 2
    with pytest.raises(ValueError, match=r"at least two samples of each class.*class 2 has one"):
        SVC(probability=True).fit(X, y)
    X[1], y[1] = X[0] + 0.1, 2
    assert SVC(probability=True).fit(X, y).predict_proba(X).shape == (30, 3)


def test_folds_without_test_samples_of_a_class_are_refused():
    X, y = classification()
    test = np.flatnonzero(y == 0)[:5]
    model = SVCCV(cv=[(np.delete(np.arange(90), test), test)], probability=True)
    with pytest.raises(ValueError, match=r"no test samples.*classes \[1, 2\].*stratified"):
        model.fit(X, y)


def test_a_search_whose_folds_lack_a_class_in_training():
    X, y = classification()
    folds = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in range(3)]
    halves = [(np.arange(45), np.arange(45, 90)), (np.arange(45, 90), np.arange(45))]
    model = SVCCV(Cs=[1.0], cv=[*folds, *halves], probability=True).fit(X, y)
    assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


def test_availability_follows_the_fit():
    X, y = classification()
    model = SVC()
    assert not hasattr(model, "predict_proba")
    assert hasattr(model.set_params(probability=True), "predict_proba")
    model.set_params(probability=False).fit(X, y)
    with pytest.raises(AttributeError) as error:
        model.set_params(probability=True).predict_proba(X)
    assert "was fitted with probability=False. Set probability=True" in str(error.value.__cause__)
    model.fit(X, y)
    expected = model.predict_proba(X)
    # A fitted model depends on its fitted attributes only.
    model.set_params(probability=False, C=1e-3, kernel="linear")
    assert_array_equal(model.predict_proba(X), expected)
    assert not hasattr(clone(model), "predict_proba")
    assert not hasattr(model.fit(X, y), "predict_proba")


def test_copies_and_files_keep_probabilities(tmp_path):
    X, y = classification()
    model = SVC(probability=True).fit(X, y)
    expected = model.predict_proba(X)
    save(model, tmp_path / "model")
    for again in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        load(tmp_path / "model"),
    ):
        assert_array_equal(again.predict_proba(X), expected)


def test_a_conversion_leaves_out_probabilities_that_would_not_agree():
    X, y = classification()
    model = SVC(probability=True).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(to_sklearn(model), "predict_proba")


def test_a_grid_search_by_log_loss():
    X, y = classification()
    search = GridSearchCV(SVC(probability=True), {"C": [1e-3, 1.0]}, scoring="neg_log_loss", cv=3)
    assert search.fit(X, y).best_params_ == {"C": 1.0}
    own = SVCCV(Cs=[0.1, 1.0], probability=True).fit(X, y)
    assert_allclose(own.best_estimator_.predict_proba(X), own.predict_proba(X))


def test_folds_are_tasks_of_callbacks_and_of_checkpoints(tmp_path):
    X, y = classification()
    expected = SVC(probability=True).fit(X, y).predict_proba(X)
    recorder = Recorder()
    model = SVC(probability=True, checkpoint=tmp_path / "fit").set_callbacks(recorder)
    assert_allclose(model.fit(X, y).predict_proba(X), expected, atol=1e-3)
    problems = {number for name, number in recorder.begun if name == "problem"}
    assert problems == set(range(3 + 3 * 5))
    assert sorted(recorder.begun) == sorted(recorder.ended)


def test_a_stopped_fit_is_resumed_from_its_checkpoint(tmp_path):
    X, y = classification()
    expected = SVC(probability=True).fit(X, y).predict_proba(X)
    stop = Recorder(lambda context: context.task_name == "problem" and context.task_id >= 6)
    model = SVC(probability=True, checkpoint=tmp_path / "fit").set_callbacks(stop)
    with pytest.warns(ConvergenceWarning, match="requested by a callback"):
        model.fit(X, y)
    resumed = SVC(probability=True, checkpoint=tmp_path / "fit").fit(X, y)
    assert_allclose(resumed.predict_proba(X), expected, atol=1e-3)


def test_fits_of_folds_that_do_not_converge_warn():
    X, y = two_classes(90)
    n_iter = int(SVC(C=100.0).fit(X, y).n_iter_[0])
    with pytest.warns(ConvergenceWarning):
        SVC(C=100.0, probability=True, max_iter=n_iter // 4).fit(X, y)


def test_the_loss_on_new_samples_is_close_to_that_of_platt():
    losses = []
    for seed, n_classes in ((0, 2), (1, 2), (2, 3), (3, 5)):
        X, y = classification(600, n_classes, 8, seed)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        model = SVC(probability=True).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            platt = sklearn.svm.SVC(probability=True, random_state=0).fit(X, y)
        losses.append([log_loss(y_test, m.predict_proba(X_test)) for m in (model, platt)])
    ours, theirs = np.array(losses).T
    assert (ours <= 1.05 * theirs).all()
    assert ours.mean() <= 1.01 * theirs.mean()

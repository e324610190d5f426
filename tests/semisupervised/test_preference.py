"""Classifiers with constraints: training data, thresholds, guarantees and checkpoints."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import binomtest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.suites.callbacks import Recorder
from threadpoolctl import threadpool_limits

from widemargin import (
    SVC,
    CodeMatrixClassifier,
    PreferenceClassifier,
    PreferenceSVC,
    RescaledClassifier,
    TransductiveSVC,
    effective_class_weight,
)
from widemargin._base.checkpoint import CheckpointError

ESTIMATORS = [
    PreferenceSVC(random_state=0, gamma=0.05),
    PreferenceClassifier(SVC(gamma=0.05), random_state=0),
]
HOLDOUT = {
    "check_class_weight_classifiers": "the threshold follows the constraints, whatever the weights",
    "check_classifiers_classes": "-1 means unlabeled",
    "check_sample_weight_equivalence_on_dense_data": "copies fall into both parts of the split",
    "check_sample_weight_equivalence_on_sparse_data": "copies fall into both parts of the split",
}
TIGHT = {
    PreferenceSVC: {"tol": 1e-8},
    PreferenceClassifier: {"estimator__tol": 1e-8},
    TransductiveSVC: {"tol": 1e-8},
}
both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=["svc", "classifier"])


def make_samples(n=600, labels=200, seed=0, **options):
    X, y = make_classification(n, weights=[0.7], flip_y=0.1, random_state=seed, **options)
    marked = y.copy()
    marked[labels:] = -1
    return X, y, marked


@pytest.mark.slow
@parametrize_with_checks(
    [clone(estimator) for estimator in ESTIMATORS],
    expected_failed_checks=lambda estimator: HOLDOUT,
)
def test_holdout_splits_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@both
def test_marked_and_separate_unlabeled_samples_give_the_same_model(estimator):
    X, y, marked = make_samples()
    by_mark = clone(estimator).fit(X, marked)
    separate = clone(estimator).fit(X[:200], y[:200], X_unlabeled=X[200:])
    assert_array_equal(by_mark.decision_function(X), separate.decision_function(X))
    assert len(by_mark.pseudo_labels_) == 400


@both
def test_minus_one_is_a_class_if_unlabeled_samples_are_separate(estimator):
    X, y, _ = make_samples()
    signs = np.where(y == 1, 1, -1)
    model = clone(estimator).fit(X[:200], signs[:200], X_unlabeled=X[200:])
    assert_array_equal(model.classes_, [-1, 1])


def test_labels_may_be_strings_and_objects_are_marked_too():
    X, y, marked = make_samples()
    names = np.array(["no", "yes"], dtype=object)[y]
    names[marked == -1] = -1
    plain = PreferenceSVC(random_state=0).fit(X, marked)
    named = PreferenceSVC(random_state=0).fit(X, names)
    assert_array_equal(named.predict(X), np.array(["no", "yes"], dtype=object)[plain.predict(X)])


def test_preference_svc_equals_preference_classifier_of_an_svc():
    X, _, marked = make_samples()
    for options in ({}, {"update": "recompute"}, {"precision": 0.8}, {"recall": 0.9}):
        exact = {"tol": 1e-8, "gamma": 0.05}
        own = PreferenceSVC(random_state=0, **exact, **options).fit(X, marked)
        other = PreferenceClassifier(SVC(**exact), random_state=0, **options).fit(X, marked)
        for name in own.history_:
            assert_allclose(own.history_[name], other.history_[name], atol=1e-6)
        assert_allclose(own.decision_function(X), other.decision_function(X), atol=1e-6)


def test_preference_svc_uses_weights_sparse_samples_and_class_weights():
    X, _, marked = make_samples()
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    options = {"random_state": 0, "tol": 1e-8, "gamma": 0.05, "class_weight": {0: 1.0, 1: 3.0}}
    dense = PreferenceSVC(**options).fit(X, marked, sample_weight=weight)
    thin = PreferenceSVC(**options).fit(sparse.csr_array(X), marked, sample_weight=weight)
    assert_allclose(thin.decision_function(X), dense.decision_function(X), atol=1e-6)
    svc = SVC(tol=1e-8, gamma=0.05, class_weight={0: 1.0, 1: 3.0})
    other = PreferenceClassifier(svc, random_state=0).fit(X, marked, sample_weight=weight)
    assert_allclose(other.history_["f1"][0], dense.history_["f1"][0], atol=1e-9)


@both
def test_constraints_are_met_on_the_validation_samples(estimator):
    X, _, marked = make_samples()
    for constraints in ({"precision": 0.9}, {"recall": 0.9}, {"precision": 0.6, "recall": 0.6}):
        model = clone(estimator).set_params(**constraints, margin=None).fit(X, marked)
        scores, truth, _ = model._validation
        accepted = scores > model.threshold_
        if "precision" in constraints:
            assert precision_score(truth, accepted) >= constraints["precision"]
        if "recall" in constraints:
            assert recall_score(truth, accepted) >= constraints["recall"]


@both
def test_other_constraints_change_the_threshold_without_a_fit(estimator):
    X, _, marked = make_samples()
    model = clone(estimator).set_params(margin=None).fit(X, marked)
    history = model.history_
    before = model.threshold_
    model.set_constraints(precision=0.95, margin=None)
    assert model.threshold_ > before
    assert model.precision == 0.95
    assert model.history_ is history
    model.set_constraints(recall=0.95)
    assert model.precision is None
    assert model.threshold_ < before
    assert model.set_constraints().threshold_ == before


@both
def test_invalid_constraints_are_refused_and_change_nothing(estimator):
    X, _, marked = make_samples()
    model = clone(estimator).set_params(precision=0.8).fit(X, marked)
    before = model.threshold_
    with pytest.raises(TypeError, match="accuracy"):
        model.set_constraints(accuracy=0.9)
    with pytest.raises(ValueError, match="precision"):
        model.set_constraints(precision=1.5)
    with pytest.raises(ValueError, match="confidence requires calibration samples"):
        model.set_constraints(recall=0.5, confidence=0.9)
    assert model.get_params()["precision"] == 0.8
    assert model.threshold_ == before


@both
def test_new_samples_recalibrate(estimator):
    X, y, marked = make_samples(2000)
    model = clone(estimator).set_params(precision=0.8).fit(X[:1000], marked[:1000])
    model.recalibrate(X[1000:], y[1000:])
    assert precision_score(y[1000:], model.predict(X[1000:])) >= 0.8
    model.set_constraints(recall=0.6, confidence=0.9)
    assert model.guarantee_.guaranteed
    with pytest.raises(ValueError, match="y must contain a label for each of the 3 samples"):
        model.recalibrate(X[:3], [0, 1, 7])
    with pytest.raises(ValueError, match="y must contain a label for each of the 3 samples"):
        model.recalibrate(X[:3], [0, 0, 0])


@pytest.mark.parametrize("constraints", [{"precision": 0.8}, {"recall": 0.85}], ids=str)
@pytest.mark.parametrize("n_unlabeled", [400, 0])
@pytest.mark.parametrize(
    ("estimator", "problems"),
    [
        pytest.param(PreferenceClassifier(GaussianNB(), max_rounds=1), 60, id="one round"),
        pytest.param(
            PreferenceClassifier(GaussianNB(), max_rounds=3),
            240,
            id="classifier 240",
            marks=pytest.mark.slow,
        ),
        pytest.param(PreferenceSVC(max_rounds=3), 240, id="svc 240", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_guarantees_of_fits_hold_at_the_stated_rate_on_new_samples(
    estimator, problems, n_unlabeled, constraints
):
    guaranteed = held = 0
    name, limit = next(iter(constraints.items()))
    measure = {"precision": precision_score, "recall": recall_score}[name]
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        share, noise = rng.uniform(0.5, 0.9), rng.uniform(0.0, 0.1)
        n = int(rng.integers(150, 1500))
        X, y = make_classification(
            n + 400 + 4000, 6, n_informative=4, n_redundant=0, weights=[share], flip_y=noise,
            class_sep=rng.uniform(0.8, 2.0), random_state=seed,
        )  # fmt: skip
        model = clone(estimator).set_params(**constraints, confidence=0.9, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* cannot be guaranteed at confidence")
            model.fit(X[:n], y[:n], X_unlabeled=X[n : n + n_unlabeled] if n_unlabeled else None)
        if model.guarantee_.guaranteed:
            guaranteed += 1
            held += measure(y[n + 400 :], model.predict(X[n + 400 :])) >= limit
    assert guaranteed >= problems // 4
    # That the rate is at least the confidence is not rejected at a level of one in a thousand.
    assert binomtest(held, guaranteed, 0.9, alternative="less").pvalue > 1e-3


@both
@pytest.mark.parametrize("split", ["cross", "holdout"])
def test_half_of_the_labels_are_calibration_samples_that_the_model_has_not_seen(estimator, split):
    X, y, marked = make_samples()
    constrained = clone(estimator).set_params(recall=0.5, confidence=0.9, split=split)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Calibration samples and unlabeled")
        model = constrained.fit(X, marked)
    chosen = model._split_labels(model._validate_fit(X, marked, None, None))
    parts = [chosen.calibration, chosen.train] + ([] if split == "cross" else [chosen.validation])
    assert_array_equal(np.sort(np.concatenate(parts)), np.arange(200))
    assert len(chosen.calibration) == 100
    # Other labels of the calibration samples change the threshold only.
    flipped = marked.copy()
    flipped[chosen.calibration[:30]] = 1 - y[chosen.calibration[:30]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        other = clone(constrained).fit(X, flipped)
    if split == "holdout":  # folds are stratified by the labels of the others
        assert_array_equal(other._calibration[0], model._calibration[0])


@both
def test_each_fold_is_scored_by_a_model_without_its_labels(estimator):
    X, y, marked = make_samples()
    exact = TIGHT[type(estimator)]
    model = clone(estimator).set_params(**exact, max_rounds=1).fit(X, marked)
    split = model._split_labels(model._validate_fit(X, marked, None, None))
    assert_array_equal(np.sort(np.concatenate(split.folds)), np.arange(200))
    for fold in split.folds:
        others = np.setdiff1d(np.arange(200), fold)
        # Unlabeled samples are passed too: gamma and the kernel do not depend on them here.
        alone = SVC(gamma=0.05, tol=1e-8).fit(X[others], y[others])
        assert_allclose(model._validation[0][fold], alone.decision_function(X[fold]), atol=1e-5)
    whole = SVC(gamma=0.05, tol=1e-8).fit(X[:200], y[:200])
    assert_allclose(model.score_samples(X), whole.decision_function(X), atol=1e-5)


@both
def test_a_margin_is_the_level_of_exact_confidence_limits(estimator):
    X, _, marked = make_samples()
    model = clone(estimator).set_params(precision=0.8, margin=None).fit(X, marked)
    before = model.threshold_
    model.set_constraints(precision=0.8, margin=0.95)
    assert model.threshold_ > before
    scores, truth, _ = model._validation
    accepted = scores > model.threshold_
    test = binomtest(int(truth[accepted].sum()), int(accepted.sum()), 0.8, alternative="greater")
    assert model.margins_["precision"] == pytest.approx(1.0 - test.pvalue)
    assert model.margins_["precision"] >= 0.95
    assert test.proportion_ci(0.95).low >= 0.8


def test_a_guarantee_is_withheld_if_labels_were_drawn_by_class_unless_the_share_is_known():
    rng = np.random.default_rng(0)
    y = (rng.random(8000) < 0.1).astype(int)
    X = rng.normal(size=(8000, 2)) + 2.5 * y[:, np.newaxis]
    labeled = np.concatenate([np.flatnonzero(y == label)[:400] for label in (0, 1)])
    unlabeled = np.arange(4000, 8000)
    model = PreferenceClassifier(GaussianNB(), precision=0.7, confidence=0.9, random_state=0)
    with pytest.warns(UserWarning, match="set positive_share to the true fraction"):
        model.fit(X[labeled], y[labeled], X_unlabeled=X[unlabeled])
    assert not model.guarantee_.guaranteed
    assert model.guarantee_.shift_pvalue < 1e-3
    # More calibration samples that are drawn like these would not help.
    assert model.guarantee_.more_samples is None
    assert "label a random part of the unlabeled samples" in model.guarantee_.reason
    model.set_params(positive_share=0.1).fit(X[labeled], y[labeled], X_unlabeled=X[unlabeled])
    assert model.guarantee_.guaranteed
    assert precision_score(y[unlabeled], model.predict(X[unlabeled])) >= 0.7
    with pytest.warns(UserWarning, match="positive_share=0.9"):
        model.set_params(positive_share=0.9).fit(X[labeled], y[labeled], X_unlabeled=X[unlabeled])
    fair = clone(model).set_params(positive_share=None)
    fair.fit(X[:1000], y[:1000], X_unlabeled=X[unlabeled])
    assert fair.guarantee_.guaranteed
    assert fair.guarantee_.shift_pvalue > 1e-3
    assert fair.guarantee_.reason == ""


def test_more_unlabeled_samples_do_not_change_a_guarantee_of_one_round():
    X, y, _ = make_samples(6000, class_sep=2.0)
    model = PreferenceClassifier(
        GaussianNB(), precision=0.8, confidence=0.9, max_rounds=1, random_state=0
    )
    thresholds = {
        model.fit(X[:500], y[:500], X_unlabeled=X[500 : 500 + n]).threshold_
        for n in (1, 100, 1000, 5000)
    }
    assert len(thresholds) == 1
    assert model.guarantee_.guaranteed


def test_a_guarantee_is_that_of_the_labels_alone_unless_a_later_round_is_clearly_better():
    X, y, _ = make_samples(3000, class_sep=1.5)
    alone = PreferenceClassifier(
        LogisticRegression(), precision=0.7, confidence=0.9, random_state=0
    ).fit(X[:400], y[:400])
    assert alone.guarantee_.guaranteed
    for n in (50, 500, 2500):
        model = clone(alone).fit(X[:400], y[:400], X_unlabeled=X[400 : 400 + n])
        assert model.n_iter_ > 1
        assert model.history_["best"].tolist() == [True] + [False] * (model.n_iter_ - 1)
        assert model.threshold_ == alone.threshold_
        assert model.guarantee_.guaranteed


def test_duplicated_samples_break_a_guarantee_unless_their_groups_are_known():
    held = {"groups": [0, 0], "no groups": [0, 0]}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = (rng.random(120) < 0.4).astype(int)
        X = rng.normal(size=(120, 2)) + 1.5 * y[:, np.newaxis]
        groups = rng.permutation(np.repeat(np.arange(120), 12))
        new_y = (rng.random(20_000) < 0.4).astype(int)
        new = rng.normal(size=(20_000, 2)) + 1.5 * new_y[:, np.newaxis]
        for name, given in (("groups", groups), ("no groups", None)):
            model = PreferenceClassifier(
                GaussianNB(), precision=0.8, confidence=0.9, split="holdout", random_state=seed
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model.fit(X[groups], y[groups], groups=given)
            if model.guarantee_.guaranteed:
                held[name][0] += 1
                held[name][1] += precision_score(new_y, model.predict(new)) >= 0.8
    given, met = held["groups"]
    assert given >= 15
    assert binomtest(met, given, 0.9, alternative="less").pvalue > 1e-3
    given, met = held["no groups"]
    assert met < 0.9 * given


@pytest.mark.parametrize("method", ["fit", "recalibrate"])
def test_groups_are_not_divided_and_give_one_calibration_sample_each(method):
    X, y, _ = make_samples(600)
    groups = np.repeat(np.arange(200), 3)
    model = PreferenceClassifier(GaussianNB(), recall=0.5, confidence=0.9, random_state=0)
    model.fit(X, y, groups=groups)
    split = model._split_labels(model._validate_fit(X, y, None, None), groups)
    assert len(split.calibration) == 100
    assert not np.isin(groups[split.calibration], groups[split.train]).any()
    for fold in split.folds:
        assert not np.isin(groups[fold], groups[np.setdiff1d(split.train, fold)]).any()
    if method == "recalibrate":
        model.recalibrate(X, y, groups=groups)
        assert len(model._calibration[0]) == 200
    for bad in (groups[1:], np.column_stack([groups, groups])):
        with pytest.raises(ValueError, match="groups must contain the group of each of the 600"):
            getattr(model, method)(X, y, groups=bad)
    for missing in (None, np.nan):
        bad = [missing, *groups[1:].tolist()]
        with pytest.raises(ValueError, match="groups must not contain missing values"):
            getattr(model, method)(X, y, groups=bad)


def test_few_groups_give_few_folds_and_a_single_one_is_refused():
    X, y, _ = make_samples(600)
    model = PreferenceClassifier(GaussianNB(), recall=0.5, random_state=0)
    for n_groups in (2, 3):
        model.fit(X, y, groups=np.arange(600) % n_groups)
        data = model._validate_fit(X, y, None, None)
        assert len(model._split_labels(data, np.arange(600) % n_groups).folds) == n_groups
    with pytest.raises(ValueError, match="groups must leave two groups"):
        model.fit(X, y, groups=np.zeros(600))


def test_groups_of_unlabeled_samples_may_be_missing():
    X, y, _ = make_samples(600)
    marked, groups = np.where(np.arange(600) < 300, y, -1), np.arange(600.0)
    model = PreferenceClassifier(GaussianNB(), recall=0.5, random_state=0)
    expected = model.fit(X, marked, groups=groups).threshold_
    groups[300:] = np.nan
    assert model.fit(X, marked, groups=groups).threshold_ == expected


def test_recalibration_refuses_missing_labels():
    X, y, _ = make_samples(600)
    model = PreferenceClassifier(GaussianNB(), random_state=0).fit(X, y)
    labels = np.append(y[1:].astype(object), None)
    with pytest.raises(ValueError, match="got 600 labels, 1 of them missing"):
        model.recalibrate(X, labels)


@pytest.mark.parametrize("dtype", ["Int64", "Int8", "boolean"])
def test_labels_of_nullable_columns_stay_integers_and_booleans(dtype):
    pandas = pytest.importorskip("pandas")
    X, y, marked = make_samples()
    full = pandas.Series(y).astype(dtype)
    for labels in (full, full.mask(marked == -1)):
        model = PreferenceSVC(max_rounds=1, random_state=0).fit(X, labels)
        assert model.classes_.dtype.kind == ("b" if dtype == "boolean" else "i")
        assert model.predict(X[:2]).dtype == model.classes_.dtype


def test_missing_labels_are_unlabeled_in_any_container_and_minus_one_is_then_a_class():
    pandas = pytest.importorskip("pandas")
    X, y, marked = make_samples()
    expected = PreferenceSVC(random_state=0).fit(X, marked)
    signs = np.where(y == 1, 1, -1)
    unlabeled = marked == -1
    names = np.array(["no", "yes"], dtype=object)[y]
    names[unlabeled] = None
    for labels, classes in [
        (np.where(unlabeled, np.nan, y), [0, 1]),
        (np.where(unlabeled, np.nan, signs), [-1, 1]),
        (np.where(unlabeled, None, signs.astype(object)), [-1, 1]),
        (pandas.Series(np.where(unlabeled, np.nan, signs)).astype("Int64"), [-1, 1]),
        (pandas.Series(names, dtype="string"), ["no", "yes"]),
        (names, ["no", "yes"]),
    ]:
        model = PreferenceSVC(random_state=0).fit(X, labels)
        assert model.classes_.tolist() == classes
        assert_array_equal(model.decision_function(X), expected.decision_function(X))
        transductive = TransductiveSVC(max_iter=50)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = transductive.fit(X[150:250], labels[150:250]).transduction_
        assert set(found) <= set(classes)
    with pytest.raises(ValueError, match="got only missing labels"):
        PreferenceSVC().fit(X, np.full(len(X), np.nan))


def test_probabilities_are_those_of_the_base_estimator_in_the_order_of_the_classes():
    X, _, marked = make_samples()
    model = PreferenceClassifier(LogisticRegression(), precision=0.9, random_state=0)
    second = clone(model).fit(X, marked).predict_proba(X)
    first = clone(model).set_params(pos_label=0).fit(X, marked)
    assert_allclose(first.predict_proba(X)[:, 0], first.estimator_.predict_proba(X)[:, 1])
    assert_allclose(second.sum(axis=1), 1.0)
    assert not hasattr(PreferenceClassifier(SVC()), "predict_proba")


def test_recomputed_pseudo_labels_of_a_random_classifier_end():
    X, _, marked = make_samples()
    forest = RandomForestClassifier(5, max_depth=3)
    model = PreferenceClassifier(
        forest, update="recompute", split="holdout", patience=3, random_state=0
    ).fit(X, marked)
    best = np.flatnonzero(model.history_["best"])[-1]
    assert model.n_iter_ <= best + 4
    limited = clone(model).set_params(patience=None, time_limit=1e-9).fit(X, marked)
    assert limited.n_iter_ == 1


@both
def test_the_warning_without_a_guarantee_reports_the_achievable_bound(estimator):
    X, _, marked = make_samples()
    model = clone(estimator).set_params(recall=0.99, confidence=0.95)
    with pytest.warns(
        UserWarning,
        match=r"With \d+ positive and \d+ negative calibration samples, recall >= 0.99 cannot be "
        r"guaranteed at confidence 0.95 \(achievable separately: recall >= 0\.\d",
    ) as caught:
        model.fit(X, marked)
    assert not model.guarantee_.guaranteed
    with pytest.warns(UserWarning, match="cannot be guaranteed") as again:
        model.set_constraints(recall=0.99, confidence=0.95)
    assert {warning.filename for warning in (*caught, *again)} == {__file__}
    model.set_constraints(recall=model.guarantee_.achievable["recall"] - 1e-6, confidence=0.95)
    assert model.guarantee_.guaranteed


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        LogisticRegression(),
        MLPClassifier((8,), max_iter=300, random_state=0, solver="lbfgs"),
        pytest.param(
            HistGradientBoostingClassifier(max_iter=20, random_state=0), marks=pytest.mark.slow
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_any_classifier_with_scores_or_probabilities_is_accepted(estimator):
    X, y, marked = make_samples(1000, 400)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "lbfgs failed to converge")
        model = PreferenceClassifier(estimator, precision=0.8, max_rounds=3, random_state=0)
        model.fit(X, marked)
    assert precision_score(y[400:], model.predict(X[400:])) > 0.7
    assert model.n_iter_ == len(model.history_["added"])


@both
@pytest.mark.parametrize("update", ["incremental", "recompute"])
def test_a_stopped_fit_resumes_from_its_checkpoint_to_the_same_bits(estimator, update, tmp_path):
    X, _, marked = make_samples(n=900)
    estimator = clone(estimator).set_params(update=update, checkpoint=tmp_path / "rounds.npz")
    whole = clone(estimator).set_params(checkpoint=None).fit(X, marked)
    assert whole.n_iter_ > 2
    recorder = Recorder(lambda context: ("slice", 1) in recorder.ended)
    stopped = clone(estimator).set_callbacks(recorder).fit(X, marked)
    assert stopped.n_iter_ == 2
    resumed = clone(estimator).fit(X, marked)
    assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
    for name, values in whole.history_.items():
        assert_array_equal(resumed.history_[name], values)
    with pytest.raises(CheckpointError, match="written for other data"):
        clone(estimator).fit(X[1:], marked[1:])
    with pytest.raises(ValueError, match="checkpoint requires random_state"):
        clone(estimator).set_params(random_state=None).fit(X, marked)


@both
def test_too_few_labels_for_a_holdout_split_are_refused_by_class(estimator):
    X, y, _ = make_samples()
    few = np.full(len(y), -1)
    few[np.flatnonzero(y == 0)[:10]] = 0
    few[np.flatnonzero(y == 1)[:1]] = 1
    with pytest.raises(
        ValueError, match=r"at least 2 labeled samples of each class .* 1 of class 1"
    ):
        clone(estimator).fit(X, few)


@both
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"split": "resubstitution", "confidence": 0.9, "recall": 0.5},
            "confidence requires samples",
        ),
        ({"confidence": 0.9}, "confidence requires a constraint"),
        ({"beta": 2.0, "cost_ratio": 3.0}, "beta and cost_ratio cannot be combined"),
        ({"pos_label": 7}, r"pos_label must be one of the labels \[0, 1\], got 7"),
        ({"recall": 0.0}, "recall"),
    ],
)
def test_parameters_that_cannot_be_combined_are_refused(estimator, parameters, message):
    X, _, marked = make_samples()
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**parameters).fit(X, marked)


@both
def test_a_confidence_counts_samples_and_refuses_weights(estimator):
    X, _, marked = make_samples()
    model = clone(estimator).set_params(recall=0.5, confidence=0.9)
    with pytest.raises(ValueError, match="sample_weight cannot be combined with confidence"):
        model.fit(X, marked, sample_weight=np.ones(len(X)))


def test_a_share_of_positive_samples_counts_without_a_confidence_too():
    """Equally many labels of each class, where a tenth of new samples is positive."""
    rng = np.random.default_rng(0)
    y = (rng.random(12000) < 0.1).astype(int)
    X = rng.normal(size=(12000, 2)) + 2.5 * y[:, np.newaxis]
    labeled = np.concatenate([np.flatnonzero(y[:4000] == label)[:300] for label in (0, 1)])
    model = PreferenceClassifier(GaussianNB(), precision=0.8, random_state=0)
    precision = {}
    for share in (None, 0.1):
        model.set_params(positive_share=share).fit(X[labeled], y[labeled])
        precision[share] = precision_score(y[4000:], model.predict(X[4000:]))
    assert precision[None] < 0.7
    assert precision[0.1] >= 0.8
    # The same threshold without training.
    threshold = model.threshold_
    assert (
        model.set_params(positive_share=None).set_constraints(precision=0.8).threshold_ < threshold
    )
    assert (
        model.set_params(positive_share=0.1).set_constraints(precision=0.8).threshold_ == threshold
    )


def test_a_smoothed_threshold_is_chosen_on_the_validation_samples():
    X, y, _ = make_samples()
    model = PreferenceClassifier(GaussianNB(), recall=0.7, threshold="smoothed", random_state=0)
    model.fit(X, y)
    assert model.threshold_ == model.constraints_.smoothed_threshold(model._validation)
    tuned = clone(model).set_params(threshold="tuned").fit(X, y)
    assert_array_equal(model.score_samples(X), tuned.score_samples(X))
    assert model.set_constraints(recall=0.95).threshold_ < tuned.threshold_


@both
def test_errors_about_unlabeled_samples_name_them(estimator):
    X, y, _ = make_samples()
    for bad, message in (
        (X[:5, :-1], "X_unlabeled is not valid. X has"),
        (X[:0], "X_unlabeled is not valid. Found array with 0 sample"),
        (X[0], "X_unlabeled is not valid. Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(X, y, X_unlabeled=bad)


def test_too_few_groups_for_a_guarantee_are_named_as_the_cause():
    X, y, _ = make_samples()
    model = PreferenceClassifier(GaussianNB(), precision=0.7, confidence=0.9, random_state=0)
    with pytest.raises(ValueError, match="groups must leave calibration samples of both classes"):
        model.fit(X, y, groups=np.zeros(len(X)))


@both
def test_several_classes_are_refused_with_advice(estimator):
    X, y, _ = make_samples()
    with pytest.raises(
        ValueError, match=r"\(-1 means unlabeled samples\).*fit one binary classifier"
    ):
        clone(estimator).fit(X, y + (X[:, 0] > 0))
    with pytest.raises(
        ValueError, match=r"\(-1 means a class, with X_unlabeled, or .*\), got 3 classes"
    ):
        clone(estimator).fit(X, np.where(X[:, 0] > 0, -1, y), X_unlabeled=X)


@both
def test_samples_without_any_label_are_refused(estimator):
    X, _, _ = make_samples()
    with pytest.raises(ValueError, match="class"):
        clone(estimator).fit(X, np.full(len(X), -1))


@both
@pytest.mark.parametrize("pos_label", [7, "1", np.nan, [1], np.array([0, 1])])
def test_a_positive_label_that_is_no_label_is_refused(estimator, pos_label):
    X, _, marked = make_samples()
    with pytest.raises(ValueError, match=r"pos_label must be one of the labels \[0, 1\]"):
        clone(estimator).set_params(pos_label=pos_label).fit(X, marked)


@both
def test_groups_of_several_types_are_refused(estimator):
    X, y, _ = make_samples()
    groups = np.array([1, "a"] * (len(X) // 2), dtype=object)
    with pytest.raises(ValueError, match="groups must be of one type, got int, str"):
        clone(estimator).fit(X, y, groups=groups)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_scores_that_are_not_numbers_are_refused_in_fit_and_prediction():
    X, y, _ = make_samples()
    # The first feature has no variance, so that its likelihood is NaN.
    constant = np.where(np.arange(X.shape[1]) == 0, 1.0, X)
    model = PreferenceClassifier(GaussianNB(var_smoothing=0.0), random_state=0)
    with pytest.raises(ValueError, match="scores of GaussianNB must be finite, got"):
        model.fit(constant, y)
    model.fit(X, y)
    model.estimator_.theta_[:] = np.nan
    with pytest.raises(ValueError, match="must be finite, got 1 of 1 that are NaN"):
        model.predict(X[:1])


@both
def test_the_positive_class_may_be_the_first(estimator):
    X, y, marked = make_samples()
    model = clone(estimator).set_params(pos_label=0, precision=0.95).fit(X, marked)
    predicted = model.predict(X[200:])
    assert precision_score(y[200:], predicted, pos_label=0) > 0.85
    assert_array_equal(
        predicted, model.classes_[(model.decision_function(X[200:]) > 0).astype(int)]
    )


@pytest.mark.parametrize("pos_label", [0, 1])
def test_the_decision_function_agrees_with_a_prediction_at_the_threshold(pos_label):
    X, _, marked = make_samples()
    model = PreferenceSVC(pos_label=pos_label, gamma=0.05).fit(X, marked)
    model.threshold_ = model.score_samples(X)[0]
    assert model.predict(X[:1]) == 1 - pos_label  # a score has to be greater than the threshold
    assert_array_equal(model.predict(X) == 1, model.decision_function(X) > 0)


def test_effective_class_weights_are_those_of_the_classes_if_the_positive_one_is_the_first():
    X, y, marked = make_samples()
    first = PreferenceSVC(pos_label=0, split="resubstitution", gamma=0.05)
    named = clone(first).set_params(class_weight="effective").fit(X, marked)
    weights = effective_class_weight(y[:200])
    explicit = clone(first).set_params(class_weight=weights).fit(X, marked)
    assert_allclose(named.decision_function(X), explicit.decision_function(X), atol=1e-9)


@both
def test_cross_validation_refuses_to_slice_unlabeled_samples(estimator):
    X, y, _ = make_samples()
    with config_context(enable_metadata_routing=True):
        with pytest.raises(TypeError, match="X_unlabeled"):
            clone(estimator).set_fit_request(X_unlabeled=True)
        with pytest.raises(TypeError, match="X_unlabeled"):
            cross_validate(clone(estimator), X[:300], y[:300], params={"X_unlabeled": X[300:]})


@both
def test_without_routing_unlabeled_samples_are_passed_on_or_sliced(estimator):
    X, y, _ = make_samples()
    for unlabeled, used in ((X[400:], 200), (X[300:], 200)):
        done = cross_validate(
            clone(estimator), X[:300], y[:300], params={"X_unlabeled": unlabeled}, cv=3,
            return_estimator=True,
        )  # fmt: skip
        assert {len(model.pseudo_labels_) for model in done["estimator"]} == {used}


@both
def test_a_search_runs_over_marked_samples(estimator):
    X, _, marked = make_samples()
    folds = [(np.r_[50:600], np.arange(50)), (np.r_[0:50, 100:600], np.arange(50, 100))]
    search = GridSearchCV(clone(estimator), {"update": ["incremental", "recompute"]}, cv=folds).fit(
        X, marked
    )
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@both
def test_fully_labeled_samples_take_one_round(estimator):
    X, y, _ = make_samples(300)
    model = clone(estimator).fit(X, y)
    assert model.n_iter_ == 1
    assert model.pseudo_labels_.shape == (0,)


@both
@pytest.mark.parametrize("threshold", ["adjusted", "zero"])
def test_other_thresholds_follow_the_constraints_as_well(estimator, threshold):
    X, _, marked = make_samples()
    model = clone(estimator).set_params(threshold=threshold).fit(X, marked)
    model.set_constraints(recall=0.99)
    assert (model.threshold_ < 0.0) == (threshold == "adjusted")
    assert (model.threshold_ == 0.0) == (threshold == "zero")


@pytest.mark.parametrize("n", [900, pytest.param(4500, marks=pytest.mark.large)])
def test_equal_validation_samples_have_equal_scores_whatever_their_number_and_labels(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))[rng.integers(0, 50, n)]
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0.0).astype(int)
    y[n // 2 :] = -1
    model = PreferenceSVC(random_state=0, gamma=0.5, precision=0.8, split="holdout").fit(X, y)
    scores = model._validation[0]
    validation = model._split_labels(model._validate_fit(X, y, None, None)).validation
    assert len(np.unique(scores)) <= len(np.unique(X[validation], axis=0))
    assert_allclose(model.score_samples(X[validation]), scores, atol=1e-9)


def test_frames_texts_and_missing_values_reach_a_classifier_that_accepts_them():
    pandas = pytest.importorskip("pandas")
    X, y, marked = make_samples()
    frame = pandas.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    frame.iloc[::7, 0] = np.nan
    trees = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    model = PreferenceClassifier(trees, random_state=0).fit(frame, marked)
    separate = PreferenceClassifier(trees, random_state=0)
    separate.fit(frame[:200], y[:200], X_unlabeled=frame[200:])
    assert_array_equal(model.predict(frame), separate.predict(frame))
    assert list(model.estimator_.feature_names_in_) == list(frame.columns)
    texts = ["good food" if label else "bad food" for label in y]
    words = PreferenceClassifier(
        make_pipeline(CountVectorizer(), LogisticRegression()), random_state=0
    )
    assert words.fit(texts, marked).score(texts, y) == 1.0


def test_frames_and_arrays_are_not_mixed():
    pandas = pytest.importorskip("pandas")
    X, y, _ = make_samples()
    frame = pandas.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    model = PreferenceClassifier(GaussianNB(), random_state=0)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(TypeError, match="X_unlabeled must be a DataFrame if X is"),
    ):
        model.fit(frame[:200], y[:200], X_unlabeled=X[200:])
    with pytest.raises(TypeError, match="X_unlabeled must be sparse if X is"):
        model.fit(X[:200], y[:200], X_unlabeled=sparse.csr_array(X[200:]))


@pytest.mark.parametrize("estimator", [*ESTIMATORS, TransductiveSVC(gamma=0.05)], ids=str)
def test_marked_samples_give_the_same_in_any_container_and_for_any_number_of_jobs(estimator):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, _, marked = make_samples(300, 120)
    names = [f"c{k}" for k in range(X.shape[1])]
    expected = clone(estimator).fit(X, marked).decision_function(X)
    for given, labels in [
        (pandas.DataFrame(X, columns=names), pandas.Series(marked)),
        (polars.DataFrame(X, schema=names), polars.Series(marked)),
        (X.tolist(), marked.tolist()),
    ]:
        model = clone(estimator).fit(given, labels)
        assert_array_equal(model.decision_function(given), expected)
    thin = clone(estimator).set_params(**TIGHT[type(estimator)]).fit(sparse.csr_array(X), marked)
    dense = clone(estimator).set_params(**TIGHT[type(estimator)]).fit(X, marked)
    assert_allclose(thin.decision_function(X), dense.decision_function(X), atol=1e-6)
    folds = [(np.r_[40 * k + 40 : 300], np.r_[40 * k : 40 * k + 40]) for k in range(2)]
    alone, together = (
        cross_validate(estimator, X, marked, cv=folds, n_jobs=jobs, return_estimator=True)
        for jobs in (1, 2)
    )
    for one, other in zip(alone["estimator"], together["estimator"], strict=True):
        assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_a_mark_that_was_converted_to_a_string_is_refused():
    X, _, _ = make_samples(6)
    with pytest.raises(ValueError, match="array of dtype object"):
        PreferenceSVC().fit(X, ["yes", "no", "yes", "no", -1, -1])


@both
def test_a_recalibration_that_is_refused_changes_nothing(estimator):
    X, y, marked = make_samples()
    model = clone(estimator).set_params(recall=0.5, confidence=0.9).fit(X, marked)
    before, guarantee = model.threshold_, model.guarantee_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="cannot be guaranteed"):
            model.set_constraints(recall=0.999, confidence=0.9)
        with pytest.raises(UserWarning, match="cannot be guaranteed"):
            model.set_params(recall=0.95).recalibrate(X[:8], [0, 1] * 4)
    assert (model.threshold_, model.guarantee_) == (before, guarantee)
    model.set_params(recall=0.5).recalibrate(X[200:], y[200:])
    assert model.guarantee_.guaranteed


def test_a_solver_that_did_not_converge_is_reported():
    X, _, marked = make_samples()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3.*Largest relative duality gap"):
        PreferenceSVC(max_iter=3, random_state=0).fit(X, marked)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        TransductiveSVC(max_iter=3).fit(X, marked)


@both
def test_rounds_give_the_same_bits_on_any_number_of_threads_and_after_pickling(estimator):
    X, _, marked = make_samples(2600, 500)
    expected = clone(estimator).fit(X, marked)
    with threadpool_limits(1):
        single = clone(estimator).fit(X, marked)
    again = pickle.loads(pickle.dumps(expected))
    for model in (single, again):
        assert_array_equal(model.decision_function(X), expected.decision_function(X))
        assert_array_equal(model.pseudo_labels_, expected.pseudo_labels_)


@pytest.mark.parametrize(
    "estimator", [*ESTIMATORS, TransductiveSVC()], ids=["svc", "classifier", "tsvm"]
)
def test_an_unlabeled_sample_of_weight_zero_is_left_out(estimator):
    X, _, marked = make_samples(120, 60)
    weight = np.ones(120)
    weight[100:] = 0.0
    without = clone(estimator).fit(X[:100], marked[:100], sample_weight=np.ones(100))
    model = clone(estimator).fit(X, marked, sample_weight=weight)
    assert_array_equal(model.decision_function(X), without.decision_function(X))


def test_a_classifier_without_scores_is_refused():
    voting = VotingClassifier([("nb", GaussianNB())], voting="hard")
    X, _, marked = make_samples(100, 60)
    with pytest.raises(ValueError, match="'estimator' parameter"):
        PreferenceClassifier(voting).fit(X, marked)


@both
@pytest.mark.parametrize("margin", [0.9, None])
def test_bounds_that_no_threshold_meets_are_reported(estimator, margin):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.permutation(np.repeat([0, 1], 30))
    with pytest.warns(UserWarning, match=r"No threshold meets precision >= 0\.99") as caught:
        model = clone(estimator).set_params(precision=0.99, recall=0.9, margin=margin).fit(X, y)
    assert caught[0].filename == __file__
    assert ("margins reached: precision" in str(caught[0].message)) == (margin is not None)
    with pytest.warns(UserWarning, match="No threshold meets recall"):
        model.set_constraints(recall=1.0, margin=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_constraints(recall=0.5, margin=margin)


@pytest.mark.parametrize(
    "meta",
    [
        BaggingClassifier,
        OutputCodeClassifier,
        FixedThresholdClassifier,
        TunedThresholdClassifierCV,
        lambda base: StackingClassifier([("base", base)]),
        lambda base: StackingClassifier([("bayes", GaussianNB())], final_estimator=base),
        lambda base: VotingClassifier([("base", base)]),
        CodeMatrixClassifier,
        lambda base: CodeMatrixClassifier(OneVsRestClassifier(base)),
        lambda base: RescaledClassifier(CalibratedClassifierCV(base)),
        RescaledClassifier,
    ],
)
def test_meta_estimators_that_take_minus_one_for_a_class_are_refused(meta):
    X, _, marked = make_samples(120, 60)
    base = PreferenceClassifier(GaussianNB(), random_state=0)
    with pytest.raises(ValueError, match=r"class to|Only binary classification"):
        meta(base).fit(X, marked)


@pytest.mark.parametrize(
    ("meta", "classes"),
    [
        # These cannot be refused: the guide names them.
        (OneVsRestClassifier, [-1, 0, 1]),
        (OneVsOneClassifier, [-1, 0, 1]),
        (CalibratedClassifierCV, [-1, 0, 1]),
        # These leave unlabeled samples to the classifier.
        (SelfTrainingClassifier, [0, 1]),
        (lambda base: make_pipeline(StandardScaler(), base), [0, 1]),
    ],
)
def test_other_meta_estimators_do_with_unlabeled_samples_what_the_guide_states(meta, classes):
    X, _, marked = make_samples(120, 60)
    base = PreferenceClassifier(GaussianNB(), random_state=0)
    assert meta(base).fit(X, marked).classes_.tolist() == classes

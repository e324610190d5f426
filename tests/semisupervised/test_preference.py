"""Preference machines: what they learn from, what they promise, and how they go on."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import binomtest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.suites.callbacks import Recorder
from threadpoolctl import threadpool_limits

from widemargin import SVC, PreferenceClassifier, PreferenceSVC, TransductiveSVC
from widemargin._base.checkpoint import CheckpointError

MACHINES = [
    PreferenceSVC(random_state=0, gamma=0.05),
    PreferenceClassifier(SVC(gamma=0.05), random_state=0),
]
HALVES = {
    "check_class_weight_classifiers": "the threshold follows the demand, whatever the weights",
    "check_classifiers_classes": "-1 marks rows without a label",
    "check_sample_weight_equivalence_on_dense_data": "copies fall into both halves",
    "check_sample_weight_equivalence_on_sparse_data": "copies fall into both halves",
}
TIGHT = {
    PreferenceSVC: {"tol": 1e-8},
    PreferenceClassifier: {"estimator__tol": 1e-8},
    TransductiveSVC: {"tol": 1e-8},
}
both = pytest.mark.parametrize("machine", MACHINES, ids=["svc", "classifier"])


def rows(n=600, labels=200, seed=0, **options):
    X, y = make_classification(n, weights=[0.7], flip_y=0.1, random_state=seed, **options)
    marked = y.copy()
    marked[labels:] = -1
    return X, y, marked


@pytest.mark.slow
@parametrize_with_checks(
    [clone(machine) for machine in MACHINES],
    expected_failed_checks=lambda estimator: HALVES,
)
def test_halves_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@both
def test_marked_rows_and_rows_given_apart_are_the_same(machine):
    X, y, marked = rows()
    by_mark = clone(machine).fit(X, marked)
    apart = clone(machine).fit(X[:200], y[:200], X_unlabeled=X[200:])
    assert_array_equal(by_mark.decision_function(X), apart.decision_function(X))
    assert len(by_mark.soft_labels_) == 400


@both
def test_minus_one_is_a_label_where_unlabelled_rows_are_given_apart(machine):
    X, y, _ = rows()
    signs = np.where(y == 1, 1, -1)
    model = clone(machine).fit(X[:200], signs[:200], X_unlabeled=X[200:])
    assert_array_equal(model.classes_, [-1, 1])


def test_names_may_be_of_any_kind_and_objects_are_marked_too():
    X, y, marked = rows()
    names = np.array(["no", "yes"], dtype=object)[y]
    names[marked == -1] = -1
    plain = PreferenceSVC(random_state=0).fit(X, marked)
    named = PreferenceSVC(random_state=0).fit(X, names)
    assert_array_equal(named.predict(X), np.array(["no", "yes"], dtype=object)[plain.predict(X)])


def test_the_kernel_machine_is_the_classifier_over_an_svc():
    X, _, marked = rows()
    for options in ({}, {"update": "rec"}, {"precision": 0.8}, {"recall": 0.9}):
        exact = {"tol": 1e-8, "gamma": 0.05}
        own = PreferenceSVC(random_state=0, **exact, **options).fit(X, marked)
        other = PreferenceClassifier(SVC(**exact), random_state=0, **options).fit(X, marked)
        for name in own.history_:
            assert_allclose(own.history_[name], other.history_[name], atol=1e-6)
        assert_allclose(own.decision_function(X), other.decision_function(X), atol=1e-6)


def test_weights_sparse_rows_and_class_weights_reach_the_kernel_machine():
    X, _, marked = rows()
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    options = {"random_state": 0, "tol": 1e-8, "gamma": 0.05, "class_weight": {0: 1.0, 1: 3.0}}
    dense = PreferenceSVC(**options).fit(X, marked, sample_weight=weight)
    thin = PreferenceSVC(**options).fit(sparse.csr_array(X), marked, sample_weight=weight)
    assert_allclose(thin.decision_function(X), dense.decision_function(X), atol=1e-6)
    svc = SVC(tol=1e-8, gamma=0.05, class_weight={0: 1.0, 1: 3.0})
    other = PreferenceClassifier(svc, random_state=0).fit(X, marked, sample_weight=weight)
    assert_allclose(other.history_["f1"][0], dense.history_["f1"][0], atol=1e-9)


@both
def test_a_demand_is_met_on_the_rows_that_judge(machine):
    X, _, marked = rows()
    for demand in ({"precision": 0.9}, {"recall": 0.9}, {"precision": 0.6, "recall": 0.6}):
        model = clone(machine).set_params(**demand).fit(X, marked)
        scores, truth, _ = model._steering
        accepted = scores > model.threshold_
        if "precision" in demand:
            assert precision_score(truth, accepted) >= demand["precision"]
        if "recall" in demand:
            assert recall_score(truth, accepted) >= demand["recall"]


@both
def test_a_change_of_mind_is_the_threshold_of_another_demand_without_a_fit(machine):
    X, _, marked = rows()
    model = clone(machine).fit(X, marked)
    learned = model.history_
    before = model.threshold_
    model.set_demand(precision=0.95)
    assert model.threshold_ > before
    assert model.precision == 0.95
    assert model.history_ is learned
    model.set_demand(recall=0.95)
    assert model.precision is None
    assert model.threshold_ < before
    assert model.set_demand().threshold_ == before


@both
def test_a_wrong_demand_is_refused_and_changes_nothing(machine):
    X, _, marked = rows()
    model = clone(machine).set_params(precision=0.8).fit(X, marked)
    before = model.threshold_
    with pytest.raises(TypeError, match="accuracy"):
        model.set_demand(accuracy=0.9)
    with pytest.raises(ValueError, match="precision"):
        model.set_demand(precision=1.5)
    with pytest.raises(ValueError, match="confidence needs rows that have not been used"):
        model.set_demand(recall=0.5, confidence=0.9)
    assert model.get_params()["precision"] == 0.8
    assert model.threshold_ == before


@both
def test_new_rows_recalibrate(machine):
    X, y, marked = rows(2000)
    model = clone(machine).set_params(precision=0.8).fit(X[:1000], marked[:1000])
    model.recalibrate(X[1000:], y[1000:])
    assert precision_score(y[1000:], model.predict(X[1000:])) >= 0.8
    model.set_demand(recall=0.6, confidence=0.9)
    assert model.promise_.kept
    with pytest.raises(ValueError, match="y must hold one of the labels"):
        model.recalibrate(X[:3], [0, 1, 7])
    with pytest.raises(ValueError, match="y must hold one of the labels"):
        model.recalibrate(X[:3], [0, 0, 0])


@pytest.mark.parametrize("demand", [{"precision": 0.8}, {"recall": 0.85}], ids=str)
@pytest.mark.parametrize("n_unlabeled", [400, 0])
@pytest.mark.parametrize(
    ("machine", "problems"),
    [
        pytest.param(PreferenceClassifier(GaussianNB(), max_rounds=3), 60, id="classifier"),
        pytest.param(PreferenceClassifier(GaussianNB(), max_rounds=1), 60, id="one round"),
        pytest.param(PreferenceSVC(max_rounds=3), 60, id="svc", marks=pytest.mark.large),
        pytest.param(
            PreferenceClassifier(GaussianNB(), max_rounds=3),
            240,
            id="classifier 240",
            marks=pytest.mark.slow,
        ),
        pytest.param(PreferenceSVC(max_rounds=3), 240, id="svc 240", marks=pytest.mark.slow),
    ],
)
def test_promises_of_fits_hold_at_the_promised_rate_on_new_rows(
    machine, problems, n_unlabeled, demand
):
    kept = held = 0
    name, limit = next(iter(demand.items()))
    measure = {"precision": precision_score, "recall": recall_score}[name]
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        share, noise = rng.uniform(0.5, 0.9), rng.uniform(0.0, 0.1)
        n = int(rng.integers(150, 1500))
        X, y = make_classification(
            n + 400 + 4000, 6, n_informative=4, n_redundant=0, weights=[share], flip_y=noise,
            class_sep=rng.uniform(0.8, 2.0), random_state=seed,
        )  # fmt: skip
        model = clone(machine).set_params(**demand, confidence=0.9, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "precision .* cannot be promised")
            warnings.filterwarnings("ignore", "recall .* cannot be promised")
            model.fit(X[:n], y[:n], X_unlabeled=X[n : n + n_unlabeled] if n_unlabeled else None)
        if model.promise_.kept:
            kept += 1
            held += measure(y[n + 400 :], model.predict(X[n + 400 :])) >= limit
    assert kept >= problems // 4
    # That the rate is at least the promised one is not rejected at a level of one in a thousand.
    assert binomtest(held, kept, 0.9, alternative="less").pvalue > 1e-3


@both
def test_one_round_is_certified_by_the_rows_that_judge_it(machine):
    X, y, marked = rows()
    asked = clone(machine).set_params(recall=0.5, confidence=0.9)
    three, one, alone = (
        clone(asked).fit(X, marked),
        clone(asked).set_params(max_rounds=1).fit(X, marked),
        clone(asked).fit(X[:200], y[:200]),
    )
    # Both classes are odd in number: the last half has one row of each less.
    assert [len(model._certifying[1]) for model in (three, one, alone)] == [66, 99, 99]
    assert_array_equal(one._certifying[0], one._steering[0])
    # The scorer has seen none of them: it is that of half of the labels.
    plain = clone(machine).set_params(max_rounds=1).fit(X, marked)
    assert_allclose(one._raw_scores(X), plain._raw_scores(X), atol=1e-6)


@both
def test_what_cannot_be_promised_is_said_with_what_could_be(machine):
    X, _, marked = rows()
    model = clone(machine).set_params(recall=0.99, confidence=0.95)
    with pytest.warns(
        UserWarning, match=r"recall 0.99 cannot be promised .* alone, recall 0\.\d"
    ) as caught:
        model.fit(X, marked)
    assert not model.promise_.kept
    with pytest.warns(UserWarning, match="cannot be promised") as again:
        model.set_demand(recall=0.99, confidence=0.95)
    assert {warning.filename for warning in (*caught, *again)} == {__file__}
    model.set_demand(recall=model.promise_.possible["recall"] - 1e-6, confidence=0.95)
    assert model.promise_.kept


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        LogisticRegression(),
        MLPClassifier((8,), max_iter=300, random_state=0, solver="lbfgs"),
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_any_classifier_with_scores_or_probabilities_will_do(estimator):
    X, y, marked = rows(1000, 400)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "lbfgs failed to converge")
        model = PreferenceClassifier(estimator, precision=0.8, random_state=0).fit(X, marked)
    assert precision_score(y[400:], model.predict(X[400:])) > 0.7
    assert model.n_iter_ == len(model.history_["added"])


@both
@pytest.mark.parametrize("update", ["inc", "rec"])
def test_a_fit_that_was_stopped_goes_on_from_its_checkpoint_to_the_same_bits(
    machine, update, tmp_path
):
    X, _, marked = rows(n=900)
    machine = clone(machine).set_params(update=update, checkpoint=tmp_path / "rounds.npz")
    whole = clone(machine).set_params(checkpoint=None).fit(X, marked)
    assert whole.n_iter_ > 2
    recorder = Recorder(lambda context: ("slice", 1) in recorder.ended)
    stopped = clone(machine).set_callbacks(recorder).fit(X, marked)
    assert stopped.n_iter_ == 2
    resumed = clone(machine).fit(X, marked)
    assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
    for name, values in whole.history_.items():
        assert_array_equal(resumed.history_[name], values)
    with pytest.raises(CheckpointError, match="written for other data"):
        clone(machine).fit(X[1:], marked[1:])
    with pytest.raises(ValueError, match="checkpoint requires random_state"):
        clone(machine).set_params(random_state=None).fit(X, marked)


@both
def test_too_few_labels_for_the_halves_are_refused_by_class(machine):
    X, y, _ = rows()
    few = np.full(len(y), -1)
    few[np.flatnonzero(y == 0)[:10]] = 0
    few[np.flatnonzero(y == 1)[:1]] = 1
    with pytest.raises(ValueError, match=r"at least 2 rows of every class .* got 1 of class 1"):
        clone(machine).fit(X, few)


@both
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"split": "full", "confidence": 0.9, "recall": 0.5}, "confidence needs rows"),
        ({"confidence": 0.9}, "confidence needs something to promise"),
        ({"beta": 2.0, "cost_ratio": 3.0}, "beta and cost_ratio exclude each other"),
        ({"pos_label": 7}, r"pos_label must be one of the labels \[0, 1\], got 7"),
        ({"recall": 0.0}, "recall"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(machine, parameters, message):
    X, _, marked = rows()
    with pytest.raises(ValueError, match=message):
        clone(machine).set_params(**parameters).fit(X, marked)


@both
def test_a_confidence_counts_rows_and_refuses_weights(machine):
    X, _, marked = rows()
    model = clone(machine).set_params(recall=0.5, confidence=0.9)
    with pytest.raises(ValueError, match="cannot be had with sample_weight"):
        model.fit(X, marked, sample_weight=np.ones(len(X)))


@both
def test_several_classes_are_refused_with_advice(machine):
    X, y, _ = rows()
    with pytest.raises(
        ValueError, match=r"\(-1 marks rows without one\).*fit one machine for each"
    ):
        clone(machine).fit(X, y + (X[:, 0] > 0))
    with pytest.raises(ValueError, match=r"\(-1 is one, with X_unlabeled\), got 3 classes"):
        clone(machine).fit(X, np.where(X[:, 0] > 0, -1, y), X_unlabeled=X)


@both
def test_rows_that_are_all_without_labels_are_refused(machine):
    X, _, _ = rows()
    with pytest.raises(ValueError, match="class"):
        clone(machine).fit(X, np.full(len(X), -1))


@both
def test_the_positive_class_may_be_the_first(machine):
    X, y, marked = rows()
    model = clone(machine).set_params(pos_label=0, precision=0.95).fit(X, marked)
    predicted = model.predict(X[200:])
    assert precision_score(y[200:], predicted, pos_label=0) > 0.85
    assert_array_equal(
        predicted, model.classes_[(model.decision_function(X[200:]) > 0).astype(int)]
    )


@both
def test_cross_validation_refuses_to_slice_unlabelled_rows(machine):
    X, y, _ = rows()
    with config_context(enable_metadata_routing=True):
        with pytest.raises(TypeError, match="X_unlabeled"):
            clone(machine).set_fit_request(X_unlabeled=True)
        with pytest.raises(TypeError, match="X_unlabeled"):
            cross_validate(clone(machine), X[:300], y[:300], params={"X_unlabeled": X[300:]})


@both
def test_without_routing_unlabelled_rows_are_handed_on_or_some_are_lost(machine):
    X, y, _ = rows()
    for given, kept in ((X[400:], 200), (X[300:], 200)):
        done = cross_validate(
            clone(machine), X[:300], y[:300], params={"X_unlabeled": given}, cv=3,
            return_estimator=True,
        )  # fmt: skip
        assert {len(model.soft_labels_) for model in done["estimator"]} == {kept}


@both
def test_a_search_runs_over_marked_rows(machine):
    X, _, marked = rows()
    folds = [(np.r_[50:600], np.arange(50)), (np.r_[0:50, 100:600], np.arange(50, 100))]
    search = GridSearchCV(clone(machine), {"update": ["inc", "rec"]}, cv=folds).fit(X, marked)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@both
def test_rows_without_any_label_missing_are_calibrated_in_one_round(machine):
    X, y, _ = rows(300)
    model = clone(machine).fit(X, y)
    assert model.n_iter_ == 1
    assert model.soft_labels_.shape == (0,)


@both
@pytest.mark.parametrize("threshold", ["adjusted", "zero"])
def test_other_thresholds_follow_the_demand_as_well(machine, threshold):
    X, _, marked = rows()
    model = clone(machine).set_params(threshold=threshold).fit(X, marked)
    model.set_demand(recall=0.99)
    assert (model.threshold_ < 0.0) == (threshold == "adjusted")
    assert (model.threshold_ == 0.0) == (threshold == "zero")


@pytest.mark.parametrize("n", [900, pytest.param(4500, marks=pytest.mark.large)])
def test_equal_rows_judge_with_equal_scores_however_many_there_are_and_whatever_their_labels(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))[rng.integers(0, 50, n)]
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0.0).astype(int)
    y[n // 2 :] = -1
    model = PreferenceSVC(random_state=0, gamma=0.5, precision=0.8).fit(X, y)
    scores = model._steering[0]
    parts = model._parts(model._check_training(X, y, None, None))
    assert len(np.unique(scores)) <= len(np.unique(X[parts[1]], axis=0))
    assert_allclose(model._raw_scores(X[parts[1]]), scores, atol=1e-9)


def test_frames_texts_and_missing_values_reach_a_classifier_that_takes_them():
    pandas = pytest.importorskip("pandas")
    X, y, marked = rows()
    frame = pandas.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    frame.iloc[::7, 0] = np.nan
    trees = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    model = PreferenceClassifier(trees, random_state=0).fit(frame, marked)
    apart = PreferenceClassifier(trees, random_state=0)
    apart.fit(frame[:200], y[:200], X_unlabeled=frame[200:])
    assert_array_equal(model.predict(frame), apart.predict(frame))
    assert list(model.estimator_.feature_names_in_) == list(frame.columns)
    texts = ["good food" if label else "bad food" for label in y]
    words = PreferenceClassifier(
        make_pipeline(CountVectorizer(), LogisticRegression()), random_state=0
    )
    assert words.fit(texts, marked).score(texts, y) == 1.0


def test_frames_and_arrays_are_not_mixed():
    pandas = pytest.importorskip("pandas")
    X, y, _ = rows()
    frame = pandas.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    model = PreferenceClassifier(GaussianNB(), random_state=0)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(TypeError, match="X_unlabeled must be a data frame if X is"),
    ):
        model.fit(frame[:200], y[:200], X_unlabeled=X[200:])
    with pytest.raises(TypeError, match="X_unlabeled must be sparse if X is"):
        model.fit(X[:200], y[:200], X_unlabeled=sparse.csr_array(X[200:]))


@pytest.mark.parametrize("machine", [*MACHINES, TransductiveSVC(gamma=0.05)], ids=str)
def test_marked_rows_are_the_same_in_any_container_and_for_any_number_of_jobs(machine):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, _, marked = rows(300, 120)
    names = [f"c{k}" for k in range(X.shape[1])]
    expected = clone(machine).fit(X, marked).decision_function(X)
    for given, labels in [
        (pandas.DataFrame(X, columns=names), pandas.Series(marked)),
        (polars.DataFrame(X, schema=names), polars.Series(marked)),
        (X.tolist(), marked.tolist()),
    ]:
        model = clone(machine).fit(given, labels)
        assert_array_equal(model.decision_function(given), expected)
    thin = clone(machine).set_params(**TIGHT[type(machine)]).fit(sparse.csr_array(X), marked)
    dense = clone(machine).set_params(**TIGHT[type(machine)]).fit(X, marked)
    assert_allclose(thin.decision_function(X), dense.decision_function(X), atol=1e-6)
    folds = [(np.r_[40 * k + 40 : 300], np.r_[40 * k : 40 * k + 40]) for k in range(2)]
    alone, together = (
        cross_validate(machine, X, marked, cv=folds, n_jobs=jobs, return_estimator=True)
        for jobs in (1, 2)
    )
    for one, other in zip(alone["estimator"], together["estimator"], strict=True):
        assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_a_mark_that_has_become_a_text_is_told_of():
    X, _, _ = rows(6)
    with pytest.raises(ValueError, match="array of dtype object"):
        PreferenceSVC().fit(X, ["yes", "no", "yes", "no", -1, -1])


@both
def test_a_recalibration_that_is_refused_changes_nothing(machine):
    X, y, marked = rows()
    model = clone(machine).set_params(recall=0.5, confidence=0.9).fit(X, marked)
    before, promised = model.threshold_, model.promise_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="cannot be promised"):
            model.set_demand(recall=0.999, confidence=0.9)
        with pytest.raises(UserWarning, match="cannot be promised"):
            model.set_params(recall=0.95).recalibrate(X[:8], [0, 1] * 4)
    assert (model.threshold_, model.promise_) == (before, promised)
    model.set_params(recall=0.5).recalibrate(X[200:], y[200:])
    assert model.promise_.kept


def test_a_solver_that_max_iter_stops_is_told_of():
    X, _, marked = rows()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3.*times; largest relative duality gap"):
        PreferenceSVC(max_iter=3, random_state=0).fit(X, marked)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        TransductiveSVC(max_iter=3).fit(X, marked)


@both
def test_rounds_give_the_same_bits_on_any_number_of_threads_and_after_pickling(machine):
    X, _, marked = rows(2600, 500)
    expected = clone(machine).fit(X, marked)
    with threadpool_limits(1):
        single = clone(machine).fit(X, marked)
    again = pickle.loads(pickle.dumps(expected))
    for model in (single, again):
        assert_array_equal(model.decision_function(X), expected.decision_function(X))
        assert_array_equal(model.soft_labels_, expected.soft_labels_)


@pytest.mark.parametrize(
    "machine", [*MACHINES, TransductiveSVC()], ids=["svc", "classifier", "tsvm"]
)
def test_an_unlabelled_row_of_weight_zero_is_left_out(machine):
    X, _, marked = rows(120, 60)
    weight = np.ones(120)
    weight[100:] = 0.0
    without = clone(machine).fit(X[:100], marked[:100], sample_weight=np.ones(100))
    model = clone(machine).fit(X, marked, sample_weight=weight)
    assert_array_equal(model.decision_function(X), without.decision_function(X))


def test_a_classifier_without_scores_is_refused():
    voting = VotingClassifier([("nb", GaussianNB())], voting="hard")
    X, _, marked = rows(100, 60)
    with pytest.raises(ValueError, match="'estimator' parameter"):
        PreferenceClassifier(voting).fit(X, marked)

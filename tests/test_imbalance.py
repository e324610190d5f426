"""Rescaling and reports, beside closed forms, scikit-learn and imbalanced-learn."""

from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    recall_score,
)
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from widemargin import (
    SVC,
    CodeMatrixClassifier,
    LinearSVC,
    PreferenceClassifier,
    RescaledClassifier,
    imbalance_report,
)
from widemargin.datasets import make_long_tail


@pytest.fixture(scope="module")
def rare():
    """Two Gaussians whose boundary is known: 950 samples around (0, 0), 50 around (2, 0)."""
    rng = np.random.default_rng(0)
    y = np.repeat(["frequent", "rare"], [950, 50])
    return rng.standard_normal((1000, 2)) + 2.0 * np.outer(y == "rare", [1, 0]), y


@pytest.fixture(scope="module")
def tail():
    return make_long_tail(600, 4, imbalance=30, random_state=0)


def test_two_classes_are_decided_by_the_ratio_of_their_counts(rare):
    X, y = rare
    model = RescaledClassifier(LogisticRegression()).fit(X, y)
    p = model.estimator_.predict_proba(X)[:, 1]
    assert_array_equal(model.predict(X) == "rare", p / (1 - p) > 50 / 950)
    assert_allclose(model.training_priors_, [0.95, 0.05])
    assert_allclose(model.priors_, [0.5, 0.5])


def test_several_classes_are_divided_by_their_priors(tail):
    X, y = tail
    model = RescaledClassifier(GaussianNB()).fit(X, y)
    expected = GaussianNB().fit(X, y).predict_proba(X) / np.bincount(y)
    assert_allclose(model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True))
    assert_array_equal(model.predict(X), expected.argmax(axis=1))


def test_a_bayes_classifier_with_other_priors_is_one_fitted_with_them(tail):
    X, y = tail
    priors = np.array([0.1, 0.2, 0.3, 0.4])
    told = GaussianNB(priors=priors).fit(X, y)
    for given in (priors, (10 * priors).tolist(), dict(enumerate(priors))):
        model = RescaledClassifier(GaussianNB(), priors=given).fit(X, y)
        assert_allclose(model.predict_proba(X), told.predict_proba(X), atol=1e-12)


def test_the_priors_of_the_training_data_change_nothing(tail):
    X, y = tail
    plain = GaussianNB().fit(X, y)
    for priors in (None, np.bincount(y)):
        model = RescaledClassifier(GaussianNB(), priors=priors).fit(X, y)
        assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-12)
        assert_array_equal(model.predict(X), plain.predict(X))


def test_costs_inverse_to_priors_decide_as_uniform_priors(tail):
    X, y = tail
    expected = RescaledClassifier(GaussianNB()).fit(X, y).predict(X)
    costs = 1.0 / np.bincount(y)
    for given in (costs, dict(enumerate(costs)), costs[:, np.newaxis] * (1 - np.eye(4))):
        model = RescaledClassifier(GaussianNB(), priors=None, costs=given).fit(X, y)
        assert_array_equal(model.predict(X), expected)


def test_the_decision_has_the_least_expected_cost(tail):
    X, y = tail
    costs = np.random.default_rng(0).uniform(0, 5, (4, 4))
    model = RescaledClassifier(GaussianNB(), priors=None, costs=costs).fit(X, y)
    p = GaussianNB().fit(X, y).predict_proba(X)
    expected = [[sum(row[k] * costs[k, j] for k in range(4)) for j in range(4)] for row in p]
    assert_array_equal(model.predict(X), np.argmin(expected, axis=1))


@pytest.mark.parametrize("classifier", [SVC(class_weight="balanced"), LinearSVC()])
def test_classifiers_without_probabilities_are_calibrated_first(rare, classifier):
    X, y = rare
    model = RescaledClassifier(classifier).fit(X, y)
    assert isinstance(model.estimator_, CalibratedClassifierCV)
    assert len(model.estimator_.calibrated_classifiers_) == 1
    p = model.estimator_.predict_proba(X)[:, 1]
    assert_array_equal(model.predict(X) == "rare", p / (1 - p) > 50 / 950)
    assert recall_score(y, model.predict(X), pos_label="rare") > 0.7
    plain = classifier.set_params(class_weight=None).fit(X, y)
    assert recall_score(y, plain.predict(X), pos_label="rare") < 0.5


def test_rescaling_comes_near_the_best_boundary(rare):
    X, y = rare
    model = RescaledClassifier(SVC(kernel="linear", class_weight="balanced")).fit(X, y)
    # Halfway between the means is best when both classes are equally likely.
    assert (model.predict(X) == np.where(X[:, 0] > 1, "rare", "frequent")).mean() > 0.93


def test_few_samples_of_a_class_are_enough_for_as_many_folds():
    X, y = make_long_tail(200, 3, imbalance=60, random_state=1)
    assert np.bincount(y).min() == 3
    model = RescaledClassifier(SVC()).fit(X, y)
    assert model.estimator_.cv == 3
    single = np.append(y, 3)
    with pytest.raises(ValueError, match=r"two samples of each class to calibrate SVC, got 1"):
        RescaledClassifier(SVC()).fit(np.vstack([X, X[:1]]), single)


def test_sample_weights_change_priors_and_models(rare):
    X, y = rare
    weights = np.where(y == "rare", 19.0, 1.0)
    model = RescaledClassifier(LogisticRegression(tol=1e-8)).fit(X, y, sample_weight=weights)
    plain = LogisticRegression(tol=1e-8).fit(X, y, sample_weight=weights)
    assert_allclose(model.training_priors_, [0.5, 0.5])
    assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_a_class_without_weight_is_left_out(tail):
    X, y = tail
    for classifier in (GaussianNB(), SVC()):
        model = RescaledClassifier(classifier).fit(X, y, sample_weight=(y != 1).astype(float))
        assert_array_equal(model.classes_, [0, 2, 3])
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert set(model.predict(X)) <= {0, 2, 3}


def test_it_serves_in_searches_and_around_codes(tail):
    X, y = tail
    codes = CodeMatrixClassifier(SVC(), code="ovo")
    search = GridSearchCV(
        RescaledClassifier(codes),
        {"estimator__estimator__C": [0.1, 1.0], "priors": [None, "uniform"]},
        scoring="balanced_accuracy",
        cv=3,
    ).fit(X, y)
    assert search.best_params_["priors"] == "uniform"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"priors": [1, 2]},
            r"priors must contain one number for each of the 4 classes, got shape",
        ),
        ({"priors": {0: 1.0}}, r"priors must contain one number for each of the classes \[0, 1"),
        ({"priors": [1, 1, 1, -1]}, "priors must be non-negative and not all 0"),
        ({"priors": [0, 0, 0, 0]}, "priors must be non-negative and not all 0"),
        ({"costs": [1, 1, 1, -1]}, "costs by class must be non-negative"),
        ({"costs": np.ones((2, 2))}, r"a row and a column for each of the 4 classes, got shape"),
        ({"costs": [1, 1, np.nan, 1]}, "costs contains NaN"),
        (
            {"costs": dict.fromkeys(range(5), 1.0)},
            "costs must contain one number for each of the classes",
        ),
    ],
)
def test_impossible_priors_and_costs_are_refused(tail, options, message):
    with pytest.raises(ValueError, match=message):
        RescaledClassifier(GaussianNB(), **options).fit(*tail)


class WithoutWeights(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return X


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_probabilities_that_are_not_numbers_are_refused(tail):
    X, y = tail
    model = RescaledClassifier(GaussianNB()).fit(X, y)
    model.estimator_.theta_[:] = np.nan
    with pytest.raises(ValueError, match="probabilities of GaussianNB must be numbers, got NaN"):
        model.predict(X[:2])


def test_weights_that_the_estimator_does_not_accept_are_refused(tail):
    with pytest.raises(TypeError, match=r"fit of WithoutWeights\(\) does not accept it"):
        RescaledClassifier(WithoutWeights()).fit(*tail, sample_weight=np.ones(600))


def test_the_report_agrees_with_scikit_learn(tail):
    X, y = tail
    model = RescaledClassifier(GaussianNB()).fit(X, y)
    scores, predicted = model.predict_proba(X), model.predict(X)
    weights = np.arange(len(y)) % 3 + 1.0
    for weight in (None, weights):
        for given in (scores, predicted):
            report = imbalance_report(y, given, sample_weight=weight)
            options = {"sample_weight": weight}
            assert_allclose(report.recall, recall_score(y, predicted, average=None, **options))
            assert report.balanced_accuracy == pytest.approx(
                balanced_accuracy_score(y, predicted, **options)
            )
            assert report.macro_f1 == pytest.approx(
                f1_score(y, predicted, average="macro", **options)
            )
            assert report.g_mean == pytest.approx(np.exp(np.log(report.recall).mean()))
        areas = [average_precision_score(y == k, scores[:, k], **options) for k in range(4)]
        report = imbalance_report(y, scores, sample_weight=weight)
        assert report.average_precision == pytest.approx(np.mean(areas))
    assert imbalance_report(y, predicted).average_precision is None


def test_head_medium_and_tail_are_distinguished_by_counts():
    y = np.repeat(["a", "b", "c", "d"], 10)
    predicted = y.copy()
    predicted[10:15] = predicted[30:38] = "a"
    report = imbalance_report(y, predicted, counts={"a": 500, "b": 100, "c": 20, "d": 19})
    assert report.group.tolist() == ["head", "medium", "medium", "tail"]
    assert report.recall_of_group == pytest.approx({"head": 1.0, "medium": 0.75, "tail": 0.2})
    only = imbalance_report(y, predicted)
    assert only.recall_of_group == pytest.approx({"tail": (1 + 0.5 + 1 + 0.2) / 4})


def test_scores_of_the_second_of_two_classes_are_decided_at_zero():
    y, scores = np.array(["no", "no", "yes", "yes"]), np.array([-1.0, 0.5, 2.0, -0.1])
    report = imbalance_report(y, scores)
    assert report.recall.tolist() == [0.5, 0.5]
    areas = [average_precision_score(y == c, s) for c, s in (("yes", scores), ("no", -scores))]
    assert report.average_precision == pytest.approx(np.mean(areas))


def test_a_class_without_samples_has_no_recall():
    report = imbalance_report([0, 0, 2], [0, 1, 2], classes=[0, 1, 2])
    assert_array_equal(report.recall, [0.5, np.nan, 1.0])
    assert report.balanced_accuracy == 0.75


def test_a_printed_report_names_classes_and_metrics():
    text = str(imbalance_report(["cat"] * 3 + ["dog"], ["cat"] * 4, bounds=(2, 2)))
    assert "cat          3  head     1.000" in text
    assert "balanced accuracy      0.500" in text
    assert "average" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": np.zeros((3, 2))}, "scores must have one column for each of the 3 classes"),
        ({"scores": [0, 1, 7]}, "or contain predicted labels"),
        ({"scores": [0, 1, 2], "classes": [0, 1]}, r"classes must contain all labels.*\[2\]"),
        ({"scores": [0, 1, 2], "bounds": (9, 1)}, r"in ascending order, got \(9, 1\)"),
        ({"scores": [0, 1, 2], "counts": [5]}, "counts must contain one number for each of the 3"),
        ({"scores": [0, 1]}, "inconsistent numbers of samples"),
        ({"scores": np.eye(4)[:3]}, r"3 classes \[0, 1, 2\].* pass all of them as classes"),
    ],
)
def test_invalid_arguments_of_a_report_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        imbalance_report([0, 1, 2], **arguments)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.2, 0.7, 0.4], "between 0 and 1.*both columns of predict_proba"),
        ([-3, 5, 2], "floating-point scores of the second; got .* dtype int"),
    ],
)
def test_one_column_must_be_scores(scores, message):
    with pytest.raises(ValueError, match=message):
        imbalance_report(["no", "yes", "yes"], scores)


class TestWithImbalancedLearn:
    """Samplers, pipelines and ensembles of imbalanced-learn take our estimators."""

    @pytest.fixture(autouse=True)
    def imblearn(self):
        try:
            found = version("imbalanced-learn")
        except PackageNotFoundError:
            pytest.skip("imbalanced-learn is not installed")
        if parse_version(found) < parse_version("0.14"):
            pytest.skip(f"imbalanced-learn {found} does not know this scikit-learn")

    @pytest.mark.parametrize(
        "model",
        [
            SVC(),
            LinearSVC(),
            CodeMatrixClassifier(SVC(), code="dense"),
            RescaledClassifier(SVC(), priors=None),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_a_pipeline_resamples_in_training_only(self, tail, model):
        from imblearn.over_sampling import SMOTE
        from imblearn.pipeline import make_pipeline

        X, y = tail
        sampler = SMOTE(k_neighbors=3, random_state=0)
        pipeline = make_pipeline(StandardScaler(), sampler, model).fit(X, y)
        scaled = StandardScaler().fit_transform(X)
        direct = model.fit(*sampler.fit_resample(scaled, y))
        assert_array_equal(pipeline.predict(X), direct.predict(scaled))
        scores = cross_val_score(pipeline, X, y, cv=3, scoring="balanced_accuracy")
        assert scores.min() > 0.5

    def test_a_rescaled_classifier_wraps_a_pipeline_with_a_sampler(self, rare):
        from imblearn.pipeline import make_pipeline
        from imblearn.under_sampling import RandomUnderSampler

        X, y = rare
        pipeline = make_pipeline(RandomUnderSampler(random_state=0), SVC())
        model = RescaledClassifier(pipeline).fit(X, y)
        assert recall_score(y, model.predict(X), pos_label="rare") > 0.6

    def test_a_search_tunes_sampler_and_classifier_together(self, rare):
        from imblearn.over_sampling import RandomOverSampler
        from imblearn.pipeline import Pipeline

        pipeline = Pipeline([("sampler", RandomOverSampler(random_state=0)), ("svc", SVC())])
        grid = {"sampler__sampling_strategy": [0.1, 1.0], "svc__C": [0.1, 1.0]}
        search = GridSearchCV(pipeline, grid, scoring="balanced_accuracy", cv=2).fit(*rare)
        assert search.best_params_["sampler__sampling_strategy"] == 1.0

    def test_balanced_bagging_accepts_our_estimators(self, rare):
        from imblearn.ensemble import BalancedBaggingClassifier

        X, y = rare
        model = BalancedBaggingClassifier(SVC(), n_estimators=3, random_state=0).fit(X, y)
        assert recall_score(y, model.predict(X), pos_label="rare") > 0.6

    def test_the_geometric_mean_is_imbalanced_learns(self, tail):
        from imblearn.metrics import geometric_mean_score

        X, y = tail
        predicted = GaussianNB().fit(X, y).predict(X)
        assert imbalance_report(y, predicted).g_mean == pytest.approx(
            geometric_mean_score(y, predicted)
        )


@parametrize_with_checks(
    [RescaledClassifier(SVC())],
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": "calibration's folds fall differently"
        for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_accepts_calibrated_classifiers(estimator, check):
    check(estimator)


def test_the_geometric_mean_of_many_recalls_does_not_vanish():
    labels = np.repeat(np.arange(1000), 5)
    predicted = labels.copy()
    predicted[np.arange(len(labels)) % 5 > 1] = 0
    predicted[:5] = [0, 0, 1, 1, 1]
    report = imbalance_report(labels, predicted)
    assert report.g_mean == pytest.approx(0.4)


class Oversampled(LogisticRegression):
    """Trained on as many samples of the rare class as of the frequent one, as by a sampler."""

    def fit(self, X, y):
        repeats = np.where(y == "rare", 19, 1)
        return super().fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))


def test_a_second_correction_for_balanced_probabilities_is_reported(rare):
    X, y = rare
    for estimator in (LogisticRegression(class_weight="balanced"), Oversampled()):
        with pytest.warns(UserWarning, match="rescaling them corrects twice") as caught:
            RescaledClassifier(estimator).fit(X, y)
        assert caught[0].filename == __file__
        # Calibration restores the training priors; warnings are errors in tests.
        RescaledClassifier(CalibratedClassifierCV(estimator, cv=3)).fit(X, y)
    RescaledClassifier(LogisticRegression()).fit(X, y)
    RescaledClassifier(GaussianNB()).fit(X, y)


def test_weights_that_restore_the_priors_of_a_balanced_sample_are_no_second_correction():
    # A case-control sample: as many rare samples as frequent ones, with importance weights.
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X, weight = rng.standard_normal((400, 2)) + 4.0 * y[:, None], np.where(y == 1, 0.1, 1.9)
    model = RescaledClassifier(LogisticRegression()).fit(X, y, sample_weight=weight)
    assert_allclose(model.training_priors_, [0.95, 0.05])


@pytest.mark.parametrize("meta", [RescaledClassifier, CodeMatrixClassifier])
@pytest.mark.parametrize("nested", [False, True])
def test_meta_estimators_refuse_unlabeled_samples_that_they_would_take_for_a_class(meta, nested):
    X, y = make_long_tail(200, n_classes=3, imbalance=2, random_state=0)
    marked = np.where(np.arange(200) < 150, y, -1)
    inner = PreferenceClassifier(LogisticRegression(), random_state=0)
    inner = make_pipeline(StandardScaler(), inner) if nested else inner
    with pytest.raises(ValueError, match="y contains -1, which means unlabeled to"):
        meta(inner).fit(X, marked)
    with pytest.raises(ValueError, match="y contains -1, which means unlabeled to"):
        meta(SelfTrainingClassifier(LogisticRegression())).fit(X, marked)
    assert -1 in meta(LogisticRegression()).fit(X, marked).classes_


def test_long_tails_of_zipf_follow_a_power_law():
    _, y = make_long_tail(100_000, n_classes=50, imbalance=50, profile="zipf", random_state=0)
    sizes = np.bincount(y)
    assert sizes[0] / sizes[-1] == pytest.approx(50, rel=0.01)
    assert_allclose(sizes * np.arange(1, 51), sizes[0], rtol=0.01)
    with pytest.raises(ValueError, match="'exponential', 'zipf' or 'step', got 'linear'"):
        make_long_tail(profile="linear")


@pytest.mark.parametrize("calibrated", [False, True])
def test_metadata_reaches_the_estimator_with_the_samples_that_count(calibrated):
    class Recorder(LogisticRegression):
        def fit(self, X, y, sample_weight=None, cost=None):
            seen.append((len(X), None if cost is None else np.asarray(cost).sum()))
            return super().fit(X, y, sample_weight)

    class WithoutProbabilities(Recorder):
        predict_proba = property()

    seen = []
    X, y = make_classification(60, random_state=0)
    weight = np.ones(60)
    weight[:10] = 0.0
    with sklearn.config_context(enable_metadata_routing=True):
        base = (WithoutProbabilities if calibrated else Recorder)()
        base.set_fit_request(cost=True, sample_weight=True)
        model = RescaledClassifier(base).fit(X, y, sample_weight=weight, cost=np.ones(60))
    assert seen[-1] == (50, 50.0)
    assert all(cost == n for n, cost in seen)
    assert model.predict(X).shape == (60,)

"""CodeMatrixClassifier beside scikit-learn's meta-estimators and its own machines one by one."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn import svm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from widemargin import SVC, CodeMatrixClassifier, LinearSVC, PrivilegedSVC, code_matrix
from widemargin.datasets import load_vowel
from widemargin.svm.code_matrix.codes import check_code
from widemargin.svm.code_matrix.decoding import LOSSES, couple

CODES = ("ovr", "ovo", "dense", "sparse", "exhaustive")
MACHINE = SVC(C=5.0, gamma=0.8, tol=1e-8)


@pytest.fixture(scope="module")
def vowels():
    X, y = load_vowel(subset="train", return_X_y=True)
    few = y < 5
    X_test, y_test = load_vowel(subset="test", return_X_y=True)
    return X[few], y[few], X_test[y_test < 5]


class OnItsOwn(SVC):
    """Not an `SVC` to the classifier, which trains a copy for every column then."""


@pytest.mark.parametrize("code", CODES)
def test_machines_over_one_cache_are_machines_on_their_own(vowels, code):
    X, y, X_test = vowels
    own = OnItsOwn(**MACHINE.get_params())
    shared = CodeMatrixClassifier(MACHINE, code=code).fit(X, y)
    separate = CodeMatrixClassifier(own, code=code).fit(X, y)
    assert_allclose(shared.decision_function(X_test), separate.decision_function(X_test), atol=1e-6)
    for one, other in zip(shared.estimators_, separate.estimators_, strict=True):
        assert type(one) is SVC
        assert_allclose(one.decision_function(X_test), other.decision_function(X_test), atol=1e-6)
        assert_allclose(one.n_support_, other.n_support_)
        assert one.objective_ == pytest.approx(other.objective_)
        assert_array_equal(one.predict(X_test), other.predict(X_test))


@pytest.mark.parametrize("code", ["ovo", "sparse", "dense"])
@pytest.mark.parametrize("options", [
    {"class_weight": "balanced"},
    {"class_weight": {0: 1.0, 1: 3.0}},
    {"class_margin": "ldam", "class_weight": "effective"},
    {"class_margin": {1: 0.5}},
], ids=str)  # fmt: skip
def test_weights_and_margins_of_classes_are_those_of_the_two_sides(vowels, code, options):
    X, y, X_test = vowels
    kept = (y > 0) | (np.arange(len(y)) % 3 == 0)
    X, y, weights = X[kept], y[kept], np.arange(kept.sum()) % 4
    machine = clone(MACHINE).set_params(**options)
    own = OnItsOwn(**machine.get_params())
    shared, separate = (
        CodeMatrixClassifier(m, code=code).fit(X, y, sample_weight=weights) for m in (machine, own)
    )
    assert_allclose(shared.decision_function(X_test), separate.decision_function(X_test), atol=1e-6)


def test_a_tiny_cache_changes_nothing(vowels):
    X, y, X_test = vowels
    for code in ("dense", "sparse", "ovo"):
        large, tiny = (
            CodeMatrixClassifier(clone(MACHINE).set_params(cache_size=size), code=code).fit(X, y)
            for size in (200, 0.05)
        )
        assert_allclose(large.decision_function(X_test), tiny.decision_function(X_test), atol=1e-6)


def test_sparse_rows_and_precomputed_kernels_are_taken(vowels):
    X, y, X_test = vowels
    for code in ("ovo", "dense", "sparse"):
        expected = CodeMatrixClassifier(MACHINE, code=code).fit(X, y).decision_function(X_test)
        rows = CodeMatrixClassifier(MACHINE, code=code).fit(sparse.csr_array(X), y)
        assert_allclose(rows.decision_function(sparse.csr_array(X_test)), expected, atol=1e-6)
        assert_allclose(
            rows.estimators_[0].decision_function(sparse.csr_array(X_test)),
            CodeMatrixClassifier(MACHINE, code=code)
            .fit(X, y)
            .estimators_[0]
            .decision_function(X_test),
            atol=1e-6,
        )
        for machine in (SVC, OnItsOwn):
            given = machine(C=5.0, kernel="precomputed", tol=1e-8)
            gram, against = (np.exp(-0.8 * _squared_distances(A, X)) for A in (X, X_test))
            model = CodeMatrixClassifier(given, code=code).fit(gram, y)
            assert_allclose(model.decision_function(against), expected, atol=1e-6)


def _squared_distances(A, B):
    return ((A[:, np.newaxis] - B) ** 2).sum(axis=2)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_one_vs_one_by_votes_is_scikit_learns(vowels, kernel):
    X, y, X_test = vowels
    ours = CodeMatrixClassifier(SVC(C=5, gamma=0.8, kernel=kernel), code="ovo", decoding="hamming")
    theirs = OneVsOneClassifier(svm.SVC(C=5, gamma=0.8, kernel=kernel, tol=1e-8)).fit(X, y)
    ours.fit(X, y)
    assert_array_equal(ours.predict(X_test), theirs.predict(X_test))
    assert_allclose(ours.decision_function(X_test), theirs.decision_function(X_test), atol=1e-5)


@pytest.mark.parametrize("decoding", ["hamming", "loss"])
def test_one_vs_rest_is_scikit_learns_however_it_is_decoded(vowels, decoding):
    X, y, X_test = vowels
    ours = CodeMatrixClassifier(MACHINE, code="ovr", decoding=decoding).fit(X, y)
    theirs = OneVsRestClassifier(svm.SVC(C=5, gamma=0.8, tol=1e-8)).fit(X, y)
    assert_allclose(ours.decision_function(X_test), theirs.decision_function(X_test), atol=1e-6)
    assert_array_equal(ours.predict(X_test), theirs.predict(X_test))


def test_a_given_code_with_linear_loss_is_scikit_learns(vowels):
    X, y, X_test = vowels
    for machine, peer in [
        (MACHINE, svm.SVC(C=5, gamma=0.8, tol=1e-8)),
        (GaussianNB(), GaussianNB()),
    ]:
        theirs = OutputCodeClassifier(peer, code_size=3, random_state=0).fit(X, y)
        code = np.where(theirs.code_book_ > 0, 1, -1)
        ours = CodeMatrixClassifier(machine, code=code, loss="linear").fit(X, y)
        assert_array_equal(ours.predict(X_test), theirs.predict(X_test))


@pytest.mark.parametrize("code", CODES)
def test_any_classifier_serves_as_machine(vowels, code):
    X, y, _ = vowels
    for machine in (LinearSVC(), LogisticRegression(), DecisionTreeClassifier(random_state=0)):
        model = CodeMatrixClassifier(machine, code=code).fit(X, y)
        assert model.score(X, y) > 0.7
        assert len(model.estimators_) == model.code_matrix_.shape[1]


@pytest.mark.parametrize("code", ["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_decision_has_the_least_loss(vowels, code, loss):
    X, y, X_test = vowels
    model = CodeMatrixClassifier(MACHINE, code=code, loss=loss).fit(X, y)
    scores = np.column_stack([m.decision_function(X_test) for m in model.estimators_])
    total = LOSSES[loss](model.code_matrix_[:, np.newaxis] * scores).sum(axis=2)
    assert_allclose(-model.decision_function(X_test), total.T, atol=1e-8)
    assert_array_equal(model.predict(X_test), total.argmin(axis=0))


@pytest.mark.parametrize("code", ["dense", "sparse"])
def test_hamming_decoding_takes_the_nearest_code_word(vowels, code):
    X, y, X_test = vowels
    model = CodeMatrixClassifier(MACHINE, code=code, decoding="hamming", random_state=1).fit(X, y)
    scores = np.column_stack([m.decision_function(X_test) for m in model.estimators_])
    matrix = model.code_matrix_[:, np.newaxis]
    distance = (0.5 * (1 - matrix * np.sign(scores))).sum(axis=2).T
    own = np.searchsorted(model.classes_, model.predict(X_test))
    best = distance.min(axis=1)
    assert_array_equal(distance[np.arange(len(own)), own], best)
    confidence = (matrix * scores).sum(axis=2).T
    tied = distance == best[:, np.newaxis]
    assert (tied.sum(axis=1) > 1).any()
    assert_array_equal(own, np.where(tied, confidence, -np.inf).argmax(axis=1))


class Told(ClassifierMixin, BaseEstimator):
    """Answers with the column of X that it is told to."""

    def fit(self, X, y):
        self.column_ = Told.next
        Told.next += 1
        self.classes_ = np.arange(2)
        return self

    def decision_function(self, X):
        return X[:, self.column_]


def test_a_circle_of_votes_goes_to_the_confident_class_not_to_the_first():
    Told.next = 0
    code = [[1, -1, 0], [-1, 0, 1], [0, 1, -1]]
    X = np.array([[4.5, 2.0, 3.0], [3.0, 2.0, 4.5], [4.0, 3.5, 2.0]])
    model = CodeMatrixClassifier(Told(), code=code, decoding="hamming").fit(X, [0, 1, 2])
    assert_array_equal(model.predict(X), [0, 1, 2])


@pytest.mark.parametrize("decoding", ["hamming", "loss"])
def test_equal_losses_go_to_the_confident_class_not_to_the_first(decoding):
    Told.next = 0
    code = [[1, 0, -1], [0, 1, -1], [-1, -1, 1]]
    X = np.array([[3.0, 2.0, -4.0], [2.0, 3.0, -4.0], [-3.0, -2.0, 4.0]])
    model = CodeMatrixClassifier(Told(), code=code, decoding=decoding).fit(X, [0, 1, 2])
    assert_array_equal(model.predict(X), [0, 1, 2])


def test_two_classes_have_one_machine_and_its_score(vowels):
    X, y, X_test = vowels
    X, y = X[y < 2], np.array(["no", "yes"])[y[y < 2]]
    expected = MACHINE.fit(X, y).decision_function(X_test)
    for code in (*CODES, [[-1], [1]], [[1], [-1]], [[1, -1], [-1, 1]]):
        model = CodeMatrixClassifier(MACHINE, code=code).fit(X, y)
        assert_allclose(model.decision_function(X_test), expected, atol=1e-6)
        assert_array_equal(model.predict(X_test), np.where(expected > 0, "yes", "no"))


def test_one_vs_rest_probabilities_are_scikit_learns(vowels):
    X, y, X_test = vowels
    ours = CodeMatrixClassifier(LogisticRegression(), code="ovr").fit(X, y)
    theirs = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    assert_allclose(ours.predict_proba(X_test), theirs.predict_proba(X_test), atol=1e-12)


@pytest.mark.parametrize("name", ["ovo", "dense", "sparse"])
def test_coupling_recovers_probabilities_that_machines_agree_on(name):
    matrix, _ = code_matrix(name, 5)
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=30)
    plus, minus = p @ (matrix > 0), p @ (matrix < 0)
    assert_allclose(couple(plus / (plus + minus), matrix), p, atol=1e-5)


@pytest.mark.parametrize("name", ["ovo", "sparse"])
def test_coupled_probabilities_are_the_most_likely(name):
    matrix, _ = code_matrix(name, 4)
    answers = np.random.default_rng(1).uniform(0.05, 0.95, size=(5, matrix.shape[1]))

    def unlikely(log_p, r):
        p = np.exp(log_p)
        plus, minus = p @ (matrix > 0), p @ (matrix < 0)
        return -(r * np.log(plus) + (1 - r) * np.log(minus) - np.log(plus + minus)).sum()

    for r, p in zip(answers, couple(answers, matrix), strict=True):
        best = np.exp(minimize(unlikely, np.zeros(4), args=(r,), tol=1e-12).x)
        assert_allclose(p, best / best.sum(), atol=1e-4)


@pytest.mark.parametrize("code", CODES)
def test_probabilities_are_those_of_classes(vowels, code):
    X, y, X_test = vowels
    model = CodeMatrixClassifier(LogisticRegression(C=10), code=code).fit(X, y)
    p = model.predict_proba(X_test)
    assert_allclose(p.sum(axis=1), 1.0)
    assert p.min() >= 0
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X_test)).mean() > 0.9


def test_machines_without_probabilities_have_none_until_they_are_calibrated(vowels):
    X, y, X_test = vowels
    assert not hasattr(CodeMatrixClassifier(SVC()), "predict_proba")
    whole = CalibratedClassifierCV(CodeMatrixClassifier(SVC(C=5), code="dense")).fit(X, y)
    each = CodeMatrixClassifier(CalibratedClassifierCV(SVC(C=5), cv=3), code="ovo").fit(X, y)
    for model in (whole, each):
        p = model.predict_proba(X_test)
        assert (model.classes_[p.argmax(axis=1)] == model.predict(X_test)).mean() > 0.9


def test_probabilities_of_two_classes_are_those_of_the_machine(vowels):
    X, y, X_test = vowels
    X, y = X[y < 2], y[y < 2]
    expected = LogisticRegression().fit(X, y).predict_proba(X_test)
    for code in ("dense", [[1], [-1]]):
        model = CodeMatrixClassifier(LogisticRegression(), code=code).fit(X, y)
        assert_allclose(model.predict_proba(X_test), expected, atol=1e-8)


def test_what_the_machines_certify_is_told(vowels):
    X, y, _ = vowels
    model = CodeMatrixClassifier(MACHINE, code="dense").fit(X, y)
    assert model.objective_.shape == (model.code_matrix_.shape[1],)
    assert (model.dual_gap_ < 1e-6).all()
    model.set_params(estimator=LogisticRegression()).fit(X, y)
    assert not hasattr(model, "dual_gap_")


def test_text_is_taken_by_machines_that_take_it():
    texts = ["red apple", "red cherry", "green pear", "green apple", "blue sky", "blue sea"] * 3
    y = ["red", "red", "green", "green", "blue", "blue"] * 3
    machine = make_pipeline(TfidfVectorizer(), LinearSVC())
    model = CodeMatrixClassifier(machine, code="ovo").fit(texts, y)
    assert_array_equal(model.predict(texts), y)


def test_classes_without_weight_are_left_out(vowels):
    X, y, X_test = vowels
    weights = (y != 2).astype(float)
    for machine in (MACHINE, LogisticRegression()):
        model = CodeMatrixClassifier(machine, code="ovo").fit(X, y, sample_weight=weights)
        kept = CodeMatrixClassifier(machine, code="ovo").fit(X[y != 2], y[y != 2])
        assert_array_equal(model.classes_, [0, 1, 3, 4])
        assert_allclose(model.decision_function(X_test), kept.decision_function(X_test), atol=1e-6)


def test_any_code_that_is_accepted_gives_probabilities():
    rng = np.random.default_rng(0)
    accepted = 0
    for code in rng.integers(-1, 2, size=(300, 4, 4)):
        try:
            matrix = check_code(code, np.arange(4))
        except ValueError:
            continue
        accepted += 1
        probabilities = couple(rng.choice([0.0, 0.3, 1.0], size=(3, 4)), matrix)
        assert (probabilities >= 0).all()
        assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert accepted > 20


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (np.ones((3, 2)), r"one row for each of the 5 classes.* got an array of shape \(3, 2\)"),
        (np.ones((5, 0)), r"at least one column, got an array of shape \(5, 0\)"),
        (2 * np.eye(5), r"code must contain \+1, -1 and 0 only"),
        (np.eye(5), r"\+1 and -1 in every column.*column 0"),
        (np.c_[np.zeros(5), code_matrix("ovr", 5)[0]], r"\+1 and -1 in every column.*column 0"),
        ([[1, 1], [-1, 1], [0, 0], [1, -1], [-1, -1]], "the row of the class 2 has neither"),
        ([[1], [-1], [1], [1], [1]], "distinct rows, but another class has that of 2"),
        ([[1, 0, 0], [-1, 0, 0], [0, 1, 1], [0, -1, 1], [0, 0, -1]], "leads from 0 to 2"),
    ],
)
def test_codes_that_cannot_work_are_refused(vowels, code, message):
    X, y, _ = vowels
    with pytest.raises(ValueError, match=message):
        CodeMatrixClassifier(MACHINE, code=code).fit(X, y)


class Silent(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self


def test_machines_that_cannot_serve_are_refused(vowels):
    X, y, _ = vowels
    with pytest.raises(TypeError, match="must have decision_function or predict_proba, got Silent"):
        CodeMatrixClassifier(Silent()).fit(X, y)
    with pytest.raises(TypeError, match="sample_weight cannot be used, because fit of Told"):
        CodeMatrixClassifier(Told()).fit(X, y, sample_weight=np.ones(len(y)))


@pytest.mark.parametrize("code", ["ovr", "ovo"])
def test_one_weight_for_all_samples_is_accepted(vowels, code):
    X, y, X_test = vowels
    estimator = LinearSVC(tol=1e-8)
    model = CodeMatrixClassifier(estimator, code=code).fit(X, y, sample_weight=2.0)
    expected = CodeMatrixClassifier(estimator, code=code).fit(X, y, np.full(len(y), 2.0))
    assert_array_equal(model.decision_function(X_test), expected.decision_function(X_test))


def test_probabilities_need_a_fit():
    with pytest.raises(NotFittedError):
        CodeMatrixClassifier(GaussianNB()).predict_proba([[0.0]])


@pytest.mark.parametrize("code", ["ovr", "ovo"])
def test_metadata_reaches_the_classifier_of_each_column_with_its_samples(code):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(90, 4)), rng.normal(size=(90, 2))
    y = np.repeat([0, 1, 2], 30)
    X[:, 0] += 2 * y
    with sklearn.config_context(enable_metadata_routing=True):
        base = PrivilegedSVC(kernel="linear", slack_ridge=1.0)
        model = CodeMatrixClassifier(base, code=code).fit(X, y, privileged=Z)
        for column, found in zip(model.code_matrix_.T, model.estimators_, strict=True):
            own = column[y] != 0
            expected = PrivilegedSVC(kernel="linear", slack_ridge=1.0).fit(
                X[own], (column[y[own]] > 0).astype(int), privileged=Z[own]
            )
            np.testing.assert_allclose(found.coef_, expected.coef_)
        steps = make_pipeline(StandardScaler(), CodeMatrixClassifier(base, code=code))
        steps.fit(X, y, privileged=Z)
        scored = cross_val_score(steps, X, y, params={"privileged": Z}, cv=3)
    assert len(scored) == 3


def test_metadata_that_nobody_requests_is_refused():
    X, y = load_iris(return_X_y=True)
    model = CodeMatrixClassifier(LinearSVC())
    with pytest.raises(TypeError, match="unexpected arguments: privileged"):
        model.fit(X, y, privileged=X)
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(TypeError):
        model.fit(X, y, privileged=X)

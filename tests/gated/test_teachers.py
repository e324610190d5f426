"""Any classifier is a teacher; a student computes as little of its scores as it can."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context, svm
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin import SVC, SVCCV, CrammerSingerSVC, GatedStudents, GatedSVC, LinearSVC
from widemargin.gated.teacher import FunctionGate, PartsGate, TeacherGate, class_scores

LINEAR = {
    "Crammer-Singer": CrammerSingerSVC(C=0.1),
    "one-vs-rest": LinearSVC(C=0.1),
    "logistic": LogisticRegression(),
    "OneVsRestClassifier": OneVsRestClassifier(LogisticRegression()),
    "standardised": make_pipeline(StandardScaler(), LinearSVC(C=0.1)),
    "scaled twice": make_pipeline(MinMaxScaler(), MaxAbsScaler(), CrammerSingerSVC()),
    "frozen": FrozenEstimator(CrammerSingerSVC()),
}
OTHERS = {
    "kernel Crammer-Singer": CrammerSingerSVC(kernel="rbf"),
    "kernel one-vs-rest": SVC(multi_class="ovr"),
    "kernel pairs": SVC(),
    "linear pairs": SVC(kernel="linear"),
    "scikit-learn's pairs": svm.SVC(),
    "one-vs-rest of kernels": OneVsRestClassifier(svm.SVC()),
    "forest": RandomForestClassifier(n_estimators=10, max_depth=4, random_state=0),
    "naive Bayes": GaussianNB(),
    "pipeline": make_pipeline(StandardScaler(), CrammerSingerSVC(kernel="rbf")),
}


def trained(teacher, X, y):
    if isinstance(teacher, FrozenEstimator):
        return FrozenEstimator(clone(teacher.estimator).fit(X, y))
    return clone(teacher).fit(X, y)


@pytest.mark.parametrize("name", LINEAR)
def test_students_of_a_linear_teacher_are_merged_with_it_and_decide_alike(three, name):
    X, y = three
    teacher = trained(LINEAR[name], X, y)
    merged = GatedStudents(teacher).fit(X, y)
    assert merged.merged_
    scores = class_scores(teacher, X)
    apart = merged.decision_function(X, teacher_scores=scores)
    assert_allclose(merged.decision_function(X), apart, atol=1e-7 * np.abs(apart).max())
    assert_array_equal(merged.predict(X), merged.predict(X, teacher_scores=scores))
    for k, label in enumerate(merged.classes_):
        student = merged.students_[label]
        assert_allclose(student.decision_function(X), apart[:, k], atol=1e-7 * np.abs(apart).max())


@pytest.mark.parametrize("name", OTHERS)
def test_a_student_of_any_other_teacher_sees_its_scores(three, name):
    X, y = three
    teacher = trained(OTHERS[name], X, y)
    student = GatedSVC("bee", teacher).fit(X, y)
    assert not student.merged_
    scores = class_scores(teacher, X)
    apart = student.decision_function(X, teacher_scores=scores)
    assert_allclose(student.decision_function(X), apart, atol=1e-7 * np.abs(apart).max())
    column = student.decision_function(X, teacher_scores=scores[:, 1])
    assert_array_equal(column, apart)


@pytest.mark.parametrize(
    "name", ["kernel Crammer-Singer", "kernel one-vs-rest", "one-vs-rest of kernels", "pipeline"]
)
def test_a_student_computes_no_score_of_other_classes_if_the_teacher_can_do_without(three, name):
    X, y = three
    teacher = trained(OTHERS[name], X, y)
    student = GatedSVC("bee", teacher).fit(X, y)
    assert isinstance(student._gate, FunctionGate | PartsGate)
    assert_allclose(student._gate(X)[:, 0], class_scores(teacher, X)[:, 1], atol=1e-9)
    assert isinstance(GatedSVC("bee", trained(SVC(), X, y)).fit(X, y)._gate, TeacherGate)


def test_a_student_of_a_kernel_teacher_has_the_support_vectors_of_its_class_only(three):
    X, y = three
    teacher = SVC(multi_class="ovr", C=100.0, gamma=0.05).fit(X, y)
    vectors = GatedSVC("bee", teacher).fit(X, y)._gate.functions.vectors
    assert len(vectors) == np.count_nonzero(teacher.dual_coef_[1])
    assert len(vectors) < len(teacher.support_)


def test_a_linear_teacher_is_asked_one_column_by_a_student_with_features_of_its_own(three, teacher):
    X, y = three
    student = GatedSVC("bee", teacher, features=Nystroem(n_components=9, random_state=0)).fit(X, y)
    assert_allclose(student._gate.functions.coef, teacher.coef_[[1]])
    assert not student.merged_
    assert student.theta_.shape == (9,)


def test_two_scores_are_made_of_the_one_of_a_binary_teacher(three):
    X, y = three
    X, y = X[y != "ant"], y[y != "ant"]
    for teacher in (LinearSVC(), CrammerSingerSVC(), OneVsRestClassifier(LinearSVC()), svm.SVC()):
        teacher.fit(X, y)
        score = teacher.decision_function(X)
        assert_array_equal(class_scores(teacher, X), np.column_stack([-score, score]))
        students = GatedStudents(teacher).fit(X, y)
        given = students.decision_function(X, teacher_scores=class_scores(teacher, X))
        assert_allclose(students.decision_function(X), given, atol=1e-7 * np.abs(given).max())


def test_probabilities_become_log_odds_and_certainty_stays_finite(three):
    X, y = three
    teacher = KNeighborsClassifier(n_neighbors=1).fit(X, y)
    scores = class_scores(teacher, X)
    assert set(np.round(np.abs(scores), 3).ravel()) == {27.631}
    bayes = GaussianNB().fit(X, y)
    odds = bayes.predict_proba(X[:5])
    assert_allclose(class_scores(bayes, X[:5]), np.log(odds / (1 - odds)), rtol=1e-6)


def test_an_unfitted_teacher_is_cloned_and_trained_a_fitted_one_is_used_as_it_is(three):
    X, y = three
    fresh = LogisticRegression()
    students = GatedStudents(fresh).fit(X, y)
    assert not hasattr(fresh, "coef_")
    assert_array_equal(students.teacher_.coef_, LogisticRegression().fit(X, y).coef_)
    clever = LogisticRegression(C=0.01).fit(X, y)
    assert GatedStudents(clever).fit(X, y).teacher_ is clever


def test_the_default_teacher_is_a_linear_crammer_singer_svc(three):
    X, y = three
    students = GatedStudents().fit(X, y)
    assert isinstance(students.teacher_, CrammerSingerSVC)
    assert students.merged_


def test_a_student_may_live_on_the_features_of_its_teacher_and_is_merged(three):
    X, y = three
    map_ = Nystroem(n_components=30, random_state=0)
    teacher = make_pipeline(StandardScaler(), map_, CrammerSingerSVC()).fit(X, y)
    for features in ("teacher", teacher[:-1]):
        students = GatedStudents(teacher, features=features).fit(X, y)
        assert students.merged_
        assert students.coef_.shape == (3, 30)
        given = students.decision_function(X, teacher_scores=teacher.decision_function(X))
        assert_allclose(students.decision_function(X), given, atol=1e-8)
    inside = GatedStudents(clone(teacher), features="teacher").fit(X, y)
    assert_allclose(inside.decision_function(X), students.decision_function(X), atol=1e-8)
    for short in (CrammerSingerSVC(), make_pipeline(CrammerSingerSVC())):
        with pytest.raises(ValueError, match=r"Pipeline of at least two steps.* got [CP]"):
            GatedStudents(short, features="teacher").fit(X, y)
    with pytest.raises(ValueError, match=r"features='teacher' needs .* got teacher_scores only"):
        GatedStudents(features="teacher").fit(X, y, teacher_scores=teacher.decision_function(X))


NESTED = {
    "whitened": lambda: make_pipeline(PCA(whiten=True), CrammerSingerSVC()),
    "scaled": lambda: make_pipeline(MinMaxScaler(), CrammerSingerSVC()),
    "one step": lambda: make_pipeline(CrammerSingerSVC()),
}


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", NESTED)
def test_students_of_a_pipeline_in_a_pipeline_score_as_they_do_apart(three, name, frozen):
    X, y = three[0][:80], three[1][:80]
    inner = NESTED[name]()
    if frozen:
        inner = FrozenEstimator(inner.fit(StandardScaler().fit_transform(X), y))
    teacher = make_pipeline(StandardScaler(), inner).fit(X, y)
    for features in ("teacher", None):
        students = GatedStudents(teacher, features=features).fit(X, y)
        # Whitening is no scaling: no vector over the outer features is that teacher.
        assert students.merged_ == (name != "whitened")
        apart = students.decision_function(X, teacher_scores=teacher.decision_function(X))
        assert_allclose(students.decision_function(X), apart, atol=1e-8)


def test_the_teacher_of_a_search_is_its_best_estimator(three):
    X, y = three[0][:80], three[1][:80]
    pipeline = make_pipeline(StandardScaler(), CrammerSingerSVC())
    search = GridSearchCV(pipeline, {"crammersingersvc__C": [0.1, 1.0]}, cv=3).fit(X, y)
    for features in ("teacher", None):
        students = GatedStudents(search, features=features).fit(X, y)
        assert students.merged_
        apart = students.decision_function(X, teacher_scores=search.decision_function(X))
        assert_allclose(students.decision_function(X), apart, atol=1e-8)
    kernels = GridSearchCV(CrammerSingerSVC(kernel="rbf"), {"C": [1.0]}, cv=3).fit(X, y)
    assert isinstance(GatedSVC("bee", kernels).fit(X, y)._gate, FunctionGate)
    found = SVCCV(Cs=[1.0], gammas=[0.1], multi_class="ovr", cv=3).fit(X, y)
    assert isinstance(GatedSVC("bee", found).fit(X, y)._gate, FunctionGate)


def test_scores_may_stand_in_for_a_teacher(three, teacher):
    X, y = three
    scores = teacher.decision_function(X)
    by_scores = GatedStudents().fit(X, y, teacher_scores=scores)
    assert by_scores.teacher_ is None
    assert_array_equal(by_scores.theta_, GatedStudents(teacher).fit(X, y).theta_)
    assert by_scores.score(X, y, teacher_scores=scores) > 0.5
    with pytest.raises(ValueError, match="teacher_scores must be passed"):
        by_scores.predict(X)


def test_classes_name_the_columns_of_scores_if_a_class_is_missing(three, teacher):
    X, y = three
    rows = y != "ant"
    scores = teacher.decision_function(X[rows])
    student = GatedSVC("cat", classes=["ant", "bee", "cat"])
    student.fit(X[rows], y[rows], teacher_scores=scores)
    expected = GatedSVC("cat", teacher).fit(X[rows], y[rows])
    assert_array_equal(student.theta_, expected.theta_)
    with pytest.raises(ValueError, match="3 columns but there are 2 classes"):
        GatedSVC("cat").fit(X[rows], y[rows], teacher_scores=scores)


def test_folds_score_every_sample_by_a_teacher_that_has_not_seen_it(three):
    X, y = three
    folds = KFold(4)
    scores = np.empty((len(y), 3))
    for train, test in folds.split(X):
        fold_teacher = CrammerSingerSVC(kernel="rbf", C=10.0).fit(X[train], y[train])
        scores[test] = fold_teacher.decision_function(X[test])
    teacher = CrammerSingerSVC(kernel="rbf", C=10.0)
    student = GatedSVC("bee", teacher, cv=folds).fit(X, y)
    assert_array_equal(student.theta_, GatedSVC("bee").fit(X, y, teacher_scores=scores).theta_)
    # Predictions use the teacher that is fitted to all samples.
    full = clone(teacher).fit(X, y)
    given = student.decision_function(X, teacher_scores=full.decision_function(X))
    assert_allclose(student.decision_function(X), given, atol=1e-10)


def test_a_class_that_a_fold_has_not_seen_gets_its_least_score(three):
    X, y = three
    y = y.copy()
    y[:3] = "dog"
    split = [(np.arange(3, len(y)), np.arange(3)), (np.arange(3), np.arange(3, len(y)))]
    y[1:3] = "bee", "cat"
    student = GatedSVC("dog", CrammerSingerSVC(), cv=split).fit(X, y)
    assert np.isfinite(student.objective_)


class Backwards(LogisticRegression):
    """A teacher that has its classes in another order than the sorted one."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_, self.coef_ = self.classes_[::-1], self.coef_[::-1]
        self.intercept_ = self.intercept_[::-1]
        return self


def test_out_of_fold_scores_find_the_columns_of_classes_in_any_order(three):
    X, y = three
    backwards = GatedStudents(Backwards(), cv=3).fit(X, y)
    forwards = GatedStudents(LogisticRegression(), cv=3).fit(X, y)
    assert_allclose(backwards.theta_, forwards.theta_, atol=1e-12)
    assert_array_equal(backwards.predict(X), forwards.predict(X))


def test_a_frozen_teacher_cannot_be_trained_on_folds(three, teacher):
    with pytest.raises(ValueError, match="cv must be None for a teacher in a FrozenEstimator"):
        GatedSVC("bee", FrozenEstimator(teacher), cv=3).fit(*three)
    scaled = make_pipeline(StandardScaler(), FrozenEstimator(teacher)).fit(*three)
    with pytest.raises(ValueError, match="cv must be None for a teacher in a FrozenEstimator"):
        GatedSVC("bee", make_pipeline(scaled), cv=3).fit(*three)


def test_weights_reach_the_teacher_and_one_that_takes_none_is_refused(three):
    X, y = three
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = GatedStudents(tol=1e-9).fit(X, y, sample_weight=weight)
    repeated = GatedStudents(tol=1e-9).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    with pytest.raises(
        ValueError, match="teacher KNeighborsClassifier does not support sample_weight"
    ):
        GatedStudents(KNeighborsClassifier()).fit(X, y, sample_weight=weight)


def test_weights_reach_the_last_step_of_a_pipeline(three):
    X, y = three
    weight = np.random.default_rng(0).integers(1, 3, len(y))
    inner = make_pipeline(MaxAbsScaler(), LogisticRegression(tol=1e-8, max_iter=1000))
    students = GatedStudents(make_pipeline("passthrough", inner))
    weighted = students.fit(X, y, sample_weight=weight).teacher_.decision_function(X)
    repeated = clone(inner).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted, repeated.decision_function(X), atol=1e-4)
    with pytest.raises(
        ValueError, match="teacher KNeighborsClassifier does not support sample_weight"
    ):
        GatedStudents(make_pipeline(MaxAbsScaler(), KNeighborsClassifier())).fit(
            X, y, sample_weight=weight
        )


def test_weights_are_routed_through_a_pipeline_where_routing_is_on(three):
    X, y = three
    weight = np.random.default_rng(0).integers(1, 3, len(y))
    with config_context(enable_metadata_routing=True):
        classifier = LinearSVC().set_fit_request(sample_weight=True)
        students = GatedStudents(make_pipeline(MaxAbsScaler(), classifier))
        students.fit(X, y, sample_weight=weight)
    expected = LinearSVC().fit(MaxAbsScaler().fit_transform(X), y, sample_weight=weight)
    assert_array_equal(students.teacher_[-1].coef_, expected.coef_)


def test_booleans_replace_labels_if_the_teacher_knows_the_classes(three, teacher):
    X, y = three
    by_truth = GatedSVC("bee", teacher).fit(X, y == "bee")
    by_label = GatedSVC("bee", teacher).fit(X, y)
    assert_array_equal(by_truth.theta_, by_label.theta_)
    assert by_truth.score(X, y == "bee") == by_label.score(X, y)


@pytest.mark.parametrize("kind", ["boolean", bool])
def test_nullable_booleans_of_pandas_are_not_numbers(three, kind):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    teacher = CrammerSingerSVC().fit(X, codes)
    truth = pd.Series(codes == 0, dtype=kind)
    by_truth, by_label = GatedSVC(0, teacher).fit(X, truth), GatedSVC(0, teacher).fit(X, codes)
    assert_array_equal(by_truth.theta_, by_label.theta_)
    assert by_truth.score(X, truth) == by_label.score(X, codes)


def test_ambiguous_booleans_are_refused(three):
    X, y = three
    codes = (y == "bee").astype(int)
    teacher = LinearSVC().fit(X, codes)
    one = GatedSVC(1, teacher).fit(X, codes == 1)
    assert_array_equal(one.theta_, GatedSVC(1, teacher).fit(X, codes).theta_)
    for truth in (codes == 0, codes == 1):
        with pytest.raises(ValueError, match="ambiguous with classes 0 and 1 and target 0"):
            GatedSVC(0, teacher).fit(X, truth)
    zero = GatedSVC(0, teacher).fit(X, codes)
    with pytest.raises(ValueError, match="ambiguous with classes 0 and 1 and target 0"):
        zero.score(X, codes == 0)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_scores_are_found_by_their_names(three, teacher, frame):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    for labels, names in ((y, ["cat", "ant", "bee"]), (codes, ["2", "0", "1"])):
        scores = teacher.decision_function(X)
        turned = frame(dict(zip(names, scores[:, [2, 0, 1]].T, strict=True)))
        plain, named = GatedStudents(), GatedStudents()
        plain.fit(X, labels, teacher_scores=scores)
        named.fit(X, labels, teacher_scores=turned)
        assert_array_equal(named.theta_, plain.theta_)
        expected = plain.decision_function(X, teacher_scores=scores)
        assert_array_equal(named.decision_function(X, teacher_scores=turned), expected)
        label = plain.classes_[1]
        yes = named.is_class(X, label, teacher_scores=turned)
        assert_array_equal(yes, expected[:, 1] >= 0)
        assert_array_equal(named.is_class(X, label, teacher_scores=turned[[names[2]]]), yes)
        with pytest.raises(ValueError, match="must be named by the classes"):
            named.is_class(X, label, teacher_scores=turned[[names[0]]])
    unnamed = GatedStudents().fit(X, y, teacher_scores=frame(scores))
    assert_array_equal(unnamed.theta_, plain.theta_)
    foreign = frame(dict(zip("abc", scores.T, strict=True)))
    with pytest.raises(ValueError, match=r"named by the classes \['ant', 'bee', 'cat'\] or not at"):
        GatedStudents().fit(X, y, teacher_scores=foreign)
    with pytest.raises(ValueError, match="columns of teacher_scores must be named"):
        unnamed.predict(X, teacher_scores=foreign)


def test_numbers_that_may_be_names_or_places_are_refused(three, teacher):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    scores = pd.DataFrame(teacher.decision_function(X))
    GatedSVC(0).fit(X, codes, teacher_scores=scores)
    with pytest.raises(ValueError, match=r"named by the classes \[2, 0, 1\] .* got \[0, 1, 2\]"):
        GatedSVC(0, classes=[2, 0, 1]).fit(X, codes, teacher_scores=scores)


def test_samples_of_weight_zero_still_name_the_columns_of_scores(three, teacher):
    X, y = three
    scores, weight = teacher.decision_function(X), (y != "ant").astype(float)
    student = GatedSVC("cat").fit(X, y, weight, scores)
    expected = GatedSVC("cat", teacher).fit(X, y, weight)
    assert_array_equal(student.theta_, expected.theta_)


def test_pairs_of_classes_are_no_scores_of_classes(three):
    X, y = three
    teacher = svm.SVC(decision_function_shape="ovo").fit(X, y)
    search = GridSearchCV(make_pipeline(StandardScaler(), clone(teacher)), {}, cv=3).fit(X, y)
    for pairs in (teacher, FrozenEstimator(teacher), search):
        with pytest.raises(ValueError, match="got those of pairs of classes"):
            GatedSVC("bee", pairs).fit(X, y)


def test_a_teacher_without_separate_scores_computes_all_columns(three):
    X, y = three
    gate = GatedSVC("bee", GaussianNB()).fit(X, y)._gate
    assert isinstance(gate, TeacherGate)
    assert gate.columns == [1]

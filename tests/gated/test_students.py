"""Students solve the problem of the paper, and predict as it defines."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics import get_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from tests.oracles import gated as oracle

from widemargin import CrammerSingerSVC, GatedStudents, GatedSVC, difficulty_degrees

SOLVERS = ["dual", "majorize-minimize"]
PAPER = {"difficulty": "relative-margin"}


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16.0, y[:600]


def exact(phi, scores, y, target, classes, C=1.0, margin=1.0, decay=0.3, weight=1.0):
    degrees = oracle.degrees(scores, y, target, decay, classes)
    truth = np.where(y == target, 1.0, -1.0)
    score = scores[:, list(classes).index(target)]
    return oracle.solve_exactly(phi, score, truth, margin, C * weight / degrees)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_a_student_reaches_the_exact_optimum(three, teacher, solver, C):
    X, y = three
    student = GatedSVC("bee", teacher, C=C, margin=0.7, decay=0.2, solver=solver, **PAPER)
    student.fit(X, y)
    scores = teacher.decision_function(X)
    best = exact(with_constant(X), scores, y, "bee", teacher.classes_, C, 0.7, 0.2)
    assert_allclose(student.objective_, best.objective, rtol=1e-6)
    assert student.dual_gap_ <= 1e-6
    assert_allclose(
        np.append(student.theta_, student.theta_intercept_),
        best.theta,
        atol=1e-2 * np.abs(best.theta).max(),
    )


@pytest.mark.large
@pytest.mark.parametrize("solver", SOLVERS)
def test_students_of_digits_reach_the_exact_optimum(solver):
    X, y = digits()
    teacher = CrammerSingerSVC(C=0.01).fit(X, y)
    students = GatedStudents(teacher, targets=[3, 8], C=0.1, solver=solver, **PAPER).fit(X, y)
    scores = teacher.decision_function(X)
    for label, objective in zip([3, 8], students.objective_, strict=True):
        best = exact(with_constant(X), scores, y, label, teacher.classes_, 0.1)
        assert_allclose(objective, best.objective, rtol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_kernel_student_reaches_the_exact_optimum(three, teacher, solver):
    X, y = three
    student = GatedSVC("cat", teacher, kernel="rbf", gamma=0.3, solver=solver, tol=1e-7, **PAPER)
    student.fit(X, y)
    gram = rbf_kernel(X, gamma=0.3) + 1.0
    values, vectors = np.linalg.eigh(gram)
    phi = vectors * np.sqrt(np.maximum(values, 0.0))
    scores = teacher.decision_function(X)
    best = exact(phi, scores, y, "cat", teacher.classes_)
    assert_allclose(student.objective_, best.objective, rtol=1e-6)
    assert_allclose(student.decision_function(X), scores[:, 2] - phi @ best.theta, atol=1e-3)


@pytest.mark.large
def test_many_samples_are_solved_as_few_are(three, teacher):
    X, y = three
    weight = np.ones(len(y))
    few = GatedSVC("ant", teacher, C=10.0, tol=1e-9, **PAPER).fit(X, y, sample_weight=10 * weight)
    many = GatedSVC("ant", teacher, C=10.0, tol=1e-9, **PAPER)
    many.fit(np.tile(X, (10, 1)), np.tile(y, 10))
    assert many.dual_gap_ <= 1e-9
    assert_allclose(many.objective_, few.objective_, rtol=1e-8)
    assert_allclose(many.theta_, few.theta_, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_rounding_leaves_of_a_margin_asks_for_nothing(three, solver):
    X, y = three
    scores = (1.0 - 1e-14) * np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    student = GatedSVC("bee", solver=solver).fit(X, y, teacher_scores=scores)
    assert student.fit_status_ == 0
    assert not student.theta_.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_intercept_is_the_weight_of_a_constant_feature(three, teacher, fit_intercept):
    X, y = three
    student = GatedSVC("bee", teacher, fit_intercept=fit_intercept, tol=1e-9, **PAPER).fit(X, y)
    phi = with_constant(X) if fit_intercept else X
    best = exact(phi, teacher.decision_function(X), y, "bee", teacher.classes_)
    assert_allclose(student.objective_, best.objective, rtol=1e-7)
    assert (student.theta_intercept_ != 0.0) == fit_intercept


def test_no_difficulty_is_a_degree_of_one(three, teacher):
    X, y = three
    scores, truth = teacher.decision_function(X), np.where(y == "bee", 1.0, -1.0)
    best = oracle.solve_exactly(with_constant(X), scores[:, 1], truth, 1.0, np.ones(len(y)))
    student = GatedSVC("bee", teacher).fit(X, y)
    assert_allclose(student.objective_, best.objective, rtol=1e-6)


def test_a_callable_gives_degrees(three, teacher):
    X, y = three

    def difficulty(scores, sign, column):
        return difficulty_degrees(scores, sign > 0, "bee", 0.3, ["ant", "bee", "cat"])

    expected = GatedSVC("bee", teacher, **PAPER).fit(X, y)
    found = GatedSVC("bee", teacher, difficulty=difficulty).fit(X, y)
    assert_array_equal(found.theta_, expected.theta_)


@pytest.mark.parametrize("bad", [lambda s, z, k: -z, lambda s, z, k: np.ones(3)])
def test_degrees_that_make_no_cost_are_refused(three, teacher, bad):
    with pytest.raises(ValueError, match="difficulty must return a positive, finite degree"):
        GatedSVC("bee", teacher, difficulty=bad).fit(*three)


def test_predictions_are_booleans(three, teacher):
    X, y = three
    student = GatedSVC("bee", teacher).fit(X, y)
    assert_array_equal(student.classes_, [False, True])
    margin = teacher.decision_function(X)[:, 1] - X @ student.theta_ - student.theta_intercept_
    assert_allclose(student.decision_function(X), margin, atol=1e-10)
    assert_array_equal(student.predict(X), margin >= 0)
    assert student.score(X, y) == np.mean(student.predict(X) == (y == "bee"))
    assert student.score(X, y) > 0.7


def test_students_together_are_students_alone(three, teacher):
    X, y = three
    together = GatedStudents(teacher).fit(X, y)
    assert list(together.students_) == ["ant", "bee", "cat"]
    scores = together.decision_function(X)
    for k, label in enumerate(together.classes_):
        alone = GatedSVC(label, teacher).fit(X, y)
        assert_array_equal(scores[:, k], alone.decision_function(X))
        assert_array_equal(scores[:, k], together.students_[label].decision_function(X))
        assert_array_equal(together.is_class(X, label), alone.predict(X))
        assert together.objective_[k] == alone.objective_
    assert_array_equal(together.predict(X), together.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "rbf"}, {"features": Nystroem(n_components=20, random_state=0)}],
    ids=["kernel", "features"],
)
def test_students_with_features_of_their_own_together_and_alone(three, kernel_teacher, parameters):
    X, y = three
    together = GatedStudents(kernel_teacher, **parameters).fit(X, y)
    scores = together.decision_function(X)
    assert not together.merged_
    for k, label in enumerate(together.classes_):
        student = together.students_[label]
        assert_allclose(scores[:, k], student.decision_function(X), atol=1e-8)
    assert together.score(X, y) > 0.75


def test_two_classes_have_one_score(three):
    X, y = three
    X, y = X[y != "ant"], y[y != "ant"]
    students = GatedStudents().fit(X, y)
    both = [students.students_[label].decision_function(X) for label in ("bee", "cat")]
    assert_array_equal(students.decision_function(X), both[1] - both[0])
    assert_array_equal(students.predict(X) == "cat", students.decision_function(X) > 0)


def test_targets_choose_who_gets_a_student(three, kernel_teacher):
    X, y = three
    students = GatedStudents(kernel_teacher, targets=["cat", "ant"]).fit(X, y)
    assert list(students.students_) == ["ant", "cat"]
    assert_array_equal(
        students.students_["ant"].theta_, GatedSVC("ant", kernel_teacher).fit(X, y).theta_
    )
    with pytest.raises(ValueError, match="'bee' has no student"):
        students.is_class(X, "bee")
    with pytest.raises(ValueError, match=r"\['ant'\] has no student"):
        students.is_class(X, ["ant"])


def test_a_boolean_is_not_a_numeric_label_of_students(three):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    students = GatedStudents().fit(X, codes)
    with pytest.raises(ValueError, match=r"label True has no student. The classes .* \[0, 1, 2\]"):
        students.is_class(X, True)
    assert_array_equal(students.is_class(X, np.int64(1)), students.students_[1].predict(X))


def test_the_order_of_targets_does_not_turn_scores_round(three, kernel_teacher):
    few = X, y = three[0][:90], three[1][:90]
    X, y = X[y != "bee"], y[y != "bee"]
    forth = GatedStudents(targets=["ant", "cat"]).fit(X, y)
    back = GatedStudents(targets=["cat", "ant"]).fit(X, y)
    assert_array_equal(back.decision_function(X), forth.decision_function(X))
    assert get_scorer("roc_auc")(back, X, y) > 0.7
    # As a teacher they are fitted to folds, and scores must find their columns.
    pupils = [
        GatedStudents(GatedStudents(kernel_teacher, targets=targets), cv=3).fit(*few)
        for targets in (["ant", "bee", "cat"], ["cat", "ant", "bee"])
    ]
    assert_array_equal(pupils[0].theta_, pupils[1].theta_)


LINEAR = {"theta_", "theta_intercept_"}
KERNEL = {"support_", "support_vectors_", "dual_coef_"}


@pytest.mark.parametrize("kind", [GatedStudents, lambda teacher: GatedSVC("bee", teacher)])
def test_nothing_is_left_of_an_earlier_fit_of_another_kind(three, teacher, kernel_teacher, kind):
    X, y = three[0][:80], three[1][:80]
    student = kind(teacher).fit(X, y)
    merged = LINEAR | {"coef_", "intercept_"}
    assert {name for name in merged | KERNEL if hasattr(student, name)} == merged
    student.set_params(teacher=kernel_teacher).fit(X, y)
    assert {name for name in merged | KERNEL if hasattr(student, name)} == LINEAR
    student.set_params(kernel="rbf").fit(X, y)
    assert {name for name in merged | KERNEL if hasattr(student, name)} == KERNEL
    student.set_params(kernel="linear", teacher=teacher).fit(X, y)
    assert {name for name in merged | KERNEL if hasattr(student, name)} == merged


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_parameters_that_are_set_after_training_do_not_change_a_student(three, teacher, kernel):
    X, y = three
    student = GatedSVC("bee", teacher, kernel=kernel).fit(X, y)
    students = GatedStudents(teacher, kernel=kernel).fit(X, y)
    scores = teacher.decision_function(X)
    expected = student.decision_function(X, scores), students.decision_function(X, scores)
    right = student.score(X, y)
    other = {"linear": "rbf", "rbf": "linear"}[kernel]
    student.set_params(target="cat", kernel=other)
    students.set_params(kernel=other)
    assert_array_equal(student.decision_function(X, scores), expected[0])
    assert_array_equal(students.decision_function(X, scores), expected[1])
    assert student.score(X, y) == right
    if kernel == "linear":
        assert student.export().target == "bee"
    else:
        with pytest.raises(ValueError, match="got kernel='rbf'"):
            student.export()


def test_random_features_make_a_student(three, kernel_teacher):
    X, y = three
    sampler = RBFSampler(gamma=0.2, n_components=40, random_state=0)
    student = GatedSVC("bee", kernel_teacher, features=sampler, C=0.1, **PAPER).fit(X, y)
    phi, scores = sampler.fit_transform(X), kernel_teacher.decision_function(X)
    best = exact(with_constant(phi), scores, y, "bee", kernel_teacher.classes_, 0.1)
    assert_allclose(student.objective_, best.objective, rtol=1e-6)
    assert student.theta_.shape == (40,)
    margin = scores[:, 1] - phi @ student.theta_ - student.theta_intercept_
    assert_allclose(student.decision_function(X), margin, atol=1e-8)


def test_a_sample_of_weight_two_counts_twice_in_a_map_with_weights(three, teacher):
    X, y = three[0] * np.arange(1, 7), three[1]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    student = GatedSVC("bee", teacher, features=StandardScaler(), tol=1e-9)
    weighted = clone(student).fit(X, y, sample_weight=weight)
    repeated = clone(student).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)
    gate = np.zeros(len(y))
    assert_allclose(
        weighted.decision_function(X, gate), repeated.decision_function(X, gate), atol=1e-5
    )


def test_samples_in_coordinate_format_are_mapped(three, kernel_teacher):
    X, y = three
    for features in (MaxAbsScaler(), "constant"):
        dense = GatedSVC("bee", kernel_teacher, features=features).fit(X, y)
        thin = GatedSVC("bee", kernel_teacher, features=features).fit(sparse.coo_matrix(X), y)
        assert_allclose(thin.objective_, dense.objective_, rtol=1e-5)
        assert_allclose(
            thin.decision_function(sparse.coo_matrix(X)), dense.decision_function(X), atol=1e-2
        )


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_samples_give_the_same_student(three, teacher, solver):
    X, y = three
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = GatedSVC("bee", teacher, C=0.1, solver=solver).fit(X, y)
    thin = GatedSVC("bee", teacher, C=0.1, solver=solver).fit(sparse.csr_array(X), y)
    assert_allclose(thin.theta_, dense.theta_, atol=1e-3)
    assert_allclose(thin.decision_function(X), dense.decision_function(X), atol=1e-3)


def test_jobs_do_not_change_a_bit(three, teacher):
    X, y = three
    one = GatedStudents(teacher, n_jobs=1).fit(X, y)
    two = GatedStudents(teacher, n_jobs=2).fit(X, y)
    assert_array_equal(one.theta_, two.theta_)


def test_a_clone_is_not_fitted_and_has_the_same_parameters(teacher):
    student = GatedSVC("bee", teacher, C=3.0)
    assert clone(student).get_params()["target"] == "bee"
    assert clone(student).C == 3.0


def test_editing_the_dict_of_students_changes_no_prediction(three):
    X, y = three
    students = GatedStudents().fit(X, y)
    label = students.classes_[0]
    expected = students.is_class(X, label)
    students.students_.clear()
    assert_array_equal(students.is_class(X, label), expected)


def test_answers_are_those_of_the_single_students(three, teacher):
    X, y = three
    students = GatedStudents(teacher).fit(X, y)
    answers = students.answers(X)
    assert answers.dtype == bool
    for k, label in enumerate(students.classes_):
        assert_array_equal(answers[:, k], students.is_class(X, label))


@pytest.mark.parametrize("other", ["none of these", -1])
@pytest.mark.parametrize("targets", [["bee"], ["ant", "bee"]])
def test_samples_that_no_student_accepts_have_the_label_other(three, teacher, targets, other):
    X, y = three
    students = GatedStudents(teacher, targets, other=other).fit(X, y)
    predicted, accepted = students.predict(X), students.answers(X).any(axis=1)
    assert 0 < accepted.sum() < len(X)
    assert all(label == other for label in predicted[~accepted])
    assert set(predicted[accepted].tolist()) <= set(targets)
    assert_array_equal(students.classes_, targets)
    students.set_params(other=None)
    assert_array_equal(students.predict(X), predicted)


def test_a_single_target_needs_a_label_for_other_samples(three, teacher):
    with pytest.raises(
        ValueError, match=r"at least two classes, got 1\. For a single class set other"
    ):
        GatedStudents(teacher, ["bee"]).fit(*three)
    one = GatedStudents(teacher, ["bee"], other="rest").fit(*three)
    alone = GatedSVC("bee", teacher).fit(*three)
    assert_array_equal(one.decision_function(three[0]), alone.decision_function(three[0]))


@pytest.mark.parametrize("other", [["rest"], "bee"])
def test_other_must_be_a_label_of_no_target(three, teacher, other):
    with pytest.raises(ValueError, match=r"other must be a single label that no target has.*got"):
        GatedStudents(teacher, ["bee", "ant"], other=other).fit(*three)

"""A fitted model depends on nothing but its fitted attributes."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from tests.structured.cases import MODELS, samples
from tests.suites.registry import CASES, Case, answers, classification, two_classes

from widemargin import (
    SVC,
    CodeMatrixClassifier,
    GatedStudents,
    GatedSVC,
    PreferenceClassifier,
    RescaledClassifier,
)
from widemargin.structured import (
    CoulombSSVM,
    DiverseMultipleChoiceSSVM,
    FrankWolfeSSVM,
    MultipleChoiceSSVM,
    NSlackSSVM,
    OneSlackSSVM,
    PerturbedSSVM,
    StructuredPerceptron,
    SubgradientSSVM,
)

# As in scikit-learn, these choose how scores are combined when they are computed.
READ_WHEN_PREDICTING = {"decision_function_shape", "break_ties"}

ENSEMBLE = {"C": 0.5, "max_iter": 5, "tol": 0.1, "random_state": 3}
STRUCTURED = [
    FrankWolfeSSVM(None, C=0.5, max_iter=5),
    OneSlackSSVM(None, C=0.5, max_iter=5),
    NSlackSSVM(None, C=0.5, max_iter=5),
    SubgradientSSVM(None, C=0.5, max_iter=5),
    StructuredPerceptron(None, max_iter=5),
    CoulombSSVM(None, 3, n_steps=3, **ENSEMBLE),
    MultipleChoiceSSVM(None, 3, n_rounds=2, **ENSEMBLE),
    DiverseMultipleChoiceSSVM(None, 3, n_rounds=2, **ENSEMBLE),
    PerturbedSSVM(None, 3, **ENSEMBLE),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class StructuredCase(Case):
    """A structured learner or ensemble on short chains."""

    pairwise = False

    def __str__(self):
        return type(self.estimator).__name__

    def new(self, **parameters):
        model = clone(MODELS["chain"][0])
        return clone(self.estimator).set_params(model=model, **parameters)


def chains(n_samples=12):
    return samples(MODELS["chain"][1], n_samples)


EVERY_CASE = [*CASES, *(StructuredCase(estimator, data=chains) for estimator in STRUCTURED)]
every_case = pytest.mark.parametrize("case", EVERY_CASE, ids=str)


def fitted(case):
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    return case.new().fit(X, y), X


def flat(answer):
    """Return answers as one array, whether they are an array or a list of outputs."""
    if isinstance(answer, list):
        return np.concatenate([np.ravel(np.asarray(part)) for part in answer])
    return np.asarray(answer)


def predict_all(estimator, X):
    """Return the scores and the predictions of an estimator."""
    return [flat(answers(estimator, X)), flat(estimator.predict(X))]


def assert_same(estimator, X, expected, message=""):
    for actual, before in zip(predict_all(estimator, X), expected, strict=True):
        assert_array_equal(actual, before, err_msg=message)


def another_value(constraints, value):
    """Return a valid value of a parameter that differs from the present one."""
    for constraint in constraints if isinstance(constraints, list) else []:
        options = sorted(getattr(constraint, "options", ()), key=str)
        candidates = [
            *options,
            *((not value,) if constraint == "boolean" else ()),
            *((None,) if constraint is None else ()),
            *(number for number in (0.5, 2, 0.25, 7) if is_valid(constraint, number)),
        ]
        for candidate in candidates:
            if type(candidate) is not type(value) or candidate != value:
                return candidate
    return value


def is_valid(constraint, number):
    contains = getattr(constraint, "is_satisfied_by", None)
    return contains is not None and contains(number)


@every_case
def test_parameters_set_after_fit_change_no_prediction(case):
    model, X = fitted(case)
    expected = predict_all(copy.deepcopy(model), X)
    constraints = getattr(model, "_parameter_constraints", {})
    changed = 0
    for name, value in model.get_params(deep=False).items():
        other = another_value(constraints.get(name, []), value)
        if name in READ_WHEN_PREDICTING or other is value:
            continue
        assert_same(copy.deepcopy(model).set_params(**{name: other}), X, expected, name)
        # A model that has predicted before may remember something.
        seen = copy.deepcopy(model)
        predict_all(seen, X)
        assert_same(seen.set_params(**{name: other}), X, expected, f"{name}, after a prediction")
        changed += 1
    assert changed > 0


@every_case
def test_a_prediction_does_not_depend_on_pickling_or_on_earlier_ones(case):
    model, X = fitted(case)
    early = pickle.loads(pickle.dumps(model))
    expected = predict_all(model, X)
    assert_same(model, X, expected)
    assert_same(early, X, expected)
    assert_same(pickle.loads(pickle.dumps(model)), X, expected)


@every_case
def test_threads_may_predict_with_one_model(case):
    model, X = fitted(case)
    expected = predict_all(copy.deepcopy(model), X)
    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(predict_all, model, X) for _ in range(8)]
    for result in results:
        for actual, before in zip(result.result(), expected, strict=True):
            assert_array_equal(actual, before)


@every_case
def test_fit_changes_no_constructor_parameter(case):
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    model = case.new()
    before = {name: pickle.dumps(value) for name, value in model.get_params(deep=False).items()}
    model.fit(X, y)
    after = {name: pickle.dumps(value) for name, value in model.get_params(deep=False).items()}
    assert after == before


def gated_student(teacher):
    return GatedSVC(target=1, teacher=teacher)


SHARED = {
    "CodeMatrixClassifier": (SVC(), CodeMatrixClassifier, classification),
    "RescaledClassifier": (LogisticRegression(), RescaledClassifier, classification),
    "PreferenceClassifier": (LogisticRegression(), PreferenceClassifier, two_classes),
    "GatedStudents": (LogisticRegression(), GatedStudents, classification),
    "GatedSVC": (LogisticRegression(), gated_student, classification),
}


@pytest.mark.parametrize("name", SHARED)
def test_two_estimators_may_share_a_constructor_argument(name):
    argument, make, data = SHARED[name]
    argument = clone(argument)
    X, y = data()
    first = make(argument).fit(X, y)
    expected = predict_all(first, X)
    make(argument).fit(-X[:, ::-1], np.roll(y, 1))
    assert_same(first, X, expected)


@pytest.mark.parametrize("estimator", STRUCTURED, ids=lambda e: type(e).__name__)
def test_two_learners_may_share_a_model(estimator):
    model = clone(MODELS["chain"][0])
    before = pickle.dumps(model)
    X, Y = chains()
    first = clone(estimator).set_params(model=model).fit(X, Y)
    expected = predict_all(first, X)
    # Another number of features and of states.
    other_X = [np.column_stack([x, x]) for x in X]
    clone(estimator).set_params(model=model).fit(other_X, [1 + np.asarray(y) for y in Y])
    assert_same(first, X, expected)
    assert pickle.dumps(model) == before

"""Weights and margins of classes, and what machines make of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.oracles.hinge import Hinge, solve_exactly

from widemargin import SVC, SVCCV, effective_class_weight, ldam_class_margin
from widemargin._base.targets import class_margins, class_weights


@pytest.fixture
def uneven():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [48, 16, 3])
    return rng.standard_normal((len(y), 2)) + y[:, np.newaxis], y


def test_effective_weights_are_inverse_to_effective_numbers_and_have_mean_one():
    counts = {"a": 1000, "b": 50, "c": 2}
    y = np.repeat(list(counts), list(counts.values()))
    beta = 0.99
    worth = {name: sum(beta**k for k in range(n)) for name, n in counts.items()}
    weights = effective_class_weight(y, beta=beta)
    assert np.mean(list(weights.values())) == pytest.approx(1.0)
    for name in counts:
        assert weights[name] / weights["a"] == pytest.approx(worth["a"] / worth[name])


def test_effective_weights_lie_between_equal_and_balanced_ones(uneven):
    _, y = uneven
    assert set(effective_class_weight(y, beta=0.0).values()) == {1.0}
    nearly = np.array(list(effective_class_weight(y, beta=1 - 1e-7).values()))
    balanced = 1 / np.bincount(y)
    assert_allclose(nearly, balanced / balanced.mean(), rtol=1e-5)


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_class_weights_that_are_no_weights_are_refused_by_name(uneven, weight):
    with pytest.raises(
        ValueError, match="class_weight must contain finite, non-negative numbers, got"
    ):
        SVC(class_weight={0: weight}).fit(*uneven)


def test_no_weight_of_an_infinite_cost_is_refused_by_name(uneven):
    with pytest.raises(ValueError, match="class_weight must be greater than 0 for every class"):
        SVC(C=np.inf, class_weight={0: 0.0}).fit(*uneven)


def test_ldam_margins_fall_with_the_fourth_root_of_the_count():
    y = np.repeat([0, 1, 2], [81 * 2, 16 * 2, 2])
    margins = ldam_class_margin(y, largest=6.0)
    assert margins == {0: pytest.approx(2.0), 1: pytest.approx(3.0), 2: 6.0}


def test_weights_of_rows_count_as_repetitions(uneven):
    _, y = uneven
    weights = np.arange(len(y)) % 3
    repeated = np.repeat(y, weights)
    assert effective_class_weight(y, sample_weight=weights) == pytest.approx(
        effective_class_weight(repeated)
    )
    assert ldam_class_margin(y, sample_weight=weights) == pytest.approx(ldam_class_margin(repeated))


@pytest.mark.parametrize(("beta", "largest"), [(1.0, 0.0), (-0.1, -1.0), (np.nan, np.inf)])
def test_impossible_numbers_are_refused(uneven, beta, largest):
    with pytest.raises(ValueError, match=r"beta must be at least 0 and less than 1, got"):
        effective_class_weight(uneven[1], beta=beta)
    with pytest.raises(ValueError, match="largest must be a number greater than 0, got"):
        ldam_class_margin(uneven[1], largest=largest)


@pytest.mark.parametrize("function", [effective_class_weight, ldam_class_margin])
def test_labels_that_have_no_classes_are_refused(function):
    with pytest.raises(ValueError, match="y must contain class labels, got none"):
        function([])
    with pytest.raises(ValueError, match="of one type, got NoneType, str"):
        function(np.array(["a", "b", None], dtype=object))


def test_names_of_the_two_ways_are_their_functions(uneven):
    X, y = uneven
    named = SVC(class_weight="effective", class_margin="ldam").fit(X, y)
    given = SVC(class_weight=effective_class_weight(y), class_margin=ldam_class_margin(y)).fit(X, y)
    assert_allclose(named.class_weight_, list(effective_class_weight(y).values()))
    assert_allclose(named.class_margin_, list(ldam_class_margin(y).values()))
    np.testing.assert_array_equal(named.decision_function(X), given.decision_function(X))


def test_a_class_that_is_not_named_has_margin_one():
    classes, y = np.array(["a", "b"]), np.array(["a", "b", "b"])
    assert_allclose(class_margins({"b": 0.5}, classes, y), [1.0, 0.5])
    assert_allclose(class_margins(None, classes, y), [1.0, 1.0])
    assert_allclose(class_weights("effective", classes, y).mean(), 1.0)


def test_weights_and_margins_are_in_the_order_of_the_classes():
    classes, y = np.array(["a", "b"]), np.array(["a", "b", "b"])
    for compute, name in ((class_weights, "effective"), (class_margins, "ldam")):
        assert_allclose(compute(name, classes[::-1], y), compute(name, classes, y)[::-1])
        assert compute(name, classes, y)[0] > compute(name, classes, y)[1]


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ({5: 1.0}, r"class_margin must be classes of y \(\[0, 1, 2\]\), got \[5\]"),
        ({0: 0.0}, "class_margin must contain finite numbers greater than 0"),
        ({0: np.inf}, "class_margin must contain finite numbers greater than 0"),
    ],
)
def test_impossible_margins_are_refused(uneven, margins, message):
    with pytest.raises(ValueError, match=message):
        SVC(class_margin=margins).fit(*uneven)


def test_equal_margins_change_only_the_scale(uneven):
    X, y = uneven
    halved = SVC(C=0.5, class_margin=dict.fromkeys([0, 1, 2], 0.5), gamma=0.3, tol=1e-8)
    plain = SVC(C=1.0, gamma=0.3, tol=1e-8, decision_function_shape="ovo")
    halved.set_params(decision_function_shape="ovo")
    assert_allclose(
        halved.fit(X, y).decision_function(X),
        0.5 * plain.fit(X, y).decision_function(X),
        atol=1e-6,
    )


@pytest.mark.parametrize("search", [False, True])
def test_a_machine_with_margins_by_class_is_at_the_exact_optimum(uneven, search):
    X, y = uneven
    X, y = X[y > 0], y[y > 0]
    margins, weights = {1: 0.4, 2: 1.3}, {1: 1.0, 2: 4.0}
    options = {"kernel": "linear", "class_margin": margins, "class_weight": weights, "tol": 1e-8}
    machine = SVCCV(Cs=[2.0], cv=2, **options) if search else SVC(C=2.0, **options)
    machine.fit(X, y)
    sign = np.where(y == 2, 1.0, -1.0)
    margin = np.where(y == 2, 1.3, 0.4)
    cost = 2.0 * np.where(y == 2, 4.0, 1.0)
    exact = solve_exactly(Hinge(X @ X.T, sign, margin, cost))
    assert machine.objective_[0] == pytest.approx(exact.objective, rel=1e-7)


def test_ldam_moves_the_boundary_away_from_the_rare_class():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [400, 25])
    X = rng.standard_normal((len(y), 2)) + 1.5 * y[:, np.newaxis]
    plain, moved = SVC().fit(X, y), SVC(class_margin="ldam").fit(X, y)
    assert (moved.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()

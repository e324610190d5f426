"""The hinge problem: what it accepts, and what is said of any point of its dual."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.hinge import best_intercept, solve_exactly
from tests.oracles.strategies import hinge_problems
from tests.solvers.cases import exact_dual_objective, random_feasible, solve

from widemargin._base import jit
from widemargin.kernels import MatrixGram
from widemargin.solvers import HingeProblem, NotSeparableError, certify
from widemargin.solvers.hinge.problem import _dual_form, _rounding_error
from widemargin.solvers.hinge.problem import certificate as objectives

SIGN = np.array([1.0, -1.0, 1.0])


def certificate(problem, dual):
    residual = problem.linear() - problem.gram.block(slice(None), slice(None)) @ dual
    return certify(problem, dual, residual, 7, False)


def test_numbers_stand_for_all_rows():
    problem = HingeProblem(np.eye(3), [1, -1, 1], 0.5, 2)
    assert problem.size == 3
    assert problem.sign.dtype == problem.margin.dtype == problem.cost.dtype == np.float64
    assert problem.margin.tolist() == [0.5, 0.5, 0.5]
    assert problem.cost.tolist() == [2.0, 2.0, 2.0]
    assert problem.intercept
    assert isinstance(problem.gram, MatrixGram)


def test_bounds_and_linear_part_are_signed():
    problem = HingeProblem(np.eye(3), SIGN, np.array([1.0, 2.0, -3.0]), np.array([1.0, np.inf, 0]))
    lower, upper = problem.bounds()
    assert lower.tolist() == [0.0, -np.inf, 0.0]
    assert upper.tolist() == [1.0, 0.0, 0.0]
    assert problem.linear().tolist() == [1.0, -2.0, -3.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sign": SIGN[:2]}, r"sign must have 3 entries, got shape \(2,\)"),
        ({"sign": np.array([1.0, 0.0, -1.0])}, "sign must be"),
        ({"sign": np.array([1.0, np.nan, -1.0])}, "sign must be"),
        ({"margin": np.ones(2)}, r"margin and cost must have shape \(3,\), got \(2,\)"),
        ({"cost": np.ones((3, 1))}, r"margin and cost must have shape \(3,\), got \(3, 1\)"),
        ({"margin": np.inf}, "margin must be finite"),
        ({"margin": np.array([1.0, np.nan, 1.0])}, "margin must be finite"),
        ({"cost": -1.0}, "cost must be at least 0"),
        ({"cost": np.array([1.0, np.nan, 1.0])}, "cost must be at least 0"),
    ],
)
def test_numbers_that_make_no_problem_are_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        HingeProblem(**({"gram": np.eye(3), "sign": SIGN} | arguments))


def test_a_feasible_point_is_put_exactly_into_its_box():
    problem = HingeProblem(np.eye(2), np.array([1.0, -1.0]), cost=1.0)
    given_point = np.array([1.0 + 1e-13, -1.0])
    checked = problem.check_feasible(given_point)
    assert checked.tolist() == [1.0, -1.0]
    checked[0] = 0.0
    assert given_point[0] == 1.0 + 1e-13


def test_points_outside_are_not_feasible():
    problem = HingeProblem(np.eye(2), np.array([1.0, -1.0]), cost=np.array([1.0, np.inf]))
    for dual, message in [
        ([1.1, -1.1], "between 0 and sign"),
        ([-0.1, 0.1], "between 0 and sign"),
        ([1.0, -0.5], "sum to 0"),
        ([1.0, np.nan], "between 0 and sign"),
        ([1.0, -np.inf], "dual must"),
        ([1.0], "shape"),
    ]:
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
            problem.check_feasible(np.array(dual))


@settings(max_examples=60)
@given(hinge=hinge_problems(decades=1), seed=st.integers(0, 99))
def test_the_objectives_of_any_point_enclose_the_optimum(hinge, seed):
    problem = HingeProblem(*hinge)
    exact = solve_exactly(hinge)
    dual = random_feasible(problem, seed)
    solution = certificate(problem, dual)
    assert solution.dual_objective == pytest.approx(
        exact_dual_objective(problem, dual), rel=1e-9, abs=1e-9 * exact.scale
    )
    assert solution.dual_objective <= exact.objective + 1e-6 * exact.scale
    assert solution.objective >= exact.dual_objective - 1e-6 * exact.scale
    assert solution.gap >= 0.0
    assert (solution.iterations, solution.converged) == (7, False)


@settings(max_examples=40)
@given(hinge=hinge_problems(decades=1))
def test_the_intercept_of_a_solution_is_a_best_one(hinge):
    problem = HingeProblem(*hinge)
    solution = solve(problem, tol=1e-9)
    f = hinge.gram @ solution.dual
    cost = np.minimum(hinge.cost, 2.0 * np.abs(solution.dual).max() + 1.0)

    def loss(intercept):
        return cost @ np.maximum(0.0, hinge.margin - hinge.sign * (f + intercept))

    scale = np.abs(hinge.margin) @ np.abs(solution.dual) + 1e-3
    assert loss(solution.intercept) <= loss(best_intercept(hinge, f, cost)) + 1e-5 * scale


def test_hard_rows_that_fall_short_are_met_by_a_larger_function():
    problem = HingeProblem(np.eye(2), np.array([1.0, -1.0]), cost=np.inf)
    solution = certificate(problem, np.array([0.5, -0.5]))
    assert solution.objective == pytest.approx(1.0)
    assert solution.dual_objective == pytest.approx(0.75)
    assert solution.gap == pytest.approx(0.25)


def test_hard_rows_on_the_wrong_side_leave_no_bound():
    problem = HingeProblem(np.eye(2), np.array([1.0, -1.0]), cost=np.inf)
    solution = certificate(problem, np.zeros(2))
    assert solution.objective == solution.gap == np.inf


def test_indefinite_kernels_have_no_gap():
    gram = MatrixGram(-np.eye(2), positive_semidefinite=False)
    solution = certificate(HingeProblem(gram, np.array([1.0, -1.0])), np.array([1.0, -1.0]))
    assert np.isnan(solution.gap)


def test_the_error_says_what_to_do():
    assert isinstance(NotSeparableError(), ValueError)
    assert "Use a finite cost" in str(NotSeparableError())


@pytest.mark.parametrize("seed", range(20))
def test_vector_operations_have_the_bits_of_compiled_code(seed):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 30))
    sign = generator.choice([-1.0, 1.0], n)
    margin, cost = generator.normal(size=n), generator.choice([0.0, 0.5, 2.0, np.inf], n)
    if seed % 2:
        cost = np.minimum(cost, 2.0)
    error, lower, upper, _ = compiled_and_plain(_dual_form, sign, margin, cost)
    assert error == 0
    share = generator.choice([0.0, 0.3, 1.0], n)
    dual = sign * share * np.minimum(cost, 3.0)
    data = sign, margin, lower, upper, dual, generator.normal(size=n)
    for with_intercept in (False, True):
        compiled_and_plain(objectives, *data, generator.normal(), with_intercept)
    compiled_and_plain(_rounding_error, sign, *data[2:], generator.normal(size=n), 1e-16)


@pytest.mark.parametrize("number", range(3))
def test_vector_operations_find_the_errors_that_compiled_code_finds(number):
    arrays = [np.ones(4), np.ones(4), np.ones(4)]
    arrays[number][2] = np.nan
    assert compiled_and_plain(_dual_form, *arrays)[0] == number + 1


def compiled_and_plain(function, *arguments):
    with jit.eager():
        expected = function(*arguments)
    with np.errstate(all="ignore"):
        found = function.substitute(*arguments)
    if not isinstance(expected, tuple):
        assert found == expected
        return expected
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return expected

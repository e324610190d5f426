"""No reported duality gap is below the true one, and none is large without a warning."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from tests.oracles.extended import draw, joint_certificate, linear_certificate, svc_certificate

from widemargin import SVC
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import LOSSES
from widemargin.solvers.hinge.newton import solve_primal
from widemargin.solvers.multiclass.linear import solve_linear
from widemargin.solvers.multiclass.problem import CrammerSingerProblem

ALLOWED = 1e-9
LARGE = 1e-3


def fitted(X, y, parameters):
    """Return a fitted SVC, and whether there was a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SVC(**parameters).fit(X, y)
    return model, any("terminated early" in str(warning.message) for warning in caught)


def assert_svc_is_certain(X, y, parameters):
    model, warned = fitted(X, y, parameters)
    objective, gap = svc_certificate(model, X, y)
    claimed = model.dual_gap_[0]
    assert claimed >= gap - ALLOWED
    assert warned or claimed <= parameters.get("gap_tol", LARGE)
    assert abs(model.objective_[0] - objective) <= max(1e-6, claimed) * objective


def assert_linear_is_certain(seed):
    X, y, parameters = draw(seed)
    sign, Z = np.where(y == 1, 1.0, -1.0), np.hstack([X, np.ones((len(X), 1))])
    cost = np.full(len(X), parameters["C"])
    for name, solve in (("hinge", solve_dual), ("squared_hinge", solve_dual),
                        ("squared_hinge", solve_primal)):  # fmt: skip
        problem = LinearProblem(X, sign, cost, LOSSES[name], bias=1.0)
        found = solve(problem)
        squared = name == "squared_hinge"
        objective, gap = linear_certificate(Z, sign, cost[0], squared, found.weights, found.dual)
        assert found.gap >= gap - ALLOWED
        assert found.gap <= LARGE or not found.converged
        assert abs(found.objective - objective) <= max(1e-6, found.gap) * objective


def assert_joint_is_certain(seed):
    X, y, parameters = draw(seed)
    label = y + (np.arange(len(y)) % 3 == 0)
    cost, Z = np.full(len(X), parameters["C"]), np.hstack([X, np.ones((len(X), 1))])
    found = solve_linear(X, CrammerSingerProblem(label, cost, 3, bias=1.0))
    objective, gap = joint_certificate(Z, label, cost[0], found.weights, found.dual)
    assert found.gap >= gap - ALLOWED
    assert found.gap <= LARGE or not found.converged
    assert abs(found.objective - objective) <= max(1e-6, found.gap) * objective


def certain_svc(seed):
    assert_svc_is_certain(*draw(seed))


each_problem = pytest.mark.parametrize(
    "assert_certain", [certain_svc, assert_linear_is_certain, assert_joint_is_certain]
)


@each_problem
def test_random_fits_are_certain(assert_certain, record_property):
    for seed in range(4):
        assert_certain(seed)
    record_property("faults: extreme fits", 4)


@pytest.mark.slow
@each_problem
@pytest.mark.parametrize("first", range(0, 700, 100))
def test_many_random_fits_are_certain(assert_certain, first, record_property):
    for seed in range(first, first + 100):
        assert_certain(seed)
    record_property("faults: extreme fits", 100)


def noisy(n=120, d=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)


@pytest.mark.parametrize("parameters", [{}, {"C": 100.0, "gap_tol": 1e-6}])
def test_a_linear_kernel_on_features_of_offset_1e7_converges(parameters):
    X, y = noisy()
    parameters = {"kernel": "linear", **parameters}
    assert_svc_is_certain(X + 1e7, y, parameters)
    model, warned = fitted(X + 1e7, y, parameters)
    plain = SVC(**parameters).fit(X, y)
    assert not warned
    assert model.dual_gap_[0] <= parameters.get("gap_tol", LARGE)
    assert model.objective_[0] == pytest.approx(plain.objective_[0], rel=1e-4)


def test_the_rbf_kernel_of_distant_samples_is_1_at_equal_ones():
    X, y = noisy()
    X = np.vstack([1e8 * X, 1e8 * X[:5]])
    y = np.append(y, y[:5])
    parameters = {"gamma": 1.0}
    assert_svc_is_certain(X, y, parameters)
    model = SVC(**parameters).fit(X, y)
    values = model._expansion._exact.cross_values(model.support_vectors_)
    assert (values.diagonal() == 1.0).all()
    gram = type(model._expansion._exact)(model._expansion.parameters.function, sparse.csr_array(X))
    np.testing.assert_array_equal(gram.block(slice(None)), gram.block(slice(None)).T)
    assert (gram.block(slice(None)).diagonal() == 1.0).all()


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_an_offset_of_the_features_does_not_change_predictions(multi_class):
    X, y = noisy()
    y = y + (X[:, 1] > 1.0)
    plain = SVC(kernel="linear", multi_class=multi_class).fit(X, y)
    moved = SVC(kernel="linear", multi_class=multi_class).fit(X + 1e6, y)
    np.testing.assert_allclose(
        moved.decision_function(X + 1e6), plain.decision_function(X), atol=1e-5
    )
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-5)

"""Repulsion of directions: its force, its known minima, and bounded steps."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.structured.cases import examples

from widemargin.solvers.structured.coulomb import (
    CoulombState,
    advance_subgradient,
    best_weights,
    coulomb_energy,
    coulomb_forces,
    rotation,
)

# Energies of so many charges on a sphere in three dimensions (Thomson's problem).
THOMSON = {
    5: 6.474691495, 6: 9.985281374, 7: 14.452977414, 8: 19.675287861, 9: 25.759986531,
    10: 32.716949460, 11: 40.596450510, 12: 49.165253058,
}  # fmt: skip


def directions(n, size, seed=0):
    W = np.random.default_rng(seed).normal(size=(n, size))
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def equilibrium(n, size, exponent=1.0, steps=2000):
    """Directions after repulsion alone."""
    U = directions(n, size)
    for _ in range(steps):
        U = U + rotation(U, 1.0 / n, exponent)
    return U


@given(st.integers(2, 6), st.integers(2, 5), st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 99))
@examples(50)
def test_the_force_is_minus_the_gradient_of_the_energy(n, size, exponent, seed):
    rng = np.random.default_rng(seed)
    U, way = directions(n, size, seed), rng.normal(size=(n, size))

    def energy(t):
        # The energy of points that need not be on the sphere, pair by pair.
        points = U + t * way
        pairs = [(i, j) for i in range(n) for j in range(i)]
        return sum(np.linalg.norm(points[i] - points[j]) ** -exponent for i, j in pairs)

    assert_allclose(coulomb_energy(U, exponent), energy(0.0), rtol=1e-10)
    nearest = min(np.linalg.norm(U[i] - U[j]) for i in range(n) for j in range(i))
    h = 1e-5 * nearest
    slope = (energy(h) - energy(-h)) / (2.0 * h)
    along = -np.sum(coulomb_forces(U, exponent) * way)
    assert_allclose(along, slope, rtol=1e-5, atol=1e-6 * abs(energy(0.0)))


def test_the_energy_does_not_depend_on_norms():
    W = np.random.default_rng(0).normal(size=(4, 5))
    assert_allclose(coulomb_energy(W * [[1.0], [2.0], [0.1], [7.0]]), coulomb_energy(W))


@pytest.mark.parametrize("size", [2, 5])
def test_two_directions_become_opposite(size):
    U = equilibrium(2, size)
    assert_allclose(U[0], -U[1], atol=1e-6)


@pytest.mark.parametrize(("n", "size"), [(3, 2), (3, 6), (4, 3), (4, 7)])
def test_three_and_four_directions_become_the_corners_of_a_simplex(n, size):
    U = equilibrium(n, size)
    assert_allclose(U @ U.T, np.where(np.eye(n), 1.0, -1.0 / (n - 1)), atol=1e-5)


@pytest.mark.parametrize("n", THOMSON)
def test_repulsion_alone_reaches_the_energies_of_thomson(n):
    assert_allclose(coulomb_energy(equilibrium(n, 3)), THOMSON[n], rtol=1e-6)


def test_a_rotation_keeps_the_norm():
    W = 3.0 * directions(5, 4)
    assert_allclose(np.linalg.norm(W + rotation(W, 0.1), axis=1), 3.0)


class Hinges:
    """Two classes in the plane: H_k = max(0, 1 - w . d_k)."""

    threads, size = 1, 2
    rows = np.array([[1.0, 0.2], [0.3, 1.0], [-0.1, 0.5]])
    n_samples = len(rows)

    def violations(self, w, samples=None, weight=None):
        rows = self.rows if samples is None else self.rows[samples]
        slacks = np.maximum(0.0, 1.0 - rows @ w)
        weight = np.ones(len(rows)) if weight is None else weight
        return SimpleNamespace(slacks=slacks, difference=(weight * (slacks > 0.0)) @ rows)


def assign_randomly(W, random):
    member = random.integers(len(W), size=3)
    return [np.flatnonzero(member == m) for m in range(len(W))]


@pytest.mark.large
@pytest.mark.parametrize(("assign", "alpha"), [(None, 1e4), (assign_randomly, 1.0)])
def test_norms_stay_finite_over_ten_thousand_steps(assign, alpha):
    random = np.random.default_rng(0)
    state = CoulombState(
        Hinges(), np.full(3, 2.0), alpha, 1.0, assign, random, random.normal(size=(3, 2)),
        max_iter=10_000, check_every=100, offset=20.0,
    )  # fmt: skip
    largest = 0.0
    while not advance_subgradient(state):
        largest = max(largest, np.abs(state.W).max())
    # A member is never longer than what pulls on it: 3 samples of cost 2, each shorter than 1.1.
    assert largest < 6 * 3 * 1.1
    assert np.isfinite(state.W).all()
    assert state.objective == min(state.curves["objective"])


def test_directions_that_coincide_have_a_finite_force():
    U = np.repeat(directions(1, 4), 3, axis=0)
    assert np.isfinite(coulomb_energy(U))
    assert np.isfinite(coulomb_forces(U)).all()
    U[0] += 1e-12
    assert np.isfinite(rotation(U, 10.0)).all()


def test_a_member_without_samples_is_no_advantage():
    random = np.random.default_rng(0)
    state = CoulombState(
        Hinges(), np.full(3, 2.0), 1.0, 1.0, None, random, random.normal(size=(2, 2)),
        max_iter=1, check_every=1, offset=20.0,
    )  # fmt: skip
    W = np.ones((2, 2)), [np.arange(3), np.arange(0)], [np.arange(2), np.arange(2, 3)]
    # All samples count equally often, however they are divided among equal members.
    assert_allclose(state.evaluate(*W[:2]), state.evaluate(W[0], W[2]))


def test_random_assignments_are_scored_by_all_samples():
    random = np.random.default_rng(0)
    state = CoulombState(
        Hinges(), np.full(3, 2.0), 1.0, 1.0,
        lambda W, random: list(random.integers(3, size=(len(W), 1))), random,
        random.normal(size=(3, 2)), max_iter=50, check_every=5, offset=20.0, score_all=True,
    )  # fmt: skip
    while not advance_subgradient(state):
        pass
    best = best_weights(state)
    whole = CoulombState(Hinges(), np.full(3, 2.0), 1.0, 1.0, None, random, best, 1, 1, offset=20.0)
    assert_allclose(state.objective, whole.evaluate(best, whole.assigned())[0])

"""The bounds of the route for very many rows: from samples below, from approximations above."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.kernel_approximation import Nystroem

from widemargin import SVC, LinearSVC

C, GAMMA = 0.5, 2.0


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(400, noise=0.3, random_state=0)
    return X, 2 * y - 1


@pytest.fixture(scope="module")
def exact(moons):
    return SVC(C=C, gamma=GAMMA, tol=1e-6).fit(*moons)


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_optima_of_parts_of_the_rows_are_no_higher_on_average(moons, exact, parts):
    X, y = moons
    rows = np.random.default_rng(0).permutation(len(y)).reshape(parts, -1)
    machines = [SVC(C=C * parts, gamma=GAMMA).fit(X[part], y[part]) for part in rows]
    lower = np.mean([machine.objective_[0] * (1 - machine.dual_gap_[0]) for machine in machines])
    assert 0 < lower < exact.objective_[0]


@pytest.mark.parametrize("landmarks", [5, 50, 400])
def test_an_approximation_is_no_lower_than_the_optimum(moons, exact, landmarks):
    X, y = moons
    features = Nystroem(gamma=GAMMA, n_components=landmarks, random_state=0).fit_transform(X)
    linear = LinearSVC(C=C, loss="hinge", tol=1e-3, max_iter=20_000)
    scores = linear.fit(features, y).decision_function(features)
    upper = (linear.coef_**2).sum() / 2 + C * np.maximum(0, 1 - y * scores).sum()
    assert upper > exact.objective_[0] * (1 - exact.dual_gap_[0])
    if landmarks == len(y):
        assert upper == pytest.approx(exact.objective_[0], rel=1e-2)

"""Oracles of a user need what the protocol says."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.structured.cases import MODELS, samples
from tests.structured.models.test_models import OwnClasses

from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe
from widemargin.solvers.structured.problem import OracleSubset
from widemargin.structured import (
    FrankWolfeSSVM,
    OneSlackSSVM,
    SubgradientSSVM,
)


class OwnOracle:
    """What a user's oracle must have, and no more."""

    def __init__(self, inner):
        self.n_samples, self.size = inner.n_samples, inner.size
        self.from_model_order, self.to_model_order = inner.from_model_order, inner.to_model_order
        self.violation, self.violations = inner.violation, inner.violations


class OwnOracleClasses(OwnClasses):
    def oracle(self, X, Y, threads=None):
        return OwnOracle(super().oracle(X, Y, threads))


@pytest.mark.parametrize("kind", [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM])
def test_an_oracle_of_the_users_needs_what_the_protocol_says(kind):
    X, Y = samples(MODELS["classes"][1])
    own, other = (
        kind(model, C=0.3, tol=0.1).fit(X, Y) for model in (OwnOracleClasses(), OwnClasses())
    )
    assert_array_equal(own.w, other.w)


def test_some_samples_of_an_oracle_of_the_users_are_learnt():
    X, Y = samples(MODELS["classes"][1])
    model = OwnOracleClasses()
    model.initialize(X, Y)
    some = OracleSubset(model.oracle(X, Y), [1, 3, 4])
    assert solve_frank_wolfe(some, np.full(3, 0.3), tol=0.01).converged

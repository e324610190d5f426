"""PerturbedSSVM: the norm and the directions of perturbations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from tests.structured.ensembles.cases import (
    draw_chains,
)

from widemargin.structured import (
    MultiClassClf,
    PerturbedSSVM,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_perturbations_of_outputs_change_outputs_and_nothing_else():
    X, y = load_iris(return_X_y=True)
    ensemble = PerturbedSSVM(MultiClassClf(), 3, directions="outputs", C=0.1).fit(X, y)
    scale = np.abs(ensemble.W).max()
    assert_allclose(ensemble.W.reshape(3, 3, -1).sum(axis=1) / scale, 0.0, atol=1e-9)
    assert_allclose(np.linalg.norm(ensemble.W, axis=1), np.linalg.norm(ensemble.w))


def test_perturbed_members_keep_the_norm_and_the_first_is_the_single_ssvm():
    model, X, Y = draw_chains()
    ensemble = PerturbedSSVM(model, 4, spread=0.7, C=0.5).fit(X, Y)
    norm = np.linalg.norm(ensemble.w)
    assert_allclose(np.linalg.norm(ensemble.W, axis=1), norm)
    assert_allclose(ensemble.W[0], ensemble.w)
    cosines = ensemble.W[1:] @ ensemble.w / norm**2
    assert (cosines < 1.0 - 1e-3).all()

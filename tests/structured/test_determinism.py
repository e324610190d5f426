"""The same samples give the same bits, whatever else runs and on however many threads."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from tests.structured.cases import MODELS, samples
from threadpoolctl import threadpool_limits

from widemargin.structured import (
    CoulombSSVM,
    DiverseMultipleChoiceSSVM,
    FrankWolfeSSVM,
    MultipleChoiceSSVM,
    OneSlackSSVM,
    PerturbedSSVM,
    StructuredPerceptron,
    SubgradientSSVM,
)

ENSEMBLE = {"C": 0.5, "max_iter": 10, "tol": 0.1, "random_state": 3}
ESTIMATORS = {
    "frank-wolfe": FrankWolfeSSVM(None, C=0.5, max_iter=10, random_state=3),
    "one slack": OneSlackSSVM(None, C=0.5, max_iter=10, inference_cache=3),
    "subgradient": SubgradientSSVM(None, C=0.5, max_iter=10, batch_size=None, random_state=3),
    "online subgradient": SubgradientSSVM(
        None, C=0.5, max_iter=10, random_state=3, averaging="linear", shuffle=True
    ),
    "perceptron": StructuredPerceptron(
        None, max_iter=5, random_state=3, average=True, shuffle=True
    ),
    "coulomb": CoulombSSVM(None, 3, assignment="sampled", n_steps=5, **ENSEMBLE),
    "anchored": CoulombSSVM(None, 3, solver="anchored", n_steps=2, **ENSEMBLE),
    "multiple choice": MultipleChoiceSSVM(None, 3, n_rounds=2, **ENSEMBLE),
    "diverse choice": DiverseMultipleChoiceSSVM(None, 3, n_rounds=2, **ENSEMBLE),
    "perturbed": PerturbedSSVM(None, 3, directions="outputs", **ENSEMBLE),
}
# More samples than fit into one chunk of an oracle; a forest, and cycles.
DATA = {
    "chain": (MODELS["chain"][0], samples(MODELS["chain"][1], 40)),
    "grid": (MODELS["grid"][0], samples(MODELS["grid"][1], 40)),
}


def new(name, data, **parameters):
    return clone(ESTIMATORS[name]).set_params(model=clone(DATA[data][0]), **parameters)


def digest(estimator, data):
    """Fit, and tell what was learnt and is predicted from all else."""
    X, Y = DATA[data][1]
    estimator.fit(X, Y)
    learnt = estimator.W if hasattr(estimator, "W") else estimator.w
    found = hashlib.sha256(np.ascontiguousarray(learnt).tobytes())
    for y in estimator.predict(X):
        found.update(np.asarray(y).tobytes())
    return found.hexdigest()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("data", ["chain", pytest.param("grid", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_jobs_threads_and_earlier_fits_do_not_change_bits(name, data):
    estimator = new(name, data)
    expected = digest(estimator, data)
    assert digest(new(name, data, n_jobs=3), data) == expected, "three jobs"
    with threadpool_limits(1):
        assert digest(new(name, data), data) == expected, "one thread"
    X, Y = DATA[data][1]
    estimator.fit(X[:5], Y[:5])
    assert digest(estimator, data) == expected, "a second fit"
    with ThreadPoolExecutor(2) as pool:
        fits = [new(name, data) for _ in range(2)]
        assert set(pool.map(lambda own: digest(own, data), fits)) == {expected}, "fits at once"

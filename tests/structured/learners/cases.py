"""Learners with their tolerances, and letters to train on."""

from sklearn.base import clone

from widemargin.datasets import load_letters
from widemargin.structured import (
    FrankWolfeSSVM,
    NSlackSSVM,
    OneSlackSSVM,
    SubgradientSSVM,
)

LEARNERS = {
    "frank-wolfe": FrankWolfeSSVM(None, max_iter=20_000, tol=1e-3),
    "one slack": OneSlackSSVM(None, tol=1e-4),
    "one slack with cache": OneSlackSSVM(None, tol=1e-4, inference_cache=5),
    "n slacks": NSlackSSVM(None, tol=1e-4),
    "n slacks in batches": NSlackSSVM(None, tol=1e-4, batch_size=2),
    "batch subgradient": SubgradientSSVM(
        None, tol=0.02, max_iter=20_000, batch_size=None, averaging="linear"
    ),
    "online subgradient": SubgradientSSVM(
        None, tol=0.02, max_iter=20_000, check_dual_every=100, averaging="linear", shuffle=True
    ),
}


def new(name, model, **parameters):
    return clone(LEARNERS[name].set_params(model=model)).set_params(**parameters)


def letters(n=30):
    X, Y = load_letters(return_X_y=True)
    return X[:: len(X) // n][:n], Y[:: len(X) // n][:n]

"""Random parameters and inputs, most of them bad: an answer or a ValueError, soon, for each."""

import contextlib
import json
import os
import signal
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from tests.suites.registry import CASES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]

SECONDS = 25.0
"""Seconds of the processor that a fit may take."""

VALUES = [
    *(0, 1, -1, 2, 1000, 0.5, 1e-300, 1e-20, 1e-8, 1e5, 1e8, 1e300, np.inf, -np.inf, np.nan),
    *(None, "auto", "balanced", "x", True, [], {}),
]
# Speed and memory of the machine, and what writes files.
UNTOUCHED = {"n_jobs", "cache_size", "checkpoint"}


def changed_samples(X, y, rng):
    """Return samples of extreme scale or offset, constant, sparse, few or not finite ones."""
    outlier, missing = X.copy(), X.copy()
    outlier[rng.integers(len(X))] = 1e150
    missing[rng.integers(len(X)), 0] = rng.choice([np.nan, np.inf])
    constant = np.hstack([X, np.full((len(X), 1), 10.0 ** rng.uniform(-10, 10))])
    return [
        (X * 10.0 ** rng.uniform(-300, 300), y),
        (X * 10.0 ** rng.uniform(-8, 8, X.shape[1]), y),
        (X + 10.0 ** rng.uniform(0, 15), y),
        (np.zeros_like(X), y),
        (np.repeat(X[:1], len(X), axis=0), y),
        (sparse.csr_array(X * 10.0 ** rng.uniform(-8, 8)), y),
        (X[:6], y[:6]),
        (X, rng.permutation(y)),
        (np.hstack([X] * 20), y),
        (X.astype(np.float32) * np.float32(1e20), y),
        *((samples, y) for samples in (constant, outlier, missing, np.round(2 * X))),
    ][rng.integers(14)]


def fit_with_random_changes(case, seed):
    """Return what has come of a fit."""
    rng = np.random.default_rng(seed)
    (X, y), model = case.data(), clone(case.estimator)
    parameters = sorted(set(model.get_params()) - UNTOUCHED)
    for name in rng.choice(parameters, rng.integers(1, 4)):
        value = VALUES[rng.integers(len(VALUES))]
        value = 10.0 ** rng.uniform(-10, 10) if rng.random() < 0.5 else value
        with contextlib.suppress(ValueError, AttributeError):
            model.set_params(**{name: value})
    if rng.random() < 0.7:
        X, y = changed_samples(X, y, rng)
    X = _products(X) if case.pairwise else X
    try:
        scores = model.fit(X, y).predict(X)
    except (ValueError, NotImplementedError) as error:  # NotImplementedError as in scikit-learn
        internal = ("array must not contain infs", "cannot reshape", "could not be broadcast")
        return "internal error" if any(part in str(error) for part in internal) else "refused"
    return "fitted" if len(scores) == X.shape[0] else "wrong shape"


def _products(X):
    matrix = X @ X.T
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def in_child(call):
    """Return the result of a call in a child process, or how the child has died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = call()
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as content:
        text = content.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else f"died of signal {os.WTERMSIG(status)}"


@pytest.mark.parametrize("number", range(len(CASES)))
def test_bad_input_is_refused_soon(number, record_property):
    case = CASES[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = case.data()
        clone(case.estimator).fit(_products(X) if case.pairwise else X, y)  # compiles
    results = {
        seed: in_child(lambda seed=seed: fit_with_random_changes(case, seed))
        for seed in range(1000 * number, 1000 * number + 40)
    }
    record_property("faults: bad inputs", len(results))
    failed = {s: result for s, result in results.items() if result not in ("fitted", "refused")}
    assert failed == {}
    assert "refused" in results.values()

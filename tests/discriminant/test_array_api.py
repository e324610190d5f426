"""Arrays of other libraries are taken where scikit-learn's dispatch is on.

Dispatch has to be allowed before SciPy is imported, so these run in a process of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = """
from functools import partial
from unittest import SkipTest

from sklearn.utils import estimator_checks as checks
from sklearn.utils._array_api import NamespaceAndDevice as Place

from widemargin import LinearDiscriminantAnalysis

strict, numpy = Place("array_api_strict", None), Place("numpy", None)
values = partial(checks.check_array_api_input_and_values, array_namespace="array_api_strict")
mixed = partial(checks.check_array_api_mixed_inputs, check_values=True)
extra = [
    values,
    partial(values, check_sample_weight=True),
    partial(mixed, X_ns_and_device=strict, other_ns_and_device=numpy),
    partial(mixed, X_ns_and_device=numpy, other_ns_and_device=strict),
]
passed = 0
for options in (
    {}, {"solver": "svd"}, {"solver": "eigen", "shrinkage": "auto"}, {"objective": "trace_ratio"}
):
    estimator = LinearDiscriminantAnalysis(**options)
    for check in [*checks._yield_array_api_checks(estimator), *extra]:
        try:
            check("LinearDiscriminantAnalysis", estimator)
            passed += 1
        except SkipTest:  # a library that is not installed
            pass
print(passed)
"""

PIECES = """
import array_api_strict as xp
import numpy as np
import sklearn

from widemargin import LinearDiscriminantAnalysis
from widemargin._base.options import discriminant_options

discriminant_options.chunk_entries = discriminant_options.device_chunks = 1
rng = np.random.default_rng(0)
y = np.arange(1200) % 3
X = rng.standard_normal((1200, 4)) + y[:, None]
expected = LinearDiscriminantAnalysis().fit(X, y).predict_proba(X)
with sklearn.config_context(array_api_dispatch=True):
    grown = LinearDiscriminantAnalysis()
    for start in range(0, 1200, 400):
        rows = slice(start, start + 400)
        grown.partial_fit(xp.asarray(X[rows]), xp.asarray(y[rows]))
    answer = grown.predict_proba(xp.asarray(X))
    labels = LinearDiscriminantAnalysis().fit(xp.asarray(X), np.array(["a", "b", "c"])[y])
    labels = labels.predict(xp.asarray(X))
assert type(answer).__module__.startswith("array_api_strict")
assert np.abs(np.asarray(answer) - expected).max() < 1e-10
assert set(labels) == {"a", "b", "c"}
print("equal")
"""

OTHERS = """
import array_api_strict as xp
import numpy as np
import sklearn

from widemargin import KernelDiscriminantAnalysis, QuadraticDiscriminantAnalysis

rng = np.random.default_rng(0)
y = np.arange(120) % 3
X, weight = rng.standard_normal((120, 4)) + y[:, None], rng.random(120)
for estimator in (QuadraticDiscriminantAnalysis(), KernelDiscriminantAnalysis()):
    expected = estimator.fit(X, y, sample_weight=weight).predict_proba(X)
    with sklearn.config_context(array_api_dispatch=True):
        estimator.fit(xp.asarray(X), xp.asarray(y), sample_weight=xp.asarray(weight))
        found = estimator.predict_proba(xp.asarray(X))
        labels = estimator.predict(xp.asarray(X))
    assert isinstance(found, np.ndarray)
    assert isinstance(labels, np.ndarray)
    assert (found == expected).all()
print("equal")
"""


def run(script):
    pytest.importorskip("array_api_strict")
    root = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    outcome = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout.split()[-1]


def test_scikit_learn_accepts_arrays_of_other_libraries():
    assert int(run(CHECKS)) >= 4 * 8


def test_arrays_of_other_libraries_may_come_in_pieces():
    assert run(PIECES) == "equal"


def test_other_discriminants_convert_arrays_of_other_libraries_to_numpy():
    assert run(OTHERS) == "equal"

"""Compilation ahead of time."""

import os
import subprocess
import sys

import numba
import pytest

from widemargin import compile_all

FITS = """
import warnings
import numpy as np
from sklearn.datasets import make_classification
from tests.suites.registry import CASES
from widemargin._base import jit
from widemargin.structured import ChainCRF, FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM

warnings.simplefilter("ignore")
jit._eager.set(True)
for case in CASES:
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    model = case.new().fit(X, y)
    model.predict(X)
    if jit.clock.functions:
        raise SystemExit(f"{case} compiled {jit.clock.functions} functions")
generator = np.random.default_rng(0)
X = [generator.normal(size=(5, 4)) for _ in range(12)]
Y = [generator.integers(0, 3, 5) for _ in X]
for kind in (FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM):
    kind(ChainCRF(), max_iter=3).fit(X, Y).predict(X)
    if jit.clock.functions:
        raise SystemExit(f"{kind} compiled {jit.clock.functions} functions")
"""


@pytest.mark.slow
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_process_after_compile_all_compiles_nothing(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    fill = "import widemargin; print(widemargin.compile_all() > 30, widemargin.compile_all())"
    for code, output in ((fill, "True 0"), (fill, "False 0"), (FITS, "")):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == output


SMALL_FITS = """
import sys
from sklearn.datasets import load_iris
import widemargin
from widemargin.structured import ChainCRF, FrankWolfeSSVM

X, y = load_iris(return_X_y=True)
widemargin.LinearSVC(loss="hinge", max_iter=100_000).fit(X, y).predict(X)
widemargin.GatedSVC(target=1).fit(X, y).predict(X)
widemargin.LabelTreeClassifier().fit(X, y).predict(X)
sequences, labels = list(X.reshape(30, 5, 4)), list(y.reshape(30, 5))
FrankWolfeSSVM(ChainCRF()).fit(sequences, labels).predict(sequences)
print(*{"numba", "sklearn.cluster"} & sys.modules.keys())
"""


@pytest.mark.slow
def test_small_first_fits_import_no_compiler_and_no_clustering(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", SMALL_FITS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_compile_all_needs_a_writable_folder(tmp_path, monkeypatch):
    (tmp_path / "obstacle").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "obstacle" / "below"))
    with pytest.raises(OSError, match="Set NUMBA_CACHE_DIR to a folder that is"):
        compile_all()

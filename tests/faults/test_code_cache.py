"""Compiled code on disk that is damaged, cannot be written, or was written by someone else."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import widemargin

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="without the compiler there is no cache"),
]

FLIPS = 10
"""Number of damaged caches that are tried."""

FIT = """
import numpy
from sklearn.datasets import load_iris
from widemargin import SVC
from widemargin._base import jit
X, y = load_iris(return_X_y=True)
with jit.eager():
    model = SVC().fit(X, y)
print(jit.clock.functions, numpy.abs(model.dual_coef_).sum().hex())
"""


def run(code, **environment):
    """Run code in a new interpreter; return the words that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache that one fit has filled, and the sum of its dual coefficients."""
    folder = tmp_path_factory.mktemp("filled")
    compiled, total = run(FIT, NUMBA_CACHE_DIR=str(folder))
    assert int(compiled) > 3
    assert run(FIT, NUMBA_CACHE_DIR=str(folder)) == ["0", total]
    return folder, total


@pytest.mark.parametrize("seed", range(FLIPS))
def test_a_flipped_bit_is_found_and_its_code_compiled_again(filled, tmp_path, seed):
    folder, total = filled
    shutil.copytree(folder, tmp_path / "cache")
    generator = random.Random(seed)
    file = generator.choice(sorted((tmp_path / "cache").rglob("*.code")))
    content = bytearray(file.read_bytes())
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    file.write_bytes(content)
    compiled, found = run(FIT, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (int(compiled), found) == (1, total)
    assert run(FIT, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == ["0", total]


def installed(folder):
    """Install the package in a folder; return the environment that imports it from there."""
    package = Path(widemargin.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, folder / "site" / "widemargin", ignore=ignored)
    return {
        "PYTHONPATH": str(folder / "site"),
        "NUMBA_CACHE_DIR": "",
        "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "home" / "cache"),
        "LOCALAPPDATA": str(folder / "home" / "local"),
    }


def test_a_read_only_installation_stores_code_in_the_cache_of_the_user(tmp_path):
    environment = installed(tmp_path)
    # A file in its place makes the folder unwritable, also for the superuser.
    (tmp_path / "site" / "widemargin" / "__pycache__").touch()
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    compiled, total = run(FIT, **environment)
    assert int(compiled) > 3
    assert list((tmp_path / "home").rglob("*.code"))
    assert run(FIT, **environment) == ["0", total]


def test_code_that_came_with_the_installation_is_used_if_that_is_read_only(tmp_path):
    environment = installed(tmp_path)
    _, total = run(FIT, **environment)
    folder = tmp_path / "site" / "widemargin" / "__pycache__" / "compiled"
    assert list(folder.rglob("*.code"))
    folder.chmod(0o555)
    assert run(FIT, **environment) == ["0", total]
    assert not list((tmp_path / "home").rglob("*.code"))

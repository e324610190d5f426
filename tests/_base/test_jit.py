"""The numba wrapper: lazy, cached, forgiving, safe in threads, and the rules for its use."""

import importlib
import os
import pickle
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest
from numba import cloudpickle

KERNELS = '''
"""Compiled functions to try the wrapper on."""

from widemargin._base.jit import compiled

FACTOR = 2.0


@compiled
def twice_the_sum(values):
    return FACTOR * add(values)


@compiled
def add(values):
    total = 0.0
    for value in values:
        total += value
    return total


@compiled
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@compiled
def divide(a, b):
    return a / b


@compiled
def count_nans(values):
    count = 0
    for value in values:
        if value != value:
            count += 1
    return count
'''


needs_compiler = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="without the compiler there is no cache"
)


@pytest.fixture
def load_kernels(tmp_path, monkeypatch):
    """A function that loads the module anew, so that nobody has called its functions yet."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernels_on_trial.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)

    def load():
        sys.modules.pop("kernels_on_trial", None)
        return importlib.import_module("kernels_on_trial")

    yield load
    sys.modules.pop("kernels_on_trial", None)


@pytest.fixture
def kernels(load_kernels):
    return load_kernels()


def finds_its_code(kernels):
    """Return whether a sum, asked for the first time, is computed by code from the cache."""
    assert kernels.twice_the_sum(np.arange(4.0)) == 12.0
    return kernels.twice_the_sum.dispatcher.stats.cache_hits.total() == 1


def run(directory, code, **environment):
    """Run ``code`` in a new interpreter beside the kernels; return the words it prints."""
    (directory / "kernels_on_trial.py").write_text(KERNELS)
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_numba_is_imported_at_the_first_call_and_not_before(tmp_path):
    code = """
import sys
from kernels_on_trial import factorial
print("numba" in sys.modules, factorial(3), "numba" in sys.modules)
"""
    assert run(tmp_path, code) == ["False", "6", "True"]


def test_compiled_functions_of_one_file_call_each_other_and_themselves(kernels):
    assert kernels.twice_the_sum(np.arange(4.0)) == 12.0
    assert kernels.factorial(5) == 120


@needs_compiler
def test_division_follows_numpy(kernels):
    assert kernels.divide(1.0, 0.0) == np.inf


def test_a_nan_is_a_nan(kernels):
    assert kernels.count_nans(np.array([np.nan, 1.0, np.nan])) == 2


def test_a_name_imported_before_the_first_call_goes_on_working(kernels):
    add = kernels.add
    assert kernels.twice_the_sum(np.ones(3)) == 6.0
    assert add(np.ones(3)) == 3.0
    assert add is kernels.add


def test_many_threads_may_make_the_first_call_at_once(kernels):
    threads = 8
    barrier = threading.Barrier(threads)
    results = [None] * threads

    def first_call(position):
        function = (kernels.twice_the_sum, kernels.add)[position % 2]
        barrier.wait()
        results[position] = function(np.arange(4.0))

    workers = [threading.Thread(target=first_call, args=[i]) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [12.0, 6.0] * (threads // 2)


def test_a_changed_module_runs_its_new_code(tmp_path, kernels):
    assert kernels.twice_the_sum(np.ones(3)) == 6.0
    (tmp_path / "kernels_on_trial.py").write_text(
        KERNELS.replace("FACTOR = 2.0", "FACTOR = 1000.0")
    )
    importlib.reload(kernels)
    assert kernels.twice_the_sum(np.ones(3)) == 3e3


CALLER = """
from callee_on_trial import FACTOR, scale
from widemargin._base.jit import compiled


@compiled
def scaled_sum(values):
    total = 0.0
    for value in values:
        total += scale(value)
    return FACTOR * total
"""

CALLEE = """
from widemargin._base.jit import compiled

FACTOR = 1.0


@compiled
def scale(value):
    return 2.0 * value
"""


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [("2.0 * value", "5.0 * value", 15.0), ("FACTOR = 1.0", "FACTOR = 100.0", 600.0)],
    ids=["function", "constant"],
)
def test_a_change_of_what_another_file_defines_is_seen(tmp_path, old, new, result):
    """Compile, change the callee's file behind the caller's back, and run in a new process."""
    code = "import numpy, caller_on_trial; print(caller_on_trial.scaled_sum(numpy.ones(3)))"
    (tmp_path / "caller_on_trial.py").write_text(CALLER)
    (tmp_path / "callee_on_trial.py").write_text(CALLEE)
    assert run(tmp_path, code) == ["6.0"]
    (tmp_path / "callee_on_trial.py").write_text(CALLEE.replace(old, new))
    assert run(tmp_path, code) == [str(result)]


@needs_compiler
def test_code_is_compiled_once_and_then_taken_from_the_cache(load_kernels):
    assert [finds_its_code(load_kernels()) for _ in range(3)] == [False, True, True]


@needs_compiler
def test_without_a_writable_cache_directory_a_call_works(tmp_path, monkeypatch, load_kernels):
    # A directory below a file cannot be made, not even by the superuser.
    obstacle = tmp_path / "obstacle"
    obstacle.touch()
    (tmp_path / "__pycache__").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(obstacle / "below"))
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE"):
        monkeypatch.setenv(name, str(obstacle / "below"))
    with pytest.raises(RuntimeError, match="no locator"):
        numba.njit(cache=True)(load_kernels().add.__wrapped__)
    assert [finds_its_code(load_kernels()) for _ in range(2)] == [False, False]


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scribble(file):
    file.write_bytes(b"not what it was")


def block(file):
    """Make the file unreadable for everybody."""
    file.unlink()
    file.mkdir()


@needs_compiler
@pytest.mark.parametrize("suffix", ["nbi", "nbc"], ids=["index", "code"])
@pytest.mark.parametrize("damage", [cut, scribble, block])
def test_a_damaged_cache_does_not_break_a_call(tmp_path, load_kernels, suffix, damage):
    cache = tmp_path / "cache"
    assert not finds_its_code(load_kernels())
    files = list(cache.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        damage(file)
    assert not finds_its_code(load_kernels())
    # What can be repaired has been repaired.
    assert finds_its_code(load_kernels()) == (damage is not block)


def test_with_the_compiler_switched_off_the_same_code_runs_as_python(tmp_path):
    code = """
import numpy
from kernels_on_trial import factorial, twice_the_sum
print(twice_the_sum(numpy.arange(4.0)), factorial(5), hasattr(twice_the_sum.dispatcher, "stats"))
"""
    assert run(tmp_path, code, NUMBA_DISABLE_JIT="1") == ["12.0", "120", "False"]


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_compiled_functions_pickle_by_name(kernels, pickler):
    assert pickle.loads(pickler.dumps(kernels.add)) is kernels.add
    kernels.add(np.ones(2))
    assert pickle.loads(pickler.dumps(kernels.add)) is kernels.add

"""The numba wrapper: lazy, cached, forgiving, safe in threads, and the rules for its use."""

import importlib
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
import pytest
from numba import cloudpickle

from widemargin._base import code_cache, jit

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
    monkeypatch.setattr(jit.options, "compile_seconds", -1.0)
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


EAGER = """
import sys
from widemargin._base.options import jit_options
jit_options.compile_seconds = -1.0
"""


def test_numba_is_imported_when_code_is_compiled_and_not_before(tmp_path):
    code = """
import sys
from kernels_on_trial import factorial
from widemargin._base.jit import eager
print(factorial(3), "numba" in sys.modules)
with eager():
    print(factorial(3), "numba" in sys.modules)
"""
    assert run(tmp_path, code) == ["6", "False", "6", "True"]


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
    # Of another length: Python takes a file of the same length and second for unchanged.
    [("2.0 * value", "50.0 * value", 150.0), ("FACTOR = 1.0", "FACTOR = 100.0", 600.0)],
    ids=["function", "constant"],
)
def test_a_change_of_what_another_file_defines_is_seen(tmp_path, old, new, result):
    """Compile, change the callee's file behind the caller's back, and run in a new process."""
    code = EAGER + "import numpy, caller_on_trial; print(caller_on_trial.scaled_sum(numpy.ones(3)))"
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
    (tmp_path / "obstacle").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "obstacle" / "below"))
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
@pytest.mark.parametrize("damage", [cut, scribble, block])
def test_a_damaged_cache_does_not_break_a_call(tmp_path, load_kernels, damage):
    cache = tmp_path / "cache"
    assert not finds_its_code(load_kernels())
    files = list(cache.rglob("*.code"))
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


@pytest.fixture
def lazy(monkeypatch, load_kernels):
    """The limits that users have, and nothing interpreted so far."""
    monkeypatch.setattr(jit.options, "compile_seconds", 0.5)
    monkeypatch.setattr(jit._Interpreted, "seconds", 0.0)
    return load_kernels


@needs_compiler
def test_small_work_is_interpreted_and_large_work_compiled(lazy):
    kernels = lazy()
    assert kernels.add(np.ones(10)) == 10.0
    assert kernels.add.dispatcher is None
    assert kernels.add(np.ones(1_000_000)) == 1e6
    assert kernels.add.dispatcher is not None
    assert kernels.add(np.ones(10)) == 10.0


@needs_compiler
def test_work_that_adds_up_is_compiled(lazy, monkeypatch):
    kernels = lazy()
    monkeypatch.setattr(jit.options, "compile_seconds", 0.02)
    calls = 0
    while kernels.add.dispatcher is None:
        assert kernels.add(np.ones(1000)) == 1000.0
        calls += 1
    assert calls > 1


@needs_compiler
def test_code_that_is_not_stored_is_looked_for_once(lazy, monkeypatch):
    kernels, looked_up = lazy(), []
    monkeypatch.setattr(code_cache, "holds_any", lambda *key: bool(looked_up.append(key)))
    monkeypatch.delattr(code_cache, "holds")  # names the types of all arguments: slow
    for _ in range(3):
        assert kernels.add(np.ones(3)) == 3.0
    assert [name for name, _ in looked_up] == ["add"]


@needs_compiler
@pytest.mark.parametrize("cost", [1.0, 3.0])
def test_code_that_is_slow_to_compile_is_interpreted_longer(lazy, cost):
    # A first fit that needs a little more than the usual time must not wait for a long compilation.
    kernels = lazy()
    kernels.add.cost, kernels.add.seconds = cost, 0.6
    kernels.add(np.ones(3))
    assert (kernels.add.dispatcher is None) == (cost > 1.0)


@needs_compiler
def test_code_in_the_cache_is_used_at_once_where_numba_is_loaded(lazy):
    kernels = lazy()
    with jit.eager():
        kernels.add(np.ones(3))
    code_cache._stems.cache_clear()
    again = lazy()
    assert again.add(np.ones(3)) == 3.0
    assert again.add.dispatcher.stats.cache_hits.total() == 1
    # Code for other types of arguments is not there.
    assert again.factorial(3) == 6
    assert again.factorial.dispatcher is None


@needs_compiler
@pytest.mark.parametrize(
    "argument",
    [
        np.ones((2, 3)),
        np.ones((3, 2)).T,
        np.ones((4, 4))[::2, ::2],
        np.ones(3, dtype=np.float32),
        np.ones(3, dtype=np.int32),
        np.ones(3, dtype=np.uint32),
        np.ones(3, dtype=bool),
        np.broadcast_to(1.0, 3),
        None,
        True,
        np.True_,
        3,
        2.5,
        np.float32(1.0),
        np.int64(1),
        (np.ones(2), 3),
    ],
    ids=repr,
)
def test_types_of_arguments_have_the_same_names_with_and_without_numba(argument):
    assert code_cache._type_name(argument) == code_cache._name_of_type(numba.typeof(argument))


def test_an_uncompiled_substitute_runs_until_its_function_is_compiled(lazy):
    kernels = lazy()

    @jit.uncompiled(kernels.add)
    def by_vectors(values):
        calls.append(len(values))
        return values.sum()

    calls = []
    assert kernels.twice_the_sum(np.ones(3)) == 6.0
    assert calls == ([] if numba.config.DISABLE_JIT else [3])
    with jit.eager():
        assert kernels.twice_the_sum(np.ones(4)) == 8.0
    assert 4 not in calls


@needs_compiler
def test_a_message_is_logged_once_when_compilation_takes_long(kernels, monkeypatch, caplog):
    monkeypatch.setattr(jit, "clock", jit._Clock())
    monkeypatch.setattr(jit.options, "silent_seconds", 0.0)
    with caplog.at_level(logging.INFO, logger="widemargin"):
        kernels.twice_the_sum(np.ones(3))
        kernels.factorial(3)
    (record,) = caplog.records
    assert record.name == "widemargin"
    assert "compile_all()" in record.getMessage()
    assert str(code_cache.folders()[0]) in record.getMessage()


@needs_compiler
def test_seconds_of_compilation_count_callees_once(kernels, monkeypatch):
    monkeypatch.setattr(jit, "clock", clock := jit._Clock())
    start = time.perf_counter()
    kernels.twice_the_sum(np.ones(3))
    assert 0.0 < clock.seconds <= time.perf_counter() - start
    assert clock.functions == 1


def test_a_module_of_numba_that_is_being_imported_is_not_read(monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "somewhere")
    monkeypatch.setitem(sys.modules, "numba", ModuleType("numba"))
    assert code_cache.folders() == [Path("somewhere/widemargin")]

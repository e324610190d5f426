"""The same input gives the same bits, whatever else runs and on however many threads."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.suites.fingerprint import data_for, fingerprint, fitted_fingerprint
from tests.suites.registry import each_case
from threadpoolctl import threadpool_limits


@each_case()
# Processes with other numbers of threads are compared on large data in every run, see below.
@pytest.mark.parametrize("size", ["small", pytest.param("large", marks=pytest.mark.slow)])
def test_limits_on_threads_do_not_change_bits(case, size):
    data = data_for(case, size)
    expected = fitted_fingerprint(case, data)
    for limit in (1, 2, 4):
        with threadpool_limits(limit):
            assert fitted_fingerprint(case, data) == expected, f"{limit} threads"


@each_case(lambda case: case.has("n_jobs") and not case.pairwise)
def test_number_of_jobs_does_not_change_bits(case):
    data = data_for(case, "small")
    expected = fitted_fingerprint(case, data)
    for jobs in (1, 2, -1):
        assert fitted_fingerprint(case, data, n_jobs=jobs) == expected, f"{jobs} jobs"


@each_case()
def test_fits_in_several_threads_at_once_do_not_disturb_each_other(case):
    data = data_for(case, "small")
    expected = fitted_fingerprint(case, data)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: fitted_fingerprint(case, data), range(8)))
    assert results == [expected] * 8


@each_case()
def test_a_second_fit_of_the_same_estimator_is_as_the_first(case):
    X, y = data_for(case, "small")
    estimator = case.new().fit(X[::-1], y[::-1])
    assert fingerprint(estimator.fit(X, y), X) == fitted_fingerprint(case, (X, y))


@pytest.mark.slow
def test_processes_with_other_numbers_of_threads_give_the_same_bits():
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    results = []
    for threads in ("1", "4"):
        environment = os.environ | {"OMP_NUM_THREADS": threads, "PYTHONPATH": paths}
        outcome = subprocess.run(
            [sys.executable, "-m", "tests.suites.fingerprint"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stderr
        results.append(json.loads(outcome.stdout))
    assert results[0]
    assert results[1] == results[0]

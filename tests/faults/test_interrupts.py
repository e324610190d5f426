"""Ctrl-C in a fit arrives as itself and leaves no trace, whenever it comes."""

import collections
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_validate
from tests.faults.interrupts import count_points, interrupted_at, interruptible
from tests.suites.registry import each_case
from threadpoolctl import ThreadpoolController, threadpool_limits

import widemargin
from widemargin.structured import (
    ChainCRF,
    CoulombSSVM,
    FrankWolfeSSVM,
    OneSlackSSVM,
    SubgradientSSVM,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

POINTS = 40
"""Number of points at which each fit is interrupted."""


def blas_threads():
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.num_threads for library in libraries}


def assert_interrupts_leave_no_trace(model, fit, record_property):
    """Interrupt a fit of a fitted model at many points where Python handles signals."""
    fit()
    with interruptible(), threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("BLAS has no threads to limit here")
        points = count_points(fit)
        before = dict(vars(model))
        record_property("faults: interrupts", min(points, POINTS))
        for point in random.Random(0).sample(range(1, points + 1), min(points, POINTS)):
            error = interrupted_at(point, fit)
            assert blas_threads() == {2}
            if error is None:  # the fit was shorter this time
                before = dict(vars(model))
                continue
            assert isinstance(error, KeyboardInterrupt)
            assert vars(model).keys() == before.keys()
            assert all(value is before[name] for name, value in vars(model).items())


@each_case(lambda case: True)
def test_an_interrupted_fit_leaves_no_trace(case, record_property):
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    model = case.new()
    assert_interrupts_leave_no_trace(model, lambda: model.fit(X, y), record_property)


@pytest.mark.parametrize("kind", [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM, CoulombSSVM])
def test_an_interrupted_structured_fit_leaves_no_trace(kind, record_property):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 4)) for _ in range(12)]
    Y = [rng.integers(0, 3, 5) for _ in X]
    model = kind(ChainCRF(), max_iter=3)
    assert_interrupts_leave_no_trace(model, lambda: model.fit(X, Y), record_property)


class CrossValidation:
    """A search of which no fold may fail."""

    def fit(self, X, y):
        scores = cross_validate(widemargin.CrammerSingerSVC(), X, y, cv=3)["test_score"]
        assert np.isfinite(scores).all()


def long_fit(name):
    """Return a model and data of a fit of a fraction of a second."""
    X, y = make_classification(1500, 20, n_informative=10, n_classes=3, flip_y=0.2, random_state=0)
    pair = y < 2
    if name == "CrossValidation":
        return CrossValidation(), (X[:500], y[:500])
    if name == "CodeMatrixClassifier":
        return widemargin.CodeMatrixClassifier(widemargin.LinearSVC()), (X, y)
    model = getattr(widemargin, name)()
    if name == "PrivilegedSVC":
        return model, (X[pair][:400], y[pair][:400], X[pair][:400, :5])
    if name == "TransductiveSVC":
        y = np.where(np.arange(len(y)) < 400, y, -1)
        return model, (X[pair], y[pair])
    return model, (X, y)


def interrupt_at_random_times(name, number):
    """Print what has come of Ctrl-C in fits, and the largest delay."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    model, data = long_fit(name)
    model.fit(*data)
    start = time.perf_counter()
    model.fit(*data)
    seconds, delay = time.perf_counter() - start, 0.0
    outcomes, rng = collections.Counter(), random.Random(0)
    with threadpool_limits(2, user_api="blas"):
        threads = blas_threads()
        while sum(outcomes.values()) < number:
            before, sent = dict(vars(model)), []
            outcome, took = interrupted_fit(model, data, rng.uniform(0.0, seconds), sent)
            if outcome == "KeyboardInterrupt":
                delay = max(delay, took)
                same = vars(model).keys() == before.keys() and all(
                    vars(model)[key] is value for key, value in before.items()
                )
                outcome = outcome if same else "mixed attributes"
            if blas_threads() != threads:
                outcome = "BLAS threads"
            if outcome != "finished":
                outcomes[outcome] += 1
    print(dict(outcomes), round(delay, 3))


def interrupted_fit(model, data, wait, sent):
    """Return what has come of Ctrl-C after a time, and how long it took to arrive."""

    def send():
        time.sleep(wait)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    outcome = "finished"
    try:
        sender.start()
        model.fit(*data)
        sender.join()
        time.sleep(1.0)
    except KeyboardInterrupt:
        # One that comes after the end of the fit interrupts the statements behind it.
        outcome = "KeyboardInterrupt" if model_was_busy() else "finished"
    except BaseException as error:
        outcome = type(error).__name__
    took = time.perf_counter() - sent[0]
    sender.join()
    return outcome, took


def model_was_busy():
    """Return whether the exception being handled has passed a fit."""
    trace = sys.exc_info()[2]
    while trace is not None:
        if trace.tb_frame.f_code.co_name in ("fit", "checked_fit"):
            return True
        trace = trace.tb_next
    return False


@pytest.mark.skipif(os.name == "nt", reason="signals are different on Windows")
@pytest.mark.parametrize(
    "name",
    [
        "CodeMatrixClassifier",
        "CrammerSingerSVC",
        "CrossValidation",
        "GatedStudents",
        "LinearSVC",
        "PrivilegedSVC",
        "SVC",
        "TransductiveSVC",
    ],
)
def test_an_interrupt_at_a_random_time_arrives_as_itself_and_soon(name):
    code = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from tests.faults.test_interrupts import interrupt_at_random_times\n"
        "interrupt_at_random_times(sys.argv[1], 40)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    command = [sys.executable, "-c", code, name]
    printed = subprocess.check_output(command, env=environment, text=True, timeout=600)
    outcomes, delay = printed.strip().rsplit(" ", 1)
    assert outcomes == "{'KeyboardInterrupt': 40}"
    assert float(delay) < 0.5


def interrupt_the_compiler(seed):
    """Interrupt the first fits of a process; print whether a later one is right."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    model, data = long_fit("LinearSVC")
    rng = random.Random(seed)
    for _ in range(4):
        interrupted_fit(model, data, rng.uniform(0.0, 1.0), [])
    print(model.fit(*data).score(*data) > 0.5)


@pytest.mark.skipif(os.name == "nt", reason="signals are different on Windows")
@pytest.mark.parametrize("seed", range(4))
def test_an_interrupted_compilation_can_be_repeated(seed, tmp_path):
    code = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from tests.faults.test_interrupts import interrupt_the_compiler\n"
        "interrupt_the_compiler(int(sys.argv[1]))"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path]),
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", code, str(seed)]
    printed = subprocess.check_output(command, env=environment, text=True, timeout=600)
    assert printed == "True\n"

"""Processes that fork while another thread compiles."""

import os
import subprocess
import sys

import numba
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here"),
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
]

FORK = """
import contextvars, os, signal, sys, threading, time
import numpy as np
from sklearn.datasets import make_classification
from widemargin import LinearSVC, SVC
from widemargin._base import jit

X, y = make_classification(60, random_state=0)


def fit(model):
    with jit.eager():
        model.fit(X, y)


fit(SVC(kernel="linear", max_iter=1))  # numba is loaded
thread = threading.Thread(target=fit, args=[LinearSVC(loss="hinge")])
thread.start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends a child that waits for ever
    fit(SVC(kernel="poly"))
    os._exit(0)
_, status = os.waitpid(child, 0)
thread.join()
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5, 1.0, 1.5])
def test_a_child_forked_during_a_compilation_can_compile(tmp_path, delay):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, str(delay)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"]

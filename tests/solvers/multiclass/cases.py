"""Multi-class problems, and solvers that take their arrays one by one."""

import numpy as np
from hypothesis import strategies as st

from widemargin.solvers.multiclass.kernel import solve_kernel
from widemargin.solvers.multiclass.linear import solve_linear
from widemargin.solvers.multiclass.problem import CrammerSingerProblem


def problem(seed, n=30, d=4, n_classes=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    label = np.argmax(X[:, :n_classes] + rng.standard_normal((n, min(d, n_classes))), axis=1)
    return X, label, rng.uniform(0.1, 3.0, n), n_classes


problems = st.builds(
    problem,
    st.integers(0, 2**32 - 1),
    n=st.integers(3, 30),
    d=st.integers(2, 5),
    n_classes=st.integers(2, 5),
)


def linear(X, label, cost, n_classes, *, margin=None, bias=0.0, **options):
    return solve_linear(X, CrammerSingerProblem(label, cost, n_classes, margin, bias), **options)


def kernel(gram, label, cost, n_classes, *, margin=None, bias=0.0, **options):
    return solve_kernel(gram, CrammerSingerProblem(label, cost, n_classes, margin, bias), **options)

"""Uncompiled and compiled code give the same bits: it does not matter when code is compiled."""

import contextlib
import functools
import gc
import types

import numba
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.suites.registry import each_case

from widemargin import SVC, PrivilegedSVC
from widemargin._base import jit
from widemargin.structured import ChainCRF, FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM

pytestmark = [
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The decision function is identically zero:UserWarning"),
]


@contextlib.contextmanager
def interpreted():
    """Return a context in which nothing is compiled, and what was compiled is not used."""
    functions = [
        value
        for value in gc.get_objects()
        if type(value) is types.FunctionType and "dispatcher" in vars(value)
    ]
    dispatchers = [function.dispatcher for function in functions]
    choose = jit._choose
    try:
        for function in functions:
            function.dispatcher = None
        jit._choose = lambda call, arguments: functools.partial(jit._interpret, call)
        yield
    finally:
        jit._choose = choose
        for function, dispatcher in zip(functions, dispatchers, strict=True):
            function.dispatcher = dispatcher


def assert_equal_bits(fit):
    """Fit compiled and interpreted and compare all fitted attributes."""
    with jit.eager():
        compiled = fit()
    with interpreted():
        plain = fit()
    for name, value in vars(compiled).items():
        if name.endswith("_") and isinstance(value, float | int | np.ndarray):
            assert_array_equal(getattr(plain, name), value, err_msg=name)


@pytest.mark.slow
@each_case(lambda case: True)
def test_a_fit_has_the_same_bits_uncompiled(case):
    X, y = case.data(60)
    X = X @ X.T if case.pairwise else X
    assert_equal_bits(lambda: case.new().fit(X, y))


@pytest.mark.parametrize("C", [pytest.param(1e-3, marks=pytest.mark.slow), 1.0, 1e3])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_kernel_svms_have_the_same_bits_uncompiled(seed, kernel, C):
    generator = np.random.default_rng(seed)
    X = np.repeat(generator.normal(size=(40, 3)), generator.integers(1, 3, 40), axis=0)
    y = np.where(X[:, 0] + generator.normal(size=len(X)) > 0, 1, -1)
    assert_equal_bits(lambda: SVC(kernel=kernel, C=C, degree=2, coef0=1.0).fit(X, y))
    assert_equal_bits(lambda: PrivilegedSVC(kernel=kernel, C=C).fit(X, y, privileged=X[:, :1]))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(FrankWolfeSSVM, marks=pytest.mark.slow),
        pytest.param(OneSlackSSVM, marks=pytest.mark.slow),
        SubgradientSSVM,
    ],
)
def test_structured_learners_have_the_same_bits_uncompiled(kind):
    generator = np.random.default_rng(0)
    X = [generator.normal(size=(5, 4)) for _ in range(12)]
    Y = [generator.integers(0, 3, 5) for _ in X]
    assert_equal_bits(lambda: kind(ChainCRF(), max_iter=5).fit(X, Y))

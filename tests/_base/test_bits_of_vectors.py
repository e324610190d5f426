"""The vector forms of compiled functions have the bits of their loops. Nothing is compiled here."""

import types

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from widemargin._base import jit
from widemargin._base.lists import run_on_lists
from widemargin.solvers import free_set_newton
from widemargin.solvers import jit as shared
from widemargin.solvers.multiclass import newton
from widemargin.solvers.structured import problem
from widemargin.structured import ChainCRF
from widemargin.structured.inference import graphs
from widemargin.structured.models.inputs import parse_samples
from widemargin.structured.oracles.graph import GraphOracle


def loops(call):
    """Return a compiled function as plain Python, as are all functions that it calls."""
    function = call.__wrapped__
    namespace = dict(function.__globals__)
    namespace.update((name, loops(callee)) for name, callee in jit._callees(function))
    return types.FunctionType(function.__code__, namespace, function.__name__)


def assert_equal_bits(call, *arguments, on_lists=False):
    """Compare results, and arrays that are written, of the loops and of the vector form."""
    found = []
    for function in (loops(call), call.substitute):
        own = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
        result = run_on_lists(function, tuple(own)) if on_lists else function(*own)
        found.append([*own, *(result if isinstance(result, tuple) else (result,))])
    for expected, got in zip(*found, strict=True):
        if isinstance(expected, np.ndarray | float | int | np.generic):
            assert_array_equal(got, expected)


@pytest.mark.parametrize("on_lists", [True, False])
@pytest.mark.parametrize("format_", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_features", [1, 7, 70])
def test_rows(n_features, format_, on_lists):
    generator = np.random.default_rng(0)
    X = format_(np.round(generator.normal(size=(5, n_features)), 1))
    weights = generator.normal(size=n_features + 1)
    for i in range(5):
        arrays = *shared.row_arrays(X), i
        if on_lists and n_features >= 64 and format_ is np.asarray:
            continue  # the loops need an array of lanes
        assert_equal_bits(shared.dot_row, *arrays, weights, np.empty(16), on_lists=on_lists)
        assert_equal_bits(shared.add_row, *arrays, 0.3, weights, on_lists=on_lists)


def test_random_numbers():
    random = shared.random_state(3)
    for bound in (1, 2, 150, 2**31 - 1):
        for _ in range(50):
            assert_equal_bits(shared.random_below, random, bound)
            shared.random_below.substitute(random, bound)
    assert_equal_bits(shared.shuffle, np.arange(40), 30, random)
    assert_equal_bits(shared.shuffle, np.arange(40), 30, random, on_lists=True)


@pytest.mark.parametrize("m", [1, 3, 4, 9, 14])
def test_newton_steps(m):
    generator = np.random.default_rng(m)
    points = generator.normal(size=(20, max(2, m - 3)))  # the last rows depend on those before them
    matrix, free = points @ points.T, generator.permutation(20)[:m]
    assert_equal_bits_of_factor(matrix, free)
    factor, depends = loops(free_set_newton._factorize)(matrix, free, 0.5)
    right = generator.normal(size=m)
    assert_equal_bits(free_set_newton._solve_upper, factor, depends, right)
    solved = right.copy()
    loops(free_set_newton._solve_lower)(factor, depends, solved)
    by_vectors = right.copy()
    free_set_newton._solve_lower.substitute(factor, depends, by_vectors)
    assert_array_equal(by_vectors, solved)
    dual = generator.normal(size=20) * (generator.random(20) < 0.5)
    assert_equal_bits(free_set_newton._set_residual, matrix, points[:, 0], dual, np.empty(20))


def assert_equal_bits_of_factor(matrix, free):
    """Compare factors; nothing reads their upper triangles."""
    for shift in (0.0, 0.5):
        (expected, depends), (got, found) = (
            form(matrix, free, shift)
            for form in (loops(free_set_newton._factorize), free_set_newton._factorize.substitute)
        )
        assert_array_equal(np.tril(got), np.tril(expected))
        assert_array_equal(found, depends)


@pytest.mark.parametrize("seed", range(5))
def test_joint_newton_steps(seed):
    generator = np.random.default_rng(seed)
    n, n_classes = 8, 3
    upper = np.where(np.eye(n_classes)[generator.integers(n_classes, size=n)] > 0, 1.0, 0.0)
    dual = upper - np.maximum(generator.normal(size=(n, n_classes)), 0.0)
    reference = np.empty(n, np.int64)
    sample, other = np.zeros((2, n * n_classes), np.int64)
    m = newton._free_variables.substitute(upper, dual, reference, sample, other)
    assert_equal_bits(newton._free_variables, upper, dual, reference, sample, other)
    assert_equal_bits(newton._free_variables, upper, dual, reference, sample[:2], other[:2])
    change = generator.normal(size=dual.shape)
    for blocking in (-1, int(generator.integers(dual.size))):
        arguments = upper, dual, change, 0.4, blocking, reference, sample[:m]
        assert_equal_bits(newton._move, *arguments)
    matrix = generator.normal(size=(n, n))
    moved = np.where(generator.random(dual.shape) < 0.5, dual, dual + change)
    assert_equal_bits(newton._set_slope, matrix, change, dual, moved, np.empty(dual.shape))


@pytest.mark.parametrize("size", [1, 8, 21])
def test_inner_products(size):
    generator = np.random.default_rng(size)
    rows = generator.normal(size=(4, size))
    assert_equal_bits(problem.dots, rows, generator.normal(size=size))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("lengths", [[5] * 4, [1, 3, 7, 2, 2]])
@pytest.mark.parametrize("zeros", [False, True])
def test_inference_on_chains(zeros, lengths, directed):
    generator = np.random.default_rng(0)
    # Ties of labels; with zeros, nodes have different numbers of features.
    X = [np.round(generator.normal(size=(n, 4))) + (0.0 if zeros else 0.25) for n in lengths]
    Y = [generator.integers(0, 3, n) for n in lengths]
    model = ChainCRF(3, 4, directed=directed)
    oracle = GraphOracle(model, parse_samples(model, X, Y))
    assert graphs.are_plain_chains(oracle.graphs) is not zeros
    samples = np.arange(len(X))
    for w in (np.zeros(oracle.size), np.round(generator.normal(size=oracle.size), 1)):
        for extra in (oracle.no_extra, generator.normal(size=(sum(lengths), 3))):
            for rows in (np.ones((1, oracle.size)), np.zeros((len(X), oracle.size))):
                for chosen in (samples, samples[::-1].copy(), samples[1:2]):
                    weight = generator.random(len(chosen))
                    own = rows[: len(chosen)]
                    assert_same_violations(oracle.graphs, w, extra, chosen, weight, own)


def assert_same_violations(data, w, extra, samples, weight, rows):
    node = np.concatenate([np.arange(data.nodes[i], data.nodes[i + 1]) for i in samples])
    found = []
    for form in (loops(graphs.violations), graphs.violations.substitute):
        own = rows.copy()
        labels, losses, slacks = form(data, w, extra, samples, weight, own)
        found.append((labels[node], losses, slacks, own))
    for expected, got in zip(*found, strict=True):
        assert_array_equal(got, expected)

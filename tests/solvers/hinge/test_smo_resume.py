"""A resumed solver continues from its saved numbers with the same bits."""

import numpy as np
import pytest
from tests.solvers.cases import each_path, on_path, two_blobs

from widemargin._base.checkpoint import load_checkpoint, save_checkpoint
from widemargin.kernels import GramCache, KernelGram, kernel_function
from widemargin.solvers import HingeProblem
from widemargin.solvers.hinge import smo

CASES = {
    "rbf": (kernel_function("rbf", 0.5), 0.0, {"cost": 1e3}),
    "without intercept": (kernel_function("rbf", 0.5), 0.0, {"cost": 1e3, "intercept": False}),
    "infinite costs": (kernel_function("rbf", 50.0), 0.0, {"cost": np.inf}),
    "float64": (kernel_function("linear"), 10.0, {"cost": 100.0}),
}
OPTIONS = {"tol": {"tol": 1e-4}, "gap": {"gap_tol": 1e-4}}


def new_problem(case):
    """The problem as another process would build it: nothing shared with the first."""
    function, offset, numbers = CASES[case]
    X, sign = two_blobs(50)
    gram = GramCache(KernelGram(function, X + offset), 4 * 50 * 20).of()
    return HingeProblem(gram, sign, **numbers)


def run(state):
    while not smo.advance(state):
        pass
    return smo.finish(state)


@each_path
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.large] * (case == "float64")) for case in CASES],
)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(path, case, options, tmp_path):
    with on_path(path, slice_work=50 * 30):
        state = smo.State(new_problem(case), **options)
        saved = []
        while not smo.advance(state):
            saved.append(tmp_path / str(len(saved)))
            save_checkpoint(saved[-1], "smo", state.numbers())
        expected = smo.finish(state)
        assert saved
        chosen = {0, 1, *range(2, len(saved), max(1, len(saved) // 3)), *range(len(saved))[-3:]}
        for number in sorted(chosen & set(range(len(saved)))):
            fresh = smo.State(new_problem(case), **options)
            resumed = fresh.resume(load_checkpoint(saved[number], "smo"))
            found = run(resumed)
            np.testing.assert_array_equal(found.dual, expected.dual, err_msg=f"slice {number}")
            assert found.intercept == expected.intercept
            assert found.objective == expected.objective
            assert found.iterations == expected.iterations
            assert found.converged == expected.converged


@each_path
def test_a_finished_state_stays_finished(path, tmp_path):
    with on_path(path):
        state = smo.State(new_problem("rbf"))
        while not smo.advance(state):
            pass
        numbers = state.numbers()
        save_checkpoint(tmp_path / "finished", "smo", numbers)
        loaded = load_checkpoint(tmp_path / "finished", "smo")
        resumed = smo.State(new_problem("rbf")).resume(loaded)
        assert smo.advance(resumed)
        assert resumed.iterations == state.iterations
        np.testing.assert_array_equal(smo.finish(resumed).dual, smo.finish(state).dual)


@each_path
def test_going_on_does_not_touch_the_numbers_resumed_from(path):
    with on_path(path, slice_work=50 * 30):
        state = smo.State(new_problem("rbf"))
        smo.advance(state)
        numbers = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in state.numbers().items()
        }
        before = {name: np.copy(value) for name, value in numbers.items()}
        run(smo.State(new_problem("rbf")).resume(numbers))
        for name, value in numbers.items():
            np.testing.assert_array_equal(value, before[name])


@each_path
def test_the_limit_on_iterations_counts_those_before_the_interruption(path):
    with on_path(path, slice_work=50 * 30):
        state = smo.State(new_problem("rbf"), tol=1e-9, max_iter=60)
        smo.advance(state)
        assert 0 < state.iterations <= 60
        resumed = smo.State(new_problem("rbf"), tol=1e-9, max_iter=60).resume(state.numbers())
        assert run(resumed).iterations == 60


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_state_is_resumed_with_the_parameters_of_the_new_one(options):
    with on_path("whole", slice_work=50 * 30):
        stopped = smo.State(new_problem("rbf"), max_iter=40, shrinking=False, **options)
        assert not run(stopped).converged
        for parameters in OPTIONS.values():
            fresh = smo.State(new_problem("rbf"), **parameters)
            kept = fresh.max_iter, fresh.gap_tol, fresh.shrinking
            resumed = fresh.resume(stopped.numbers())
            assert (resumed.max_iter, resumed.gap_tol, resumed.shrinking) == kept
            solution = run(resumed)
            assert solution.converged
            assert solution.iterations > 40
            assert solution.gap <= 1e-3


@each_path
def test_values_without_a_dual_point_are_ignored(path):
    with on_path(path):
        cold = smo.State(new_problem("rbf"))
        state = smo.State(new_problem("rbf"), values=np.ones(50))
        np.testing.assert_array_equal(state.active.residual, cold.active.residual)

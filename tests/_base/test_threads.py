"""The thread pool and the switch that keeps BLAS to one thread."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from tests.faults.interrupts import count_points, interrupted_at
from threadpoolctl import ThreadpoolController, threadpool_limits

from widemargin._base import threads
from widemargin._base.threads import (
    effective_threads,
    for_each,
    single_threaded_blas,
    stopping,
)


def forks(test):
    """Mark a test that forks; Python warns of that in a process with threads, rightly."""
    test = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")(test)


@pytest.fixture
def interruptible():
    """Let SIGINT raise KeyboardInterrupt: background jobs of a shell inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestEffectiveThreads:
    def test_is_the_number_scikit_learn_uses(self):
        assert effective_threads() == _openmp_effective_n_threads()

    def test_respects_a_limit_on_openmp(self):
        with threadpool_limits(1, user_api="openmp"):
            assert effective_threads() == 1

    def test_respects_the_environment(self):
        code = "from widemargin._base.threads import effective_threads; print(effective_threads())"
        environment = {**os.environ, "OMP_NUM_THREADS": "3"}
        printed = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
        assert int(printed) == 3


class TestForEach:
    @pytest.mark.parametrize("workers", [None, 1, 2, 4, 50])
    @pytest.mark.parametrize("count", [0, 1, 2, 37])
    def test_returns_results_in_order(self, workers, count):
        assert for_each(lambda item: -item, iter(range(count)), workers) == [
            -item for item in range(count)
        ]

    def test_stays_on_the_calling_thread_when_one_is_enough(self):
        here = threading.get_ident()
        assert for_each(lambda _: threading.get_ident(), range(3), threads=1) == [here] * 3
        assert for_each(lambda _: threading.get_ident(), range(1), threads=4) == [here]

    def test_runs_items_at_the_same_time(self):
        meeting = threading.Barrier(3, timeout=60)
        assert sorted(for_each(lambda _: meeting.wait(), range(3), threads=3)) == [0, 1, 2]

    def test_a_nested_call_stays_on_its_thread(self):
        def outer(_):
            meeting.wait()
            inner = for_each(lambda _: threading.get_ident(), range(5), threads=4)
            return set(inner) == {threading.get_ident()}

        meeting = threading.Barrier(2, timeout=60)
        assert for_each(outer, range(2), threads=2) == [True, True]

    def test_callers_in_many_threads_get_their_own_results(self):
        results = {}

        def call(caller):
            results[caller] = for_each(lambda item: (caller, item), range(50), threads=3)

        callers = [threading.Thread(target=call, args=[i]) for i in range(6)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert results == {i: [(i, item) for item in range(50)] for i in range(6)}

    @pytest.mark.parametrize("workers", [1, 2, 4])
    def test_raises_the_exception_of_the_first_failing_item(self, workers):
        def fail_from_three(item):
            if item >= 3:
                raise ValueError(item)

        with pytest.raises(ValueError, match=r"^3$"):
            for_each(fail_from_three, range(10), workers)

    def test_raises_when_the_calls_that_run_have_ended_and_begins_no_more(self):
        meeting = threading.Barrier(2, timeout=60)
        failed = threading.Event()
        ended = []

        def work(item):
            if item > 1:
                ended.append(item)
                return
            meeting.wait()
            if item == 0:
                failed.set()
                raise ValueError(item)
            failed.wait(60)
            ended.append(item)

        with pytest.raises(ValueError, match="0"):
            for_each(work, range(100), threads=2)
        # The other thread may have begun one more item before it could know.
        assert ended[:1] == [1]
        assert len(ended) <= 2

    def test_an_interrupt_waits_for_the_calls_that_run(self, interruptible):
        here = threading.get_ident()
        meeting = threading.Barrier(2, timeout=60)
        interrupted = threading.Event()
        ended = []

        def work(_):
            meeting.wait()
            if threading.get_ident() == here:
                interrupted.set()
                signal.raise_signal(signal.SIGINT)
            else:
                interrupted.wait(60)
                ended.append(True)

        with pytest.raises(KeyboardInterrupt):
            for_each(work, range(2), threads=2)
        assert ended == [True]
        assert for_each(abs, [-1, -2], threads=2) == [1, 2]

    def test_long_calls_learn_that_another_has_failed(self):
        meeting = threading.Barrier(2, timeout=60)

        def work(item):
            assert not stopping()
            meeting.wait()
            if item == 1:
                raise ValueError(item)
            while not stopping():
                pass

        with pytest.raises(ValueError, match="1"):
            for_each(work, range(2), threads=2)
        assert not stopping()

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads")
    def test_an_interrupt_while_waiting_waits_on(self, interruptible):
        here = threading.get_ident()
        meeting = threading.Barrier(2, timeout=60)
        ended = []

        def work(_):
            meeting.wait()
            if threading.get_ident() != here:
                signal.pthread_kill(here, signal.SIGINT)
                while not stopping():
                    pass
                ended.append(True)

        with pytest.raises(KeyboardInterrupt):
            for_each(work, range(2), threads=2)
        assert ended == [True]

    def test_works_alone_where_no_thread_can_be_started(self, monkeypatch):
        def refuse(_):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threads, "_pool", threads._Pool())
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert for_each(abs, [-1, -2], threads=2) == [1, 2]

    @pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy's own matter")
    def test_all_threads_see_the_error_state_of_the_caller(self):
        meeting = threading.Barrier(2, timeout=60)

        def divide(_):
            meeting.wait()
            return np.geterr()["divide"]

        with np.errstate(divide="raise"):
            assert for_each(divide, range(2), threads=2) == ["raise", "raise"]

    @forks
    def test_works_in_a_forked_child(self):
        assert for_each(abs, [-1, -2], threads=2) == [1, 2]

        def meet_in_child():
            meeting = threading.Barrier(2, timeout=60)
            return sorted(for_each(lambda _: meeting.wait(), range(2), threads=2)) == [0, 1]

        assert in_child(meet_in_child)


class TestSingleThreadedBlas:
    """Every test starts from two BLAS threads, whatever the machine has."""

    @pytest.fixture(autouse=True)
    def two_threads(self):
        with threadpool_limits(2, user_api="blas"):
            if set(blas_threads()) != {2}:
                pytest.skip("BLAS has no threads to limit here")
            yield

    def test_limits_every_blas_library_inside_and_restores_after(self):
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_restores_after_an_exception(self):
        with pytest.raises(ValueError, match="inside"), single_threaded_blas():
            raise ValueError("inside")
        assert set(blas_threads()) == {2}

    def test_restores_after_an_interrupt_at_any_point(self, interruptible):
        def enter():
            with single_threaded_blas(), single_threaded_blas():
                len("")

        points = count_points(enter)
        assert points > 50
        for point in range(1, points + 1):
            assert isinstance(interrupted_at(point, enter), KeyboardInterrupt)
            assert set(blas_threads()) == {2}

    def test_may_be_entered_again_inside(self):
        with single_threaded_blas():
            with single_threaded_blas():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    @pytest.mark.parametrize("first_to_enter_leaves", ["first", "last"])
    def test_lasts_until_the_last_thread_leaves(self, first_to_enter_leaves):
        entered, leave = threading.Event(), threading.Event()

        def hold():
            with single_threaded_blas():
                entered.set()
                leave.wait(60)

        other = threading.Thread(target=hold)
        if first_to_enter_leaves == "first":
            other.start()
            entered.wait(60)
            with single_threaded_blas():
                leave.set()
                other.join()
                assert set(blas_threads()) == {1}
        else:
            with single_threaded_blas():
                other.start()
                entered.wait(60)
            assert set(blas_threads()) == {1}
            leave.set()
            other.join()
        assert set(blas_threads()) == {2}

    def test_many_threads_entering_and_leaving_restore_in_the_end(self):
        def enter_and_leave():
            for _ in range(20):
                with single_threaded_blas():
                    inside.append(set(blas_threads()) == {1})

        inside = []
        workers = [threading.Thread(target=enter_and_leave) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert all(inside)
        assert set(blas_threads()) == {2}

    def test_leaves_other_threads_their_limits(self):
        """threadpoolctl lets the first thread that sets a limit keep all others from it."""
        used, leave = threading.Event(), threading.Event()

        def use_and_live_on():
            with single_threaded_blas():
                pass
            used.set()
            leave.wait(60)

        other = threading.Thread(target=use_and_live_on)
        other.start()
        used.wait(60)
        with threadpool_limits(1, user_api="blas"):
            limited = set(blas_threads())
        leave.set()
        other.join()
        assert limited == {1}

    def test_finds_a_library_that_was_loaded_later(self, monkeypatch):
        found = [FakeBlas()]
        limiter = with_libraries(monkeypatch, found)
        with limiter:
            pass
        late = FakeBlas()
        found.append(late)
        monkeypatch.setitem(sys.modules, "a_module_that_brings_blas", threading)
        with limiter:
            assert late.num_threads == 1
        assert late.num_threads == 8

    def test_a_library_over_openmp_is_limited_in_every_thread_that_enters(self, monkeypatch):
        library = FakeBlasOverOpenMP()
        limiter = with_libraries(monkeypatch, [library])
        seen = []

        def enter():
            with limiter:
                seen.append(library.num_threads)
            seen.append(library.num_threads)

        with limiter:
            other = threading.Thread(target=enter)
            other.start()
            other.join()
            assert library.num_threads == 1
        assert seen == [1, 8]
        assert library.num_threads == 8

    def test_a_limit_over_openmp_is_not_taken_for_a_limit_on_us(self, monkeypatch):
        library = FakeBlasOverOpenMP()
        limiter = with_libraries(monkeypatch, [library])
        monkeypatch.setattr(
            "widemargin._base.sklearn_compat.openmp_effective_n_threads",
            lambda: library.num_threads,
        )
        assert effective_threads() == 8
        with limiter:
            assert effective_threads() == 8
        library.set_num_threads(3)
        assert effective_threads() == 3

    @forks
    def test_a_child_forked_inside_keeps_the_limit_until_it_leaves(self):
        with single_threaded_blas():
            child = os.fork()
            limited = set(blas_threads()) == {1}
        if child == 0:
            os._exit(0 if limited and set(blas_threads()) == {2} else 1)
        assert os.waitpid(child, 0)[1] == 0

    @forks
    def test_a_child_forked_while_another_thread_is_inside_is_not_limited(self):
        entered, leave = threading.Event(), threading.Event()

        def hold():
            with single_threaded_blas():
                entered.set()
                leave.wait(60)

        def is_free_and_can_enter():
            free = set(blas_threads()) == {2}
            with single_threaded_blas():
                limited = set(blas_threads()) == {1}
            return free and limited and set(blas_threads()) == {2}

        other = threading.Thread(target=hold)
        other.start()
        entered.wait(60)
        answer = in_child(is_free_and_can_enter)
        leave.set()
        other.join()
        assert answer


def blas_threads():
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.num_threads for library in libraries]


class FakeBlas:
    """What threadpoolctl shows of a library."""

    num_threads = 8

    def set_num_threads(self, number):
        self.num_threads = number


class FakeBlasOverOpenMP(threading.local):
    """The same where the number of threads is each thread's own."""

    num_threads = 8
    threading_layer = "openmp"

    def set_num_threads(self, number):
        self.num_threads = number


def with_libraries(monkeypatch, libraries):
    monkeypatch.setattr(threads, "_blas_libraries", lambda: list(libraries))
    return threads._Limiter()


def in_child(function):
    """Return whether ``function`` returns a true value in a forked child."""
    child = os.fork()
    if child == 0:
        answer = False
        try:
            answer = function()
        finally:
            os._exit(0 if answer else 1)
    return os.waitpid(child, 0)[1] == 0

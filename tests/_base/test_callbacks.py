"""Callbacks see the progress of a fit and can stop it."""

import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, ProgressBar, ScoringMonitor
from sklearn.callback._callback_context import get_context_path
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin._base import callbacks, jit
from widemargin._base.callbacks import FitProgress, run_in_slices
from widemargin._base.threads import for_each

X = np.arange(12.0).reshape(6, 2)
y = np.arange(6.0)


class Counter(CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """Count to ``slices`` for every problem; predict the sum of the counts."""

    _parameter_constraints = {"problems": [int], "slices": [int], "threads": [int]}

    def __init__(self, problems=2, slices=3, threads=1):
        self.problems = problems
        self.slices = slices
        self.threads = threads

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        metadata = {"sample_weight": sample_weight}
        progress = FitProgress(self, self.problems, X, y, metadata)
        counts = np.zeros(self.problems)

        def solve(number):
            def advance(counts):
                counts[number] += 1
                return counts[number] >= self.slices

            with progress.task(number, lambda: {"counts_": counts.copy()}) as report:
                return run_in_slices(advance, counts, lambda counts: report())

        self.finished_ = for_each(solve, range(self.problems), self.threads)
        self.counts_ = counts
        progress.close()
        return self

    def predict(self, X):
        return np.full(len(X), self.counts_.sum())


class Recorder:
    """A callback that records every call and requests a stop where ``stop`` returns True."""

    def __init__(self, stop=lambda name, path: False, fail_at=None):
        self.stop = stop
        self.fail_at = fail_at
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append(("setup",))

    def teardown(self, estimator, context):
        self.calls.append(("teardown",))

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.note("begin", context, fitted_estimator)
        self.data = X, y, metadata

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.note("end", context, fitted_estimator)
        return self.stop(context.task_name, path_of(context))

    def note(self, event, context, fitted_estimator):
        counts = None if fitted_estimator is None else fitted_estimator.counts_.tolist()
        call = (event, context.task_name, path_of(context), counts)
        self.calls.append(call)
        if call[:3] == self.fail_at:
            raise ZeroDivisionError


class Propagated(Recorder):
    """A recorder that meta-estimators pass on to the estimators they fit."""

    max_propagation_depth = None

    def note(self, event, context, fitted_estimator):
        self.calls.append((event, context.estimator_name, context.task_name))


def path_of(context):
    return tuple(step.task_id for step in get_context_path(context))


def test_slices_end_when_the_work_is_done():
    left = [1, 2, 3]
    reports = []
    assert run_in_slices(lambda left: left.pop() == 1, left, lambda left: reports.append(len(left)))
    assert reports == [2, 1]


def test_slices_end_when_the_report_returns_true():
    slices = []
    assert not run_in_slices(
        lambda slices: slices.append(1), slices, lambda slices: len(slices) == 4
    )
    assert len(slices) == 4


def test_slices_end_when_another_thread_has_failed():
    meeting = threading.Barrier(2, timeout=60)

    def work(number):
        meeting.wait()
        if number == 1:
            raise ZeroDivisionError
        run_in_slices(lambda state: False, None)

    with pytest.raises(ZeroDivisionError):
        for_each(work, range(2), threads=2)


def test_an_interrupt_ends_the_slices():
    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_slices(interrupt, None)


def test_callbacks_see_problems_and_their_slices_in_order():
    recorder = Recorder()
    counter = Counter(problems=2, slices=2).set_callbacks(recorder).fit(X, y)
    assert counter.finished_ == [True, True]
    assert recorder.calls == [
        ("setup",),
        ("begin", "fit", (0,), None),
        ("begin", "problem", (0, 0), [0, 0]),
        ("begin", "slice", (0, 0, 0), [0, 0]),
        ("end", "slice", (0, 0, 0), [1, 0]),
        ("begin", "slice", (0, 0, 1), [1, 0]),
        ("end", "slice", (0, 0, 1), [2, 0]),
        ("end", "problem", (0, 0), [2, 0]),
        ("begin", "problem", (0, 1), [2, 0]),
        ("begin", "slice", (0, 1, 0), [2, 0]),
        ("end", "slice", (0, 1, 0), [2, 1]),
        ("begin", "slice", (0, 1, 1), [2, 1]),
        ("end", "slice", (0, 1, 1), [2, 2]),
        ("end", "problem", (0, 1), [2, 2]),
        ("end", "fit", (0,), [2, 2]),
        ("teardown",),
    ]


def test_callbacks_see_the_data_and_the_weights():
    recorder = Recorder()
    weights = np.ones(6)
    Counter().set_callbacks(recorder).fit(X, y, sample_weight=weights)
    assert recorder.data[0] is X
    assert recorder.data[1] is y
    assert recorder.data[2] == {"sample_weight": weights}
    Counter().set_callbacks(recorder).fit(X, y)
    assert recorder.data[2] is None


def test_attributes_are_built_only_for_callbacks_that_use_them():
    class WithoutEstimator:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context): ...

    def fail():
        raise AssertionError("attributes were built")

    counter = Counter().set_callbacks(WithoutEstimator())
    progress = FitProgress(counter, 1)
    with progress.task(0, fail) as report:
        assert not report()
    progress.close()


def test_without_callbacks_no_context_is_made_and_the_result_is_the_same(monkeypatch):
    expected = Counter().set_callbacks(Recorder()).fit(X, y).counts_
    monkeypatch.setattr(CallbackSupportMixin, "_init_callback_context", None)
    assert not FitProgress(Counter(), 3).active
    np.testing.assert_array_equal(Counter().fit(X, y).counts_, expected)


def test_a_callback_may_end_a_problem():
    recorder = Recorder(stop=lambda name, path: path == (0, 0, 1))
    counter = Counter(problems=2, slices=5).set_callbacks(recorder).fit(X, y)
    assert counter.finished_ == [False, True]
    assert counter.counts_.tolist() == [2, 5]
    assert begun(recorder) == ended(recorder)


def test_a_callback_may_end_the_problems_that_follow():
    recorder = Recorder(stop=lambda name, path: path == (0, 0))
    counter = Counter(problems=3, slices=5).set_callbacks(recorder).fit(X, y)
    assert counter.finished_ == [True, False, False]
    assert counter.counts_.tolist() == [5, 1, 1]
    assert begun(recorder) == ended(recorder)


@pytest.mark.parametrize(
    "moment",
    [("begin", "fit", (0,)), ("end", "slice", (0, 1, 0)), ("end", "problem", (0, 0))],
    ids=lambda moment: " ".join(moment[:2]),
)
@pytest.mark.parametrize("threads", [1, 2])
def test_after_an_exception_in_a_callback_the_teardown_is_called(moment, threads):
    recorder = Recorder(fail_at=moment)
    counter = Counter(threads=threads).set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError):
        counter.fit(X, y)
    assert recorder.calls[-1] == ("teardown",)
    recorder.fail_at = None
    assert counter.fit(X, y).finished_ == [True, True]


def test_problems_may_run_in_threads():
    meeting = threading.Barrier(2, timeout=60)

    def meet(name, path):
        if name == "slice" and path[-1] == 0 and path[1] < 2:
            meeting.wait()
        return False

    recorder = Recorder(stop=meet)
    counter = Counter(problems=8, slices=4, threads=2).set_callbacks(recorder).fit(X, y)
    assert counter.finished_ == [True] * 8
    slices = [
        path for event, name, path, _ in recorder.calls[1:-1] if (event, name) == ("end", "slice")
    ]
    assert sorted(slices) == [(0, problem, part) for problem in range(8) for part in range(4)]
    assert sorted(begun(recorder)) == sorted(ended(recorder))


def test_a_scoring_monitor_follows_the_fit():
    monitor = ScoringMonitor(scoring="neg_mean_absolute_error")
    Counter(problems=2, slices=2).set_callbacks(monitor).fit(X, np.zeros(6))
    scores = {
        row["task_id_path"]: row["neg_mean_absolute_error"] for row in monitor.get_logs().data
    }
    assert scores == {
        (0, 0, 0): -1,
        (0, 0, 1): -2,
        (0, 0): -2,
        (0, 1, 0): -3,
        (0, 1, 1): -4,
        (0, 1): -4,
        (0,): -4,
    }


@pytest.mark.parametrize("threads", [1, 2])
def test_a_progress_bar_shows_the_fit(capsys, threads):
    pytest.importorskip("rich")
    Counter(problems=2, threads=threads).set_callbacks(ProgressBar()).fit(X, y)
    shown = capsys.readouterr().out
    assert "Counter - fit" in shown
    assert "problem #1" in shown
    assert "100%" in shown


def test_callbacks_reach_into_a_pipeline():
    recorder = Propagated()
    make_pipeline(StandardScaler(), Counter(problems=2)).set_callbacks(recorder).fit(X, y)
    assert recorder.calls.count(("end", "Counter", "problem")) == 2
    assert recorder.calls.count(("end", "Counter", "slice")) == 6
    assert recorder.calls.count(("setup",)) == recorder.calls.count(("teardown",)) == 1


def test_callbacks_reach_into_a_search():
    recorder = Propagated()
    search = GridSearchCV(Counter(problems=2), {"slices": [1, 2]}, cv=2)
    search.set_callbacks(recorder).fit(X, y)
    fits = 2 * 2 + 1
    assert recorder.calls.count(("end", "Counter", "problem")) == 2 * fits
    assert recorder.calls.count(("end", "Counter", "fit")) == fits
    assert recorder.calls.count(("setup",)) == recorder.calls.count(("teardown",)) == 1


def begun(recorder):
    return [call[1:3] for call in recorder.calls if call[0] == "begin"]


def ended(recorder):
    order = [call[1:3] for call in recorder.calls if call[0] == "end"]
    return sorted(order, key=begun(recorder).index)


def test_callbacks_see_a_long_compilation(monkeypatch):
    monkeypatch.setattr(callbacks, "clock", clock := jit._Clock())
    monkeypatch.setattr(jit.options, "silent_seconds", -1.0)
    recorder = Recorder()
    model = Counter().set_callbacks(recorder)
    model.counts_ = np.zeros(1)
    progress = FitProgress(model, 1)
    with progress.task(0, lambda: {"counts_": model.counts_}):
        clock.stop(clock.start())
        clock.stop(clock.start())
    progress.close()
    assert [call[:2] for call in recorder.calls if call[1:2] == ("compilation",)] == [
        ("begin", "compilation"),
        ("end", "compilation"),
    ]
    assert clock.listeners == []

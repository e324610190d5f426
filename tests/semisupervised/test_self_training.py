"""Self-training with a learner whose scores are given beforehand."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_array_equal

from widemargin import PreferenceSVC
from widemargin.semisupervised.constraints import Constraints
from widemargin.semisupervised.self_training import (
    Learner,
    RoundModel,
    TrainingState,
    _more_certain,
    self_train,
)
from widemargin.semisupervised.split import NO_SAMPLES, LabelSplit
from widemargin.semisupervised.targets import PartialLabels

POSITIVE = np.array([False, False, True, True])
NO_CONSTRAINTS = Constraints()


class Script(Learner):
    """Returns the models of a script, one per round, and records the pseudo-labels."""

    def __init__(self, *models):
        self.models = [RoundModel(None, np.array([*s, *u], dtype=float)) for s, u in models]
        self.labels = []
        X, labels = np.zeros((len(self.models[0].scores), 1)), np.array([False, True])
        data = PartialLabels(X, POSITIVE, None, labels, np.zeros(0, dtype=bool), np.arange(4))
        every = np.arange(len(POSITIVE))
        super().__init__(PreferenceSVC(), data, LabelSplit(every, every, NO_SAMPLES))

    def train(self, pseudo_labels, fold_labels):
        self.labels.append(pseudo_labels.copy())
        return self.models[min(len(self.labels), len(self.models)) - 1]


def train_with(script, constraints=NO_CONSTRAINTS, report=lambda state: False, **options):
    script.parent.set_params(**{"threshold": "adjusted", "margin": None, **options})
    labels = np.zeros((1, script.data.n_unlabeled), dtype=np.int8)
    state = TrainingState(labels[0], labels[1:])
    self_train(script, constraints, state, report)
    return state


GOOD = [-2.0, -1.0, 1.0, 2.0]
BAD = [1.0, -1.0, -2.0, 2.0]


def test_samples_beyond_the_thresholds_get_pseudo_labels_and_others_do_not():
    script = Script((GOOD, [3.0, 0.5, -1.0, -2.0, -5.0]), (GOOD, [3.0, 0.5, -1.0, -2.0, -5.0]))
    state = train_with(script)
    # p = r: the upper threshold is 0, the lower the mean of the negative samples, -1.5.
    assert_array_equal(state.pseudo_labels, [1, 1, 0, -1, -1])
    assert_array_equal(state.history["added"], [4, 0])


def test_nothing_is_adjusted_at_zero_whatever_the_constraints():
    script = Script((BAD, [3.0, 0.5, -1.0]), (BAD, [3.0, 0.5, -1.0]))
    # Precision 1/2 at 0: 0.9 would need a threshold above 1.
    state = train_with(script, Constraints(precision=0.9), threshold="zero")
    assert_array_equal(state.pseudo_labels, [1, 1, -1])
    assert_array_equal(state.history["upper"], [0.0, 0.0])
    script = Script((BAD, [3.0, 0.5, -1.0]), (BAD, [3.0, 0.5, -1.0]))
    assert_array_equal(train_with(script, Constraints(precision=0.9)).pseudo_labels, [1, 0, -1])


def test_incremental_updates_never_relabel():
    script = Script((GOOD, [3.0, -5.0, 0.0]), (GOOD, [-5.0, 3.0, 3.0]))
    state = train_with(script, update="incremental")
    assert_array_equal(state.pseudo_labels, [1, -1, 1])


def test_recomputed_pseudo_labels_stop_when_they_repeat():
    script = Script((GOOD, [3.0, -5.0]), (GOOD, [-5.0, 3.0]), (GOOD, [3.0, -5.0]))
    state = train_with(script, update="recompute")
    assert_array_equal(script.labels, [[0, 0], [1, -1], [-1, 1]])
    assert state.finished


def test_a_round_without_new_pseudo_labels_is_the_last():
    script = Script((GOOD, [-1.0, -1.0]))
    state = train_with(script)
    assert len(script.labels) == 1
    assert_array_equal(state.history["added"], [0])


def test_without_unlabeled_samples_there_is_one_round():
    script = Script((GOOD, []))
    assert_array_equal(train_with(script).history["f1"], [1.0])


def test_the_first_of_equally_good_models_is_kept_and_a_better_one_replaces_it():
    script = Script((BAD, [3.0, 0.0]), (GOOD, [3.0, 3.0]), (GOOD, [3.0, 3.0]))
    state = train_with(script)
    assert state.best is script.models[1]
    assert_array_equal(state.history["best"], [True, True, False])
    script = Script((GOOD, [3.0, 0.0]), (BAD, [3.0, 3.0]))
    assert train_with(script).best is script.models[0]


def test_a_model_that_meets_the_constraints_beats_one_with_a_greater_f():
    precise = [-2.0, -1.0, -0.5, 2.0]  # precision 1, recall 1/2
    full = [-2.0, 0.5, 1.0, 2.0]  # precision 2/3, recall 1: F1 .8 against .67
    script = Script((full, [9.0, 0.0]), (precise, [9.0, 9.0]))
    assert train_with(script, Constraints(precision=0.9)).best is script.models[1]
    script = Script((full, [9.0, 0.0]), (precise, [9.0, 9.0]))
    assert train_with(script).best is script.models[0]


def test_if_none_meets_the_constraints_the_smallest_violation_is_kept():
    half = [1.0, -1.0, -0.5, 2.0]  # precision 1/2
    two_thirds = [-1.0, 0.5, 1.0, 2.0]
    script = Script((half, [9.0, 0.0]), (two_thirds, [9.0, 9.0]))
    assert train_with(script, Constraints(precision=0.9)).best is script.models[1]


def test_max_rounds_and_min_new_end_the_rounds():
    models = [(GOOD, [9.0] * k + [0.0] * (5 - k)) for k in range(1, 6)]
    models = [(s, [x if x else -1.0 for x in u]) for s, u in models]
    assert len(train_with(Script(*models)).history["added"]) == 6
    assert len(train_with(Script(*models), max_rounds=2).history["added"]) == 2
    assert len(train_with(Script(*models), min_new=2).history["added"]) == 1


def test_a_report_stops_the_rounds_and_they_resume_from_their_state():
    models = [(GOOD, [9.0] * k + [-1.0] * (5 - k)) for k in range(1, 6)]
    whole = Script(*models)
    expected = train_with(whole)
    script = Script(*models)
    state = train_with(script, report=lambda state: len(state.history["added"]) == 2)
    assert not state.finished
    again = replace(state)
    self_train(script, Constraints(), again)
    assert again.finished
    assert list(again.history) == list(expected.history)
    for name, values in expected.history.items():
        assert_array_equal(again.history[name], values)
    assert_array_equal(script.labels, whole.labels)


def test_a_later_round_needs_more_than_noise_to_replace_an_earlier_one_with_a_guarantee():
    first = np.array([0.6, 0.5])
    assert _more_certain(first, np.full(2, -np.inf))
    assert not _more_certain(first, first)
    assert not _more_certain(np.array([0.84, 0.9]), first)
    assert _more_certain(np.array([0.86, 0.4]), first)
    # The objective decides only where it is nearly certain whether there will be a guarantee.
    for chance in (0.0, 0.05, 0.95, 1.0):
        nearly_certain = np.array([chance, 0.5])
        assert not _more_certain(np.array([chance, 0.505]), nearly_certain)
        assert not _more_certain(np.array([chance - 0.01, 0.9]), nearly_certain)
        assert _more_certain(np.array([chance, 0.55]), nearly_certain)
    assert not _more_certain(np.array([0.6, 0.9]), first)
    # An objective of 0, and costs, which are negative.
    assert _more_certain(np.array([0.0, 0.1]), np.zeros(2))
    assert not _more_certain(np.array([1.0, -99.0]), np.array([1.0, -100.0]))
    assert _more_certain(np.array([1.0, -90.0]), np.array([1.0, -100.0]))

"""Rounds over a learner whose scores are written down beforehand."""

from dataclasses import dataclass

import numpy as np
from numpy.testing import assert_array_equal

from widemargin.semisupervised.constraints import Demand
from widemargin.semisupervised.self_training import State, run

TRUTH = np.array([False, False, True, True])
NOTHING = Demand()


@dataclass
class Written:
    steering: np.ndarray
    unlabeled: np.ndarray


class Script:
    """Gives the machines of a script, one a round, and notes the labels it was asked to learn."""

    def __init__(self, *machines):
        self.machines = [Written(np.array(s, float), np.array(u, float)) for s, u in machines]
        self.labels = []

    def train(self, soft):
        self.labels.append(soft.copy())
        return self.machines[min(len(self.labels), len(self.machines)) - 1]


def go(script, demand=NOTHING, **options):
    state = State(np.zeros(len(script.machines[0].unlabeled), dtype=np.int8))
    return run(script.train, TRUTH, None, demand, state, **options)


GOOD = [-2.0, -1.0, 1.0, 2.0]
BAD = [1.0, -1.0, -2.0, 2.0]


def test_rows_beyond_the_thresholds_are_taken_for_granted_and_others_are_not():
    script = Script((GOOD, [3.0, 0.5, -1.0, -2.0, -5.0]), (GOOD, [3.0, 0.5, -1.0, -2.0, -5.0]))
    state = go(script)
    # p = r: the upper threshold is 0, the lower the mean of the negative rows, -1.5.
    assert_array_equal(state.soft, [1, 1, 0, -1, -1])
    assert_array_equal(state.history["added"], [4, 0])


def test_nothing_is_adjusted_at_zero_whatever_the_demand():
    script = Script((BAD, [3.0, 0.5, -1.0]), (BAD, [3.0, 0.5, -1.0]))
    # Precision 1/2 at 0: 0.9 would need a threshold above 1.
    state = go(script, Demand(precision=0.9), threshold="zero")
    assert_array_equal(state.soft, [1, 1, -1])
    assert state.history["upper"] == [0.0, 0.0]
    script = Script((BAD, [3.0, 0.5, -1.0]), (BAD, [3.0, 0.5, -1.0]))
    assert_array_equal(go(script, Demand(precision=0.9)).soft, [1, 0, -1])


def test_inc_never_relabels():
    script = Script((GOOD, [3.0, -5.0, 0.0]), (GOOD, [-5.0, 3.0, 3.0]))
    state = go(script, update="inc")
    assert_array_equal(state.soft, [1, -1, 1])


def test_rec_labels_anew_and_stops_on_a_labelling_that_was_there_before():
    script = Script((GOOD, [3.0, -5.0]), (GOOD, [-5.0, 3.0]), (GOOD, [3.0, -5.0]))
    state = go(script, update="rec")
    assert_array_equal(script.labels, [[0, 0], [1, -1], [-1, 1]])
    assert state.finished


def test_a_round_without_new_rows_is_the_last():
    script = Script((GOOD, [-1.0, -1.0]))
    state = go(script)
    assert len(script.labels) == 1
    assert_array_equal(state.history["added"], [0])


def test_no_unlabelled_rows_are_one_round():
    script = Script((GOOD, []))
    assert go(script).history["f1"] == [1.0]


def test_the_first_of_equally_good_machines_is_kept_and_a_better_one_takes_its_place():
    script = Script((BAD, [3.0, 0.0]), (GOOD, [3.0, 3.0]), (GOOD, [3.0, 3.0]))
    state = go(script)
    assert state.best is script.machines[1]
    assert state.history["kept"] == [True, True, False]
    script = Script((GOOD, [3.0, 0.0]), (BAD, [3.0, 3.0]))
    assert go(script).best is script.machines[0]


def test_a_machine_that_meets_the_demand_beats_one_with_a_greater_f():
    precise = [-2.0, -1.0, -0.5, 2.0]  # precision 1, recall 1/2
    full = [-2.0, 0.5, 1.0, 2.0]  # precision 2/3, recall 1: F1 .8 against .67
    script = Script((full, [9.0, 0.0]), (precise, [9.0, 9.0]))
    assert go(script, Demand(precision=0.9)).best is script.machines[1]
    script = Script((full, [9.0, 0.0]), (precise, [9.0, 9.0]))
    assert go(script).best is script.machines[0]


def test_where_none_meets_the_demand_the_nearest_is_kept():
    half = [1.0, -1.0, -0.5, 2.0]  # precision 1/2
    two_thirds = [-1.0, 0.5, 1.0, 2.0]
    script = Script((half, [9.0, 0.0]), (two_thirds, [9.0, 9.0]))
    assert go(script, Demand(precision=0.9)).best is script.machines[1]


def test_limits_on_rounds_and_on_new_rows_end_them():
    machines = [(GOOD, [9.0] * k + [0.0] * (5 - k)) for k in range(1, 6)]
    machines = [(s, [x if x else -1.0 for x in u]) for s, u in machines]
    assert len(go(Script(*machines)).history["added"]) == 6
    assert len(go(Script(*machines), max_rounds=2).history["added"]) == 2
    assert len(go(Script(*machines), min_new=2).history["added"]) == 1


def test_a_report_stops_the_rounds_and_they_go_on_from_their_numbers():
    machines = [(GOOD, [9.0] * k + [-1.0] * (5 - k)) for k in range(1, 6)]
    whole = Script(*machines)
    expected = go(whole)
    script = Script(*machines)
    state = go(script, report=lambda state: len(state.history["added"]) == 2)
    assert not state.finished
    again = State.resume(state.numbers(), state.best)
    run(script.train, TRUTH, None, Demand(), again)
    assert again.finished
    assert again.history == expected.history
    assert_array_equal(script.labels, whole.labels)

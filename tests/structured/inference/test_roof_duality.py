"""Roof duality: labels that all best labelings have, and a bound, by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.structured.cases import best_score, examples, labelling_problems, scores

from widemargin.structured import FrankWolfeSSVM, GridCRF, inference_dispatch
from widemargin.structured.inference.dispatch import infer
from widemargin.structured.inference.potentials import Potentials
from widemargin.structured.inference.roof_duality import persistent_labels


def draw_two_labels(seed, n_nodes, density, whole):
    rng = np.random.default_rng(seed)
    pairs = [(u, v) for u in range(n_nodes) for v in range(n_nodes) if u != v]
    edges = np.array([pair for pair in pairs if rng.random() < density]).reshape(-1, 2).astype(int)
    unary, pairwise = rng.normal(size=(n_nodes, 2)), rng.normal(size=(len(edges), 2, 2))
    if whole:  # many ties
        unary, pairwise = np.round(unary), np.round(pairwise)
    return Potentials(unary, edges, pairwise)


@examples(200)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([0.15, 0.3, 0.6]), st.booleans()
)
def test_labels_are_those_of_all_best_labelings(seed, n_nodes, density, whole):
    potentials = draw_two_labels(seed, n_nodes, density, whole)
    labels, bound = persistent_labels(potentials)
    everything = np.indices([2] * n_nodes).reshape(n_nodes, -1).T
    found = scores(*potentials, everything)
    best = everything[found >= found.max() - 1e-9]
    certain = labels >= 0
    assert (best[:, certain] == labels[certain]).all()
    assert bound >= found.max() - 1e-9
    relaxed = infer(potentials, "lp")
    assert bound == pytest.approx(relaxed.bound, abs=1e-6)
    whole_labeling = infer(potentials, "qpbo")
    assert (whole_labeling.labels[certain] == labels[certain]).all()
    assert whole_labeling.score == pytest.approx(potentials.score(whole_labeling.labels))
    if whole_labeling.exact:
        assert whole_labeling.score == pytest.approx(found.max())


@examples(50)
@given(labelling_problems("submodular"))
def test_submodular_terms_are_solved(problem):
    unary, edges, pairwise = problem
    found = infer(Potentials(unary, edges, pairwise), "qpbo")
    assert found.bound == pytest.approx(best_score(unary, edges, pairwise), abs=1e-9)


def test_a_frustrated_cycle_remains_unlabeled():
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    repel = np.tile(1.0 - np.eye(2), (3, 1, 1))
    labels, bound = persistent_labels(Potentials(np.zeros((3, 2)), edges, repel))
    assert (labels == -1).all()
    assert bound == 3.0
    # A strong node determines what can be known: not its two neighbors, which tie.
    labels, _ = persistent_labels(Potentials(np.array([[9.0, 0.0], [0, 0], [0, 0]]), edges, repel))
    assert labels[0] == 0


@pytest.mark.parametrize("n_states", [2, 4])
def test_moves_by_roof_duality_do_not_lower_the_score(n_states):
    rng = np.random.default_rng(0)
    better = []
    for _ in range(30):
        pairs = [(u, v) for u in range(8) for v in range(u) if rng.random() < 0.5]
        edges = np.array(pairs).reshape(-1, 2)
        unary = rng.normal(size=(8, n_states))
        pairwise = rng.normal(size=(len(edges), n_states, n_states))
        energies = {
            method: inference_dispatch(unary, pairwise, edges, method, return_energy=True)[1]
            for method in ("qpbo", "alpha-expansion", "unary")
        }
        assert energies["qpbo"] <= energies["unary"] + 1e-9
        better.append(energies["alpha-expansion"] - energies["qpbo"])
    assert np.mean(better) > 0.0


def test_learning_with_it_is_certified_by_its_bound():
    rng = np.random.default_rng(0)
    Y = [rng.integers(2, size=(3, 4)) for _ in range(5)]
    X = [np.stack([1 - y, y], axis=-1) + rng.normal(size=(3, 4, 2)) for y in Y]
    fitted = FrankWolfeSSVM(GridCRF(inference_method="qpbo"), C=0.1, tol=0.05).fit(X, Y)
    exact = FrankWolfeSSVM(GridCRF(), C=0.1, tol=0.01).fit(X, Y)
    assert fitted.dual_gap_ <= 0.05
    assert fitted.objective_ == pytest.approx(exact.objective_, rel=0.06)
    fitted.predict(X)
    assert fitted.model_.last_inference_.method == "qpbo"

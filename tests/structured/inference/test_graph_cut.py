"""Minimum cuts, compared with the maximum flows of SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from tests.structured.cases import examples

from widemargin.structured.inference.graph_cut import is_submodular, minimum_cut
from widemargin.structured.models import make_grid_edges


@examples(200)
@given(st.integers(0, 2**32 - 1))
def test_cuts_of_integer_capacities_equal_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    edges = rng.integers(n, size=(rng.integers(0, 4 * n), 2))
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    forth, back = rng.integers(0, 20, size=(2, len(edges)))
    terminal = rng.integers(-30, 31, size=n)
    side, flow = minimum_cut(edges, forth, back, terminal)
    assert flow == scipy_flow(edges, forth, back, terminal)
    u, v = edges.T
    crossing = (
        forth[(side[u] == 0) & (side[v] == 1)].sum() + back[(side[u] == 1) & (side[v] == 0)].sum()
    )
    crossing += terminal[(terminal > 0) & (side == 1)].sum()
    assert crossing - terminal[(terminal < 0) & (side == 0)].sum() == flow


@pytest.mark.large
@pytest.mark.parametrize("strength", [5, 40])
def test_cuts_of_images_equal_those_of_scipy(strength):
    rng = np.random.default_rng(strength)
    edges = make_grid_edges(np.empty((60, 70)))
    terminal = rng.integers(-100, 101, size=60 * 70)
    capacity = np.full(len(edges), strength)
    _, flow = minimum_cut(edges, capacity, capacity, terminal)
    assert flow == scipy_flow(edges, capacity, capacity, terminal)


def scipy_flow(edges, forth, back, terminal):
    n = len(terminal)
    above, below = np.flatnonzero(terminal > 0), np.flatnonzero(terminal < 0)
    rows = np.concatenate([edges[:, 0], edges[:, 1], np.full(len(above), n), below])
    columns = np.concatenate([edges[:, 1], edges[:, 0], above, np.full(len(below), n + 1)])
    values = np.concatenate([forth, back, terminal[above], -terminal[below]]).astype(np.int32)
    network = csr_array((values, (rows, columns)), shape=(n + 2, n + 2))
    return maximum_flow(network, n, n + 1).flow_value


def test_submodular_terms_are_recognized():
    attract, repel = np.eye(2)[None], 1.0 - np.eye(2)[None]
    assert is_submodular(attract)
    assert not is_submodular(repel)
    assert is_submodular(np.empty((0, 2, 2)))

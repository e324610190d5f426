"""Conditional random fields on images: one label for each pixel."""

from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin.structured.models.graph import GraphCRF
from widemargin.structured.models.inputs import InputGraph, check_features
from widemargin.structured.models.joint_feature import full_matrices


@shared_docs
class GridCRF(GraphCRF):
    r"""Conditional random field on pixels, with one symmetric pairwise matrix.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_{(u, v)} P[y_u, y_v]

    An input is an array of shape (height, width, n_features), an output is an array of shape
    (height, width).

    Parameters
    ----------
    <<n_states>>
    <<n_node_features>>
    <<inference_method>>
    <<neighborhood>>
    <<node_class_weight>>

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known.
    <<state_classes>>
    <<last_inference_>>

    See Also
    --------
    DirectionalGridCRF : Pairwise weights that depend on the direction.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import GridCRF
    >>> x = np.zeros((3, 3, 2))
    >>> x[..., 0], x[1, 1] = 1.0, [0.0, 1.0]
    >>> model = GridCRF(n_states=2, n_features=2)
    >>> model.inference(x, np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]))
    array([[0, 0, 0],
           [0, 0, 0],
           [0, 0, 0]])
    """

    _directed = False

    def __init__(
        self,
        n_states: int | None = None,
        n_features: int | None = None,
        inference_method: Any = None,
        neighborhood: int = 4,
        class_weight: Any = None,
    ) -> None:
        super().__init__(n_states, n_features, inference_method, class_weight, self._directed)
        self.neighborhood = neighborhood

    def parse_input(self, x: Any) -> InputGraph:
        features, shape = _pixels(x)
        edges = np.concatenate(_edges_by_direction(shape, self.neighborhood))
        return InputGraph(features, edges, shape=shape)


@shared_docs
class DirectionalGridCRF(GridCRF):
    r"""Conditional random field on pixels, with a pairwise matrix for each direction.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_d \sum_{(u, v) \in d} P_d[y_u, y_v]

    An input is an array of shape (height, width, n_features), an output is an array of shape
    (height, width).

    Parameters
    ----------
    <<n_states>>
    <<n_node_features>>
    <<inference_method>>
    <<neighborhood>>
    <<node_class_weight>>

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known: those of the pixels, followed by one matrix for
        edges to the right, down and, with 8 neighbors, up right and down right.
    <<state_classes>>
    <<last_inference_>>

    See Also
    --------
    GridCRF : One symmetric matrix for all neighbors.

    Examples
    --------
    >>> from widemargin.structured import DirectionalGridCRF
    >>> model = DirectionalGridCRF(n_states=2, n_features=3)
    >>> model.joint_feature([[[1, 0, 0], [0, 1, 0]]], [[0, 1]])
    array([1., 0., 0., 0., 1., 0., 0., 1., 0., 0., 0., 0., 0., 0.])
    """

    _directed = True

    def parse_input(self, x: Any) -> InputGraph:
        features, shape = _pixels(x)
        directions = _edges_by_direction(shape, self.neighborhood)
        kind = np.repeat(np.arange(len(directions)), [len(edges) for edges in directions])
        return InputGraph(features, np.concatenate(directions), kind, shape)

    def pairwise_weights(self) -> tuple[np.ndarray, np.ndarray]:
        return full_matrices(self.neighborhood // 2, self.n_states)


@shared_docs
def make_grid_edges(x: Any, neighborhood: int = 4, return_lists: bool = False) -> Any:
    """Return the edges between neighboring pixels of an image.

    Parameters
    ----------
    x : ndarray of shape (height, width, ...)
        Image; its pixels are counted row by row.
    <<neighborhood>>
    return_lists : bool, default=False
        Whether to return a list with the edges of each direction.

    Returns
    -------
    edges : ndarray of shape (n_edges, 2), or list of such
        Edges to the right, down and, with 8 neighbors, up right and down right.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import make_grid_edges
    >>> make_grid_edges(np.zeros((2, 2))).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    edges = _edges_by_direction(np.shape(x)[:2], neighborhood)
    return edges if return_lists else np.concatenate(edges)


def _edges_by_direction(shape: tuple[int, ...], neighborhood: int) -> list[np.ndarray]:
    if neighborhood not in (4, 8):
        raise ValueError(f"neighborhood must be 4 or 8, got {neighborhood!r}.")
    pixels = np.arange(shape[0] * shape[1]).reshape(shape)
    pairs = [(pixels[:, :-1], pixels[:, 1:]), (pixels[:-1], pixels[1:])]
    if neighborhood == 8:
        pairs += [(pixels[1:, :-1], pixels[:-1, 1:]), (pixels[:-1, :-1], pixels[1:, 1:])]
    return [np.stack([first.ravel(), second.ravel()], axis=1) for first, second in pairs]


def _pixels(x: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    x = np.asarray(x)
    if x.ndim != 3:
        raise ValueError(f"x must have shape (height, width, n_features), got {x.shape}.")
    return check_features(x.reshape(-1, x.shape[2])), x.shape[:2]

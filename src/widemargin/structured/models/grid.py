"""Conditional random fields on images: one label for every pixel."""

import numpy as np

from widemargin.structured.models.crf import Parts
from widemargin.structured.models.graph import GraphCRF


class GridCRF(GraphCRF):
    r"""Labels of pixels, with one symmetric matrix of pairwise weights for all neighbours.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_{(u, v)} P[y_u, y_v]

    An input is an array of shape (height, width, n_features), an output one of shape (height,
    width).

    Parameters
    ----------
    n_states : int, default=None
        Number of labels; learnt from the data by default.
    n_features : int, default=None
        Features of a pixel; learnt from the data by default.
    inference_method : str, default=None
        See `inference_dispatch`; None means "auto".
    neighborhood : {4, 8}, default=4
        Neighbours of a pixel: those beside it, or the diagonal ones too.
    class_weight : array-like of shape (n_states,), default=None
        Loss of a pixel by its true label; 1 by default.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once sizes are known.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

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

    def __init__(
        self,
        n_states=None,
        n_features=None,
        inference_method=None,
        neighborhood=4,
        class_weight=None,
    ):
        super().__init__(n_states, n_features, inference_method, class_weight, directed=False)
        self.neighborhood = neighborhood

    def _parts(self, x):
        features, shape = _pixels(x)
        edges = np.concatenate(_edges_by_direction(shape, self.neighborhood))
        return Parts(features, edges, None, shape)


class DirectionalGridCRF(GridCRF):
    r"""Labels of pixels, with a matrix of pairwise weights for each direction.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_d \sum_{(u, v) \in d} P_d[y_u, y_v]

    An input is an array of shape (height, width, n_features), an output one of shape (height,
    width).

    Parameters
    ----------
    n_states : int, default=None
        Number of labels; learnt from the data by default.
    n_features : int, default=None
        Features of a pixel; learnt from the data by default.
    inference_method : str, default=None
        See `inference_dispatch`; None means "auto".
    neighborhood : {4, 8}, default=4
        Neighbours of a pixel: those beside it, or the diagonal ones too.
    class_weight : array-like of shape (n_states,), default=None
        Loss of a pixel by its true label; 1 by default.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once sizes are known: those of pixels, then a matrix each for edges to
        the right, down and, with 8 neighbours, up right and down right.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

    See Also
    --------
    GridCRF : One symmetric matrix for all neighbours.

    Examples
    --------
    >>> from widemargin.structured import DirectionalGridCRF
    >>> model = DirectionalGridCRF(n_states=2, n_features=3)
    >>> model.joint_feature([[[1, 0, 0], [0, 1, 0]]], [[0, 1]])
    array([1., 0., 0., 0., 1., 0., 0., 1., 0., 0., 0., 0., 0., 0.])
    """

    def __init__(
        self,
        n_states=None,
        n_features=None,
        inference_method=None,
        neighborhood=4,
        class_weight=None,
    ):
        super().__init__(n_states, n_features, inference_method, neighborhood, class_weight)
        self.directed = True

    def _parts(self, x):
        features, shape = _pixels(x)
        directions = _edges_by_direction(shape, self.neighborhood)
        kind = np.repeat(np.arange(len(directions)), [len(edges) for edges in directions])
        one_hot = np.eye(len(directions))[kind]
        return Parts(features, np.concatenate(directions), one_hot, shape)

    def _n_edge_features(self):
        return self.neighborhood // 2


def make_grid_edges(x, neighborhood=4, return_lists=False):
    """The edges between neighbouring pixels of an image.

    Parameters
    ----------
    x : ndarray of shape (height, width, ...)
        Image; its pixels are counted row by row.
    neighborhood : {4, 8}, default=4
        Neighbours of a pixel: those beside it, or the diagonal ones too.
    return_lists : bool, default=False
        Return the edges of each direction by themselves.

    Returns
    -------
    edges : ndarray of shape (n_edges, 2), or list of such
        To the right, down and, with 8 neighbours, up right and down right.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import make_grid_edges
    >>> make_grid_edges(np.zeros((2, 2))).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    edges = _edges_by_direction(np.shape(x)[:2], neighborhood)
    return edges if return_lists else np.concatenate(edges)


def _edges_by_direction(shape, neighborhood):
    if neighborhood not in (4, 8):
        raise ValueError(f"neighborhood must be 4 or 8, got {neighborhood!r}.")
    pixels = np.arange(shape[0] * shape[1]).reshape(shape)
    pairs = [(pixels[:, :-1], pixels[:, 1:]), (pixels[:-1], pixels[1:])]
    if neighborhood == 8:
        pairs += [(pixels[1:, :-1], pixels[:-1, 1:]), (pixels[:-1, :-1], pixels[1:, 1:])]
    return [np.stack([first.ravel(), second.ravel()], axis=1) for first, second in pairs]


def _pixels(x):
    x = np.asarray(x)
    if x.ndim != 3:
        raise ValueError(f"x must have shape (height, width, n_features), got {x.shape}.")
    return x.reshape(-1, x.shape[2]), x.shape[:2]

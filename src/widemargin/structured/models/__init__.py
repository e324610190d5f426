"""What the score of an output is made of."""

from widemargin.structured.models.base import StructuredModel
from widemargin.structured.models.classes import BinaryClf, MultiClassClf, MultiLabelClf
from widemargin.structured.models.graph import ChainCRF, EdgeFeatureGraphCRF, GraphCRF
from widemargin.structured.models.grid import DirectionalGridCRF, GridCRF, make_grid_edges

__all__ = [
    "BinaryClf",
    "ChainCRF",
    "DirectionalGridCRF",
    "EdgeFeatureGraphCRF",
    "GraphCRF",
    "GridCRF",
    "MultiClassClf",
    "MultiLabelClf",
    "StructuredModel",
    "make_grid_edges",
]

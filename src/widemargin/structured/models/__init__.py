"""Models: what the score of an output consists of."""

from widemargin.structured.models.base import StructuredModel
from widemargin.structured.models.classes import BinaryClf, MultiClassClf, MultiLabelClf
from widemargin.structured.models.crf import CRF
from widemargin.structured.models.graph import ChainCRF, EdgeFeatureGraphCRF, GraphCRF
from widemargin.structured.models.grid import DirectionalGridCRF, GridCRF, make_grid_edges
from widemargin.structured.models.inputs import InputGraph
from widemargin.structured.models.latent import (
    EdgeFeatureLatentNodeCRF,
    LatentDirectionalGridCRF,
    LatentGraphCRF,
    LatentGridCRF,
    LatentNodeCRF,
)
from widemargin.structured.models.typed import NodeTypeEdgeFeatureGraphCRF

__all__ = [
    "CRF",
    "BinaryClf",
    "ChainCRF",
    "DirectionalGridCRF",
    "EdgeFeatureGraphCRF",
    "EdgeFeatureLatentNodeCRF",
    "GraphCRF",
    "GridCRF",
    "InputGraph",
    "LatentDirectionalGridCRF",
    "LatentGraphCRF",
    "LatentGridCRF",
    "LatentNodeCRF",
    "MultiClassClf",
    "MultiLabelClf",
    "NodeTypeEdgeFeatureGraphCRF",
    "StructuredModel",
    "make_grid_edges",
]

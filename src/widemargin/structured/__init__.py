"""Structured outputs: models, inference and learners."""

from widemargin.structured.inference import inference_dispatch
from widemargin.structured.learners import FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM
from widemargin.structured.models import (
    BinaryClf,
    ChainCRF,
    DirectionalGridCRF,
    EdgeFeatureGraphCRF,
    GraphCRF,
    GridCRF,
    MultiClassClf,
    MultiLabelClf,
    StructuredModel,
    make_grid_edges,
)
from widemargin.structured.nodes import NodeTransformer

__all__ = [
    "BinaryClf",
    "ChainCRF",
    "DirectionalGridCRF",
    "EdgeFeatureGraphCRF",
    "FrankWolfeSSVM",
    "GraphCRF",
    "GridCRF",
    "MultiClassClf",
    "MultiLabelClf",
    "NodeTransformer",
    "OneSlackSSVM",
    "StructuredModel",
    "SubgradientSSVM",
    "inference_dispatch",
    "make_grid_edges",
]

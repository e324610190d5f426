"""Structured prediction: models, inference, learners and ensembles."""

from widemargin.structured.ensembles import (
    CoulombSSVM,
    DiverseMultipleChoiceSSVM,
    MultipleChoiceSSVM,
    PerturbedSSVM,
    batch_diverse_predictions,
    diverse_predictions,
)
from widemargin.structured.inference import inference_dispatch
from widemargin.structured.learners import (
    FrankWolfeSSVM,
    LatentSSVM,
    NSlackSSVM,
    OneSlackSSVM,
    StructuredPerceptron,
    SubgradientSSVM,
)
from widemargin.structured.metrics import flat_scorer, jaccard_index
from widemargin.structured.models import (
    BinaryClf,
    ChainCRF,
    DirectionalGridCRF,
    EdgeFeatureGraphCRF,
    EdgeFeatureLatentNodeCRF,
    GraphCRF,
    GridCRF,
    LatentDirectionalGridCRF,
    LatentGraphCRF,
    LatentGridCRF,
    LatentNodeCRF,
    MultiClassClf,
    MultiLabelClf,
    NodeTypeEdgeFeatureGraphCRF,
    StructuredModel,
    make_grid_edges,
)
from widemargin.structured.node_transformer import NodeTransformer

__all__ = [
    "BinaryClf",
    "ChainCRF",
    "CoulombSSVM",
    "DirectionalGridCRF",
    "DiverseMultipleChoiceSSVM",
    "EdgeFeatureGraphCRF",
    "EdgeFeatureLatentNodeCRF",
    "FrankWolfeSSVM",
    "GraphCRF",
    "GridCRF",
    "LatentDirectionalGridCRF",
    "LatentGraphCRF",
    "LatentGridCRF",
    "LatentNodeCRF",
    "LatentSSVM",
    "MultiClassClf",
    "MultiLabelClf",
    "MultipleChoiceSSVM",
    "NSlackSSVM",
    "NodeTransformer",
    "NodeTypeEdgeFeatureGraphCRF",
    "OneSlackSSVM",
    "PerturbedSSVM",
    "StructuredModel",
    "StructuredPerceptron",
    "SubgradientSSVM",
    "batch_diverse_predictions",
    "diverse_predictions",
    "flat_scorer",
    "inference_dispatch",
    "jaccard_index",
    "make_grid_edges",
]

"""Learners: training of the weights of a model."""

from widemargin.structured.learners.base import StructuredLearner
from widemargin.structured.learners.frank_wolfe import FrankWolfeSSVM
from widemargin.structured.learners.latent import LatentSSVM
from widemargin.structured.learners.n_slack import NSlackSSVM
from widemargin.structured.learners.one_slack import OneSlackSSVM
from widemargin.structured.learners.perceptron import StructuredPerceptron
from widemargin.structured.learners.subgradient import SubgradientSSVM

__all__ = [
    "FrankWolfeSSVM",
    "LatentSSVM",
    "NSlackSSVM",
    "OneSlackSSVM",
    "StructuredLearner",
    "StructuredPerceptron",
    "SubgradientSSVM",
]

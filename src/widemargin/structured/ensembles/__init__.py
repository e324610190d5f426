"""Ensembles of structured SVMs that propose several different outputs for each input."""

from widemargin.structured.ensembles.coulomb import CoulombSSVM
from widemargin.structured.ensembles.diverse import batch_diverse_predictions, diverse_predictions
from widemargin.structured.ensembles.multiple_choice import (
    DiverseMultipleChoiceSSVM,
    MultipleChoiceSSVM,
)
from widemargin.structured.ensembles.perturbed import PerturbedSSVM

__all__ = [
    "CoulombSSVM",
    "DiverseMultipleChoiceSSVM",
    "MultipleChoiceSSVM",
    "PerturbedSSVM",
    "batch_diverse_predictions",
    "diverse_predictions",
]

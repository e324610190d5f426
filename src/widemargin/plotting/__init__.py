"""Displays as in scikit-learn; matplotlib is imported when something is plotted."""

from widemargin.plotting.discriminant import (
    DiscriminantDensityDisplay,
    DiscriminantProjectionDisplay,
    DiscriminantRegionDisplay,
)
from widemargin.plotting.ensembles import (
    BestMemberDisplay,
    LossHistogramDisplay,
    PickBestDisplay,
    ProposalsDisplay,
)
from widemargin.plotting.gated import DifficultyDisplay, StudentsDisplay
from widemargin.plotting.imbalance import ClassRecallDisplay
from widemargin.plotting.margin import MarginDisplay
from widemargin.plotting.multiclass import CodeMatrixDisplay
from widemargin.plotting.preference import PreferenceDisplay
from widemargin.plotting.privileged import SlackDisplay
from widemargin.plotting.structured import GridLabelDisplay, ObjectiveDisplay, WordDisplay

__all__ = [
    "BestMemberDisplay",
    "ClassRecallDisplay",
    "CodeMatrixDisplay",
    "DifficultyDisplay",
    "DiscriminantDensityDisplay",
    "DiscriminantProjectionDisplay",
    "DiscriminantRegionDisplay",
    "GridLabelDisplay",
    "LossHistogramDisplay",
    "MarginDisplay",
    "ObjectiveDisplay",
    "PickBestDisplay",
    "PreferenceDisplay",
    "ProposalsDisplay",
    "SlackDisplay",
    "StudentsDisplay",
    "WordDisplay",
]

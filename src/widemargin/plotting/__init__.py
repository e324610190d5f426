"""Displays in scikit-learn's manner; matplotlib is imported when something is drawn."""

from widemargin.plotting.imbalance import ClassRecallDisplay
from widemargin.plotting.margin import MarginDisplay
from widemargin.plotting.multiclass import CodeMatrixDisplay

__all__ = [
    "ClassRecallDisplay",
    "CodeMatrixDisplay",
    "MarginDisplay",
]

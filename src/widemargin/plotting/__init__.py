"""Displays in scikit-learn's manner; matplotlib is imported when something is drawn."""

from widemargin.plotting.margin import MarginDisplay

__all__ = ["MarginDisplay"]

"""Reports: one self-contained HTML page about a fitted model."""

from widemargin.report.page import Report, Section

__all__ = ["Report", "Section"]

"""Oracles: loss-augmented inference on training samples, as solvers call it."""

from widemargin.structured.oracles.base import PlainOracle, StructuredOracle, Violations
from widemargin.structured.oracles.graph import GraphOracle

__all__ = ["GraphOracle", "PlainOracle", "StructuredOracle", "Violations"]

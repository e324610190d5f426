"""Inference on graphs: exact where possible, otherwise approximate with a bound."""

from widemargin.structured.inference.dispatch import inference_dispatch

__all__ = ["inference_dispatch"]

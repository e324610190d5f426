"""The best labels of graphs: exact where that can be had, with a bound where it cannot."""

from widemargin.structured.inference.dispatch import inference_dispatch

__all__ = ["inference_dispatch"]

"""Constants of float64 arithmetic."""

import numpy as np

__all__ = ["EPSILON", "TINY"]

EPSILON = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)

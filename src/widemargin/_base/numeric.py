"""Constants of float64 arithmetic, and log-odds that stay finite."""

from typing import Any

import numpy as np

EPSILON = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)

# Trades the range of log-odds (+-27.6) against ties among probabilities close to 0 or 1.
_PROBABILITY_FLOOR = 1e-12


def log_odds(probability: Any) -> np.ndarray:
    """Return log(p / (1 - p)) of probabilities, finite for 0 and 1."""
    p = np.asarray(probability, dtype=np.float64)
    p = np.clip(p, _PROBABILITY_FLOOR, 1.0 - _PROBABILITY_FLOOR)
    return np.log(p) - np.log1p(-p)

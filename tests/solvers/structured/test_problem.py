"""The record of bounds."""

import numpy as np
import pytest

from widemargin.solvers.structured.problem import Record


def test_an_upper_bound_below_the_lower_one_is_no_certificate():
    record = Record(np.zeros(1))
    record.add(1, np.zeros(1), 10.0, 10.0, 9.0)
    assert record.gap == pytest.approx(0.1)
    record.add(2, np.zeros(1), 10.0, 10.0, 10.0 + 1e-9)
    assert record.gap == 0.0
    record.add(3, np.zeros(1), 10.0, 10.0, 11.0)
    assert np.isnan(record.gap)

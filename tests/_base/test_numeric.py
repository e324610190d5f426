"""Log-odds are finite, and right where they are."""

import numpy as np

from widemargin._base.numeric import log_odds


def test_log_odds_of_certainty_are_finite():
    found = log_odds([0.0, 0.2, 0.5, 1.0])
    np.testing.assert_allclose(found, [-27.631, np.log(0.25), 0.0, 27.631], atol=1e-3)

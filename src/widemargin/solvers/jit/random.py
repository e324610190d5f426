"""Random numbers for compiled code, from a state that the caller keeps."""

import numpy as np

from widemargin._base.jit import compiled


def random_state(seed: int) -> np.ndarray:
    """Return the state of a generator: an array of one 64-bit number."""
    return np.array([seed ^ 0x9E3779B97F4A7C15], dtype=np.uint64)


@compiled
def random_below(random, bound):
    """Return a random integer from 0 to ``bound - 1``, by Marsaglia's xorshift."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    # The high bits as a fraction of the bound: no division.
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@compiled
def shuffle(order, count, random):
    """Shuffle the first ``count`` entries of ``order`` in place."""
    for position in range(count):
        other = position + random_below(random, count - position)
        i = order[other]
        order[other] = order[position]
        order[position] = i

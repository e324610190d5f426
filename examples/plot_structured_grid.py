"""
Labels of pixels, one by one and together
=========================================

Every pixel of a noisy picture is to get one of four labels. Pixel by pixel the noise wins; a grid
that has learnt from six other pictures how labels go together removes it. Whether an answer is the
best one there is, `last_inference_` tells.
"""

import warnings

import numpy as np

from widemargin.plotting import GridLabelDisplay
from widemargin.structured import FrankWolfeSSVM, GridCRF, MultiClassClf


def picture(rng, size=40):
    """Discs of random places and labels, seen through noise."""
    rows, columns = np.indices((size, size))
    labels = np.zeros((size, size), dtype=int)
    for _ in range(6):
        row, column, radius = rng.uniform([0, 0, 5], [size, size, 12])
        labels[(rows - row) ** 2 + (columns - column) ** 2 < radius**2] = rng.integers(4)
    return np.eye(4)[labels] + 0.9 * rng.normal(size=(size, size, 4)), labels


rng = np.random.default_rng(3)
X, Y = zip(*[picture(rng) for _ in range(6)], strict=True)
x, y = picture(rng)

grid = FrankWolfeSSVM(GridCRF(inference_method="alpha-expansion"), C=0.01, max_iter=20, tol=0.1)
pixels = FrankWolfeSSVM(MultiClassClf(), C=0.01, tol=0.1, max_iter=20)

# %%
# Alpha-expansion knows no bound, so the fit says that its gap is not certified.

with warnings.catch_warnings(action="ignore"):
    grid.fit(X, Y)
    pixels.fit(
        np.concatenate([x.reshape(-1, 4) for x in X]), np.concatenate([y.ravel() for y in Y])
    )

# %%
# For the new picture messages are passed on the grid, which bounds the score of all labels.

grid.model_.set_params(inference_method="trws")
found = {
    "truth": y,
    "pixel by pixel": pixels.predict(x.reshape(-1, 4)).reshape(y.shape),
    "grid": grid.predict([x])[0],
}
print(grid.model_.last_inference_)
GridLabelDisplay.from_labels(found, image=np.clip(x[..., :3] / 2 + 0.25, 0, 1), n_states=4)

"""
Image segmentation with a grid CRF (GridCRF)
============================================

Every pixel of a noisy image has one of four labels. A classifier of single pixels makes many
mistakes; a grid CRF trained on six other images removes most of them, because it has pairwise
weights between neighboring labels. `last_inference_` shows whether a prediction is exact.
"""

import warnings

import numpy as np

from widemargin.plotting import GridLabelDisplay
from widemargin.structured import FrankWolfeSSVM, GridCRF, MultiClassClf


def make_image(rng, size=40):
    """Return an image of discs with random positions and labels, with noise, and the labels."""
    rows, columns = np.indices((size, size))
    labels = np.zeros((size, size), dtype=int)
    for _ in range(6):
        row, column, radius = rng.uniform([0, 0, 5], [size, size, 12])
        labels[(rows - row) ** 2 + (columns - column) ** 2 < radius**2] = rng.integers(4)
    return np.eye(4)[labels] + 0.9 * rng.normal(size=(size, size, 4)), labels


rng = np.random.default_rng(3)
X, Y = zip(*[make_image(rng) for _ in range(6)], strict=True)
x, y = make_image(rng)

grid = FrankWolfeSSVM(GridCRF(inference_method="alpha-expansion"), C=0.01, max_iter=20, tol=0.1)
pixels = FrankWolfeSSVM(MultiClassClf(), C=0.01, tol=0.1, max_iter=20)

# %%
# Alpha-expansion gives no bound, so that the fit warns that its gap is unknown.

with warnings.catch_warnings(action="ignore"):
    grid.fit(X, Y)
    pixels.fit(
        np.concatenate([x.reshape(-1, 4) for x in X]), np.concatenate([y.ravel() for y in Y])
    )

# %%
# For the new image TRW-S is used, which gives a bound on the score of all labels.

grid.model_.set_params(inference_method="trws")
found = {
    "true labels": y,
    "single pixels": pixels.predict(x.reshape(-1, 4)).reshape(y.shape),
    "grid CRF": grid.predict([x])[0],
}
print(grid.model_.last_inference_)
GridLabelDisplay.from_labels(found, image=np.clip(x[..., :3] / 2 + 0.25, 0, 1), n_states=4)

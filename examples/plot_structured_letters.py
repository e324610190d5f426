"""
Handwriting recognition with a chain CRF (ChainCRF)
===================================================

A single handwritten letter is hard to recognize; the letters next to it help. A chain CRF has
weights for the pixels of a letter and for pairs of consecutive letters, and predicts a word as a
whole. It is compared with a classifier of single letters.
"""

import numpy as np

from widemargin.datasets import load_letters
from widemargin.plotting import ObjectiveDisplay, WordDisplay
from widemargin.structured import ChainCRF, FrankWolfeSSVM, MultiClassClf

X, Y = load_letters(return_X_y=True)
train, test = slice(0, None, 2), slice(1, None, 2)

chain = FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.02).fit(X[train], Y[train])
alone = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.02)
alone.fit(np.concatenate(X[train]), np.concatenate(Y[train]))

print(f"accuracy on letters: chain {chain.score(X[test], Y[test]):.3f}, ", end="")
print(f"single letters {alone.score(np.concatenate(X[test]), np.concatenate(Y[test])):.3f}")

# %%
# Test words with the predicted letters below them. Wrong letters have another color and are shown
# with the true letter.

found = chain.predict(X[test])
words = [k for k, y in enumerate(Y[test]) if 6 <= len(y) <= 9][5::23][:5]
pick = lambda values: [values[k] for k in words]  # noqa: E731
display = WordDisplay.from_predictions(pick(X[test]), pick(Y[test]), pick(found))

# %%
# The fit stops when the objective is certified to be within 2 percent of the optimum.

ObjectiveDisplay.from_estimator(chain)

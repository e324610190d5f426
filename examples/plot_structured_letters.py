"""
Reading words as a whole
========================

A letter by itself is hard to read; its neighbours help. A chain learns how letters look and which
ones follow each other, and reads a word in one piece. Beside it stands the same machine without
links between letters.
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

print(f"letters read right: {chain.score(X[test], Y[test]):.3f} as words, ", end="")
print(f"{alone.score(np.concatenate(X[test]), np.concatenate(Y[test])):.3f} one by one")

# %%
# Words that were not among the training words. What was read stands below each letter, in another
# colour and with the truth where it is wrong.

found = chain.predict(X[test])
words = [k for k, y in enumerate(Y[test]) if 6 <= len(y) <= 9][5::23][:5]
pick = lambda values: [values[k] for k in words]  # noqa: E731
display = WordDisplay.from_predictions(pick(X[test]), pick(Y[test]), pick(found))

# %%
# The fit ends when the objective is known to be within 2 percent of the best there is.

ObjectiveDisplay.from_estimator(chain)

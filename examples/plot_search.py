"""
Grid search for C and gamma (SVCCV)
===================================

`SVCCV` selects C and gamma by cross-validation, as `GridSearchCV` does, in far less time: the fits
share their kernel matrices, and each starts from the solution of the previous one.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler

from widemargin import SVCCV
from widemargin.datasets import load_satimage

X, y = load_satimage(subset="train", return_X_y=True)
X_test, y_test = load_satimage(subset="test", return_X_y=True)
scaler = MinMaxScaler((-1, 1)).fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

Cs, gammas = 2.0 ** np.arange(-3, 11, 2), 2.0 ** np.arange(-5, 3)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
search = SVCCV(Cs=Cs, gammas=gammas, cv=folds, n_jobs=2).fit(X, y)
print(f"{search.scores_[..., 0].size} pairs, {search.scores_.size} fits")
print(f"best: C = {search.C_:g}, gamma = {search.gamma_:g}, accuracy {search.best_score_:.3f}")

# %%
# The search itself predicts: it was fitted to all samples with the best parameters.

print(f"accuracy on test samples: {search.score(X_test, y_test):.3f}")

# %%
# The scores of all pairs: the smaller gamma is, the larger C has to be. For large gamma a larger C
# soon changes nothing, because no training sample has slack left.

mean = search.scores_.mean(axis=2)
figure, ax = pyplot.subplots(figsize=(7.5, 5), layout="constrained")
image = ax.pcolormesh(np.log2(gammas), np.log2(Cs), mean, vmin=0.85, shading="nearest")
ax.plot(np.log2(search.gamma_), np.log2(search.C_), "*", color="#d55e00", markersize=18)
ax.set(xlabel="gamma, power of 2", ylabel="C, power of 2", title="Accuracy over five folds")
figure.colorbar(image, label="accuracy")

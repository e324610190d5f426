"""
How sure is a machine of its class?
===================================

A machine for each class against the rest gives scores that were never meant to be compared.
`CrammerSingerSVC` trains the functions of all classes together, so that the best one wins by a
margin: its lead over the runner-up says how sure it is. Rows of which it is not sure are the ones
it gets wrong.
"""

import numpy as np
from matplotlib import pyplot

from widemargin import CrammerSingerSVC
from widemargin.datasets import load_satimage

X, y = load_satimage(subset="train", return_X_y=True)
X_test, y_test = load_satimage(subset="test", return_X_y=True)
X, y = X[::3], y[::3]

machine = CrammerSingerSVC(kernel="rbf", C=10.0).fit(X, y)
print(f"accuracy {machine.score(X_test, y_test):.3f}, relative gap {machine.dual_gap_:.0e}")

# %%
# `top_two` gives the best class and the runner-up of every row, with their scores.

labels, scores = machine.top_two(X_test)
lead = scores[:, 0] - scores[:, 1]
right = labels[:, 0] == y_test
second = labels[:, 1] == y_test
print(f"of the rows it gets wrong, {second[~right].mean():.0%} have the runner-up's class")

# %%
# Rows are sorted by the lead and those below it are set aside: the rest is answered better and
# better.

order = np.argsort(-lead)
kept = np.arange(1, len(order) + 1)
accuracy = np.cumsum(right[order]) / kept
figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(kept[50:] / len(order), accuracy[50:], color="#0072b2")
ax.set(xlabel="share of rows answered, the surest first", ylabel="accuracy on them", xlim=(0, 1))
ax.set_title("A lead over the runner-up is a measure of trust")

"""Plot the degree of difficulty over the relative margin of the teacher."""

import numpy as np
from matplotlib import pyplot

from widemargin import difficulty_degrees

# Scores of 1 and 1 - margin have this relative margin.
margin = np.linspace(-2.0, 2.0, 201)
scores = np.column_stack([np.ones_like(margin), 1.0 - margin])
labels = np.zeros(len(margin), dtype=int)
figure, ax = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
for decay, color in zip((0.1, 0.3, 0.5), ("#0072b2", "#d55e00", "#009e73"), strict=True):
    degrees = difficulty_degrees(scores, labels, target=0, decay=decay, classes=[0, 1])
    ax.plot(margin, degrees, color=color, label=f"decay {decay}")
ax.set(xlabel="relative margin of the teacher", ylabel="degree of difficulty", ylim=(0, 1.05))
ax.legend(fontsize="small")

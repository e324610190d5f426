"""Plot F1 by the number of labels, from the results of the benchmark."""

import json
from pathlib import Path

from matplotlib import pyplot

path = Path("../benchmarks/results/preference.json")
results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
parts = results.get("clusters", {})
figure, axes = pyplot.subplots(
    1, max(1, len(parts)), figsize=(9, 3.4), sharey=True, squeeze=False, layout="constrained"
)
colors = ("0.6", "#e69f00", "#cc79a7", "#56b4e9", "#0072b2", "#000000", "#009e73")
for ax, (title, part) in zip(axes[0], parts.items(), strict=False):
    for (name, values), color in zip(part["f1"].items(), colors, strict=True):
        ax.plot(part["labels"], values, "o-", markersize=4, color=color, label=name)
    ax.set_title(title, fontsize="medium")
    ax.set(xscale="log", xlabel="labels")
    ax.set_xticks(part["labels"], [str(count) for count in part["labels"]])
    ax.minorticks_off()
axes[0, 0].set_ylabel("F1")
if parts:
    axes[0, -1].legend(fontsize="x-small")

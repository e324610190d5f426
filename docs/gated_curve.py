"""Plot quality against the time of a prediction, from the results of the benchmark."""

import json
from pathlib import Path

from matplotlib import pyplot

path = Path("../benchmarks/results/gated_curve.json")
kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
curves = {name: lines for name, lines in kept.items() if name.startswith("curve ")}
figure, axes = pyplot.subplots(
    1, max(1, len(curves)), figsize=(9, 3.6), sharey=True, squeeze=False, layout="constrained"
)
for ax, (name, lines) in zip(axes[0], curves.items(), strict=False):
    labels = [line for line in lines if line[0].endswith("labels alone")]
    lines = [line for line in lines if line not in labels]
    landmarks = [line for line in lines if "landmarks" in line[0]]
    if labels:
        ax.plot(*zip(*[line[1:3] for line in labels], strict=True), "^--", color="#cc79a7")
    ax.plot(*zip(*[line[1:3] for line in landmarks], strict=True), "o-", color="#0072b2")
    for method, cost, f, _ in landmarks:
        ax.annotate(method.split()[0], (cost, f), (4, -10), textcoords="offset points", fontsize=8)
    others = [line for line in lines if line not in landmarks]
    for (label, cost, f, _), color in zip(others, ("#009e73", "#d55e00", "#000000"), strict=True):
        ax.plot(cost, f, "s", color=color, label=label)
    ax.plot([], [], "o-", color="#0072b2", label="merged, by number of landmarks")
    if labels:
        ax.plot([], [], "^--", color="#cc79a7", label="the same features, labels alone")
    ax.set_title(name.removeprefix("curve "), fontsize="medium")
    ax.set(xscale="log", xlabel="microseconds per prediction")
axes[0, 0].set_ylabel("mean F (percent)")
if curves:
    axes[0, -1].legend(fontsize="x-small", loc="lower right")

"""Plot the error of the best proposal against the number of proposals, from benchmark results."""

import json
from pathlib import Path

from matplotlib import pyplot

path = Path("../benchmarks/results/ensembles.json")
results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
titles = {
    "clutter": "clutter, 1 image, 29 weights",
    "horse": "horses, 1 image, 79 weights",
    "letters50": "letters, 50 words, 4004 weights",
    "folds": "horses, 33 images, 79 weights",
    "classes": "five classes, 30 lines, 60 weights",
}
looks = {
    "CSSVM chosen": ("#0072b2", "o-"),
    "CSSVM best": ("#56b4e9", "o--"),
    "random chosen": ("#000000", "s:"),
    "DivMBest": ("#009e73", "^--"),
    "MCL": ("#e69f00", "v--"),
    "DivMCL": ("#cc79a7", "D--"),
}
figure, axes = pyplot.subplots(2, 3, figsize=(10, 6), sharex=True, layout="constrained")
axes[1, 2].set_axis_off()
for ax, (part, title) in zip(axes.flat[:5], titles.items(), strict=True):
    ax.set_title(title, fontsize="medium")
    curves = results.get("curves", {}).get(part)
    if curves is None:
        ax.text(0.5, 0.5, "not run", ha="center", va="center", transform=ax.transAxes)
        continue
    ax.axhline(curves["single"], color="0.8", linewidth=1, label="single SSVM")
    for name, (color, style) in looks.items():
        picks = curves["errors"][name]["pick"]
        ax.plot(curves["members"], picks, style, color=color, markersize=3.5, label=name)
    ax.set_ylim(bottom=0)
for ax in (*axes[1, :2], axes[0, 2]):
    ax.set_xlabel("number of proposals")
for ax in axes[:, 0]:
    ax.set_ylabel("error of the best")
if results:
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=7, fontsize="small")

"""Plot the training time over the number of samples, from the results of the benchmark."""

import json
from pathlib import Path

from matplotlib import pyplot

path = Path("../benchmarks/results/privileged.json")
figure, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
if not path.exists():
    figure.text(0.5, 0.5, "Not measured yet: see benchmarks/privileged.py", ha="center")
    ax.set_axis_off()
else:
    kept = json.loads(path.read_text(encoding="utf-8"))["growth_of_methods"]
    colors = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "0.4")
    for (name, seconds), color in zip(kept["seconds"].items(), colors, strict=True):
        points = [(n, s) for n, s in zip(kept["rows"], seconds, strict=True) if s is not None]
        if points:
            ax.plot(*zip(*points, strict=True), "o-", color=color, label=name)
    ax.legend(fontsize="small")
    ax.set(xscale="log", yscale="log", xlabel="samples", ylabel="seconds to train")

"""Draw the time to fit over the number of rows, from what the benchmark kept."""

import json
from pathlib import Path

from matplotlib import pyplot

kept = json.loads(Path("../benchmarks/results/core.json").read_text(encoding="utf-8"))["growth"]
figure, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
for (name, seconds), color in zip(kept["seconds"].items(), ("#0072b2", "#d55e00"), strict=True):
    label = "widemargin, two threads" if name == "ours" else name
    ax.plot(kept["rows"], seconds, "o-", color=color, label=label)
ax.set(xscale="log", yscale="log", xlabel=f"rows of {kept['data']}", ylabel="seconds to fit")
ax.legend()

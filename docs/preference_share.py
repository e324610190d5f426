"""Plot the figures of the PSVM paper, from the results of the benchmark."""

import json
from pathlib import Path

from matplotlib import pyplot

BLUE, RED, ORANGE = "#0072b2", "#d55e00", "#e69f00"


def kept(name, key):
    """Return what a run of the benchmark kept, or an empty list."""
    path = Path("../benchmarks/results") / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")).get(key, []) if path.exists() else []


figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
for ax, kind in zip(axes[0], ("precision", "recall"), strict=True):
    place = ("precision", "recall").index(kind)
    rows = [row for row in kept("preference_constraints", "constraints") if row[0] == kind]
    wanted = [row[1] for row in rows]
    lines = {
        "PSVM, the paper": ([row[2] for row in rows], "s:", "0.5"),
        "PSVM": ([row[3]["PSVM"] for row in rows], "o-", BLUE),
        "PSVM, margin 0.9": ([row[3]["PSVM, margin"] for row in rows], "o-", RED),
    }
    ax.plot(wanted, wanted, "--", color="black", linewidth=1, label="constraint")
    for label, (values, style, color) in lines.items():
        ax.plot(wanted, [one[place] for one in values], style, color=color, label=label)
        ax.plot(wanted, [one[2] for one in values], style, color=color, alpha=0.35)
    ax.set(xlabel=f"{kind} at least", ylabel=f"{kind}; F1 in light colors", title="Adult")
axes[0, 0].legend(fontsize="x-small")
for ax, name in zip(axes[1], ("Adult", "IJCNN1"), strict=True):
    rows = [row for row in kept("preference", "share") if row[0] == name]
    shares = [100 * row[1] for row in rows]
    for who, color in (("SSVM", "0.5"), ("PSVM", BLUE), ("cross-fitted", ORANGE)):
        ax.plot(shares, [row[2][who] for row in rows], "o-", color=color, label=who)
    ax.set(xlabel="labeled samples, %", ylabel="F1", title=name)
axes[1, 0].legend(fontsize="x-small")

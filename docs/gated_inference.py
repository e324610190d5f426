"""Plot the time of a prediction by teachers, students and SVMs, from the benchmark's results."""

import json
from pathlib import Path

from matplotlib import pyplot

path = Path("../benchmarks/results/gated_inference.json")
kept = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else []
tables = [table for table in kept if table["title"].startswith("Inference on ")]
METHODS = {"teacher": "#000000", "early exit": "#e69f00", "student": "#0072b2", "SVM": "#999999"}
figure, ax = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
for place, table in enumerate(tables):
    times = {row[0].replace("merged ", ""): float(row[1]) for row in table["rows"]}
    for k, (method, color) in enumerate(METHODS.items()):
        ax.bar(place + 0.2 * (k - 1.5), times[method], 0.2, color=color)
names = [table["title"].removeprefix("Inference on ").replace(", ", ",\n") for table in tables]
ax.set_xticks(range(len(tables)), names, fontsize="small")
if tables:
    for method, color in METHODS.items():
        ax.bar(0, 0, color=color, label=method.replace("student", "student (gSVM)"))
    ax.set(yscale="log", ylabel="microseconds per sample")
    ax.legend(fontsize="small")

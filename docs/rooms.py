"""Draw the rooms of the package from the contract that `make lint` checks."""

import tomllib
from importlib.resources import files
from pathlib import Path

from matplotlib import pyplot

PURPOSE = {
    "_core": "compilation, threads, tiled products, files, progress",
    "kernels": "rows and blocks of Gram matrices, and their cache",
    "solvers": "arrays in, a Solution out",
    "costs": "who costs what",
    "svm": "the core machines, kernel and linear",
    "gated": "teacher and students",
    "privileged": "knowledge at training time only",
    "semisupervised": "rows without labels",
    "discriminant": "linear, quadratic, kernel",
    "multiclass": "code matrices",
    "imbalance": "rescaling, reports",
    "labeltree": "very many labels",
    "structured": "sequences, grids, graphs",
    "datasets": "shipped samples",
    "plotting": "Displays",
}


def contract():
    """Return the layers of the import contract, from the ground up, as lists of rooms."""
    project = tomllib.loads(Path("../pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[room.strip(" ()") for room in layer.split("|")] for layer in reversed(layers)]


def stands(room):
    """Tell whether the room is built."""
    package = files("widemargin")
    return (package / room).is_dir() or (package / f"{room}.py").is_file()


def draw():
    """Draw one box for each room, the ground at the bottom."""
    layers = contract()
    figure, ax = pyplot.subplots(figsize=(7.5, 0.46 * len(layers)), layout="constrained")
    for height, rooms in enumerate(layers):
        width = 10 / len(rooms)
        for k, room in enumerate(rooms):
            built = stands(room)
            look = {
                "facecolor": "#cfe3f1" if built else "white",
                "linestyle": "-" if built else "--",
            }
            box = pyplot.Rectangle(
                (k * width, height), width - 0.1, 0.82, edgecolor="#0072b2", **look
            )
            ax.add_patch(box)
            color = "black" if built else "0.35"
            ax.text(k * width + 0.15, height + 0.41, room, va="center", weight="bold", color=color)
            ax.text(
                k * width + (2.3 if len(rooms) == 1 else 1.7),
                height + 0.41,
                PURPOSE[room],
                va="center",
                color=color,
                fontsize=9,
            )
    ax.set(xlim=(-0.05, 10), ylim=(-0.1, len(layers)))
    ax.axis("off")
    return figure


draw()

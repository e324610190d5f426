"""Draw the layers of the package from the import contract that `make lint` checks."""

import tomllib
from importlib.resources import files
from pathlib import Path

from matplotlib import pyplot

PURPOSE = {
    "_base": "compilation, threads, validation, targets, callbacks, checkpoints",
    "kernels": "kernel parameters, Gram matrices, caches, kernel expansions",
    "solvers": "arrays in, a Solution out: hinge, multiclass, coupled, structured",
    "svm": "SVC, LinearSVC, CrammerSingerSVC, code matrices, searches",
}


def contract():
    """Return the layers of the import contract, from the base up, as lists of packages."""
    project = tomllib.loads(Path("../pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    names = [[name.strip(" ()") for name in layer.split("|")] for layer in reversed(layers)]
    return [[name for name in layer if exists(name)] for layer in names]


def exists(name):
    """Return whether the package or module exists."""
    package = files("widemargin")
    return (package / name).is_dir() or (package / f"{name}.py").is_file()


def draw():
    """Draw one box for each package, the base at the bottom."""
    layers = contract()
    figure, ax = pyplot.subplots(figsize=(8.5, 0.5 * len(layers)), layout="constrained")
    for height, names in enumerate(layers):
        width = 10 / len(names)
        for k, name in enumerate(names):
            box = pyplot.Rectangle(
                (k * width, height), width - 0.1, 0.82, facecolor="#cfe3f1", edgecolor="#0072b2"
            )
            ax.add_patch(box)
            text = f"{name}: {PURPOSE[name]}" if name in PURPOSE else name
            ax.text(k * width + 0.12, height + 0.41, text, va="center", fontsize=9)
    ax.set(xlim=(-0.05, 10), ylim=(-0.1, len(layers)))
    ax.axis("off")
    return figure


draw()

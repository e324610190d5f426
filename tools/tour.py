"""A tour of widemargin: every stop trains something, shows what came out and adds to a report.

``make demo`` runs it. To add a stop, write a function that returns a `Stop` and list it in `STOPS`.
"""

import argparse
import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from textwrap import fill
from time import perf_counter

import matplotlib

matplotlib.use("Agg")

import numpy as np
import sklearn.svm
from matplotlib import pyplot
from matplotlib.figure import Figure
from pandas import DataFrame
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin.datasets import load_satimage, load_vowel
from widemargin.plotting import MarginDisplay


@dataclass
class Stop:
    """What one stop of the tour shows."""

    title: str
    text: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figure: Figure | None = None
    name: str = ""


def main(arguments=None):
    """Walk all stops, print them, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="folder to write")
    folder = parser.parse_args(arguments).output
    folder.mkdir(parents=True, exist_ok=True)
    print(f"widemargin {widemargin.__version__} beside scikit-learn {sklearn.__version__}")
    stops = []
    for visit in STOPS:
        stops.append(stop := visit())
        print(f"\n{stop.title}\n{fill(stop.text, 100)}\n")
        if stop.rows:
            print(DataFrame(stop.rows, columns=stop.header).to_string(index=False))
        if stop.figure:
            picture = folder / f"{stop.name}.png"
            stop.figure.savefig(picture, dpi=110)
            print(f"Picture: {picture.resolve()}")
    report = folder / "report.html"
    report.write_text(_report(stops), encoding="utf-8")
    print(f"\nReport:  {report.resolve()}")


def margins():
    """Show what a machine looks like."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    X, y = make_moons(160, noise=0.2, random_state=0)
    names = np.array(["upper", "lower"])[y]
    machine = widemargin.SVC(C=1, gamma=1).fit(X, names)
    MarginDisplay.from_estimator(machine, X, names, ax=axes[0])
    axes[0].set_title("Two classes")
    iris = load_iris(as_frame=True)
    X, names = iris.data.iloc[:, 2:], iris.target_names[iris.target]
    machine = widemargin.SVC(C=1, gamma=0.5).fit(X, names)
    MarginDisplay.from_estimator(machine, X, names, ax=axes[1])
    axes[1].set_title("Three classes, one against one")
    text = "Only the ringed rows, the support vectors, hold the boundary in its place."
    return Stop("The machine", text, figure=figure, name="margins")


def beside_scikit_learn():
    """Compare accuracy, objective and time with scikit-learn's SVC."""
    header = ["data", "train", "features", "classes", "accuracy", "scikit-learn's"]
    header += ["objective", "scikit-learn's", "gap at most", "times as fast"]
    rows = [_compare(name, *data) for name, data in _samples()]
    text = (
        "RBF kernel, C = 10, tol = 1e-3 for both. The objective is the sum over all pairs of "
        "classes, computed from the fitted attributes in the same way for both: lower is better. "
        "The gap is how far ours is from the best at most, relative to it. Times are the best of "
        "several fits."
    )
    return Stop("SVC beside scikit-learn's", text, header, rows)


def tuning():
    """Choose C and gamma beside scikit-learn's grid search over its SVC."""
    header = ["data", "best C", "gamma", "score of folds", "accuracy"]
    header += ["best C of grid search", "gamma", "score of folds", "accuracy", "times as fast"]
    rows = [_tune(name, *data) for name, data in _samples() if name in TUNED]
    text = (
        f"C in {GRID['C']} and gamma in {GRID['gamma']}, five folds, and a fit of the best on all "
        "training rows, for both. Distances are computed once for all gammas, kernel matrices once "
        "for all folds, and fits start from those of the next smaller C."
    )
    return Stop("SVCCV beside GridSearchCV over scikit-learn's SVC", text, header, rows)


STOPS = [margins, beside_scikit_learn, tuning]
TUNED = ("iris", "breast cancer", "vowel")
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.03, 0.1, 0.3, 1.0]}


def _samples():
    """Yield the name and the train and test parts of every set."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.3, random_state=0, stratify=y
        )
        scaler = StandardScaler().fit(X_train)
        name = load.__name__.removeprefix("load_").replace("_", " ")
        yield name, (scaler.transform(X_train), scaler.transform(X_test), y_train, y_test)
    for load in (load_vowel, load_satimage):
        X_train, y_train = load(subset="train", return_X_y=True)
        X_test, y_test = load(subset="test", return_X_y=True)
        yield load.__name__.removeprefix("load_"), (X_train, X_test, y_train, y_test)


def _compare(name, X_train, X_test, y_train, y_test):
    settings = {"C": 10.0, "gamma": 1 / (X_train.shape[1] * X_train.var())}
    ours, theirs = widemargin.SVC(**settings), sklearn.svm.SVC(**settings)
    seconds: list[list[float]] = []
    while len(seconds) < 3 or np.sum(seconds) < 0.5:
        seconds.append([_fit_seconds(machine, X_train, y_train) for machine in (ours, theirs)])
    our_seconds, their_seconds = np.min(seconds, axis=0)
    return [
        name,
        *(f"{number:,}" for number in (*X_train.shape, len(ours.classes_))),
        *(f"{machine.score(X_test, y_test):.4f}" for machine in (ours, theirs)),
        *(f"{_objective(machine, X_train, y_train):.4f}" for machine in (ours, theirs)),
        f"{np.max(ours.dual_gap_):.0e}",
        f"{their_seconds / our_seconds:.2f}",
    ]


def _tune(name, X_train, X_test, y_train, y_test):
    ours = widemargin.SVCCV(Cs=GRID["C"], gammas=GRID["gamma"])
    theirs = GridSearchCV(sklearn.svm.SVC(), GRID)
    our_seconds, their_seconds = (_fit_seconds(s, X_train, y_train) for s in (ours, theirs))
    found = [
        [
            *(f"{value:g}" for value in search.best_params_.values()),
            *(f"{value:.4f}" for value in (search.best_score_, search.score(X_test, y_test))),
        ]
        for search in (ours, theirs)
    ]
    return [name, *found[0], *found[1], f"{their_seconds / our_seconds:.1f}"]


def _fit_seconds(machine, X, y):
    start = perf_counter()
    machine.fit(X, y)
    return perf_counter() - start


def _objective(machine, X, y):
    """Sum 1/2 ||f||^2 + C sum_i max(0, 1 - y_i f(x_i)) over all pairs of classes."""
    scores = machine.set_params(decision_function_shape="ovo").decision_function(X)
    scores = -scores[:, None] if scores.ndim == 1 else scores
    K = rbf_kernel(machine.support_vectors_, gamma=machine.gamma)
    ends = np.cumsum(machine.n_support_)
    supports = [
        np.arange(end - count, end) for end, count in zip(ends, machine.n_support_, strict=True)
    ]
    total = 0.0
    for column, (i, j) in enumerate(combinations(range(len(machine.classes_)), 2)):
        rows = np.concatenate([supports[i], supports[j]])
        coef = np.concatenate(
            [machine.dual_coef_[j - 1, supports[i]], machine.dual_coef_[i, supports[j]]]
        )
        total += coef @ K[np.ix_(rows, rows)] @ coef / 2
        for k, sign in ((i, 1), (j, -1)):
            own = scores[y == machine.classes_[k], column]
            total += machine.C * np.maximum(0, 1 - sign * own).sum()
    return total


def _report(stops):
    """Return one page with everything inside, pictures too."""
    body = "".join(
        f"<section><h2>{html.escape(stop.title)}</h2><p>{html.escape(stop.text)}</p>"
        f"{_html_table(stop)}{_html_picture(stop)}</section>"
        for stop in stops
    )
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'><title>A tour of widemargin</title>"
        f"<style>{_STYLE}</style></head><body><h1>A tour of widemargin</h1>"
        f"<p>widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}</p>"
        f"{body}</body></html>\n"
    )


def _html_table(stop):
    if not stop.rows:
        return ""
    lines = [("th", stop.header), *(("td", row) for row in stop.rows)]
    cells = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) for tag, line in lines)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def _html_picture(stop):
    if stop.figure is None:
        return ""
    buffer = io.BytesIO()
    stop.figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f"<img src='data:image/png;base64,{data}' alt='{html.escape(stop.title)}'>"


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222;
  max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { font-weight: 600; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #0072b2; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; }
"""


if __name__ == "__main__":
    main()

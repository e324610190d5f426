"""Table 3 of the gSVM paper: accuracy, F and AUC of the question "class y or not?"."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import MinMaxScaler, RobustScaler

from widemargin import CrammerSingerSVC, GatedStudents
from widemargin.cli.reproduction.comparison import Claim, Comparison, Figure
from widemargin.cli.reproduction.data import dense, split

# Means over classes of accuracy, F and AUC in percent, as published.
PUBLISHED = {
    "vowel": {
        "teacher": (91.93, 53.60, 92.12),
        "SVM": (89.95, 22.01, 80.00),
        "gSVM-0": (86.19, 43.03, 91.05),
        "gSVM": (90.93, 52.49, 91.96),
    },
    "yeast": {
        "teacher": (92.04, 63.59, 85.52),
        "SVM": (90.47, 35.37, 81.86),
        "gSVM-0": (91.44, 49.71, 83.00),
        "gSVM": (91.71, 51.67, 83.10),
    },
    "satimage": {
        "teacher": (97.05, 89.80, 98.76),
        "SVM": (94.00, 74.28, 91.46),
        "gSVM-0": (94.33, 81.95, 98.54),
        "gSVM": (96.28, 86.76, 98.55),
    },
    "letter": {
        "teacher": (99.72, 96.35, 99.95),
        "SVM": (97.35, 43.47, 90.89),
        "gSVM-0": (98.41, 81.75, 98.64),
        "gSVM": (98.88, 82.26, 99.72),
    },
    "protein": {
        "teacher": (80.50, 67.55, 84.91),
        "SVM": (78.31, 60.86, 81.41),
        "gSVM-0": (78.67, 63.23, 82.54),
        "gSVM": (81.01, 69.86, 85.03),
    },
    "shuttle": {
        "teacher": (99.95, 82.20, 98.81),
        "SVM": (97.47, 42.83, 82.61),
        "gSVM-0": (98.13, 77.54, 94.86),
        "gSVM": (99.57, 80.42, 99.28),
    },
}
# gamma and C of the teacher, near the best in folds of training samples.
_TEACHERS = {
    "vowel": (1.0, 3.0), "yeast": (1.0, 3.0), "satimage": (1.0, 1.0), "letter": (2.0, 3.0),
    "protein": (0.04, 1.0), "shuttle": (1.0, 100.0),
}  # fmt: skip
_QUICK = ("vowel", "yeast")
_MEASURES = ("accuracy", "F", "AUC")


def compare(quick: bool, folder: Path | None = None) -> Iterator[Comparison]:
    """Compare the table of each data set, and the statement of the paper about its variants.

    Parameters
    ----------
    quick : bool
        Whether to leave out the larger data sets.
    folder : Path, optional
        Folder with copies of data sets, as of `split`.

    Yields
    ------
    comparison : Comparison
    """
    results = {
        name: _measured(name, quick, folder) for name in PUBLISHED if name in _QUICK or not quick
    }
    figures = [
        Figure(f"{name}, {who}", measure, published[k], None if ours is None else ours[k], 1.0)
        for name, table in PUBLISHED.items()
        for who, published in table.items()
        for ours in [(results.get(name) or {}).get(who)]
        for k, measure in enumerate(_MEASURES)
    ]
    yield Comparison(
        "Teacher and students, in percent",
        "Mean over classes, on the test samples of the official split (yeast: one drawn in the "
        "paper's proportion). The teacher is a Crammer-Singer SVM with an RBF kernel; the students "
        "are linear and see its scores out of fold. C, margin and decay of the students are chosen "
        f"for all classes together by F + AUC in 3 folds, from {8 if quick else 24} candidates.",
        "Differences up to one point count as similar: the test sets have 300 to 14,500 samples. "
        "The paper chooses parameters for each class on a finer grid, and its teacher differs. F "
        "of its SVM depends on how a class without any positive prediction is counted; here it is "
        "0. With the fine grid for each class, benchmarks/gated.py reaches the published F and AUC "
        "of gSVM on vowel, satimage, letter and shuttle.",
        figures,
    )
    yield Comparison(
        "Statements",
        "From the figures above.",
        "gSVM and gSVM-0 were chosen from equally many candidates. Over ten splits the sign of the "
        "difference is mixed too (benchmarks/gated.py, gSVM against gSVM-0).",
        claims=[
            _claim(results, "gSVM has a larger F than an SVM trained on labels alone", "SVM"),
            _claim(results, "gSVM has a larger F than gSVM-0 in all cases", "gSVM-0"),
        ],
    )


def _claim(results: dict[str, Any], statement: str, other: str) -> Claim:
    """Compare the F of gSVM with another one on all data sets that were run."""
    gains = {
        name: scores["gSVM"][1] - scores[other][1] for name, scores in results.items() if scores
    }
    text = ", ".join(f"{name} {gain:+.1f}" for name, gain in gains.items())
    return Claim(statement, all(gain > 0 for gain in gains.values()) if gains else None, text)


def _measured(name: str, quick: bool, folder: Path | None) -> dict[str, tuple[float, ...]] | None:
    """Return accuracy, F and AUC of the teacher and of all students, or None without data."""
    arrays = split(name, folder)
    if arrays is None:
        return None
    X, y, X_test, y_test = dense(arrays[0]), arrays[1], dense(arrays[2]), arrays[3]
    if name == "shuttle":
        # Outliers would leave all other samples in one point.
        scaler = RobustScaler().fit(X)
        X, X_test = np.arcsinh(scaler.transform(X)), np.arcsinh(scaler.transform(X_test))
    scaler = MinMaxScaler((-1, 1)).fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    gamma, C = _TEACHERS[name]
    teacher = CrammerSingerSVC(kernel="rbf", gamma=gamma, C=C, tol=0.1)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_predict(teacher, X, y, cv=folds, method="decision_function")
    new_scores = teacher.fit(X, y).decision_function(X_test)
    classes = teacher.classes_
    results = {"teacher": _judge(_lead(new_scores), y_test, classes)}
    for who, grid in _grids(quick).items():
        plain = who == "SVM"
        gates, new_gates = (0.0 * s if plain else s for s in (scores, new_scores))
        decide = _students(who, X, y, gates, classes)

        def quality(point: dict, decide: Callable = decide, gates: np.ndarray = gates) -> float:
            out = np.empty(gates.shape)
            for train, test in folds.split(X, y):
                out[test] = decide(point, train, X[test], gates[test])
            return sum(_judge(out, y, classes)[1:])

        best = max(grid, key=quality)
        values = decide(best, np.arange(len(y)), X_test, new_gates)
        results[who] = _judge(values, y_test, classes)
    return results


def _grids(quick: bool) -> dict[str, list[dict[str, float | None]]]:
    """Return candidates: C in the units of the paper, which divides it by the samples."""
    costs = (0.1, 1.0, 10.0, 100.0) if quick else (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    margins = (0.2, 0.6) if quick else (0.1, 0.3, 0.6, 1.0)
    pairs = margins if quick else (0.3, 1.0)
    decays = (0.3,) if quick else (0.1, 0.4)
    gated = [{"C": C, "margin": m, "decay": d} for C, m, d in product(costs, pairs, decays)]
    plain = [{"C": C, "margin": m, "decay": None} for C, m in product(costs, margins)]
    wide = [{"C": 10.0**k, "margin": 1.0, "decay": None} for k in np.linspace(-1, 7, len(plain))]
    return {"SVM": wide, "gSVM-0": plain, "gSVM": gated}


def _students(who: str, X: np.ndarray, y: np.ndarray, gates: np.ndarray, classes: Any) -> Callable:
    """Return a function that fits students and computes scores of new samples.

    With a gate that is always 0, a student is an SVM.
    """

    def decide(point: dict, samples: np.ndarray, X_new: Any, new_gates: Any) -> np.ndarray:
        model = GatedStudents(
            targets=classes, classes=classes, C=point["C"] / len(samples), margin=point["margin"],
            difficulty=None if point["decay"] is None else "relative-margin",
            decay=point["decay"] or 0.3, tol=1e-3,
        )  # fmt: skip
        model.fit(X[samples], y[samples], teacher_scores=gates[samples])
        return model.decision_function(X_new, new_gates)

    return decide


def _lead(scores: np.ndarray) -> np.ndarray:
    """Return the margin of each class over the best other one."""
    best, second = np.sort(scores, axis=1)[:, [-1, -2]].T[..., np.newaxis]
    return scores - np.where(scores == best, second, best)


def _judge(scores: np.ndarray, y: np.ndarray, classes: np.ndarray) -> tuple[float, ...]:
    """Return means over the classes with samples of accuracy, F and AUC, in percent."""
    measures = []
    for k, label in enumerate(classes):
        truth, accepted = y == label, scores[:, k] >= 0
        if truth.any():
            f = f1_score(truth, accepted, zero_division=0.0)
            auc = roc_auc_score(truth, scores[:, k])
            measures.append(((truth == accepted).mean(), f, auc))
    return tuple((100.0 * np.mean(measures, axis=0)).tolist())

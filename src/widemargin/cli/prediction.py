"""What is done with a saved model: predictions, evaluation, report, students."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)
from sklearn.pipeline import Pipeline

from widemargin._base.options import cli_options as options
from widemargin._base.options import report_options
from widemargin.cli.main import CommandError
from widemargin.cli.ranking import check_rank, ranked_rows, ranking_evaluation
from widemargin.cli.tables import (
    EXTREME,
    SVMLIGHT,
    TABLE,
    Samples,
    check_file_type,
    class_of,
    read_chunks,
    stack,
)
from widemargin.export import ModelFileError, inspect, load, save
from widemargin.gated.students import GatedStudents
from widemargin.report import Report


def prediction_chunks(
    model_file: Path, data: Path, scores: bool, top: int | None = None
) -> Iterator[bytes]:
    """Predict the labels of a file.

    Parameters
    ----------
    model_file, data : Path
    scores : bool
        Whether to add the decision values.
    top : int, optional
        Number of labels to predict, by a label tree. If None, one class, or five labels if samples
        have several.

    Yields
    ------
    text : bytes
        Lines of a CSV file, the header first.
    """
    model, chunks, metadata = _open(model_file, data, with_labels=False)
    if top is not None or metadata.get("file_type") == EXTREME:
        best = check_rank(model, options.predicted_labels if top is None else top)
        yield from map(_lines, ranked_rows(model, chunks, best, scores))
        return
    lines = [["prediction"]]
    if scores:
        names = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
        lines[0] += [f"score {name}" for name in names]
    for samples in chunks:
        rows = [[label] for label in model.predict(samples.X).tolist()]
        if scores:
            values = model.decision_function(samples.X).reshape(len(rows), -1)
            rows = [row + value for row, value in zip(rows, values.tolist(), strict=True)]
        # The header comes with the first samples: an error about the file prints nothing else.
        yield _lines([*lines, *rows])
        lines = []


def evaluation(model_file: Path, data: Path) -> dict[str, Any]:
    """Compare predictions with labels.

    Parameters
    ----------
    model_file, data : Path

    Returns
    -------
    result : dict
        Accuracy, a table of the classes and the confusion matrix.
    """
    model, chunks, metadata = _open(model_file, data, with_labels=True)
    if metadata.get("file_type") == EXTREME:
        return ranking_evaluation(model, chunks, data)
    target = metadata["target"]
    expected: list = []
    predicted: list = []
    for samples in chunks:
        expected += _known_labels(samples.labels, model.classes_, data, target)
        predicted += model.predict(samples.X).tolist()
    classes = model.classes_.tolist()
    keys = ("precision", "recall", "f1", "samples")
    values = precision_recall_fscore_support(expected, predicted, labels=classes, zero_division=0.0)
    table = [
        {"class": c, **dict(zip(keys, column, strict=True))}
        for c, column in zip(classes, np.transpose(values).tolist(), strict=True)
    ]
    confusion = confusion_matrix(expected, predicted, labels=classes).tolist()
    few = len(classes) <= report_options.most_matrix_classes
    constraints = getattr(model[-1], "constraints_", None)
    return {
        "data": str(data),
        "samples": len(expected),
        "accuracy": float(accuracy_score(expected, predicted)),
        "balanced_accuracy": float(balanced_accuracy_score(expected, predicted)),
        "constraints": _required(constraints),
        "positive_class": getattr(model[-1], "pos_label_", None) if constraints else None,
        "classes": [{**row, "samples": int(row["samples"])} for row in table],
        "confusion_matrix": [
            {"true class": c, **{f"predicted {k}": n for k, n in zip(classes, row, strict=True)}}
            for c, row in zip(classes, confusion, strict=True)
            if few
        ],
    }


def report_on(model_file: Path, data: Path | None) -> Report:
    """Report on a model, with predictions if there is a file with labeled samples.

    Parameters
    ----------
    model_file : Path
    data : Path or None

    Returns
    -------
    report : Report
    """
    notes = {k: v for k, v in inspect(model_file).metadata.get("notes", {}).items() if v}
    if data is None:
        return Report.from_estimator(load(model_file), notes=notes, title=model_file.stem)
    model, X, y = _labeled(model_file, data)
    notes["evaluated_on"] = data.name
    return Report.from_estimator(model, X, y, notes=notes, title=model_file.stem)


def distill(
    teacher_file: Path,
    data: Path,
    output: Path,
    others: Path | None,
    landmarks: int | None,
) -> dict[str, Any]:
    """Fit students of a saved model, save them, and compare them with their teacher.

    They are compared with the same features trained on labels alone as well, at the same cost of a
    prediction.

    Parameters
    ----------
    teacher_file, data, output : Path
        Model file of the teacher, samples to train the students on, model file to write.
    others : Path or None
        Samples to compare on. If None, there is no comparison.
    landmarks : int or None
        Number of kernel values that are the features of the students. If None, they use the
        features of the teacher, and are merged with it if it is linear.

    Returns
    -------
    result : dict
        What was fitted, and a table of the classes if there are samples to compare on.
    """
    teacher, X, y = _labeled(teacher_file, data)
    if issparse(y):
        raise CommandError(
            f"{teacher_file} predicts several labels of a sample.",
            "Students need a teacher that predicts one class.",
        )
    last = teacher.steps[-1][1]
    distilled: dict[str, Any] = {"gate": "distilled", "features": landmarks}
    mapped = teacher[:-1].transform(X)
    students = GatedStudents(last, **({} if landmarks is None else distilled)).fit(mapped, y)
    model = Pipeline([*teacher.steps[:-1], ("students", students)])
    metadata = inspect(teacher_file).metadata
    notes = {
        **metadata.get("notes", {}),
        "trained_on": data.name,
        "labeled_samples": len(y),
        "unlabeled_samples": None,
        "because": f"students of {teacher_file.name}",
    }
    save(model, output, metadata={**metadata, "data": data.name, "notes": notes})
    result: dict[str, Any] = {
        "teacher": type(last).__name__,
        "classes": students.classes_.tolist(),
        "merged_with_the_teacher": students.merged_,
        "duality_gap": float(np.max(students.dual_gap_)),
    }
    if others is not None:
        alone = GatedStudents(last, **distilled, gate_strength=0.0).fit(mapped, y)
        _, X, y = _labeled(teacher_file, others)
        result["compared_on"] = str(others)
        result["f1"] = _compare(teacher, students, alone, X, y)
    return {**result, "model": str(output)}


def _labeled(model_file: Path, data: Path) -> tuple[Any, Any, np.ndarray]:
    """Return a model, and the samples of a file with their labels as classes of the model."""
    model, chunks, metadata = _open(model_file, data, with_labels=True)
    samples = list(chunks)
    if metadata.get("file_type") == EXTREME:
        return model, stack([c.X for c in samples]), stack([c.labels for c in samples])
    target = metadata["target"]
    labels = [
        label
        for chunk in samples
        for label in _known_labels(chunk.labels, model.classes_, data, target)
    ]
    return model, stack([chunk.X for chunk in samples]), np.array(labels)


def _compare(teacher: Any, students: Any, alone: Any, X: Any, y: Any) -> list[dict[str, Any]]:
    """Return F1 of the teacher, its students and those of labels alone for each class."""
    predicted, mapped = teacher.predict(X), teacher[:-1].transform(X)
    answers = {"student": students.answers(mapped), "labels alone": alone.answers(mapped)}
    table = []
    for k, label in enumerate(students.classes_.tolist()):
        predictions = {
            "teacher": predicted == label,
            **{who: a[:, k] for who, a in answers.items()},
        }
        scores = {
            who: float(f1_score(y == label, a, zero_division=0.0)) for who, a in predictions.items()
        }
        table.append({"class": label, **scores})
    return table


def _open(model_file: Path, data: Path, with_labels: bool) -> tuple[Any, Iterator[Samples], Any]:
    """Return the model, chunks of the file, and the metadata of the model file."""
    metadata = inspect(model_file).metadata
    if "kinds" not in metadata:
        raise ModelFileError(
            f"{model_file} was not saved by `widemargin fit`, so that its columns are unknown. Use "
            "widemargin.export.load in Python."
        )
    # Files of earlier versions contain no type.
    other = SVMLIGHT if metadata["kinds"] is None else TABLE
    check_file_type(data, metadata.get("file_type", other))
    model = load(model_file)
    target = metadata["target"] if with_labels else None
    n_features = model[-1].n_features_in_
    chunks = read_chunks(data, metadata["kinds"], n_features, target)
    return model, _with_labels(chunks, data) if with_labels else chunks, metadata


def _with_labels(chunks: Iterator[Samples], data: Path) -> Iterator[Samples]:
    """Yield the samples of a file that have labels."""
    count = 0
    for samples in chunks:
        labels = samples.labels
        if issparse(labels):
            labeled = np.diff(labels.indptr) > 0
        else:
            labeled = np.array([label != "" for label in labels])
        if labeled.any():
            count += labeled.sum()
            yield Samples(samples.X[labeled], labels[labeled])
    if not count:
        raise CommandError(f"{data} has no labels.", "Labeled samples are needed.")


def _known_labels(labels: Any, classes: np.ndarray, data: Path, target: str | None) -> list:
    """Return labels of a file as classes of the model."""
    known = {str(label): class_of(str(label), classes) for label in dict.fromkeys(labels)}
    unknown = sorted(label for label, known_class in known.items() if known_class is None)
    if unknown:
        where = "" if target is None else f" in column {target!r}"
        raise CommandError(
            f"{data} has the label {unknown[0]!r}{where}, and the model has the classes "
            f"{', '.join(map(str, classes.tolist()))}.",
            "Was the model trained on other data?",
        )
    return [known[str(label)] for label in labels]


def _required(constraints: Any) -> dict[str, float] | None:
    names = ("precision", "recall", "false_positive_rate")
    bounds = {name: getattr(constraints, name, None) for name in names}
    return {name: value for name, value in bounds.items() if value is not None} or None


def _lines(rows: list[list]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()

"""The sections of a report: each function returns HTML, or None where it does not apply."""

import warnings
from collections.abc import Callable, Iterator
from inspect import getdoc, signature
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from widemargin._base.options import report_options as options
from widemargin.labeltree.metrics import ndcg_at_k, precision_at_k
from widemargin.report.charts import Chart, bars
from widemargin.report.markup import Markup, facts, heat_table, note, paragraph, table, tiles
from widemargin.report.subject import Subject
from widemargin.report.thresholds import threshold_block


def describe(subject: Subject) -> Iterator[tuple[str, Markup]]:
    """Yield title and content of the sections that apply.

    Parameters
    ----------
    subject : Subject

    Yields
    ------
    title, html : str, Markup
    """
    for title, section in _SECTIONS.items():
        body = section(subject)
        if body:
            yield title, body


def summary(subject: Subject) -> Markup | None:
    """The most important numbers."""
    numbers: dict[str, Any] = {}
    if subject.has_labels:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class without samples
            balanced = balanced_accuracy_score(subject.truth, subject.predicted)
        numbers["accuracy"] = f"{accuracy_score(subject.truth, subject.predicted):.3f}"
        numbers["balanced accuracy"] = f"{balanced:.3f}"
    elif subject.is_structured and subject.has_samples:
        numbers["score"] = f"{subject.model.score(subject.transformed, subject.y):.3f}"
    if subject.has_samples:
        numbers["samples evaluated"] = _length(subject.y)
    gap = getattr(subject.model, "dual_gap_", None)
    if gap is not None:
        numbers["largest relative duality gap"] = f"{np.max(gap):.2g}"
    guarantee = getattr(subject.model, "guarantee_", None)
    if guarantee is not None:
        numbers[f"guaranteed at confidence {guarantee.confidence:g}"] = guarantee.guaranteed
    return tiles(numbers) if numbers else None


def data(subject: Subject) -> Markup:
    """Samples, features and classes."""
    model = subject.model
    known = {name: value for name, value in subject.notes.items() if name != "because"}
    known = {name.replace("_", " "): value for name, value in known.items()}
    known["features of the model"] = getattr(model, "n_features_in_", None)
    names = getattr(subject.estimator, "feature_names_in_", None)
    if names is not None:
        known["feature names"] = _shortened(names.tolist())
    if not subject.has_labels:
        if subject.has_samples:
            known["samples evaluated"] = _length(subject.y)
        return facts(known)
    labels, counts = np.unique(subject.truth, return_counts=True)
    order = np.argsort(-counts, kind="stable")[: options.most_matrix_classes]
    left = "" if len(labels) == len(order) else f" ({len(order)} of {len(labels)} classes)"
    known["samples evaluated"] = len(subject.truth)
    return Markup(
        facts(known)
        + note(f"Samples of each class{left}:")
        + bars(
            [str(label) for label in labels[order].tolist()], counts[order], "Samples of each class"
        )
    )


def method(subject: Subject) -> Markup:
    """The estimator, why it was chosen, and its parameters."""
    model = subject.model
    steps = [type(step).__name__ for step in subject.steps]
    first = (getdoc(type(model)) or "").split("\n\n")[0].replace("\n", " ")
    shown: dict[str, Any] = {
        "estimator": subject.name,
        "because": subject.notes.get("because"),
        "preprocessing": ", ".join(steps) or None,
        "parameters": _changed_parameters(model) or "defaults",
        "selected by cross-validation": subject.selected or None,
        "kernel": getattr(model, "kernel", None),
        "support vectors": _count(model, "support_"),
    }
    return Markup(paragraph(first) + facts(shown))


def certificate(subject: Subject) -> Markup | None:
    """Objective and duality gap."""
    model = subject.model
    if not hasattr(model, "dual_gap_") or not hasattr(model, "objective_"):
        return None
    gaps, objectives = np.atleast_1d(model.dual_gap_), np.atleast_1d(model.objective_)
    iterations = np.broadcast_to(np.atleast_1d(getattr(model, "n_iter_", 0)), gaps.shape)
    text = (
        "The relative duality gap is a proven bound: no solution has an objective lower than this "
        "one by more than this fraction."
    )
    shown = facts(
        {
            "binary subproblems": len(gaps) if len(gaps) > 1 else None,
            "converged": model.fit_status_ == 0 if hasattr(model, "fit_status_") else None,
            "largest gap": float(gaps.max()),
            "sum of the objectives" if len(gaps) > 1 else "objective": float(objectives.sum()),
        }
    )
    rows: Any = zip(range(1, len(gaps) + 1), objectives, gaps, iterations, strict=True)
    if 1 < len(gaps) <= options.most_matrix_classes:
        shown = Markup(
            shown + table(["subproblem", "objective", "relative gap", "iterations"], rows)
        )
    return Markup(paragraph(text) + shown)


def guarantee(subject: Subject) -> Markup | None:
    """Constraints, and whether they are guaranteed on new samples."""
    model = subject.model
    constraints, result = getattr(model, "constraints_", None), getattr(model, "guarantee_", None)
    if constraints is None or not constraints.bounds:
        return None
    shown: dict[str, Any] = {
        "constraint": ", ".join(
            f"{name.replace('_', ' ')} {'≤' if name == 'false_positive_rate' else '≥'} {bound:g}"
            for name, bound in constraints.bounds.items()
        ),
        "positive class": str(model.pos_label_),
        "threshold": float(model.threshold_),
    }
    text = "No confidence was set, so that there is no guarantee for new samples."
    if result is not None:
        holds = f"holds on new samples with confidence {result.confidence:g}"
        text = (
            f"The constraint {holds}: over the draw of the calibration samples, the probability "
            f"that the threshold violates it is at most {1.0 - result.confidence:.3g}."
            if result.guaranteed
            else f"{result.reason} The best threshold without a guarantee is used."
        )
        shown["can be guaranteed"] = result.achievable
        shown["more calibration samples needed"] = result.more_samples or None
        shown["shift of unlabeled samples, p-value"] = result.shift_pvalue
    if subject.has_labels:
        shown |= _measured(subject, constraints.bounds)
    return Markup(paragraph(text) + facts(shown))


def confusion(subject: Subject) -> Markup | None:
    """Confusion matrix."""
    if not subject.has_labels or len(subject.classes) > options.most_matrix_classes:
        return None
    labels = _all_labels(subject)
    counts = confusion_matrix(subject.truth, subject.predicted, labels=labels)
    header = ["true class", *(f"predicted {label}" for label in labels)]
    return heat_table(header, [str(label) for label in labels], counts)


def threshold(subject: Subject) -> Markup | None:
    """Precision-recall curve with a slider."""
    return threshold_block(subject) if subject.has_labels else None


def classes(subject: Subject) -> Markup | None:
    """Precision, recall and F1 of each class."""
    if not subject.has_labels:
        return None
    labels = _all_labels(subject)
    values = precision_recall_fscore_support(
        subject.truth, subject.predicted, labels=labels, zero_division=0.0
    )
    order = np.argsort(-values[3], kind="stable")[: options.most_listed_classes]
    rows = [
        [str(labels[k]), *(f"{column[k]:.3f}" for column in values[:3]), int(values[3][k])]
        for k in order
    ]
    caption = "" if len(order) == len(labels) else f"The {len(order)} most frequent classes."
    return table(["class", "precision", "recall", "F1", "samples"], rows, caption)


def rounds(subject: Subject) -> Markup | None:
    """Progress of the fit."""
    history = getattr(subject.model, "history_", None)
    if not history:
        return None
    if "added" in history:  # without unlabeled samples, there is one round
        return _self_training_rounds(history) if len(history["added"]) > 1 else None
    if "objective" not in history or len(history["objective"]) < 2:
        return None
    x = np.asarray(history.get("iteration", np.arange(len(history["objective"]))))
    both = [history[name] for name in ("objective", "dual_objective") if name in history]
    finite = np.concatenate(both)[np.isfinite(np.concatenate(both))]
    limits = float(finite.min()), float(finite.max())
    chart = Chart((x.min(), x.max()), limits, "iteration", "objective", "Objective by iteration")
    for k, (values, name) in enumerate(zip(both, ("objective", "lower bound"), strict=False)):
        good = np.isfinite(values)
        chart.line(x[good], np.asarray(values)[good], name, color=k)
    return chart.html()


def students(subject: Subject) -> Markup | None:
    """Teacher against students."""
    model = subject.model
    if not subject.has_labels or getattr(model, "teacher_", None) is None:
        return None
    if not hasattr(model, "students_"):
        return None
    X, teacher = subject.transformed, model.teacher_
    # With fewer than three classes, the decision function of all has one dimension.
    scores = np.column_stack([s.decision_function(X) for s in model.students_.values()])
    # Students that need no teacher are saved without it.
    teachers = {"teacher": np.asarray(teacher.predict(X))} if hasattr(teacher, "predict") else {}
    rows = []
    for k, label in enumerate(subject.classes):
        truth, student = subject.truth == label, scores[:, k] >= 0
        if truth.all() or not truth.any():
            continue
        accepted = [*(predicted == label for predicted in teachers.values()), student]
        binary = [_precision_recall_f1(truth, some) for some in accepted]
        rows.append(
            [
                str(label),
                *(f"{value:.3f}" for values in zip(*binary, strict=True) for value in values),
                f"{roc_auc_score(truth, scores[:, k]):.3f}",
            ]
        )
    header = ["class"]
    for name in ("precision", "recall", "F1"):
        header += [f"{name}, {who}" for who in (*teachers, "student")]
    cost = _prediction_cost(model, teacher, X)
    merged = (
        "Every student is merged with its teacher into one dot product. " if model.merged_ else ""
    )
    return Markup(
        paragraph(f"{merged}A student decides about its class alone, without the other classes.")
        + table([*header, "AUC, student"], rows)
        + cost
    )


def slack(subject: Subject) -> Markup | None:
    """Slack that the privileged features model."""
    values = getattr(subject.model, "slack_", None)
    if values is None:
        return None
    columns = values if values.ndim == 2 else values[:, None]
    drawn = [np.sort(column[np.isfinite(column)])[::-1] for column in columns.T][:8]
    limits = min(0.0, *(v.min() for v in drawn)), max(1.0, *(v.max() for v in drawn))
    chart = Chart((0, 1), limits, "share of training samples", "slack", "Sorted slack")
    for k, column in enumerate(drawn):
        name = f"subproblem {k + 1}" if len(drawn) > 1 else ""
        chart.line(np.linspace(0, 1, len(column)), column, name, color=k)
    chart.rule("on the margin", y=0.0).rule("on the decision boundary", y=1.0)
    text = (
        "The privileged features model how far each training sample may be on the wrong side of "
        "its margin. Samples above the upper line are treated as misclassified. If the curve "
        "is flat, the privileged features were not informative; compare with a permutation of them."
    )
    return Markup(paragraph(text) + chart.html())


def projection(subject: Subject) -> Markup | None:
    """Samples on the most discriminative directions."""
    is_discriminant = hasattr(subject.model, "explained_variance_ratio_")
    if not subject.has_labels or not is_discriminant or not hasattr(subject.model, "transform"):
        return None
    random = np.random.default_rng(0)
    some = random.permutation(len(subject.truth))[: options.most_points]
    points = np.asarray(subject.model.transform(subject.transformed))[some]
    truth = subject.truth[some]
    y_label = "direction 2"
    if points.shape[1] == 1:  # spread over the height
        points, y_label = np.column_stack([points, random.uniform(size=len(some))]), "(random)"
    limits = list(zip(points.min(axis=0), points.max(axis=0), strict=True))
    chart = Chart(limits[0], limits[1], "direction 1", y_label, "Projected samples")
    for k, label in enumerate(subject.classes[:8]):
        x, y = points[truth == label, :2].T
        chart.points(x, y, str(label), color=k)
    hidden = len(subject.classes) - 8
    return Markup(chart.html() + (note(f"{hidden} classes are not shown.") if hidden > 0 else ""))


def proposals(subject: Subject) -> Markup | None:
    """Outputs of a structured model, several for each input."""
    if not subject.is_structured or not subject.has_samples:
        return None
    model, X = subject.model, subject.transformed
    if hasattr(model, "predict_all"):
        proposed, kind = model.predict_all(X), "members of the ensemble"
    elif hasattr(model.model_, "n_best"):
        best = model.predict_n_best(X, options.proposals)
        proposed, kind = [outputs for outputs, _ in best], "outputs with the highest scores"
    else:
        proposed, kind = [[output] for output in model.predict(X)], "output with the highest score"
    return Markup(_best_of(subject, proposed, kind) + _examples(subject, proposed))


def label_tree(subject: Subject) -> Markup | None:
    """Shape and size of a label tree, and the precision of its first labels."""
    model = subject.model
    if not hasattr(model, "trees_") or not hasattr(model, "weights_"):
        return None
    rows = [
        [
            k + 1,
            int((tree.label >= 0).sum()),
            len(tree.inner_nodes()),
            _depth(tree),
            len(weights.value),
            f"{sum(array.nbytes for array in weights.arrays()) / 1e6:.1f}",
        ]
        for k, (tree, weights) in enumerate(zip(model.trees_, model.weights_, strict=True))
    ]
    header = ["tree", "labels", "inner nodes", "depth", "weights", "megabytes"]
    shape = table(header, rows)
    if not subject.ranks_labels:
        return shape
    most = min(5, int((model.trees_[0].label >= 0).sum()))
    labels, _ = model.predict_topk(subject.transformed, most)
    numbers, truth = np.searchsorted(model.classes_, labels), _label_matrix(subject)
    ranks = [k for k in (1, 3, 5) if k <= most]
    measured = [
        [k, *(f"{metric(truth, numbers, k):.3f}" for metric in (precision_at_k, ndcg_at_k))]
        for k in ranks
    ]
    return Markup(shape + table(["k", "P@k", "nDCG@k"], measured))


_SECTIONS: dict[str, Callable[[Subject], Markup | None]] = {
    "Summary": summary,
    "Data": data,
    "Method": method,
    "Certificate": certificate,
    "Constraint and guarantee": guarantee,
    "Confusion matrix": confusion,
    "Decision threshold": threshold,
    "Classes": classes,
    "Rounds": rounds,
    "Teacher and students": students,
    "Learned slack": slack,
    "Projection": projection,
    "Structured predictions": proposals,
    "Label tree": label_tree,
}


def _all_labels(subject: Subject) -> list:
    """Return the classes and what students predict for none of them."""
    present = set(subject.truth.tolist()) | set(subject.predicted.tolist())
    return subject.classes + sorted(present - set(subject.classes), key=str)


def _length(y: Any) -> int:
    return y.shape[0] if hasattr(y, "shape") else len(y)


def _shortened(names: list, most: int = 20) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + rest


def _count(model: Any, name: str) -> int | None:
    value = getattr(model, name, None)
    return None if value is None else len(value)


def _changed_parameters(model: Any) -> str:
    """Return the parameters that differ from their defaults, as Python prints them."""
    parameters = signature(type(model)).parameters
    changed = []
    for name, value in model.get_params(deep=False).items():
        if name not in parameters or repr(value) != repr(parameters[name].default):
            changed.append(f"{name}={_shortened_text(repr(value))}")
    return ", ".join(changed)


def _shortened_text(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."


def _measured(subject: Subject, bounds: dict[str, float]) -> dict[str, str]:
    """Return the metrics of the evaluated samples beside their bounds."""
    positive = subject.truth == subject.model.pos_label_
    accepted = subject.predicted == subject.model.pos_label_
    values = {
        "precision": (positive & accepted).sum() / max(accepted.sum(), 1),
        "recall": (positive & accepted).sum() / max(positive.sum(), 1),
        "false_positive_rate": (~positive & accepted).sum() / max((~positive).sum(), 1),
    }
    shown = {}
    for name, bound in bounds.items():
        met = values[name] <= bound if name == "false_positive_rate" else values[name] >= bound
        words = "met" if met else "not met"
        shown[f"{name.replace('_', ' ')} on these samples"] = f"{values[name]:.3f} ({words})"
    return shown


def _self_training_rounds(history: dict[str, Any]) -> Markup:
    x = np.arange(1, len(history["added"]) + 1)
    chart = Chart((1, len(x)), (0, 1.02), "round", "at threshold 0", "Metrics by round")
    for k, name in enumerate(("precision", "recall", "f1")):
        chart.line(x, history[name], name.replace("f1", "F1"), color=k, dots=True)
    best = int(np.flatnonzero(history["best"])[-1]) + 1
    chart.rule(f"best round: {best}", x=float(best))
    added = [
        [int(k), int(new), int(positive), int(negative)]
        for k, new, positive, negative in zip(
            x, history["added"], history["positive"], history["negative"], strict=True
        )
    ]
    text = (
        "Each round trains on the labels and on pseudo-labels of unlabeled samples; metrics are "
        "those of the validation samples."
    )
    header = ["round", "pseudo-labels changed", "positive", "negative"]
    shown = added[: options.most_listed_classes]
    return Markup(paragraph(text) + chart.html() + table(header, shown))


def _precision_recall_f1(truth: np.ndarray, predicted: np.ndarray) -> tuple[float, float, float]:
    hits = (truth & predicted).sum()
    return (
        hits / max(predicted.sum(), 1),
        hits / max(truth.sum(), 1),
        2 * hits / max(truth.sum() + predicted.sum(), 1),
    )


def _prediction_cost(model: Any, teacher: Any, X: Any) -> Markup:
    """Return the times of the teacher, one student and all of them."""
    calls = {
        "teacher, all classes": getattr(teacher, "predict", None),
        "one student": next(iter(model.students_.values())).predict,
        "all students": model.decision_function,
    }
    seconds = {name: _seconds(call, X) for name, call in calls.items() if call is not None}
    rows = [[name, f"{1e6 * s / X.shape[0]:.3g}"] for name, s in seconds.items()]
    return table(
        ["prediction", "microseconds per sample"],
        rows,
        f"Best of several calls with {X.shape[0]:,} samples, measured for this report.",
    )


def _seconds(call: Callable[[Any], object], X: Any) -> float:
    least = np.inf
    for _ in range(options.timed_calls):
        start = perf_counter()
        call(X)
        least = min(least, perf_counter() - start)
    return least


def _best_of(subject: Subject, proposed: list[list], kind: str) -> Markup:
    """Return the scores of the best of the first k proposals."""
    loss, most = subject.model.model_.loss, min(map(len, proposed))
    losses = np.array(
        [
            [loss(y, output) for output in outputs[:most]]
            for y, outputs in zip(subject.y, proposed, strict=True)
        ]
    )
    total = sum(map(subject.model.model_.max_loss, subject.y))
    best = np.minimum.accumulate(losses, axis=1).sum(axis=0)
    scores = [[k + 1, f"{1 - value / total:.3f}"] for k, value in enumerate(best)]
    caption = f"Share of correct parts in the best of k proposals ({kind})."
    return table(["k", "correct"], scores, caption)


def _examples(subject: Subject, proposed: list[list]) -> Markup:
    """Return some outputs beside the truth, those with the most errors of the first proposal."""
    if any(np.ndim(y) != 1 or len(y) > options.longest_output for y in subject.y):
        return Markup("")
    wrong = [
        k
        for k, y in enumerate(subject.y)
        if not np.array_equal(y, proposed[k][0])
        and any(np.array_equal(y, p) for p in proposed[k][1:])
    ]
    shown = (wrong + [k for k in range(len(proposed)) if k not in set(wrong)])[: options.examples]
    rows = [
        [_spell(subject, subject.y[k]), *(_spell(subject, output) for output in proposed[k])]
        for k in shown
    ]
    header = ["truth", *(f"proposal {k + 1}" for k in range(max(map(len, proposed))))]
    return table(header, rows, "Examples, first those where a later proposal is right.")


def _spell(subject: Subject, output: Any) -> str:
    if subject.class_names is None:
        return " ".join(map(str, np.asarray(output).tolist()))
    names = np.asarray(subject.class_names)[np.asarray(output)]
    separator = "" if all(len(str(name)) == 1 for name in names) else " "
    return separator.join(map(str, names))


def _label_matrix(subject: Subject) -> sp.csr_matrix:
    """Return the true labels of the samples as an indicator matrix."""
    if hasattr(subject.y, "tocsr") or np.ndim(subject.y) == 2:
        return sp.csr_matrix(subject.y)
    rows = [np.atleast_1d(np.asarray(labels)) for labels in subject.y]
    columns = np.searchsorted(subject.model.classes_, np.concatenate(rows))
    starts = np.append(0, np.cumsum([len(row) for row in rows]))
    shape = len(rows), len(subject.classes)
    return sp.csr_matrix((np.ones(len(columns)), columns, starts), shape=shape)


def _depth(tree: Any) -> int:
    """Return the number of levels below the root."""
    depth = np.zeros(tree.n_nodes, dtype=int)
    parents = tree.parents()
    for node in range(1, tree.n_nodes):
        depth[node] = depth[parents[node]] + 1
    return int(depth.max())

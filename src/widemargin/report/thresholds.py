"""Precision-recall curves with a slider for the decision threshold."""

import json
from typing import Any

import numpy as np

from widemargin._base.options import report_options as options
from widemargin.report.charts import Chart
from widemargin.report.markup import Markup, escape, paragraph
from widemargin.report.subject import Subject
from widemargin.semisupervised.constraints import ScoredSamples, ThresholdCurve


def threshold_block(subject: Subject) -> Markup | None:
    """Return the curve of each class, with a slider.

    Parameters
    ----------
    subject : Subject
        With labels.

    Returns
    -------
    html : Markup or None
        None if the model has no scores, or no class has positive and negative samples.
    """
    curves = _curves(subject)
    if not curves:
        return None
    constraints = getattr(subject.model, "constraints_", None)
    bounds = constraints.bounds if constraints is not None else {}
    chart = Chart((0, 1), (0, 1.02), "recall", "precision", "Precision by recall")
    for name, bound in bounds.items():
        if name != "false_positive_rate":
            axis = {"x": bound} if name == "recall" else {"y": bound}
            chart.rule(f"{name} ≥ {bound:g}", **axis)
    first = curves[0]
    chart.line(first["recall"], first["precision"])
    at = first["start"]
    dot = (
        f'<circle class="here" r="6" cx="{float(chart.x(first["recall"][at])):.1f}" '
        f'cy="{float(chart.y(first["precision"][at])):.1f}"/>'
    )
    axes = {
        "left": chart.left,
        "right": chart.right,
        "top": float(chart.y(1)),
        "bottom": chart.bottom,
    }
    data = json.dumps({"curves": curves, "bounds": bounds, "axes": axes}).replace("<", "\\u003c")
    text = (
        "Samples with a score greater than the threshold are predicted positive. Move the slider "
        "to see what another threshold would do on these samples; choose a threshold on other "
        "samples than those it is evaluated on."
    )
    return Markup(
        f'{paragraph(text)}<div class="threshold">{_chooser(curves)}{chart.html(dot)}'
        f'<label class="slider">threshold <input type="range" min="0" step="1" value="{at}" '
        f'max="{len(first["thresholds"]) - 1}"></label>{_readout(first, bounds)}'
        f'<script type="application/json">{data}</script></div>'
    )


def _curves(subject: Subject) -> list[dict[str, Any]]:
    """Return the metrics of each class at a number of thresholds."""
    curves = []
    for label, scores, threshold in _scores(subject)[: options.most_curves]:
        positive = subject.truth == label
        if positive.all() or not positive.any() or not np.isfinite(scores).all():
            continue
        candidates = ThresholdCurve(ScoredSamples(scores, positive)).thresholds[:-1]
        some = np.linspace(0, len(candidates) - 1, options.curve_points).round().astype(int)
        thresholds = candidates[np.unique(some)]
        if threshold is None:  # as many samples are accepted as there are
            threshold = np.quantile(scores, 1 - positive.mean())
            threshold = thresholds[np.abs(thresholds - threshold).argmin()]
        thresholds = np.union1d(thresholds, [threshold])
        curve = ThresholdCurve(ScoredSamples(scores, positive), thresholds)
        curves.append(
            {
                "label": str(label),
                "start": int(np.searchsorted(thresholds, threshold)),
                "thresholds": [float(f"{value:.6g}") for value in thresholds],
                "precision": curve.precision.round(5).tolist(),
                "recall": curve.recall.round(5).tolist(),
                "tp": curve.true_positives.astype(int).tolist(),
                "fp": curve.false_positives.astype(int).tolist(),
                "positives": int(positive.sum()),
                "negatives": int((~positive).sum()),
            }
        )
    return curves


def _scores(subject: Subject) -> list[tuple[Any, np.ndarray, float | None]]:
    """Return label, scores and threshold of each class that has a curve."""
    model, classes = subject.model, subject.classes
    if hasattr(model, "score_samples") and hasattr(model, "pos_label_"):
        scores = model.score_samples(subject.transformed)
        return [(model.pos_label_, scores, float(model.threshold_))]
    name = next((n for n in ("decision_function", "predict_proba") if hasattr(model, n)), None)
    if name is None or len(classes) > options.most_matrix_classes:
        return []
    values = np.asarray(getattr(model, name)(subject.transformed))
    if name == "predict_proba" and values.shape[1] == 2:
        return [(classes[1], values[:, 1], 0.5)]
    if values.ndim == 1:
        return [(classes[1], values, 0.0)]
    if values.shape[1] != len(classes):  # pairs of classes
        return []
    start = 0.0 if hasattr(model, "students_") else None
    return [(label, values[:, k], start) for k, label in enumerate(classes)]


def _chooser(curves: list[dict[str, Any]]) -> str:
    if len(curves) < 2:
        return f"<p>Positive class: <b>{escape(curves[0]['label'])}</b></p>"
    choices = "".join(
        f'<option value="{k}">{escape(curve["label"])}</option>' for k, curve in enumerate(curves)
    )
    return f"<p><label>Positive class: <select>{choices}</select></label></p>"


def _readout(curve: dict[str, Any], bounds: dict[str, float]) -> str:
    """Return the numbers at the threshold, which the script changes."""
    at = curve["start"]
    tp, fp = curve["tp"][at], curve["fp"][at]
    positives, negatives = curve["positives"], curve["negatives"]
    numbers = {
        "threshold": f"{curve['thresholds'][at]:.4g}",
        "precision": f"{tp / (tp + fp) if tp + fp else 0:.3f}",
        "recall": f"{tp / positives:.3f}",
        "F1": f"{2 * tp / (positives + tp + fp):.3f}",
        "false positive rate": f"{fp / negatives:.3f}",
        "true positives": tp,
        "false positives": fp,
        "false negatives": positives - tp,
        "true negatives": negatives - fp,
    }
    cells = "".join(
        f'<div><b data-name="{name}">{escape(value)}</b><span>{name}</span></div>'
        for name, value in numbers.items()
    )
    rows = "".join(
        f'<li data-bound="{name}"><b></b> {name.replace("_", " ")} '
        f"{'≤' if name == 'false_positive_rate' else '≥'} {bound:g}</li>"
        for name, bound in bounds.items()
    )
    return f'<div class="tiles readout">{cells}</div><ul class="bounds">{rows}</ul>'

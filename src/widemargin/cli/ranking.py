"""Label trees: fits to files with several labels for each sample, predictions, evaluation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import vstack
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from widemargin.cli.main import CommandError
from widemargin.cli.tables import Samples
from widemargin.labeltree.metrics import ndcg_at_k, precision_at_k
from widemargin.labeltree.tree import LabelTreeClassifier

_RANKS = (1, 3, 5)  # of P@k, as in the literature


def fit_ranking(samples: Samples, seed: int | None) -> Pipeline:
    """Fit label trees to samples that have any number of labels.

    Parameters
    ----------
    samples : Samples
        With an indicator matrix of labels.
    seed : int or None

    Returns
    -------
    model : Pipeline
    """
    counts = np.asarray(samples.labels.sum(axis=0)).ravel()
    if np.sum(counts > 0) < 2:
        raise CommandError(
            f"The samples have {np.sum(counts > 0)} different labels.", "Two are needed."
        )
    model = LabelTreeClassifier(random_state=seed)
    return make_pipeline(FunctionTransformer(accept_sparse=True), model).fit(
        samples.X, samples.labels
    )


def check_rank(model: Any, top: int) -> int:
    """Return the number of labels to predict, no more than there are."""
    if not isinstance(model[-1], LabelTreeClassifier):
        raise CommandError(
            f"--top is for label trees, and the model is a {type(model[-1]).__name__}.",
            "Leave it out; --scores adds the decision values of all classes.",
        )
    return min(top, int(np.sum(model[-1].trees_[0].label >= 0)))


def ranked_rows(model: Any, chunks: Iterator[Samples], top: int, scores: bool) -> Iterator[list]:
    """Predict the best labels of samples.

    Parameters
    ----------
    model : Pipeline
    chunks : iterator of Samples
    top : int
        Number of labels.
    scores : bool
        Whether to add their scores.

    Yields
    ------
    rows : list of list
        Those of a chunk, after the header if it is the first one.
    """
    ranks = range(1, top + 1)
    header = [[*(f"label {k}" for k in ranks), *(f"score {k}" for k in ranks if scores)]]
    for samples in chunks:
        labels, values = model[-1].predict_topk(model[:-1].transform(samples.X), top)
        pairs = zip(labels.tolist(), values.tolist(), strict=True)
        yield [*header, *([*best, *(reached if scores else [])] for best, reached in pairs)]
        header = []


def ranking_evaluation(model: Any, chunks: Iterator[Samples], data: Path) -> dict[str, Any]:
    """Compare the best labels with those of the samples.

    Parameters
    ----------
    model : Pipeline
    chunks : iterator of Samples
    data : Path

    Returns
    -------
    result : dict
        Precision and nDCG of the best labels.
    """
    top = check_rank(model, max(_RANKS))
    rankings, expected = [], []
    for samples in chunks:
        n_labels = samples.labels.shape[1]
        if n_labels != len(model[-1].classes_):
            raise CommandError(
                f"{data} has {n_labels} labels, and the model {len(model[-1].classes_)}.",
                "Was the model trained on other data?",
            )
        rankings.append(model[-1].predict_topk(model[:-1].transform(samples.X), top)[0])
        expected.append(samples.labels)
    ranked, truth = np.concatenate(rankings), vstack(expected, format="csr")
    measures = {"precision": precision_at_k, "ndcg": ndcg_at_k}
    return {
        "data": str(data),
        "samples": len(ranked),
        "labels": truth.shape[1],
        "ranking": [
            {"k": k, **{name: float(f(truth, ranked, k)) for name, f in measures.items()}}
            for k in _RANKS
            if k <= top
        ],
    }

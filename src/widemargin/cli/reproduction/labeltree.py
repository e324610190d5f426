"""Label trees: P@k, and growth of the cost with the number of labels."""

from collections.abc import Iterator
from time import process_time

import numpy as np

from widemargin import LabelTreeClassifier, precision_at_k
from widemargin._base import jit
from widemargin.cli.reproduction.comparison import Claim, Comparison, Figure
from widemargin.datasets import make_extreme_labels

# P@1, P@3 and P@5 in percent, as published.
PUBLISHED = {
    "EURLex-4K, Parabel": (82.2, 68.8, 57.6),
    "EURLex-4K, omikuji (balanced)": (82.1, 68.8, 57.7),
    "Amazon-670K, Parabel": (44.9, 39.8, 36.0),
}


def compare(quick: bool) -> Iterator[Comparison]:
    """Compare precision at k, and how training time grows.

    Parameters
    ----------
    quick : bool
        Whether to stop at 4,000 labels instead of 32,000.

    Yields
    ------
    comparison : Comparison
    """
    sizes = [500, 1000, 2000, 4000] if quick else [1000, 2000, 4000, 8000, 16_000, 32_000]
    seconds, best = [], {}
    with jit.eager():
        _fit(200)  # compiles, so that the times of the others do not contain it
    for n_labels in sizes:
        spent, best[n_labels] = _fit(n_labels)
        seconds.append(spent)
    figures = [
        Figure(row, f"P@{k}", value, None)
        for row, values in PUBLISHED.items()
        for k, value in zip((1, 3, 5), values, strict=True)
    ]
    figures += [
        Figure(f"generated, {n_labels:,} labels", f"P@{k}", None, value)
        for n_labels, values in best.items()
        for k, value in zip((1, 3, 5), values, strict=True)
    ]
    yield Comparison(
        "Precision at k, in percent",
        "EURLex-4K and Amazon-670K have no address from which they can be downloaded without a "
        "browser. Generated data with a planted tree of topics and labels that follow a power law "
        "stand beside them: three samples for each label, one tree, default parameters.",
        "Generated data cannot be compared with the published rows. On data sets that are "
        "available, benchmarks/labeltree.py compares with omikuji, napkinXC and PECOS on the same "
        "computer; load EURLex-4K with load_extreme_format to repeat the published rows.",
        figures,
        digits=1,
    )
    slope = float(np.polyfit(np.log(sizes), np.log(np.divide(seconds, sizes)), 1)[0])
    yield Comparison(
        "Statements",
        "CPU seconds of training on the generated data, whose number of samples grows with that of "
        "labels.",
        "A cost of samples times the logarithm of the labels has an exponent near 0.1 in this "
        "range; one-vs-rest has 1. The smallest sizes are dominated by overheads.",
        claims=[
            Claim(
                "The cost of a sample grows like the logarithm of the number of labels",
                slope < 0.3,
                f"exponent {slope:.2f}; "
                + ", ".join(f"{n:,} {s:.1f} s" for n, s in zip(sizes, seconds, strict=True)),
            )
        ],
    )


def _fit(n_labels: int) -> tuple[float, list[float]]:
    """Return CPU seconds of training, and P@1, P@3 and P@5 of a tree."""
    n_train = 3 * n_labels
    n_test = min(1000, n_labels)
    data = make_extreme_labels(
        n_train + n_test, n_labels, n_features=max(2000, 2 * n_labels), random_state=0
    )
    model = LabelTreeClassifier(random_state=0)
    start = process_time()
    model.fit(data.X[:n_train], data.Y[:n_train])
    spent = process_time() - start
    ranked, _ = model.predict_topk(data.X[n_train:], 5)
    return spent, [100.0 * precision_at_k(data.Y[n_train:], ranked, k) for k in (1, 3, 5)]

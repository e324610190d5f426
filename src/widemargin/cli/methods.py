"""Choose an estimator for the data and the options, and fit it with its preprocessing."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import widemargin
from widemargin._base.options import cli_options as options
from widemargin.cli.cluster import fit_partitions
from widemargin.cli.main import CommandError
from widemargin.cli.output import fit_progress
from widemargin.cli.ranking import fit_ranking
from widemargin.cli.tables import (
    CATEGORY,
    EXTREME,
    NUMBER,
    SVMLIGHT,
    TABLE,
    TEXT,
    Samples,
    class_of,
    column_kinds,
    plain_number,
    stack,
    with_kinds,
)

METHODS = ("auto", "svc", "linear", "lda", "preference", "privileged", "labeltree")


_SEARCHES = {"svc": "SVCCV", "linear": "LinearSVCCV", "privileged": "PrivilegedSVCCV"}
_SINGLE = {
    "svc": "SVC",
    "linear": "LinearSVC",
    "privileged": "PrivilegedSVC",
    "preference": "PreferenceSVC",
    "lda": "LinearDiscriminantAnalysis",
    "labeltree": "LabelTreeClassifier",
}


@dataclass(frozen=True)
class FitOptions:
    """Options that the user has passed.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    privileged, texts, categories : list of str
        Names of columns.
    constraints : dict
        Of precision, recall and confidence those that are set.
    positive : str or None
        Label of the positive class.
    tune : bool
        Whether to select C by cross-validation.
    seed, jobs : int or None
    cluster : str or None
        Address of a Dask scheduler, or "local".
    """

    method: str = "auto"
    privileged: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    constraints: dict[str, float] = field(default_factory=dict)
    positive: str | None = None
    tune: bool = False
    seed: int | None = None
    jobs: int | None = None
    cluster: str | None = None


@dataclass(frozen=True)
class Fit:
    """A fitted pipeline, with what is reported about it.

    Attributes
    ----------
    model : Pipeline
    kinds : dict of str or None
        Kinds of the columns that `predict` needs.
    reason : str
        Why this method.
    n_labeled, n_unlabeled : int
    file_type : str
        Type of the files that `predict` reads.
    """

    model: Pipeline
    kinds: dict[str, str] | None
    reason: str
    n_labeled: int
    n_unlabeled: int
    file_type: str = TABLE


def fit(
    samples: Samples,
    unlabeled: Any,
    chosen: FitOptions,
    show: Callable[..., None] = lambda text=None, **done: None,
) -> Fit:
    """Choose and fit a model.

    Parameters
    ----------
    samples : Samples
        Training samples, some of which may be unlabeled.
    unlabeled : DataFrame, CSR matrix or None
        More samples, all unlabeled.
    chosen : FitOptions
    show : callable
        What `widemargin.cli.output.progress` yields.

    Returns
    -------
    fit : Fit
    """
    if issparse(samples.labels):
        return _fit_label_tree(samples, unlabeled, chosen)
    labeled = np.array([label != "" for label in samples.labels])
    y = as_integers(samples.labels[labeled])
    _check_classes(y)
    table, privileged, kinds, columns = _features(samples.X, chosen)
    X = columns.fit_transform(table[labeled])
    rest = [table[~labeled]] if not labeled.all() else []
    rest += [] if unlabeled is None else [with_kinds(unlabeled, kinds) if kinds else unlabeled]
    n_unlabeled = sum(more.shape[0] for more in rest)
    method, reason = choose(chosen, X, n_unlabeled, kinds, len(np.unique(y)))
    model, arguments = _estimator(method, chosen, y), {}
    if method == "privileged":
        arguments["privileged"] = privileged[labeled]
    elif method == "preference":
        _check_two_classes(y)
        if not rest and -1 in y.tolist():
            raise CommandError("The class -1 would mean unlabeled samples.", "Rename it.")
        blocks = [columns.transform(more) for more in rest]
        arguments["X_unlabeled"] = stack(blocks) if blocks else None
    show(f"Fitting {type(model).__name__} to {len(y):,} samples ...")
    if chosen.cluster is not None and not chosen.tune:
        model = fit_partitions(model, X, y, chosen.seed)
    else:
        with fit_progress(model, show):
            model.fit(X, y, **arguments)
    pipeline = Pipeline([("columns", columns), ("model", model)])
    n_used = n_unlabeled if method == "preference" else 0
    return Fit(pipeline, kinds, reason, len(y), n_used, SVMLIGHT if kinds is None else TABLE)


def _fit_label_tree(samples: Samples, unlabeled: Any, chosen: FitOptions) -> Fit:
    """Fit label trees to samples with any number of labels, without any preprocessing."""
    if chosen.method not in ("auto", "labeltree"):
        raise CommandError(
            f"--method {chosen.method} does not use several labels of a sample.",
            "Use --method labeltree.",
        )
    _check_method(
        replace(chosen, method="labeltree"), 0 if unlabeled is None else unlabeled.shape[0]
    )
    if chosen.texts or chosen.categories:
        raise CommandError("--text and --category are for tables.")
    _check_tune_and_positive("labeltree", chosen)
    _check_cluster("labeltree", chosen)
    model = fit_ranking(samples, chosen.seed)
    reason = "samples have any number of labels"
    return Fit(model, None, reason, len(samples), 0, EXTREME)


def choose(
    chosen: FitOptions,
    X: Any,
    n_unlabeled: int,
    kinds: dict[str, str] | None,
    n_classes: int,
) -> tuple[str, str]:
    """Return the method and the reason for it.

    Parameters
    ----------
    chosen : FitOptions
    X : ndarray or CSR matrix
        Transformed training samples.
    n_unlabeled : int
    kinds : dict of str or None
    n_classes : int

    Returns
    -------
    method, reason : str
    """
    if chosen.method != "auto":
        _check_method(chosen, n_unlabeled)
        return chosen.method, "chosen by --method"
    if chosen.privileged and (chosen.constraints or n_unlabeled):
        raise CommandError("--privileged cannot be combined with constraints or unlabeled samples.")
    if chosen.privileged:
        return "privileged", "there are privileged features, which only training samples have"
    if chosen.constraints:
        return "preference", "precision, recall or a confidence is required"
    if n_unlabeled:
        return "preference", f"there are unlabeled samples ({n_unlabeled})"
    if n_classes > options.most_flat_classes:
        return "labeltree", f"there are {n_classes} classes, which a tree of labels makes fast"
    if TEXT in (kinds or {}).values():
        return "linear", "there is text, which a linear classifier separates well"
    if X.shape[0] > options.most_kernel_samples:
        return "linear", f"kernels take long for more than {options.most_kernel_samples} samples"
    if X.shape[1] > X.shape[0]:
        return "linear", "there are more features than samples"
    return "svc", f"{X.shape[0]} samples are few enough for an RBF kernel"


def as_integers(labels: np.ndarray) -> np.ndarray:
    """Return labels as integers if all of them are, 1.0 too, and as strings otherwise."""
    if labels.dtype != object:
        return labels
    plain = [plain_number(label) for label in labels]
    try:
        numbers = np.array([int(label) for label in plain])
    except (ValueError, OverflowError):
        return labels.astype(str)
    same = all(str(n) == label for n, label in zip(numbers, plain, strict=True))
    return numbers if same else labels.astype(str)


def _check_classes(y: np.ndarray) -> None:
    classes = np.unique(y)
    if len(classes) == 0:
        raise CommandError("The target has no labels.", "Labels of two classes are needed.")
    if len(classes) == 1:
        raise CommandError(
            f"The target has one class, {classes[0]!s}.", "Labels of two classes are needed."
        )
    if len(classes) > max(options.most_classes, len(y) // 2):
        raise CommandError(
            f"The target has {len(classes)} values for {len(y)} samples, which are no classes.",
            "Choose another --target.",
        )


def _check_method(chosen: FitOptions, n_unlabeled: int) -> None:
    """Raise a CommandError if a method does not use an option."""
    if chosen.privileged and chosen.method != "privileged":
        raise CommandError(f"--method {chosen.method} does not use privileged features.")
    if chosen.constraints and chosen.method != "preference":
        raise CommandError(f"--method {chosen.method} does not use precision, recall, confidence.")
    if n_unlabeled and chosen.method != "preference":
        raise CommandError(
            f"--method {chosen.method} does not use the {n_unlabeled} unlabeled samples.",
            "Remove the samples without a label and --unlabeled, or use --method preference.",
        )
    if chosen.method == "privileged" and not chosen.privileged:
        raise CommandError("--method privileged needs --privileged NAME.")


def _features(X: Any, chosen: FitOptions) -> tuple[Any, Any, dict[str, str] | None, Any]:
    """Return features, transformed privileged features, kinds of columns and a transformer."""
    if not hasattr(X, "columns"):
        if chosen.privileged or chosen.texts or chosen.categories:
            raise CommandError("--privileged, --text and --category are for tables.")
        return X, None, None, FunctionTransformer(accept_sparse=True)
    kinds = column_kinds(X, chosen.texts, chosen.categories)
    column_kinds(X, chosen.privileged, [])  # they exist
    table = with_kinds(X, kinds)
    hidden = {name: kinds.pop(name) for name in chosen.privileged}
    if not kinds:
        raise CommandError("The table has no columns beside the target and privileged features.")
    privileged = _transformer(hidden).fit_transform(table[[*hidden]]) if hidden else None
    return table[[*kinds]], privileged, kinds, _transformer(kinds)


def _transformer(kinds: dict[str, str]) -> ColumnTransformer:
    """Return a transformer of numbers, categories and text to features of similar scales."""
    named = {kind: [n for n, k in kinds.items() if k == kind] for kind in (NUMBER, CATEGORY)}
    # A column without any number would have no median.
    numbers = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    steps: list[tuple[str, Any, Any]] = [
        ("numbers", numbers, named[NUMBER]),
        ("categories", OneHotEncoder(handle_unknown="ignore"), named[CATEGORY]),
    ]
    texts = [n for n, kind in kinds.items() if kind == TEXT]
    steps += [(f"text{k}", TfidfVectorizer(), name) for k, name in enumerate(texts)]
    return ColumnTransformer([step for step in steps if step[2]])


def _estimator(method: str, chosen: FitOptions, y: np.ndarray) -> Any:
    """Return an unfitted estimator with the parameters that it has."""
    _check_tune_and_positive(method, chosen)
    _check_cluster(method, chosen)
    if chosen.tune:
        _check_folds(y)
    estimator = getattr(widemargin, (_SEARCHES if chosen.tune else _SINGLE)[method])()
    wanted = {**chosen.constraints, "random_state": chosen.seed, "n_jobs": chosen.jobs}
    if chosen.positive is not None:
        wanted["pos_label"] = label_like(chosen.positive, np.unique(y))
    known = estimator.get_params()
    return estimator.set_params(**{name: v for name, v in wanted.items() if name in known})


def _check_tune_and_positive(method: str, chosen: FitOptions) -> None:
    if chosen.tune and method not in _SEARCHES:
        raise CommandError(f"--tune is not available for {_SINGLE[method]}.", "Leave it out.")
    if chosen.positive is not None and method != "preference":
        raise CommandError("--positive is for precision and recall.", "Set one of them.")


def _check_cluster(method: str, chosen: FitOptions) -> None:
    if chosen.cluster is not None and not chosen.tune and method not in ("linear", "lda"):
        hint = "Add --tune, or leave it out" if method in _SEARCHES else "Leave it out"
        raise CommandError(f"--cluster is not available for {_SINGLE[method]}.", f"{hint}.")


def _check_two_classes(y: np.ndarray) -> None:
    n_classes = len(np.unique(y))
    if n_classes > 2:
        raise CommandError(
            f"Constraints and unlabeled samples need two classes, and the target has {n_classes}.",
            "Replace the target by a column with the class that matters and the rest.",
        )


def _check_folds(y: np.ndarray) -> None:
    """Raise a CommandError if a class has fewer samples than a search has folds."""
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < options.folds:
        raise CommandError(
            f"--tune needs {options.folds} samples of each class, and {classes[counts.argmin()]!s} "
            f"has {counts.min()}.",
            "Leave it out, or add samples.",
        )


def label_like(label: str, classes: np.ndarray) -> Any:
    """Return the class that is written as ``label``."""
    known = class_of(label, classes)
    if known is None:
        raise CommandError(f"There is no class {label!r}.", f"Classes: {classes.tolist()}.")
    return known

"""What a report is about: a model, samples, and the predictions, computed once."""

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from widemargin.gated.student import GatedSVC
from widemargin.gated.students import GatedStudents
from widemargin.labeltree.tree import LabelTreeClassifier
from widemargin.structured.learners.base import StructuredEstimator


class Subject:
    """A fitted model with samples to evaluate it on.

    Parameters
    ----------
    estimator : fitted estimator
    X, y : object or None
        Samples and their labels, or neither.
    notes : dict or None
    class_names : array-like or None

    Attributes
    ----------
    model : estimator
        The classifier at the end of pipelines and searches.
    steps : list of estimators
        What comes before it.
    selected : dict
        Parameters that searches have selected.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, notes: Any, class_names: Any) -> None:
        if not hasattr(estimator, "predict"):
            raise TypeError(f"estimator must be a fitted model with predict, got {estimator!r}.")
        check_is_fitted(estimator)
        if (X is None) != (y is None):
            raise ValueError("X and y must be passed together, or neither.")
        self.estimator, self.X, self.y = estimator, X, _one_column(y)
        self.notes, self.class_names = dict(notes or {}), class_names
        self.steps, self.selected, self.model = _unwrap(estimator)
        if y is not None:
            self._check_samples()

    @property
    def name(self) -> str:
        return type(self.model).__name__

    @property
    def has_samples(self) -> bool:
        return self.y is not None

    @property
    def is_structured(self) -> bool:
        return isinstance(self.model, StructuredEstimator)

    @cached_property
    def has_labels(self) -> bool:
        """Whether y is one class label for each sample."""
        return (
            self.has_samples
            and not self.is_structured
            and hasattr(self.model, "classes_")
            and not self._is_multilabel
        )

    @cached_property
    def ranks_labels(self) -> bool:
        """Whether the model ranks labels, and y has some."""
        return self.has_samples and isinstance(self.model, LabelTreeClassifier)

    @cached_property
    def classes(self) -> list:
        return self.model.classes_.tolist()

    @cached_property
    def truth(self) -> np.ndarray:
        truth = np.asarray(self.y)
        if isinstance(self.model, GatedSVC) and truth.dtype != bool:
            return truth == self.model.target
        return truth

    @cached_property
    def predicted(self) -> np.ndarray:
        return np.asarray(self.estimator.predict(self.X))

    @cached_property
    def transformed(self) -> Any:
        """The samples as the model at the end receives them."""
        X = self.X
        for step in self.steps:
            X = step.transform(X) if hasattr(step, "transform") else X  # samplers only train
        return X

    @property
    def _is_multilabel(self) -> bool:
        if hasattr(self.y, "tocsr") or np.ndim(next(iter(self.y))) > 0:
            return True
        return type_of_target(self.y).startswith("multilabel")

    def _check_samples(self) -> None:
        indexable(self.X, self.y)
        if not (self.y.shape[0] if hasattr(self.y, "shape") else len(self.y)):
            raise ValueError("X and y have no samples. Pass at least one, or neither X nor y.")
        if not self.has_labels or isinstance(self.model, GatedStudents):
            return  # students of some classes reject samples of others
        unknown = sorted(set(self.truth.tolist()) - set(self.classes), key=str)
        if unknown:
            raise ValueError(
                f"y has the label {unknown[0]!r}, and the classes of the model are "
                f"{self.classes[:20]}. Pass labels of these classes."
            )


def _one_column(y: Any) -> Any:
    """Return labels that are a table or an array of one column as an array of one dimension."""
    dense = hasattr(y, "shape") and not hasattr(y, "tocsr")
    return np.asarray(y).ravel() if dense and len(y.shape) == 2 and y.shape[1] == 1 else y


def _unwrap(estimator: Any) -> tuple[list, dict[str, Any], Any]:
    """Return steps, selected parameters, and the model at the end of pipelines and searches."""
    steps: list = []
    selected: dict[str, Any] = {}
    while True:
        if isinstance(estimator, Pipeline):
            steps += [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):
            selected |= getattr(estimator, "best_params_", {})
            estimator = estimator.best_estimator_
        else:
            return steps, selected, estimator

"""Teachers that are not estimators: functions, objects with ``predict_proba``, ONNX sessions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin._base.numeric import log_odds
from widemargin._base.options import gated_options as options
from widemargin._base.sklearn_compat import naming, num_samples, safe_indexing


@dataclass(frozen=True)
class ScoreFunction:
    """A function of samples as a fitted teacher.

    Attributes
    ----------
    function : callable
        Returns a column of scores or of probabilities for each class.
    classes_ : ndarray of shape (n_classes,)
        Labels of the columns.
    probabilities : bool
        Whether it returns probabilities. It is not decided for each batch: unnormalized scores of a
        single sample may sum to one by accident.
    """

    function: Callable[[Any], Any]
    classes_: np.ndarray
    probabilities: bool

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of all classes, log-odds if the function returns probabilities."""
        scores = self.columns(X)
        return log_odds(scores) if self.probabilities else scores

    def columns(self, X: Any) -> np.ndarray:
        """Return what the function returns, a column for each class."""
        with naming("The scores of teacher"):
            scores = np.asarray(self.function(X), dtype=np.float64)
        if scores.ndim == 2 and len(scores) != num_samples(X):
            raise ValueError(
                f"teacher must return a row for each of {num_samples(X)} samples, got "
                f"{len(scores)} rows."
            )
        if scores.ndim != 2 or scores.shape[1] != len(self.classes_):
            raise ValueError(
                f"teacher must return a column for each of the {len(self.classes_)} classes "
                f"{self.classes_.tolist()}, got shape {scores.shape}. Pass the labels of its "
                "columns as classes."
            )
        return scores


@dataclass(frozen=True)
class SessionFunction:
    """Scores of all classes by an ONNX Runtime session, which takes float32 or float64 arrays.

    Classifiers have two outputs, labels and scores; the last output is used. It is an array or, as
    converters write it by default, a dict of scores by class for each sample.
    """

    session: Any
    classes: np.ndarray

    def __call__(self, X: Any) -> np.ndarray:
        X = X.toarray() if hasattr(X, "toarray") else X
        taken = self.session.get_inputs()[0]
        double = getattr(taken, "type", None) == "tensor(double)"
        values = np.ascontiguousarray(X, dtype=np.float64 if double else np.float32)
        output = self.session.run(None, {taken.name: values})[-1]
        if len(output) and isinstance(output[0], dict):
            output = [[scores[label] for label in self.classes.tolist()] for scores in output]
        return np.asarray(output, dtype=np.float64)


def as_teacher(teacher: Any, classes: Any, X: Any) -> Any:
    """Return a teacher that is not an estimator as one, with the given classes; others as are.

    Whether a function returns scores or probabilities is decided by some of the samples.
    """
    if teacher is None or hasattr(teacher, "fit") or hasattr(teacher, "classes_"):
        return teacher
    classes = np.asarray(classes)
    if hasattr(teacher, "predict_proba"):
        return ScoreFunction(teacher.predict_proba, classes, True)
    if hasattr(teacher, "get_inputs"):
        teacher = SessionFunction(teacher, classes)
    some = np.arange(min(num_samples(X), options.probed_samples))
    scores = ScoreFunction(teacher, classes, False).columns(safe_indexing(X, some))
    return ScoreFunction(teacher, classes, _are_probabilities(scores))


def _are_probabilities(scores: np.ndarray) -> bool:
    """Return whether all rows are probabilities; float32 ones sum to one up to rounding."""
    return bool((scores >= 0.0).all() and np.allclose(scores.sum(axis=1), 1.0, atol=1e-3))

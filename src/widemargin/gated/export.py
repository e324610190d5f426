"""Export of linear students: arrays, Python source without dependencies, JSON."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

_SOURCE = '''\
"""Binary detector for class TARGET, exported from a gated student."""

TARGET = {target!r}
FEATURE_NAMES = {feature_names!r}
COEF = {coef!r}
INTERCEPT = {intercept!r}


def score(x{argument}):
    """Return the decision value of a sample, a sequence of {n_features} numbers{note}."""
    if len(x) != len(COEF):
        raise ValueError(f"x must contain {{len(COEF)}} numbers, got {{len(x)}}.")
    return {gate}INTERCEPT + sum(c * v for c, v in zip(COEF, x))


def is_class(x{argument}):
    """Return whether a sample belongs to the class."""
    return score(x{argument}) >= 0.0
'''


@dataclass(frozen=True)
class StudentExport:
    """Linear student as plain numbers, which any language can evaluate.

    A sample x is predicted to belong to the class if ``<coef, x> + intercept`` is non-negative. If
    ``needs_teacher``, the teacher's score of the class is added to the sum. Created by
    `GatedSVC.export`.

    Parameters
    ----------
    target : label
        Target class.
    coef : ndarray of shape (n_features,)
        Weights of the features.
    intercept : float
        Intercept.
    needs_teacher : bool
        Whether the teacher's score of the class is part of the sum.
    feature_names : list of str or None
        Names of the features, if they are known.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import GatedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> export = GatedSVC(target=0).fit(X, y).export()
    >>> is_class = export.to_function()
    >>> is_class(X[0].tolist()), is_class(X[70].tolist())
    (True, False)
    """

    target: Any
    coef: np.ndarray
    intercept: float
    needs_teacher: bool
    feature_names: list[str] | None

    def decision_function(self, X: Any, teacher_scores: Any = 0.0) -> Any:
        """Compute the decision function without validation.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features) or (n_features,)
            Samples, or a single one.
        teacher_scores : ndarray of shape (n_samples,) or float, default=0.0
            The teacher's scores of the class, if ``needs_teacher``.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or float
            Non-negative for samples that are predicted to belong to the class.
        """
        return X @ self.coef + (self.intercept + teacher_scores)

    def predict(self, X: Any, teacher_scores: Any = 0.0) -> Any:
        """Predict whether samples belong to the class, without validation.

        This is the fastest way to predict single samples, for which `GatedSVC.predict` spends most
        of its time on the validation of X.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features) or (n_features,)
            Samples, or a single one.
        teacher_scores : ndarray of shape (n_samples,) or float, default=0.0
            The teacher's scores of the class, if ``needs_teacher``.

        Returns
        -------
        y : ndarray of bool of shape (n_samples,) or bool
            True for the class.
        """
        return self.decision_function(X, teacher_scores) >= 0.0

    def to_python(self) -> str:
        """Return Python source code that needs nothing but Python.

        Returns
        -------
        source : str
            Source of a module with the functions ``score(x)`` and ``is_class(x)``. If the teacher
            is needed, its score of the class is their second argument.
        """
        teacher = self.needs_teacher
        return _SOURCE.format(
            target=self.target,
            feature_names=self.feature_names,
            coef=tuple(self.coef.tolist()),
            intercept=self.intercept,
            n_features=len(self.coef),
            argument=", teacher_score" if teacher else "",
            note=", given the teacher's score of the class" if teacher else "",
            gate="teacher_score + " if teacher else "",
        )

    def to_function(self) -> Callable[..., bool]:
        """Return the function ``is_class`` of the source code.

        Returns
        -------
        is_class : callable
            Function of a sample as a sequence of numbers and, if the teacher is needed, its score
            of the class.
        """
        module: dict = {}
        exec(compile(self.to_python(), "<student>", "exec"), module)
        return module["is_class"]

    def to_json(self) -> str:
        """Return the numbers as JSON, with all digits.

        Returns
        -------
        text : str
            JSON object with the attributes of this class.
        """
        return json.dumps({**asdict(self), "coef": self.coef.tolist()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the export that `to_json` has written.

        Parameters
        ----------
        text : str
            Return value of `to_json`.

        Returns
        -------
        export : StudentExport
            Export with the same numbers.
        """
        attributes = json.loads(text)
        return cls(**{**attributes, "coef": np.array(attributes["coef"], dtype=np.float64)})

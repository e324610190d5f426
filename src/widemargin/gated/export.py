"""A linear student as plain numbers: arrays, Python source without dependencies, JSON."""

import json
from dataclasses import dataclass

import numpy as np

_SOURCE = '''\
"""Is a row of class TARGET? A gated student as plain numbers."""

TARGET = {target!r}
FEATURE_NAMES = {feature_names!r}
COEF = {coef!r}
INTERCEPT = {intercept!r}


def score(row{argument}):
    """At least 0 for yes; row is a sequence of {n_features} numbers{what}."""
    if len(row) != len(COEF):
        raise ValueError(f"row must have {{len(COEF)}} numbers, got {{len(row)}}")
    return {gate}INTERCEPT + sum(c * x for c, x in zip(COEF, row))


def is_class(row{argument}):
    """Whether the row is of the class."""
    return score(row{passed}) >= 0.0
'''


@dataclass(frozen=True)
class StudentExport:
    """A linear student as plain numbers, which any language can evaluate.

    A row x is of the class where ``<coef, x> + intercept`` is at least 0; the teacher's score of
    the class is to be added first where ``needs_teacher``. Get one from `GatedSVC.export`.

    Parameters
    ----------
    target : label
        The class.
    coef : ndarray of shape (n_features,)
        Weights of the features.
    intercept : float
        Constant.
    needs_teacher : bool
        Whether the teacher's score of the class is part of the sum.
    feature_names : list of str or None
        Names of the features, where they are known.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import GatedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> export = GatedSVC(target=0).fit(X, y).export()
    >>> is_class = export.function()
    >>> is_class(X[0].tolist()), is_class(X[70].tolist())
    (True, False)
    """

    target: object
    coef: np.ndarray
    intercept: float
    needs_teacher: bool
    feature_names: list[str] | None

    def to_python(self):
        """Python source that needs nothing but Python.

        Returns
        -------
        source : str
            A module with the functions ``score(row)`` and ``is_class(row)``; both take the
            teacher's score of the class as second argument where it is needed.
        """
        return _SOURCE.format(
            target=self.target,
            feature_names=self.feature_names,
            coef=tuple(self.coef.tolist()),
            intercept=self.intercept,
            n_features=len(self.coef),
            argument=", teacher_score" if self.needs_teacher else "",
            what=", to be seen with the teacher's score of the class" if self.needs_teacher else "",
            gate="teacher_score + " if self.needs_teacher else "",
            passed=", teacher_score" if self.needs_teacher else "",
        )

    def function(self):
        """``is_class`` of the source, ready to be called.

        Returns
        -------
        is_class : callable
            Takes a row as a sequence of numbers and, where it is needed, the teacher's score.
        """
        module: dict = {}
        exec(compile(self.to_python(), "<student>", "exec"), module)
        return module["is_class"]

    def to_json(self):
        """The numbers as JSON, to the last digit.

        Returns
        -------
        text : str
            An object with the attributes of this class by name.
        """
        return json.dumps(
            {
                "target": self.target,
                "coef": self.coef.tolist(),
                "intercept": self.intercept,
                "needs_teacher": self.needs_teacher,
                "feature_names": self.feature_names,
            }
        )

    @classmethod
    def from_json(cls, text):
        """The export that `to_json` wrote.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        export : StudentExport
            Equal to the one written.
        """
        parts = json.loads(text)
        return cls(**{**parts, "coef": np.array(parts["coef"], dtype=np.float64)})

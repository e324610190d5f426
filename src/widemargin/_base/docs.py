"""Parameter descriptions that several estimators share, written once.

In a docstring, a line ``<<name>>`` stands for the description registered under that name. The
decorator `shared_docs` inserts it, in the indentation of the line, into the docstring of a class
or function and of the methods that the class itself defines.
"""

import inspect
import re
from textwrap import dedent, indent
from typing import Any, TypeVar

__all__ = ["DESCRIPTIONS", "shared_docs"]

T = TypeVar("T")

DESCRIPTIONS = {
    name: dedent(text).strip("\n")
    for name, text in {
        "degree": """
            degree : int, default=3
                Degree of the 'poly' kernel. Ignored by other kernels.
            """,
        "coef0": """
            coef0 : float, default=0.0
                Independent term of the 'poly' and 'sigmoid' kernels.
            """,
        "n_features_in_": """
            n_features_in_ : int
                Number of features seen during fit.
            """,
        "feature_names_in_": """
            feature_names_in_ : ndarray of shape (`n_features_in_`,)
                Names of the features seen during fit. Defined only if all of them are strings.
            """,
        "X": """
            X : {array-like, sparse matrix} of shape (n_samples, n_features)
                Samples.
            """,
        "X_train": """
            X : {array-like, sparse matrix} of shape (n_samples, n_features)
                Training samples.
            """,
        "y": """
            y : array-like of shape (n_samples,)
                Target labels.
            """,
        "sample_weight": """
            sample_weight : array-like of shape (n_samples,), default=None
                Non-negative weights that multiply `C` for each sample. A sample of weight k counts
                as k samples, one of weight 0 is left out.
            """,
        "returns_self": """
            self : object
                Fitted estimator.
            """,
        "returns_labels": """
            y : ndarray of shape (n_samples,)
                Predicted class labels.
            """,
    }.items()
}


def shared_docs(documented: T) -> T:
    """Insert the shared descriptions into the docstrings of a class or function."""
    members: list[Any] = [documented]
    if inspect.isclass(documented):
        members += [
            getattr(member, "fget", member)
            for member in vars(documented).values()
            if inspect.isfunction(member) or isinstance(member, property)
        ]
    for member in members:
        if member.__doc__:
            member.__doc__ = re.sub(r"(?m)^( *)<<(\w+)>>$", _described, member.__doc__)
    return documented


def _described(line: re.Match) -> str:
    return indent(DESCRIPTIONS[line[2]], line[1])

"""NodeTransformer: a scikit-learn transformer for node features."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from widemargin._base.sklearn_compat import BaseEstimator, HasMethods, fit_context
from widemargin.structured.learners.base import to_arrays


class NodeTransformer(TransformerMixin, BaseEstimator):
    """Apply a scikit-learn transformer to the features of the nodes of structured inputs.

    The transformer is fitted on the nodes of all samples together. Edges and their features are not
    changed. `sklearn.kernel_approximation.Nystroem` gives a linear model an approximate kernel;
    `sklearn.preprocessing.StandardScaler` scales the features.

    Parameters
    ----------
    transformer : estimator
        A scikit-learn transformer of arrays of shape (n_nodes, n_features).

    Attributes
    ----------
    transformer_ : estimator
        The fitted transformer.

    Examples
    --------
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, FrankWolfeSSVM, NodeTransformer
    >>> X, Y = load_letters(return_X_y=True)
    >>> nystroem = Nystroem(gamma=0.02, n_components=50, random_state=0)
    >>> learner = make_pipeline(
    ...     NodeTransformer(nystroem), FrankWolfeSSVM(ChainCRF(), C=1.0, tol=0.1)
    ... )
    >>> bool(learner.fit(X[:50], Y[:50]).score(X[:50], Y[:50]) > 0.9)
    True
    """

    _parameter_constraints: dict = {"transformer": [HasMethods(["fit", "transform"])]}

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Sequence, y: Any = None) -> Self:
        """Fit the transformer on the nodes of all samples.

        Parameters
        ----------
        X : sequence
            Arrays of shape (n_nodes, n_features), images of shape (height, width, n_features),
            vectors of features, or tuples whose first element is an array of node features. A list
            is an array, not a tuple.
        y : sequence, default=None
            Outputs. They are passed to the transformer if they have a label for each node.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        rows = [_rows(x) for x in to_arrays(X)]
        labels = None
        if y is not None:
            flat = [np.ravel(output) for output in to_arrays(y)]
            if [len(states) for states in flat] == [block.shape[0] for block in rows]:
                labels = np.concatenate(flat)
        self.transformer_ = clone(self.transformer).fit(_stack(rows), labels)
        return self

    def transform(self, X: Sequence) -> list:
        """Transform the features of the nodes of every sample.

        Parameters
        ----------
        X : sequence
            Inputs in the form of those of `fit`.

        Returns
        -------
        X : list
            Inputs with transformed node features.
        """
        check_is_fitted(self)
        X = to_arrays(X)
        rows = [_rows(x) for x in X]
        new = self.transformer_.transform(_stack(rows))
        ends = np.cumsum([0, *(block.shape[0] for block in rows)])
        return [_replace(x, new[ends[i] : ends[i + 1]]) for i, x in enumerate(X)]


def _rows(x: Any) -> Any:
    features = x[0] if isinstance(x, tuple) else x
    if sp.issparse(features):
        return sp.csr_array(features.reshape(-1, features.shape[-1]))
    features = np.asarray(features)
    return features.reshape(-1, features.shape[-1])


def _stack(rows: list) -> Any:
    if any(sp.issparse(block) for block in rows):
        return sp.vstack(rows, format="csr")
    return np.concatenate(rows)


def _replace(x: Any, rows: Any) -> Any:
    if isinstance(x, tuple):
        return (rows, *x[1:])
    return rows if sp.issparse(x) or np.ndim(x) == 2 else rows.reshape(*np.shape(x)[:-1], -1)

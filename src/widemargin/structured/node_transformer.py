"""NodeTransformer: a scikit-learn transformer for node features."""

from collections.abc import Mapping, Sequence
from itertools import chain
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
    `sklearn.preprocessing.StandardScaler` scales the features;
    `sklearn.feature_extraction.DictVectorizer` makes numbers of named features, given as a dict or
    a list of strings for each node.

    Parameters
    ----------
    transformer : estimator
        A scikit-learn transformer of arrays of shape (n_nodes, n_features), or of lists of dicts.

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
            is an array, not a tuple. A list of dicts, or of lists of strings, has one node for each
            of its elements; strings are features of value 1.
        y : sequence, default=None
            Outputs. They are passed to the transformer if they have a label for each node.

        Returns
        -------
        self : object
            Fitted transformer.
        """
        self.fit_transform(X, y)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: Sequence, y: Any = None) -> list:
        """Fit the transformer on the nodes of all samples, and transform them.

        Parameters
        ----------
        X : sequence
            Inputs in the form of those of `fit`.
        y : sequence, default=None
            Outputs.

        Returns
        -------
        X : list
            Inputs with transformed node features.
        """
        X = to_arrays(X)
        rows = [_rows(x) for x in X]
        labels = None
        if y is not None:
            flat = [np.ravel(output) for output in to_arrays(y)]
            if [len(states) for states in flat] == [_length(block) for block in rows]:
                labels = np.concatenate(flat)
        self.transformer_ = clone(self.transformer)
        stacked = _stack(rows)
        if hasattr(self.transformer_, "fit_transform"):
            return _distribute(X, rows, self.transformer_.fit_transform(stacked, labels))
        return _distribute(X, rows, self.transformer_.fit(stacked, labels).transform(stacked))

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
        if not rows:
            return []
        return _distribute(X, rows, self.transformer_.transform(_stack(rows)))


def _rows(x: Any) -> Any:
    """Return the nodes of an input: rows of numbers, or a list of dicts."""
    features = x[0] if isinstance(x, tuple) else x
    if sp.issparse(features):
        return sp.csr_array(features.reshape(-1, features.shape[-1]))
    if _is_named(features):
        return [_as_dict(node) for node in features]
    features = np.asarray(features)
    return features.reshape(-1, features.shape[-1])


def _is_named(features: Any) -> bool:
    """Return whether nodes have features by name: dicts, or lists of strings; any may be empty."""
    return isinstance(features, list) and all(map(_is_named_node, features))


def _is_named_node(node: Any) -> bool:
    if isinstance(node, list | tuple | set):
        return not node or any(isinstance(item, str) for item in node)
    return isinstance(node, Mapping)


def _as_dict(node: Any) -> Mapping:
    return node if isinstance(node, Mapping) else dict.fromkeys(node, 1.0)


def _length(rows: Any) -> int:
    return len(rows) if isinstance(rows, list) else rows.shape[0]


def _stack(rows: list) -> Any:
    if all(isinstance(block, list) for block in rows):
        return list(chain.from_iterable(rows)) or [{}]  # transformers refuse empty lists
    rows = [block for block in rows if _length(block)]
    if any(isinstance(block, list) for block in rows):
        raise ValueError("X must contain named features for all inputs or for none, got both.")
    if any(sp.issparse(block) for block in rows):
        return sp.vstack(rows, format="csr")
    return np.concatenate(rows)


def _distribute(X: Sequence, rows: list, new: Any) -> list:
    """Return the inputs with new features of their nodes."""
    ends = np.cumsum([0, *map(_length, rows)])
    return [_replace(x, new[ends[i] : ends[i + 1]]) for i, x in enumerate(X)]


def _replace(x: Any, rows: Any) -> Any:
    if isinstance(x, tuple):
        return (rows, *x[1:])
    if sp.issparse(x) or _is_named(x) or np.ndim(x) == 2:
        return rows
    return rows.reshape(*np.shape(x)[:-1], -1)

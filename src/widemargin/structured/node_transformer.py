"""Any scikit-learn transformer, for the features of nodes."""

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from widemargin._base.sklearn_compat import HasMethods, fit_context
from widemargin.structured.learners.base import to_arrays


class NodeTransformer(TransformerMixin, BaseEstimator):
    """Apply a scikit-learn transformer to the features of the nodes of structured inputs.

    The nodes of all samples are stacked below each other for `fit`, and transformed sample by
    sample. Edges and their features stay as they are. With `sklearn.kernel_approximation.Nystroem`
    a linear model gets a kernel; with `StandardScaler` its features get a scale.

    Parameters
    ----------
    transformer : estimator
        A scikit-learn transformer of rows.

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

    def __init__(self, transformer):
        self.transformer = transformer

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Fit the transformer on the nodes of all samples.

        Parameters
        ----------
        X : sequence
            Arrays of shape (n_nodes, n_features), images of shape (height, width, n_features), rows
            of features, or tuples that begin with an array of features of nodes. A list is an
            array, not a tuple.
        y : sequence, default=None
            Outputs. Where they have a label for each node, the transformer sees those.

        Returns
        -------
        self : object
            The fitted adapter.
        """
        rows = [_rows(x) for x in to_arrays(X)]
        labels = None
        if y is not None:
            flat = [np.ravel(output) for output in to_arrays(y)]
            if [len(part) for part in flat] == [part.shape[0] for part in rows]:
                labels = np.concatenate(flat)
        self.transformer_ = clone(self.transformer).fit(_stack(rows), labels)
        return self

    def transform(self, X):
        """Transform the features of the nodes of every sample.

        Parameters
        ----------
        X : sequence
            Inputs of the same form as those of `fit`.

        Returns
        -------
        X : list
            Inputs with new features of nodes.
        """
        check_is_fitted(self)
        X = to_arrays(X)
        rows = [_rows(x) for x in X]
        new = self.transformer_.transform(_stack(rows))
        ends = np.cumsum([0, *(part.shape[0] for part in rows)])
        return [_replace(x, new[ends[i] : ends[i + 1]]) for i, x in enumerate(X)]


def _rows(x):
    features = x[0] if isinstance(x, tuple) else x
    if sp.issparse(features):
        return sp.csr_array(features.reshape(-1, features.shape[-1]))
    features = np.asarray(features)
    return features.reshape(-1, features.shape[-1])


def _stack(rows):
    if any(sp.issparse(part) for part in rows):
        return sp.vstack(rows, format="csr")
    return np.concatenate(rows)


def _replace(x, rows):
    if isinstance(x, tuple):
        return (rows, *x[1:])
    return rows if sp.issparse(x) or np.ndim(x) == 2 else rows.reshape(*np.shape(x)[:-1], -1)

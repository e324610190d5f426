"""Several outputs from one trained model: each next one keeps away from those before it."""

import numpy as np

from widemargin.structured.models.crf import CRF


def diverse_predictions(model, w, x, M, diversity=1.0):
    r"""Several good outputs that differ, from one model, without training (DivMBest).

    .. math::

        y^m = \arg\max_y w \cdot \phi(x, y) + \lambda \sum_{k < m} |\{v : y_v \ne y^k_v\}|

    Parameters
    ----------
    model : StructuredModel
        Its `inference` takes ``extra``; all models of this library do.
    w : ndarray of shape (size_joint_feature,)
        Weights, of any learner.
    x : object
        Input.
    M : int
        How many outputs.
    diversity : float, default=1.0
        What a part gains by differing from an earlier output. If it is 0 all outputs are equal.

    Returns
    -------
    outputs : list of length M
        The first one is that of `inference`.

    References
    ----------
    D. Batra, P. Yadollahpour, A. Guzman-Rivera, G. Shakhnarovich: Diverse M-best solutions in
    Markov random fields. ECCV 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import ChainCRF, diverse_predictions
    >>> model = ChainCRF(n_states=2, n_features=2)
    >>> w = np.array([1.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 0.5])
    >>> x = np.array([[3.0, 0.0], [0.4, 0.0], [0.0, 2.0]])
    >>> diverse_predictions(model, w, x, 2, diversity=1.0)
    [array([0, 0, 1]), array([0, 1, 1])]
    """
    _check_number(M)
    return [outputs[0] for outputs in in_turn(model, [w] * M, [x], diversity)]


def batch_diverse_predictions(model, w, X, M, diversity=1.0):
    """The outputs of `diverse_predictions` for many inputs at once.

    Parameters
    ----------
    model : StructuredModel
        Its `inference` takes ``extra``; all models of this library do.
    w : ndarray of shape (size_joint_feature,)
        Weights.
    X : sequence
        Inputs.
    M : int
        How many outputs for each.
    diversity : float, default=1.0
        What a part gains by differing from an earlier output.

    Returns
    -------
    proposals : list of list
        For every input M outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import MultiClassClf, batch_diverse_predictions
    >>> model = MultiClassClf(n_features=2, n_classes=3)
    >>> w = np.array([1.0, 0.0, 0.0, 1.0, 0.5, 0.5])
    >>> np.array(batch_diverse_predictions(model, w, np.eye(2), 2)).tolist()
    [[0, 2], [1, 2]]
    """
    _check_number(M)
    return [list(own) for own in zip(*in_turn(model, [w] * M, X, diversity), strict=True)]


def in_turn(model, W, X, diversity):
    """Return the outputs of one vector of weights after the other for all inputs.

    A part gains ``diversity`` for each of the outputs before it that it differs from.
    """
    if diversity < 0.0:
        raise ValueError(f"diversity must be at least 0, got {diversity}.")
    found = [list(_decoded(model, X, W[0], None))]
    counts = [np.zeros((model.states(y).size, model.n_states)) for y in found[0]]
    for w in W[1:]:
        for count, y in zip(counts, found[-1], strict=True):
            count[np.arange(len(count)), model.states(y)] += 1.0
        found.append(list(_decoded(model, X, w, [-diversity * count for count in counts])))
    return found


def _check_number(M):
    if M < 1:
        raise ValueError(f"M must be at least 1, got {M}.")


def _decoded(model, X, w, extra):
    """Outputs of all inputs; a model of the user's may have no form for many at once."""
    if extra is None:
        return model.batch_inference(X, w)
    if isinstance(model, CRF):
        return model.batch_inference(X, w, extra=extra)
    return [model.inference(x, w, extra=own) for x, own in zip(X, extra, strict=True)]

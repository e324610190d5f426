"""Several outputs from one trained model, each of them different from the earlier ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin.structured.models.crf import CRF


@shared_docs
def diverse_predictions(model: Any, w: Any, x: Any, M: int, diversity: float = 1.0) -> list:
    r"""Predict several diverse outputs with one model, without training (DivMBest).

    .. math::

        y^m = \arg\max_y w \cdot \phi(x, y) + \lambda \sum_{k < m} |\{v : y_v \ne y^k_v\}|

    Parameters
    ----------
    <<diverse_model>>
    x : object
        Input.
    M : int
        Number of outputs.
    diversity : float, default=1.0
        The factor lambda: amount added to the score of a part for each earlier output that differs
        there. If 0, all outputs are equal.

    Returns
    -------
    outputs : list of length M
        Outputs. The first one is that of `inference`.

    See Also
    --------
    batch_diverse_predictions : The same for many inputs.

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
    return batch_diverse_predictions(model, w, [x], M, diversity)[0]


@shared_docs
def batch_diverse_predictions(
    model: Any, w: Any, X: Sequence, M: int, diversity: float = 1.0
) -> list[list]:
    """Predict several diverse outputs for each of many inputs.

    Parameters
    ----------
    <<diverse_model>>
    <<structured_X>>
    M : int
        Number of outputs for each input.
    diversity : float, default=1.0
        Amount added to the score of a part for each earlier output that differs there.

    Returns
    -------
    proposals : list of length n_samples of lists of length M
        Outputs.

    See Also
    --------
    diverse_predictions : The same for one input, with the definition.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import MultiClassClf, batch_diverse_predictions
    >>> model = MultiClassClf(n_features=2, n_classes=3)
    >>> w = np.array([1.0, 0.0, 0.0, 1.0, 0.5, 0.5])
    >>> np.array(batch_diverse_predictions(model, w, np.eye(2), 2)).tolist()
    [[0, 2], [1, 2]]
    """
    if M < 1:
        raise ValueError(f"M must be at least 1, got {M}.")
    outputs = predict_in_sequence(model, [w] * M, X, diversity)
    return [list(proposals) for proposals in zip(*outputs, strict=True)]


def predict_in_sequence(model: Any, W: Any, X: Sequence, diversity: float) -> list[list]:
    """Return the outputs of each weight vector for all inputs, computed one after the other.

    ``diversity`` is added to the score of a part for each earlier output that differs there.
    """
    if not 0.0 <= diversity < np.inf:
        raise ValueError(f"diversity must be at least 0 and finite, got {diversity}.")
    outputs = [list(_decode(model, X, W[0], None))]
    counts = [np.zeros((model.states(y).size, model.n_states)) for y in outputs[0]]
    for w in W[1:]:
        for count, y in zip(counts, outputs[-1], strict=True):
            count[np.arange(len(count)), model.states(y)] += 1.0
        outputs.append(list(_decode(model, X, w, [-diversity * count for count in counts])))
    return outputs


def _decode(model: Any, X: Sequence, w: Any, extra: list[np.ndarray] | None) -> Any:
    """Return the outputs of all inputs; a user-defined model may lack a batch form of this."""
    if extra is None:
        return model.batch_inference(X, w)
    if isinstance(model, CRF):
        return model.batch_inference(X, w, extra=extra)
    return [model.inference(x, w, extra=term) for x, term in zip(X, extra, strict=True)]

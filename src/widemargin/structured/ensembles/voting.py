"""One answer from several proposals, and how far they differ."""

import numpy as np
from sklearn.linear_model import RidgeCV


def consensus(proposals):
    """Return for each part what most propose; of equally many, what the earliest one does."""
    stacked = _stacked(proposals)
    counts = _votes(stacked)
    return np.take_along_axis(stacked, counts.argmax(axis=0)[np.newaxis], axis=0)[0]


def disagreement(proposals):
    """Return for each part the share of pairs of proposals that differ."""
    stacked = _stacked(proposals)
    n = len(stacked)
    agreeing = _votes(stacked).sum(axis=0) - n
    return 1.0 - agreeing / max(1, n * (n - 1)) if n > 1 else np.zeros(stacked.shape[1:])


class Reranker:
    """Learns from losses on held-out data which of several proposals is the best.

    Parameters
    ----------
    model : StructuredModel
    W : ndarray of shape (n_members, size)
        The weights of those who propose.
    """

    def __init__(self, model, W):
        self.model = model
        norms = np.sqrt(np.sum(W**2, axis=1, keepdims=True))
        self.W = W / np.maximum(norms, np.finfo(float).tiny)

    def fit(self, X, Y, proposals):
        rows, targets = [], []
        for x, y, own in zip(X, Y, proposals, strict=True):
            losses = np.array([self.model.loss(y, output) for output in own], dtype=float)
            rows.append(self._features(x, own))
            targets.append((losses - losses.mean()) / max(1.0, self.model.max_loss(y)))
        self.regression = RidgeCV(alphas=np.logspace(-4, 4, 17), fit_intercept=False)
        rows = np.concatenate(rows)
        self.scale = np.sqrt(np.mean(rows**2, axis=0)) + np.finfo(float).tiny ** 0.5
        self.regression.fit(rows / self.scale, np.concatenate(targets))
        return self

    def choose(self, X, proposals):
        """The position of the best proposal for each input."""
        rows = [self._features(x, own) for x, own in zip(X, proposals, strict=True)]
        return [int(np.argmin(self.regression.predict(own / self.scale))) for own in rows]

    def _features(self, x, proposals):
        n = len(proposals)
        joint = np.array([self.model.joint_feature(x, output) for output in proposals])
        scores = np.einsum("nk,mk->nm", joint, self.W) / max(1, np.size(proposals[0]))
        agreement = np.mean(_votes(_stacked(proposals)).reshape(n, -1), axis=1) / n
        told = np.column_stack([scores.mean(axis=1), np.diag(scores), agreement])
        # What all proposals for an input share says nothing about which of them is the best.
        return np.hstack([told - told.mean(axis=0), np.eye(n) - 1.0 / n])


def _stacked(proposals):
    stacked = np.asarray(proposals)
    if stacked.dtype.kind not in "iub":
        raise ValueError(
            "Outputs can only be compared part by part if they are whole numbers or arrays of "
            f"them, got dtype {stacked.dtype}. Use predict_all."
        )
    return stacked


def _votes(stacked):
    """Return for each part of each proposal how many propose the same."""
    return np.sum(stacked[:, np.newaxis] == stacked[np.newaxis], axis=1)

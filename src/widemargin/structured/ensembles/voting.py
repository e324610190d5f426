"""Combine several proposals into one output, and measure how much they differ."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.linear_model import RidgeCV

from widemargin._base.numeric import TINY


def consensus(proposals: Sequence) -> np.ndarray:
    """Return the most frequent state of each part; ties go to the first proposal."""
    stacked = _stack(proposals)
    counts = _votes(stacked)
    return np.take_along_axis(stacked, counts.argmax(axis=0)[np.newaxis], axis=0)[0]


def disagreement(proposals: Sequence) -> np.ndarray:
    """Return the share of pairs of proposals that differ, for each part."""
    stacked = _stack(proposals)
    n = len(stacked)
    agreeing = _votes(stacked).sum(axis=0) - n
    return 1.0 - agreeing / max(1, n * (n - 1)) if n > 1 else np.zeros(stacked.shape[1:])


class Reranker:
    """Ridge regression of the losses of proposals, fitted to held-out data.

    Parameters
    ----------
    model : StructuredModel
        The model of the ensemble.
    W : ndarray of shape (n_members, size)
        The weights of its members.
    """

    def __init__(self, model: Any, W: np.ndarray) -> None:
        self.model = model
        norms = np.sqrt(np.sum(W**2, axis=1, keepdims=True))
        self.W = W / np.maximum(norms, TINY)

    def fit(self, X: Sequence, Y: Sequence, proposals: Sequence[Sequence]) -> Self:
        """Fit the regression to the proposals of the members and their losses."""
        blocks, targets = [], []
        for x, y, outputs in zip(X, Y, proposals, strict=True):
            losses = np.array([self.model.loss(y, output) for output in outputs], dtype=float)
            blocks.append(self._features(x, outputs))
            targets.append((losses - losses.mean()) / max(1.0, self.model.max_loss(y)))
        self.regression = RidgeCV(alphas=np.logspace(-4, 4, 17), fit_intercept=False)
        features = np.concatenate(blocks)
        self.scale = np.sqrt(np.mean(features**2, axis=0)) + TINY**0.5
        self.regression.fit(features / self.scale, np.concatenate(targets))
        return self

    def choose(self, X: Sequence, proposals: Sequence[Sequence]) -> list[int]:
        """Return the index of the proposal with the lowest predicted loss for each input."""
        features = [self._features(x, outputs) for x, outputs in zip(X, proposals, strict=True)]
        return [
            int(np.argmin(self.regression.predict(candidates / self.scale)))
            for candidates in features
        ]

    def _features(self, x: Any, proposals: Sequence) -> np.ndarray:
        n = len(proposals)
        joint = np.array([self.model.joint_feature(x, output) for output in proposals])
        scores = np.einsum("nk,mk->nm", joint, self.W) / max(1, np.size(proposals[0]))
        agreement = np.mean(_votes(_stack(proposals)).reshape(n, -1), axis=1) / n
        values = np.column_stack([scores.mean(axis=1), np.diag(scores), agreement])
        # Values that all proposals for an input share do not depend on which of them is the best.
        return np.hstack([values - values.mean(axis=0), np.eye(n) - 1.0 / n])


def _stack(proposals: Sequence) -> np.ndarray:
    stacked = np.asarray(proposals)
    if stacked.dtype.kind not in "iubU":
        raise ValueError(
            "Outputs must be labels or arrays of labels to be compared part by part, got "
            f"dtype {stacked.dtype}. Use predict_all."
        )
    return stacked


def _votes(stacked: np.ndarray) -> np.ndarray:
    """Return the number of equal proposals, for each part of each proposal."""
    return np.sum(stacked[:, np.newaxis] == stacked[np.newaxis], axis=1)

"""Displays of ensembles: losses of the best proposals, shares of members, and the proposals."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from widemargin._base.numeric import TINY
from widemargin.plotting.display import BLUE, GRAY, ORANGE, VERMILION, Display
from widemargin.structured.learners.base import to_arrays


class _LossesDisplay(Display):
    """Base class of displays of the losses of ensemble members; a display defines `_draw`."""

    losses: np.ndarray

    @classmethod
    def from_estimator(cls, estimator: Any, X: Sequence, Y: Sequence, *, ax: Any = None) -> Self:
        """Plot the losses of the members of an ensemble, relative to the largest possible loss.

        Parameters
        ----------
        estimator : fitted ensemble of structured SVMs
            Ensemble with a method `predict_all`.
        <<structured_X_Y>>
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        losses = _relative_losses(estimator.model_, to_arrays(Y), estimator.predict_all(X))
        return cls.from_losses(losses.T, ax=ax)

    @classmethod
    def from_losses(cls, losses: Any, *, ax: Any = None) -> Self:
        """Plot given losses.

        Parameters
        ----------
        losses : array-like of shape (n_members, n_samples)
            Loss of every member on every sample.
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        losses = np.asarray(losses, dtype=float)
        if losses.ndim != 2 or losses.size == 0:
            raise ValueError(f"losses must have shape (n_members, n_samples), got {losses.shape}.")
        return cls(losses=losses).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        ax = self._use_axes(ax, layout="constrained")
        self._draw(ax)
        ax.legend(fontsize="small")
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


class PickBestDisplay(_LossesDisplay):
    """Loss of the best, second and third best proposal against the number of proposals.

    Create it with :meth:`from_estimator` or :meth:`from_losses`.

    Parameters
    ----------
    <<member_losses>>

    Attributes
    ----------
    <<display_axes>>
    lines_ : list of matplotlib Line2D
        Mean over samples of the smallest, second and third smallest loss among the first members.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import PickBestDisplay
    >>> losses = np.random.default_rng(0).random((6, 50))
    >>> display = PickBestDisplay.from_losses(losses)
    >>> display.figure_.savefig("pick_best.png")  # doctest: +SKIP
    """

    def _draw(self, ax: Any) -> None:
        n = len(self.losses)
        ranked = [np.sort(self.losses[:m], axis=0) for m in range(1, n + 1)]
        self.lines_: list = []
        looks = zip(("best", "second", "third"), (BLUE, ORANGE, GRAY), strict=True)
        for k, (name, color) in enumerate(looks):
            if k < n:
                numbers = np.arange(k + 1, n + 1)
                means = [ranked[m - 1][k].mean() for m in numbers]
                self.lines_ += ax.plot(numbers, means, color=color, marker="o", label=name)
        ax.set(xlabel="number of proposals", ylabel="mean loss", xticks=np.arange(1, n + 1))
        ax.set_ylim(bottom=0.0)


class BestMemberDisplay(_LossesDisplay):
    """Share of samples for which each member makes the best proposal; ties are divided equally.

    Create it with :meth:`from_estimator` or :meth:`from_losses`.

    Parameters
    ----------
    <<member_losses>>

    Attributes
    ----------
    <<display_axes>>
    shares_ : ndarray of shape (n_members,)
        Shares of the members. They sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import BestMemberDisplay
    >>> display = BestMemberDisplay.from_losses([[0, 1, 1, 2], [1, 0, 1, 3]])
    >>> display.shares_
    array([0.625, 0.375])
    """

    def _draw(self, ax: Any) -> None:
        best = self.losses == self.losses.min(axis=0)
        self.shares_ = (best / best.sum(axis=0)).mean(axis=1)
        numbers = np.arange(1, len(self.losses) + 1)
        ax.bar(numbers, self.shares_, color=BLUE, width=0.7)
        ax.axhline(1.0 / len(numbers), color=GRAY, linestyle="--", linewidth=1, label="even")
        ax.set(xlabel="member", ylabel="share of samples it is best on", xticks=numbers)


class LossHistogramDisplay(_LossesDisplay):
    """Histograms of the losses of all proposals and of the best proposals.

    Create it with :meth:`from_estimator` or :meth:`from_losses`.

    Parameters
    ----------
    <<member_losses>>

    Attributes
    ----------
    <<display_axes>>
    counts_ : tuple of two ndarray
        Shares of all proposals and of the best proposals in each bin.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import LossHistogramDisplay
    >>> losses = np.random.default_rng(0).random((6, 50))
    >>> display = LossHistogramDisplay.from_losses(losses)
    >>> display.figure_.savefig("losses.png")  # doctest: +SKIP
    """

    _bins = 20

    def plot(self, *, ax: Any = None, bins: int = 20) -> Self:
        """Plot the display.

        Parameters
        ----------
        <<ax>>
        bins : int, default=20
            Number of bins.

        Returns
        -------
        <<returns_display>>
        """
        self._bins = bins
        return super().plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        edges = np.linspace(0.0, max(self.losses.max(), TINY), self._bins + 1)
        counts = []
        for losses, color, name in (
            (self.losses.ravel(), "#bbbbbb", "all proposals"),
            (self.losses.min(axis=0), BLUE, "best proposals"),
        ):
            share = np.full(len(losses), 1.0 / len(losses))
            look = {"color": color, "alpha": 0.6, "label": name}
            counts.append(ax.hist(losses, edges, weights=share, **look)[0])
        self.counts_ = tuple(counts)
        ax.set(xlabel="loss", ylabel="share")


class ProposalsDisplay(Display):
    """Inputs, true labels and proposals side by side, with the best proposal framed.

    Create it with :meth:`from_estimator` or :meth:`from_proposals`.

    Parameters
    ----------
    images : list of ndarray of shape (height, width) or (height, width, 3)
        Images of the inputs.
    truths : list of ndarray of shape (height, width)
        True labels.
    proposals : list of list of ndarray of shape (height, width)
        Proposals for each image.
    n_states : int
        Number of labels. All plots share the same colors.
    losses : ndarray of shape (n_images, n_proposals), default=None
        Losses that determine the best proposal; by default, the share of wrong labels.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_images, n_proposals + 2)
        Axes of inputs, true labels and proposals.
    figure_ : matplotlib Figure
        Figure of the axes.
    best_ : list of int
        Index of the framed proposal of each input.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import ProposalsDisplay
    >>> truth = np.eye(4, dtype=int)
    >>> proposals = [1 - truth, truth, 0 * truth]
    >>> ProposalsDisplay.from_proposals([truth], [truth], [proposals]).best_
    [1]
    """

    images: Sequence
    truths: Sequence
    proposals: Sequence[Sequence]
    n_states: int
    losses: np.ndarray | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Sequence, Y: Sequence, *, images: Sequence | None = None,
        axes: Any = None,
    ) -> Self:  # fmt: skip
        """Plot the proposals of an ensemble, with losses relative to the largest possible loss.

        Parameters
        ----------
        estimator : fitted ensemble of structured SVMs
            Ensemble whose model labels grids.
        X : sequence of ndarray of shape (height, width, n_features)
            Inputs.
        Y : sequence of ndarray of shape (height, width)
            True labels.
        images : sequence of ndarray, default=None
            Images of the inputs; by default, their first feature.
        <<proposals_axes>>

        Returns
        -------
        <<returns_display>>
        """
        X, Y, model = to_arrays(X), to_arrays(Y), estimator.model_
        images = [np.asarray(x)[..., 0] for x in X] if images is None else images
        proposals = estimator.predict_all(X)
        losses = _relative_losses(model, Y, proposals)
        return cls.from_proposals(
            images, Y, proposals, n_states=model.n_states, losses=losses, axes=axes
        )

    @classmethod
    def from_proposals(
        cls, images: Sequence, truths: Sequence, proposals: Sequence[Sequence], *,
        n_states: int | None = None, losses: Any = None, axes: Any = None,
    ) -> Self:  # fmt: skip
        """Plot given proposals.

        Parameters
        ----------
        images : sequence of ndarray of shape (height, width) or (height, width, 3)
            Images of the inputs.
        truths : sequence of ndarray of shape (height, width)
            True labels.
        proposals : sequence of sequence of ndarray of shape (height, width)
            Proposals, the same number for each image.
        n_states : int, default=None
            Number of labels; by default, the largest label plus 1.
        losses : array-like of shape (n_images, n_proposals), default=None
            Losses that determine the best proposal, relative to the largest possible loss; by
            default, the share of wrong labels.
        <<proposals_axes>>

        Returns
        -------
        <<returns_display>>
        """
        if not len(images) == len(truths) == len(proposals):
            raise ValueError(
                "images, truths and proposals must have equal lengths, got "
                f"{len(images)}, {len(truths)} and {len(proposals)}."
            )
        if n_states is None:
            n_states = 1 + max(int(np.max(y)) for row in (truths, *proposals) for y in row)
        if losses is not None:
            losses, shape = np.asarray(losses, dtype=float), (len(images), len(proposals[0]))
            if losses.shape != shape:
                raise ValueError(f"losses must have shape {shape}, got {losses.shape}.")
        display = cls(
            images=images, truths=truths, proposals=proposals, n_states=n_states, losses=losses
        )
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        <<proposals_axes>>

        Returns
        -------
        <<returns_display>>
        """
        shape = len(self.images), len(self.proposals[0]) + 2
        axes = self._use_axes_array(axes, shape, figsize=(1.35 * shape[1], 1.6 * shape[0]))
        self.best_ = []
        losses: Any = self.losses
        if losses is None:
            losses = [
                [float(np.mean(np.asarray(labels) != truth)) for labels in proposals]
                for truth, proposals in zip(self.truths, self.proposals, strict=True)
            ]
        rows = zip(axes, self.images, self.truths, self.proposals, losses, strict=True)
        for row, image, truth, proposals, errors in rows:
            row[0].imshow(image, cmap="gray", interpolation="nearest")
            names = ["input", "truth", *(f"{error:.1%}" for error in errors)]
            look = {"cmap": "viridis", "vmin": 0, "vmax": max(1, self.n_states - 1)}
            for ax, labels in zip(row[1:], (truth, *proposals), strict=True):
                ax.imshow(labels, interpolation="nearest", **look)
            for ax, name in zip(row, names, strict=True):
                ax.set_title(name, fontsize="small")
                ax.set(xticks=[], yticks=[])
            self.best_.append(int(np.argmin(errors)))
            best = row[2 + self.best_[-1]]
            best.title.set_weight("bold")
            for spine in best.spines.values():
                spine.set(color=VERMILION, linewidth=3.0)
        return self


def _relative_losses(model: Any, truths: Sequence, proposals: Sequence[Sequence]) -> np.ndarray:
    """Return the losses of proposals, relative to the largest possible loss of each truth."""
    pairs = zip(truths, proposals, strict=True)
    losses = [[model.loss(truth, labels) for labels in row] for truth, row in pairs]
    return np.array(losses) / [[model.max_loss(truth) or 1.0] for truth in truths]

"""Pictures of ensembles: what the best proposal is worth, who makes it, and how it looks."""

import numpy as np

from widemargin.plotting.structured import _pyplot
from widemargin.structured.learners.base import to_arrays

_OURS, _SECOND, _THIRD, _PALE = "#0072b2", "#e69f00", "#999999", "#bbbbbb"


class _LossesDisplay:
    """What the displays of losses share."""

    def __init__(self, *, losses):
        self.losses = losses

    @classmethod
    def from_estimator(cls, estimator, X, Y, *, ax=None):
        """Draw the losses of the members of an ensemble, as shares of the largest.

        Parameters
        ----------
        estimator : fitted ensemble of structured machines
            It has `member_losses`.
        X : sequence
            Inputs.
        Y : sequence
            The truth.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : object
            The display, drawn.
        """
        losses = _shares(estimator.model_, to_arrays(Y), estimator.predict_all(X))
        return cls.from_losses(losses.T, ax=ax)

    @classmethod
    def from_losses(cls, losses, *, ax=None):
        """Draw given losses.

        Parameters
        ----------
        losses : array-like of shape (n_members, n_samples)
            The loss of every member on every sample.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : object
            The display, drawn.
        """
        losses = np.asarray(losses, dtype=float)
        if losses.ndim != 2 or losses.size == 0:
            raise ValueError(f"losses must have shape (n_members, n_samples), got {losses.shape}.")
        return cls(losses=losses).plot(ax=ax)

    def plot(self, *, ax=None):
        raise NotImplementedError

    def _axes(self, ax):
        if ax is None:
            _, ax = _pyplot(type(self).__name__).subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class PickBestDisplay(_LossesDisplay):
    """The error of the best, the second and the third best proposal against their number.

    Create it with :meth:`from_estimator` or :meth:`from_losses`.

    Parameters
    ----------
    losses : ndarray of shape (n_members, n_samples)
        The loss of every member on every sample.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : list of matplotlib Line2D
        The mean over samples of the least loss, the second and the third least, among the first
        members.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import PickBestDisplay
    >>> losses = np.random.default_rng(0).random((6, 50))
    >>> display = PickBestDisplay.from_losses(losses)
    >>> display.figure_.savefig("pick_best.png")  # doctest: +SKIP
    """

    def plot(self, *, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        PickBestDisplay
            The display itself.
        """
        ax = self._axes(ax)
        n = len(self.losses)
        ranked = [np.sort(self.losses[:m], axis=0) for m in range(1, n + 1)]
        self.lines_ = []
        looks = zip(("best", "second", "third"), (_OURS, _SECOND, _THIRD), strict=True)
        for k, (name, color) in enumerate(looks):
            if k < n:
                numbers = np.arange(k + 1, n + 1)
                means = [ranked[m - 1][k].mean() for m in numbers]
                self.lines_ += ax.plot(numbers, means, color=color, marker="o", label=name)
        ax.set(xlabel="number of proposals", ylabel="mean loss", xticks=np.arange(1, n + 1))
        ax.set_ylim(bottom=0.0)
        ax.legend(fontsize="small")
        return self


class BestMemberDisplay(_LossesDisplay):
    """How often each member makes the best proposal; members that are equally good share a sample.

    Create it with :meth:`from_estimator` or :meth:`from_losses`.

    Parameters
    ----------
    losses : ndarray of shape (n_members, n_samples)
        The loss of every member on every sample.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    shares_ : ndarray of shape (n_members,)
        They sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import BestMemberDisplay
    >>> display = BestMemberDisplay.from_losses([[0, 1, 1, 2], [1, 0, 1, 3]])
    >>> display.shares_
    array([0.625, 0.375])
    """

    def plot(self, *, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        BestMemberDisplay
            The display itself.
        """
        ax = self._axes(ax)
        best = self.losses == self.losses.min(axis=0)
        self.shares_ = (best / best.sum(axis=0)).mean(axis=1)
        numbers = np.arange(1, len(self.losses) + 1)
        ax.bar(numbers, self.shares_, color=_OURS, width=0.7)
        ax.axhline(1.0 / len(numbers), color=_THIRD, linestyle="--", linewidth=1, label="even")
        ax.set(xlabel="member", ylabel="share of samples it is best on", xticks=numbers)
        ax.legend(fontsize="small")
        return self


class LossHistogramDisplay(_LossesDisplay):
    """Histograms of the losses of all proposals and of the best ones.

    Create it with :meth:`from_estimator` or :meth:`from_losses`.

    Parameters
    ----------
    losses : ndarray of shape (n_members, n_samples)
        The loss of every member on every sample.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    counts_ : tuple of two ndarray
        Shares of all proposals and of the best ones, by bin.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import LossHistogramDisplay
    >>> losses = np.random.default_rng(0).random((6, 50))
    >>> display = LossHistogramDisplay.from_losses(losses)
    >>> display.figure_.savefig("losses.png")  # doctest: +SKIP
    """

    def plot(self, *, ax=None, bins=20):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        bins : int, default=20
            Number of bins.

        Returns
        -------
        LossHistogramDisplay
            The display itself.
        """
        ax = self._axes(ax)
        edges = np.linspace(0.0, max(self.losses.max(), np.finfo(float).tiny), bins + 1)
        counts = []
        for losses, color, name in (
            (self.losses.ravel(), _PALE, "all proposals"),
            (self.losses.min(axis=0), _OURS, "best proposals"),
        ):
            share = np.full(len(losses), 1.0 / len(losses))
            look = {"color": color, "alpha": 0.6, "label": name}
            counts.append(ax.hist(losses, edges, weights=share, **look)[0])
        self.counts_ = tuple(counts)
        ax.set(xlabel="loss", ylabel="share")
        ax.legend(fontsize="small")
        return self


class ProposalsDisplay:
    """Inputs, truth and proposals side by side, one row for each input, with the best one framed.

    Create it with :meth:`from_estimator` or :meth:`from_proposals`.

    Parameters
    ----------
    images : list of ndarray of shape (height, width) or (height, width, 3)
        What the labels are of.
    truths : list of ndarray of shape (height, width)
        True labels.
    proposals : list of list of ndarray of shape (height, width)
        For every image some proposals.
    n_states : int
        Number of labels, which all pictures share the colours of.
    losses : ndarray of shape (n_images, n_proposals), default=None
        By which the best proposal is found; the share of wrong labels by default.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_images, n_proposals + 2)
        Input, truth and proposals.
    figure_ : matplotlib Figure
        The figure of the axes.
    best_ : list of int
        The number of the framed proposal of each row, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import ProposalsDisplay
    >>> truth = np.eye(4, dtype=int)
    >>> proposals = [1 - truth, truth, 0 * truth]
    >>> ProposalsDisplay.from_proposals([truth], [truth], [proposals]).best_
    [1]
    """

    def __init__(self, *, images, truths, proposals, n_states, losses=None):
        self.images = images
        self.truths = truths
        self.proposals = proposals
        self.n_states = n_states
        self.losses = losses

    @classmethod
    def from_estimator(cls, estimator, X, Y, *, images=None, axes=None):
        """Draw the proposals of an ensemble, with their losses as shares of the largest.

        Parameters
        ----------
        estimator : fitted ensemble of structured machines
            Its model labels grids.
        X : sequence of ndarray of shape (height, width, n_features)
            Inputs.
        Y : sequence of ndarray of shape (height, width)
            The truth.
        images : sequence of ndarray, default=None
            How the inputs are to be shown; by their first feature by default.
        axes : ndarray of matplotlib Axes of shape (n_images, n_proposals + 2), default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ProposalsDisplay
            The display, drawn.
        """
        X, Y, model = to_arrays(X), to_arrays(Y), estimator.model_
        images = [np.asarray(x)[..., 0] for x in X] if images is None else images
        proposals = estimator.predict_all(X)
        losses = _shares(model, Y, proposals)
        return cls.from_proposals(
            images, Y, proposals, n_states=model.n_states, losses=losses, axes=axes
        )

    @classmethod
    def from_proposals(cls, images, truths, proposals, *, n_states=None, losses=None, axes=None):
        """Draw given proposals.

        Parameters
        ----------
        images : sequence of ndarray of shape (height, width) or (height, width, 3)
            What the labels are of.
        truths : sequence of ndarray of shape (height, width)
            True labels.
        proposals : sequence of sequence of ndarray of shape (height, width)
            For every image equally many proposals.
        n_states : int, default=None
            Number of labels; the largest one there is, plus 1, by default.
        losses : array-like of shape (n_images, n_proposals), default=None
            By which the best proposal is found, as shares of the largest loss; the share of wrong
            labels by default.
        axes : ndarray of matplotlib Axes of shape (n_images, n_proposals + 2), default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ProposalsDisplay
            The display, drawn.
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

    def plot(self, *, axes=None):
        """Draw the display.

        Parameters
        ----------
        axes : ndarray of matplotlib Axes of shape (n_images, n_proposals + 2), default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ProposalsDisplay
            The display itself.
        """
        shape = len(self.images), len(self.proposals[0]) + 2
        if axes is None:
            size = 1.35 * shape[1], 1.6 * shape[0]
            _, axes = _pyplot("ProposalsDisplay").subplots(
                *shape, squeeze=False, figsize=size, layout="constrained"
            )
        self.axes_ = np.asarray(axes).reshape(shape)
        self.figure_, self.best_ = self.axes_[0, 0].figure, []
        look = {"cmap": "viridis", "vmin": 0, "vmax": max(1, self.n_states - 1)}
        losses = self.losses
        if losses is None:
            losses = [
                [float(np.mean(np.asarray(own) != truth)) for own in proposals]
                for truth, proposals in zip(self.truths, self.proposals, strict=True)
            ]
        rows = zip(self.axes_, self.images, self.truths, self.proposals, losses, strict=True)
        for row, image, truth, proposals, errors in rows:
            row[0].imshow(image, cmap="gray", interpolation="nearest")
            row[0].set_title("input", fontsize="small")
            self.best_.append(int(np.argmin(errors)))
            names = ["truth", *(f"{error:.1%}" for error in errors)]
            for ax, name, labels in zip(row[1:], names, (truth, *proposals), strict=True):
                ax.imshow(labels, interpolation="nearest", **look)
                ax.set_title(name, fontsize="small")
            for ax in row:
                ax.set(xticks=[], yticks=[])
            best = row[2 + self.best_[-1]]
            best.title.set_weight("bold")
            for spine in best.spines.values():
                spine.set(color="#d55e00", linewidth=3.0)
        return self


def _shares(model, truths, proposals):
    """The losses of proposals, one row for each truth, as shares of the largest it can have."""
    return np.array(
        [
            [model.loss(truth, own) / (model.max_loss(truth) or 1.0) for own in row]
            for truth, row in zip(truths, proposals, strict=True)
        ]
    )

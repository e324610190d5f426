"""PreferenceClassifier: precision and recall constraints for any classifier."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from widemargin._base.docs import shared_docs
from widemargin._base.numeric import log_odds
from widemargin._base.sklearn_compat import HasMethods, check_y, safe_indexing
from widemargin._base.validation import validate_shape
from widemargin.semisupervised.base import PreferenceBase
from widemargin.semisupervised.self_training import Learner, RoundModel
from widemargin.semisupervised.split import LabelSplit
from widemargin.semisupervised.targets import PartialLabels


def _has_probabilities(model: Any) -> bool:
    return hasattr(getattr(model, "estimator_", model.estimator), "predict_proba")


@shared_docs
class PreferenceClassifier(PreferenceBase):
    r"""Semi-supervised classifier with precision and recall constraints, for any base estimator.

    The base estimator is trained on a part of the labeled samples and evaluated on the validation
    samples, which are the others. Unlabeled samples with scores above a threshold that meets the
    constraints there get a positive pseudo-label, those below the mean score of the negative
    validation samples a negative one. The base estimator is trained again with the pseudo-labels,
    until they do not change. The best classifier of all rounds is used with the threshold
    :math:`\delta` that solves

    .. math::

        \max_\delta \; F_1(\delta) \quad \text{subject to} \quad
        \mathrm{precision}(\delta) \ge p, \; \mathrm{recall}(\delta) \ge r

    on the validation samples. Without constraints it maximizes F1.

    Read more in :doc:`/preference`.

    Parameters
    ----------
    estimator : classifier
        Base estimator with `decision_function` or `predict_proba`. It is cloned.

    <<preference_parameters>>

    random_state : int, RandomState instance or None, default=None
        Determines the split of the labeled samples.

    Attributes
    ----------
    <<preference_attributes>>

    estimator_ : classifier
        The fitted base estimator of the best round. Its classes are 0 and 1, 1 being the positive
        class.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    PreferenceSVC : The same with a kernel SVM that is warm-started in every round.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from widemargin import PreferenceClassifier
    >>> X, y = make_classification(600, weights=[0.8], flip_y=0.1, random_state=0)
    >>> y[200:400] = -1
    >>> model = PreferenceClassifier(GaussianNB(), precision=0.7, random_state=0)
    >>> accepted = model.fit(X[:400], y[:400]).predict(X[400:]) == 1
    >>> bool(y[400:][accepted].mean() > 0.7)
    True
    """

    _parameter_constraints: dict = {
        "estimator": [
            HasMethods(["fit", "decision_function"]),
            HasMethods(["fit", "predict_proba"]),
        ],
        **PreferenceBase._parameter_constraints,
    }

    def __init__(
        self,
        estimator,
        *,
        precision=None,
        recall=None,
        false_positive_rate=None,
        beta=1.0,
        cost_ratio=None,
        margin=0.9,
        confidence=None,
        positive_share=None,
        split="cross",
        update="incremental",
        threshold="tuned",
        max_rounds=None,
        min_new=1,
        patience=10,
        time_limit=None,
        pos_label=None,
        checkpoint=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.precision = precision
        self.recall = recall
        self.false_positive_rate = false_positive_rate
        self.beta = beta
        self.cost_ratio = cost_ratio
        self.margin = margin
        self.confidence = confidence
        self.positive_share = positive_share
        self.split = split
        self.update = update
        self.threshold = threshold
        self.max_rounds = max_rounds
        self.min_new = min_new
        self.patience = patience
        self.time_limit = time_limit
        self.pos_label = pos_label
        self.checkpoint = checkpoint
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = base.sparse, base.allow_nan
        return tags

    def _validate_labeled(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        validate_shape(self, X, y)
        y = check_y(y, estimator=self)
        check_consistent_length(X, y)
        return _indexable(X), y

    def _validate_samples(self, X: Any) -> Any:
        validate_shape(self, X)
        return _indexable(X)

    def _learner(self, data: PartialLabels, split: LabelSplit) -> Learner:
        if data.weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight cannot be used, because {type(self.estimator).__name__}.fit does "
                "not accept it. Use another estimator, or leave it out."
            )
        return _ClassifierLearner(self, data, split)

    def _set_model(self, learner: Any, model: Any) -> None:
        self.estimator_ = model

    def _score(self, X: Any) -> NDArray[np.float64]:
        return _positive_scores(self.estimator_, X)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute class probabilities.

        They are those of the base estimator and do not depend on the constraints. The predicted
        class need not be the more probable one, because it depends on `threshold_`.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Columns are in the order of `classes_`. Available if the base estimator has
            `predict_proba`.
        """
        check_is_fitted(self)
        probabilities = np.asarray(self.estimator_.predict_proba(self._validate_samples(X)))
        return probabilities if self._positive_is_second else probabilities[:, ::-1]


class _ClassifierLearner(Learner):
    """Trains clones of a classifier. To resume, the best one is trained again."""

    def train(self, pseudo_labels: np.ndarray, fold_labels: np.ndarray) -> RoundModel:
        data, split, n_labeled = self.data, self.split, len(self.data.y)
        model = self._fit(split.train, pseudo_labels)
        unlabeled = n_labeled + np.arange(len(pseudo_labels))
        scores = np.full(n_labeled + len(unlabeled), np.nan)
        scored = [(model, unlabeled), (model, split.calibration)]
        if not split.folds:
            scored.append((model, split.validation))
        fold_scores = np.empty(fold_labels.shape)
        for k, fold in enumerate(split.folds):
            scorer = self._fit(np.setdiff1d(split.train, fold), fold_labels[k])
            scored.append((scorer, fold))
            if len(unlabeled):
                fold_scores[k] = _positive_scores(scorer, safe_indexing(data.X, unlabeled))
        for scorer, indices in scored:
            if len(indices):
                scores[indices] = _positive_scores(scorer, safe_indexing(data.X, indices))
        return RoundModel(model, scores, fold_scores)

    def _fit(self, labeled: np.ndarray, pseudo_labels: np.ndarray) -> Any:
        """Return the classifier, fitted to these labeled samples and all pseudo-labels."""
        data, used = self.data, np.flatnonzero(pseudo_labels)
        samples = np.append(labeled, len(data.y) + used)
        y = np.append(data.positive[labeled], pseudo_labels[used] > 0).astype(np.intp)
        weights = {} if data.weight is None else {"sample_weight": data.weight[samples]}
        return clone(self.parent.estimator).fit(safe_indexing(data.X, samples), y, **weights)


def _indexable(X: Any) -> Any:
    """Return DataFrames unchanged, and everything else as an array that can be indexed."""
    if sp.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "columns") else np.asarray(X)


def _positive_scores(model: Any, X: Any) -> NDArray[np.float64]:
    """Return decision values, or log-odds of probabilities, of class 1."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
    else:
        scores = log_odds(np.asarray(model.predict_proba(X))[:, 1])
    infinite = np.count_nonzero(~np.isfinite(scores))
    if infinite:
        raise ValueError(
            f"The scores of {type(model).__name__} must be finite, got {infinite} of {len(scores)} "
            "that are NaN or infinite, which no threshold can separate. Scale the features, remove "
            "constant ones, or use another estimator."
        )
    return scores

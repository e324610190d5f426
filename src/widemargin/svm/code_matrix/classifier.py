"""CodeMatrixClassifier: multi-class classification by binary classifiers and a code matrix."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import code_matrix_options as options
from widemargin._base.routing import RoutesFitMetadata
from widemargin._base.sklearn_compat import (
    BaseEstimator,
    HasMethods,
    StrOptions,
    fit_context,
    validate_parameters,
)
from widemargin._base.targets import encode_targets
from widemargin._base.validation import (
    validate_kernel_training,
    validate_meta_training,
    validate_shape,
)
from widemargin.svm.code_matrix.binary_classifiers import JointClassifiers, SeparateClassifiers
from widemargin.svm.code_matrix.codes import (
    CODES,
    check_code,
    code_matrix,
    is_one_vs_rest,
    minimum_distance,
)
from widemargin.svm.code_matrix.decoding import LOSSES, agreement, couple, smallest_step, total_loss
from widemargin.svm.scores import best_classes
from widemargin.svm.svc import SVC, validate_samples
from widemargin.svm.training import set_attributes


@shared_docs
class CodeMatrixClassifier(
    CallbackSupportMixin, RoutesFitMetadata, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    r"""Multi-class classification by binary classifiers and a code matrix.

    One-vs-rest, one-vs-one and error-correcting output codes with any binary classifier. With `SVC`
    all binary subproblems share one kernel cache, and in prediction the kernel values against the
    support vectors of all of them are computed once.

    With the code matrix M and the decision values :math:`f_s` of the binary classifiers, a sample
    is assigned to the class

    .. math::

        \arg\min_k \sum_s \ell(M_{ks} f_s)
        \qquad \text{or} \qquad
        \arg\min_k \sum_s \tfrac12 (1 - M_{ks} \operatorname{sign} f_s)

    by loss-based or Hamming decoding. Ties are broken in favor of the class with the larger
    :math:`\sum_s M_{ks} f_s`.

    Parameters
    ----------
    estimator : estimator object
        A binary classifier with `decision_function` or `predict_proba`. It is trained on labels
        0 and 1 (for -1 and +1 in the code), to which its `class_weight` and `class_margin` refer.
        The `checkpoint` of an `SVC` without `probability` is one file for all columns; other
        estimators with a `checkpoint` have a file for each column, with its number appended to the
        name.

    code : {'ovr', 'ovo', 'dense', 'sparse', 'exhaustive'} or array-like, default='ovr'
        Code matrix, by name (see `code_matrix`) or as an array of +1, -1 and 0 of shape
        (n_classes, n_columns) whose rows are in the order of the sorted labels.

    decoding : {'loss', 'hamming'}, default='loss'
        Whether decision values are compared with code words by a loss or by their signs. One-vs-one
        with 'hamming' is voting as in :class:`sklearn.multiclass.OneVsOneClassifier`.

    loss : {'hinge', 'squared_hinge', 'logistic', 'linear'}, default='hinge'
        Loss :math:`\ell` of 'loss' decoding; 'linear' (:math:`-t`) is that of
        :class:`sklearn.multiclass.OutputCodeClassifier`. For 'ovr' all of them give the same
        classes.

    n_jobs : int, default=None
        Number of binary classifiers trained at once. An `SVC` uses threads, other estimators use
        processes of joblib. If the kernel matrix of an `SVC` does not fit into its `cache_size`,
        one job is faster: it computes kernel values on all threads.

    random_state : int, RandomState instance or None, default=None
        Seed of the random codes. If None, a fixed seed is used, so that results are reproducible.

    Attributes
    ----------
    <<classes_>>

    code_matrix_ : ndarray of shape (n_classes, n_columns)
        Code matrix.

    minimum_distance_ : float
        Smallest distance between two code words.

    estimators_ : list of estimators
        Fitted binary classifiers, in the order of the columns.

    objective_, dual_gap_, n_iter_ : ndarray of shape (n_columns,)
        Objective value, relative duality gap and solver iterations of each binary subproblem, for
        `SVC`. For other estimators see `estimators_`.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    CrammerSingerSVC : A single problem over all classes.
    sklearn.multiclass.OneVsOneClassifier : One-vs-one with any classifier.
    sklearn.multiclass.OutputCodeClassifier : Random codes, not optimized.

    Notes
    -----
    With `SVC`, ``gamma='scale'`` is computed from all samples, for all binary subproblems. To scale
    the features, use ``make_pipeline(StandardScaler(), CodeMatrixClassifier(SVC()))``; with a
    pipeline as `estimator`, each binary classifier would have its own scaler and kernel.

    To get probabilities from classifiers without `predict_proba`, calibrate them
    (``CodeMatrixClassifier(CalibratedClassifierCV(SVC()))``) or, at lower cost, the multi-class
    model (``CalibratedClassifierCV(CodeMatrixClassifier(SVC()))``).

    References
    ----------
    E. L. Allwein, R. E. Schapire and Y. Singer, Reducing Multiclass to Binary: A Unifying Approach
    for Margin Classifiers, JMLR 1, 2000.

    T.-K. Huang, R. C. Weng and C.-J. Lin, Generalized Bradley-Terry Models and Multi-Class
    Probability Estimates, JMLR 7, 2006.

    Examples
    --------
    >>> from widemargin import SVC, CodeMatrixClassifier
    >>> from widemargin.datasets import load_vowel
    >>> X, y = load_vowel(subset="train", return_X_y=True)
    >>> model = CodeMatrixClassifier(SVC(C=10), code="dense").fit(X, y)
    >>> model.code_matrix_.shape
    (11, 35)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods("fit")],
        "code": [StrOptions(set(CODES)), "array-like"],
        "decoding": [StrOptions({"loss", "hamming"})],
        "loss": [StrOptions(set(LOSSES))],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator,
        *,
        code="ovr",
        decoding="loss",
        loss="hinge",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.code = code
        self.decoding = decoding
        self.loss = loss
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        accepted = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = accepted.sparse, accepted.pairwise
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **metadata: Any
    ) -> Self:
        """Fit the binary classifiers.

        Parameters
        ----------
        <<X_train>>

        <<y>>

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, for estimators that accept them. Samples of weight 0 are left out.

        <<fit_metadata>>

        Returns
        -------
        <<returns_self>>
        """
        self._check_estimator()
        routed = self._routed(metadata)
        X, y = self._validate_training(X, y, sample_weight)
        retained, targets = encode_targets(y, sample_weight, class_weight=None)
        classes, samples = targets.classes, np.arange(len(y))[retained]
        if isinstance(self.code, str):
            matrix, distance = code_matrix(self.code, len(classes), self.random_state)
        else:
            matrix = check_code(self.code, classes)
            distance = minimum_distance(matrix)
        metadata = {"sample_weight": sample_weight, **metadata}
        progress = FitProgress(self, matrix.shape[1], X, y, metadata)
        attributes = {
            "_decoding": self.decoding,
            "_loss": self.loss,
            "classes_": classes,
            "code_matrix_": matrix,
            "minimum_distance_": distance,
        }
        if self._is_joint():
            joint = JointClassifiers(self.estimator, matrix, self.n_jobs)
            progress.translate = lambda fitted: {**attributes, **joint.fitted_attributes(fitted)}
            solutions = joint.fit(X, samples, targets, progress)
            report_convergence(self.estimator, solutions, progress.stop_requested)
            attributes |= joint.fitted_attributes(joint.attributes)
        else:
            classifiers = SeparateClassifiers(self.estimator, matrix, self.n_jobs)
            codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
            classifiers.fit(X, codes, samples, sample_weight, routed, progress)
            attributes["_classifiers"] = classifiers
        set_attributes(self, attributes)
        progress.close()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of the classes.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the mean decision value, positive for ``classes_[1]``. For
            one-vs-rest, the decision values of the binary classifiers. Otherwise minus the loss, or
            the number of binary decisions that agree with the code word (those without the class
            count half), plus a fraction that breaks ties.
        """
        X, matrix = self._validate(X), self.code_matrix_.astype(np.float64)
        scores = np.ascontiguousarray(self._classifiers.scores(X), dtype=np.float64)
        if len(matrix) == 2:
            return scores @ matrix[1] / matrix.shape[1]
        if is_one_vs_rest(matrix):
            return scores
        confidence = tiled_multiply(scores, matrix.T)
        fraction = confidence / (3.0 * (np.abs(confidence) + 1.0))
        if self._decoding == "hamming":
            return agreement(scores, matrix) + smallest_step(matrix) * fraction
        return options.tied_losses * fraction - total_loss(scores, matrix, self._loss)

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        <<returns_labels>>
        """
        return best_classes(self.decision_function(X), self.classes_)

    @available_if(lambda self: self._gives_probabilities())
    def predict_proba(self, X: Any) -> np.ndarray:
        r"""Predict class probabilities, coupled from those of the binary classifiers.

        They maximize the likelihood of the binary probabilities r in the generalized Bradley-Terry
        model, in which a subproblem is decided for +1 with the probability of the classes with +1
        among those of the subproblem (for pairs of classes, the coupling of Hastie and Tibshirani):

        .. math::

            \max_p \sum_s r_s \log \frac{p_{s+}}{p_{s+} + p_{s-}}
            + (1 - r_s) \log \frac{p_{s-}}{p_{s+} + p_{s-}}

        For one-vs-rest they are the binary probabilities divided by their sum, as in scikit-learn.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Class probabilities; each row sums to 1.
        """
        X, matrix = self._validate(X), self.code_matrix_
        positive = self._classifiers.probabilities(X)
        if len(matrix) == 2:
            positive = np.where(matrix[1] > 0, positive, 1.0 - positive).mean(axis=1)
            return np.column_stack([1.0 - positive, positive])
        if is_one_vs_rest(matrix):
            total = positive.sum(axis=1, keepdims=True)
            return np.where(total > 0, positive, 1.0) / np.where(total > 0, total, len(matrix))
        return couple(positive, matrix)

    @property
    def estimators_(self) -> list[Any]:
        """Fitted binary classifiers, in the order of the columns."""
        check_is_fitted(self)
        names = ("n_features_in_", "feature_names_in_")
        features = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return self._classifiers.separate(**features)

    def _gives_probabilities(self) -> bool:
        return hasattr(vars(self).get("_classifiers", self).estimator, "predict_proba")

    def _is_joint(self) -> bool:
        """Return whether the binary classifiers are fitted together, over one kernel cache."""
        return type(self.estimator) is SVC and not self.estimator.probability

    def _check_estimator(self) -> None:
        if not any(hasattr(self.estimator, n) for n in ("decision_function", "predict_proba")):
            raise TypeError(
                "estimator must have decision_function or predict_proba, got "
                f"{self.estimator!r}. Calibrate it, for example with CalibratedClassifierCV."
            )

    def _validate_training(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray]:
        """Validate as the joint `SVC` needs it, or leave the values to other estimators."""
        if self._is_joint() and not callable(self.estimator.kernel):
            validate_parameters(self.estimator)
            return validate_kernel_training(self, X, y, self.estimator.kernel)
        return X, validate_meta_training(self, X, y, sample_weight)

    def _validate(self, X: Any) -> Any:
        check_is_fitted(self)
        classifiers = self._classifiers
        if isinstance(classifiers, SeparateClassifiers) or callable(classifiers.estimator.kernel):
            validate_shape(self, X)
            return X
        return validate_samples(self, X, sparse=classifiers.takes_sparse)

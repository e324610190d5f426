"""GatedSVC: a binary detector for one class of a multi-class model."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin._base.callbacks import FitProgress
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context
from widemargin.gated.base import GatedBase, warn_about, warn_about_gate
from widemargin.gated.export import StudentExport
from widemargin.gated.labels import numpy_booleans, python_label, target_mask
from widemargin.gated.problem import NoFeatures, TrainingData, fit_students
from widemargin.gated.scoring import score_answers


@shared_docs
class GatedSVC(GatedBase):
    r"""Gated SVM: a binary detector for one class, distilled from a multi-class teacher.

    The student predicts the target class y where the teacher's score of that class, the gate, is at
    least as large as its own function:
    :math:`S^y(x) \ge \langle \theta, \phi(x) \rangle`. Predictions need no scores of other classes.
    With a linear teacher over the same features, teacher and student are merged into a single
    weight vector, and a prediction costs one dot product. The student minimizes

    .. math::

        \min_\theta \tfrac12 \|\theta\|^2 + \sum_i \frac{C w_i}{d_i}
        \max\bigl(0,\; m + z_i (\langle \theta, \phi(x_i) \rangle - S^y(x_i))\bigr)

    with :math:`z_i = +1` for samples of the target class and -1 for all others, the margin m,
    sample weights :math:`w_i` and degrees of difficulty :math:`d_i` (see `difficulty_degrees`). The
    gSVM paper writes C / n: its C is n times this one.

    Predictions are booleans. `score` accepts class labels or booleans, and is the metric of a
    search such as :class:`~sklearn.model_selection.GridSearchCV` whose own ``scoring`` is None. The
    scorers of scikit-learn compare predictions with y as it is: pass them ``y == target``, or set
    `scoring` here.

    Parameters
    ----------
    target : label
        Target class.

    teacher : estimator, callable or ONNX session, default=None
        Classifier with ``decision_function``, or with ``predict_proba``, whose log-odds are used.
        An unfitted teacher is cloned and fitted to the same samples. A fitted one is used as it is;
        wrap it in :class:`sklearn.frozen.FrozenEstimator` for searches, because clones of other
        estimators are not fitted. If None, a linear `CrammerSingerSVC`, unless scores are passed to
        `fit`. A function of X that returns a column of scores or of probabilities for each class,
        an object that has nothing but ``predict_proba``, and an ONNX Runtime session are used with
        `classes` as labels of their columns.

    <<gated_C>>

    <<gated_margin>>

    <<gated_decay>>

    difficulty : {'relative-margin'}, callable or None, default=None
        Degrees of difficulty. If None, all samples have degree 1 (the variant gSVM-0 of the paper).
        'relative-margin' uses `difficulty_degrees`, as gSVM does; it does not improve accuracy, see
        the user guide. A callable ``difficulty(scores, sign, column)`` returns the degrees of all
        samples, given the scores of all classes, z, and the column of the target class.

    features : transformer, int, {'teacher', 'constant'} or None, default=None
        Feature map phi of a linear student. If None, the features of X. An unfitted transformer is
        cloned and fitted, a fitted one is used as it is. A kernel approximation makes the student's
        own function cheap, but the gate remains the teacher's score, which needs the kernel of a
        kernel teacher. 'teacher' uses the input of the last step of a teacher pipeline; if that
        step is linear, the student is merged with it. 'constant' uses no features: the student is a
        threshold on the gate. An int is a number of landmarks: the values of an rbf kernel at as
        many training samples (:class:`~sklearn.kernel_approximation.Nystroem`).

    <<gated_budget>>

    <<gated_gate>>

    <<gated_strength>>

    <<gated_kernel>>

    <<degree>>

    <<gated_gamma>>

    <<coef0>>

    solver : {'dual', 'majorize-minimize'}, default='dual'
        Algorithm. 'dual' solves the dual problem by coordinate descent or sequential minimal
        optimization. 'majorize-minimize' is the algorithm of the paper, which is slower for large
        `C`.

    <<gated_fit_intercept>>

    cv : int, cross-validation generator or iterable, default=None
        Cross-validation splitting strategy for the teacher's scores of the training samples: each
        sample is scored by a clone of the teacher fitted without its fold. A student cannot correct
        the errors of an overfitted teacher on its own training samples. If None, the scores of the
        teacher itself are used. `teacher_scores` passed to `fit` are used as they are.

    <<gated_classes>>

    scoring : str or callable, default=None
        Metric of `score`, which compares predictions with ``y == target``: the name of a scorer for
        two classes, such as 'f1', 'roc_auc' or 'average_precision', or a function
        ``scoring(estimator, X, y)``. Accuracy if None.

    <<gated_tol>>

    max_iter : int, default=-1
        Maximum number of solver iterations, -1 for no limit.

    cache_size : float, default=200
        Size of the kernel cache in MB.

    <<gated_checkpoint>>

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        False and True: whether a sample belongs to the target class.

    merged_ : bool
        Whether teacher and student are merged into a single weight vector.

    features_ : transformer or None
        Fitted feature map, None for the features of X.

    C_ : float
        Regularization parameter, the one that was chosen with ``C="auto"``.

    gate_strength_ : float
        Strength of a distilled gate; 0 if it is not used, 1 for other gates.

    coef_ : ndarray of shape (n_phi,)
        Weights of a merged student.

    intercept_ : float
        Intercept of a merged student.

    theta_ : ndarray of shape (n_phi,)
        Weights of a linear student without its gate.

    theta_intercept_ : float
        Weight of the constant feature.

    support_ : ndarray of shape (n_support,)
        Indices of the support vectors of a student with a nonlinear kernel.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Support vectors.

    dual_coef_ : ndarray of shape (n_support,)
        Dual coefficients of the support vectors.

    objective_ : float
        Value of the objective.

    dual_gap_ : float
        Relative duality gap, an upper bound on the distance of `objective_` from the optimum.

    n_iter_ : int
        Number of solver iterations.

    fit_status_ : int
        0 if the solver converged, else 1.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    GatedStudents : Students for all classes, trained together.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CrammerSingerSVC, GatedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> teacher = CrammerSingerSVC(C=10.0).fit(X, y)
    >>> student = GatedSVC(target=0, teacher=teacher).fit(X, y)
    >>> student.predict(X[[0, 100]])
    array([ True, False])
    >>> student.merged_  # one dot product, without the teacher
    True

    The gate of a teacher that is not linear is distilled, here into functions of 20 landmarks:

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(random_state=0)
    >>> student = GatedSVC(target=0, teacher=forest, cv=3, gate="distilled", features=20)
    >>> student.fit(X, y).predict(X[[0, 100]])
    array([ True, False])
    """

    _parameter_constraints: dict = {
        **GatedBase._parameter_constraints,
        "target": "no_validation",
    }

    def __init__(
        self,
        target: Any,
        teacher: Any = None,
        *,
        C: float | str | None = None,
        margin: float = 1.0,
        decay: float = 0.3,
        difficulty: str | Callable | None = None,
        features: Any = None,
        budget: float | None = None,
        gate: str = "teacher",
        gate_strength: float | str = "auto",
        kernel: str = "linear",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        solver: str = "dual",
        fit_intercept: bool = True,
        cv: Any = None,
        classes: ArrayLike | None = None,
        scoring: str | Callable | None = None,
        tol: float = 1e-6,
        max_iter: int = -1,
        cache_size: float = 200,
        checkpoint: str | PathLike | None = None,
    ):
        self.target = target
        self.teacher = teacher
        self.C = C
        self.margin = margin
        self.decay = decay
        self.difficulty = difficulty
        self.features = features
        self.budget = budget
        self.gate = gate
        self.gate_strength = gate_strength
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.classes = classes
        self.scoring = scoring
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.checkpoint = checkpoint

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        teacher_scores: Any = None,
        unlabeled: Any = None,
        **metadata: Any,
    ) -> Self:
        """Fit the student.

        Parameters
        ----------
        <<X_train>>

        y : array-like of shape (n_samples,)
            Class labels, of classes that the teacher knows. With a fitted teacher, or with
            `teacher_scores` and `classes`, booleans are accepted: whether a sample belongs to the
            target class.

        <<gated_sample_weight>>

        <<gated_fit_scores>>

        <<gated_unlabeled>>

        <<gated_metadata>>

        Returns
        -------
        <<returns_self>>
        """
        routed = self._routed(metadata)
        data = TrainingData(
            self, X, y, sample_weight, teacher_scores, [self.target], unlabeled, routed
        )
        passed = {"sample_weight": sample_weight, "teacher_scores": teacher_scores}
        passed["unlabeled"] = unlabeled
        progress = FitProgress(self, 1, X, y, passed, self.checkpoint, data.scores)
        data.prepare(progress.checkpoint)
        fits = fit_students(self, data, [self.target], progress)
        self._set_fitted(data, fits)
        progress.close()
        warn_about(self, [python_label(self.target)], fits, stopped=progress.stop_requested)
        warn_about_gate(self, data)
        return self

    def decision_function(self, X: Any, teacher_scores: Any = None) -> np.ndarray:
        """Compute the decision function: the teacher's score minus the student's function.

        Parameters
        ----------
        <<X>>

        <<gated_target_scores>>

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Non-negative for samples that are predicted to belong to the target class.
        """
        return self._scores(X, teacher_scores)[:, 0]

    def predict(self, X: Any, teacher_scores: Any = None) -> np.ndarray:
        """Predict whether samples belong to the target class.

        Parameters
        ----------
        <<X>>

        <<gated_target_scores>>

        Returns
        -------
        y : ndarray of bool of shape (n_samples,)
            True for the target class.
        """
        return self.decision_function(X, teacher_scores) >= 0.0

    def score(self, X: Any, y: Any, sample_weight: Any = None, teacher_scores: Any = None) -> float:
        """Compute the metric of `scoring`, the accuracy of the predictions if that is None.

        Parameters
        ----------
        <<X>>

        y : array-like of shape (n_samples,)
            Class labels or booleans, as in `fit`.

        <<gated_score_weight>>

        <<gated_target_scores>>

        Returns
        -------
        score : float
            Value of the metric.
        """
        scores = self.decision_function(X, teacher_scores)
        positive = target_mask(column_or_1d(numpy_booleans(y)), self._labels, self._columns[0])
        return score_answers(self.scoring, scores, X, positive, sample_weight)

    def export(self, feature_names: ArrayLike | None = None) -> StudentExport:
        """Export a linear student as plain numbers, for use without this library.

        A merged student needs nothing else; the function of any other takes the teacher's score of
        the target class as well. With `features` the weights belong to the features after the map;
        there are none for 'constant'.

        Parameters
        ----------
        feature_names : array-like of str of shape (n_phi,), default=None
            Names of the features. If None, those of the DataFrame passed to `fit` or, with
            `features`, those of the map. For a student that is the last step of a pipeline, pass
            ``pipeline[:-1].get_feature_names_out()``.

        Returns
        -------
        export : StudentExport
            Arrays, Python source without dependencies, and JSON.
        """
        check_is_fitted(self)
        if self._expansion is not None:
            raise ValueError(
                "Only linear students can be exported, got "
                f"kernel={self._expansion.parameters.kernel!r}. Use features=Nystroem(...) instead "
                "of a kernel."
            )
        coef = self.coef_ if self.merged_ else -self.theta_
        coef = coef[:0] if isinstance(self._features, NoFeatures) else coef.copy()
        names = self._phi_names() if feature_names is None else column_or_1d(feature_names)
        if names is not None and len(names) != len(coef):
            raise ValueError(
                f"feature_names must be the names of {len(coef)} features, got {len(names)}."
            )
        return StudentExport(
            target=python_label(self._labels[self._columns[0]]),
            coef=coef,
            intercept=float(self.intercept_ if self.merged_ else -self.theta_intercept_),
            needs_teacher=not self.merged_,
            feature_names=None if names is None else [str(name) for name in names],
        )

    def _phi_names(self) -> Any:
        """Return the names of the features of a linear student, None if they are not known."""
        if self._features is None:
            return getattr(self, "feature_names_in_", None)
        try:
            return self._features.get_feature_names_out()
        except (AttributeError, ValueError):  # of a map, or of one of its steps, that has no names
            return None

    def _set_fitted(self, data: TrainingData, fits: Any, **attributes: Any) -> None:
        super()._set_fitted(data, fits, classes_=np.array([False, True]), **attributes)
        for name in self._per_student:
            if name in vars(self):
                value = vars(self)[name][0]
                setattr(self, name, value if value.ndim else value.item())

"""GatedSVC: a student, which says whether a row is of its class."""

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin._base.sklearn_compat import fit_context
from widemargin._base.transactions import unchanged_by_failure
from widemargin.gated import teacher as teaching
from widemargin.gated.base import Gated, as_columns, ask_gate, kernel_part, tell, troubles
from widemargin.gated.difficulty import column_of, in_order, plain, truth_of, without_missing
from widemargin.gated.export import StudentExport
from widemargin.gated.landmarks import products
from widemargin.gated.problem import Nothing, combine, prepare, problem_of, solve


class GatedSVC(Gated):
    r"""A student that answers "is it class y?" at the price of one or two dot products.

    A teacher of many classes is there, or is trained here. The student says yes where the teacher's
    score of the target is at least its own function: where
    :math:`S^y(x) \ge \langle \theta, \phi(x) \rangle`. It asks the teacher for no other score, and
    with a linear teacher over the same features both become one vector, so that the teacher is not
    asked at all. Its answers are truth values, and `score` takes labels or truth values, but
    scikit-learn's scorers compare answers with what they are given: give them ``y == target``. It
    is trained on

    .. math::

        \min_\theta \tfrac12 \|\theta\|^2 + \sum_i \frac{C w_i}{d_i}
        \max\bigl(0,\; m + z_i (\langle \theta, \phi(x_i) \rangle - S^y(x_i))\bigr)

    with the truth :math:`z_i = \pm 1`, the margin m, sample weights :math:`w_i` and degrees of
    difficulty :math:`d_i` (see `difficulty_degrees`). The source of the method writes C / n: its C
    is n times this one.

    Parameters
    ----------
    target : label
        The class that is asked for.

    teacher : estimator, default=None
        With ``decision_function``, or ``predict_proba`` (whose log-odds are taken). An unfitted one
        is cloned and trained on the same rows; a fitted one is used as it is (put it into
        :class:`sklearn.frozen.FrozenEstimator` for searches, where a clone would forget its
        training). None is a linear `CrammerSingerSVC`, unless scores are given to `fit`.

    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.

    margin : float, default=1.0
        What the gate should be on the right side by, in units of the teacher's scores.

    decay : float, default=0.3
        Degree of the easiest rows, between 0 and 1.

    difficulty : {'source'}, callable or None, default='source'
        Degrees of difficulty: `difficulty_degrees`, or those that ``difficulty(scores, truth,
        column)`` returns for the scores of all classes, the truth (+1 or -1) and the target's
        column. None is 1 for all rows, the method's variant gSVM-0.

    features : transformer, {'teacher', 'constant'} or None, default=None
        The map phi. None takes rows as they are. An unfitted transformer is cloned and fitted, a
        fitted one used as it is: with a kernel approximation of chosen size the student's own
        function costs little, while its gate is still the teacher's score of the target, which of a
        kernel teacher needs the kernel. 'teacher' takes what the last step of a teacher pipeline
        sees: where that step is linear a student is merged with it, and costs no more than the map.
        'constant' takes nothing, so that the student is the gate with a threshold.

    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, default='linear'
        The inner product of phi. With a kernel other than 'linear' there can be no `features`.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian', as in `SVC`.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    solver : {'dual', 'mm'}, default='dual'
        Descent in the dual, or the source's majorise-minimise, which is slower for large `C`.

    fit_intercept : bool, default=True
        Whether phi has a constant feature, whose weight is regularised with the others.

    cv : int, splitter or iterable, default=None
        Folds for the teacher's scores in training: every row is scored by a clone of the teacher
        trained without its fold. An over-fitted teacher leaves a student nothing to learn on its
        own training rows. None takes the scores of the teacher itself.

    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of `teacher_scores` where there is no teacher; the sorted labels in y
        when None.

    tol : float, default=1e-6
        Relative duality gap at which the solver stops.

    max_iter : int, default=-1
        Most solver iterations, -1 for no limit.

    cache_size : float, default=200
        Memory for kernel values in MB.

    n_jobs : int, default=None
        Has no effect on a single student.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        False and True: whether a row is of the target.

    merged_ : bool
        Whether teacher and student are one vector.

    coef_ : ndarray of shape (n_phi,)
        That vector, of a merged student.

    intercept_ : float
        Its constant.

    theta_ : ndarray of shape (n_phi,)
        Weights of a linear student.

    theta_intercept_ : float
        Weight of the constant feature.

    support_ : ndarray of shape (n_support,)
        Indices of the rows that a student with another kernel is made of.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Those rows.

    dual_coef_ : ndarray of shape (n_support,)
        Their dual variables.

    objective_ : float
        Value of the minimised objective.

    dual_gap_ : float
        Bound on how far `objective_` is from the optimum, relative to it.

    n_iter_ : int
        Solver iterations.

    fit_status_ : int
        0 if the solver converged, else 1 (and a warning was given).

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    GatedStudents : A student for every class, trained together.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CrammerSingerSVC, GatedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> teacher = CrammerSingerSVC(C=10.0).fit(X, y)
    >>> student = GatedSVC(target=0, teacher=teacher).fit(X, y)
    >>> student.predict(X[[0, 100]])
    array([ True, False])
    >>> student.merged_  # one dot product, and no call to the teacher
    True
    """

    _parameter_constraints: dict = {**Gated._parameter_constraints, "target": "no_validation"}

    def __init__(
        self,
        target,
        teacher=None,
        *,
        C=1.0,
        margin=1.0,
        decay=0.3,
        difficulty="source",
        features=None,
        kernel="linear",
        degree=3,
        gamma="scale",
        coef0=0.0,
        solver="dual",
        fit_intercept=True,
        cv=None,
        classes=None,
        tol=1e-6,
        max_iter=-1,
        cache_size=200,
        n_jobs=None,
    ):
        self.target = target
        self.teacher = teacher
        self.C = C
        self.margin = margin
        self.decay = decay
        self.difficulty = difficulty
        self.features = features
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.classes = classes
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, teacher_scores=None):
        """Train the student.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,)
            Labels, of classes that the teacher knows. With a fitted teacher, or with given scores
            and `classes`, they may be truth values: whether a row is of the target.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by row; at least 0. A row of weight k counts as k rows, one of weight 0
            as none. An unfitted map in `features` gets them only if its ``fit`` has a
            `sample_weight`, which that of a pipeline has not: any other counts rows once.

        teacher_scores : array-like of shape (n_samples, n_classes), default=None
            The teacher's scores of these rows, in place of asking it. Columns of a frame that bear
            the labels may be in any order.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_by_failure(self):
            lesson = prepare(self, X, y, sample_weight, teacher_scores, [self.target])
            found = self._learn(lesson)
        tell({plain(self.target): found}, self)
        return self

    def decision_function(self, X, teacher_scores=None):
        """By how much the gate is passed: the target's score less the student's function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        teacher_scores : array-like of shape (n_samples, n_classes) or (n_samples,), default=None
            The teacher's scores of these rows, or its scores of the target alone, in place of
            asking it. Needed where there was no teacher in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            At least 0 where the student says yes.
        """
        given, checked, rows = self._incoming(X)
        if self.merged_ and teacher_scores is None:
            return products(rows, self.coef_[np.newaxis])[:, 0] + self.intercept_
        return self._gate_scores(given, checked, teacher_scores) - self._own(rows)

    def predict(self, X, teacher_scores=None):
        """Whether every row is of the target.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        teacher_scores : array-like of shape (n_samples, n_classes) or (n_samples,), default=None
            The teacher's scores, as in `decision_function`.

        Returns
        -------
        answers : ndarray of shape (n_samples,)
            True for yes.
        """
        return self.decision_function(X, teacher_scores) >= 0.0

    def score(self, X, y, sample_weight=None, teacher_scores=None):
        """Share of right answers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,)
            Their labels, or truth values, as in `fit`.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        teacher_scores : array-like of shape (n_samples, n_classes) or (n_samples,), default=None
            The teacher's scores, as in `decision_function`.

        Returns
        -------
        score : float
            Accuracy of `predict`.
        """
        answers = self.predict(X, teacher_scores)
        truth = truth_of(column_or_1d(without_missing(y)), self._labels, self._column)
        return float(accuracy_score(truth, answers, sample_weight=sample_weight))

    def export(self):
        """The student as plain numbers, for places without this library.

        Only linear students can be exported. A merged one needs nothing else; the function of any
        other takes the teacher's score of the target too. With `features` the numbers belong to
        what the map makes of a row: none for 'constant', whose function takes an empty row.

        Returns
        -------
        export : StudentExport
            Arrays, Python source without dependencies, and JSON.
        """
        check_is_fitted(self)
        if not hasattr(self, "theta_"):
            raise ValueError(
                f"Only linear students can be exported, got kernel={self._function.name!r}: use "
                "features=Nystroem(...) in place of a kernel."
            )
        coef = self.coef_ if self.merged_ else -self.theta_
        names = None if self._features is not None else getattr(self, "feature_names_in_", None)
        return StudentExport(
            target=plain(self._labels[self._column]),
            coef=coef[:0] if isinstance(self._features, Nothing) else coef.copy(),
            intercept=float(self.intercept_ if self.merged_ else -self.theta_intercept_),
            needs_teacher=not self.merged_,
            feature_names=None if names is None else [str(name) for name in names],
        )

    def _learn(self, lesson):
        """Set the fitted attributes; what there is to warn of."""
        column = column_of(self.target, lesson.classes, lesson.scores.shape[1])
        truth = np.where(truth_of(lesson.y, lesson.classes, column), 1.0, -1.0)
        if abs(truth.sum()) == len(truth):
            raise ValueError(
                f"y must hold rows of the target class {plain(self.target)!r} and of other "
                f"classes, got {'only' if truth[0] > 0 else 'no'} rows of it."
            )
        problem = problem_of(self, lesson, column, truth)
        solution = solve(self, lesson, problem)
        self.classes_ = np.array([False, True])
        self.objective_, self.dual_gap_ = solution.objective, solution.gap
        self.n_iter_, self.fit_status_ = solution.iterations, int(not solution.converged)
        self._labels, self._column = lesson.classes, column
        self._features, self._function = lesson.features, lesson.function
        self._set_function(lesson, solution.dual)
        self._set_gate(lesson, column)
        return troubles(self, lesson.scores, column, truth, self._own(lesson.rows), solution)

    def _set_function(self, lesson, dual):
        self._forget()
        if self.kernel == "linear":
            self.theta_ = combine(lesson.rows, dual)
            self.theta_intercept_ = float(dual.sum()) if self.fit_intercept else 0.0
            return
        support = np.flatnonzero(dual)
        support = support if len(support) else np.array([0])
        self.support_ = lesson.index[support]
        self.support_vectors_ = lesson.rows[support]
        self.dual_coef_ = dual[support]

    def _set_gate(self, lesson, column):
        """Keep of the teacher what the student needs, and no more."""
        self.merged_ = lesson.joint_forms is not None
        self._gate = None
        if lesson.forms is not None:
            coef, intercept = lesson.forms
            self._gate = teaching.LinearGate(coef[column].copy(), float(intercept[column]))
        elif lesson.teacher is not None and not self.merged_:
            self._gate = teaching.gate(lesson.teacher, column)
        if self.merged_:
            coef, intercept = lesson.joint_forms
            self.coef_ = coef[column] - self.theta_
            self.intercept_ = float(intercept[column]) - self.theta_intercept_

    def _own(self, rows):
        """The student's function of rows of phi."""
        if hasattr(self, "theta_"):
            return products(rows, self.theta_[np.newaxis])[:, 0] + self.theta_intercept_
        return kernel_part(self, rows, self.dual_coef_[:, np.newaxis])[:, 0]

    def _gate_scores(self, given, checked, teacher_scores):
        """S^y of rows."""
        if teacher_scores is None:
            return ask_gate(self._gate, given, checked)
        scores, names = as_columns(teacher_scores, given)
        if scores.shape[1] == 1:
            return in_order(scores, names, self._labels[[self._column]])[:, 0]
        if scores.shape[1] != len(self._labels):
            raise ValueError(
                f"teacher_scores must have {len(self._labels)} columns, as in fit, or one for the "
                f"target alone, got {scores.shape[1]}."
            )
        return in_order(scores, names, self._labels)[:, self._column]

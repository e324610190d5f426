"""GatedStudents: a student for every class of a teacher, trained together."""

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from widemargin._base.sklearn_compat import fit_context
from widemargin._base.threads import for_each
from widemargin._base.transactions import unchanged_by_failure
from widemargin.gated import teacher as teaching
from widemargin.gated.base import Gated, as_columns, ask_gate, kernel_part, tell
from widemargin.gated.difficulty import are_truth_values, in_order, place_of, plain
from widemargin.gated.landmarks import products
from widemargin.gated.problem import prepare
from widemargin.gated.student import GatedSVC


class GatedStudents(Gated):
    r"""A student for every class of a teacher, trained together and in parallel.

    Each answers "is it my class?" by itself, at the price of one or two dot products. All of them
    share the teacher's scores, the features and their kernel values in training. Together they are
    a classifier: a row is of the class whose student accepts it most strongly. The student of class
    y minimises

    .. math::

        \min_{\theta_y} \tfrac12 \|\theta_y\|^2 + \sum_i \frac{C w_i}{d_i}
        \max\bigl(0,\; m + z_i (\langle \theta_y, \phi(x_i) \rangle - S^y(x_i))\bigr)

    as described at `GatedSVC`.

    Parameters
    ----------
    teacher : estimator, default=None
        As in `GatedSVC`: fitted, unfitted, or None for a linear `CrammerSingerSVC`.

    targets : array-like of labels, default=None
        The classes that get a student, at least two; all classes in y when None.

    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.

    margin : float, default=1.0
        What the gate should be on the right side by, in units of the teacher's scores.

    decay : float, default=0.3
        Degree of the easiest rows, between 0 and 1.

    difficulty : {'source'}, callable or None, default='source'
        Degrees of difficulty, as in `GatedSVC`; None is 1 for all rows.

    features : transformer, {'teacher', 'constant'} or None, default=None
        The map phi, as in `GatedSVC`.

    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, default='linear'
        The inner product of phi. With a kernel other than 'linear' there can be no `features`.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian', as in `SVC`.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    solver : {'dual', 'mm'}, default='dual'
        Descent in the dual, or the source's majorise-minimise.

    fit_intercept : bool, default=True
        Whether phi has a constant feature, whose weight is regularised with the others.

    cv : int, splitter or iterable, default=None
        Folds for the teacher's scores in training, as in `GatedSVC`.

    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of `teacher_scores` where there is no teacher; the sorted labels in y
        when None.

    tol : float, default=1e-6
        Relative duality gap at which the solver stops.

    max_iter : int, default=-1
        Most solver iterations for each student, -1 for no limit.

    cache_size : float, default=200
        Memory for kernel values in MB, shared by all students.

    n_jobs : int, default=None
        How many students are trained at once, in threads. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_targets,)
        The classes that have a student, sorted.

    students_ : dict
        The fitted `GatedSVC` of every label.

    teacher_ : estimator
        The fitted teacher; None where there were scores only.

    merged_ : bool
        Whether teacher and students are one vector for each class.

    coef_ : ndarray of shape (n_targets, n_phi)
        Those vectors, of merged students.

    intercept_ : ndarray of shape (n_targets,)
        Their constants.

    theta_ : ndarray of shape (n_targets, n_phi)
        Weights of linear students.

    theta_intercept_ : ndarray of shape (n_targets,)
        Weights of the constant feature.

    support_ : ndarray of shape (n_support,)
        Indices of the rows that students with another kernel are made of.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Those rows.

    dual_coef_ : ndarray of shape (n_targets, n_support)
        Their dual variables.

    objective_ : ndarray of shape (n_targets,)
        Values of the minimised objectives.

    dual_gap_ : ndarray of shape (n_targets,)
        Bounds on how far they are from the optimum, relative to it.

    n_iter_ : ndarray of shape (n_targets,)
        Solver iterations.

    fit_status_ : int
        0 if every student converged, else 1 (and a warning was given).

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    GatedSVC : One student.
    CrammerSingerSVC : The teacher by default.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import GatedStudents
    >>> X, y = load_iris(return_X_y=True)
    >>> students = GatedStudents().fit(X, y)
    >>> students.is_class(X[[0, 100]], label=0)
    array([ True, False])
    >>> students.predict(X[[0, 100]])
    array([0, 2])

    In a search the teacher must not be forgotten by clones, so it is frozen:

    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.model_selection import GridSearchCV
    >>> from widemargin import CrammerSingerSVC
    >>> teacher = FrozenEstimator(CrammerSingerSVC().fit(X, y))
    >>> search = GridSearchCV(GatedStudents(teacher), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    >>> search.best_estimator_.teacher_ is teacher
    True
    """

    _parameter_constraints: dict = {
        **Gated._parameter_constraints,
        "targets": ["array-like", None],
    }

    def __init__(
        self,
        teacher=None,
        targets=None,
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
        self.teacher = teacher
        self.targets = targets
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
        """Train a student for every target.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,)
            Labels, of classes that the teacher knows.

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
        if self.targets is not None and len(self.targets) < 2:
            raise ValueError(
                f"targets must name at least two classes, got {len(self.targets)}: for one use "
                "GatedSVC."
            )
        if self.targets is not None and len(np.unique(self.targets)) < len(self.targets):
            raise ValueError(f"targets must be different classes, got {list(self.targets)}.")
        with unchanged_by_failure(self):
            lesson = prepare(self, X, y, sample_weight, teacher_scores, self.targets)
            found = self._learn(lesson)
        tell(found, self)
        return self

    @property
    def students_(self):
        """The fitted `GatedSVC` of every label."""
        check_is_fitted(self)
        return dict(zip(self.classes_.tolist(), self._students, strict=True))

    @property
    def teacher_(self):
        """The fitted teacher; None where there were scores only."""
        check_is_fitted(self)
        return self._teacher

    def decision_function(self, X, teacher_scores=None):
        """By how much each student's gate is passed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        teacher_scores : array-like of shape (n_samples, n_classes), default=None
            The teacher's scores of these rows, in place of asking it. Needed where there was no
            teacher in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_targets) or (n_samples,)
            At least 0 where a student says yes. With two targets, as for all classifiers, the score
            of the second less that of the first; their students give both.
        """
        scores = self._scores(X, teacher_scores)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X, teacher_scores=None):
        """The class whose student accepts most strongly, for every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        teacher_scores : array-like of shape (n_samples, n_classes), default=None
            The teacher's scores, as in `decision_function`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        best = self._scores(X, teacher_scores).argmax(axis=1)
        return self.classes_[best]

    def is_class(self, X, label, teacher_scores=None):
        """Whether rows are of one class, by the word of its student alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        label : label
            One of `classes_`.

        teacher_scores : array-like of shape (n_samples, n_classes) or (n_samples,), default=None
            The teacher's scores, or its scores of this class alone.

        Returns
        -------
        answers : ndarray of shape (n_samples,)
            True for yes.
        """
        check_is_fitted(self)
        place = place_of(label, self.classes_)
        if place is None:
            raise ValueError(
                f"label {plain(label)!r} has no student; there are {self.classes_.tolist()}."
            )
        return self._students[place].predict(X, teacher_scores)

    def score(self, X, y, sample_weight=None, teacher_scores=None):
        """Share of rows whose class is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,)
            Their labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        teacher_scores : array-like of shape (n_samples, n_classes), default=None
            The teacher's scores, as in `decision_function`.

        Returns
        -------
        score : float
            Accuracy of `predict`.
        """
        predicted = self.predict(X, teacher_scores)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _learn(self, lesson):
        """Set the fitted attributes; what there is to warn of, by label."""
        if are_truth_values(lesson.y, lesson.classes):
            raise ValueError(
                "y must hold labels, got truth values, which tell of one class only: give the "
                f"labels, of {lesson.classes.tolist()}, or use GatedSVC."
            )
        targets = np.unique(lesson.y if self.targets is None else self.targets)
        students = [self._student(label) for label in targets]
        jobs = effective_n_jobs(self.n_jobs)
        troubles = for_each(lambda student: student._learn(lesson), students, jobs)
        self.classes_, self._students = targets, students
        self._teacher, self._features = lesson.teacher, lesson.features
        self._function = lesson.function
        self._columns = np.array([student._column for student in students])
        self._labels = lesson.classes
        self._set_functions(lesson)
        return dict(zip(targets.tolist(), troubles, strict=True))

    def _student(self, label):
        """An unfitted student with these parameters, for rows like these."""
        parameters = self.get_params(deep=False)
        del parameters["targets"]
        student = GatedSVC(label, **parameters)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(student, name, getattr(self, name))
        return student

    def _set_functions(self, lesson):
        """The students' numbers side by side."""
        self._forget()
        students = self._students
        self.merged_ = students[0].merged_
        self.fit_status_ = max(student.fit_status_ for student in students)
        names = ["objective_", "dual_gap_", "n_iter_"]
        if self.kernel == "linear":
            names += ["theta_", "theta_intercept_"]
            names += ["coef_", "intercept_"] if self.merged_ else []
        else:
            support = np.unique(np.concatenate([student.support_ for student in students]))
            self.support_ = support
            self.support_vectors_ = lesson.rows[np.searchsorted(lesson.index, support)]
            self.dual_coef_ = np.zeros((len(students), len(support)))
            for row, student in zip(self.dual_coef_, students, strict=True):
                row[np.searchsorted(support, student.support_)] = student.dual_coef_
        for name in names:
            setattr(self, name, np.array([getattr(student, name) for student in students]))

    def _scores(self, X, teacher_scores):
        given, checked, rows = self._incoming(X)
        if self.merged_ and teacher_scores is None:
            return products(rows, self.coef_) + self.intercept_
        if hasattr(self, "theta_"):
            own = products(rows, self.theta_) + self.theta_intercept_
        else:
            own = kernel_part(self, rows, np.ascontiguousarray(self.dual_coef_.T))
        return self._gate_scores(given, checked, teacher_scores) - own

    def _gate_scores(self, given, checked, teacher_scores):
        """S^y of rows, for all targets."""
        if teacher_scores is not None:
            scores, names = as_columns(teacher_scores, given)
            if scores.shape[1] != len(self._labels):
                raise ValueError(
                    f"teacher_scores must have {len(self._labels)} columns, as in fit, got "
                    f"{scores.shape[1]}."
                )
            return in_order(scores, names, self._labels)[:, self._columns]
        gates = [student._gate for student in self._students]
        if isinstance(gates[0], teaching.LinearGate):
            joint = teaching.LinearGate(
                np.array([gate.coef for gate in gates]), np.array([g.intercept for g in gates])
            )
            return ask_gate(joint, given, checked)
        if self._teacher is not None and len(gates) == len(self._labels):
            return teaching.class_scores(self._teacher, given)[:, self._columns]
        return np.column_stack([ask_gate(gate, given, checked) for gate in gates])

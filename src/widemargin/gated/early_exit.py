"""The teacher itself, asked about one class only: it stops as soon as another class wins."""

import numpy as np
from sklearn.utils import check_array, indexable
from sklearn.utils.validation import check_is_fitted

from widemargin._base.sklearn_compat import num_samples, safe_indexing
from widemargin.gated import teacher as teaching
from widemargin.gated.difficulty import column_of
from widemargin.svm.crammer_singer import CrammerSingerSVC

_EQUAL = 1e-8


def early_exit_predict(teacher, X, target, *, return_counts=False):
    """Whether a teacher puts rows into a class, computing no more scores than that takes.

    The target's score is computed first and then the others one by one, each for the rows that no
    class has taken from the target yet. It is the baseline that students are to beat: a row of the
    target needs all scores, and a row of another class about half of them.

    Parameters
    ----------
    teacher : fitted estimator
        As in `GatedSVC`. One that cannot give the score of a class alone is asked to predict, for
        which it computes them all. A linear one that is no `CrammerSingerSVC` or `LinearSVC` is
        first tried on 16 rows, to see that it scores as its coefficients say; `counts` leave that
        out.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.
    target : label
        The class that is asked for.
    return_counts : bool, default=False
        Whether to return how many scores were computed.

    Returns
    -------
    answers : ndarray of shape (n_samples,)
        True where the teacher predicts the target.
    counts : ndarray of shape (n_samples,)
        Scores computed for each row; only with `return_counts`.

    See Also
    --------
    GatedSVC : A student, which needs one score at most.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CrammerSingerSVC, early_exit_predict
    >>> X, y = load_iris(return_X_y=True)
    >>> teacher = CrammerSingerSVC().fit(X, y)
    >>> answers = early_exit_predict(teacher, X, target=1)
    >>> bool((answers == (teacher.predict(X) == 1)).all())
    True
    """
    check_is_fitted(teacher)
    classes = teaching.known_classes(teacher)
    column = column_of(target, classes, len(classes))
    (X,) = indexable(X)
    forms = teaching.linear_forms(teacher, X)
    if forms is not None:
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
    gate = _gate(teacher, forms, column)
    if isinstance(gate, teaching.ColumnGate):
        answers = np.asarray(teacher.predict(X)) == classes[column]
        counts = np.full(len(answers), len(classes))
        return (answers, counts) if return_counts else answers
    own = gate(X)
    counts = np.ones(num_samples(X), dtype=int)
    racing, rows = np.arange(len(own)), X
    # CrammerSingerSVC takes scores for equal that agree in eight digits, and so the first of them.
    equal = _EQUAL if isinstance(teaching.bare(teacher), CrammerSingerSVC) else 0.0
    for k in range(len(classes)):
        if k == column or not len(racing):
            continue
        rival = _gate(teacher, forms, k)(rows)
        counts[racing] += 1
        lead = own[racing] - rival
        slack = equal * np.maximum(1.0, np.abs(own[racing]))
        # Of equal scores the first one wins.
        beaten = lead <= slack if k < column else lead < -slack
        if beaten.any():
            racing = racing[~beaten]
            rows = X[racing] if forms is not None else safe_indexing(X, racing)
    answers = np.zeros(len(own), dtype=bool)
    answers[racing] = True
    return (answers, counts) if return_counts else answers


def _gate(teacher, forms, column):
    if forms is None:
        return teaching.gate(teacher, column)
    return teaching.LinearGate(forms[0][column], float(forms[1][column]))

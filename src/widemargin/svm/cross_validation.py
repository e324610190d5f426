"""What machines that choose their parameters by cross-validation share."""

import warnings
from inspect import signature
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv

from widemargin._base.convergence import early_stop_message
from widemargin._base.sklearn_compat import StrOptions
from widemargin.solvers import NotSeparableError

SEARCH_CONSTRAINTS: dict = {
    "Cs": ["array-like"],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "refit": ["boolean"],
}


class Search:
    """The face of a search, to be put before the class of the machine.

    A fit sets ``scores_``, an array over the lists of ``_grid`` and the folds, and for every name
    in ``_grid`` the best value, as ``C_``.
    """

    _plain: ClassVar[type]
    """The machine without a search."""

    _learned: ClassVar[str]
    """An attribute that only a machine trained on all rows has."""

    _parameter_constraints: dict
    _grid: dict[str, list]
    cv: Any
    scoring: Any
    scores_: np.ndarray

    def __sklearn_is_fitted__(self):
        trained = hasattr(self, self._learned)
        if hasattr(self, "scores_") and not trained:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted for predictions, since it was "
                "fitted with refit=False: use refit=True."
            )
        return trained

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """How good the predictions are by `scoring`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        y : array-like of shape (n_samples,)
            True labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        score : float
            Accuracy where `scoring` is None.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        scorer = get_scorer("accuracy" if self.scoring is None else self.scoring)
        return scorer(self, X, y, **weights)

    @property
    def best_params_(self):
        """The best parameters by name."""
        self._check_searched()
        return {name: getattr(self, f"{name}_") for name in self._grid}

    @property
    def cv_results_(self):
        """Scores of all fits in the manner of GridSearchCV."""
        self._check_searched()
        params = list(ParameterGrid(self._grid))
        scores = self.scores_.reshape(len(params), -1)
        mean = scores.mean(axis=1)
        return {
            **{f"param_{name}": _column(p[name] for p in params) for name in self._grid},
            "params": params,
            **{f"split{k}_test_score": column for k, column in enumerate(scores.T)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": rankdata(-_nan_last(mean), method="min").astype(np.int32),
        }

    @property
    def best_estimator_(self):
        """The machine trained on all rows in the end, without the search."""
        self._check_searched()
        if not hasattr(self, self._learned):
            raise AttributeError("best_estimator_ is only available with refit=True.")
        model = self._new_estimator(self._plain, **self.best_params_)
        own = {*self._parameter_constraints, *(f"{name}_" for name in self._grid)}
        own |= {"scores_", "best_score_", "_grid", "_skl_callbacks"}
        vars(model).update({name: value for name, value in vars(self).items() if name not in own})
        return model

    def _check_searched(self):
        if not hasattr(self, "scores_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet.")

    def _scorer(self):
        """What scores folds, whose labels are checked."""
        # scikit-learn's own accuracy checks them again, at a length that is felt on small folds.
        return _accuracy if self.scoring in (None, "accuracy") else get_scorer(self.scoring)

    def _splits(self, X, y, weight):
        """Training and test rows of every fold, as indices."""
        rows = np.arange(len(y))
        splits = check_cv(self.cv, y, classifier=True).split(X, y)
        folds = [(rows[train], rows[test]) for train, test in splits]
        if not folds:
            raise ValueError(f"cv must give at least one fold, got none: {self.cv!r}.")
        counted = (
            weight if weight is not None and takes_weights(self._scorer()) else np.ones(len(y))
        )
        for number, (_, test) in enumerate(folds):
            if not counted[test].any():
                raise ValueError(
                    f"cv must give every fold test rows whose sample_weight is positive, fold "
                    f"{number} has none: shuffle the rows, or take fewer folds."
                )
        return folds

    def _new_estimator(self, kind, **chosen):
        """An unfitted machine with this estimator's parameters."""
        names = kind._parameter_constraints.keys() & self._parameter_constraints.keys()
        return kind(**{name: getattr(self, name) for name in names}, **chosen)

    def _keep_search(self, scores, best, grid):
        """Set what was found out about the grid, whose best entry stands at ``best``."""
        self.scores_, self.best_score_, self._grid = scores, float(scores[best].mean()), grid
        for place, (name, values) in zip(best, grid.items(), strict=True):
            setattr(self, f"{name}_", values[place])


def check_costs(Cs, *, finite):
    """The costs to try, as a list of floats."""
    values = list(Cs)
    positive = bool(values) and all(isinstance(C, Real) and float(C) > 0 for C in values)
    if not positive or (finite and np.inf in values):
        kind = "finite numbers" if finite else "numbers"
        raise ValueError(f"Cs must hold {kind} greater than 0, got {Cs!r}.")
    return [float(C) for C in values]


def best_of(scores):
    """Where the best mean score over folds stands first."""
    mean = _nan_last(scores.mean(axis=-1))
    return np.unravel_index(mean.argmax(), mean.shape)


def takes_weights(scorer):
    """Whether the scorer counts rows by sample_weight."""
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters


def warn_if_stopped(solutions, max_iter, asked):
    """Warn if some of the machines of folds have not converged."""
    stopped = sum(not solution.converged for solution in solutions)
    if stopped:
        warnings.warn(
            f"{early_stop_message(solutions, max_iter, asked)} {stopped} of {len(solutions)} "
            "cross-validation fits did not converge; their scores are approximate.",
            ConvergenceWarning,
            stacklevel=4,
        )


def warn_if_failed(failed, total):
    """Warn of fits of folds that failed; raise where all did."""
    if failed == total:
        raise NotSeparableError
    if failed:
        warnings.warn(
            f"{failed} of {total} fits of folds failed, because rows of infinite cost could not be "
            "separated: their scores are nan.",
            FitFailedWarning,
            stacklevel=4,
        )


def _accuracy(machine, X, y, sample_weight=None):
    return float(np.average(machine.predict(X) == y, weights=sample_weight))


def _nan_last(scores):
    return np.where(np.isnan(scores), -np.inf, scores)


def _column(values):
    """Numbers, or objects where there are other values among them."""
    values = list(values)
    return np.array(values, dtype=None if all(isinstance(v, float) for v in values) else object)

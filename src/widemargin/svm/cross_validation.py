"""Grid searches that share the work of their fits."""

import warnings
from collections.abc import Callable, Iterable
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
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import StrOptions
from widemargin.solvers import NotSeparableError

SEARCH_CONSTRAINTS: dict = {
    "Cs": ["array-like"],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "refit": ["boolean"],
}


@shared_docs
class Search:
    """Mixin class for estimators that select their parameters by cross-validation.

    A fit calls `_keep_search`, which sets ``scores_``, an array over the values of each parameter
    and the folds, and the best value of each parameter, such as ``C_``.
    """

    _plain: ClassVar[type]
    """The estimator without a search."""

    _learned: ClassVar[str]
    """An attribute that exists after a fit to all samples only."""

    _parameter_constraints: dict
    _grid: dict[str, list]
    _parameters: dict[str, Any]
    cv: Any
    scoring: Any
    scores_: np.ndarray
    best_score_: float

    def __sklearn_is_fitted__(self) -> bool:
        fitted = hasattr(self, self._learned)
        if hasattr(self, "scores_") and not fitted:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted for predictions, since it was "
                "fitted with refit=False. Set refit=True."
            )
        return fitted

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the score of the predictions by `scoring`.

        Parameters
        ----------
        <<X_kernel>>

        y : array-like of shape (n_samples,)
            True labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        score : float
            Accuracy if `scoring` is None.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        scorer = get_scorer("accuracy" if self.scoring is None else self.scoring)
        return scorer(self, X, y, **weights)

    @property
    def best_params_(self) -> dict[str, Any]:
        """Best parameters by name."""
        self._check_searched()
        return {name: getattr(self, f"{name}_") for name in self._grid}

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores in the format of GridSearchCV."""
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
    def best_estimator_(self) -> Any:
        """The estimator with the best parameters, fitted to all samples."""
        self._check_searched()
        if not hasattr(self, self._learned):
            raise AttributeError("best_estimator_ is only available with refit=True.")
        model = self._plain(**{**self._parameters, **self.best_params_})
        own = {*self._parameter_constraints, *(f"{name}_" for name in self._grid)}
        own |= {"scores_", "best_score_", "_grid", "_parameters", "_skl_callbacks"}
        fitted = {name: value for name, value in self.__dict__.items() if name not in own}
        model.__dict__.update(fitted)
        return model

    def _check_searched(self) -> None:
        if not hasattr(self, "scores_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet.")

    def _scorer(self) -> Callable:
        """The scorer of folds, whose labels are validated."""
        # scikit-learn's accuracy validates them again, which takes long on small folds.
        return _accuracy if self.scoring in (None, "accuracy") else get_scorer(self.scoring)

    def _splits(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training and test samples of each fold, as indices."""
        samples = np.arange(len(y))
        splits = check_cv(self.cv, y, classifier=True).split(X, y)
        folds = [(samples[train], samples[test]) for train, test in splits]
        if not folds:
            raise ValueError(f"cv must give at least one fold, got none: {self.cv!r}.")
        if weight is None or not takes_weights(self._scorer()):
            weight = np.ones(len(y))
        for number, (_, test) in enumerate(folds):
            if not weight[test].any():
                raise ValueError(
                    "cv must give every fold test samples whose sample_weight is positive, but "
                    f"fold {number} has none. Shuffle the samples, or use fewer folds."
                )
        return folds

    def _new_estimator(self, kind: type, **selected: Any) -> Any:
        """Return an unfitted estimator with the parameters of this one."""
        names = kind._parameter_constraints.keys() & self._parameter_constraints.keys()  # type: ignore[attr-defined]
        return kind(**{name: getattr(self, name) for name in names}, **selected)

    def _keep_search(
        self, scores: np.ndarray, best: tuple[int, ...], grid: dict[str, list]
    ) -> None:
        """Set the results of the search, given the index of the best entry of the grid."""
        self.scores_, self.best_score_, self._grid = scores, float(scores[best].mean()), grid
        self._parameters = self._new_estimator(self._plain).get_params(deep=False)
        for index, (name, values) in zip(best, grid.items(), strict=True):
            setattr(self, f"{name}_", values[index])


def check_costs(Cs: Iterable, *, finite: bool, name: str = "Cs") -> list[float]:
    """Return the values of C, or of the parameter of that name, to try as a list of floats."""
    values = list(Cs)
    positive = bool(values) and all(isinstance(C, Real) and float(C) > 0 for C in values)
    if not positive or (finite and np.inf in values):
        kind = "finite numbers" if finite else "numbers"
        raise ValueError(f"{name} must contain {kind} greater than 0, got {Cs!r}.")
    return [float(C) for C in values]


def best_of(scores: np.ndarray) -> tuple[int, ...]:
    """Return the index of the first best mean score over folds."""
    mean = _nan_last(scores.mean(axis=-1))
    return tuple(int(index) for index in np.unravel_index(mean.argmax(), mean.shape))


def takes_weights(scorer: Callable) -> bool:
    """Return whether the scorer accepts sample_weight."""
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters


def warn_if_stopped(solutions: list, max_iter: int, stopped: bool) -> None:
    """Warn if some of the cross-validation fits have not converged."""
    failed = sum(not solution.converged for solution in solutions)
    if failed:
        warnings.warn(
            f"{early_stop_message(solutions, max_iter, stopped)} {failed} of {len(solutions)} "
            "cross-validation fits did not converge; their scores are approximate.",
            ConvergenceWarning,
            stacklevel=4,
        )


def warn_if_failed(failed: int, total: int) -> None:
    """Warn if cross-validation fits failed; raise if all of them did."""
    if failed == total:
        raise NotSeparableError
    if failed:
        warnings.warn(
            f"{failed} of {total} cross-validation fits failed, because samples of infinite cost "
            "were not separable. Their scores are nan.",
            FitFailedWarning,
            stacklevel=4,
        )


def _accuracy(
    estimator: Any, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    return float(np.average(estimator.predict(X) == y, weights=sample_weight))


def _nan_last(scores: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(scores), -np.inf, scores)


def _column(values: Iterable) -> np.ndarray:
    """Numbers, or objects if there are other values among them."""
    values = list(values)
    return np.array(values, dtype=None if all(isinstance(v, float) for v in values) else object)

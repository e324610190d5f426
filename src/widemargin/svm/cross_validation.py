"""Grid searches that share the work of their fits."""

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from inspect import signature
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils.validation import check_is_fitted

from widemargin._base.convergence import early_stop_message, report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import BaseEstimator, StrOptions, has_callbacks, metric_of
from widemargin._base.workers import call_on_cluster, has_cluster
from widemargin.solvers import NotSeparableError
from widemargin.svm.training import set_attributes


@shared_docs
class Search(BaseEstimator):
    """Mixin class for estimators that select their parameters by cross-validation.

    A fit computes the scores of all folds, fits the model to all samples with `_best_parameters`,
    and calls `_finish_search`, which sets ``scores_``, an array over the values of each parameter
    and the folds, and the best value of each parameter, such as ``C_``.
    """

    _plain: Any
    """The estimator without a search."""

    _parameter_constraints: dict = {
        "Cs": ["array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "refit": ["boolean"],
    }

    def __sklearn_is_fitted__(self) -> bool:
        fitted = hasattr(self, "classes_")
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
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        scorer = get_scorer(self.scoring or "accuracy")
        return scorer(self, X, y, **weights)

    @property
    def best_params_(self) -> dict[str, Any]:
        """Best parameters by name."""
        check_is_fitted(self, "scores_")
        return {name: getattr(self, f"{name}_") for name in self._grid}

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores in the format of GridSearchCV."""
        check_is_fitted(self, "scores_")
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
        check_is_fitted(self, "scores_")
        if not hasattr(self, "classes_"):
            raise AttributeError("best_estimator_ is only available with refit=True.")
        model = copy(self._best)
        excluded = {*self._parameter_constraints, *(f"{name}_" for name in self._grid)}
        excluded |= {"scores_", "best_score_", "_grid", "_best", "_skl_callbacks"}
        fitted = {name: value for name, value in self.__dict__.items() if name not in excluded}
        model.__dict__.update(fitted)
        return model

    def _check_costs(self, *, finite: bool, name: str = "Cs") -> list[float]:
        """Return the values of C, or of the parameter of that name, to try as a list of floats."""
        parameter = getattr(self, name)
        values = list(parameter)
        positive = bool(values) and all(isinstance(C, Real) and float(C) > 0 for C in values)
        if not positive or (finite and np.inf in values):
            kind = "finite numbers" if finite else "numbers"
            raise ValueError(f"{name} must contain {kind} greater than 0, got {parameter!r}.")
        return [float(C) for C in values]

    def _best_parameters(self, scores: np.ndarray, grid: dict[str, list]) -> dict[str, Any]:
        """Return the parameters of the first best mean score over folds."""
        return list(ParameterGrid(grid))[_best_index(scores)]

    def _scorer(self) -> Callable:
        """The scorer of folds, whose labels are validated."""
        # scikit-learn's accuracy validates them again, which takes long on small folds.
        return accuracy_scorer if self.scoring in (None, "accuracy") else get_scorer(self.scoring)

    def _splits(self, X: Any, y: Any, weight: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training and test samples of each fold, as indices."""
        samples = np.arange(len(y))
        splits = check_cv(self.cv, y, classifier=True).split(X, y)
        try:
            folds = [(samples[train], samples[test]) for train, test in splits]
        except IndexError as error:
            raise ValueError(
                f"cv must give indices of the {len(y)} samples: {error}. Make the folds from the "
                "data that are passed to fit."
            ) from error
        if not folds:
            raise ValueError(f"cv must give at least one fold, got none: {self.cv!r}.")
        for number, (_, test) in enumerate(folds):
            if not self._test_weights(weight, test).get("sample_weight", np.ones(len(test))).any():
                raise ValueError(
                    "cv must give every fold test samples whose sample_weight is positive, but "
                    f"fold {number} has none. Shuffle the samples, or use fewer folds."
                )
        return folds

    def _cluster_scores(
        self, grid: dict[str, list], splits: list, data: dict, apart: str | None = None
    ) -> np.ndarray | None:
        """Return the scores that workers of a cluster compute; None to compute them here.

        Each fold is a call; of the parameter ``apart``, each value, too. Fits with a checkpoint or
        callbacks stay in this process.
        """
        saved = self.checkpoint is not None or has_callbacks(self)
        if saved or not has_cluster(self.n_jobs):
            return None
        choices = [{}] if apart is None else [{f"{apart}s": [value]} for value in grid[apart]]
        search = clone(self).set_params(refit=False, n_jobs=None)
        # Backends send arrays once, but not those within a dict.
        names, values = tuple(data), tuple(data.values())
        calls = [(search, names, split, choice, *values) for choice in choices for split in splits]
        shown = ConvergenceWarning, FitFailedWarning
        results = call_on_cluster(_scores_of_fold, calls, shown, self.n_jobs)
        axis, n_folds = list(grid).index(apart or "C"), len(splits)
        shape = [len(values) for values in grid.values()]
        if apart is not None:
            shape[axis] = 1
        failed = np.full((*shape, 1), np.nan)
        fold_scores = [failed if scores is None else scores for scores in results]
        if all(scores is None for scores in results):
            raise NotSeparableError
        rows = [
            np.concatenate(fold_scores[k : k + n_folds], axis=-1)
            for k in range(0, len(fold_scores), n_folds)
        ]
        return np.concatenate(rows, axis=axis)

    def _new_estimator(self, **selected: Any) -> Any:
        """Return an unfitted estimator without a search, with the parameters of this one."""
        names = self._plain._parameter_constraints.keys() & self._parameter_constraints.keys()
        names -= {"checkpoint"}  # the file belongs to the search
        return self._plain(**{name: getattr(self, name) for name in names}, **selected)

    def _test_weights(self, weight: np.ndarray | None, test: np.ndarray) -> dict[str, np.ndarray]:
        """Return the keyword arguments of the scorer: weights of test samples, if it takes them."""
        scorer = self._scorer()
        accepted = signature(metric_of(scorer)).parameters
        if weight is None or "sample_weight" not in accepted:
            return {}
        return {"sample_weight": weight[test]}

    def _finish_search(
        self, scores: np.ndarray, grid: dict, solutions: list, last: list | None, progress: Any
    ) -> Self:
        """Set the results of the search, end the fit and warn.

        Parameters
        ----------
        scores : ndarray over the values of each parameter and the folds
        grid : dict
            The values of each parameter by name.
        solutions : list of Solution
            Those of all folds.
        last : list of Solution or None
            Those of the fit to all samples, whose attributes are set; None without one.
        progress : FitProgress
        """
        if last is None:
            set_attributes(self, {})
        best = self._best_parameters(scores, grid)
        self.scores_, self._grid = scores, grid
        self.best_score_ = float(scores.reshape(-1, scores.shape[-1])[_best_index(scores)].mean())
        self._best = self._new_estimator(**best)
        for name, value in best.items():
            setattr(self, f"{name}_", value)
        progress.close()
        failed = sum(not solution.converged for solution in solutions)
        if failed:
            cause = early_stop_message(solutions, self.max_iter, progress.stop_requested)
            warnings.warn(
                f"{cause} {failed} of {len(solutions)} cross-validation fits did not converge; "
                "their scores are approximate.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if last is not None:
            report_convergence(self, last, progress.stop_requested, stacklevel=5)
        return self


def _scores_of_fold(search: Any, names: tuple, split: tuple, parameters: dict, *values: Any) -> Any:
    """Return the scores of one fold by parameters; None if the samples are not separable."""
    data = dict(zip(names, values, strict=True))
    try:
        return clone(search).set_params(cv=[split], **parameters).fit(**data).scores_
    except NotSeparableError:
        return None


def accuracy(labels: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> float:
    """Return the share of right labels, which are valid."""
    return float(np.average(labels == y, weights=sample_weight))


def accuracy_scorer(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any = None) -> float:
    """Return the accuracy of the predictions of an estimator."""
    return accuracy(estimator.predict(X), y, sample_weight)


def _best_index(scores: np.ndarray) -> int:
    return int(_nan_last(scores.mean(axis=-1)).argmax())


def _nan_last(scores: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(scores), -np.inf, scores)


def _column(values: Iterable) -> np.ndarray:
    """Numbers, or objects if there are other values among them."""
    values = list(values)
    return np.array(values, dtype=None if all(isinstance(v, float) for v in values) else object)

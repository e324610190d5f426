"""What the ensembles share: from data to members, and from members to proposals."""

import warnings
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.sklearn_compat import Interval, fit_context
from widemargin._base.threads import for_each
from widemargin._base.transactions import unchanged_by_failure
from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe
from widemargin.structured.ensembles.diverse import in_turn
from widemargin.structured.ensembles.voting import Reranker, consensus, disagreement
from widemargin.structured.learners.base import check_samples, to_arrays
from widemargin.structured.models.base import StructuredModel


class StructuredEnsemble(CallbackSupportMixin, BaseEstimator):
    """Base of the ensembles; see `CoulombSSVM`."""

    _parameter_constraints: dict = {
        "model": [StructuredModel],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # What differs between ensembles.

    def _train(self, oracle, cost, random, report):
        """Fitted attributes by name, `W` in the oracle's order among them.

        ``report(**figures)`` is called now and then; True means to stop.
        """
        raise NotImplementedError

    # What users call.

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, Y, sample_weight=None):
        """Train the members.

        Parameters
        ----------
        X : sequence of length n_samples
            Inputs, as the model takes them; one is enough.
        Y : sequence of length n_samples
            Outputs.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by sample; at least 0.

        Returns
        -------
        self : object
            The fitted ensemble.
        """
        X, Y = to_arrays(X), to_arrays(Y)
        weight = check_samples(X, Y, sample_weight)
        with unchanged_by_failure(self):
            self._solve(X, Y, sample_weight, weight)
        return self

    def fit_reranker(self, X, Y):
        """Learn on held-out data which proposal to take; `predict` then takes that.

        For each proposal the mean score under all members, the score under its own, how far it
        agrees with the others and which member made it are known; a ridge regression tells from
        these how much worse or better than the mean of the proposals it will be.

        Parameters
        ----------
        X : sequence
            Inputs that the members were not trained on.
        Y : sequence
            Outputs.

        Returns
        -------
        self : object
            The ensemble.
        """
        check_is_fitted(self, "W")
        X, Y = to_arrays(X), to_arrays(Y)
        check_samples(X, Y, None)
        proposals = self.predict_all(X)
        self.reranker_ = Reranker(self.model_, self.W).fit(X, Y, proposals)
        return self

    def predict_all(self, X, diversity=0.0):
        """The proposals of all members, each found by itself, in parallel.

        `last_inference_` of the model then speaks of all members together, but of the last one if
        they speak in turn.

        Parameters
        ----------
        X : sequence
            Inputs.
        diversity : float, default=0.0
            What a part gains by differing from the proposal of a member before it. More than 0 lets
            the members speak in turn: `diverse_predictions` with a machine of its own for every
            output.

        Returns
        -------
        proposals : list of list
            For every input `n_estimators` outputs.
        """
        check_is_fitted(self, "W")
        X = to_arrays(X)
        found = in_turn(self.model_, self.W, X, diversity) if diversity else self._decoded(X)
        return [list(outputs) for outputs in zip(*found, strict=True)]

    def predict(self, X):
        """One output for every input: the consensus of the members, or the re-ranker's choice.

        The consensus takes for each part the state that most members propose, and of equally many
        that of the earliest member. After `fit_reranker` it is the proposal with the best
        prospects, as a whole.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        Y : list or ndarray
            Outputs.
        """
        proposals = self.predict_all(X)
        if self.reranker_ is not None:
            chosen = self.reranker_.choose(to_arrays(X), proposals)
            outputs = [own[m] for own, m in zip(proposals, chosen, strict=True)]
        else:
            outputs = [consensus(own) for own in proposals]
        return self.model_.join_outputs(outputs)

    def member_losses(self, X, Y, diversity=0.0):
        """The loss of every member on every sample.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            The truth.
        diversity : float, default=0.0
            As for `predict_all`.

        Returns
        -------
        losses : ndarray of shape (n_estimators, n_samples)
            As the model counts them.
        """
        X, Y = to_arrays(X), to_arrays(Y)
        check_samples(X, Y, None)
        proposals = self.predict_all(X, diversity)
        columns = [
            [self.model_.loss(y, own) for own in outputs]
            for y, outputs in zip(Y, proposals, strict=True)
        ]
        return np.array(columns, dtype=float).T

    def pick_best_score(self, X, Y, diversity=0.0):
        """What `score` is where somebody picks the best proposal for every input.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            The truth.
        diversity : float, default=0.0
            As for `predict_all`.

        Returns
        -------
        score : float
            At most 1; for models that count wrong parts the share of right parts.
        """
        return self._share(self.member_losses(X, Y, diversity).min(axis=0), to_arrays(Y))

    def score(self, X, Y):
        """How much of the largest possible loss `predict` avoids.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            The truth.

        Returns
        -------
        score : float
            At most 1; for models that count wrong parts the share of right parts.
        """
        X, Y = to_arrays(X), to_arrays(Y)
        check_samples(X, Y, None)
        return self._share(self.model_.batch_loss(Y, self.predict(X)), Y)

    def disagreement(self, X):
        """How far the members differ, part by part.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        disagreement : list of ndarray
            In the shape of the outputs, the share of pairs of members that differ there: from 0,
            where all agree, to 1, where no two do.
        """
        return [disagreement(own) for own in self.predict_all(X)]

    @property
    def coef_(self):
        """Weights of the members, as scikit-learn names them."""
        return self.W

    # Helpers.

    def _decoded(self, X):
        """The outputs of each member for all inputs, which compiled code makes ready only once."""
        model, threads = self.model_, self._threads()
        if not model.is_compiled:
            return for_each(lambda w: model.batch_inference(X, w), self.W, threads)
        return model.decode(model.oracle(X, None, threads), self.W)

    def _solve(self, X, Y, sample_weight, weight):
        """Set the fitted attributes."""
        self.model_ = clone(self.model)
        oracle = self.model_.prepare(X, Y, threads=self._threads())
        seed = 0 if self.random_state is None else self.random_state
        seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
        progress = FitProgress.open(self, 1, X=X, y=Y, metadata={"sample_weight": sample_weight})
        with progress.task(0) as stop:
            told = ""

            def report(**figures):
                nonlocal told
                shown = ", ".join(f"{name} {value:.6g}" for name, value in figures.items())
                if self.verbose and shown != told:
                    print(f"[{type(self).__name__}] {shown}")
                told = shown
                return stop()

            found = self._train(oracle, self.C * weight, np.random.default_rng(seed), report)
        for name, value in found.items():
            setattr(self, name, value)
        self.W = np.array([oracle.to_model_order(w) for w in found["W"]])
        if "w" in found:
            self.w = oracle.to_model_order(found["w"])
        self.reranker_ = None
        progress.close()

    def _share(self, losses, Y):
        return 1.0 - float(np.sum(losses)) / sum(self.model_.max_loss(y) for y in Y)

    def _threads(self):
        """None for as many as there are; a model of the user's need not allow more than one."""
        if self.n_jobs is not None:
            return effective_n_jobs(self.n_jobs)
        return None if self.model_.is_compiled else 1

    def _single(self, oracle, cost, seed, report):
        """The one machine that members start from."""

        def look(state):
            curves = state.record.curves
            fresh = curves["iteration"] and curves["iteration"][-1] == state.iterations
            return report(passes=state.iterations, gap=curves["gap"][-1]) if fresh else False

        found = solve_frank_wolfe(
            oracle, cost, tol=self.tol, max_iter=self.max_iter, seed=seed, report=look
        )
        report(passes=found.iterations, gap=found.gap)
        if not found.converged:
            warnings.warn(
                f"The single machine stopped before its relative gap was below tol={self.tol} "
                f"(max_iter={self.max_iter}). Relative duality gap: {found.gap:.1e}.",
                ConvergenceWarning,
                stacklevel=6,
            )
        return found

    def _tell(self, converged, passes, advice):
        """Warn of members whose training stopped early in the last round."""
        if not np.all(converged):
            warnings.warn(
                f"{np.sum(~converged)} of {len(converged)} members stopped before their relative "
                f"gap was below tol={self.tol}, after {passes} passes over their samples in the "
                f"last round. {advice}",
                ConvergenceWarning,
                stacklevel=6,
            )


def random_directions(random, n, size):
    """Return ``n`` directions, none more likely than others."""
    return _unit(random.normal(size=(n, size)))


def directions_of_outputs(oracle, w, random, n):
    """Return ``n`` random directions in which scores of outputs of the samples change.

    They are mixtures of differences between the joint features of the truth and those of what
    random weights prefer, and so are combinations of what learning moves weights along. A direction
    drawn from all is mostly one that changes the scores of all outputs alike, or none.
    """
    scale = np.sqrt(np.sum(w**2) / len(w))
    found = np.zeros((n, oracle.size))
    for direction in found:
        for _ in range(_MIXED):
            weight = random.normal(size=oracle.n_samples)
            direction += oracle.violations(
                scale * random.normal(size=oracle.size), weight=weight
            ).difference
    return _unit(found)


_MIXED = 8


def _unit(rows):
    norms = np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
    return rows / np.maximum(norms, np.finfo(float).tiny ** 0.5)

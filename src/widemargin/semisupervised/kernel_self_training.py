"""Rounds of one kernel machine over rows some of which have no label yet.

All rows are in its problem from the start, those without a label at cost 0, so that they cannot
move. What the solver knows of them at the end, f at every row, is what the next round asks for,
and a round starts from the dual variables and the kernel rows of the one before.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin._base.callbacks import run_in_slices
from widemargin._base.convergence import early_stop_message
from widemargin.kernels import GramCache, KernelFunction, KernelGram
from widemargin.kernels.parameters import KernelParameters, effective_gamma
from widemargin.solvers import HingeProblem, Solution
from widemargin.solvers.hinge.smo import add_kernel_sum, advance, finish, start, values_at
from widemargin.svm.reduction import TwoClasses
from widemargin.svm.svc import SVC
from widemargin.svm.training import Training, support_attributes


@dataclass(frozen=True)
class Machine:
    """A solution over all rows and the decision values there."""

    solution: Solution
    scores: np.ndarray


class KernelRounds:
    """A machine that is trained again and again over the same rows.

    Parameters
    ----------
    gram : KernelGram
        Of all rows.
    cache_bytes : int
        Memory for kernel rows.
    options : dict
        Of the solver.
    judges : ndarray, optional
        Rows whose scores are to be exact; those of others may come from float32 kernel rows.
    """

    def __init__(
        self, gram: KernelGram, cache_bytes: int, options: dict, judges: np.ndarray | None = None
    ):
        # Shared: rows of the whole matrix outlive a round.
        self.gram = GramCache(gram, cache_bytes, shared=True)
        self.options = options
        self.judges = np.empty(0, dtype=np.intp) if judges is None else judges
        self.dual: np.ndarray | None = None
        self.values: np.ndarray | None = None
        self.iterations = 0
        self.unfinished: list[Solution] = []

    def train(self, sign: np.ndarray, cost: np.ndarray) -> Machine:
        """The machine of these labels and costs, from the one before as far as that is feasible.

        Parameters
        ----------
        sign : ndarray of shape (n,)
            +1 or -1; anything where the cost is 0.
        cost : ndarray of shape (n,)
        """
        problem = HingeProblem(self.gram.of(), sign, 1.0, cost)
        state = start(problem, **self.options, **self._place(problem))
        run_in_slices(advance, state)
        solution = finish(state)
        self.dual, self.values = solution.dual, values_at(state, self.judges)
        self.iterations += solution.iterations
        if not solution.converged:
            self.unfinished.append(solution)
        return Machine(solution, self.values + solution.intercept)

    def tell(self, max_iter: int, stacklevel: int = 4) -> None:
        """Warn if a solver ended before it had converged."""
        if self.unfinished:
            warnings.warn(
                f"{early_stop_message(self.unfinished, max_iter, stopped=False)} That was so "
                f"{len(self.unfinished)} times; largest relative duality gap: "
                f"{max(solution.gap for solution in self.unfinished):.1e}.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    def exchange(self, first: np.ndarray, second: np.ndarray) -> None:
        """Let pairs of rows of opposite labels trade them, with what weighs on each label."""
        if self.dual is None:
            return
        dual = self.dual.copy()
        dual[first], dual[second] = self.dual[second], self.dual[first]
        self._move(dual)

    def _place(self, problem):
        """Where to start: at the last solution, or at what the new labels leave of it."""
        if self.dual is None:
            return {}
        # Balanced each time: what rounding leaves of the sum would grow with costs that double.
        dual = _balanced(np.clip(self.dual, *problem.bounds()))
        if (dual != self.dual).any():
            self._move(dual)
        return {"dual": self.dual, "values": self.values}

    def _move(self, dual):
        add_kernel_sum(self.gram.of(), dual - self.dual, self.values)
        self.dual = dual


def _balanced(dual):
    """The dual with sum 0: the largest entries of the heavier side give way, as few as will do."""
    excess = dual.sum()
    side = np.flatnonzero(dual * excess > 0.0)
    order = side[np.argsort(-np.abs(dual[side]), kind="stable")]
    before = np.cumsum(np.abs(dual[order])) - np.abs(dual[order])
    cut = np.clip(abs(excess) - before, 0.0, np.abs(dual[order]))
    dual[order] -= np.sign(excess) * cut
    return dual


def kernel_over(model, given, unseen=()):
    """All rows, gamma as a number, and the Gram matrix that an estimator's parameters make.

    The labelled rows ``unseen`` have no say in gamma.
    """
    X, weight = given.together(), given.weights_together()
    gamma = 0.0
    if model.kernel != "linear":
        seen = np.delete(np.arange(X.shape[0]), unseen)
        weight = None if weight is None else weight[seen]
        gamma = effective_gamma(model.gamma, X[seen] if len(unseen) else X, weight)
    return X, gamma, KernelGram(KernelFunction(model.kernel, gamma, model.degree, model.coef0), X)


def machine_of(svc: SVC, X, gamma: float, solution: Solution) -> SVC:
    """An `SVC` of the classes 0 and 1 that has this solution over rows X."""
    codes = (solution.dual > 0.0).astype(np.intp)
    training = Training(
        classes=np.arange(2),
        codes=codes,
        weight=None,
        class_weight=np.ones(2),
        class_margin=np.ones(2),
        reduction=TwoClasses(codes),
        order=np.arange(X.shape[0]),
        parameters=KernelParameters(svc.kernel, gamma, svc.degree, svc.coef0),
    )
    attributes = support_attributes(X, training, [solution])
    attributes["_expansion"].use_float32_within(svc.tol)
    vars(svc).update(attributes, n_features_in_=X.shape[1])
    return svc

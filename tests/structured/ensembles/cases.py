"""Ensembles of each kind, and samples for them."""

from sklearn.base import clone
from tests.structured.cases import MODELS, samples

from widemargin.structured import (
    CoulombSSVM,
    DiverseMultipleChoiceSSVM,
    MultipleChoiceSSVM,
    PerturbedSSVM,
)

FEW = {"C": 0.5, "tol": 0.1, "random_state": 0}
ENSEMBLES = {
    "all": CoulombSSVM(None, 3, n_steps=6, **FEW),
    "best": CoulombSSVM(None, 3, assignment="best", n_steps=6, **FEW),
    "sampled": CoulombSSVM(None, 3, assignment="sampled", n_steps=6, **FEW),
    "stochastic": CoulombSSVM(None, 3, assignment="stochastic", n_steps=6, **FEW),
    "anchored": CoulombSSVM(None, 3, solver="anchored", n_steps=2, **FEW),
    "multiple choice": MultipleChoiceSSVM(None, 3, n_rounds=2, **FEW),
    "diverse choice": DiverseMultipleChoiceSSVM(None, 3, n_rounds=2, **FEW),
    "perturbed": PerturbedSSVM(None, 3, **FEW),
}


def make_ensemble(kind, model, **parameters):
    return clone(ENSEMBLES[kind].set_params(model=clone(model))).set_params(**parameters)


def draw_samples(name, n=6, seed=0):
    model, draw_one = MODELS[name]
    return clone(model), *samples(draw_one, n, seed)


def draw_chains(n=12):
    return draw_samples("chain", n)


class Stop:
    """A callback that stops the fit after some slices of work."""

    def __init__(self, after):
        self.after, self.slices = after, 0

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.slices += context.task_name == "slice"
        return self.slices >= self.after

    def teardown(self, estimator, context):
        pass

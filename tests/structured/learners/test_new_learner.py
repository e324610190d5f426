"""A new learner is a solver state and a class with its parameters; the base class does the rest."""

import copy
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from tests.structured.cases import MODELS, samples
from tests.structured.learners.test_base import StopAfterTwo

from widemargin._base.checkpoint import CheckpointError
from widemargin.solvers.structured.problem import PassState, upper_bounds
from widemargin.structured import ChainCRF, MultiClassClf
from widemargin.structured.learners import StructuredLearner


@dataclass(kw_only=True)
class PerceptronState(PassState):
    """Averaged perceptron: the solver, which would be a file in solvers/structured."""

    average: np.ndarray = field(init=False)
    steps: int = 0

    saved = ("w", "average", "steps", "iterations")

    def __post_init__(self):
        super().__post_init__()
        self.average = self.w.copy()

    def run_pass(self):
        difference = np.empty(self.oracle.size)
        for i in self.random.permutation(self.oracle.n_samples):
            self.oracle.violation(i, self.w, difference)
            self.w = self.w + self.cost[i] * difference
            self.steps += 1
            self.average += (self.w - self.average) / self.steps

    def check_gap(self):
        objective, bound, _ = upper_bounds(self.oracle, self.average, self.cost, None)
        self.record.add(self.iterations, self.average, objective, bound, 0.0)


class Perceptron(StructuredLearner):
    """The learner, which would be a file in structured/learners."""

    def __init__(
        self, model, max_iter=20, C=0.1, tol=0.001, verbose=False, n_jobs=None, random_state=None,
        warm_start=False, checkpoint=None,
    ):  # fmt: skip
        self.model = model
        self.max_iter = max_iter
        self.C = C
        self.tol = tol
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    def _start(self, oracle, cost, seed, previous):
        return PerceptronState(
            oracle, cost, tol=self.tol, max_iter=self.max_iter, seed=seed, check_every=5,
            w=None if previous is None else previous["w"],
        )  # fmt: skip


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def chains():
    return samples(MODELS["chain"][1])


def test_it_learns_and_reports_what_learners_report():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)), axis=1)
    learner = Perceptron(MultiClassClf()).fit(X, y)
    assert learner.score(X, y) > 0.9
    assert learner.n_iter_ == 20
    assert_array_equal(learner.history_["iteration"], [5, 10, 15, 20])
    assert learner.objective_ == learner.objective_curve_[-1]
    assert learner.coef_ is learner.w
    assert vars(learner.model) == vars(MultiClassClf())


def test_its_fit_that_does_not_converge_warns(chains):
    with pytest.warns(ConvergenceWarning, match=r"tol=0.001 \(max_iter=20\)"):
        Perceptron(ChainCRF()).fit(*chains)


def test_its_copies_predict_the_same(chains):
    learner = Perceptron(ChainCRF()).fit(*chains)
    for again in (pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner)):
        for own, other in zip(again.predict(chains[0]), learner.predict(chains[0]), strict=True):
            assert_array_equal(own, other)
    with pytest.raises(NotFittedError):
        clone(learner).predict(chains[0])


def test_its_callbacks_see_every_pass_and_may_stop_the_fit(chains):
    stop = StopAfterTwo()
    learner = Perceptron(ChainCRF()).set_callbacks(stop).fit(*chains)
    assert learner.n_iter_ == 2
    assert stop.objectives[-1] == learner.objective_


def test_its_samples_are_checked(chains):
    X, Y = chains
    with pytest.raises(ValueError, match="inconsistent numbers of samples: 8 and 7"):
        Perceptron(ChainCRF()).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        Perceptron(ChainCRF()).fit(X, Y, sample_weight=-np.ones(8))
    with pytest.raises(ValueError, match="'C' parameter"):
        Perceptron(ChainCRF(), C=-1.0).fit(X, Y)


def test_its_checkpoints_resume_to_the_same_bits(chains, tmp_path):
    file = tmp_path / "state"
    whole = Perceptron(ChainCRF(), max_iter=10).fit(*chains)
    Perceptron(ChainCRF(), max_iter=5, checkpoint=file).fit(*chains)
    resumed = Perceptron(ChainCRF(), max_iter=10, checkpoint=file).fit(*chains)
    assert_array_equal(resumed.w, whole.w)
    with pytest.raises(CheckpointError, match="was written for other data"):
        Perceptron(ChainCRF(), C=7.0, checkpoint=file).fit(*chains)


def test_its_warm_start_continues(chains):
    learner = Perceptron(ChainCRF(), warm_start=True).fit(*chains)
    before = learner.w
    assert not np.array_equal(learner.fit(*chains).w, before)
    other = chains[0][:-1], chains[1][:-1]
    assert_array_equal(learner.fit(*other).w, Perceptron(ChainCRF()).fit(*other).w)


def test_a_search_sets_its_parameters(chains):
    grid = {"C": [0.01, 0.1], "model__directed": [True, False]}
    search = GridSearchCV(Perceptron(ChainCRF(n_states=3)), grid, cv=2).fit(*chains)
    assert set(search.best_params_) == set(grid)

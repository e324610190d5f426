"""Every input and output is parsed once in a fit, and once in a prediction."""

from collections import Counter

import numpy as np
import pytest
from tests.structured.cases import MODELS, samples

from widemargin.structured import (
    BinaryClf,
    ChainCRF,
    EdgeFeatureGraphCRF,
    FrankWolfeSSVM,
    GridCRF,
    MultiClassClf,
    MultiLabelClf,
    OneSlackSSVM,
    PerturbedSSVM,
    SubgradientSSVM,
)

COUNTS = Counter()


def counting(kind):
    """Return a subclass that counts how often inputs and outputs are parsed."""

    class Counting(kind):
        def parse_input(self, x):
            COUNTS["inputs"] += 1
            return super().parse_input(x)

        def states(self, y):
            COUNTS["outputs"] += 1
            return super().states(y)

    return Counting()


KINDS = {
    "chain": ChainCRF,
    "edge features": EdgeFeatureGraphCRF,
    "grid": GridCRF,
    "classes": MultiClassClf,
    "two classes": BinaryClf,
    "tree of labels": MultiLabelClf,
}
ESTIMATORS = {
    "frank-wolfe": FrankWolfeSSVM(None, tol=0.1, max_iter=5),
    "frank-wolfe, warm": FrankWolfeSSVM(None, tol=0.1, max_iter=5, warm_start=True),
    "one slack": OneSlackSSVM(None, tol=0.1, max_iter=5, inference_cache=2),
    "subgradient": SubgradientSSVM(None, tol=0.1, max_iter=5),
    "perturbed": PerturbedSSVM(None, 2, tol=0.1, max_iter=5),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_fit_parses_every_input_and_output_once(estimator, name):
    X, Y = samples(MODELS[name][1])
    COUNTS.clear()
    ESTIMATORS[estimator].set_params(model=counting(KINDS[name])).fit(X, Y)
    assert COUNTS == {"inputs": 8, "outputs": 8}


@pytest.mark.parametrize("name", KINDS)
def test_predictions_and_scores_parse_once(name):
    X, Y = samples(MODELS[name][1])
    learner = FrankWolfeSSVM(counting(KINDS[name]), tol=0.1, max_iter=5).fit(X, Y)
    COUNTS.clear()
    learner.predict(X)
    assert COUNTS == {"inputs": 8}
    learner.score(X, Y)
    # The outputs are the true and the predicted ones.
    assert COUNTS == {"inputs": 16, "outputs": 16}


def test_a_checkpoint_needs_no_second_look(tmp_path):
    X, Y = samples(MODELS["chain"][1])
    learner = FrankWolfeSSVM(counting(ChainCRF), max_iter=3, checkpoint=tmp_path / "state")
    COUNTS.clear()
    learner.fit(X, Y)
    assert COUNTS == {"inputs": 8, "outputs": 8}
    assert np.isfinite(learner.objective_)

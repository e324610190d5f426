"""LatentSSVM: the objective by enumeration decreases in every round."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.structured.cases import samples
from tests.structured.models.test_latent import LATENT, all_latent
from tests.structured.models.test_models import OwnClasses

from widemargin.structured import (
    FrankWolfeSSVM,
    LatentGraphCRF,
    LatentGridCRF,
    LatentNodeCRF,
    LatentSSVM,
    NSlackSSVM,
    OneSlackSSVM,
    StructuredPerceptron,
    SubgradientSSVM,
)
from widemargin.structured.datasets import generate_crosses
from widemargin.structured.utils import SaveLogger

BASES = {
    "frank-wolfe": FrankWolfeSSVM(None, C=2.0, tol=0.01, max_iter=20_000),
    "one slack": OneSlackSSVM(None, C=2.0, tol=1e-4),
    "one slack with cache": OneSlackSSVM(None, C=2.0, tol=1e-4, inference_cache=5),
    "n slacks": NSlackSSVM(None, C=2.0, tol=1e-4),
    "subgradient": SubgradientSSVM(
        None, C=2.0, tol=0.05, max_iter=5000, averaging="linear", shuffle=True
    ),
}


def latent_objective(model, w, X, Y, C, n_hidden):
    total = 0.5 * w @ w
    for x, y in zip(X, Y, strict=True):
        outputs = all_latent(model, y, n_hidden)
        scores = np.array([w @ model.joint_feature(x, h) for h in outputs])
        labels = [model.label_from_latent(h) for h in outputs]
        losses = np.array([model.base_loss(y, own) for own in labels])
        same = [np.array_equal(own, y) for own in labels]
        total += C * ((scores + losses).max() - scores[same].max())
    return total


@pytest.mark.parametrize("name", LATENT)
@pytest.mark.parametrize("base", BASES)
def test_the_objective_decreases_in_every_round(base, name):
    model, draw_one = LATENT[name]
    X, Y = samples(draw_one, n=8, seed=1)
    learner = LatentSSVM(clone(BASES[base].set_params(model=clone(model))), latent_iter=6)
    learner.fit(X, Y)
    assert (np.diff(learner.objective_curve_) < 0.0).all()
    n_hidden = 2 if "hidden" in name else 0
    expected = latent_objective(learner.model_, learner.w, X, Y, 2.0, n_hidden)
    assert_allclose(learner.objective_, expected, rtol=1e-6)
    assert learner.objective_ == learner.objective_curve_[-1]
    for x, y, h in zip(X, Y, learner.H_, strict=True):
        assert_array_equal(learner.model_.label_from_latent(h), y)
        assert_array_equal(learner.model_.latent(x, y, learner.w), h)


def test_some_fits_take_several_rounds():
    X, Y = samples(LATENT["graph"][1], n=30, seed=1)
    rng = np.random.default_rng(0)
    H = [np.where(y == 1, rng.integers(1, 3, size=len(y)), 0) for y in Y]
    model = LatentGraphCRF(n_states_per_label=[1, 2])
    # Random states are close to a stationary point at which both states of a label are the same;
    # a larger tol may end there, depending on rounding errors.
    learner = LatentSSVM(NSlackSSVM(model, C=2.0, tol=1e-6), latent_iter=10).fit(X, Y, H_init=H)
    assert learner.n_iter_ >= 3
    assert learner.H_init_ is H
    assert_array_equal(learner.base_ssvm_.w, learner.w)
    # The base learner has the states of the round before, which are not the best ones.
    assert learner.base_ssvm_.objective_ >= learner.objective_
    assert not hasattr(learner.base_ssvm_, "_previous")
    once = LatentSSVM(NSlackSSVM(model, C=2.0), latent_iter=1).fit(X, Y, H_init=H)
    assert once.n_iter_ == 1
    assert learner.objective_ < once.objective_


def test_latent_states_learn_what_no_label_can():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=(80, 1))
    side = rng.choice([-1.0, 1.0], size=80)
    points = np.column_stack([3.0 * side * y[:, 0] + 0.3 * rng.normal(size=80), np.ones(80)])
    X = [(row[np.newaxis], np.empty((0, 2), dtype=int)) for row in points]
    plain = LatentSSVM(NSlackSSVM(LatentGraphCRF(n_states_per_label=1), C=1.0)).fit(X, y)
    rich = LatentSSVM(NSlackSSVM(LatentGraphCRF(n_states_per_label=[1, 2]), C=1.0)).fit(X, y)
    assert plain.score(X, y) < 0.9
    assert rich.score(X, y) == 1.0
    latent = np.concatenate(rich.predict_latent(X))
    assert set(latent) == {0, 1, 2}
    assert_array_equal(np.concatenate(rich.predict(X)), y.ravel())


def test_samples_without_weight_do_not_count():
    X, Y = samples(LATENT["graph"][1], n=8)
    model = LatentGraphCRF(n_labels=2, n_states_per_label=1)
    weight = np.array([2.0, 0, 1, 1, 0, 1, 1, 1])
    base = NSlackSSVM(model, C=0.5, tol=1e-6)
    fitted = LatentSSVM(base).fit(X, Y, sample_weight=weight)
    copies = [0, 0, 2, 3, 5, 6, 7]
    other = LatentSSVM(base).fit([X[i] for i in copies], [Y[i] for i in copies])
    assert fitted.objective_ == pytest.approx(other.objective_, rel=1e-5)


def test_a_fit_changes_no_parameter():
    X, Y = generate_crosses(n_samples=4, noise=3, n_crosses=1, total_size=6)
    base = OneSlackSSVM(LatentGridCRF(n_states_per_label=[1, 2]), C=1.0, tol=0.1)
    learner = LatentSSVM(base, latent_iter=2)
    before, of_model = learner.get_params(), base.model.get_params()
    learner.fit(X, Y)
    assert learner.get_params().keys() == before.keys()
    assert learner.base_ssvm is base
    assert base.model.get_params() == of_model
    assert not hasattr(base, "w")
    assert learner.coef_ is learner.w
    assert learner.model is base.model
    with pytest.raises(NotFittedError):
        clone(learner).predict(X)


def test_other_learners_and_models_are_refused():
    X, Y = generate_crosses(n_samples=2, noise=3, n_crosses=1, total_size=6)
    with pytest.raises(TypeError, match="base_ssvm must be a structured SVM whose model has"):
        LatentSSVM(OneSlackSSVM(OwnClasses())).fit(X, Y)
    with pytest.raises(TypeError, match="base_ssvm must be a structured SVM whose model has"):
        LatentSSVM(StructuredPerceptron(LatentGridCRF())).fit(X, Y)
    with pytest.raises(ValueError, match="The 'base_ssvm' parameter"):
        LatentSSVM(LatentGridCRF()).fit(X, Y)
    with pytest.raises(ValueError, match="H_init must have 2 latent outputs, got 1"):
        LatentSSVM(OneSlackSSVM(LatentGridCRF())).fit(X, Y, H_init=[Y[0]])
    with pytest.raises(TypeError, match=r"no argument 'logger'\. Pass it to the base learner"):
        LatentSSVM(OneSlackSSVM(LatentGridCRF()), logger=SaveLogger("file"))
    with pytest.raises(ValueError, match="latent_iter"):
        LatentSSVM(OneSlackSSVM(LatentNodeCRF()), latent_iter=0).fit(X, Y)


def test_states_to_start_from_must_have_the_labels():
    X, Y = samples(LATENT["graph"][1])
    learner = LatentSSVM(NSlackSSVM(clone(LATENT["graph"][0])))
    with pytest.raises(ValueError, match=r"H_init\[\d\] must contain states of the labels Y"):
        learner.fit(X, Y, H_init=[np.where(y == 1, 0, 1) for y in Y])
    with pytest.raises(ValueError, match=r"H_init\[0\] must contain labels 0 to 2, got 9"):
        learner.fit(X, Y, H_init=[np.full(len(y), 9) for y in Y])


def test_checkpoints_of_the_base_learner_are_refused(tmp_path):
    X, Y = samples(LATENT["graph"][1])
    base = NSlackSSVM(clone(LATENT["graph"][0]), checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match="base_ssvm must have checkpoint=None"):
        LatentSSVM(base).fit(X, Y)


def test_states_get_no_worse_where_inference_is_not_exact(monkeypatch):
    X, Y = samples(LATENT["graph"][1], n=6)
    best = LatentGraphCRF.latent
    worst = lambda self, x, y, w: best(self, x, y, -w)  # noqa: E731
    monkeypatch.setattr(LatentGraphCRF, "latent", worst)
    learner = LatentSSVM(NSlackSSVM(clone(LATENT["graph"][0]), C=2.0), latent_iter=1).fit(X, Y)
    model, w = learner.model_, learner.w
    for x, first, last in zip(X, learner.H_init_, learner.H_, strict=True):
        assert w @ model.joint_feature(x, last) >= w @ model.joint_feature(x, first)

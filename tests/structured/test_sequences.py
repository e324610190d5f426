"""Sequences as users have them: named features, string labels, weights by label, no samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.structured.cases import MODELS, exact_objective, samples
from tests.structured.learners.cases import LEARNERS, new

from widemargin.structured import (
    BinaryClf,
    ChainCRF,
    CoulombSSVM,
    FrankWolfeSSVM,
    GraphCRF,
    GridCRF,
    MultiClassClf,
    NodeTransformer,
    PerturbedSSVM,
    StructuredPerceptron,
    flat_scorer,
    jaccard_index,
)

WORDS = {"the": "DET", "a": "DET", "dog": "NOUN", "saw": "VERB", "runs": "VERB", "cat": "NOUN"}


def sentences(n=40, seed=0):
    rng = np.random.default_rng(seed)
    words = [list(rng.choice(list(WORDS), size=rng.integers(1, 6))) for _ in range(n)]
    return words, [[WORDS[word] for word in sentence] for sentence in words]


def as_dicts(sentence):
    return [
        {"word": str(word), "first": float(place == 0), "previous": str(sentence[place - 1])}
        for place, word in enumerate(sentence)
    ]


def as_strings(sentence):
    return [[f"word={word}", f"end={word[-1]}"] for word in sentence]


@pytest.mark.parametrize("vectorizer", [DictVectorizer(), FeatureHasher(64)])
@pytest.mark.parametrize("name_features", [as_dicts, as_strings])
@pytest.mark.parametrize("learner", [*LEARNERS, "perceptron"])
def test_strings_go_in_and_labels_come_out(learner, name_features, vectorizer):
    words, Y = sentences()
    X = [name_features(sentence) for sentence in words]
    if learner == "perceptron":
        last = StructuredPerceptron(ChainCRF(), average=False)
    else:
        last = new(learner, ChainCRF(), C=10.0, tol=0.1)
    pipeline = make_pipeline(NodeTransformer(vectorizer), last).fit(X, Y)
    found = pipeline.predict(X)
    assert [list(labels) for labels in found] == Y
    assert pipeline.score(X, Y) == 1.0
    assert list(pipeline[-1].model_.classes_) == ["DET", "NOUN", "VERB"]
    assert pipeline.predict([]) == []


def test_named_features_are_those_of_the_vectorizer():
    words, _ = sentences(5)
    X = [as_dicts(sentence) for sentence in words]
    transformer = NodeTransformer(DictVectorizer()).fit(X)
    flat = DictVectorizer().fit_transform([node for x in X for node in x])
    stacked = np.concatenate([x.toarray() for x in transformer.transform(X)])
    assert_array_equal(stacked, flat.toarray())
    edges = np.array([[0, 1]])
    features, same = transformer.transform([(X[0], edges)])[0]
    assert_array_equal(features.toarray(), flat.toarray()[: len(X[0])])
    assert same is edges


@pytest.mark.parametrize("name", ["classes", "chain", "graph", "grid", "edge features"])
def test_string_labels_give_the_weights_of_integers(name):
    model, draw_one = MODELS[name]
    X, Y = samples(draw_one)
    names = np.array(["apple", "pear", "plum"])
    plain = FrankWolfeSSVM(clone(model), C=0.3, tol=0.01).fit(X, Y)
    named = FrankWolfeSSVM(clone(model), C=0.3, tol=0.01).fit(X, [names[y] for y in Y])
    assert_array_equal(named.w, plain.w)
    for own, other in zip(named.predict(X), plain.predict(X), strict=True):
        assert_array_equal(own, names[other])
    assert named.score(X, [names[y] for y in Y]) == plain.score(X, Y)
    # The model that was fitted to strings may be fitted to integers again.
    assert_array_equal(named.fit(X, Y).w, plain.w)


def test_labels_that_training_data_do_not_have_are_named():
    X, Y = samples(MODELS["chain"][1])
    learner = FrankWolfeSSVM(ChainCRF(), C=0.3).fit(X, [np.array(["a", "b", "c"])[y] for y in Y])
    with pytest.raises(ValueError, match=r"labels of the training data, got \['z'\]"):
        learner.model_.loss(["a", "z"], ["a", "a"])
    with pytest.raises(ValueError, match="labels of the training data, got "):
        learner.score(X, Y)
    with pytest.raises(ValueError, match="integers from 0 or strings"):
        FrankWolfeSSVM(ChainCRF()).fit(X, [y + 0.5 for y in Y])
    refused = {
        np.nan: "integers from 0 or strings",
        1: "integers from 0 or strings",
        None: "y must contain a label for each part, got None",
    }
    for other, message in refused.items():
        mixed = [["a"] * (len(y) - 1) + [other] for y in Y]
        with pytest.raises(ValueError, match=message):
            FrankWolfeSSVM(ChainCRF()).fit(X, mixed)


@pytest.mark.parametrize("vectorizer", [DictVectorizer(), FeatureHasher(64)])
def test_sentences_and_words_may_be_empty(vectorizer):
    words, Y = sentences()
    X = [as_strings(sentence) for sentence in words]
    last = StructuredPerceptron(ChainCRF(), average=False, shuffle=False)
    tagger = make_pipeline(NodeTransformer(vectorizer), last)
    expected = clone(tagger).fit(X, Y).predict(X)
    found = tagger.fit([[], *X], [[], *Y]).predict([[], *X])
    assert [len(y) for y in found] == [0, *map(len, words)]
    for own, other in zip(found[1:], expected, strict=True):
        assert_array_equal(own, other)
    assert tagger.score([[], *X], [[], *Y]) == tagger.score(X, Y)
    assert [len(y) for y in tagger.predict([[], []])] == [0, 0]
    no_features = tagger.predict([[[], []], [{}, {}], [[], ["word=the"], {"word": "unseen"}]])
    assert_array_equal(no_features[0], no_features[1])
    assert len(no_features[2]) == 3


def test_named_features_and_arrays_are_not_mixed():
    with pytest.raises(ValueError, match="for all inputs or for none"):
        NodeTransformer(DictVectorizer()).fit([[{"a": 1.0}], np.eye(2)])


@pytest.mark.parametrize("weight", [None, "balanced"])
@pytest.mark.parametrize("names", [np.array(["a", "b", "c", "z"]), np.arange(4)])
def test_labels_that_training_data_do_not_have_are_mistakes_in_scores(names, weight):
    # As with scikit-learn's accuracy: a fold of a search may have a rare label alone.
    X, Y = samples(MODELS["chain"][1])
    learner = FrankWolfeSSVM(ChainCRF(class_weight=weight), C=0.3).fit(X, [names[y] for y in Y])
    found = learner.predict(X)
    assert learner.score(X, [np.full(len(y), names[3]) for y in Y]) == 0.0
    assert learner.score(X, found) == 1.0
    half = [np.where(np.arange(len(y)) == 0, names[3], y) for y in found]
    assert 0.0 < learner.score(X, half) < 1.0


def test_states_without_a_string_are_refused():
    X, Y = samples(MODELS["chain"][1])
    Y = [np.array(["a", "b", "c"])[y] for y in Y]
    with pytest.raises(ValueError, match="got 5 states and 3 labels"):
        FrankWolfeSSVM(ChainCRF(n_states=5)).fit(X, Y)


def test_ensembles_predict_string_labels():
    X, Y = samples(MODELS["chain"][1], 10)
    Y = [np.array(["a", "b", "c"])[y] for y in Y]
    ensemble = CoulombSSVM(ChainCRF(), 3, C=0.5, n_steps=5, tol=0.1).fit(X, Y)
    assert ensemble.predict(X)[0].dtype.kind == "U"
    assert ensemble.pick_best_score(X, Y) >= ensemble.score(X, Y)
    assert ensemble.predict([]) == []
    assert ensemble.predict_all([]) == []


BALANCED = {
    "classes": MultiClassClf(class_weight="balanced"),
    "two classes": BinaryClf(class_weight="balanced"),
    "chain": ChainCRF(class_weight="balanced"),
    "graph": GraphCRF(class_weight="balanced"),
    "grid": GridCRF(class_weight="balanced"),
}


@pytest.mark.parametrize("name", BALANCED)
def test_balanced_weights_give_every_label_the_same_total(name):
    X, Y = samples(MODELS[name][1])
    fitted = FrankWolfeSSVM(clone(BALANCED[name]), C=0.3, tol=1e-3, max_iter=5000).fit(X, Y)
    states = np.concatenate([fitted.model_.states(y) for y in Y])
    totals = np.bincount(states) * fitted.model_.class_weight_
    assert_allclose(totals, len(states) / len(totals))
    best = exact_objective(fitted.model_, X, Y, 0.3)
    assert best - 1e-6 <= fitted.objective_ <= best / (1.0 - fitted.dual_gap_) + 1e-6
    ensemble = PerturbedSSVM(clone(BALANCED[name]), 2, C=0.3, tol=0.1).fit(X, Y)
    assert_array_equal(ensemble.model_.class_weight_, fitted.model_.class_weight_)


def test_a_label_that_does_not_occur_has_weight_one():
    X, Y = samples(MODELS["chain"][1])
    fitted = FrankWolfeSSVM(ChainCRF(n_states=5, class_weight="balanced"), C=0.3).fit(X, Y)
    assert_array_equal(fitted.model_.class_weight_[3:], 1.0)


def test_weights_by_label_are_those_of_the_array():
    X, Y = samples(MODELS["chain"][1])
    names = np.array(["a", "b", "c"])
    array = FrankWolfeSSVM(ChainCRF(class_weight=[1.0, 2.0, 0.5]), C=0.3).fit(X, Y)
    by_number = FrankWolfeSSVM(ChainCRF(class_weight={1: 2.0, 2: 0.5}), C=0.3).fit(X, Y)
    by_name = FrankWolfeSSVM(ChainCRF(class_weight={"b": 2.0, "c": 0.5}), C=0.3)
    by_name.fit(X, [names[y] for y in Y])
    assert_array_equal(by_number.w, array.w)
    assert_array_equal(by_name.w, array.w)
    signs = samples(MODELS["two classes"][1])
    weighted = FrankWolfeSSVM(BinaryClf(class_weight={-1: 3.0}), C=0.3).fit(*signs)
    weights = zip(weighted.model_.state_labels(), weighted.model_.class_weight_, strict=True)
    assert dict(weights) == {-1: 3.0, 1: 1.0}


@pytest.mark.parametrize("weight", ["even", {"d": 1.0}, [1.0], {0: -1.0}])
def test_class_weights_that_make_no_sense_are_refused(weight):
    X, Y = samples(MODELS["chain"][1])
    with pytest.raises(ValueError, match="class_weight must"):
        FrankWolfeSSVM(ChainCRF(class_weight=weight)).fit(X, Y)


def test_balanced_weights_need_training_data():
    model = ChainCRF(n_states=2, n_features=1, class_weight="balanced")
    with pytest.raises(ValueError, match="fit or initialize"):
        model.loss([0, 1], [1, 1])


def test_the_jaccard_index_is_intersection_over_union():
    rng = np.random.default_rng(0)
    Y = [rng.integers(3, size=(4, 5)) for _ in range(6)]
    other = [np.where(rng.random(y.shape) < 0.3, rng.integers(3, size=y.shape), y) for y in Y]
    flat, guess = np.ravel(Y), np.ravel(other)
    shares = [
        np.sum((flat == k) & (guess == k)) / np.sum((flat == k) | (guess == k)) for k in range(3)
    ]
    assert jaccard_index(Y, other) == pytest.approx(np.mean(shares))
    assert jaccard_index(Y, other, labels=[1, 2]) == pytest.approx(np.mean(shares[1:]))
    assert jaccard_index(Y, Y) == 1.0


def test_a_search_may_use_a_metric_of_labels():
    words, Y = sentences()
    X = [as_strings(sentence) for sentence in words]
    learner = make_pipeline(NodeTransformer(DictVectorizer()), FrankWolfeSSVM(ChainCRF(), tol=0.1))
    scorer = flat_scorer(f1_score, average="macro", labels=["NOUN", "VERB"])
    search = GridSearchCV(
        learner, {"frankwolfessvm__C": [1e-4, 10.0]}, scoring=scorer, cv=2, error_score="raise"
    ).fit(X, Y)
    found = np.concatenate(search.predict(X))
    expected = f1_score(np.concatenate(Y), found, average="macro", labels=["NOUN", "VERB"])
    assert search.score(X, Y) == expected == 1.0

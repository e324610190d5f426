"""LabelTreeClassifier: node problems, search, forms of labels, refusals."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tests.labeltree.cases import classes, documents

from widemargin import CrammerSingerSVC, LabelTreeClassifier, LinearSVC
from widemargin._base.options import label_tree_options

pytestmark = pytest.mark.large

SMALL = {"branching": 3, "max_leaf_size": 5}
PRECISE = {"prune": 0.0, "tol": 1e-8, "max_iter": 10_000}


def dense_weights(model, tree, node, n_features):
    """Return the weights of the children of a node, the constant feature last."""
    weights, first = model.weights_[tree], model.trees_[tree].first_child
    matrix = np.zeros((first[node + 1] - first[node], n_features + 1))
    for j in range(weights.feature_start[node], weights.feature_start[node + 1]):
        entries = slice(weights.entry_start[j], weights.entry_start[j + 1])
        matrix[weights.child[entries], weights.features[j]] = weights.value[entries]
    return matrix


def labels_below(tree, node):
    if tree.label[node] >= 0:
        return {int(tree.label[node])}
    children = range(tree.first_child[node], tree.first_child[node + 1])
    return set().union(*(labels_below(tree, child) for child in children))


def reaching(tree, node, Y):
    """Return which samples have a label below a node; all reach the root."""
    if node == 0:
        return np.ones(len(Y), bool)
    return Y[:, sorted(labels_below(tree, node))].any(axis=1)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_node_problems_reach_the_objective_of_linear_svc(loss):
    X, Y = documents()
    scaling = {"C": 0.7, "intercept_scaling": 2.0}
    model = LabelTreeClassifier(loss=loss, **scaling, **SMALL, **PRECISE).fit(X, Y)
    tree, dense = model.trees_[0], Y.toarray()
    assert len(tree.inner_nodes()) > 5
    for node in tree.inner_nodes():
        rows = reaching(tree, node, dense)
        for child, weights in enumerate(dense_weights(model, 0, node, X.shape[1])):
            positive = reaching(tree, tree.first_child[node] + child, dense)[rows]
            if positive.all():
                continue
            exact = LinearSVC(loss=loss, dual=True, tol=1e-10, max_iter=100_000, **scaling)
            exact.fit(X[rows], positive)
            sign = np.where(positive, 1.0, -1.0)
            slack = np.maximum(0.0, 1.0 - sign * (X[rows] @ weights[:-1] + weights[-1]))
            losses = slack**2 if loss == "squared_hinge" else slack
            norm = np.sum(weights[:-1] ** 2) + (weights[-1] / 2.0) ** 2
            objective = 0.5 * norm + 0.7 * np.sum(losses)
            assert objective == pytest.approx(exact.objective_[0], rel=1e-5)


def test_a_joint_node_reaches_the_weights_of_crammer_singer_svc():
    X, y = classes()
    model = LabelTreeClassifier(loss="crammer_singer", C=1.0, **PRECISE).fit(X, y)
    exact = CrammerSingerSVC(tol=1e-8).fit(X, y)
    weights = dense_weights(model, 0, 0, X.shape[1])
    np.testing.assert_allclose(weights[:, :-1], exact.coef_, atol=1e-5)
    np.testing.assert_allclose(weights[:, -1], exact.intercept_, atol=1e-5)
    assert (model.predict(X) == exact.predict(X)).mean() > 0.99


def test_probabilities_are_products_of_logistic_regressions():
    X, y = classes()
    model = LabelTreeClassifier(loss="log", C=5.0, **SMALL, **PRECISE).fit(X, y)
    tree = model.trees_[0]
    parents, products = tree.parents(), np.ones((X.shape[0], tree.n_nodes))
    codes = np.searchsorted(model.classes_, y)
    for node in range(1, tree.n_nodes):
        parent = parents[node]
        rows = np.isin(codes, sorted(labels_below(tree, parent)))
        positive = np.isin(codes[rows], sorted(labels_below(tree, node)))
        Z = np.hstack([X.toarray(), np.ones((X.shape[0], 1))])
        exact = LogisticRegression(C=5.0, fit_intercept=False, tol=1e-10).fit(Z[rows], positive)
        products[:, node] = products[:, parent] * exact.predict_proba(Z)[:, 1]
    leaves = np.flatnonzero(tree.label >= 0)
    expected = np.empty((X.shape[0], 40))
    expected[:, tree.label[leaves]] = products[:, leaves]
    np.testing.assert_allclose(np.exp(model.decision_function(X)), expected, atol=1e-5)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)
    X, Y = documents()
    several = LabelTreeClassifier(loss="log", **SMALL).fit(X, Y)
    np.testing.assert_array_equal(several.predict_proba(X), np.exp(several.decision_function(X)))
    assert not hasattr(LabelTreeClassifier(), "predict_proba")


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "log", "crammer_singer"])
@pytest.mark.parametrize("partition", ["centroids", "random", "huffman"])
def test_a_beam_of_full_width_equals_exhaustive_scores(loss, partition):
    X, Y = documents()
    model = LabelTreeClassifier(loss=loss, partition=partition, beam_width=100, **SMALL)
    model.fit(X, Y)
    scores = model.decision_function(X)
    labels, found = model.predict_topk(X, 40)
    np.testing.assert_array_equal(np.sort(labels, axis=1), np.tile(np.arange(40), (len(labels), 1)))
    np.testing.assert_array_equal(found, np.take_along_axis(scores, labels, axis=1))
    assert (np.diff(found, axis=1) <= 0).all()


@pytest.mark.parametrize("exponent", [1, 2, 4])
def test_scores_are_the_sums_of_negative_powers_of_the_slack_on_the_path(exponent):
    X, Y = documents()
    model = LabelTreeClassifier(score_exponent=exponent, **SMALL).fit(X, Y)
    tree = model.trees_[0]
    parents, expected = tree.parents(), np.zeros((X.shape[0], 40))
    for leaf in np.flatnonzero(tree.label >= 0):
        node = leaf
        while parents[node] >= 0:
            parent = parents[node]
            weights = dense_weights(model, 0, parent, X.shape[1])[node - tree.first_child[parent]]
            slack = np.maximum(0.0, 1.0 - X @ weights[:-1] - weights[-1])
            expected[:, tree.label[leaf]] -= slack**exponent
            node = parent
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    subset = model.decision_function(X, candidates=[7, 3])
    np.testing.assert_array_equal(subset, model.decision_function(X)[:, [7, 3]])


def test_the_exponent_of_scores_follows_the_number_of_labels_per_sample():
    X, Y = documents()
    Y = Y.toarray()
    for y, exponent in ((Y, 4), (np.tile(Y, 2), 3), (np.tile(Y, 8), 2)):
        automatic = LabelTreeClassifier().fit(X, y).predict_topk(X)[1]
        passed = LabelTreeClassifier(score_exponent=exponent).fit(X, y)
        np.testing.assert_array_equal(automatic, passed.predict_topk(X)[1])
        passed.set_params(score_exponent=1)  # a fitted model does not depend on its parameters
        np.testing.assert_array_equal(automatic, passed.predict_topk(X)[1])


@pytest.mark.parametrize("partition", ["centroids", "huffman"])
@pytest.mark.parametrize("k", [1, 3, 12])
def test_nodes_that_cannot_change_the_best_labels_are_left_out_without_loss(partition, k):
    X, Y = documents(n_samples=120)
    model = LabelTreeClassifier(partition=partition, beam_width=3, **SMALL).fit(X, Y)
    labels, scores = model.predict_topk(X, k)
    for i in range(len(labels)):
        best, values = plain_beam_search(model, X[[i]], max(3, k), k)
        np.testing.assert_array_equal(labels[i], best)
        np.testing.assert_allclose(scores[i], values, rtol=1e-9)


def plain_beam_search(model, x, beam, k):
    """Return the k best labels and their scores: every node of the beam is evaluated."""
    tree, level, found = model.trees_[0], [(0.0, 0)], []
    while level:
        children = []
        for path, node in level:
            weights = dense_weights(model, 0, node, x.shape[1])
            slack = np.maximum(0.0, 1.0 - weights @ np.append(x.toarray(), 1.0))
            first = tree.first_child[node]
            children += [(path - loss, first + c) for c, loss in enumerate(slack**4)]
        found += [(path, tree.label[node]) for path, node in children if tree.label[node] >= 0]
        inner = [child for child in children if tree.label[child[1]] < 0]
        level = sorted(inner, key=lambda child: (-child[0], child[1]))[:beam]
    best = sorted(found, key=lambda entry: (-entry[0], entry[1]))[:k]
    return [label for _, label in best], [path for path, _ in best]


def test_probabilities_are_averaged_over_trees():
    X, Y = documents()
    model = LabelTreeClassifier(n_trees=3, random_state=1, beam_width=100, **SMALL).fit(X, Y)
    assert not np.array_equal(model.trees_[0].label, model.trees_[1].label)
    single = []
    for tree, weights in zip(model.trees_, model.weights_, strict=True):
        one = LabelTreeClassifier(**SMALL).fit(X, Y)
        one.trees_, one.weights_ = [tree], [weights]
        single.append(np.exp(one.decision_function(X)))
    np.testing.assert_allclose(np.exp(model.decision_function(X)), np.mean(single, axis=0))
    _, scores = model.predict_topk(X, 5)
    best = -np.sort(-np.mean(single, axis=0), axis=1)[:, :5]
    np.testing.assert_allclose(np.exp(scores), best, rtol=1e-9)


@pytest.mark.parametrize("threads", [1, 3])
def test_large_nodes_and_any_number_of_threads_give_the_same_bits(monkeypatch, threads):
    X, Y = documents()
    expected = LabelTreeClassifier(**SMALL).fit(X, Y)
    monkeypatch.setattr(label_tree_options, "large_node", 50)
    monkeypatch.setattr("widemargin._base.threads.effective_threads", lambda: threads)
    model = LabelTreeClassifier(**SMALL).fit(X, Y)
    for one, other in zip(model.weights_[0].arrays(), expected.weights_[0].arrays(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_single_samples_score_as_in_a_batch():
    X, Y = documents()
    model = LabelTreeClassifier(**SMALL).fit(X, Y)
    labels, scores = model.predict_topk(X, 3)
    for i in range(0, 300, 37):
        label, score = model.predict_topk(X[[i]], 3)
        np.testing.assert_array_equal(label[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


def test_nodes_may_have_more_children_than_a_byte_counts():
    X, y = classes(n_samples=600, n_classes=300)
    wide = LabelTreeClassifier(max_leaf_size=300, C=10.0).fit(X, y)
    assert wide.weights_[0].child.dtype == np.uint16
    assert wide.weights_[0].child.max() == 299
    assert LabelTreeClassifier().fit(X, y).weights_[0].child.dtype == np.uint8
    assert wide.score(X, y) > 0.8


def test_pruning_drops_the_weights_of_small_contribution():
    X, Y = documents()
    full = LabelTreeClassifier(prune=0.0).fit(X, Y)
    pruned = LabelTreeClassifier(prune=0.1).fit(X, Y)
    weights = dense_weights(full, 0, 0, X.shape[1])
    typical = np.sqrt(X.power(2).sum(axis=0) / (X != 0).sum(axis=0))
    small = np.abs(weights[:, :-1]) * typical * np.sqrt(X.nnz / 300) <= 0.1
    assert 0.1 < small[weights[:, :-1] != 0].mean() < 0.9
    weights[:, :-1][small] = 0.0
    np.testing.assert_array_equal(dense_weights(pruned, 0, 0, X.shape[1]), weights)
    # Units of features do not matter for what is dropped.
    scaled = LabelTreeClassifier(prune=0.1, C=1e4).fit(0.01 * X, Y)
    assert len(scaled.weights_[0].value) == pytest.approx(len(pruned.weights_[0].value), rel=0.2)


def test_labels_of_any_kind_are_predicted_in_their_form():
    X, y = classes()
    model = LabelTreeClassifier(C=1.0, **SMALL).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.95
    X, Y = documents()
    dense = LabelTreeClassifier(C=1.0, **SMALL).fit(X, Y.toarray()).predict(X)
    assert isinstance(dense, np.ndarray)
    assert dense.dtype == Y.dtype
    sparse = LabelTreeClassifier(C=1.0, **SMALL).fit(X, Y).predict(X)
    assert sp.issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), dense)
    names = np.array([f"tag {k:02}" for k in range(40)])
    lists = [names[row.indices].tolist() for row in map(sp.coo_array.tocsr, map(sp.coo_array, Y))]
    predicted = LabelTreeClassifier(C=1.0, **SMALL).fit(X, lists).predict(X)
    assert predicted == [names[row.nonzero()[0]].tolist() for row in dense]
    assert (dense & Y.toarray()).sum() > 0.75 * Y.sum()


def test_labels_without_samples_are_never_predicted():
    X, Y = documents()
    wider = sp.hstack([Y, sp.csr_array((300, 5), dtype=int)]).tocsr()
    model = LabelTreeClassifier(**SMALL).fit(X, wider)
    assert len(model.classes_) == 45
    np.testing.assert_array_equal(model.decision_function(X)[:, 40:], -np.inf)
    assert model.predict_topk(X, 40)[0].max() == 39
    with pytest.raises(ValueError, match="k must be an integer from 1 to 40"):
        model.predict_topk(X, 41)


def test_samples_without_features_or_labels_are_accepted():
    X, Y = documents()
    X, Y = (
        sp.vstack([X, sp.csr_array((2, 60))]).tocsr(),
        sp.vstack([Y, sp.csr_array((2, 40), dtype=int)]),
    )
    model = LabelTreeClassifier(**SMALL).fit(X, Y)
    assert np.isfinite(model.predict_topk(X[-2:], 3)[1]).all()
    assert model.predict(X).shape == (302, 40)


def test_features_without_values_change_nothing():
    X, Y = documents()
    wider = sp.hstack([X, sp.csr_array((300, 7))]).tocsr()
    one, other = LabelTreeClassifier(**SMALL).fit(X, Y), LabelTreeClassifier(**SMALL).fit(wider, Y)
    np.testing.assert_array_equal(one.predict_topk(X, 5)[1], other.predict_topk(wider, 5)[1])


def test_a_tree_is_used_as_it_is_passed():
    X, y = classes(n_classes=6)
    nested = [["class 0", "class 3"], ["class 1", ["class 2", "class 4"]], "class 5"]
    model = LabelTreeClassifier(partition=nested, beam_width=6).fit(X, y)
    assert [labels_below(model.trees_[0], node) for node in (1, 2, 3)] == [{0, 3}, {1, 2, 4}, {5}]
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="'class 5' is missing"):
        LabelTreeClassifier(partition=nested[:2]).fit(X, y)
    with pytest.raises(ValueError, match="'class 0' is repeated"):
        LabelTreeClassifier(partition=[*nested, "class 0"]).fit(X, y)
    with pytest.raises(ValueError, match="partition must contain labels seen in fit, got 'dog'"):
        LabelTreeClassifier(partition=[*nested, "dog"]).fit(X, y)


def test_label_features_decide_the_partition():
    X, y = classes(n_classes=8)
    corners = np.repeat(np.eye(4), 2, axis=0)
    model = LabelTreeClassifier(partition="label_features", branching=4, max_leaf_size=2)
    model.fit(X, y, label_features=corners)
    tree = model.trees_[0]
    pairs = {frozenset(labels_below(tree, node)) for node in tree.inner_nodes()[1:]}
    assert {frozenset(pair) for pair in ({0, 1}, {2, 3}, {4, 5}, {6, 7})} <= pairs
    both = LabelTreeClassifier(partition="both", **SMALL).fit(X, y, label_features=corners)
    assert both.score(X, y) > 0.9


@pytest.mark.parametrize("partition", ["label_features", "both"])
def test_label_features_are_not_changed(partition):
    X, y = classes(n_classes=8)
    features = sp.csr_array(3.0 * np.repeat(np.eye(4), 2, axis=0))
    before = features.copy()
    LabelTreeClassifier(partition=partition, **SMALL).fit(X, y, label_features=features)
    np.testing.assert_array_equal(features.toarray(), before.toarray())


def test_a_model_is_loaded_by_memory_mapping(tmp_path):
    X, Y = documents()
    model = LabelTreeClassifier(**SMALL).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert isinstance(loaded.weights_[0].value, np.memmap)
    np.testing.assert_array_equal(loaded.predict_topk(X)[1], model.predict_topk(X)[1])


def test_texts_are_tagged_in_a_pipeline():
    texts = ["graph colouring", "colour of a flower", "graph search", "garden flower"] * 3
    tags = [["math"], ["art", "garden"], ["math", "code"], ["garden"]] * 3
    model = make_pipeline(TfidfVectorizer(), LabelTreeClassifier(C=10.0)).fit(texts, tags)
    assert model.predict(["garden flower", "graph colouring"]) == [["garden"], ["math"]]


def test_ill_conditioned_nodes_are_solved_by_the_methods_of_linear_svc():
    random = np.random.default_rng(0)
    X = random.normal(loc=100.0, size=(100, 2))
    y = random.integers(3, size=100)
    model = LabelTreeClassifier(C=1.0, **PRECISE).fit(X, y)
    exact = LinearSVC(tol=1e-8).fit(X, y)
    weights = dense_weights(model, 0, 0, 2)
    np.testing.assert_allclose(weights[:, :-1], exact.coef_, rtol=1e-4, atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="before reaching tol in 3 of 3 classifiers"):
        LabelTreeClassifier(max_iter=20).fit(X, y)


REFUSED = {
    "other values": (lambda Y: Y * 2, "only zeros and ones"),
    "too few samples": (lambda Y: Y[:-1], "inconsistent numbers of samples"),
    "no label": (lambda Y: Y * 0, "at least one label"),
    "a dense matrix of other values": (lambda Y: Y.toarray() * 3, "only zeros and ones"),
    "empty lists": (lambda Y: [[]] * Y.shape[0], "at least one label"),
    "labels of two types": (lambda Y: [["a", 1]] * Y.shape[0], "all strings or all integers"),
    "three dimensions": (lambda Y: np.zeros((*Y.shape, 2)), "shape .300, 40, 2."),
    "no column": (lambda Y: np.zeros((Y.shape[0], 0)), "shape .300, 0."),
    "complex numbers": (lambda Y: Y.astype(complex), "dtype complex128"),
    "dense complex numbers": (lambda Y: Y.toarray().astype(complex), "dtype complex128"),
    "nan": (lambda Y: np.where(Y.toarray() > 0, np.nan, 0.0), "zeros and ones if it is .* got nan"),
    "texts": (lambda Y: Y.toarray().astype(str), "indicator matrix of zeros and ones"),
    "objects": (lambda Y: np.full(Y.shape, "a", object), "indicator matrix of zeros and ones"),
    "no list": (lambda Y: [["a"]] * (Y.shape[0] - 1) + ["b"], "got 'b' for sample 299"),
    "too few lists": (lambda Y: [["a"]], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_labels_that_cannot_be_used_are_refused(case):
    X, Y = documents()
    change, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        LabelTreeClassifier().fit(X, change(Y))


def test_indicators_of_any_dtype_are_the_same_labels():
    X, Y = documents()
    expected = LabelTreeClassifier(**SMALL).fit(X, Y).predict_topk(X)[1]
    for y in (Y.astype(bool), Y.toarray().astype(np.float32), Y.toarray().astype(object)):
        scores = LabelTreeClassifier(**SMALL).fit(X, y).predict_topk(X)[1]
        np.testing.assert_array_equal(scores, expected)


def test_a_beam_wider_than_the_tree_needs_no_memory():
    X, Y = documents()
    model = LabelTreeClassifier(beam_width=10**25, **SMALL).fit(X, Y)
    _, scores = model.predict_topk(X, 3)
    exact = -np.sort(-model.decision_function(X), axis=1)[:, :3]
    np.testing.assert_array_equal(scores, exact)


MALFORMED_TREES = {
    "tuples": ([("class 0", "class 1"), "class 2"], "got a tuple in it"),
    "arrays": ([np.array(["class 0", "class 1"]), "class 2"], "got a ndarray in it"),
    "no labels": ([[], []], "partition must be a list of labels"),
    "None": (["class 0", "class 1", "class 2", None], "partition must contain labels seen in fit"),
}


@pytest.mark.parametrize("case", MALFORMED_TREES)
def test_malformed_trees_are_refused(case):
    X, y = classes(n_classes=3)
    partition, message = MALFORMED_TREES[case]
    with pytest.raises(ValueError, match=message):
        LabelTreeClassifier(partition=partition).fit(X, y)


def test_trees_that_contain_themselves_are_refused():
    X, y = classes(n_classes=3)
    partition = ["class 0", "class 1", "class 2"]
    partition.append(partition)
    with pytest.raises(ValueError, match="nested too deeply, or that contains itself"):
        LabelTreeClassifier(partition=partition).fit(X, y)


def test_other_input_that_cannot_be_used_is_refused():
    X, Y = documents()
    model = LabelTreeClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="candidates must contain labels seen in fit, got"):
        model.decision_function(X, candidates=[3, 99])
    with pytest.raises(ValueError, match="candidates must be a list of labels"):
        model.decision_function(X, candidates=[[3], [4]])
    with pytest.raises(ValueError, match="got objects of type NoneType"):
        model.decision_function(X, candidates=[None])
    with pytest.raises(ValueError, match="k must be an integer"):
        model.predict_topk(X, 0)
    with pytest.raises(ValueError, match=r"intercept_scaling must be at most 1e\+150, got 1e\+300"):
        LabelTreeClassifier(intercept_scaling=1e300).fit(X, Y)
    with pytest.raises(ValueError, match="needs label_features"):
        LabelTreeClassifier(partition="both").fit(X, Y)
    with pytest.raises(ValueError, match="label_features are not used"):
        LabelTreeClassifier().fit(X, Y, label_features=np.eye(40))
    with pytest.raises(ValueError, match="a row for each of the 40 labels, got 3"):
        LabelTreeClassifier(partition="both").fit(X, Y, label_features=np.eye(3))
    with pytest.raises(ValueError, match="weight"):
        LabelTreeClassifier().fit(X, Y, sample_weight=np.zeros(300))


@pytest.mark.parametrize("loss", ["squared_hinge", "log", "crammer_singer"])
def test_nodes_may_have_a_single_child(loss):
    X, y = classes(n_classes=3)
    nested = [["class 0"], [["class 1", "class 2"]]]
    model = LabelTreeClassifier(partition=nested, loss=loss, C=10.0).fit(X, y)
    assert model.score(X, y) > 0.9
    one = LabelTreeClassifier(loss=loss).fit(X, [["a"] if k == y[0] else [] for k in y])
    assert (one.predict_topk(X, 1)[0] == "a").all()


def test_samples_of_weight_zero_are_left_out():
    X, Y = documents()
    weight = (np.arange(300) < 200).astype(float)
    one = LabelTreeClassifier(**SMALL).fit(X, Y, sample_weight=weight)
    other = LabelTreeClassifier(**SMALL).fit(X[:200], Y[:200])
    np.testing.assert_array_equal(one.predict_topk(X)[1], other.predict_topk(X)[1])


def test_score_is_the_share_of_exact_predictions_for_all_forms_of_labels():
    X, Y = documents()
    dense = Y.toarray()
    lists = [[f"label {k:02}" for k in np.flatnonzero(row)] for row in dense]
    weight = np.arange(len(lists)) % 3
    for y in (dense, Y, lists):
        model = LabelTreeClassifier().fit(X, y)
        predicted = LabelTreeClassifier().fit(X, dense).predict(X)
        exact = (predicted == dense).all(axis=1)
        assert 0.0 < exact.mean() < 1.0
        assert model.score(X, y) == pytest.approx(exact.mean())
        assert model.score(X, y, weight) == pytest.approx(np.average(exact, weights=weight))
    shuffled = [[*labels[::-1], *labels] for labels in lists]
    assert model.score(X, shuffled) == pytest.approx(exact.mean())
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, lists[:-1])
    with pytest.raises(ValueError, match="y must contain a list of labels"):
        model.score(X, ["label 00"] * len(lists))


def test_probabilities_follow_the_loss_of_the_fit():
    X, y = classes()
    assert hasattr(LabelTreeClassifier(loss="log"), "predict_proba")
    model = LabelTreeClassifier(loss="log").fit(X, y)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.set_params(loss="hinge").predict_proba(X), expected)
    assert not hasattr(LabelTreeClassifier().fit(X, y).set_params(loss="log"), "predict_proba")


def test_repeated_candidates_have_the_same_score():
    X, y = classes()
    model = LabelTreeClassifier().fit(X, y)
    scores = model.decision_function(X, ["class 7", "class 3", "class 7"])
    np.testing.assert_array_equal(scores[:, 0], scores[:, 2])
    np.testing.assert_array_equal(scores[:, :2], model.decision_function(X, ["class 7", "class 3"]))


def test_samples_with_labels_need_weight():
    X, y = documents()[0], [["a"], []] * 150
    with pytest.raises(ValueError, match="all samples with labels have the weight 0"):
        LabelTreeClassifier().fit(X, y, sample_weight=np.arange(300) % 2)


def test_values_whose_scores_would_overflow_are_refused():
    X, y = classes()
    model = LabelTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="values of magnitude up to"):
        model.predict(1e200 * X)
    huge = LabelTreeClassifier(C=1e140, max_iter=50)
    with pytest.warns(ConvergenceWarning, match="before reaching tol"):
        huge.fit(1e-60 * X, y)  # weights would overflow float32
    assert np.isfinite(huge.weights_[0].value).all()
    labels, scores = model.predict_topk(1e140 * X, 5)  # powers of the slack would overflow
    assert np.isfinite(scores).all()
    assert all(len(set(row)) == 5 for row in labels)
    with pytest.raises(ValueError, match="k must be an integer"):
        model.predict_topk(X, True)


def test_samples_that_need_no_conversion_are_scored_and_refused_as_others():
    X, Y = documents()
    model = LabelTreeClassifier().fit(X, Y)
    expected = model.predict_topk(X.toarray()[:1], 3)
    shared = sp.csr_array(X)[[0]]
    unsorted = sp.csr_array(
        (shared.data, shared.indices[::-1].copy(), shared.indptr), shape=shared.shape
    )
    unsorted.data = shared.data[::-1].copy()
    for sample in (shared, unsorted):
        for actual, of_dense in zip(model.predict_topk(sample, 3), expected, strict=True):
            np.testing.assert_array_equal(actual, of_dense)
    bad = shared.copy()
    bad.data[0] = np.nan
    for sample, message in ((bad, "NaN"), (shared[:, :-1], "features"), (shared[:0], "0 sample")):
        with pytest.raises(ValueError, match=message):
            model.predict_topk(sample, 3)

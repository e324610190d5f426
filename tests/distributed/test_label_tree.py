"""Label trees on partitions: the trees and the nodes below the root are those of a local fit."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import widemargin
from widemargin import LabelTreeClassifier
from widemargin.datasets import make_extreme_labels
from widemargin.labeltree.node import reaching_samples

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

DaskEstimator = widemargin.distributed.DaskEstimator
GAP_TOL = 1e-9


def documents(n_samples=240):
    data = make_extreme_labels(n_samples, 40, n_features=150, random_state=0)
    return data.X, sp.csr_array(data.Y)


def blocks(array, size=90):
    parts = [array[k : k + size] for k in range(0, array.shape[0], size)]
    return da.concatenate([da.from_array(part, chunks=-1, asarray=False) for part in parts])


def classifier(**parameters):
    settings = {"branching": 3, "max_leaf_size": 5, "tol": 1e-8, "max_iter": 10_000}
    return LabelTreeClassifier(**{**settings, **parameters})


def assert_like_the_local_fit(parameters, X, y, weight=None):
    """Compare the trees, the bits of the nodes below the root, and the root up to the gap."""
    estimator = classifier(**parameters)
    more = () if weight is None else (blocks(weight),)
    model = DaskEstimator(estimator, gap_tol=GAP_TOL).fit(blocks(X), blocks(y), *more)
    local = estimator.fit(X, y, weight)
    for mine, theirs in zip(model.trees_, local.trees_, strict=True):
        np.testing.assert_array_equal(mine.label, theirs.label)
        np.testing.assert_array_equal(mine.first_child, theirs.first_child)
    for mine, theirs in zip(model.weights_, local.weights_, strict=True):
        for first, second in zip(below_the_root(mine), below_the_root(theirs), strict=True):
            np.testing.assert_array_equal(first, second)
    scores, expected = (each.decision_function(X) for each in (model.estimator_, local))
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert (model.history_["gap"][-1] <= GAP_TOL).all()
    return model, local


def below_the_root(weights):
    first = weights.feature_start[1]
    entry = weights.entry_start[first]
    assert 0 < entry < len(weights.value)
    return weights.features[first:], weights.child[entry:], weights.value[entry:]


@pytest.mark.parametrize("loss", ["squared_hinge", pytest.param("hinge", marks=pytest.mark.slow)])
def test_trees_and_weights_are_those_of_a_local_fit(loss):
    X, Y = documents()
    assert_like_the_local_fit({"loss": loss, "n_trees": 2}, X, Y)


def test_class_labels_and_weights_of_samples():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, np.array(list("abcdefghij"))[y[:300]]
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    model, local = assert_like_the_local_fit({}, X, y, weight)
    assert model.classes_.tolist() == list("abcdefghij")
    assert np.mean(model.predict(blocks(X)).compute() == local.predict(X)) >= 0.99


@pytest.mark.parametrize("partition", ["random", "huffman"])
def test_other_partitions(partition):
    X, Y = documents()
    model = DaskEstimator(classifier(partition=partition)).fit(blocks(X), blocks(Y))
    local = classifier(partition=partition).fit(X, Y)
    np.testing.assert_array_equal(model.trees_[0].label, local.trees_[0].label)


def test_indicators_come_back_as_they_were_passed():
    X, Y = documents()
    for labels in (Y, Y.toarray().astype(np.int8)):
        model = DaskEstimator(classifier()).fit(blocks(X), blocks(labels)).estimator_
        predicted = model.predict(X)
        assert type(predicted) is type(labels)
        assert predicted.dtype == labels.dtype


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "log"}, "loss must be one of"),
        ({"partition": "both"}, "must not need label_features"),
        ({"checkpoint": "file"}, "checkpoint is not supported"),
    ],
)
def test_what_partitions_cannot_do_is_refused(parameters, message):
    X, Y = documents()
    with pytest.raises(ValueError, match=message):
        DaskEstimator(classifier(**parameters)).fit(blocks(X), blocks(Y))


def test_a_matrix_of_zeros_is_refused():
    X, Y = documents()
    with pytest.raises(ValueError, match="at least one label"):
        DaskEstimator(classifier()).fit(blocks(X), blocks(0 * Y))


@pytest.mark.slow
def test_no_worker_receives_all_samples():
    distributed = pytest.importorskip("distributed")
    from dask.utils import key_split

    data = make_extreme_labels(6_000, 100, n_features=150, random_state=0)
    with (
        # An idle worker would take samples of a busy one.
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        X, Y = client.persist([blocks(part, 750) for part in (data.X, sp.csr_array(data.Y))])
        distributed.wait([X, Y])
        model = DaskEstimator(LabelTreeClassifier(branching=5, max_leaf_size=15)).fit(X, Y)
        logs = client.run(
            lambda dask_worker: [e["keys"] for e in dask_worker.transfer_incoming_log]
        )
    received = Counter()
    for worker, log in logs.items():
        for key, size in (pair for keys in log for pair in keys.items()):
            received[worker, key_split(key)] += size
    workers = list(logs)
    # Whole partitions stay; a child of the root receives the samples that reach it.
    assert not any(received[worker, "root_samples"] for worker in workers)
    tree = model.trees_[0]
    assert len(tree.inner_nodes()) > 5
    size = sum(array.nbytes for array in (data.X.data, data.X.indices, data.X.indptr))
    reach = reaching_samples(tree, sp.csr_array(data.Y))[:, 1 : tree.first_child[1]]
    copies = reach.nnz / data.X.shape[0]
    assert 0 < max(received[worker, "reaching"] for worker in workers) < 0.75 * size * copies

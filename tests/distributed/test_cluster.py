"""Fits on a cluster of two processes: results, data that stay where they are, lost workers."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import widemargin
from widemargin import (
    LinearDiscriminantAnalysis,
    LinearSVC,
    QuadraticDiscriminantAnalysis,
)

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

import dask  # noqa: E402
from dask.sizeof import sizeof  # noqa: E402

from widemargin.distributed.cocoa import Joint  # noqa: E402
from widemargin.distributed.samples import LinearSamples  # noqa: E402
from widemargin.solvers.hinge.losses import LOSSES  # noqa: E402

DaskEstimator = widemargin.distributed.DaskEstimator
ESTIMATORS = [
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(),
    LinearSVC(loss="hinge", C=0.01),
    LinearSVC(),
]
NAMES = ["LDA", "QDA", "hinge", "squared hinge"]


@pytest.fixture(scope="module")
def client():
    with (
        # An idle worker would take samples of a busy one.
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def samples(n=20_000, d=40, size=2_500):
    """Return samples that the workers draw themselves."""
    random = da.random.default_rng(0)
    X = random.normal(size=(n, d), chunks=(size, d))
    noise = random.normal(size=n, chunks=size)
    return X, (X.sum(axis=1) + 3.0 * noise > 0.0).astype(int)


def scores(estimator, **sizes):
    X, y = samples(**sizes)
    model = DaskEstimator(estimator).fit(X, y)
    return model.decision_function(X).compute()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
def test_results_equal_those_in_threads(client, estimator):
    on_cluster = scores(estimator, n=5_000, size=1_000)
    with dask.config.set(scheduler="threads"):
        assert_equal_up_to_rounding(on_cluster, scores(estimator, n=5_000, size=1_000))


def assert_equal_up_to_rounding(actual, expected):
    # BLAS rounds by the alignment of arrays, which is another one after they were sent.
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


def sent(client):
    """Return the bytes that all workers have sent: to each other, the scheduler and clients."""
    logs = client.run(lambda dask_worker: [e["total"] for e in dask_worker.transfer_outgoing_log])
    return sum(sum(log) for log in logs.values())


def sent_by_a_fit(client, estimator, n):
    """Return the bytes that workers send while they fit 40 partitions of n / 40 samples."""
    X, y = client.persist(list(samples(n, size=n // 40)))
    distributed.wait([X, y])
    before = sent(client)
    DaskEstimator(estimator).fit(X, y)
    return sent(client) - before


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
@pytest.mark.slow
def test_data_stay_where_they_are(client, estimator):
    # What is sent are sums over partitions, whose size does not depend on the number of samples.
    few, many = (sent_by_a_fit(client, estimator, n) for n in (100_000, 300_000))
    added = 200_000 * 40 * 8
    assert many - few < 0.03 * added


def test_the_size_of_samples_is_that_of_their_arrays():
    # Dask moves what it takes for small.
    X = np.ones((100, 20))
    ones = np.ones(100)
    part = LinearSamples.of(X, ones[np.newaxis] > 0.0, ones, ones, LOSSES["hinge"], 1.0)
    assert sizeof(part) >= X.nbytes
    assert sizeof(Joint.start(3, 500, 8)) >= 2 * 3 * 500 * 8


def kill_a_worker(client, delay):
    """Kill the process of a worker after a while; its nanny starts another one."""
    time.sleep(delay)
    pids = client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)


def fit_with_a_kill(client, estimator, delay):
    killer = threading.Thread(target=kill_a_worker, args=[client, delay])
    killer.start()
    try:
        return scores(estimator, n=40_000)
    finally:
        killer.join()
        client.wait_for_workers(2, timeout=60)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on Windows")
@pytest.mark.slow
def test_a_killed_worker_changes_no_result(client):
    estimator = LinearSVC(loss="hinge", C=0.01)
    expected = scores(estimator, n=40_000)
    assert_equal_up_to_rounding(fit_with_a_kill(client, estimator, 0.5), expected)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on Windows")
def test_workers_killed_at_twenty_instants(client, record_property):
    estimators = ESTIMATORS[2], ESTIMATORS[0]
    expected = [scores(estimator, n=40_000) for estimator in estimators]
    random = np.random.default_rng(0)
    for trial in range(20):
        result = fit_with_a_kill(client, estimators[trial % 2], random.uniform(0.0, 2.0))
        assert_equal_up_to_rounding(result, expected[trial % 2])
    record_property("faults: worker killed", 20)


@pytest.mark.slow
def test_data_of_ten_times_the_memory_of_a_worker_fit():
    limit = 400_000_000
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=limit
        ) as cluster,
        distributed.Client(cluster),
    ):
        X, y = samples(2_500_000, 200, 10_000)
        assert X.nbytes >= 10 * limit
        model = DaskEstimator(LinearDiscriminantAnalysis()).fit(X, y)
        assert model.estimator_.statistics_.count.sum() == 2_500_000


@pytest.mark.slow
def test_an_error_of_a_worker_names_the_argument(client):
    X, y = samples(5_000)
    X = da.where(X > 3.0, np.nan, X)
    with pytest.raises(ValueError, match="X contains NaN"):
        DaskEstimator(LinearSVC()).fit(X, y)


@pytest.mark.slow
def test_joblib_on_the_cluster_gives_the_same_bits(client):
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV

    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, n_jobs=2, cv=3)
    expected = search.fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_config("dask"):
        np.testing.assert_array_equal(search.fit(X, y).cv_results_["mean_test_score"], expected)

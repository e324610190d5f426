"""Searches send their folds to the workers of joblib's active backend."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVCCV, LinearSVCCV, PrivilegedSVCCV

distributed = pytest.importorskip("distributed")

SEARCHES = {
    "SVCCV": SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1, "scale"], cv=3),
    "LinearSVCCV": LinearSVCCV(Cs=[1.0, 0.1], loss="hinge", cv=3),
    "PrivilegedSVCCV": PrivilegedSVCCV(
        Cs=[0.1, 1.0], privileged_penalties=[0.1, 1.0], slack_ridges=[0.0], cv=3
    ),
}


@pytest.fixture(scope="module")
def threads():
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
    ) as client:
        yield client


@pytest.fixture(scope="module")
def processes():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def data(name, n_samples=120, n_features=6):
    X, y = make_classification(
        n_samples, n_features, n_informative=4, n_classes=2 if "Priv" in name else 3, flip_y=0.2,
        random_state=0,
    )  # fmt: skip
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n_samples)
    privileged = {"privileged": np.abs(X[:, :2])} if "Priv" in name else {}
    return {"X": X, "y": y, "sample_weight": weight, **privileged}


def fit(name, **parameters):
    search = clone(SEARCHES[name]).set_params(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return search.fit(**data(name))


def tasks_of(client):
    return client.run_on_scheduler(
        lambda dask_scheduler: sum(e[2] == "memory" for e in dask_scheduler.transition_log)
    )


def assert_same_on_the_cluster(name, client):
    expected = fit(name)
    scores, coefficients = expected.scores_, expected.decision_function(data(name)["X"])
    before = tasks_of(client)
    with joblib.parallel_config("dask"):
        search = fit(name)
    assert tasks_of(client) - before >= 3
    np.testing.assert_array_equal(search.scores_, scores)
    assert search.best_score_ == scores.mean(axis=-1).max()
    np.testing.assert_array_equal(search.decision_function(data(name)["X"]), coefficients)


@pytest.mark.parametrize("name", ["SVCCV", "LinearSVCCV"])
def test_scores_are_those_of_a_local_search(name, threads):
    assert_same_on_the_cluster(name, threads)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_processes_give_the_same_bits(name, processes):
    assert_same_on_the_cluster(name, processes)


def test_one_job_stays_in_this_process(threads):
    before = tasks_of(threads)
    with joblib.parallel_config("dask"):
        fit("LinearSVCCV", n_jobs=1)
    assert tasks_of(threads) == before


def test_warnings_of_the_workers_are_repeated_once(threads):
    samples = data("LinearSVCCV")
    search = LinearSVCCV(Cs=[1000.0], loss="hinge", cv=3, max_iter=1, refit=False)
    with (
        joblib.parallel_config("dask"),
        pytest.warns(ConvergenceWarning, match="cross-validation fits") as caught,
    ):
        search.fit(**samples)
    assert len(caught) == len({str(warning.message) for warning in caught})


@pytest.mark.slow
def test_large_inputs_are_sent_once(processes, monkeypatch):
    X, y = make_classification(4_000, 200, random_state=0)
    sent, scatter = [], processes.scatter

    def count(value, **options):
        sent.append(getattr(value, "nbytes", 0))
        return scatter(value, **options)

    monkeypatch.setattr(processes, "scatter", count)
    with joblib.parallel_config("dask"):
        LinearSVCCV(Cs=[0.001], cv=6, refit=False).fit(X, y)
    assert sent.count(X.nbytes) == 1
    assert sum(sent) < 1.2 * X.nbytes

"""``widemargin fit --cluster``: a scheduler that runs, one that does not, processes of its own."""

import json

import numpy as np
import pytest
from tests.cli.test_commands import fail, run_process, succeed

from widemargin import LinearSVC
from widemargin._base.options import cli_options
from widemargin.cli import cluster
from widemargin.export import load

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0", protocol="tcp"
    ) as started:
        yield started.scheduler_address


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X.sum(axis=1) + rng.normal(size=120) > 0, "yes", "no")
    lines = [f"{a},{b},{c},{label}" for (a, b, c), label in zip(X, y, strict=True)]
    path.write_text("\n".join(["a,b,c,target", *lines]))
    return path


def test_partitions_give_the_local_model(address, table, tmp_path):
    models = []
    for number, options in enumerate([["--cluster", address], []]):
        path = tmp_path / f"{number}.skops"
        succeed(
            "fit", table, "--target", "target", "--method", "lda", "-o", path, *options
        )  # fmt: skip
        models.append(load(path)[-1])
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)


def test_folds_of_a_search_run_on_the_cluster(address, table, tmp_path):
    scores = []
    for options in (["--cluster", address], []):
        output = succeed(
            "fit", table, "--target", "target", "--method", "linear", "--tune", "--json",
            "-o", tmp_path / "model.skops", *options,
        )  # fmt: skip
        scores.append(json.loads(output)["cross_validated_score"])
    assert scores[0] == scores[1] > 0.5


def test_sparse_samples_are_split_into_partitions(address):
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = sp.random_array((90, 20), density=0.3, rng=rng, format="csr")
    y = np.where(X @ rng.normal(size=20) > 0, "a", "b")
    with cluster.use_cluster(address):
        model = cluster.fit_partitions(LinearSVC(), X, y, 0)
    np.testing.assert_allclose(
        model.objective_, LinearSVC(tol=1e-8).fit(X, y).objective_, rtol=1e-5
    )


def test_a_missing_scheduler_and_a_method_without_a_cluster_are_errors(
    address, table, tmp_path, monkeypatch
):
    monkeypatch.setattr(cli_options, "cluster_timeout", 0.1)
    arguments = "fit", table, "--target", "target", "-o", tmp_path / "model.skops"
    assert "there is no scheduler" in fail(*arguments, "--cluster", "tcp://127.0.0.1:9")
    assert "Add --tune" in fail(*arguments, "--method", "svc", "--cluster", address)


@pytest.mark.slow
def test_processes_of_its_own_end_with_the_command(table, tmp_path):
    path = tmp_path / "model.skops"
    result = run_process(
        "fit", table, "--target", "target", "--method", "linear", "--cluster", "local", "-o", path
    )
    assert result.returncode == 0, result.stderr
    assert load(path)[-1].dual_gap_ <= 1e-5

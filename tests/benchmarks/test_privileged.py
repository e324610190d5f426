"""The benchmark of privileged features runs from end to end, and its QP is that of SVM1+."""

import json
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from joblib import parallel_config

pytest.importorskip("resource", reason="peak memory is not to be had on this system")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import privileged

    few = {name: {**shape, "classes": 3} for name, shape in privileged.SHAPES.items()}
    monkeypatch.setattr(privileged, "SHAPES", few)
    monkeypatch.setattr(privileged, "GRID", [1.0, 10.0])
    monkeypatch.setattr(privileged, "SUITE", ("wine",))
    monkeypatch.setattr(privileged, "TEXTS", 300)
    monkeypatch.setattr(privileged, "PIXELS", 40)
    run = lambda _, task, threads=2, **a: privileged.TASKS[task](**a)  # noqa: E731
    monkeypatch.setattr(privileged.Bench, "run", run)
    return privileged


@pytest.fixture
def folder(tmp_path):
    """Random samples instead of the real data."""
    (tmp_path / "load.py").write_text(
        dedent("""
        import numpy as np
        import scipy.sparse as sp

        def load(name):
            rng = np.random.default_rng(0)
            y = np.arange(100) % 2
            X, Z = rng.random((100, 6)) + y[:, None], rng.random((100, 3))
            if name == "sector":
                return dict(X_train=sp.csr_array(X), y_train=y)
            if name == "bursi":
                return dict(X=sp.csr_array(X), y=y, privileged=Z)
            parts = {f"{part}_features": X for part in ("train", "val", "test")}
            parts |= {f"{part}_labels": y for part in ("train", "val", "test")}
            return parts | dict(train_PFfeatures=Z, train_YYfeatures=Z)
        """)
    )
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_part_prints_and_keeps_what_it_measured(bench, folder, capsys):
    path = folder / "results.json"
    arguments = ["--rows", "40", "--budget", "0", "--json", str(path), "--data", str(folder)]
    with parallel_config(backend="threading"):
        bench.main(arguments)
    kept, printed = json.loads(path.read_text(encoding="utf-8")), capsys.readouterr().out
    assert [table["title"] for table in kept["tables"]] == [
        "Time to train in the shapes of the paper",
        "Growth over samples",
        "Methods for SVM1+ and SVM-2K",
        "SVM1+ at its defaults and exact QPs",
        "Accuracy on test samples",
        "Privileged features at the defaults",
    ]
    assert {row[0] for row in kept["tables"][5]["rows"]} == {"wine", *bench.TEXTS_OF_SUITE}
    methods = {row[1] for row in kept["tables"][4]["rows"]}
    assert methods >= {"SVM", "SVM2+", "SVM1+", "SVM-2K", "SVM2+, shuffled", "SVM2+, constant"}
    assert "SVM, appended" in methods
    assert all(bar["bar"] in printed for bar in kept["bars"])
    assert str(folder) not in json.dumps(kept)


def test_the_qp_of_the_comparison_has_the_optimum_of_svm1plus(bench):
    from widemargin.solvers.coupled.problem import svm1plus_problem
    from widemargin.solvers.coupled.solver import solve_coupled

    X, Z, y = bench.two_classes(60)
    K, M = X @ X.T, Z @ Z.T
    _, value = bench.solved_qp(K, M, y == 1)
    problem = svm1plus_problem(K, M, np.where(y == 1, 1.0, -1.0), np.ones(60), 1.0)
    own = solve_coupled(problem, tol=1e-6)
    assert value == pytest.approx(own.dual_objective, rel=1e-4)


def test_descriptions_of_texts_are_those_of_their_class(bench, folder):
    rare, described = (bench.suite_texts(name, folder) for name in bench.TEXTS_OF_SUITE)
    np.testing.assert_array_equal(rare[0], described[0])
    np.testing.assert_array_equal(rare[2], described[2])
    for label in (0, 1):
        of_class = rare[1][rare[2] == label]
        assert np.ptp(of_class, axis=0).min() > 0.0
        expected = np.tile(of_class.mean(axis=0), (len(of_class), 1))
        np.testing.assert_allclose(described[1][rare[2] == label], expected)

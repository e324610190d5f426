"""The benchmark of linear machines runs from end to end, and what it computes itself is right."""

import json
from pathlib import Path
from textwrap import dedent

import pytest
from sklearn.datasets import load_iris

from widemargin import LinearSVC

pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def linear(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import linear

    return linear


@pytest.fixture
def folder(tmp_path):
    """Random rows in the place of the real sets."""
    (tmp_path / "load.py").write_text(
        dedent("""
        import numpy as np
        import scipy.sparse as sp

        def load(name):
            rng = np.random.default_rng(0)
            n_classes = {"a9a": 2, "sector": 5, "letter": 4}[name]
            y = np.arange(150) % n_classes
            X = rng.standard_normal((150, 160 if name == "sector" else 12))
            X += 2.0 * np.eye(5, X.shape[1])[y]
            X = X if name == "letter" else sp.csr_array(np.where(abs(X) < 0.5, 0.0, X))
            return dict(X_train=X, y_train=y, X_test=X, y_test=y)
        """)
    )
    return tmp_path


@pytest.mark.parametrize("loss", ["hinge", "squared hinge", "joint"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_is_what_our_machines_say_they_minimise(linear, loss, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    machine = LinearSVC(**linear.LOSSES[loss], max_iter=100_000).fit(X, y)
    expected = machine.objective_.sum()
    assert linear.objective(machine, loss, X, y) == pytest.approx(expected, rel=1e-6)


def test_the_ladder_is_climbed_to_the_largest_tolerance_that_will_do(linear, monkeypatch):
    monkeypatch.setattr(linear, "quietly", lambda model, X, y: model)
    monkeypatch.setattr(linear, "objective", lambda model, loss, X, y, C: model.tol)
    for goal, tol in ((5.0, 5.0), (4.0, 3.0), (1e9, 30.0), (0.25, 0.2), (0.01, 0.01)):
        assert linear.largest_tolerance("hinge", None, None, 1.0, goal) == pytest.approx(tol)


@pytest.mark.slow
def test_every_part_prints_and_keeps_what_it_measured(linear, monkeypatch, folder, capsys):
    run = lambda _, task, threads=2, **arguments: linear.TASKS[task](**arguments)  # noqa: E731
    monkeypatch.setattr(linear.Bench, "run", run)
    monkeypatch.setattr(linear, "TIGHT", {"tol": 1e-10, "max_iter": 100_000})
    path = folder / "results" / "linear.json"
    arguments = ["--rows", "150", "--budget", "0", "--json", str(path), "--full"]
    linear.main([*arguments, "--data", str(folder)])
    kept, printed = json.loads(path.read_text(encoding="utf-8")), capsys.readouterr().out
    assert {table["title"] for table in kept["tables"]} >= {
        "Compilation",
        "Linear SVMs: time to fit",
        "Linear SVMs: objectives, iterations and memory",
        "Equality of the optima",
        "Several classes with a kernel",
        "Small problems",
    }
    verdicts = {bar["bar"]: bar["verdict"] for bar in kept["bars"]}
    assert [v for bar, v in verdicts.items() if "of liblinear's" in bar] == ["met"] * 5
    assert sum("with one thread" in bar for bar in verdicts) == 20
    assert sum("with two threads" in bar for bar in verdicts) == 12
    assert all(bar in printed for bar in verdicts)
    assert str(folder) not in json.dumps(kept)


@pytest.mark.slow
def test_sets_that_are_not_there_are_left_out_and_named(linear, monkeypatch, capsys):
    run = lambda _, task, threads=2, **arguments: linear.TASKS[task](**arguments)  # noqa: E731
    monkeypatch.setattr(linear.Bench, "run", run)
    linear.main(["--rows", "90", "--budget", "0", "--only", "exact", "kernels"])
    printed = capsys.readouterr().out
    assert "Left out without --data: a9a; sector." in printed
    assert "Left out without --data: letter." in printed
    assert printed.count("satimage, ") == 4

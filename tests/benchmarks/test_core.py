"""The benchmark runs from end to end, and what it computes itself is right."""

import json
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from widemargin import SVC

pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SETS = {"a9a": 2, "ijcnn1": 2, "mnist": 10, "letter": 26}


@pytest.fixture
def core(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    import core

    return core


@pytest.fixture
def folder(tmp_path):
    """Random rows in the place of the real sets."""
    (tmp_path / "load.py").write_text(
        dedent(f"""
        import numpy as np
        import scipy.sparse as sp

        def load(name):
            rng = np.random.default_rng(0)
            n_classes = {SETS}[name]
            y = np.arange(156) % n_classes
            X = rng.integers(0, 9, (156, 12)) + 20 * np.eye(26, 12)[y]
            X = sp.csr_array(X.astype(float)) if name in ("a9a", "ijcnn1") else X
            return dict(X_train=X, y_train=y, X_test=X, y_test=y)
        """)
    )
    return tmp_path


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_dual_objective_lies_below_the_primal_by_the_certified_gap(core, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    machine = SVC(C=0.5, gamma=0.3, max_iter=-1, tol=0.1).fit(X, y)
    dual = machine.objective_ * (1 - machine.dual_gap_)
    assert core.dual_objective(machine, 0.3) == pytest.approx(-dual.sum(), rel=1e-9)


def test_the_exponent_is_that_of_a_power_law(core):
    sizes = [10, 20, 50]
    assert core.exponent(sizes, [3e-5 * n**1.7 for n in sizes]) == pytest.approx(1.7)


def test_a_draw_of_rows_keeps_rows_and_labels_together(core):
    X, y = core.some(np.arange(40).reshape(20, 2), np.arange(0, 40, 2), 7)
    assert len(set(y)) == 7
    assert (X[:, 0] == y).all()


def test_a_task_runs_in_a_process_of_its_own(core):
    found = core.Bench(core.__file__).run("compile", name="iris", rows=30)
    assert found.keys() == {"first", "warm"}


@pytest.mark.slow
def test_every_part_prints_and_keeps_what_it_measured(core, monkeypatch, folder, capsys):
    monkeypatch.setattr(core.Bench, "run", in_this_process(core))
    monkeypatch.setattr(core.Bench, "python", lambda *_: "0.05")
    path = folder / "results" / "core.json"
    arguments = ["--rows", "156", "--budget", "0", "--json", str(path)]
    core.main([*arguments, "--data", str(folder), "--full"])
    kept, printed = json.loads(path.read_text(encoding="utf-8")), capsys.readouterr().out
    assert {table["title"] for table in kept["tables"]} >= {
        "Import",
        "Compilation",
        "Small problems",
        "Large problems: time to fit",
        "Large problems: objectives and memory",
        "Prediction",
        "Near the limit",
        "325 small problems: time to fit",
        "Growth with the number of samples",
        "Tuning",
        "Searches on one thread",
        "Probabilities",
    }
    verdicts = {bar["bar"]: bar["verdict"] for bar in kept["bars"]}
    same = [verdict for bar, verdict in verdicts.items() if "dual objective" in bar]
    assert same == ["met"] * 14
    skipped = [bar for bar, verdict in verdicts.items() if verdict == "skipped"]
    assert all("intelex" in bar for bar in skipped)
    assert len(skipped) == 9 * ("intelex" not in core.models())
    assert all(bar in printed for bar in verdicts)
    assert str(folder) not in json.dumps(kept)


def test_every_loss_is_listed_with_its_cause(core, monkeypatch):
    monkeypatch.setattr(core, "models", lambda: ["ours", "scikit-learn"])
    monkeypatch.setattr(core, "causes", lambda name: {"known, predict": "too few rows"})
    won = {"ours": {"seconds": 1.0, "predict seconds": 2.0}}
    won["scikit-learn"] = {"seconds": 4.0, "predict seconds": 1.0}
    lost = {"ours": {"seconds": 4.0}, "scikit-learn": {"seconds": 2.0}}
    tables = []
    report = SimpleNamespace(table=lambda title, text, header, rows: tables.append((title, rows)))
    core.show_losses(report, "Sets", {name: {1: lost, 2: won} for name in ("known", "new")})
    [(title, rows)] = tables
    assert title == "Sets: slower than a peer"
    assert rows == [
        ["known", "scikit-learn", "1", "fit", "0.50", "not investigated"],
        ["known", "scikit-learn", "2", "predict", "0.50", "too few rows"],
        ["new", "scikit-learn", "1", "fit", "0.50", "not investigated"],
        ["new", "scikit-learn", "2", "predict", "0.50", "not investigated"],
    ]


def test_sets_that_are_not_there_are_left_out_and_named(core, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(core.Bench, "run", in_this_process(core))
    path = tmp_path / "core.json"
    core.main(["--rows", "60", "--budget", "0", "--json", str(path), "--only", "letter", "growth"])
    assert "Left out without --data: letter." in capsys.readouterr().out
    assert [bar["verdict"] for bar in json.loads(path.read_text())["bars"]] == ["skipped"]


def in_this_process(core):
    """A stand-in for `Bench.run` that starts no process."""
    return lambda _, task, threads=2, **arguments: core.TASKS[task](**arguments)

"""The benchmark runs from end to end, and what it computes itself is right."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

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


def test_what_is_measured_is_printed_and_kept(core, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(core.Bench, "run", lambda _, task, **what: core.TASKS[task](**what))
    core.main(["--rows", "156", "--only", "small", "letter", "--json", str(tmp_path / "kept.json")])
    kept, printed = json.loads((tmp_path / "kept.json").read_text()), capsys.readouterr().out
    table = next(table for table in kept["tables"] if table["title"] == "Small problems")
    assert [row[0] for row in table["rows"]] == ["iris", "wine", "breast cancer", "3,000 x 20"]
    verdicts = {bar["bar"]: bar["verdict"] for bar in kept["bars"]}
    assert verdicts["wine: dual objective at most 0.0001 above scikit-learn's"] == "met"
    assert verdicts["letter: at least 2 times as fast as scikit-learn"] == "skipped"
    assert "Left out without --data: letter." in printed
    assert all(bar in printed for bar in verdicts)


@pytest.mark.slow
def test_every_part_runs_on_little_data(tmp_path, folder):
    path = tmp_path / "results" / "core.json"
    script = [sys.executable, str(BENCHMARKS / "core.py"), "--rows", "156", "--json", str(path)]
    subprocess.run([*script, "--data", str(folder), "--full"], check=True, capture_output=True)
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert str(folder) not in json.dumps(kept)
    assert len(kept["growth"]["rows"]) == len(kept["growth"]["seconds"]["ours"]) == 3
    assert {table["title"] for table in kept["tables"]} >= {
        "Import",
        "Compilation",
        "Small problems",
        "Large problems: time to fit",
        "Large problems: what came out",
        "Prediction",
        "325 small problems: time to fit",
        "Growth over rows",
        "Tuning",
    }
    assert all(bar["verdict"] == "met" for bar in kept["bars"] if "dual objective" in bar["bar"])

"""The benchmark of label trees runs from end to end on small sets."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def labeltree(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import labeltree

    monkeypatch.setattr(
        labeltree.Bench,
        "run",
        lambda _, task, threads=2, **arguments: labeltree.TASKS[task](**arguments),
    )
    monkeypatch.setattr(labeltree, "METHODS", {"widemargin": (1, 3)})
    return labeltree


def figures(**changed):
    run = {"P@1": 0.8, "P@3": 0.5, "P@5": 0.4, "fit_cpu": 2.0, "predict_cpu": 1.0}
    return {**run, "memory": 100.0, "size": 10.0, **changed}


def test_bars_compare_with_the_best_the_fastest_and_the_median(labeltree, tmp_path):
    report = labeltree.Report("labeltree", None, {})
    found = {
        ("a", "widemargin", 1): figures(),
        ("a", "one", 1): figures(**{"P@1": 0.802}, fit_cpu=3.0, size=5.0),
        ("a", "other", 1): figures(**{"P@3": 0.51}, predict_cpu=0.5, size=20.0, memory=50.0),
    }
    labeltree.judge(report, found)
    verdicts = {bar["bar"]: bar["verdict"] for bar in report.kept["bars"]}
    assert verdicts["a, 1 trees: P@1 at or above the best peer less .3 points"] == "met"
    assert verdicts["a, 1 trees: P@3 at or above the best peer less .3 points"] == "missed"
    assert verdicts["a: training not slower than the fastest peer (CPU time)"] == "met"
    assert verdicts["a: prediction not slower than the fastest peer (CPU time)"] == "missed"
    assert verdicts["a: peak memory not above the median of the peers"] == "missed"
    assert verdicts["a: model size not above the median of the peers"] == "met"
    assert verdicts["P@1, 3 and 5 above the best peer on average"] == "missed"


@pytest.mark.slow
def test_every_part_runs_on_small_sets(labeltree, tmp_path, monkeypatch):
    (tmp_path / "load.py").write_text(
        dedent("""
        import numpy as np
        import scipy.sparse as sp

        def load(name):
            random = np.random.default_rng(0)
            X = sp.random_array((300, 40), density=0.2, rng=random, format="csr")
            if name == "sector":
                y = random.integers(5, size=300)
                return {"X_train": X, "X_test": X, "y_train": y, "y_test": y}
            Y = sp.csr_array((random.random((300, 12)) < 0.2).astype(int))
            return {"X_train": X, "X_test": X, "Y_train": Y, "Y_test": Y}
        """)
    )
    small = {"n_samples": 500, "n_labels": 50, "n_features": 200}
    monkeypatch.setattr(labeltree, "GENERATED", {"generated": small})
    monkeypatch.setattr(labeltree, "GROWTH", (20, 100))
    stored = tmp_path / "results.json"
    labeltree.main(["--data", str(tmp_path), "--rows", "300", "--json", str(stored)])
    result = json.loads(stored.read_text())
    titles = [table["title"] for table in result["tables"]]
    assert titles[:5] == ["bibtex", "delicious", "sector", "debian_depends", "generated"]
    assert titles[5] == "Growth over labels"
    assert titles[6:9] == ["P@1 by setting", "P@3 by setting", "P@5 by setting"]
    assert titles[9:] == ["Training time by setting", "Size of the model by setting"]
    assert all(len(table["rows"][0]) == len(table["header"]) for table in result["tables"])

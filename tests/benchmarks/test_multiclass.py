"""The benchmark of many classes runs from end to end on few rows."""

import json
from pathlib import Path

import joblib
import numpy as np
import pytest

pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def multiclass(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import multiclass

    monkeypatch.setattr(
        multiclass.Bench,
        "run",
        lambda _, task, threads=2, **arguments: multiclass.TASKS[task](**arguments),
    )
    return multiclass


def test_times_machines_and_accuracies_are_kept(multiclass, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(multiclass, "SETS", {"vowel": {"C": 10.0}, "letter": {}})
    path = tmp_path / "multiclass.json"
    with joblib.parallel_config(backend="sequential"):
        multiclass.main(["--rows", "120", "--budget", "0", "--json", str(path)])
    assert "Left out without --data: letter." in capsys.readouterr().out
    kept = json.loads(path.read_text(encoding="utf-8"))
    rows = kept["tables"][0]["rows"]
    machines = {(row[1], row[2]): int(row[3]) for row in rows}
    assert machines["ovo", "ours"] == machines["ovo", "scikit-learn"] == 55
    assert machines["dense", "ours"] == machines["dense", "scikit-learn"] == 35
    same = {bar["bar"]: bar["figure"] for bar in kept["bars"] if "accuracy" in bar["bar"]}
    assert same["vowel, dense: accuracy at least scikit-learn's"] == "0"
    assert [row[0] for row in kept["tables"][1]["rows"]] == ["vowel"]
    assert len(kept["bars"]) == 7


def test_the_part_of_a_set_has_its_most_frequent_classes(multiclass, tmp_path):
    (tmp_path / "load.py").write_text(
        "import numpy as np\n"
        "def load(name):\n"
        "    y = np.repeat(np.arange(30), np.arange(1, 31))\n"
        "    return dict(X_train=y[:, None], y_train=y, X_test=y[:, None], y_test=y)\n"
    )
    X, y, _, y_test = multiclass.read("sector", tmp_path, False, None)
    assert set(y) == set(y_test) == set(range(10, 30))
    np.testing.assert_array_equal(X[:, 0], y)
    assert len(set(multiclass.read("sector", tmp_path, True, None)[1])) == 30

"""The benchmark of rare classes runs from end to end on small sets."""

import json
from pathlib import Path
from textwrap import dedent

import joblib
import pytest

pytest.importorskip("imblearn", exc_type=ImportError)
pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def imbalance(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import imbalance

    monkeypatch.setattr(
        imbalance.Bench,
        "run",
        lambda _, task, threads=2, **arguments: imbalance.TASKS[task](**arguments),
    )
    return imbalance


def test_ranks_share_ties(imbalance):
    scores = {"a": {"m": 0.9}, "b": {"m": 0.5}, "c": {"m": 0.9}, "d": {"m": 0.1}}
    assert imbalance.ranking(scores, "m") == {"a": 1.5, "b": 3, "c": 1.5, "d": 4}


@pytest.mark.slow
def test_every_set_is_judged_and_ranks_add_up(imbalance, tmp_path):
    (tmp_path / "load.py").write_text(
        dedent("""
        import numpy as np

        def load(name):
            rng = np.random.default_rng(len(name))
            y = np.repeat([-1, 1], [100, 20])
            return dict(X=rng.standard_normal((120, 3)) + y[:, None], y=y)
        """)
    )
    for name in ("one", "other"):
        (tmp_path / f"imbalanced_{name}.npz").touch()
    path = tmp_path / "imbalance.json"
    with joblib.parallel_config(backend="sequential"):
        imbalance.main(["--data", str(tmp_path), "--json", str(path)])
    kept = json.loads(path.read_text(encoding="utf-8"))
    ranks = next(table for table in kept["tables"] if table["title"] == "Mean ranks")
    assert sum(float(row[1]) for row in ranks["rows"]) == pytest.approx(8 * 9 / 2, abs=0.05)
    assert [row[0] for row in kept["tables"][0]["rows"]] == ["one", "other"]


def test_a_folder_must_be_named(imbalance):
    with pytest.raises(SystemExit, match="--data must be a folder"):
        imbalance.main([])

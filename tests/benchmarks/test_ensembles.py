"""The benchmark of ensembles runs from end to end on generated samples."""

import json
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def ensembles(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import ensembles

    return ensembles


@pytest.fixture
def folder(tmp_path):
    """Small samples in the place of the real sets."""
    (tmp_path / "load.py").write_text(
        dedent("""
        import numpy as np

        rng = np.random.default_rng(0)

        def load(name):
            return words() if name == "ocr_letters" else horses()

        def words():
            Y = [np.arange(k, k + 5) % 26 for k in range(200)]
            X = [np.eye(26)[y] + 0.3 * rng.normal(size=(5, 26)) for y in Y]
            return {"X": X, "y": Y, "folds": np.arange(200) % 10}

        def horses():
            Y = [rng.integers(2, size=4) for _ in range(12)]
            X = [(y[:, None] + rng.normal(size=(4, 3)), np.array([[0, 1], [1, 2], [2, 3]]))
                 for y in Y]
            return {"X": X, "y": Y}
        """)
    )
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", ["grid9", "letters50", "folds"])
def test_every_method_returns_errors(ensembles, folder, part, monkeypatch):
    monkeypatch.setattr(
        ensembles, "STRENGTHS", {kind: few[:1] for kind, few in ensembles.STRENGTHS.items()}
    )
    found = ensembles.run(part, 0, folder, rows=6, full=False)
    assert set(found["errors"]) == set(ensembles.METHODS)
    for name, figures in found["errors"].items():
        for m, own in figures.items():
            assert 0.0 <= own["pick"] <= own["mean"] <= own["worst"] <= 1.0
            assert own["least"] <= 1.0 / m + 1e-12
        if not name.endswith("MCL"):
            assert figures[1]["pick"] == pytest.approx(found["single"], abs=0.1)


def test_the_tasks_have_as_many_weights_as_they_say(ensembles):
    for part, size in [("grid9", 9), ("grid43", 43)]:
        task = ensembles.Task(part, 0, None, 5, False)
        assert task.model_.size_joint_feature == size
        assert len(task.train[0]) == 1
        assert len(task.valid[0]) == 5


def test_the_folds_of_a_group_train_on_every_image_once(ensembles, monkeypatch):
    images = [(np.full((2, 1), float(k)), np.array([[0, 1]])) for k in range(12)]
    raw = {"X": images, "y": [np.array([k, k]) for k in range(12)]}
    monkeypatch.setattr(ensembles, "load", lambda *_: raw)
    folds = [ensembles.horses(None, seed, (1, 2, 2)) for seed in range(5)]
    used = [[int(y[0]) for _, Y in fold for y in Y] for fold in folds]
    assert len({own[0] for own in used}) == 5
    assert all(sorted(own) == sorted(used[0]) for own in used)


def test_tables_and_bars_are_kept(ensembles, tmp_path, monkeypatch):
    file = tmp_path / "out.json"
    figures = {"pick": 0.1, "mean": 0.2, "worst": 0.3, "least": 0.1}
    found = {
        "single": 0.2,
        "errors": {name: {"1": figures, "2": figures} for name in ensembles.METHODS},
    }
    monkeypatch.setattr(ensembles.Bench, "run", lambda *_, **__: found)
    monkeypatch.setattr(
        "sys.argv", ["ensembles.py", "--only", "grid9", "--rows", "5", "--json", str(file)]
    )
    ensembles.main()
    kept = json.loads(file.read_text())
    assert kept["curves"]["grid9"]["MCL"] == [0.1, 0.1]
    assert kept["bars"][0]["verdict"] == "met"
    assert [row[0] for row in kept["tables"][0]["rows"]] == list(ensembles.METHODS)

"""The structured benchmark runs from end to end on generated samples."""

import json
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def structured(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import structured

    return structured


@pytest.fixture
def folder(tmp_path):
    """Small samples in the place of the real sets."""
    (tmp_path / "load.py").write_text(
        dedent("""
        import numpy as np

        rng = np.random.default_rng(0)

        def load(name):
            return {"ocr_letters": words, "snakes": snakes, "scene": scene}.get(name, horses)()

        def words():
            Y = [np.arange(k, k + 26) % 26 for k in range(40)]
            X = [np.repeat(np.eye(26)[y], 5, axis=1)[:, :128] for y in Y]
            return {"X": X, "y": Y, "folds": np.arange(40) % 10}

        def snakes():
            X = [255 * rng.integers(2, size=(3, 3, 3)) for _ in range(3)]
            Y = [rng.integers(3, size=(3, 3)) for _ in range(3)]
            return {"X_train": X, "Y_train": Y, "X_test": X, "Y_test": Y}

        def scene():
            X, Y = rng.normal(size=(30, 5)), rng.integers(2, size=(30, 3))
            return {"X_train": X, "X_test": X, "y_train": Y, "y_test": Y}

        def horses():
            X = [(rng.normal(size=(4, 3)), np.array([[0, 1], [1, 2], [2, 0]]), rng.random((3, 3)))
                 for _ in range(12)]
            Y = [rng.integers(2, size=4) for _ in range(12)]
            return {"X": X, "y": Y, "node_pixels": [np.full(4, 10) for _ in range(12)]}
        """)
    )
    return tmp_path


@pytest.mark.filterwarnings("ignore")
def test_every_task_returns_figures(structured, folder):
    common = {"data": folder, "rows": 10}
    assert structured.letters_speed(**common, budget=0.0)["ours"] > 0.0
    assert structured.letters_accuracy(**common)["chain"] == 1.0
    assert structured.letters_folds(**common, folds=2)["n"] == 2
    for kind in ("directional", "edge features"):
        assert 0.0 <= structured.snakes(**common, kind=kind, full=False)["score"] <= 1.0
    assert 0.0 <= structured.scene(**common, edges="chow_liu")["hamming"] <= 1.0
    searched = structured.scene_search(**common)
    assert searched["test"][searched["passes"]] == searched["hamming"]
    found = structured.horses(data=folder, rows=12, splits=1)
    assert set(found) == {"unaries alone", "GraphCRF", "EdgeFeatureGraphCRF"}
    for line in structured.cuts(budget=0.0, side=10)["rows"]:
        assert line["flow"] > 0


def test_a_snake_is_told_by_its_neighbourhood(structured):
    image = np.zeros((2, 3, 3), dtype=int)
    image[..., 2] = 255
    image[0, 1] = [255, 0, 0]
    features, edges, direction = structured.snake_graph(image, "directional")
    assert features.shape == (6, 45)
    assert (features.sum(axis=1) == 9).all()
    assert direction.sum(axis=0).tolist() == [4, 3]
    *_, ends = structured.snake_graph(image, "edge features")
    assert ends.shape == (len(edges), 180)
    assert (ends.sum(axis=1) == 18).all()


def test_bars_are_kept(structured, folder, tmp_path, monkeypatch):
    file = tmp_path / "out.json"
    arguments = [
        "structured.py",
        "--only",
        "cuts",
        "--rows",
        "5",
        "--budget",
        "0",
        "--json",
        str(file),
    ]
    monkeypatch.setattr("sys.argv", arguments)
    structured.main()
    kept = json.loads(file.read_text())
    assert [bar["bar"] for bar in kept["bars"]] == [
        "cuts within 2 times of OR-tools",
        "cuts ahead of SciPy",
    ]

"""The benchmark of classifiers with constraints runs from end to end on small sets."""

import json
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.metrics import f1_score, precision_score, recall_score

pytest.importorskip("resource", reason="peak memory is not to be had on this system")


@pytest.fixture
def preference(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import preference

    run = lambda _, task, threads=2, **a: preference.TASKS[task](**a)  # noqa: E731
    monkeypatch.setattr(preference.Bench, "run", run)
    monkeypatch.setattr(preference, "NEW_ROWS", 2500)
    monkeypatch.setattr(preference, "SHARES", (0.1, 0.15))
    few = dict(list(preference.PAPER_CONSTRAINTS.items())[3:5])
    monkeypatch.setattr(preference, "PAPER_CONSTRAINTS", few)
    return preference


@pytest.fixture
def folder(tmp_path):
    """Random samples instead of the real sets."""
    (tmp_path / "load.py").write_text(
        dedent("""
        import numpy as np

        def load(name):
            rng = np.random.default_rng(len(name))
            y = np.repeat([1, 0 if name == "mnist" else -1], [120, 280])
            X = rng.standard_normal((400, 3)) + y[:, None]
            return dict(X=X, y=y) if name == "protein_val" else dict(X_train=X, y_train=y)
        """)
    )
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_part_prints_and_keeps_what_it_measured(preference, folder, capsys):
    path = folder / "results.json"
    with parallel_config(backend="sequential"):
        preference.main(["--rows", "200", "--data", str(folder), "--json", str(path), "--only",
                         *map(str.lower, preference.SETS), "constraints", "share", "speed",
                         "memory"])  # fmt: skip
        preference.main(["--rows", "4", "--json", str(folder / "generated.json"), "--only",
                         "adult", "guarantee", "starts", "margin", "clusters"])  # fmt: skip
    kept, printed = json.loads(path.read_text(encoding="utf-8")), capsys.readouterr().out
    titles = [table["title"] for table in kept["tables"]]
    assert titles == [
        *(f"F1 on {name}" for name in preference.SETS),
        "Constraints on Adult",
        "Share of labeled samples",
        "Speed on IJCNN1",
    ]
    methods = {row[0] for row in kept["tables"][0]["rows"]}
    assert methods >= {*preference.PAPER, "cross-fitted", "at the prior", "first round"}
    assert all(bar["bar"] in printed for bar in kept["bars"])
    assert "not measured" in printed
    assert str(folder) not in json.dumps(kept)
    assert "Left out without --data: adult" in printed
    generated = json.loads((folder / "generated.json").read_text(encoding="utf-8"))
    assert [table["title"] for table in generated["tables"]] == [
        *(f"The guarantee, confidence {level:g}" for level in preference.CONFIDENCES),
        "Guarantees by the number of unlabeled samples",
        "Starts of the fixed sequence",
        "Constraints without a guarantee, by the margin",
        "Where unlabeled samples help",
    ]
    assert set(generated["clusters"]) == set(preference.CLUSTERED)


def test_the_whole_of_mnist_is_measured_when_it_is_asked_for_alone(preference, folder):
    path = folder / "memory.json"
    preference.main(["--data", str(folder), "--json", str(path), "--only", "memory"])
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert [table["title"] for table in kept["tables"]] == ["The whole of MNIST"]
    assert kept["bars"][0]["verdict"] == "met"


def test_measures_are_those_of_scikit_learn(preference):
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(2, size=50), rng.integers(2, size=50)
    assert preference.measured(truth, predicted) == pytest.approx(
        {
            "precision": precision_score(truth, predicted),
            "recall": recall_score(truth, predicted),
            "f1": f1_score(truth, predicted),
        }
    )
    assert preference.measured(truth, np.zeros(50)) == {"precision": 0, "recall": 0, "f1": 0}


def test_the_chance_of_failures_is_binomial(preference):
    assert preference.at_most(0, 10, 0.9) == 1.0
    assert preference.at_most(10, 10, 0.9) == pytest.approx(0.1**10)
    assert preference.at_most(1, 10, 0.9) == pytest.approx(1 - 0.9**10)

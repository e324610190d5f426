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
    assert set(found["chosen"]) <= set(ensembles.COULOMB)
    assert set(found["errors"]["MCL"]) == {1, 2, 6}
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


def test_a_full_run_tries_every_number_of_members(ensembles):
    assert ensembles.Task("grid9", 0, None, None, True).members == tuple(range(1, 11))
    assert ensembles.Task("grid9", 0, None, None, False).members == (1, 2, 4, 6, 10)


def test_rivals_have_the_passes_of_the_single_machine(ensembles):
    task = ensembles.Task("grid9", 0, None, None, False)
    task.C, task.objective = 0.1, 1.0
    for name in ("MCL", "DivMCL"):
        rival = task.ensemble(name, 1.0, 3)
        assert rival.max_iter == task.passes
        assert rival.n_rounds == type(rival)(None).n_rounds


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

    def figures(pick):
        return {"pick": pick, "mean": 0.4, "worst": 0.5, "least": 0.1}

    def run(*_, part, seed, **__):
        del seed
        ours, theirs = {"1": figures(0.3)}, {"1": figures(0.3)}
        ours |= {"2": figures(0.2), "4": figures(0.1)}
        theirs |= {"2": figures(0.25), "4": figures(0.09 if part == "grid43" else 0.11)}
        names = dict.fromkeys(ensembles.COULOMB, ours) | dict.fromkeys(ensembles.RIVALS, theirs)
        errors = names | {ensembles.CHOSEN: ours}
        return {"single": 0.3, "C": 1.0, "errors": errors, "chosen": ["Coulomb all"]}

    monkeypatch.setattr(ensembles.Bench, "run", run)
    monkeypatch.setattr("sys.argv", ["ensembles.py", "--json", str(file)])
    ensembles.main()
    kept = json.loads(file.read_text())
    assert list(kept["curves"]) == ["grid9", "grid43"]
    assert kept["curves"]["grid9"]["members"] == [1, 2, 4]
    assert kept["curves"]["grid9"]["errors"]["MCL"]["pick"] == pytest.approx([0.3, 0.25, 0.11])
    assert len(kept["tables"]) == 4
    assert {row[0] for row in kept["tables"][0]["rows"]} == set(ensembles.METHODS)
    verdicts = {bar["bar"]: bar["verdict"] for bar in kept["bars"]}
    assert verdicts["grid9: Coulomb below the single machine for every M"] == "met"
    assert verdicts["grid9: Coulomb below MCL for every M"] == "met"
    # Lower for two members is not lower for every number of them.
    assert verdicts["grid43: Coulomb below MCL for every M"] == "missed"
    assert verdicts["grid9: each of 4 members is the best sometimes"] == "met"

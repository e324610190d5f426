"""The benchmark of ensembles runs from end to end on generated samples."""

import json
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

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
@pytest.mark.parametrize(
    "part", [pytest.param("grid9", marks=pytest.mark.slow), "letters50", "folds"]
)
def test_every_method_returns_errors(ensembles, folder, part, monkeypatch):
    monkeypatch.setattr(
        ensembles, "STRENGTHS", {kind: few[:1] for kind, few in ensembles.STRENGTHS.items()}
    )
    found = ensembles.run(part, 0, folder, rows=6, full=False)
    assert set(found["errors"]) == set(ensembles.METHODS)
    for kind, ways in ensembles.CHOSEN.items():
        for m, name in found["chosen"][kind].items():
            assert found["choices"][name][m][0] == min(found["choices"][way][m][0] for way in ways)
            assert found["errors"][kind][m] == found["errors"][name][m]
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


def test_peers_have_the_passes_of_the_single_ssvm(ensembles):
    task = ensembles.Task("grid9", 0, None, None, False)
    task.C, task.objective = 0.1, 1.0
    for name, value in [("MCL", 3.0), ("DivMCL", (0.3, 3.0))]:
        rival = task.ensemble(name, value, 3)
        assert rival.get_params()["C"] == pytest.approx(0.3)
        assert rival.max_iter == task.passes
        assert rival.n_rounds == type(rival)(None).n_rounds
    assert rival.diversity == 0.3


def test_a_member_is_useful_where_it_alone_is_the_best(ensembles, monkeypatch):
    task = ensembles.Task("grid9", 0, None, 4, False)
    task.members = (2,)
    losses = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0]])
    task.test = task.test[0][:4], task.test[1][:4]
    monkeypatch.setattr(ensembles, "propose", lambda *_: losses)
    assert ensembles.curve(task, "MCL", {2: (0.0, 1.0)})[2]["least"] == 0.25


@pytest.mark.parametrize(("part", "seeds"), [("grid9", 5), ("folds", 10)])
def test_groups_of_five_are_at_least_two(ensembles, part, seeds):
    wanted = SimpleNamespace(full=False, rows=None)
    assert ensembles.orders(part, wanted) == [(part, seed) for seed in range(seeds)]


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

    def figures(pick, least=0.1):
        return {"pick": pick, "mean": 0.4, "worst": 0.5, "least": least}

    def run(*_, part, seed, **__):
        # In one seed of the second grid a member is of no use.
        least = 0.0 if part == "grid43" and seed == 2 else 0.1
        ours, theirs = {"1": figures(0.3)}, {"1": figures(0.3 + 0.01 * (seed - 2))}
        ours |= {"2": figures(0.2), "4": figures(0.1, least)}
        theirs |= {"2": figures(0.25), "4": figures(0.09 if part == "grid43" else 0.11)}
        errors = dict.fromkeys(ensembles.METHODS, theirs)
        errors |= dict.fromkeys([*ensembles.COULOMB, ensembles.OURS], ours)
        chosen = {ensembles.OURS: {"2": "Coulomb all"}, ensembles.CONTROL: {"2": "random"}}
        choices = {"random": {"2": [3.0, 0.1]}}
        figure = {"single": 0.3, "C": 1.0, "errors": errors}
        return {**figure, "chosen": chosen, "choices": choices}

    monkeypatch.setattr(ensembles.Bench, "run", run)
    monkeypatch.setattr("sys.argv", ["ensembles.py", "--json", str(file)])
    ensembles.main()
    kept = json.loads(file.read_text())
    assert list(kept["curves"]) == ["grid9", "grid43"]
    assert kept["curves"]["grid9"]["members"] == [1, 2, 4]
    assert kept["curves"]["grid9"]["errors"]["MCL"]["pick"] == pytest.approx([0.3, 0.25, 0.11])
    deviation = kept["curves"]["grid9"]["errors"]["MCL"]["deviation"]
    assert deviation == pytest.approx([0.01 * np.sqrt(2.0), 0.0, 0.0])
    assert len(kept["curves"]["grid9"]["choices"]) == 5
    assert kept["curves"]["grid9"]["choices"][0]["choices"] == {"random": {"2": [3.0, 0.1]}}
    assert len(kept["tables"]) == 4
    assert {row[0] for row in kept["tables"][0]["rows"]} == set(ensembles.METHODS)
    verdicts = {bar["bar"]: bar["verdict"] for bar in kept["bars"]}
    assert verdicts["grid9: Coulomb below the single SSVM for every M"] == "met"
    assert verdicts["grid9: Coulomb below MCL for every M"] == "met"
    # Lower for two members is not lower for every number of them.
    assert verdicts["grid43: Coulomb below MCL for every M"] == "missed"
    assert verdicts["grid43: Coulomb below random chosen for every M"] == "missed"
    assert verdicts["grid9: each of 4 members is the best sometimes"] == "met"
    assert verdicts["grid43: each of 4 members is the best sometimes"] == "missed"

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
            Y = [rng.integers(2, size=4) for _ in range(20)]
            X = [(y[:, None] + rng.normal(size=(4, 3)), np.array([[0, 1], [1, 2], [2, 3]]))
                 for y in Y]
            return {"X": X, "y": Y}
        """)
    )
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "part",
    [*(pytest.param(part, marks=pytest.mark.slow) for part in ("clutter", "letters50")), "folds"],
)
def test_every_method_returns_errors(ensembles, folder, part, monkeypatch):
    few = {kind: (middle, others[:1]) for kind, (middle, others) in ensembles.STRENGTHS.items()}
    monkeypatch.setattr(ensembles, "STRENGTHS", few)
    found = ensembles.run(part, 0, folder, rows=6, full=False)
    assert set(found["errors"]) == set(ensembles.METHODS)
    for kind, ways in ensembles.CHOSEN.items():
        name = found["chosen"][kind]
        assert found["choices"][name][0] == min(found["choices"][way][0] for way in ways)
        assert found["errors"][kind] == found["errors"][name]
    assert set(found["errors"]["MCL"]) == {1, 2, 6}
    for name, figures in found["errors"].items():
        for m, own in figures.items():
            assert 0.0 <= own["pick"] <= own["mean"] <= own["worst"] <= 1.0
            assert own["least"] <= 1.0 / m + 1e-12
        if not name.endswith("MCL"):
            assert figures[1]["pick"] == pytest.approx(found["single"], abs=0.2)


def test_random_controls_have_as_many_candidates_as_all_rows_of_cssvm(ensembles):
    def candidates(name):
        return 3 + len(ensembles.STRENGTHS[name.split()[0]][1])

    rows = [sum(map(candidates, names)) for names in (ensembles.COULOMB, ensembles.RANDOM)]
    assert rows[0] <= rows[1]
    # MCL has no strength, but three more values of C.
    assert candidates("CSSVM best") == candidates("DivMCL") == candidates("MCL") + 3


def test_c_is_chosen_first_and_then_the_strength(ensembles, monkeypatch):
    task = SimpleNamespace(costs=(1.0, 2.0, 3.0), more_costs=(1.5, 2.5, 9.0))
    tried = []

    def validate(_, name, value):
        tried.append(value)
        return abs(value[0] - 2.0) + abs(value[1] - 10.0)

    monkeypatch.setattr(ensembles, "validate", validate)
    assert ensembles.choose(task, "CSSVM best") == (0.0, (2.0, 10.0))
    assert tried[:3] == [(1.0, 0.1), (2.0, 0.1), (3.0, 0.1)]
    assert tried[3:] == [(2.0, 0.01), (2.0, 1.0), (2.0, 10.0)]
    tried.clear()
    ensembles.choose(task, "MCL")
    assert [C for C, _ in tried] == [1.0, 1.5, 2.0, 2.5, 3.0, 9.0]


def test_a_full_run_tries_every_number_of_members(ensembles):
    assert ensembles.Task("clutter", 0, None, None, True).members == tuple(range(1, 11))
    assert ensembles.Task("clutter", 0, None, None, False).members == (2, 4, 6, 10)


def test_peers_have_the_passes_of_the_single_ssvm(ensembles):
    task = ensembles.Task("clutter", 0, None, None, False)
    for name in ("MCL", "DivMCL"):
        rival = task.ensemble(name, 0.3, 0.5, 3)
        assert rival.get_params()["C"] == 0.3
        assert rival.max_iter == task.passes
        assert rival.n_rounds == type(rival)(None).n_rounds
    assert rival.diversity == 0.5


def test_lines_with_five_classes_have_rare_classes(ensembles):
    task = ensembles.Task("classes", 0, None, None, False)
    labels = np.concatenate(task.train[1])
    shares = np.bincount(labels) / len(labels)
    assert len(shares) == 5
    assert shares[0] > 0.3
    assert 0.005 < shares[4] < 0.1
    assert task.model_.class_weight_[4] > 3.0 * task.model_.class_weight_[0]
    assert task.error(task.valid[1]) == 0.0
    assert task.error([np.zeros_like(y) for y in task.valid[1]]) > 0.8


def test_constraints_make_neighbors_at_best_equal(ensembles):
    task = ensembles.Task("clutter", 0, None, 5, False)
    # Two labels: the last three weights are those of the pairs 00, 10 and 11.
    size = task.model_.size_joint_feature
    assert size == 29
    assert task.signs["zero_constraint"] == [size - 3, size - 1]
    assert task.signs["negativity_constraint"] == [size - 2]


def test_a_member_is_useful_where_it_alone_is_the_best(ensembles):
    Y = [np.zeros(4, dtype=int)] * 4
    model = SimpleNamespace(loss=lambda y, own: np.sum(y != own))
    task = SimpleNamespace(
        model_=model, error=lambda outputs, samples: float(np.mean(np.concatenate(outputs)))
    )
    wrong = [[1, 1], [2, 2], [3, 4], [4, 3]]
    proposals = [[(np.arange(4) < k).astype(int) for k in pair] for pair in wrong]
    found = ensembles.measure(task, (None, Y), proposals)
    assert found["least"] == 0.25
    assert found["pick"] == (1 + 2 + 3 + 3) / 16
    assert found["mean"] == found["worst"] == 10 / 16


def test_the_largest_set_is_for_full_runs(ensembles):
    wanted = SimpleNamespace(full=False, rows=None, data="DIR", only=ensembles.PARTS)
    assert "letters704" not in ensembles.parts(wanted)
    wanted.full = True
    assert ensembles.parts(wanted) == list(ensembles.PARTS)
    wanted.data = None
    assert ensembles.parts(wanted) == ["clutter", "classes"]


def test_each_fold_of_many_images_is_trained_on_once(ensembles, monkeypatch):
    images = [(np.full((2, 1), float(k)), np.array([[0, 1]])) for k in range(200)]
    raw = {"X": images, "y": [np.array([k, k]) for k in range(200)]}
    monkeypatch.setattr(ensembles, "load", lambda *_: raw)
    folds = [ensembles.horse_folds(None, fold) for fold in range(5)]
    used = [[[int(y[0]) for y in Y] for _, Y in parts] for parts in folds]
    assert [len(part) for part in used[0]] == [34, 66, 66]
    assert len({k for own in used for k in own[0]}) == 166
    assert all(len({k for part in own for k in part}) == 166 for own in used)


def test_tables_and_bars_are_kept(ensembles, tmp_path, monkeypatch):
    file = tmp_path / "out.json"

    def figures(pick, least=0.1):
        return {"pick": pick, "mean": 0.4, "worst": 0.5, "least": least}

    def run(*_, part, seed, **__):
        ours, theirs = {"1": figures(0.3)}, {"1": figures(0.3 + 0.01 * (seed - 2))}
        ours |= {"2": figures(0.2), "4": figures(0.1)}
        theirs |= {"2": figures(0.25), "4": figures(0.09 if part == "classes" else 0.11)}
        errors = dict.fromkeys(ensembles.METHODS, theirs)
        errors |= dict.fromkeys([*ensembles.COULOMB, ensembles.OURS], ours)
        chosen = {ensembles.OURS: "CSSVM best", ensembles.CONTROL: "random weights"}
        choices = {"random weights": [3.0, [0.1, 0.3]]}
        return {"single": 0.3, "errors": errors, "chosen": chosen, "choices": choices}

    monkeypatch.setattr(ensembles.Bench, "run", run)
    monkeypatch.setattr("sys.argv", ["ensembles.py", "--json", str(file)])
    ensembles.main()
    kept = json.loads(file.read_text())
    assert list(kept["curves"]) == ["clutter", "classes"]
    assert kept["curves"]["clutter"]["members"] == [1, 2, 4]
    assert kept["curves"]["clutter"]["errors"]["MCL"]["pick"] == pytest.approx([0.3, 0.25, 0.11])
    deviation = kept["curves"]["clutter"]["errors"]["MCL"]["deviation"]
    assert deviation == pytest.approx([0.01 * np.sqrt(2.0), 0.0, 0.0])
    assert len(kept["curves"]["clutter"]["choices"]) == 5
    assert len(kept["tables"]) == 4
    assert {row[0] for row in kept["tables"][0]["rows"]} == set(ensembles.METHODS)
    verdicts = {bar["bar"]: bar["verdict"] for bar in kept["bars"]}
    assert verdicts["clutter: CSSVM chosen at or below the single SSVM for every M"] == "met"
    assert verdicts["clutter: CSSVM chosen at or below MCL for every M"] == "met"
    # Lower for two members is not lower for every number of them.
    assert verdicts["classes: CSSVM chosen at or below MCL for every M"] == "missed"


def test_assignment_best_is_compared_on_many_images(ensembles):
    bars = {}
    report = SimpleNamespace(bar=lambda claim, figure, met, *_: bars.update({claim: met}))
    errors = {name: {"pick": [0.2, 0.1], "least": [0.1, 0.0]} for name in ensembles.METHODS}
    ensembles.bars("folds", report, [2, 4], 0.3, errors)
    assert bars["folds: CSSVM best at or below DivMCL for every M"]
    assert bars["folds: CSSVM best at or below random chosen for every M"]
    assert not bars["folds: each of 4 members is the best sometimes"]

"""Reproduction: the figures of papers beside ours, on a page and in a file."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin.cli.main import CommandError
from widemargin.cli.reproduction import PAPERS, data, gated, page, reproduce
from widemargin.cli.reproduction.comparison import Claim, Comparison, Figure


@pytest.mark.parametrize(
    ("published", "measured", "larger_is_better", "verdict"),
    [
        (0.5, 0.52, True, "similar"),
        (0.5, 0.6, True, "better"),
        (0.5, 0.4, True, "worse"),
        (0.5, 0.6, False, "worse"),
        (0.5, 0.4, False, "better"),
        (0.5, 0.6, None, "different"),
        (None, 0.4, True, "ours only"),
        (0.5, None, True, "not run"),
    ],
)
def test_figures_are_judged_by_their_difference(published, measured, larger_is_better, verdict):
    assert Figure("a", "b", published, measured, 0.05, larger_is_better).verdict == verdict


def test_a_table_shows_both_figures_and_escapes_text():
    figures = [Figure("<SVM>", "F", 1.0, 2.0), Figure("SVM", "AUC", None, 3.0)]
    claims = [Claim("it holds", True, "x"), Claim("not", False, ""), Claim("left out", None, "")]
    html = Comparison("T", "how", "why", figures, claims).to_html()
    assert "&lt;SVM&gt;" in html
    assert re.search(r'<td class="good"[^>]*><b>2.00</b><br><span>1.00</span>', html)
    assert "<b>3.00</b><br><span>–</span>" in html
    assert [word in html for word in ("holds", "does not hold", "not tried")] == [True] * 3


def test_discriminants_reproduce_the_textbook_and_the_closed_form(tmp_path, capsys):
    papers = reproduce(["discriminant"], True, tmp_path / "new")
    verdicts = {figure.verdict for c in papers[0].comparisons for figure in c.figures}
    assert verdicts == {"similar"}
    assert all(claim.holds for c in papers[0].comparisons for claim in c.claims)
    stored = json.loads((tmp_path / "new" / "reproduction.json").read_text(encoding="utf-8"))
    figures = stored["papers"]["discriminant"]["comparisons"][0]["figures"]
    assert figures[2]["published"] == 0.32
    assert figures[2]["verdict"] == "similar"
    assert stored["quick"] is True
    text = (tmp_path / "new" / "reproduction.html").read_text(encoding="utf-8")
    assert "Error on vowel" in text
    assert "12 similar" in capsys.readouterr().out


def test_all_papers_are_run_in_order(tmp_path, monkeypatch):
    order = []
    for name, (title, reference, _) in PAPERS.items():
        comparison = [Comparison(name, "how", "why", [Figure("a", "b", 1.0, 1.0)])]
        run = lambda quick, name=name, found=comparison: order.append((name, quick)) or found  # noqa: E731
        monkeypatch.setitem(page.PAPERS, name, (title, reference, run))
    reproduce(["all"], False, tmp_path)
    assert order == [(name, False) for name in PAPERS]
    assert set(json.loads((tmp_path / "reproduction.json").read_text())["papers"]) == set(PAPERS)


def test_an_unknown_paper_is_refused_before_any_work(tmp_path):
    with pytest.raises(CommandError, match=r"no paper 'gates'\. Use gated, privileged"):
        reproduce(["gates"], True, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_data_that_cannot_be_downloaded_are_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    assert data.split("letter") is None
    assert "letter is left out: Downloads require pooch" in capsys.readouterr().out


def test_copies_of_data_in_a_folder_are_not_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "fetch_dataset", lambda name: pytest.fail("downloaded"))
    X, y = sp.csr_array(np.eye(3)), np.arange(3)
    arrays = {f"X_train__{key}": getattr(X, key) for key in ("data", "indices", "indptr")}
    arrays |= {"X_train__shape": X.shape, "y_train": y, "X_test": np.ones((2, 3)), "y_test": y[:2]}
    np.savez(tmp_path / "letter.npz", **arrays)
    X_train, y_train, X_test, y_test = data.split("letter", tmp_path)
    np.testing.assert_array_equal(X_train.toarray(), np.eye(3))
    np.testing.assert_array_equal(X_test, np.ones((2, 3)))
    assert (y_train.tolist(), y_test.tolist()) == ([0, 1, 2], [0, 1])
    np.savez(tmp_path / "letter.npz", X=np.eye(3))
    with pytest.raises(CommandError, match=r"letter.npz does not contain the arrays X_train"):
        data.split("letter", tmp_path)
    (tmp_path / "letter.npz").write_text("no archive")
    with pytest.raises(CommandError, match=r"does not contain the arrays"):
        data.split("letter", tmp_path)


def test_the_folder_reaches_the_papers_with_data(tmp_path, monkeypatch):
    seen = {}
    for name, (title, reference, _) in PAPERS.items():
        run = lambda quick, folder=None, name=name: seen.update({name: folder}) or []  # noqa: E731
        monkeypatch.setitem(page.PAPERS, name, (title, reference, run))
    reproduce(["all"], False, tmp_path / "new", tmp_path)
    assert [name for name, folder in seen.items() if folder == tmp_path] == ["gated", "preference"]


def test_downloaded_data_take_the_place_of_missing_figures(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    y = np.argmax(X[:, :3], axis=1)
    parts = X[:160], y[:160], X[160:], y[160:]
    monkeypatch.setattr(gated, "split", lambda name, folder: parts if name == "letter" else None)
    point = {"C": 100.0, "margin": 0.6, "decay": None}
    grids = {"SVM": [point], "gSVM-0": [point], "gSVM": [{**point, "decay": 0.3}]}
    monkeypatch.setattr(gated, "_grids", lambda quick: grids)
    table, statements = gated.compare(quick=False)
    run = {figure.row.split(",")[0] for figure in table.figures if figure.measured is not None}
    assert run == {"letter"}
    assert "letter" in statements.claims[0].evidence


@pytest.mark.slow
def test_the_quick_mode_runs_all_papers_without_downloads(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path / "empty"))
    papers = reproduce(["all"], True, tmp_path)
    assert [paper.name for paper in papers] == list(PAPERS)
    assert all(paper.comparisons for paper in papers)
    assert not (tmp_path / "empty").exists()

"""The tour walks all its stops and writes its report."""

from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def tour(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import tour

    return tour


def check(tour, folder, capsys):
    tour.main(["--output", str(folder)])
    printed = capsys.readouterr().out
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "margins.png").stat().st_size > 10_000
    for words in ("The machine", "SVC beside scikit-learn", "SVCCV beside GridSearchCV", "iris"):
        assert words in printed
        assert words in report
    assert report.count("<section>") == len(tour.STOPS)


def test_every_stop_shows_what_it_found(tour, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tour, "_samples", lambda samples=tour._samples: [next(samples())])
    check(tour, tmp_path, capsys)


@pytest.mark.slow
def test_the_whole_tour_ends_at_its_report(tour, tmp_path, capsys):
    check(tour, tmp_path, capsys)

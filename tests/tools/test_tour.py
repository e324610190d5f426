"""The tour walks all its stops and writes its report."""

from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def tour(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import tour

    return tour


@pytest.fixture
def stops(tour):
    import stops

    return stops


def check(tour, folder, capsys):
    tour.main(["--output", str(folder)])
    printed = capsys.readouterr().out
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "margins.png").stat().st_size > 10_000
    for words in (
        "SVC beside scikit-learn",
        "SVCCV beside GridSearchCV",
        "iris",
        "gSVM-0",
        "recall",
    ):
        assert words in printed
        assert words in report
    assert report.count("<section>") == len(tour.STOPS)
    assert report.count("<img ") == len(list(folder.glob("*.png")))


def test_every_stop_shows_what_it_found(tour, stops, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stops, "_samples", lambda samples=stops._samples: [next(samples())])
    check(tour, tmp_path, capsys)


@pytest.mark.slow
def test_the_whole_tour_ends_at_its_report(tour, tmp_path, capsys):
    check(tour, tmp_path, capsys)

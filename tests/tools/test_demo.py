"""The demo runs all its sections and writes its report."""

from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def demo(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import demo

    return demo


@pytest.fixture
def sections(demo):
    import sections

    return sections


def check(demo, folder, capsys):
    demo.main(["--output", str(folder)])
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
    assert report.count("<section>") == len(demo.SECTIONS)
    assert report.count("<img ") == len(list(folder.glob("*.png")))


def test_every_section_shows_what_it_found(demo, sections, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sections, "_samples", lambda samples=sections._samples: [next(samples())])
    check(demo, tmp_path, capsys)


@pytest.mark.slow
def test_the_whole_demo_ends_at_its_report(demo, tmp_path, capsys):
    check(demo, tmp_path, capsys)

"""The demo: its parts find what they claim, and end in one page."""

import numpy as np
import pytest

from widemargin.cli import demo
from widemargin.cli.samples import make_tickets


def test_privileged_features_help_and_their_control_neither_helps_nor_harms():
    none, *others = (float(row[1]) for row in demo.privileged().rows)
    informative, selected, permuted, selected_of_permuted = others
    assert min(informative, selected) > none + 0.01
    assert max(permuted, selected_of_permuted) <= none + 0.01
    assert min(permuted, selected_of_permuted) >= none - 0.02


def test_words_are_drawn_with_what_was_read():
    picture = demo.draw_word(np.eye(2, 128), "ab")
    assert picture.count("h1v1") == 2
    assert ">a</text>" in picture
    assert ">b</text>" in picture


def test_tickets_have_text_categories_and_missing_values():
    table = make_tickets(500, 0)
    assert table["waiting_hours"].isna().any()
    assert table["channel"].isna().any()
    assert 0.1 < (table["outcome"] == "escalated").mean() < 0.6
    assert make_tickets(500, 0).equals(table)
    assert not make_tickets(500, 1).equals(table)


def test_parts_are_printed_and_end_in_one_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "_DEMOS", (demo.privileged,))
    monkeypatch.setattr(demo, "compile_needed", lambda: None)
    monkeypatch.setattr(demo, "make_tickets", lambda n, seed: make_tickets(400, seed))
    page = demo.run_demo(tmp_path / "demo")
    printed = capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    for words in (
        "A job from the table to the guarantee",
        "permuted (control)",
        "widemargin evaluate tickets.skops new_tickets.csv",
    ):
        assert words in printed
        assert words in text
    assert "[2 of 2] Use features that only the training samples have" in printed
    assert "Job: decision threshold" in text
    assert str(page.resolve()) in printed


@pytest.mark.slow
def test_the_whole_demo_ends_at_its_page(tmp_path):
    text = demo.run_demo(tmp_path).read_text(encoding="utf-8")
    assert text.count("<section") == 1 + 3 + len(demo._DEMOS)

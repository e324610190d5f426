"""The performance page shows what the benchmarks kept, and stands without it."""

import json
import runpy
from pathlib import Path

import pytest
from docutils import nodes
from docutils.core import publish_doctree

ROOT = Path(__file__).parents[2]
WRITE = runpy.run_path(str(ROOT / "docs" / "performance.py"))["write"]


@pytest.fixture
def page(tmp_path):
    """A function that writes the page from given results and reads it as reStructuredText."""

    def page(**results):
        for name, result in results.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")
        WRITE(results=tmp_path, page=tmp_path / "tables.inc")
        text = (tmp_path / "tables.inc").read_text(encoding="utf-8")
        return publish_doctree(text, settings_overrides={"halt_level": 2, "report_level": 2})

    return page


def test_every_table_and_bar_is_shown(page):
    table = {
        "title": "Import",
        "text": "Seconds.",
        "header": ["statement", "least, s"],
        "rows": [["from a import b, c", "0.1"], ['a "quoted" name', ""]],
    }
    bar = {"bar": "dual_gap_ at most 1", "figure": "0.1 s", "verdict": "met"}
    result = {"benchmark": "core", "machine": {"Python": "3"}, "tables": [table], "bars": [bar]}
    cells = [entry.astext() for entry in page(core=result).findall(nodes.entry)]
    assert cells[:8] == ["target", "figure", "verdict", "cause", *bar.values(), ""]
    assert cells[8:] == [*table["header"], *table["rows"][0], *table["rows"][1]]


def test_a_page_without_results_says_so(page):
    assert "There are no results" in page().astext()


def test_a_missed_bar_without_a_known_cause_says_so(page):
    bar = {"bar": "at most 1 s", "figure": "2 s", "verdict": "missed"}
    result = {"benchmark": "core", "machine": {}, "tables": [], "bars": [bar]}
    assert "not investigated" in page(core=result).astext()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "results").glob("*.json")), ids=lambda path: path.stem
)
def test_every_missed_bar_that_is_published_has_its_cause(path):
    causes = json.loads((ROOT / "benchmarks" / "causes.json").read_text(encoding="utf-8"))
    result = json.loads(path.read_text(encoding="utf-8"))
    missed = {bar["bar"] for bar in result["bars"] if bar["verdict"] == "missed"}
    assert missed <= causes.get(result["benchmark"], {}).keys()


def test_gains_by_privileged_features_are_those_over_the_first_baseline(page, tmp_path):
    header = ["data", "method", "accuracy", "gain over ovr", "gain over ovo"]
    rows = [
        ["wine", "ovr", "90.0", "", "+1"],
        ["wine", "ovo", "89.0", "-1", ""],
        ["wine", "PrivilegedSVCCV", "91.0", "+1 ± 2", "+2 ± 2"],
    ]
    table = {"title": "Privileged", "text": "", "header": header, "rows": rows}
    page(privileged_suite={"benchmark": "privileged", "machine": {}, "tables": [table], "bars": []})
    lines = (tmp_path / "performance_gains.inc").read_text(encoding="utf-8").splitlines()
    assert lines[-1].strip() == "wine,-1,+1 ± 2"


def test_defaults_of_students_are_shown_as_means_over_data_sets(page, tmp_path):
    rows = [["iris", "C = 1", "80", "90", "", "+1"], ["all", "C = 1", "81", "91", "", "+2"]]
    title = "Defaults of students, rbf teacher: test"
    table = {"title": title, "text": "", "header": ["x"] * 6, "rows": rows}
    page(gated_defaults={"benchmark": "gated", "machine": {}, "tables": [table], "bars": []})
    lines = (tmp_path / "performance_defaults.inc").read_text(encoding="utf-8").splitlines()
    assert lines[-1].strip() == "rbf,test,C = 1,81,91,,+2"


def test_distilled_students_are_set_beside_their_baselines(page, tmp_path):
    header = ["data", "who", "F", "AUC", "gain in F", "gain in AUC", "strength"]
    rows = [
        ["breast_cancer", "teacher", "95.0", "99.0", "", "", ""],
        ["breast_cancer", "distilled students, linear", "93.0", "98", "+2", "+1", "1"],
        ["breast_cancer", "shuffled, linear", "90.0", "96", "-1", "-1", ""],
        ["breast_cancer", "labels alone, linear", "91.0", "97", "", "", ""],
        ["breast_cancer", "scores alone, linear", "92.0", "98", "+1", "+1", ""],
    ]
    table = {"title": "Distilled students, unlabeled", "text": "", "header": header, "rows": rows}
    page(gated_distilled={"benchmark": "gated", "machine": {}, "tables": [table], "bars": []})
    lines = (tmp_path / "performance_students.inc").read_text(encoding="utf-8").splitlines()
    assert lines[-1].strip() == "breast cancer,unlabeled,linear,93.0,91.0,92.0,+2,+1,-1"


def lines_of(path):
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def test_guarantees_and_margins_are_set_beside_those_of_other_tools(page, tmp_path):
    def result(title, header, rows):
        table = {"title": title, "text": "", "header": header, "rows": rows}
        return {"benchmark": "preference", "machine": {}, "tables": [table], "bars": []}

    header = ["data", "", "given", "met", "p", "F1"]
    rows = [
        ["rare", "labels only, confidence", "28 of 125", "0.964", "0.9", "0.8"],
        ["rare", "labels only", "125 of 125", "0.768", "-", "0.6"],
        ["rare", "MAPIE", "0 of 125", "-", "-", "-"],
    ]
    kinds = ["check", "choice"]
    margins = [[kind, "recall 0.9", "margin 0.9", "0.97", "0.718"] for kind in kinds]
    starts = [["0.9", "ours", "27", "77", "104"]]
    start_header = ["confidence", "start", "many problems", "two Gaussians", "sum"]
    page(
        preference_guarantee=result("The guarantee, confidence 0.9", header, rows),
        preference_margin=result(
            "Constraints without a guarantee, by the margin",
            ["", "constraint", "", "met", "F1"],
            margins,
        ),
        preference_starts=result("Starts of the fixed sequence", start_header, starts),
        preference=result("What breaks a guarantee", ["samples", "held"], [["shifted", "0.04"]]),
    )
    last = {
        name: lines_of(tmp_path / f"performance_{name}.inc")[-1]
        for name in ("guarantees", "margins", "starts", "broken")
    }
    assert last == {
        "guarantees": "rare (125 problems),28 (0.964),,0,,,",
        "margins": "recall 0.9,margin 0.9,0.97,0.718",
        "starts": "0.9,ours,104",
        "broken": "shifted,0.04",
    }
    assert len(lines_of(tmp_path / "performance_margins.inc")) == 4


def test_tables_that_pages_include_are_written_from_the_published_results(tmp_path):
    WRITE(page=tmp_path / "performance_tables.inc")
    included = {
        line.partition(".. include:: ")[2]
        for path in (ROOT / "docs").glob("*.rst")
        for line in lines_of(path)
        if line.startswith(".. include:: performance_")
    }
    assert len(included) > 5
    for name in included:
        assert "csv-table" in (tmp_path / name).read_text(encoding="utf-8")

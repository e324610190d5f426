"""The benchmark of the discriminants runs, and the labels it reads a file with are the file's."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("resource", reason="peak memory is not to be had on this system")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def discriminant(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import discriminant

    return discriminant


def test_labels_are_those_of_the_generated_rows(discriminant):
    size = (500, 6, 3)
    np.testing.assert_array_equal(discriminant.labels(size), discriminant.generated(size)[1])


@pytest.mark.slow
def test_it_runs_and_keeps_what_it_found(discriminant, tmp_path):
    kept = tmp_path / "results.json"
    parts = ["stream", "small"]
    discriminant.main(["--rows", "400", "--budget", "0.1", "--json", str(kept), "--only", *parts])
    result = json.loads(kept.read_text())
    titles = [table["title"] for table in result["tables"]]
    assert titles == ["A file larger than memory", "Small data"]
    # Memory is not judged: a process inherits the mark of the one that started it, here the tests'.
    bars = {bar["bar"]: bar["verdict"] for bar in result["bars"]}
    assert {bars[name] for name in bars if "equal" in name or "gives" in name} == {"met"}
    assert len(bars) == 6


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_it_judges_agreement_far_from_zero_too(discriminant, offset):
    found = discriminant.task_agree((2_000, 8, 3), offset)
    assert found["proba"] <= 1e-12
    assert found["pieces"] <= 1e-12
    assert (found["peer"] > 1e-12) == (offset > 0)

